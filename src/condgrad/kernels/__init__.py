"""Compiled kernels: low-rank products at sampled entries, sparse matrix products, pointwise losses, paths, trees.

numba compiles each kernel at its first use and caches the machine code on disk. Kernels accept float32 and float64 values and
int32 and int64 indices; sums are in float64 for both. Large work is shared by several threads, over rows or stripes of columns.
One thread sums one row, in the order of the entries, so the bits do not depend on the number of threads. Blocks (U, V, W) are
C-contiguous: each row is contiguous in memory.

Kernels can be called from any thread and from a forked process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from condgrad.kernels import thread_pool
from condgrad.runtime.interruption import defer_signals

LOSSES = ("squared", "welsch", "huber", "cauchy", "geman-mcclure", "logistic", "sigmoid")
"""Losses that :func:`loss` evaluates; the kernel selects a loss by its index here."""
MIN_PARALLEL_WORK = 300_000
"""Minimum number of multiplications for which more than one thread is faster than one."""
MIN_COMPILED_WORK = 20_000
"""Minimum number of entries for which kernels that sum over entries are compiled: numpy is as fast below, without compiling."""
SUM_CHUNK = 8192
"""Number of entries summed at a time; the sums of the chunks are added. So a sum does not depend on the number of threads."""


def sample(indptr: np.ndarray, indices: np.ndarray, U: np.ndarray, V: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Return (U V')_ij at the entries of a pattern in CSR form, in the given type; None: the type of U."""
    out = np.empty(len(indices), U.dtype if dtype is None else dtype)
    _run("sample", len(indptr) - 1, U.shape[1] * len(out), indptr, indices, U, V, out)
    return out


