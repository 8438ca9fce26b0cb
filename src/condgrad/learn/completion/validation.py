"""Errors of models on held-out entries, by which the models are compared, and the records of the choices of a fit."""

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
"""A model is better if it decreases the held-out loss by more than this share."""
MAX_SCALE_DROP = 0.7
"""Minimum ratio of the new scale of the loss to the old scale. If the scale decreased faster, rows that need many steps would be
treated as outliers before they are fitted."""


def _validate(fit: Radius) -> None:
    whole(fit.rank, "rank", least=0)


@stored(validate=_validate)
class Radius(NamedTuple):
    """Record of one fit of the path: its settings, and its errors on held-out entries."""

    radius: float
    error: float
    """Root mean square error in which each held-out entry has its inlier weight. It is used to compare fits with the same
    loss."""
    rank: int
    loss: str
    free: bool
    """True if the singular values are unshrunk, that is, not limited by the ball. The radius is then their sum."""
    rmse: float
    """Root mean squared error at all held-out entries, including outliers. It is used to compare fits with different losses."""
    mae: float
    """Mean absolute error at all held-out entries."""
    median_error: float
    """Median absolute error at all held-out entries. Outliers hardly change it."""
    averaged: bool = False
    """True if the predictions are averages over the posterior."""


@stored
class Candidate(NamedTuple):
    """Record of one of the models that were compared on held-out entries. Its fit does not use these entries."""

    loss: str
    averaged: bool
    """Whether the predictions are averages over the posterior."""
    adaptive: bool
    """Whether the width of the loss follows the residuals of each draw."""
    implicit: bool
    """Whether features of the pattern of the entries are used."""
    evidence: float
    """Evidence that the model is better than the best candidate before it: the sum of the t statistics of the differences of
    absolute errors and of squared errors (choice.evidence). 0 for the first candidate."""
    rmse: float
    mae: float
    median_error: float
    pursued: bool = False
    """Whether the fit started from a principal component pursuit (pursuit.py). Such a fit is compared by its median error, the
    number of its inliers, or its rank."""
    tensor: bool = False
    """Whether the model is a tensor view."""


def _validate_view(view: TensorView) -> None:
    whole(view.period, "period")


@stored(validate=_validate_view)
class TensorView(NamedTuple):
    """Settings with which a table is completed as a tensor of rows x periods x times."""

    period: int
    """Number of columns in a period."""
    loss: str
    """Loss by whose inlier weights outliers are recognised. With "squared", no entry is an outlier."""
    sigma: float
    """Scale of the loss."""
    truncations: tuple[float, ...]
    """Shares of the singular values of each unfolding that are not shrunk. If there are several, the completions with these
    shares are averaged."""
    smoothness: float
    """Weight mu of the squared differences of neighbouring columns; 0 for no temporal smoothness."""
    radius: float
    """Radius of the ball of the matrix fit from which the first outliers are found."""


def _validate_averaging(averaging: Averaging) -> None:
    whole(averaging.rank, "rank")


@stored(validate=_validate_averaging)
class Averaging(NamedTuple):
    """Settings of an average of a model over its posterior."""

    rank: int
    """Number of components."""
    implicit: bool
    """Whether features of the pattern of the entries are used."""
    adaptive: bool
    """Whether the width of the loss follows the residuals of each sweep."""
    radius: float
    """Radius of the ball of the fit from which the sampler starts."""


class Scaling(Protocol):
    """Interface of objects that adapt the width of the loss to the scale of the errors. `path.Fit` implements it."""

    min_sigma: float
    """Lower bound on the scale of the loss."""

    def with_scale(self, model: Model, deviation: float) -> Model:
        """Replace the loss of a model by the loss for residuals of this standard deviation."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The held-out entries, which no fit of the path uses."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray

    def validate(self, fit: Scaling, model: Model) -> Validated:
        """Compute the held-out residuals of a model, and adapt the loss of the model to their scale."""
        return self.scaled(fit, model, self.values - model.predict(self.rows, self.cols))

    def scaled(self, fit: Scaling, model: Model, residuals: np.ndarray) -> Validated:
        """Adapt the loss of a model to the scale of its held-out residuals."""
        model = fit.with_scale(model, max(median_scale(residuals), MAX_SCALE_DROP * model.sigma, fit.min_sigma))
        return Validated(model, residuals, float(np.sqrt(2 * mean_loss(model.loss, residuals) / model.loss.smoothness)))

    def errors(self, validated: Validated, limits: tuple[float, float]) -> tuple[float, float, float]:
        """Root mean squared, mean absolute and median absolute error of the predictions, clipped to the limits."""
        sizes = np.abs(self.values - np.clip(self.values - validated.residuals, *limits))
        return float(np.sqrt(np.mean(np.square(sizes)))), float(np.mean(sizes)), float(np.median(sizes))


@dataclass(frozen=True, eq=False)
class Validated:
    """A model, its held-out residuals and its held-out error. The loss of the model is adapted to the scale of the residuals."""

    model: Model
    residuals: np.ndarray
    error: float

    def beats(self, other: Validated, by: float = MIN_IMPROVEMENT) -> bool:
        """Whether the held-out loss is smaller than that of another model by more than the share ``by``.

        The narrower of the two losses is used for both models. With the wider loss, the cost of outliers, which is the same for
        both models, would hide an improvement on the inliers.
        """
        loss = min(self.model, other.model, key=lambda model: model.sigma).loss
        return mean_loss(loss, self.residuals) < (1 - by) * mean_loss(loss, other.residuals)


def mean_loss(loss: Loss, residuals: np.ndarray) -> float:
    """Mean of the loss over the residuals."""
    return value_and_deriv(loss, residuals, np.zeros(len(residuals)), np.empty(0), slopes=False)[0] / len(residuals)
