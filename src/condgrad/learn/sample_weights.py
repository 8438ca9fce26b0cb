"""Weights of rows: a row of weight 2 is a row that stands there twice, one of weight 0 is none."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight

STRATUM = 5
"""Rows of which one is held out, where a fifth of them is."""


def row_weights(sample_weight: Any, X: Any) -> np.ndarray:
    """A weight for each row, none negative and not all 0."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if weights.min() < 0 or not weights.any():
        raise ValueError(
            f"The weights of rows have the least value {weights.min():g} and the sum {weights.sum():g}, but weights of 0 or "
            "more, not all 0, were expected: leave out rows that do not count."
        )
    return weights


def shuffled(X: Any, Y: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """A number for each row, by which rows are held out: random, but the same for equal rows, in any order and any units.

    Rows are ordered by Y, ties by the features one after the other. Of each ``STRATUM`` distinct rows in that order, one has a
    number among the smallest, one among the next, and so on: what is held out has the same distribution of Y as the rest.
    """
    order = Order(len(Y))
    for column in Y.T:
        order.refine(column[order.tied])
    sparse: bool = issparse(X)
    if order.tied.size and sparse:
        features: Any = X.tocsc()
        for j in np.unique(X[order.tied].indices):
            order.refine(features[:, [j]].toarray()[order.tied, 0])
    elif order.tied.size:
        for j in range(X.shape[1]):
            order.refine(X[order.tied, j])
    _, distinct = np.unique(order.rank, return_inverse=True)
    drawn = rng.permutation(distinct.max() + 1)
    stratum = np.arange(len(drawn)) // STRATUM
    within = np.empty(len(drawn), dtype=np.int64)
    within[np.lexsort((drawn, stratum))] = np.arange(len(drawn)) % STRATUM
    number = np.empty(len(drawn), dtype=np.int64)
    number[np.lexsort((drawn, within))] = np.arange(len(drawn))
    return number[distinct]


class Order:
    """Ranks of rows, equal for rows that no column so far tells apart; ``tied`` are those that share their rank."""

    def __init__(self, size: int):
        self.rank, self.tied = np.zeros(size, dtype=np.int64), np.arange(size)

    def refine(self, column: np.ndarray) -> None:
        """Break ties by one more column, given for the tied rows."""
        if not self.tied.size:
            return
        by = np.lexsort((column, self.rank[self.tied]))
        tied, column = self.tied[by], column[by]
        old = self.rank[tied]
        same_rank = np.diff(old, prepend=old[0] - 1) == 0
        first = np.maximum.accumulate(np.where(same_rank, 0, np.arange(len(old))))
        new = same_rank & (np.diff(column, prepend=column[0]) != 0)
        apart = np.maximum.accumulate(np.where(new | ~same_rank, np.arange(len(old)), 0))
        self.rank[tied] = old + apart - first  # a rank is the number of rows before: those of others stay
        counts = np.bincount(self.rank[tied] - self.rank[tied].min())
        self.tied = np.sort(tied[counts[self.rank[tied] - self.rank[tied].min()] > 1])


def gathered(weights: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray | slice, np.ndarray | None]:
    """(rows to take, their weights): each of equal rows once with the sum of their weights, and none of weight 0.

    Weights that are all equal are None. Rows that are neither repeated nor weighted stay as they are.
    """
    there = np.flatnonzero(weights)
    _, first, group = np.unique(keys[there], return_index=True, return_inverse=True)
    if len(first) == len(there) and np.ptp(weights[there]) == 0:
        return (slice(None) if len(there) == len(weights) else there), None
    total = np.bincount(group, weights[there])
    return there[first], None if np.ptp(total) == 0 else total


def held_out(keys: np.ndarray, weights: np.ndarray | None, share: float) -> np.ndarray:
    """Which rows are held out: about this share of the weight, at least one row, and not all."""
    order = np.argsort(keys, kind="stable")
    weight = np.cumsum(np.ones(len(keys)) if weights is None else weights[order])
    count = 1 + int(np.argmin(np.abs(weight - share * weight[-1])))
    held = np.zeros(len(keys), dtype=bool)
    held[order[: max(min(count, len(keys) - 1), 1)]] = True
    return held


def median(values: np.ndarray, weights: np.ndarray | None) -> Any:
    """The median of each column; with weights that of rows that stand there as often as their weights say."""
    if weights is None:
        return np.median(values, axis=0)
    order = np.argsort(values, axis=0, kind="stable")
    ordered, below = np.take_along_axis(values, order, axis=0), np.cumsum(weights[order], axis=0)
    half = below[-1] / 2
    lower = (below < half * (1 - 1e-12)).sum(axis=0)
    upper = (below <= half * (1 + 1e-12)).sum(axis=0)
    columns = np.arange(values.shape[1])
    return (ordered[lower, columns] + ordered[np.minimum(upper, len(values) - 1), columns]) / 2


def of_classes(class_weight: Any, classes: np.ndarray, number: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weight of each class, by None, a dict, or "balanced": in inverse proportion to the weight of its rows."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        total = np.bincount(number, weights, minlength=len(classes))
        return weights.sum() / (len(classes) * total)
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight is {class_weight!r}: give None, 'balanced' or a dict of class and weight.")
    known = set(classes.tolist())
    unknown, missing = set(class_weight) - known, known - set(class_weight)
    if unknown and missing:
        raise ValueError(
            f"class_weight has {sorted(unknown, key=str)[0]!r}, which is no class, and lacks the class "
            f"{sorted(missing, key=str)[0]!r}: give the classes of y."
        )
    return np.array([float(class_weight.get(one, 1.0)) for one in classes.tolist()])
