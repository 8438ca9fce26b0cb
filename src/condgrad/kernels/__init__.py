"""The compiled loops, all of them: sampled products, sparse times block, pointwise losses.

They are numba's, compiled at first use and kept on disk, parallel over rows (or stripes of columns), for float32 and
float64 and for int32 and int64 indices. What belongs to one row is summed by one thread in the order of the entries, so the
bits do not depend on the number of threads. Blocks (U, V, W) are C-contiguous: one row, one run of memory.

Any thread may call them, and a process that was forked: see :mod:`condgrad.kernels.layer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from condgrad.kernels import layer
from condgrad.runtime.interruption import defer_signals

LOSSES = ("squared", "welsch", "huber", "cauchy", "geman-mcclure", "logistic", "sigmoid")
"""The losses that :func:`loss` knows, by their place in the kernel."""
SMALL = 300_000
"""Multiplications below which a second thread does not pay."""
CHUNK = 8192
"""Sums over all entries are taken in chunks of so many, then over the chunks: the same for any number of threads."""


def sample(indptr: np.ndarray, indices: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(U V')_ij at the entries of the pattern."""
    out = np.empty(len(indices), U.dtype)
    _run("sample", U.shape[1] * len(out), indptr, indices, U, V, out)
    return out


def sample_at(rows: np.ndarray, cols: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(U V')_ij at the entries (rows, cols), in any order."""
    out = np.empty(len(rows), U.dtype)
    _run("sample_at", U.shape[1] * len(out), rows, cols, U, V, out)
    return out


def times(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, W: np.ndarray) -> np.ndarray:
    """S W, for the sparse S with these values."""
    out = np.empty((len(indptr) - 1, W.shape[1]), W.dtype)
    _run("times", W.shape[1] * len(values), indptr, indices, values, W, out)
    return out


def transposed_times(
    cuts: np.ndarray, indices: np.ndarray, values: np.ndarray, Q: np.ndarray, size: int, width: int
) -> np.ndarray:
    """S' Q without a transposed copy of S: stripe s of ``width`` columns has the entries cuts[s, i]..cuts[s + 1, i] of row i."""
    out = np.empty((size, Q.shape[1]), Q.dtype)
    _run("transposed_times", Q.shape[1] * len(values), cuts, indices, values, Q, width, out)
    return out


def believed(
    indptr: np.ndarray, left: np.ndarray, slopes: np.ndarray, smoothness: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """w = phi'(t)/(t smoothness) within 0 and 1, for residuals t with these slopes; and of each row sum w and sum w t.

    The weights take the place of the slopes.
    """
    sums, pulls = np.empty((2, len(indptr) - 1))
    _run("believe", 2 * len(left), indptr, left, smoothness, slopes, sums, pulls)
    return slopes, sums, pulls


def row_pulls(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, left: np.ndarray, cols: np.ndarray
) -> np.ndarray:
    """Of each row sum w (t - cols_j)."""
    pulls = np.empty(len(indptr) - 1)
    _run("row_pulls", 2 * len(left), indptr, indices, weights, left, cols, pulls)
    return pulls


def col_pulls(
    cuts: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    left: np.ndarray,
    rows: np.ndarray,
    size: int,
    width: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Of each column sum w and sum w (t - rows_i); the stripes are those of :func:`transposed_times`."""
    sums, pulls = np.empty((2, size))
    _run("col_pulls", 2 * len(left), cuts, indices, weights, left, rows, width, sums, pulls)
    return sums, pulls


def add(total: np.ndarray, c: float, part: np.ndarray) -> None:
    """total += c part, with no array in between."""
    _run("add", len(total), total, float(c), part)


def dot(x: np.ndarray, y: np.ndarray) -> float:
    """sum x y"""
    if len(x) < SMALL:
        return float(np.vdot(x, y))
    sums = np.zeros(-(-len(x) // CHUNK))
    _run("dot", len(x), x, y, CHUNK, sums)
    return float(sums.sum())


def distance2(a: float, x: np.ndarray, b: float, y: np.ndarray) -> float:
    """sum (a x - b y)^2, with no array in between."""
    sums = np.zeros(-(-len(x) // CHUNK))
    _run("distance2", len(x), float(a), x, float(b), y, CHUNK, sums)
    return float(sums.sum())


def loss(
    name: str, parameter: float, z: np.ndarray, y: np.ndarray, weights: np.ndarray, slopes: bool = True
) -> tuple[float, np.ndarray]:
    """sum w phi(z, y) and the w phi'(z, y), in one pass; ``weights`` of length 0 stand for ones. Without ``slopes``, the sum."""
    deriv = np.empty_like(z, shape=len(z) if slopes else 0)
    sums = np.zeros(-(-len(z) // CHUNK))
    _run("loss", 10 * len(z), LOSSES.index(name), float(parameter), z, y, weights, CHUNK, deriv, sums)
    return float(sums.sum()), deriv


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Within, no loop takes more threads than this; None leaves it as it is."""
    numba = _loops().numba
    before = layer.threads(numba)
    numba.set_num_threads(before if threads is None else min(threads, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def threads() -> int | None:
    """How many threads the loops may use; None before they are loaded."""
    return layer.threads(_loops().numba) if _loops.cache_info().currsize else None


_loaded: set[tuple[Any, ...]] = set()
"""Kernels, with the types that they were called with, whose code is compiled or read from disk."""


def _run(kernel: str, work: int, *args: Any) -> None:
    """On one thread where the work is small: waking another one takes longer. The first call loads the kernel, and a signal
    waits for that: it would be lost in there."""
    loops = _loops()
    threads = layer.threads(loops.numba)
    types = (kernel, *(a.dtype for a in args if isinstance(a, np.ndarray)))
    with layer.exclusive(loops.numba), nullcontext() if types in _loaded else defer_signals():
        try:
            if work < SMALL and threads > 1:
                loops.numba.set_num_threads(1)
            getattr(loops, kernel)(*args)
        finally:
            loops.numba.set_num_threads(threads)
    _loaded.add(types)


@cache
def _loops() -> Any:
    with defer_signals():  # a library that is imported by half can't be imported again
        from condgrad.kernels import loops  # numba takes longer to import than all of condgrad

    return loops
