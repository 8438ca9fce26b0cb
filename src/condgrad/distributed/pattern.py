"""The positions of the observed entries on the workers, and what is computed on all shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from condgrad.distributed import shards
from condgrad.distributed.cluster import Cluster, Future
from condgrad.distributed.held import HeldShards
from condgrad.distributed.sources import Opened
from condgrad.objectives.losses import Loss


class ShardedPattern:
    """Observed entries of a matrix, divided by rows into shards that are on the workers.

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
    ValueError
        If there are no entries, or all weights are 0.
    """

    def __init__(self, cluster: Cluster, opened: Opened, shape: tuple[int, int], loss: Loss):
        self._held = HeldShards(cluster, opened, partial(shards.build, shape=shape, loss=loss))
        self.shape, self.loss, self.n_shards = shape, loss, opened.n_shards
        self.summaries: tuple[shards.ShardSummary, ...] = self._held.summarise(shards.summarise)
        self.size = sum(summary.entries for summary in self.summaries)
        self._check()

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values and slopes: float32 or float64."""
        return np.dtype(next(summary.dtype for summary in self.summaries if summary.entries))

    @property
    def cluster(self) -> Cluster:
        """The workers."""
        return self._held.cluster

    def _check(self) -> None:
        if not any(summary.weight for summary in self.summaries):
            raise ValueError("All shards have no entries, or entries of weight 0 only: give at least one that counts.")
        (last, before), *others = ((i, summary) for i, summary in enumerate(self.summaries) if summary.entries)
        for i, now in others:
            if now.first < before.stop:
                raise shards.ShardError(
                    f"Shard {i} begins with row {now.first}, but shard {last} goes up to row {before.stop - 1}: give each row "
                    "to one shard, in the order of the rows."
                )
            if now.dtype != before.dtype:
                raise shards.ShardError(
                    f"Shard {i} has values of {now.dtype}, but shard {last} of {before.dtype}: give all of them the same type."
                )
            last, before = i, now

    def rows(self, block: np.ndarray) -> list[np.ndarray]:
        """Return the rows of a block that belong to each shard."""
        return [np.ascontiguousarray(block[summary.first : summary.stop]) for summary in self.summaries]

    def shards(self) -> list[Future]:
        """Return the shards; those that are lost are loaded again."""
        return self._held.futures()

    def each(
        self,
        function: Callable[..., Any],
        *,
        by_rows: Sequence[np.ndarray] = (),
        common: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
        held: Callable[[], list[list[Future]]] = list,
    ) -> list[Any]:
        """Return ``function(shard, *by_rows, *common, *last, *held)`` of all shards, in their order.

        ``by_rows`` are arrays of which every shard needs its rows. The other arguments are those of :meth:`HeldShards.each`.
        """
        local = [self.rows(block) for block in by_rows]
        return self._held.each(function, by_shard=local, common=common, last=last, held=held)

    def total(
        self,
        function: Callable[..., np.ndarray],
        *,
        by_rows: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
        held: Callable[[], list[list[Future]]] = list,
    ) -> np.ndarray:
        """Return the sum of what :meth:`each` returns, added up by the workers."""
        return self._held.total(function, by_shard=[self.rows(block) for block in by_rows], last=last, held=held)
