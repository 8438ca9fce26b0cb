"""Where a sparse matrix has entries: shared by every matrix that lives on the same observations."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from condgrad import kernels

STRIPE = 5000
"""Columns that one stripe of the transposed product has at most: its part of the result stays in the cache, and its entries
of a row are a run long enough to be fetched ahead."""
KEPT, LARGE = 2, 2**22
"""So many points have their sampled values carried along at a time, but one alone where there are more entries than LARGE; older
ones are sampled anew where they are needed."""


class _Carrying(threading.local):
    """Weak references to the factors whose values this thread keeps, the most recently used at the end.

    One list for each thread: a run's last bits depend on which values were kept, and must not depend on runs in other threads.
    """

    factors: tuple[weakref.ref[Any], ...] = ()


class Pattern:
    """The entries, row by row and by column within a row (CSR), with the stripes of columns for transposed products.

    Indices take int32 where they fit. Nothing is stored twice: products with the transpose read the same entries.
    """

    def __init__(self, rows: Any, cols: Any, shape: tuple[int, int]):
        """From the entries in row-major order, each once."""
        m, n = shape
        self.shape, self.size = (m, n), len(rows)
        index = np.int32 if max(self.size, m, n) < 2**31 else np.int64
        self.indices: np.ndarray = np.asarray(cols, index)
        self.indptr = np.searchsorted(rows, np.arange(m + 1)).astype(index)
        stripes = max(min(4, n), -(-n // STRIPE))
        self.width = -(-n // stripes)
        self.cuts = np.empty((-(-n // self.width) + 1, m), index)
        self.cuts[0], self.cuts[-1] = self.indptr[:-1], self.indptr[1:]
        for s in range(1, len(self.cuts) - 1):
            before = np.concatenate([[0], np.cumsum(self.indices < s * self.width, dtype=index)])
            self.cuts[s] = self.indptr[:-1] + before[self.indptr[1:]] - before[self.indptr[:-1]]
        self._carrying = _Carrying()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: all but what is kept for points of this process."""
        return {name: value for name, value in vars(self).items() if name != "_carrying"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._carrying = _Carrying()

    @property
    def rows(self) -> np.ndarray:
        """The row of each entry, made anew."""
        return np.repeat(np.arange(self.shape[0], dtype=self.indices.dtype), np.diff(self.indptr))

    @property
    def cols(self) -> np.ndarray:
        return self.indices

    def row_of(self, entries: np.ndarray) -> np.ndarray:
        """The rows of some entries, given by their numbers."""
        return np.searchsorted(self.indptr, entries, side="right") - 1

    def sample(self, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """(U V')_ij at all entries."""
        self._fits(U, 0)
        self._fits(V, 1)
        return kernels.sample(self.indptr, self.indices, U, V)

    def sample_at(self, entries: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """(U V')_ij at some entries, in the order given."""
        self._fits(U, 0)
        self._fits(V, 1)
        return kernels.sample_at(self.row_of(entries), self.indices[entries], U, V)

    def times(self, values: np.ndarray, W: np.ndarray) -> np.ndarray:
        """S W for the matrix S with these values."""
        self._fits(W, 1)
        return kernels.times(self.indptr, self.indices, values, W)

    def transposed_times(self, values: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """S' Q."""
        self._fits(Q, 0)
        return kernels.transposed_times(self.cuts, self.indices, values, Q, self.shape[1], self.width)

    def _fits(self, block: np.ndarray, axis: int) -> None:
        """Refuses a block that the compiled loops would read beyond its end."""
        if len(block) != self.shape[axis]:
            raise ValueError(
                f"A block of {len(block)} rows met a matrix of shape {self.shape}: give it {self.shape[axis]} rows."
            )

    def to_dense(self, values: np.ndarray) -> np.ndarray:
        dense = np.zeros(self.shape, values.dtype)
        dense[self.rows, self.cols] = values
        return dense

    def carry(self, factors: Any) -> None:
        """Make room for the sampled values of these factors: of others, those not asked for the longest let theirs go."""
        kept = [(ref, other) for ref in self._carrying.factors if (other := ref()) not in (None, factors)]
        gone = max(len(kept) + 1 - (KEPT if self.size <= LARGE else 1), 0)
        for _, other in kept[:gone]:
            other.seen = None
        self._carrying.factors = (*(ref for ref, _ in kept[gone:]), weakref.ref(factors))

    def remembered(self) -> list[Any]:
        """Weak references to the factors whose values this thread keeps, the most recently used at the end."""
        return list(self._carrying.factors)

    def remember(self, carrying: list[Any]) -> None:
        """Set what :meth:`remembered` returned; TypeError for anything else, as a checkpoint may be forged."""
        alive = tuple(ref for ref in carrying if ref is not None and ref() is not None)
        if not all(hasattr(ref(), "seen") for ref in alive):
            raise TypeError("weak references to factors were expected")
        self._carrying.factors = alive
