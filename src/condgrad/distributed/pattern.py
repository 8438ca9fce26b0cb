"""The positions of the observed entries on the workers, and what is computed on all shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from condgrad.distributed import shards
from condgrad.distributed.cluster import Cluster, Future
from condgrad.distributed.held import DerivedShards, HeldShards, Shards
from condgrad.distributed.sources import Opened
from condgrad.objectives.losses import Loss


class ShardedPattern:
    """Observed entries of a matrix, divided by rows into shards that are on the workers.

    Parameters
    ----------
    held : Shards
        The shards of entries on the workers.
    shape : tuple of two ints
        Shape of the matrix.
    loss : Loss
        The loss of the entries.
    summaries : tuple of ShardSummary
        What the driver knows of each shard.
    """

    def __init__(self, held: Shards, shape: tuple[int, int], loss: Loss, summaries: tuple[shards.ShardSummary, ...]):
        self._held, self.shape, self.loss, self.summaries = held, shape, loss, summaries
        self.n_shards, self.size = held.n_shards, sum(summary.entries for summary in summaries)

    @classmethod
    def load(cls, cluster: Cluster, opened: Opened, shape: tuple[int, int], loss: Loss) -> Self:
        """Load the entries, whose values must be valid for the loss.

        Raises
        ------
        ShardError
            If a shard can't be loaded, or has a row that is in another one too.
        ValueError
            If there are no entries, or all weights are 0.
        """
        held = HeldShards(cluster, opened, partial(shards.build, shape=shape, loss=loss))
        found = cls(held, shape, loss, held.summarise(shards.summarise))
        found._check()
        return found

    def derived(
        self,
        function: Callable[..., Any],
        by_shard: Callable[[], Sequence[Sequence[np.ndarray]]] = list,
        common: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
    ) -> DerivedShards:
        """Return what a function makes of each shard, on the workers, as in :class:`DerivedShards`."""
        return DerivedShards(self.held, function, by_shard, common, last)

    @property
    def held(self) -> Shards:
        """The shards of entries on the workers. Not an attribute: the fingerprint of a run describes those."""
        return self._held

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values and slopes: float32 or float64."""
        return np.dtype(next(summary.dtype for summary in self.summaries if summary.entries))

    @property
    def cluster(self) -> Cluster:
        """The workers."""
        return self.held.cluster

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

    def by_shard(self, positions: np.ndarray) -> list[np.ndarray]:
        """Return the positions in each shard of entries with these increasing positions in the order of all entries."""
        ends = np.cumsum([summary.entries for summary in self.summaries])
        starts = ends - [summary.entries for summary in self.summaries]
        parts = np.split(positions, np.searchsorted(positions, ends[:-1]))
        return [part - start for part, start in zip(parts, starts, strict=True)]

    def shards(self) -> list[Future]:
        """Return the shards; those that are lost are loaded again."""
        return self.held.futures()

    def each(
        self,
        function: Callable[..., Any],
        *,
        by_rows: Sequence[np.ndarray] = (),
        by_shard: Sequence[Sequence[np.ndarray]] = (),
        common: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
        held: Callable[[], list[list[Future]]] = list,
    ) -> list[Any]:
        """Return ``function(shard, *by_rows, *by_shard, *common, *last, *held)`` of all shards, in their order.

        ``by_rows`` are arrays of which every shard needs its rows. The other arguments are those of :meth:`HeldShards.each`.
        """
        local = [*(self.rows(block) for block in by_rows), *by_shard]
        return self.held.each(function, by_shard=local, common=common, last=last, held=held)

    def total(
        self,
        function: Callable[..., np.ndarray],
        *,
        by_rows: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
        held: Callable[[], list[list[Future]]] = list,
    ) -> np.ndarray:
        """Return the sum of what :meth:`each` returns, added up by the workers."""
        return self.held.total(function, by_shard=[self.rows(block) for block in by_rows], last=last, held=held)
