"""The computations of a fit that need the observed entries: the interface `Observed`, and `InMemory` for entries in memory.

If the entries are on the workers of a cluster, the class `OnWorkers` in sharded.py is used instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from condgrad.learn.completion.biases import Biases, ReweightedEntries, loss_and_inlier_weights
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.robust_scale import value_range
from condgrad.learn.completion.validation import HeldOut
from condgrad.objectives import Completion
from condgrad.objectives.losses import Loss
from condgrad.points import LowRank


class Outliers(NamedTuple):
    """Entries with an inlier weight below 0.5, in decreasing order of their errors."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    residuals: np.ndarray
    weights: np.ndarray
    """Inlier weights."""
    number: int
    """Number of outliers. On a cluster, the arrays have only the outliers with the largest errors."""


class Observed(Protocol):
    """Interface of the operations on an objective, which has all observed entries, or all except the held-out entries."""

    def values(self, objective: Any) -> np.ndarray:
        """The values of the entries, or of a sample that is large enough to compute medians."""

    def minus(self, objective: Any, biases: Biases | None, loss: Loss) -> Any:
        """Subtract the biases from the values of the objective, and replace its loss."""

    def reweighted(self, objective: Any, x: LowRank, loss: Loss) -> Any:
        """The residuals (values minus x) with their inlier weights, as in :class:`ReweightedEntries`."""

    def split(self, objective: Any, share: float, rng: np.random.Generator) -> tuple[Any, HeldOut]:
        """Hold out a random share of the entries. Returns the objective of the other entries, and the held-out entries.

        If there is only one entry, it is in both.
        """

    def counts(self, objective: Any, axis: int) -> np.ndarray:
        """The number of entries of each row (axis 0) or column (axis 1)."""

    def select(self, objective: Any, axis: int, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The entries of the rows (axis 0) or columns (axis 1) with the increasing indices ``chosen``.

        Returns three arrays. For axis 0: the place of each entry's row in ``chosen``, its column and its value. For axis 1: the
        place of each entry's column in ``chosen``, its row and its value.
        """

    def inlier_range(self, objective: Any, model: Model) -> tuple[float, float]:
        """The range of the values with an inlier weight of at least 0.5 (:func:`value_range`)."""

    def count_below(self, objective: Any, model: Model, weight: float) -> int:
        """The number of entries whose inlier weight is below ``weight``."""

    def outliers(self, objective: Any, model: Model) -> Outliers:
        """The entries that the model treats as outliers."""


class InMemory:
    """Operations on a :class:`condgrad.Completion`, whose entries are in memory."""

    def values(self, objective: Completion) -> np.ndarray:
        return objective.values

    def minus(self, objective: Completion, biases: Biases | None, loss: Loss) -> Completion:
        if biases is None:
            return objective.replaced(loss=loss)
        sampled = objective.pattern.sample(*biases.factors())
        return objective.replaced(np.subtract(objective.values, sampled, out=sampled), loss)

    def reweighted(self, objective: Completion, x: LowRank, loss: Loss) -> ReweightedEntries:
        return ReweightedEntries(objective.pattern, objective.values - x.at(objective.pattern), loss)

    def split(self, objective: Completion, share: float, rng: np.random.Generator) -> tuple[Completion, HeldOut]:
        count, pattern = objective.n_terms, objective.pattern
        out = np.zeros(count, dtype=bool)
        out[rng.choice(count, max(int(share * count), 1), replace=False)] = True
        rows, cols, values = pattern.rows, pattern.cols, objective.values
        held_out = HeldOut(rows[out], cols[out], values[out])
        if count == 1:  # the only entry is in both
            return objective, held_out
        return Completion(rows[~out], cols[~out], values[~out], pattern.shape), held_out

    def counts(self, objective: Completion, axis: int) -> np.ndarray:
        pattern = objective.pattern
        return np.bincount(pattern.indices, minlength=pattern.shape[1]) if axis else np.diff(pattern.indptr)

    def select(self, objective: Completion, axis: int, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        places = objective.pattern.rows, objective.pattern.cols
        selected = selection(places[axis], chosen, objective.pattern.shape[axis])
        return (
            np.searchsorted(chosen, places[axis][selected]),
            places[1 - axis][selected],
            objective.values[selected],
        )

    def inlier_range(self, objective: Completion, model: Model) -> tuple[float, float]:
        return value_range(objective.values, self._weights(objective, model)[1] >= 0.5)

    def count_below(self, objective: Completion, model: Model, weight: float) -> int:
        return int(np.count_nonzero(self._weights(objective, model)[1] < weight))

    def _weights(self, objective: Completion, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """Residuals of the model at the entries, and their inlier weights."""
        residuals = objective.values - objective.pattern.sample(*model.factors())
        return residuals, loss_and_inlier_weights(model.loss, objective.pattern, residuals)[1]

    def outliers(self, objective: Completion, model: Model) -> Outliers:
        residuals, weights = self._weights(objective, model)
        worst = np.flatnonzero(weights < 0.5)
        worst = worst[np.argsort(-np.abs(residuals[worst]), kind="stable")]
        pattern = objective.pattern
        places = pattern.row_of(worst), pattern.cols[worst]
        return Outliers(*places, objective.values[worst], residuals[worst], weights[worst], len(worst))


def selection(places: np.ndarray, chosen: np.ndarray, size: int) -> np.ndarray:
    """For each of the ``places`` (numbers below ``size``), whether it is in ``chosen``."""
    is_chosen = np.zeros(size, dtype=bool)
    is_chosen[chosen] = True
    return is_chosen[places]
