"""Calls that compile every kernel in advance, for example when a container image is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from condgrad import kernels


def calls() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield a description and a call on a 2 x 2 matrix for each kernel and each index type that condgrad uses.

    All points are float64. Indices are int64 for matrices with 2**31 entries or more.
    """
    block, ones = np.ones((2, 1)), np.ones(2)
    for index in (np.int32, np.int64):
        ends, places = np.array([0, 1, 2], index), np.array([0, 1], index)
        cuts = np.array([[0, 1], [1, 2]], index)
        numbers = index.__name__
        yield f"sample, {numbers}", partial(kernels.sample, ends, places, block, block)
        yield f"sample_at, {numbers}", partial(kernels.sample_at, places, places, block, block)
        yield f"times, {numbers}", partial(kernels.times, ends, places, ones, block)
        yield f"transposed_times, {numbers}", partial(kernels.transposed_times, cuts, places, ones, block, 2, 2)
        # these are compiled for many entries only: one row has all of them
        at = np.zeros(kernels.MIN_COMPILED_WORK, index)
        many, one = np.ones(len(at)), np.ones(1)
        end, cut = np.array([0, len(at)], index), np.array([[0], [len(at)]], index)
        yield f"inlier_weights, {numbers}", partial(kernels.inlier_weights, end, many, many.copy(), 1.0)
        yield f"row_weighted_sums, {numbers}", partial(kernels.row_weighted_sums, end, at, many, many, one)
        yield (
            f"column_weighted_sums, {numbers}",
            partial(kernels.column_weighted_sums, cut, at, many, many, one, 1, 1),
        )
        regression = ends, places, ones, ones, block, np.ones(1), block, block
        yield f"ridge_regressions, {numbers}", partial(kernels.ridge_regressions, *regression)
    rows, cols, ones = np.array([0, 1]), np.array([0, 1], np.int32), np.ones(kernels.MIN_COMPILED_WORK)
    yield "sample_at, int64 and int32", partial(kernels.sample_at, rows, cols, block, block)
    mixed = np.array([0, 1, 2]), cols, *regression[2:]
    yield "ridge_regressions, int64 and int32", partial(kernels.ridge_regressions, *mixed)
    large = np.ones(kernels.MIN_PARALLEL_WORK)  # numpy computes smaller products
    yield "dot", partial(kernels.dot, large, large)
    yield "add", partial(kernels.add, ones.copy(), 1.0, ones)
    yield "distance2", partial(kernels.distance2, 1.0, ones, 1.0, ones)
    yield "welsch", partial(kernels.loss, "welsch", 1.0, ones, ones, np.empty(0))
    yield "loss", partial(kernels.loss, "squared", 1.0, ones, ones, np.empty(0))
    one, into = np.array([1]), np.array([[0, 0], [0, 1]])
    yield "shortest_paths", partial(kernels.shortest_paths, 0, one, into, np.array([0]), np.ones(1))
    yield "spanning_tree", partial(kernels.spanning_tree, np.array([0]), np.array([[0, 1]]))


def cache_status() -> tuple[str, bool]:
    """Return the folder of the compiled kernels and whether this process could write its kernels there."""
    from condgrad.kernels.disk_cache import KernelCache, folder

    return str(folder()), not KernelCache.unwritable
