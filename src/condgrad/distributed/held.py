"""Shards on the workers: they are loaded or computed at once, and again on another worker if the one that holds them dies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from condgrad.distributed.cluster import Cluster, Future, Held, lost, unfinished
from condgrad.distributed.shards import ShardError
from condgrad.distributed.sources import Build, Opened

FAN_IN = 8
"""Number of arrays that one task adds up."""


class Shards(ABC):
    """Abstract: one object for each shard, each on one worker.

    The number of shards and what is in each is a function of the data, so that no result depends on the workers.

    Parameters
    ----------
    cluster : Cluster
    n_shards : int
    """

    def __init__(self, cluster: Cluster, n_shards: int):
        self.cluster, self.n_shards = cluster, n_shards
        self._futures: Held = [None] * n_shards

    @abstractmethod
    def futures(self) -> list[Future]:
        """Return the objects; those that are lost are made again."""

    def each(
        self,
        function: Callable[..., Any],
        *,
        by_shard: Sequence[Sequence[np.ndarray]] = (),
        common: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
        held: Callable[[], list[list[Future]]] = list,
        only: Sequence[int] | None = None,
    ) -> list[Any]:
        """Return ``function(shard, *by_shard, *common, *last, *held)`` of all shards, in their order.

        Parameters
        ----------
        function : callable
        by_shard : sequence of lists of ndarray, default ()
            Lists with one array for each shard.
        common : sequence of ndarray, default ()
            Arrays that every shard needs.
        last : tuple, default ()
            Further, small arguments.
        held : callable, default list
            Returns lists with what the workers hold for each shard; called again if something is lost.
        only : sequence of int, default None
            Numbers of the shards to compute with; None: all.
        """

        return self.cluster.results(
            lambda: self.start(function, by_shard, common, last, held, only), lambda tasks: unfinished(tasks, only)
        )

    def total(
        self,
        function: Callable[..., np.ndarray],
        *,
        by_shard: Sequence[Sequence[np.ndarray]] = (),
        common: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
        held: Callable[[], list[list[Future]]] = list,
        only: Sequence[int] | None = None,
    ) -> np.ndarray:
        """Return the sum of what :meth:`each` returns. The workers add it up, so that one array reaches the driver.

        Groups of consecutive shards are added, then groups of these sums: a tree that depends on the number of shards alone, so
        the bits of the sum do not depend on the workers.
        """
        leaves: list[Future] = []

        def start() -> list[Future]:
            parts = self.start(function, by_shard, common, last, held, only)
            if self.cluster.timeout is not None:  # to name those that are late; else what was added is freed at once
                leaves[:] = parts
            while len(parts) > 1:
                parts = [self.cluster.submit(added, parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
            return parts

        return self.cluster.results(start, lambda _: unfinished(leaves, only if leaves else ()))[0]

    def start(
        self, function: Any, by_shard: Any, common: Any, last: Any, held: Any, only: Sequence[int] | None
    ) -> list[Future]:
        """Submit a task for each shard; the arguments are those of :meth:`each`."""
        shards, parts = self.futures(), held()
        if only is not None:
            shards, parts = [shards[i] for i in only], [[part[i] for i in only] for part in parts]
        many = len(shards)
        local = [self.cluster.send(blocks) for blocks in by_shard]
        shared = [[block] * many for block in self.cluster.send(common, copies=many)]
        return self.cluster.map(function, shards, *local, *shared, *([argument] * many for argument in last), *parts)


@final
class HeldShards(Shards):
    """The shards of an objective, loaded from their source.

    Parameters
    ----------
    cluster : Cluster
    opened : Opened
        The data, divided into shards.
    build : callable
        ``build(number, data)`` makes a shard of the data that were loaded. It runs on a worker.

    Raises
    ------
    ShardError
        By the first computation, if a shard can't be loaded.
    """

    def __init__(self, cluster: Cluster, opened: Opened, build: Build):
        super().__init__(cluster, opened.n_shards)
        self._opened, self._build = opened, build
        self._expected: tuple[Any, ...] | None = None

    def summarise(self, function: Callable[..., Any], *last: Any) -> tuple[Any, ...]:
        """Return ``function(shard, *last)`` of all shards; a shard that is loaded again later must have the same result."""
        found = tuple(self.each(function, last=last))
        shards = self.futures()
        self._expected = found, function, last
        self._futures = [self._verified(i, shard) for i, shard in enumerate(shards)]
        return found

    def _verified(self, number: int, shard: Future) -> Future:
        """Return the shard, compared with its summary whenever it is loaded."""
        if self._expected is None:
            return shard
        found, function, last = self._expected
        return self.cluster.submit(verified, shard, number, found[number], function, *last)

    def futures(self) -> list[Future]:
        """Return the shards; those that are lost are loaded again."""
        if any(map(lost, self._futures)):
            workers = self.cluster.workers()
            for i, future in enumerate(self._futures):
                if lost(future):
                    worker = workers[i % len(workers)]
                    self._futures[i] = self._verified(i, self._opened.submit(self.cluster, i, self._build, worker))
        return [future for future in self._futures if future is not None]


@final
class DerivedShards(Shards):
    """What a function returns for each shard. It stays on the workers, and is computed again if it is lost with one of them.

    Parameters
    ----------
    parent : Shards
        The shards.
    function : callable
        ``function(shard, *by_shard, *common, *last)``, as in :meth:`Shards.each`.
    by_shard : callable, default list
        Returns lists with one array for each shard.
    common : sequence of ndarray, default ()
        Arrays that every shard needs.
    last : tuple, default ()
        Further, small arguments.
    """

    def __init__(
        self,
        parent: Shards,
        function: Callable[..., Any],
        by_shard: Callable[[], Sequence[Sequence[np.ndarray]]] = list,
        common: Sequence[np.ndarray] = (),
        last: tuple[Any, ...] = (),
    ):
        super().__init__(parent.cluster, parent.n_shards)
        self._parent, self._function = parent, function
        self._arguments = by_shard, common, last

    def futures(self) -> list[Future]:
        missing = [i for i, future in enumerate(self._futures) if lost(future)]
        if missing:
            by_shard, common, last = self._arguments
            local = [[blocks[i] for i in missing] for blocks in by_shard()]
            found = self._parent.start(self._function, local, common, last, list, missing)
            for i, future in zip(missing, found, strict=True):
                self._futures[i] = future
        return [future for future in self._futures if future is not None]


def verified(shard: Any, number: int, expected: Any, summarise: Callable[..., Any], *last: Any) -> Any:
    """Return the shard; raise ShardError if its summary is not the expected one."""
    if summarise(shard, *last) != expected:
        raise ShardError(
            f"Shard {number} had other data when it was loaded again after a worker died: load must return the same data."
        )
    return shard


def added(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum of arrays, added in their order."""
    out = parts[0].copy()
    for part in parts[1:]:
        out += part
    return out
