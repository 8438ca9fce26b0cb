"""Errors of models on held-out entries, and the comparison of models by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from condgrad.checks import whole
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.robust_scale import median_scale
from condgrad.objectives.losses import Loss, value_and_deriv
from condgrad.storage.stored import stored

MIN_IMPROVEMENT = 1e-4
"""Relative decrease of the held-out loss from which a model counts as better."""
MAX_SCALE_DROP = 0.7
"""Smallest ratio of the new scale of the loss to the old one. If the scale decreased faster, rows that need more steps than
others would be treated as outliers before they are fitted."""


def _validate(fit: Radius) -> None:
    whole(fit.rank, "rank", least=0)


@stored(validate=_validate)
class Radius(NamedTuple):
    """One fit of the path, to the entries that are not held out, and its errors on those that are."""

    radius: float
    error: float
    """Root mean square in which an entry counts by its inlier weight. Compares fits with the same loss."""
    rank: int
    loss: str
    free: bool
    """True if singular values are unshrunk: the ball does not limit them, and the radius is their sum."""
    rmse: float
    """Root mean squared error of the predictions at all held-out entries, outliers included. Compares fits with any loss."""
    mae: float
    """Mean absolute error of the same predictions."""
    median_error: float
    """Median absolute error of the same predictions, which outliers hardly change."""
    averaged: bool = False
    """True if the predictions are averages over the posterior."""


@stored
class Candidate(NamedTuple):
    """One of the models that were compared on held-out entries, which its fit does not use."""

    loss: str
    averaged: bool
    """Whether its predictions are averages over the posterior."""
    adaptive: bool
    """Whether the width of the loss follows the residuals of each draw."""
    implicit: bool
    """Whether the pattern of the entries gives features of rows and columns."""
    evidence: float
    """How clearly it is better than the best candidate before it: the sum of the t statistics of the differences of absolute and
    of squared errors, in which errors are limited to a multiple of the scale of the data; 0 for the first."""
    rmse: float
    mae: float
    median_error: float
    pursued: bool = False
    """Whether the fit started from a principal component pursuit of the rows and columns with most entries. It is compared by its
    median error, the number of its inliers, or its rank."""
    tensor: bool = False
    """Whether it is the tensor view."""


def _validate_view(view: TensorView) -> None:
    whole(view.period, "period")


@stored(validate=_validate_view)
class TensorView(NamedTuple):
    """How a table is completed as a tensor of rows x periods x times."""

    period: int
    """Number of columns in a period."""
    loss: str
    """Loss whose inlier weights tell outliers; "squared": none is ignored."""
    sigma: float
    """Scale of this loss."""
    truncation: float
    """Share of the singular values of each unfolding that are not shrunk."""
    smoothness: float
    """Weight of the squared differences of neighbouring columns; 0: not used."""
    radius: float
    """Radius of the ball of the plain fit from which outliers are found at first."""


def _validate_averaging(averaging: Averaging) -> None:
    whole(averaging.rank, "rank")


@stored(validate=_validate_averaging)
class Averaging(NamedTuple):
    """How a model is averaged over its posterior."""

    rank: int
    """Number of components."""
    implicit: bool
    """Whether the pattern of the entries gives features of rows and columns."""
    adaptive: bool
    """Whether the width of the loss follows the residuals of each sweep."""
    radius: float
    """Radius of the ball of the fit from which the sampler starts."""


class Scaling(Protocol):
    """Adapts the width of the loss to the scale of the errors."""

    min_sigma: float
    """Lower bound on the scale of the loss."""

    def with_scale(self, model: Model, deviation: float) -> Model:
        """The model with the loss for residuals with this standard deviation."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Entries that no fit of the path uses."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray

    def validate(self, fit: Scaling, model: Model) -> Validated:
        """Compute the held-out residuals of a model and adapt its loss to their scale."""
        return self.scaled(fit, model, self.values - model.predict(self.rows, self.cols))

    def scaled(self, fit: Scaling, model: Model, residuals: np.ndarray) -> Validated:
        """The model with its loss adapted to the scale of these held-out residuals."""
        model = fit.with_scale(model, max(median_scale(residuals), MAX_SCALE_DROP * model.sigma, fit.min_sigma))
        return Validated(model, residuals, float(np.sqrt(2 * mean_loss(model.loss, residuals) / model.loss.smoothness)))

    def errors(self, validated: Validated, limits: tuple[float, float]) -> tuple[float, float, float]:
        """Root mean squared, mean absolute and median absolute error of the predictions, clipped to the limits."""
        sizes = np.abs(self.values - np.clip(self.values - validated.residuals, *limits))
        return float(np.sqrt(np.mean(np.square(sizes)))), float(np.mean(sizes)), float(np.median(sizes))


@dataclass(frozen=True, eq=False)
class Validated:
    """A model with its loss scaled to its held-out residuals, these residuals, and its validation error."""

    model: Model
    residuals: np.ndarray
    error: float

    def beats(self, other: Validated, by: float = MIN_IMPROVEMENT) -> bool:
        """Whether the held-out loss is smaller by more than the share ``by``.

        Both are compared with the narrower of their losses: with the wider one, the cost of outliers, which is the same for
        both, would hide an improvement on the inliers.
        """
        loss = min(self.model, other.model, key=lambda model: model.sigma).loss
        return mean_loss(loss, self.residuals) < (1 - by) * mean_loss(loss, other.residuals)


def mean_loss(loss: Loss, residuals: np.ndarray) -> float:
    """Mean of the loss over the residuals."""
    return value_and_deriv(loss, residuals, np.zeros(len(residuals)), np.empty(0), slopes=False)[0] / len(residuals)
