"""The sparsity pattern of the observed entries. All sparse matrices with the same observations share one pattern."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from condgrad import kernels

MAX_STRIPE_COLUMNS = 5000
"""Maximum number of columns in a stripe. A product with the transpose is computed stripe by stripe, so that the stripe's part of
the result fits in the processor's cache. In narrower stripes, a row would have too few entries to be prefetched."""
MAX_CACHED = 2
"""Maximum number of points whose values on the pattern are cached at the same time."""
MANY_ENTRIES = 2**22
"""A pattern with more entries than this caches the values of one point only, to save memory."""
PIECE_ENTRIES = 2**18
"""Maximum number of entries in a piece of more than one row (see ``Pattern.pieces``). Up to four float64 arrays of this length
exist at a time: 8 MB."""


class Pattern:
    """Positions of the entries of a sparse matrix in CSR order, with stripes of columns for products with the transpose.

    Indices are int32 if they fit, else int64. Products with the matrix and with its transpose read the same arrays: there is no
    transposed copy.

    Parameters
    ----------
    rows, cols : array_like of int, shape (size,)
        Indices of the entries in row-major order, without repeats.
    shape : tuple of two ints
        Shape of the matrix.
    dtype : {float64, float32}, default float64
        Type of arrays that have one number for each entry. With float32, the values of points on the pattern are not cached;
        :meth:`pieces` computes them in float64, a part at a time.
    """

    def __init__(self, rows: Any, cols: Any, shape: tuple[int, int], dtype: Any = np.float64):
        m, n = shape
        self.shape, self.size, self.dtype = (m, n), len(rows), np.dtype(dtype)
        index = np.int32 if max(self.size, m, n) < 2**31 else np.int64
        self.indices: np.ndarray = np.asarray(cols, index)
        self.indptr = np.searchsorted(rows, np.arange(m + 1)).astype(index)
        stripes = max(min(4, n), -(-n // MAX_STRIPE_COLUMNS))
        self.width = -(-n // stripes)
        self.cuts = np.empty((-(-n // self.width) + 1, m), index)
        self.cuts[0], self.cuts[-1] = self.indptr[:-1], self.indptr[1:]
        for s in range(1, len(self.cuts) - 1):
            before = np.zeros(self.size + 1, index)
            np.cumsum(self.indices < s * self.width, dtype=index, out=before[1:])
            self.cuts[s] = self.indptr[:-1] + before[self.indptr[1:]] - before[self.indptr[:-1]]

    @property
    def max_cached(self) -> int:
        """Maximum number of points whose values on the pattern are cached at the same time."""
        return MAX_CACHED if self.size <= MANY_ENTRIES else 1

    @property
    def rows(self) -> np.ndarray:
        """The row index of each entry, computed at every access."""
        return np.repeat(np.arange(self.shape[0], dtype=self.indices.dtype), np.diff(self.indptr))

    @property
    def cols(self) -> np.ndarray:
        """The column index of each entry."""
        return self.indices

    def row_of(self, entries: np.ndarray) -> np.ndarray:
        """Return the row index of each entry of the pattern with an index in ``entries``."""
        return np.searchsorted(self.indptr, entries, side="right") - 1

    def sample(self, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return (U V')_ij at all entries, in the type of the pattern."""
        self._check_rows(U, 0)
        self._check_rows(V, 1)
        return kernels.sample(self.indptr, self.indices, U, V, self.dtype)

    def pieces(self, U: np.ndarray, V: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (U V')_ij in float64 for consecutive pieces of the entries. A piece is the slice of its indices, and its values.

        Runs in float32 use these pieces to compute losses and products in float64 without storing the values at all entries.
        """
        self._check_rows(U, 0)
        self._check_rows(V, 1)
        first, m = 0, self.shape[0]
        while first < m:
            start = int(self.indptr[first])
            last = int(np.searchsorted(self.indptr, start + PIECE_ENTRIES, side="right")) - 1
            last = min(max(last, first + 1), m)
            entries = slice(start, int(self.indptr[last]))
            indptr = self.indptr[first : last + 1] - self.indptr[first]
            yield entries, kernels.sample(indptr, self.indices[entries], U[first:last], V, np.float64)
            first = last

    def sample_at(self, entries: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return (U V')_ij at the entries of the pattern with the indices ``entries``, in this order."""
        self._check_rows(U, 0)
        self._check_rows(V, 1)
        return kernels.sample_at(self.row_of(entries), self.indices[entries], U, V)

    def times(self, values: np.ndarray, W: np.ndarray) -> np.ndarray:
        """Return S W, where S is the sparse matrix with these values on the pattern."""
        self._check_rows(W, 1)
        return kernels.times(self.indptr, self.indices, values, W)

    def transposed_times(self, values: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """Return S' Q, where S is the sparse matrix with these values on the pattern."""
        self._check_rows(Q, 0)
        return kernels.transposed_times(self.cuts, self.indices, values, Q, self.shape[1], self.width)

    def _check_rows(self, block: np.ndarray, axis: int) -> None:
        """Raise ValueError if the block has the wrong number of rows: the compiled kernels do not check bounds."""
        if len(block) != self.shape[axis]:
            raise ValueError(
                f"Got a block of {len(block)} rows for a matrix of shape {self.shape}: give it {self.shape[axis]} rows."
            )

    def to_dense(self, values: np.ndarray) -> np.ndarray:
        """Return the matrix with these values on the pattern, and 0 elsewhere, as an array."""
        dense = np.zeros(self.shape, values.dtype)
        dense[self.rows, self.cols] = values
        return dense
