"""Calls to the workers: every computation is repeated if workers have died, with what they held computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from time import monotonic, sleep
from typing import Any
from weakref import WeakSet

import numpy as np

from condgrad.checks import positive
from condgrad.distributed.shards import ShardError, explain
from condgrad.runtime.extras import needed_for
from condgrad.runtime.signals import heartbeat

with needed_for("Objectives on a cluster"):
    from distributed import Client, Future, KilledWorker, wait

LOST = (CancelledError, KilledWorker, OSError)
"""Errors that mean that workers, or data that they held, are gone. Errors of tasks are ShardErrors."""
MAX_ATTEMPTS = 10
"""Maximum number of times that one computation is begun. Each failure means that another worker has died."""
MAX_WAIT = 60.0
"""Seconds that a computation waits for a worker if there is none: a killed process takes seconds to be started again."""

POLLING, MAX_PAUSE = 0.1, 5.0
"""Seconds between two looks for workers, and maximum pause between two attempts."""
MAX_INLINE = 2**16
"""Maximum number of bytes of the arrays that one computation sends through the scheduler: a message of this size takes less time
than the two further messages that an array sent to a worker needs."""

Held = list[Future | None]
"""What the workers hold for each shard; None: nothing yet."""


class Cluster:
    """The workers of a Dask client.

    Parameters
    ----------
    client : distributed.Client
    timeout : float, default None
        Seconds after which one computation on all shards fails; None: no limit.
    """

    def __init__(self, client: Client, timeout: float | None = None):
        if not isinstance(client, Client) or client.asynchronous:
            raise TypeError(
                f"The client is of type {type(client).__name__}, a synchronous distributed.Client was expected: "
                "client = distributed.Client(address)."
            )
        self.client, self.timeout = client, None if timeout is None else positive(timeout, "timeout")
        self._made: WeakSet[Future] = WeakSet()

    def workers(self) -> list[str]:
        """Return the addresses of the workers, in a fixed order; wait for the first one if there is none."""
        patience = MAX_WAIT if self.timeout is None else min(self.timeout, MAX_WAIT)
        deadline = monotonic() + patience
        while monotonic() < deadline:
            heartbeat()
            found = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
            if found:
                return found
            sleep(POLLING)
        raise ShardError(
            f"No shard could be computed: the cluster has had no worker for {patience:g} s. Start workers."
        )

    def send(self, blocks: Sequence[np.ndarray], copies: int = 1) -> list[Any]:
        """Send arrays to the workers, each to one of them; the others fetch it from there when a task needs it.

        Arrays that are arguments of tasks pass through the scheduler. That is fast for small ones, and slow for large ones.

        Parameters
        ----------
        blocks : sequence of ndarray
        copies : int, default 1
            Number of tasks that need each array.

        Returns
        -------
        list
            Arguments of tasks: futures, or the arrays themselves if all copies have at most MAX_INLINE bytes.
        """
        if copies * sum(block.nbytes for block in blocks) <= MAX_INLINE:
            return list(blocks)
        return self._noted(self.client.scatter(list(blocks), hash=False))

    def map(self, function: Callable[..., Any], *args: Sequence[Any]) -> list[Future]:
        """Start a task for each shard, with its arguments; one message to the scheduler for all of them."""
        return self._noted(self.client.map(function, *args, pure=False))

    def submit(self, function: Callable[..., Any], *args: Any) -> Future:
        """Start a task on any worker.

        Not on a given one: the scheduler never starts a task again that prefers a worker which died as the last one.
        """
        return self._noted([self.client.submit(function, *args, pure=False)])[0]

    def _noted(self, futures: Sequence[Future]) -> list[Future]:
        self._made.update(futures)
        return list(futures)

    def free(self) -> None:
        """Stop what is computed, and free the memory of the workers, although objects here still refer to it.

        What is needed afterwards is loaded or computed again, as after the death of all workers.
        """
        if self.client.status not in ("closing", "closed"):
            self.client.cancel(list(self._made), force=True)

    def results(
        self, start: Callable[[], Sequence[Future]], late: Callable[[Sequence[Future]], str] | None = None
    ) -> list[Any]:
        """Return the results of the tasks that ``start`` submits; call it again if workers have died.

        ``late`` names in messages what is not finished, given the tasks; None: :func:`unfinished`, for one task for each shard.
        """
        late = unfinished if late is None else late
        for attempt in range(1, MAX_ATTEMPTS + 1):
            heartbeat()
            if self.client.status in ("closing", "closed"):
                raise ShardError(
                    "No shard could be computed: the client is closed. Keep it open while the objective is used."
                )
            futures: Sequence[Future] = ()
            try:
                futures = start()
                self._wait(futures, late)
                return list(self.client.gather(list(futures)))
            except ShardError:
                raise
            except LOST as error:
                if attempt == MAX_ATTEMPTS:
                    raise ShardError(
                        f"{late(futures)} could not be computed in {MAX_ATTEMPTS} attempts, in each of which a worker "
                        f"died or could not be reached ({explain(error)}): look at the logs of the workers; shards may be "
                        "larger than their memory."
                    ) from None
                sleep(min(POLLING * 2**attempt, MAX_PAUSE))  # until the scheduler has noticed as well
            except Exception as error:
                raise ShardError(f"{late(futures)} could not be computed ({explain(error)}).") from error
        raise AssertionError

    def _wait(self, futures: Sequence[Future], late: Callable[[Sequence[Future]], str]) -> None:
        if self.timeout is None:
            return
        try:
            wait(list(futures), timeout=self.timeout)
        except TimeoutError:
            names = late(futures)
            self.client.cancel(list(futures))
            raise ShardError(
                f"{names} gave no answer within {self.timeout:g} s: restart the workers that hang, or raise timeout."
            ) from None


def lost(future: Future | None) -> bool:
    """Return whether what a future stands for must be computed again."""
    return future is None or future.status not in ("finished", "pending")


def unfinished(futures: Sequence[Future], names: Sequence[Any] | None = None, what: str = "Shard") -> str:
    """Name the shards, or what else the tasks are about, whose tasks are not finished; ``names``: None for 0, 1, ..."""
    names = range(len(futures)) if names is None else names
    late = [str(name) for name, future in zip(names, futures, strict=True) if future.status != "finished"]
    if not late:
        return f"A {what.lower()}"
    return f"{what} {late[0]}" if len(late) == 1 else f"{what}s {', '.join(late)}"
