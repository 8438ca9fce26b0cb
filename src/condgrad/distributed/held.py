"""Shards on the workers: they are loaded or computed at once, and again on another worker if the one that holds them dies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from condgrad.distributed.cluster import Cluster, Future, Held, LateError, lost, named, no_answer, unfinished
from condgrad.distributed.shards import ShardError
from condgrad.distributed.sources import Build, Opened

FAN_IN = 4
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
        self._places: list[str | None] = [None] * n_shards

    @property
    @abstractmethod
    def owners(self) -> list[str]:
        """The worker of each shard, as of the cluster's last look for workers."""

    @abstractmethod
    def _make(self, numbers: Sequence[int]) -> Sequence[Future]:
        """Start to make the objects of these shards, each on its owner."""

    def futures(self) -> list[Future]:
        """Return the objects; those that are lost, or whose owner is another one now, are made again."""
        owners = self.owners
        missing = [i for i, future in enumerate(self._futures) if lost(future) or self._places[i] != owners[i]]
        if missing:
            for i, future in zip(missing, self._make(missing), strict=True):
                self._futures[i], self._places[i] = future, owners[i]
        return [future for future in self._futures if future is not None]

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
            owners = self.owners if only is None else [self.owners[i] for i in only]
            while len(parts) > 1:
                groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
                owners = owners[::FAN_IN]
                parts = self.cluster.map(added, groups, workers=owners)
            return parts

        return self.cluster.results(start, lambda _: unfinished(leaves, only if leaves else ()))[0]

    def start(
        self, function: Any, by_shard: Any, common: Any, last: Any, held: Any, only: Sequence[int] | None
    ) -> list[Future]:
        """Submit a task for each shard; the arguments are those of :meth:`each`."""
        shards, parts, owners = self.futures(), held(), self.owners
        numbers = range(self.n_shards) if only is None else only
        if only is not None:
            shards, owners = [shards[i] for i in only], [owners[i] for i in only]
            parts = [[part[i] for i in only] for part in parts]
        if not shards:
            return []
        try:
            local = [self.cluster.send(blocks, owners) for blocks in by_shard]
            shared = self.cluster.share(common, sorted(set(owners), key=owners.index))
        except LateError as late:
            there = [i for i, owner in zip(numbers, owners, strict=True) if owner in late.workers]
            raise ShardError(no_answer(named(there), self.cluster.timeout)) from None
        everywhere = [[known[owner] for owner in owners] for known in shared]
        constant = ([argument] * len(owners) for argument in last)
        return self.cluster.map(function, shards, *local, *everywhere, *constant, *parts, workers=owners)


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
        self._owners: list[str] = []

    @property
    def owners(self) -> list[str]:
        self._owners = dealt(self._owners or [""] * self.n_shards, self.cluster.workers())
        return self._owners

    def summarise(self, function: Callable[..., Any], *last: Any) -> tuple[Any, ...]:
        """Return ``function(shard, *last)`` of all shards; a shard that is loaded again later must have the same result."""
        found = tuple(self.each(function, last=last))
        shards = self.futures()
        self._expected = found, function, last
        self._futures = [*self._verified(range(self.n_shards), shards)]
        return found

    def _make(self, numbers: Sequence[int]) -> Sequence[Future]:
        owners = [self.owners[i] for i in numbers]
        return self._verified(numbers, self._opened.submit(self.cluster, numbers, self._build, owners))

    def _verified(self, numbers: Sequence[int], shards: Sequence[Future]) -> Sequence[Future]:
        """Return the shards, compared with their summaries whenever they are loaded."""
        if self._expected is None:
            return shards
        owners = [self.owners[i] for i in numbers]
        found, function, last = self._expected
        expected, constant = [found[i] for i in numbers], ([argument] * len(owners) for argument in (function, *last))
        return self.cluster.map(verified, shards, numbers, expected, *constant, workers=owners)


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

    @property
    def owners(self) -> list[str]:
        return self._parent.owners

    def _make(self, numbers: Sequence[int]) -> Sequence[Future]:
        by_shard, common, last = self._arguments
        local = [[blocks[i] for i in numbers] for blocks in by_shard()]
        return self._parent.start(self._function, local, common, last, list, numbers)


def dealt(owners: Sequence[str], workers: Sequence[str]) -> list[str]:
    """Return an owner for each shard: the one it has, unless that is gone or has more than its part of the shards.

    Consecutive shards go to the same worker, so that most of the sums of their arrays are made there.
    """
    room = dict.fromkeys(workers, -(-len(owners) // len(workers)))
    left = []
    for i, owner in enumerate(owners):
        if room.get(owner, 0):
            room[owner] -= 1
        else:
            left.append(i)
    found, free = list(owners), iter([worker for worker in workers for _ in range(room[worker])])
    for i in left:
        found[i] = next(free)
    return found


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
