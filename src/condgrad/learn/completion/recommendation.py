"""The columns that a model predicts the most for, row by row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from condgrad.points import Pattern

BLOCK = 2**22
"""Predictions that are made at a time."""


def best_columns(
    rows: np.ndarray, predicted: Callable[[np.ndarray], np.ndarray], seen: Pattern, k: int, exclude_seen: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(columns, predictions), best first, as wide as k or as the row that has most left; -1 and NaN where one has no more.

    ``predicted`` gives all columns of some rows, in an array of its own.
    """
    n = seen.shape[1]
    left = n - np.diff(seen.indptr)[rows] * exclude_seen
    k = min(k, int(left.max(initial=0)))
    best, values = np.full((len(rows), k), -1, dtype=np.int64), np.full((len(rows), k), np.nan)
    if k == 0:
        return best, values
    for at in range(0, len(rows), size := max(BLOCK // n, 1)):
        part = slice(at, at + size)
        found = predicted(rows[part])
        if exclude_seen:
            for a, row in enumerate(rows[part]):
                found[a, seen.indices[seen.indptr[row] : seen.indptr[row + 1]]] = -np.inf
        top = np.argpartition(-found, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(found, top, axis=1), axis=1, kind="stable")
        best[part] = np.take_along_axis(top, order, axis=1)
        values[part] = np.take_along_axis(found, best[part], axis=1)
    gone = np.arange(k) >= left[:, None]
    best[gone], values[gone] = -1, np.nan
    return best, values
