"""Rescue: a separate refit of rows and columns in which the loss treats most of the entries as outliers.

Outliers are assumed to be scattered over the matrix. If more than half of the entries of a row are treated as outliers, these
entries are therefore assumed to be correct: the values of this row vary more than the values of other rows, and the loss is too
narrow for the row. The row is then refitted by a regression on the column factors, which the other rows determine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from condgrad.learn.completion.biases import COLUMN_RIDGE, ROW_RIDGE
from condgrad.learn.completion.folding import fold_in_rows, prior_penalties
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.observed import InMemory, Observed
from condgrad.points import LowRank

RIDGES: dict[str | None, tuple[float | None, float | None]] = {
    "both": (ROW_RIDGE, COLUMN_RIDGE),
    "columns": (None, 0.0),
    None: (None, None),
}
"""Ridge penalties of row and column biases, for each kind of biases of the model. None: the model has no such biases."""


def rescue(objective: Any, model: Model, which: str | None, entries: Observed | None = None) -> Model:
    """Refit every row, then every column, for which the loss treats more than half of the entries as outliers.

    ``which`` names the biases of the model: "both", "columns" or None. ``entries`` has the operations on the objective, by
    default the operations on a Completion.
    """
    entries = InMemory() if entries is None else entries
    for axis, ridge in enumerate(RIDGES[which]):
        outlying = outlying_rows(entries, objective, model, axis, which is not None, _parameters_per_row(model))
        if len(outlying):
            model = _refit(entries, objective, model, axis, outlying, ridge)
    return model


def outlying_rows(
    entries: Observed, objective: Any, model: Model, axis: int, with_biases: bool, parameters: int
) -> np.ndarray:
    """Rows (axis 0) or columns (axis 1) that have mostly outliers, and at least twice as many entries as ``parameters``."""
    current = entries.minus(objective, model.biases if with_biases else None, model.loss)
    reweighted, counts = entries.reweighted(current, model.x, model.loss), entries.counts(objective, axis)
    total = reweighted.column_sums(np.zeros(objective.pattern.shape[0]))[0] if axis else reweighted.row_weight
    return np.flatnonzero((total < counts / 2) & (counts >= 2 * parameters))


def _refit(
    entries: Observed, objective: Any, model: Model, axis: int, outlying: np.ndarray, ridge: float | None
) -> Model:
    """Refit the rows (or columns) ``outlying`` with the rest of the model fixed. A refit is kept if it halves the median error.

    The penalty corresponds to a normal prior for the factors, whose variance is the present mean square of all factors. With this
    penalty, a row may differ from other rows, but can't fit a few of its entries by extreme factors.
    """
    pattern, across_axis = objective.pattern, 1 - axis
    P, values, Q = model.x.svd()
    sides, biases = (P, Q), (model.biases.rows, model.biases.cols)
    own, other, values_there = entries.select(objective, axis, outlying)
    targets = values_there - model.biases.mean - biases[across_axis][other]
    penalty = prior_penalties(model.loss, model.sigma, pattern.shape[axis], values)
    those = own, other, targets
    bias, factors = fold_in_rows(sides[across_axis], values, those, len(outlying), model.loss, penalty, ridge)

    def median_errors(bias: np.ndarray, factors: np.ndarray) -> np.ndarray:
        fitted = bias[own] + np.einsum("ij,ij->i", factors[own], sides[across_axis][other])
        return _median_errors(own, targets - fitted, _parameters_per_row(model))

    better = median_errors(bias, factors) <= 0.5 * median_errors(
        biases[axis][outlying], (sides[axis] * values)[outlying]
    )
    if not better.any():
        return model
    return with_rows(model, axis, outlying[better], bias[better], factors[better])


def with_rows(model: Model, axis: int, chosen: np.ndarray, bias: np.ndarray, factors: np.ndarray) -> Model:
    """Replace the biases and factors of the rows (axis 0) or columns (axis 1) ``chosen``.

    The factors are those of P * values (or Q * values), where P values Q' is the singular value decomposition of x.
    """
    P, values, Q = model.x.svd()
    side, biases = (P, Q)[axis] * values, (model.biases.rows, model.biases.cols)[axis].copy()
    side[chosen], biases[chosen] = factors, bias
    if axis == 0:
        return replace(model, x=LowRank(side, Q), biases=replace(model.biases, rows=biases), state=None)
    return replace(model, x=LowRank(P, side), biases=replace(model.biases, cols=biases), state=None)


def _median_errors(own: np.ndarray, errors: np.ndarray, parameters: int) -> np.ndarray:
    """Median absolute error of each row without its ``parameters`` smallest errors, because that many entries can be fitted
    exactly."""
    order = np.lexsort((np.abs(errors), own))
    ends = np.searchsorted(own[order], np.arange(own.max() + 2))
    return np.abs(errors[order])[(ends[:-1] + parameters + ends[1:] - 1) // 2]


def _parameters_per_row(model: Model) -> int:
    """Number of parameters of one row: its factors and its bias."""
    return model.x.rank + 1
