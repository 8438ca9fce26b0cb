"""The class `Pattern`: the positions of the observed entries of a matrix, shared by all sparse matrices with these positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from condgrad import kernels

MAX_STRIPE_COLUMNS = 5000
"""Maximum number of columns in a stripe. A product with the transpose is computed stripe by stripe, so that the result of one
stripe fits in the processor's cache. Narrower stripes are slower: a row then has too few entries in a stripe to be prefetched."""
MAX_CACHED = 2
"""Maximum number of points whose values on the pattern are cached at the same time."""
MANY_ENTRIES = 2**22
"""On a pattern with more than MANY_ENTRIES entries, the values of only one point are cached, to save memory."""
PIECE_ENTRIES = 2**18
"""Maximum number of entries in a piece that has more than one row (see ``Pattern.pieces``). Up to four float64 arrays of this
length exist at the same time, together 8 MB."""


class Pattern:
    """Positions of the entries of a sparse matrix in CSR order, with stripes of columns for products with the transpose.

    Indices are int32 if possible, else int64. Products with the matrix and with its transpose read the same arrays, so that no
    transposed copy is needed.

    Parameters
    ----------
    rows, cols : array_like of int, shape (size,)
        Indices of the entries in row-major order, without repeats.
    shape : tuple of two ints
        Shape of the matrix.
    dtype : {float64, float32}, default float64
        Type of arrays that have one number for each entry. With float32, the values that a low-rank matrix has on the pattern are
        not cached. Instead, :meth:`pieces` computes them in float64, one piece after the other.
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
        """Return the row indices of the entries that have the indices ``entries``."""
        return np.searchsorted(self.indptr, entries, side="right") - 1

    def sample(self, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return (U V')_ij at all entries, as an array of the pattern's dtype."""
        self._check_rows(U, 0)
        self._check_rows(V, 1)
        return kernels.sample(self.indptr, self.indices, U, V, self.dtype)

    def pieces(self, U: np.ndarray, V: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Compute (U V')_ij in float64, piece by piece. Yields the slice of the entries in a piece, and the values in the piece.

        In runs in float32, losses and products are computed from these pieces in float64, without an array for all entries.
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
        """Return (U V')_ij at the entries that have the indices ``entries``, in this order."""
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
        """Raise ValueError if the block has the wrong number of rows, because the compiled kernels do not check bounds."""
        if len(block) != self.shape[axis]:
            raise ValueError(
                f"Got a block of {len(block)} rows for a matrix of shape {self.shape}: give it {self.shape[axis]} rows."
            )

    def to_dense(self, values: np.ndarray) -> np.ndarray:
        """Return the matrix with these values on the pattern, and 0 elsewhere, as an array."""
        dense = np.zeros(self.shape, values.dtype)
        dense[self.rows, self.cols] = values
        return dense
