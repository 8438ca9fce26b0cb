"""Rows and columns that are given up as a whole, fitted by themselves.

Wrong entries are scattered. A row of which the loss disbelieves more than half is not full of outliers: it varies more than the
others, and a loss as narrow as these ask for no longer sees it. What the others have taught, their columns, still fits it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from condgrad import kernels
from condgrad.learn.completion.biases import COLUMNS, ROWS, beliefs
from condgrad.learn.completion.folding import folded
from condgrad.learn.completion.model import Model
from condgrad.objectives import Completion
from condgrad.points import LowRank

RIDGES: dict[str | None, tuple[float | None, float | None]] = {
    "both": (ROWS, COLUMNS),
    "columns": (None, 0.0),
    None: (None, None),
}
"""How biases of rows and of columns are drawn to 0, where there are any."""
FAINTEST = 1e-100
"""A singular value counts as this at least, where it divides."""


def rescued(objective: Completion, model: Model, which: str | None) -> Model:
    """Refit every row, then every column, for which the loss treats more than half of the entries as outliers.

    ``which`` biases there are: "both", "columns" or none.
    """
    for axis, ridge in enumerate(RIDGES[which]):
        lost = _lost(objective, model, axis)
        if len(lost):
            model = _fitted_alone(objective, model, axis, lost, ridge)
    return model


def _lost(objective: Completion, model: Model, axis: int) -> np.ndarray:
    """The rows (or columns) of which most entries are outliers, if they have enough entries."""
    pattern = objective.pattern
    left = objective.values - pattern.sample(*model.factors())
    _, weights, trust, _ = beliefs(model.loss, pattern, left)
    counts = np.diff(pattern.indptr)
    if axis == 1:
        m, n = pattern.shape
        trust, _ = kernels.column_weighted_sums(
            pattern.cuts, pattern.indices, weights, left, np.zeros(m), n, pattern.width
        )
        counts = np.bincount(pattern.indices, minlength=n)
    return np.flatnonzero((trust < counts / 2) & (counts >= 2 * _numbers(model)))


def _fitted_alone(objective: Completion, model: Model, axis: int, lost: np.ndarray, ridge: float | None) -> Model:
    """The model with these rows folded in anew, where the middle of a row's errors becomes half as large or less.

    The price is that of normal factors, as large as they are now on average: a row need not be like the others, but it must not
    follow a few entries at any price.
    """
    pattern, across_axis = objective.pattern, 1 - axis
    P, values, Q = model.x.svd()
    sides, biases = (P, Q), (model.biases.rows, model.biases.cols)
    places = (pattern.rows, pattern.cols)
    of_lost = np.zeros(pattern.shape[axis], dtype=bool)
    of_lost[lost] = True
    theirs = of_lost[places[axis]]
    own, other = np.searchsorted(lost, places[axis][theirs]), places[across_axis][theirs]
    left = objective.values[theirs] - model.biases.mean - biases[across_axis][other]
    price = model.loss.smoothness * model.sigma**2 * pattern.shape[axis] / np.maximum(values, FAINTEST)
    entries = own, other, left
    bias, factors = folded(sides[across_axis], values, entries, len(lost), model.loss, price, ridge)

    def middle(bias: np.ndarray, factors: np.ndarray) -> np.ndarray:
        fitted = bias[own] + np.einsum("ij,ij->i", factors[own], sides[across_axis][other])
        return _middle(own, left - fitted, _numbers(model))

    good = middle(bias, factors) <= 0.5 * middle(biases[axis][lost], (sides[axis] * values)[lost])
    if not good.any():
        return model
    new_side, new_bias = sides[axis] * values, biases[axis].copy()
    new_side[lost[good]], new_bias[lost[good]] = factors[good], bias[good]
    if axis == 0:
        return replace(model, x=LowRank(new_side, Q), biases=replace(model.biases, rows=new_bias), state=None)
    return replace(model, x=LowRank(P, new_side), biases=replace(model.biases, cols=new_bias), state=None)


def _middle(own: np.ndarray, errors: np.ndarray, free: int) -> np.ndarray:
    """Of each row the middle of its errors by size, of which the ``free`` smallest do not count: so many are met in any case."""
    order = np.lexsort((np.abs(errors), own))
    ends = np.searchsorted(own[order], np.arange(own.max() + 2))
    return np.abs(errors[order])[(ends[:-1] + free + ends[1:] - 1) // 2]


def _numbers(model: Model) -> int:
    """That a row has of its own."""
    return model.x.rank + 1
