"""The positions of the observed entries on the workers, and what is computed on all shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from condgrad.distributed import shards
from condgrad.distributed.cluster import Cluster, Future, Held, lost
from condgrad.distributed.sources import Opened
from condgrad.objectives.losses import Loss


class ShardedPattern:
    """Observed entries of a matrix, divided by rows into shards that are on the workers.

    Shards are loaded at once, and again if the worker that holds one dies. The number of shards and what is in each is a function
    of the data, so that no result depends on the workers.

    Parameters
    ----------
    cluster : Cluster
    opened : Opened
        The entries.
    shape : tuple of two ints
        Shape of the matrix.
    loss : Loss
        The values must be valid for it.

    Raises
    ------
    ShardError
        If a shard can't be loaded, or has a row that is in another one too.
    """

    def __init__(self, cluster: Cluster, opened: Opened, shape: tuple[int, int], loss: Loss):
        self._cluster, self._opened, self.loss = cluster, opened, loss
        self._shards: Held = [None] * opened.n_shards
        self.shape, self.n_shards = shape, opened.n_shards
        self.summaries: tuple[shards.ShardSummary, ...] = tuple(
            cluster.results(lambda: cluster.map(shards.summarise, self.shards()))
        )
        self.size = sum(summary.entries for summary in self.summaries)
        self._check()

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values and slopes: float32 or float64."""
        return np.dtype(self.summaries[0].dtype)

    @property
    def cluster(self) -> Cluster:
        """The workers."""
        return self._cluster

    def _check(self) -> None:
        before = self.summaries[0]
        for i, now in enumerate(self.summaries[1:], 1):
            if now.first < before.stop:
                raise shards.ShardError(
                    f"Shard {i} begins with row {now.first}, but shard {i - 1} goes up to row {before.stop - 1}: give each row "
                    "to one shard, in the order of the rows."
                )
            if now.dtype != before.dtype:
                raise shards.ShardError(
                    f"Shard {i} has values of {now.dtype}, but shard {i - 1} of {before.dtype}: give all of them the same type."
                )
            before = now

    def rows(self, block: np.ndarray) -> list[np.ndarray]:
        """Return the rows of a block that belong to each shard."""
        return [np.ascontiguousarray(block[summary.first : summary.stop]) for summary in self.summaries]

    def shards(self) -> list[Future]:
        """Return the shards; those that are lost are loaded again."""
        if any(map(lost, self._shards)):
            workers = self._cluster.workers()
            for i, future in enumerate(self._shards):
                if lost(future):
                    worker = workers[i % len(workers)]
                    self._shards[i] = self._opened.submit(self._cluster, i, self.shape, self.loss, worker)
        return [future for future in self._shards if future is not None]

    def each(
        self,
        function: Callable[..., Any],
        *,
        common: Sequence[np.ndarray] = (),
        by_rows: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
        held: Callable[[], list[list[Future]]] = list,
    ) -> list[Any]:
        """Return ``function(shard, *by_rows, *common, *last, *held)`` of all shards, in their order.

        Parameters
        ----------
        function : callable
        common : sequence of ndarray
            Arrays that every shard needs.
        by_rows : sequence of ndarray
            Arrays of which every shard needs its rows.
        last : tuple
            Further, small arguments.
        held : callable
            Returns lists with what the workers hold for each shard; called again if something is lost.
        """
        return self._cluster.results(lambda: self.start(function, common, by_rows, last, held))

    def start(
        self,
        function: Callable[..., Any],
        common: Sequence[np.ndarray] = (),
        by_rows: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
        held: Callable[[], list[list[Future]]] = list,
    ) -> list[Future]:
        """Submit the tasks of :meth:`each`."""
        cluster, here, parts = self._cluster, self.shards(), held()
        shared = [[block] * self.n_shards for block in cluster.send(common, copies=self.n_shards)]
        local = [cluster.send(self.rows(block)) for block in by_rows]
        small = [[argument] * self.n_shards for argument in last]
        return cluster.map(function, here, *local, *shared, *small, *parts)
