"""Functions for weighted rows: validation, hold-out, medians. A row of weight 2 is equivalent to two rows of weight 1.

A row of weight 0 is equivalent to no row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight

STRATUM_SIZE = 5
"""Number of rows of a stratum. If one fifth of all rows are held out, one row of each stratum is held out."""


def row_weights(sample_weight: Any, X: Any) -> np.ndarray:
    """Validate the weights of the rows, which must not be negative or all 0. If ``sample_weight`` is None, all weights are 1."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if weights.min() < 0 or not weights.any():
        raise ValueError(
            f"The smallest weight of a row is {weights.min():g} and the sum of all is {weights.sum():g}, but weights of 0 or "
            "more, not all 0, were expected: leave out rows that should be ignored."
        )
    return weights


def holdout_keys(X: Any, Y: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Draw a key for each row. The rows with the smallest keys are to be held out.

    Keys are random. They are equal for equal rows, and independent of the order of the rows and of the units of X and Y. The
    distinct rows are sorted by Y, and ties are broken by the first feature, then by the second feature, and so on. Every
    ``STRATUM_SIZE`` rows in this order are a stratum. One row of each stratum has a key in the smallest fifth of all keys, one in
    the next fifth, and so on. Therefore the held-out rows have about the same distribution of Y as the other rows.
    """
    order = RowOrder(len(Y))
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
    stratum = np.arange(len(drawn)) // STRATUM_SIZE
    within = np.empty(len(drawn), dtype=np.int64)
    within[np.lexsort((drawn, stratum))] = np.arange(len(drawn)) % STRATUM_SIZE
    number = np.empty(len(drawn), dtype=np.int64)
    number[np.lexsort((drawn, within))] = np.arange(len(drawn))
    return number[distinct]


class RowOrder:
    """Ranks of rows that are compared column by column. ``tied`` has the rows that are equal to another row so far."""

    def __init__(self, size: int):
        self.rank, self.tied = np.zeros(size, dtype=np.int64), np.arange(size)

    def refine(self, column: np.ndarray) -> None:
        """Break ties by another column. ``column`` has the values of the tied rows only."""
        if not self.tied.size:
            return
        by = np.lexsort((column, self.rank[self.tied]))
        tied, column = self.tied[by], column[by]
        old = self.rank[tied]
        same_rank = np.diff(old, prepend=old[0] - 1) == 0
        first = np.maximum.accumulate(np.where(same_rank, 0, np.arange(len(old))))
        new = same_rank & (np.diff(column, prepend=column[0]) != 0)
        group = np.maximum.accumulate(np.where(new | ~same_rank, np.arange(len(old)), 0))
        self.rank[tied] = old + group - first  # a rank is the number of smaller rows, so that other ranks stay valid
        counts = np.bincount(self.rank[tied] - self.rank[tied].min())
        self.tied = np.sort(tied[counts[self.rank[tied] - self.rank[tied].min()] > 1])


def merge_equal_rows(weights: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray | slice, np.ndarray | None]:
    """Merge equal rows (rows with equal keys) to one row with the sum of their weights, and drop rows of weight 0.

    Returns the indices of the remaining rows, and their weights. If all weights are equal, None is returned in place of the
    weights. If, in addition, all rows remain, slice(None) is returned in place of the indices.
    """
    nonzero = np.flatnonzero(weights)
    _, first, group = np.unique(keys[nonzero], return_index=True, return_inverse=True)
    if len(first) == len(nonzero) and np.ptp(weights[nonzero]) == 0:
        return (slice(None) if len(nonzero) == len(weights) else nonzero), None
    total = np.bincount(group, weights[nonzero])
    return nonzero[first], None if np.ptp(total) == 0 else total


def held_out_rows(keys: np.ndarray, weights: np.ndarray | None, share: float) -> np.ndarray:
    """Mask of the held-out rows: the rows with the smallest keys, with about this share of the total weight.

    If there are at least two rows, at least one row is held out, and at least one row is not.
    """
    order = np.argsort(keys, kind="stable")
    weight = np.cumsum(np.ones(len(keys)) if weights is None else weights[order])
    count = 1 + int(np.argmin(np.abs(weight - share * weight[-1])))
    held = np.zeros(len(keys), dtype=bool)
    held[order[: max(min(count, len(keys) - 1), 1)]] = True
    return held


def fold_numbers(keys: np.ndarray, weights: np.ndarray | None, count: int) -> np.ndarray:
    """The fold of each row, from 0 to ``count`` - 1, in the order of the keys. All folds have about the same total weight."""
    order = np.argsort(keys, kind="stable")
    weight = np.ones(len(keys)) if weights is None else weights[order]
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    number = np.empty(len(keys), dtype=np.int64)
    number[order] = np.minimum(count * middle, count - 1).astype(np.int64)
    return number


def weighted_median(values: np.ndarray, weights: np.ndarray | None) -> Any:
    """Weighted median of each column. A row of weight 2 is equivalent to two rows."""
    if weights is None:
        return np.median(values, axis=0)
    order = np.argsort(values, axis=0, kind="stable")
    ordered, below = np.take_along_axis(values, order, axis=0), np.cumsum(weights[order], axis=0)
    half = below[-1] / 2
    lower = (below < half * (1 - 1e-12)).sum(axis=0)
    upper = (below <= half * (1 + 1e-12)).sum(axis=0)
    columns = np.arange(values.shape[1])
    return (ordered[lower, columns] + ordered[np.minimum(upper, len(values) - 1), columns]) / 2


def class_weights(class_weight: Any, classes: np.ndarray, number: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weight of each class.

    ``class_weight`` is None (all weights are 1), a dict of class and weight, or "balanced": weights inversely proportional to the
    total weight of the rows of the class. ``number`` has, for each row, the index of its class in ``classes``.
    """
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
            f"class_weight has {sorted(unknown, key=str)[0]!r}, which is not a class of y, and lacks the class "
            f"{sorted(missing, key=str)[0]!r}: give the classes of y."
        )
    return np.array([float(class_weight.get(one, 1.0)) for one in classes.tolist()])
