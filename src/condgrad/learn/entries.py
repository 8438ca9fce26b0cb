"""The observed entries of a matrix, whichever way they are given: a sparse matrix, an array with NaN, a table, three arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from condgrad.checks import NonFinite


@dataclass(frozen=True)
class Entries:
    """Values at (row, column); where rows and columns have names, ``row_ids`` and ``col_ids`` tell them, sorted."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    row_ids: np.ndarray | None = None
    col_ids: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not len(self.values):
            raise ValueError("Found no observed entry, at least one was expected: NaN stands for what is missing.")
        bad = ~np.isfinite(self.values)
        if bad.any():
            raise NonFinite(f"{bad.sum()} of {len(bad)} values are NaN or infinity: leave out what is not known.")


def read(X: Any, y: Any = None) -> Entries:
    """What ``fit`` takes; pairs (n x 2) go with their values y, everything else has its values in it."""
    if sp.issparse(X):
        return _from_sparse(X)
    if isinstance(X, tuple):
        if len(X) != 3:
            raise ValueError(f"A tuple of {len(X)} was given: (rows, columns, values) was expected.")
        return _from_lists(*(np.asarray(part) for part in X))
    if hasattr(X, "columns"):  # a DataFrame
        width = X.shape[1]
        if width == 3 and y is None:
            return _from_lists(*(X.iloc[:, j].to_numpy() for j in range(3)))
        if width == 2 and y is not None:
            return _from_lists(X.iloc[:, 0].to_numpy(), X.iloc[:, 1].to_numpy(), np.asarray(y))
    X = np.asarray(X)
    if X.ndim == 2 and X.shape[1] == 2 and y is not None:
        return _from_lists(X[:, 0], X[:, 1], np.asarray(y))
    return _from_dense(X)


def _from_sparse(X: Any) -> Entries:
    X = X.tocsr(copy=False)
    if not X.has_canonical_format:
        raise ValueError("The sparse matrix holds entries more than once: call its sum_duplicates() if a sum is meant.")
    rows = np.repeat(np.arange(X.shape[0], dtype=X.indices.dtype), np.diff(X.indptr))
    return Entries(rows, X.indices, _numbers(X.data), X.shape)


def _from_dense(X: np.ndarray) -> Entries:
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got an array of shape {X.shape} instead. Reshape your data.")
    if 0 in X.shape:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape={X.shape}): give entries."
        )
    X = _numbers(X)
    if np.isinf(X).any():
        raise NonFinite("The matrix holds infinity: NaN stands for what is missing, everything else must be finite.")
    rows, cols = np.nonzero(~np.isnan(X))
    return Entries(rows, cols, X[rows, cols], X.shape)


def _from_lists(rows: np.ndarray, cols: np.ndarray, values: np.ndarray) -> Entries:
    if not rows.shape == cols.shape == values.shape or rows.ndim != 1:
        raise ValueError(
            f"Rows, columns and values have shapes {rows.shape}, {cols.shape} and {values.shape}: give lists of the same length."
        )
    row_ids, rows = unique(rows, "row")
    col_ids, cols = unique(cols, "column")
    return Entries(rows, cols, _numbers(values), (len(row_ids), len(col_ids)), row_ids, col_ids)


def unique(ids: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """The sorted ids and the place of each among them; numbers that are whole are kept as such."""
    try:
        if ids.dtype.kind in "OUST":
            ids = np.asarray([str(i) for i in ids.tolist()])
        return np.unique(ids, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"The {what} ids can't be sorted ({error}): give numbers or strings.") from None


def places(ids: Any, known: np.ndarray | None, size: int) -> np.ndarray:
    """Where each id stands among the known ones; -1 for those that are new."""
    ids = np.asarray(ids)
    if known is None:
        if ids.dtype.kind == "f" and np.all(ids == np.floor(ids)):
            ids = ids.astype(np.int64)
        if ids.dtype.kind not in "iu":
            raise TypeError(f"Rows and columns are known by their numbers, but got {ids.dtype}: give whole numbers.")
        return np.where((ids >= 0) & (ids < size), ids, -1)
    if known.dtype.kind == "U":
        ids = np.asarray([str(i) for i in ids.tolist()]) if len(ids) else np.empty(0, "U1")
    elif ids.dtype.kind in "OUST":
        raise TypeError("The ids are strings, but the model was fitted with numbers: give these.")
    found = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[found] == ids, found, -1)


def _numbers(values: Any) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: give real numbers.")
    if values.dtype.kind not in "biuf":
        try:
            return values.astype(float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"The values must be numbers, but {error}.") from None
    return values.astype(float, copy=False)