def sample_at(rows: np.ndarray, cols: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return (U V')_ij at the entries (rows, cols), which may be in any order."""
    out = np.empty(len(rows), U.dtype)
    _run("sample_at", len(rows), U.shape[1] * len(out), rows, cols, U, V, out)
    return out


def times(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return S W for the sparse matrix S with these values, in CSR form: float32 if S and W are, else float64."""
    out = np.empty((len(indptr) - 1, W.shape[1]))  # sums are in float64 for any type
    _run("times", len(indptr) - 1, W.shape[1] * len(values), indptr, indices, values, W, out)
    return out.astype(np.result_type(values, W), copy=False)


def transposed_times(
    cuts: np.ndarray, indices: np.ndarray, values: np.ndarray, Q: np.ndarray, size: int, width: int
) -> np.ndarray:
    """Return S' Q without a transposed copy of S: float32 if S and Q are, else float64.

    Columns are divided into stripes of ``width``; stripe s has the entries cuts[s, i] to cuts[s + 1, i] - 1 of row i.
    """
    out = np.empty((size, Q.shape[1]))
    _run("transposed_times", len(cuts) - 1, Q.shape[1] * len(values), cuts, indices, values, Q, width, out)
    return out.astype(np.result_type(values, Q), copy=False)


def inlier_weights(
    indptr: np.ndarray, residuals: np.ndarray, slopes: np.ndarray, smoothness: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the inlier weights of residuals, and for each row the sum of the weights and of weight times residual.

    The weight of a residual t is w = phi'(t)/(t smoothness), clipped to [0, 1]. ``slopes`` holds phi'(t) and is overwritten with
    the weights.
    """
    if len(residuals) < MIN_COMPILED_WORK:
        t, row = residuals.astype(float, copy=False), _rows(indptr)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slopes[:] = np.where(np.abs(t) < 1e-150, 1.0, np.clip(slopes / t / smoothness, 0.0, 1.0))
        weights = slopes.astype(float, copy=False)
        m = len(indptr) - 1
        return slopes, np.bincount(row, weights, m), np.bincount(row, weights * t, m)
    weight_sums, weighted_sums = np.empty((2, len(indptr) - 1))
    _run(
        "inlier_weights",
        len(indptr) - 1,
        2 * len(residuals),
        indptr,
        residuals,
        smoothness,
        slopes,
        weight_sums,
        weighted_sums,
    )
    return slopes, weight_sums, weighted_sums


def row_weighted_sums(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, residuals: np.ndarray, cols: np.ndarray
) -> np.ndarray:
    """Return for each row the sum of w (t - cols_j) over its entries with weight w and residual t."""
    if len(residuals) < MIN_COMPILED_WORK:
        return np.bincount(
            _rows(indptr), weights * (residuals.astype(float, copy=False) - cols[indices]), len(indptr) - 1
        )
    weighted_sums = np.empty(len(indptr) - 1)
    _run(
        "row_weighted_sums",
        len(indptr) - 1,
        2 * len(residuals),
        indptr,
        indices,
        weights,
        residuals,
        cols,
        weighted_sums,
    )
    return weighted_sums


def column_weighted_sums(
    cuts: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    residuals: np.ndarray,
    rows: np.ndarray,
    size: int,
    width: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each column the sum of w and of w (t - rows_i) over its entries with weight w and residual t.

    ``cuts`` and ``width`` are those of :func:`transposed_times`.
    """
    if len(residuals) < MIN_COMPILED_WORK:
        row = np.repeat(np.arange(cuts.shape[1]), cuts[-1] - cuts[0])
        centred = weights * (residuals.astype(float, copy=False) - rows[row])
        return np.bincount(indices, weights, size), np.bincount(indices, centred, size)
    weight_sums, weighted_sums = np.empty((2, size))
    _run(
        "column_weighted_sums",
        len(cuts) - 1,
        2 * len(residuals),
        cuts,
        indices,
        weights,
        residuals,
        rows,
        width,
        weight_sums,
        weighted_sums,
    )
    return weight_sums, weighted_sums


def _rows(indptr: np.ndarray) -> np.ndarray:
    """Return the row of each entry of a pattern in CSR form."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def add(total: np.ndarray, c: float, part: np.ndarray) -> None:
    """total += c part, in place and without a temporary array."""
    _run("add", len(total), len(total), total, float(c), part)


def dot(x: np.ndarray, y: np.ndarray) -> float:
    """Return the sum of x_i y_i."""
    if len(x) < MIN_PARALLEL_WORK:
        return float(np.vdot(x.astype(float, copy=False), y.astype(float, copy=False)))
    sums = np.zeros(-(-len(x) // SUM_CHUNK))
    _run("dot", len(sums), len(x), x, y, SUM_CHUNK, sums)
    return float(sums.sum())


def distance2(a: float, x: np.ndarray, b: float, y: np.ndarray) -> float:
    """Return the sum of (a x_i - b y_i)^2, without a temporary array."""
    if len(x) < MIN_COMPILED_WORK:
        difference = a * x.astype(float, copy=False) - b * y.astype(float, copy=False)
        return float(difference @ difference)
    sums = np.zeros(-(-len(x) // SUM_CHUNK))
    _run("distance2", len(sums), len(x), float(a), x, float(b), y, SUM_CHUNK, sums)
    return float(sums.sum())


def loss(
    name: str, parameter: float, z: np.ndarray, y: np.ndarray, weights: np.ndarray, slopes: bool = True
) -> tuple[float, np.ndarray]:
    """Return the sum of w phi(z, y) and the array of w phi'(z, y), in one pass.

    ``weights`` of length 0 means that all weights are 1. With ``slopes=False`` the array is empty.
    """
    sums = np.zeros(-(-len(z) // SUM_CHUNK))
    if name == "welsch" and not weights.size:
        deriv = np.empty_like(z)
        _run("welsch", len(sums), 5 * len(z), float(parameter), z, y, SUM_CHUNK, deriv, sums)
        return float(sums.sum()), deriv if slopes else deriv[:0]
    deriv = np.empty_like(z, shape=len(z) if slopes else 0)
    kind = LOSSES.index(name)
    _run("loss", len(sums), 10 * len(z), kind, float(parameter), z, y, weights, SUM_CHUNK, deriv, sums)
    return float(sums.sum()), deriv


def shortest_paths(
    source: int, nodes: np.ndarray, into: np.ndarray, tails: np.ndarray, costs: np.ndarray
) -> np.ndarray:
    """Return for each node the last edge of a shortest path from the source, in a graph without cycles.

    ``nodes`` are those that can be reached, in topological order and without the source. Node v has the edges into[v, 0] to
    into[v, 1] - 1, which begin at the nodes ``tails``. Of equal paths the one over the first edge is taken.
    """
    distances, last = np.full(len(into), np.inf), np.zeros(len(into), dtype=np.int64)
    distances[source] = 0.0
    _run("shortest_paths", 1, len(costs), nodes, into, tails, costs, distances, last)
    return last


def spanning_tree(order: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the edges of the spanning tree that Kruskal's algorithm finds in a connected graph.

    It looks at the edges in the given order: that of increasing costs for a minimum spanning tree. ``edges`` are pairs of nodes,
    shape (m, 2).
    """
    roots = np.arange(edges.max() + 1)
    chosen = np.empty(len(roots) - 1, dtype=np.int64)
    _run("spanning_tree", 1, len(order), order, edges, roots, chosen)
    return chosen


def ridge_regressions(
    indptr: np.ndarray,
    indices: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    V: np.ndarray,
    penalties: np.ndarray,
    centres: np.ndarray,
    noise: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve a small ridge regression for each row of a matrix in CSR form; also return a random draw around each solution.

    The solution u of row i minimises sum_j w_ij (t_ij - <u, v_j>)^2 + sum_q penalty_q (u_q - centre_iq)^2 over the entries of the
    row. With A the matrix of this quadratic and L L' = A, the draw is u + L'^-1 noise_i: if the noise is normal with variance s2,
    the draw has the covariance s2 A^-1.
    """
    solutions, draws = np.empty_like(centres), np.empty_like(centres)
    work = len(indices) * V.shape[1] ** 2
    count = len(indptr) - 1
    _run(
        "ridge_regressions",
        count,
        work,
        indptr,
        indices,
        targets,
        weights,
        V,
        penalties,
        centres,
        noise,
        solutions,
        draws,
    )
    return solutions, draws


@contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Context manager: kernels use at most this number of threads; None does not change the limit."""
    numba = _loops().numba
    before = numba.get_num_threads()
    numba.set_num_threads(before if threads is None else min(threads, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def threads() -> int | None:
    """Return the maximum number of threads of a kernel; None before numba is imported."""
    return int(_loops().numba.get_num_threads()) if _loops.cache_info().currsize else None


_loaded: set[tuple[Any, ...]] = set()
"""Name and array types of every kernel whose code this process has compiled or read from disk."""


def _run(kernel: str, length: int, work: int, *args: Any) -> None:
    """Call a kernel for its whole loop of this length, by several threads if the work is enough for them.

    The first call with new types compiles or loads the kernel. Signals are deferred during that time: numba would lose them.
    """
    loops = _loops()
    call = getattr(loops, kernel)
    types = (kernel, *(a.dtype for a in args if isinstance(a, np.ndarray)))
    if types not in _loaded:
        with defer_signals():
            call(0, 0, *args)
        _loaded.add(types)
    if work < MIN_PARALLEL_WORK:
        call(0, length, *args)
    else:
        thread_pool.share(lambda begin, end: call(begin, end, *args), length, int(loops.numba.get_num_threads()))


@cache
def _loops() -> Any:
    """Import the module of the kernels at first use: importing numba takes longer than importing the rest of condgrad."""
    with defer_signals():  # an import that a signal has interrupted can't be repeated
        from condgrad.kernels import loops

    return loops
