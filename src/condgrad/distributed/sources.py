"""Where the entries of a sharded matrix come from: arrays in memory, a function that loads a shard, or Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from condgrad import checks
from condgrad.distributed.cluster import Cluster, Future
from condgrad.distributed.shards import build, load
from condgrad.objectives.losses import Loss

SHARD_ENTRIES = 2**21
"""Number of entries of a shard by default: about 50 MB with its slopes."""
MIN_SHARDS = 8
"""Minimum number of shards by default, so that a few workers share small data too."""


class Source(Protocol):
    """Protocol: entries that are divided into shards by rows."""

    def open(self, cluster: Cluster, shape: tuple[int, int], shards: int | None) -> Opened:
        """Divide the entries into shards."""


class Opened(Protocol):
    """Protocol: entries that have been divided into shards."""

    @property
    def n_shards(self) -> int:
        """Number of shards."""

    def submit(self, cluster: Cluster, number: int, shape: tuple[int, int], loss: Loss, worker: str) -> Future:
        """Start to load a shard; called again if the worker that held it has died."""


def default_shards(entries: int, rows: int) -> int:
    """Return the number of shards for this number of entries: a function of the data, whatever the cluster."""
    return max(1, min(rows, max(MIN_SHARDS, -(-entries // SHARD_ENTRIES))))


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
        ``load(i)`` returns the entries of shard i as (rows, cols, values) or (rows, cols, values, weights), with the rows and
        columns of the whole matrix. It runs on a worker, and again on another one if that worker dies. The rows of shard i come
        before those of shard i + 1: no row is in two shards.
    shards : int
        Number of shards.
    """

    load: Callable[[int], Any]
    shards: int

    def __post_init__(self) -> None:
        checks.whole(self.shards, "The number of shards of Loader")

    @property
    def n_shards(self) -> int:
        return self.shards

    def open(self, cluster: Cluster, shape: tuple[int, int], shards: int | None) -> Opened:
        if shards is not None and shards != self.shards:
            raise ValueError(f"The Loader has {self.shards} shards, but shards={shards} was asked for: leave it out.")
        return self

    def submit(self, cluster: Cluster, number: int, shape: tuple[int, int], loss: Loss, worker: str) -> Future:
        return cluster.submit(load, number, self.load, shape, loss)


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

    def open(self, cluster: Cluster, shape: tuple[int, int], shards: int | None) -> Opened:
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
    def __init__(self, data: tuple[np.ndarray, ...], ends: np.ndarray):
        self.data, self.ends, self.n_shards = data, ends, len(ends) - 1

    def submit(self, cluster: Cluster, number: int, shape: tuple[int, int], loss: Loss, worker: str) -> Future:
        part = slice(self.ends[number], self.ends[number + 1])
        sent = cluster.client.scatter(tuple(array[part] for array in self.data), workers=[worker], hash=False)
        return cluster.submit(build, number, list(sent), shape, loss)
