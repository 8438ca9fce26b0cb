"""Where sharded data come from: arrays in memory, or a function that loads a shard. Files are in folders.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from condgrad import checks
from condgrad.distributed.cluster import Cluster, Future
from condgrad.distributed.shards import load
from condgrad.objectives._matrices import is_sparse

SHARD_ENTRIES = 2**21
"""Number of entries of a shard by default: about 50 MB with its slopes."""
SHARD_ROWS = 2**18
"""Number of rows of a linear model in a shard by default."""
MIN_SHARDS = 8
"""Minimum number of shards by default, so that a few workers share small data too."""


Build = Callable[[int, Any], Any]
"""``build(number, data)`` makes a shard of what was loaded; it raises ShardError for data that can't be used."""


class Source(Protocol):
    """Protocol: data that are divided into shards by rows."""

    def open(self, cluster: Cluster, shape: tuple[int, int] | None, shards: int | None) -> Opened:
        """Divide the data into shards; ``shape`` is that of a matrix with entries, if it is known."""


class Opened(Protocol):
    """Protocol: data that have been divided into shards."""

    @property
    def n_shards(self) -> int:
        """Number of shards."""

    def submit(
        self, cluster: Cluster, numbers: Sequence[int], build: Build, workers: Sequence[str]
    ) -> Sequence[Future]:
        """Start to load shards and to build them, each on its worker; called again for those whose worker has died."""


def default_shards(entries: int, rows: int, size: int = SHARD_ENTRIES) -> int:
    """Return the number of shards for this number of entries: a function of the data, whatever the cluster."""
    return max(1, min(rows, max(MIN_SHARDS, -(-entries // size))))


def balanced(counts: np.ndarray, parts: int) -> np.ndarray:
    """Return cuts 0 = c_0 <= ... <= c_parts = len(counts) between which the counts have sums that are about the same."""
    sums = np.cumsum(counts)
    aims = sums[-1] * np.arange(1, parts) / parts
    return np.concatenate([[0], np.searchsorted(sums, aims, side="left") + 1, [len(counts)]])


@dataclass(frozen=True)
class Loader:
    """A function that loads shards.

    Parameters
    ----------
    load : callable
        ``load(i)`` returns the data of shard i. For :class:`ShardedCompletion`: (rows, cols, values) or (rows, cols, values,
        weights), with the rows and columns of the whole matrix; the rows of shard i come before those of shard i + 1, and no row
        is in two shards. For :class:`ShardedSum`: (A, y) or (A, y, weights). It runs on a worker, and again on another one if
        that worker dies: it must return the same data.
    shards : int
        Number of shards.
    shape : tuple of two ints, default None
        Shape of the matrix, for entries; None: it is given to the objective.
    """

    load: Callable[[int], Any]
    shards: int
    shape: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        checks.whole(self.shards, "The number of shards of Loader")

    @property
    def n_shards(self) -> int:
        return self.shards

    def open(self, cluster: Cluster, shape: tuple[int, int] | None, shards: int | None) -> Opened:
        if shards is not None and shards != self.shards:
            raise ValueError(f"The source has {self.shards} shards, but shards={shards} was asked for: leave it out.")
        return self

    def submit(
        self, cluster: Cluster, numbers: Sequence[int], build: Build, workers: Sequence[str]
    ) -> Sequence[Future]:
        many = len(numbers)
        return cluster.map(load, numbers, [self.load] * many, [build] * many, workers=workers)


class Arrays:
    """Entries in the driver's memory, which keeps them: shards of a worker that dies are sent again."""

    def __init__(self, data: tuple[Any, ...]):
        self.data = tuple(map(np.asarray, data))
        sizes = {array.shape for array in self.data}
        if len(sizes) != 1 or self.data[0].ndim != 1 or not self.data[0].size:
            raise ValueError(
                f"Entries are (rows, cols, values), three lists of the same length, but got shapes "
                f"{', '.join(str(array.shape) for array in self.data)}."
            )
        if self.data[0].dtype.kind not in "iu":
            raise ValueError(f"Rows must be whole numbers, but got dtype {self.data[0].dtype}: pass integers.")

    def open(self, cluster: Cluster, shape: tuple[int, int] | None, shards: int | None) -> Opened:
        if shape is None:
            raise ValueError("The shape is missing: give the number of rows and columns of the matrix.")
        rows, n_rows = self.data[0], shape[0]
        if rows.min() < 0 or rows.max() >= n_rows:
            raise ValueError(
                f"Rows go from {rows.min()} to {rows.max()}, but the matrix has {n_rows}: give a larger shape."
            )
        parts = default_shards(len(rows), n_rows) if shards is None else shards
        cuts = balanced(np.bincount(rows, minlength=n_rows), parts)
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], cuts)
        return _OpenedArrays(tuple(array[order] for array in self.data), ends)


class _OpenedArrays:
    def __init__(self, data: tuple[Any, ...], ends: np.ndarray):
        self.data, self.ends, self.n_shards = data, ends, len(ends) - 1

    def submit(
        self, cluster: Cluster, numbers: Sequence[int], build: Build, workers: Sequence[str]
    ) -> Sequence[Future]:
        parts = [slice(self.ends[i], self.ends[i + 1]) for i in numbers]
        arrays = [cluster.send([array[part] for part in parts], workers) for array in self.data]
        data = [list(given) for given in zip(*arrays, strict=True)]
        return cluster.map(build, numbers, data, workers=workers)


class Rows:
    """Rows of a linear model in the driver's memory, which keeps them: shards of a worker that dies are sent again."""

    def __init__(self, data: tuple[Any, ...]):
        if len(data) not in (2, 3):
            raise ValueError(f"Got {len(data)} arrays of rows: give (A, y) or (A, y, weights).")
        given: Any = data[0]
        A: Any = given.tocsr() if is_sparse(given) else np.asarray(given)
        self.data = (A, *(np.asarray(array) for array in data[1:]))
        if A.ndim != 2 or not A.shape[0] or any(array.shape != A.shape[:1] for array in self.data[1:]):
            raise ValueError(
                "Rows are (A, y): a matrix with at least one row and a number for each of its rows, but got shapes "
                f"{', '.join(str(array.shape) for array in self.data)}."
            )

    def open(self, cluster: Cluster, shape: tuple[int, int] | None, shards: int | None) -> Opened:
        n = self.data[0].shape[0]
        parts = default_shards(n, n, SHARD_ROWS) if shards is None else shards
        return _OpenedArrays(self.data, np.linspace(0, n, parts + 1).astype(int))
