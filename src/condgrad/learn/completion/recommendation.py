"""Finds the columns with the largest predictions for each row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from condgrad.points import Pattern

MAX_BLOCK_PREDICTIONS = 2**22
"""Maximum number of predictions that are computed at a time, which bounds the memory needed."""


def best_columns(
    rows: np.ndarray, predict: Callable[[np.ndarray], np.ndarray], observed: Pattern, k: int, exclude_observed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Find up to k columns with the largest predictions for each row.

    The candidates of a row are all columns; with ``exclude_observed``, all columns in which the row has no observed entry.
    ``predict`` returns a new array with the predictions at all columns of the given rows.

    Returns the columns and their predictions, largest first, as arrays of shape (len(rows), l). l is the smaller of k and the
    largest number of candidates of a row. If a row has fewer than l candidates, its last elements are -1 and NaN.
    """
    n = observed.shape[1]
    available = n - np.diff(observed.indptr)[rows] * exclude_observed
    k = min(k, int(available.max(initial=0)))
    best, values = np.full((len(rows), k), -1, dtype=np.int64), np.full((len(rows), k), np.nan)
    if k == 0:
        return best, values
    for at in range(0, len(rows), size := max(MAX_BLOCK_PREDICTIONS // n, 1)):
        part = slice(at, at + size)
        predictions = predict(rows[part])
        if exclude_observed:
            for a, row in enumerate(rows[part]):
                predictions[a, observed.indices[observed.indptr[row] : observed.indptr[row + 1]]] = -np.inf
        top = np.argpartition(-predictions, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(predictions, top, axis=1), axis=1, kind="stable")
        best[part] = np.take_along_axis(top, order, axis=1)
        values[part] = np.take_along_axis(predictions, best[part], axis=1)
    unavailable = np.arange(k) >= available[:, None]
    best[unavailable], values[unavailable] = -1, np.nan
    return best, values
