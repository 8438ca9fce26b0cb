"""Models judged by entries that no fit has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from condgrad.checks import whole
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.robust_scale import spread
from condgrad.objectives.losses import Loss, value_and_deriv
from condgrad.storage.stored import stored

BETTER = 1e-4
"""By this share the held-out loss must fall to count as better."""
SLOWLY = 0.7
"""The scale of the loss does not fall at once below this part of the last one: rows that are fitted later than others must not be
given up before."""


def _validate(fit: Radius) -> None:
    whole(fit.rank, "rank", least=0)


@stored(validate=_validate)
class Radius(NamedTuple):
    """One fit of the path, to the entries that are not held out, and its errors on those that are."""

    radius: float
    error: float
    """What fits are compared by, under one loss: a root mean square in which an entry counts by its inlier weight."""
    rank: int
    loss: str
    free: bool
    """Of the ball; the radius is then what the singular values add up to."""
    rmse: float
    """Root mean squared error of the predictions at all held-out entries, outliers included. It compares fits by any loss."""
    mae: float
    """Mean absolute error of the same predictions."""
    median_error: float
    """Median absolute error of the same predictions, which outliers hardly change."""


class Scaling(Protocol):
    floor: float
    """Of the scale."""

    def scaled(self, model: Model, deviation: float) -> Model:
        """The model with the loss for residuals of this size."""


@dataclass(frozen=True, eq=False)
class Held:
    """Entries that no fit has seen."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray

    def judged(self, fit: Scaling, model: Model) -> Judged:
        left = self.values - model.at(self.rows, self.cols)
        model = fit.scaled(model, max(spread(left), SLOWLY * model.sigma, fit.floor))
        return Judged(model, left, float(np.sqrt(2 * mean_loss(model.loss, left) / model.loss.smoothness)))

    def errors(self, now: Judged, within: tuple[float, float]) -> tuple[float, float, float]:
        """Root mean squared, mean absolute and median absolute error of the model's predictions, clipped to a range."""
        sizes = np.abs(self.values - np.clip(self.values - now.left, *within))
        return float(np.sqrt(np.mean(np.square(sizes)))), float(np.mean(sizes)), float(np.median(sizes))


@dataclass(frozen=True, eq=False)
class Judged:
    """A model, scaled to its held-out residuals, and these."""

    model: Model
    left: np.ndarray
    error: float

    def beats(self, other: Judged, by: float = BETTER) -> bool:
        """By one loss for both, the narrower one: outliers, which cost the same, would hide what ordinary entries gain."""
        loss = min(self.model, other.model, key=lambda model: model.sigma).loss
        return mean_loss(loss, self.left) < (1 - by) * mean_loss(loss, other.left)


def mean_loss(loss: Loss, left: np.ndarray) -> float:
    return value_and_deriv(loss, left, np.zeros(len(left)), np.empty(0), slopes=False)[0] / len(left)
