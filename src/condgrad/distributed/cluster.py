"""Calls to the workers: every computation is repeated if workers have died, with what they held computed again.

Each task that needs a shard runs on the worker that owns the shard, and nowhere else: left to itself, Dask moves shards to
workers that have nothing to do. So the driver looks for owners that have died, and the owners of their shards are then others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from time import monotonic, sleep
from typing import Any
from uuid import uuid4
from weakref import WeakSet

import numpy as np

from condgrad.checks import positive
from condgrad.distributed.shards import ShardError, explain
from condgrad.protocols import BudgetEnd
from condgrad.runtime.extras import needed_for
from condgrad.runtime.signals import heartbeat

with needed_for("Objectives on a cluster"):
    import dask
    from distributed import Client, Future, KilledWorker, wait

LOST = (CancelledError, KilledWorker, OSError)
"""Errors that mean that workers, or data that they held, are gone. Errors of tasks are ShardErrors."""
MAX_ATTEMPTS = 10
"""Maximum number of times that one computation is begun. Each failure means that another worker has died."""
MAX_WAIT = 60.0
"""Seconds that a computation waits for a worker if there is none: a killed process takes seconds to be started again."""

POLLING, MAX_PAUSE = 0.1, 5.0
"""Seconds between two looks for workers while a computation runs, and maximum pause between two attempts."""
REFRESH = 2.0
"""Seconds after which a computation begins with a look for workers that have joined."""
MAX_INLINE = 2**16
"""Maximum number of bytes of the arrays that one computation sends through the scheduler: a message of this size takes less time
than the two further messages that an array sent to a worker needs."""
FAN_OUT = 4
"""Number of workers to which one worker passes on an array that all need."""
CLOSED = "No shard could be computed: the client is closed. Keep it open while the objective is used."

Held = list[Future | None]
"""What the workers hold for each shard; None: nothing yet."""


class LateError(Exception):
    """The time limit has passed while data were on their way to these workers, or to all if there are none."""

    def __init__(self, workers: Sequence[str] = ()):
        super().__init__(*workers)
        self.workers = frozenset(workers)


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
        self._workers: list[str] = []
        self._looked = self._deadline = -np.inf
        self._needed: set[str] = set()

    def workers(self) -> list[str]:
        """Return the addresses of the workers, in a fixed order, as of the last look; wait for the first one if there is none."""
        patience = MAX_WAIT if self.timeout is None else min(self.timeout, MAX_WAIT)
        deadline = monotonic() + patience
        while True:
            with suppress(LateError):
                if not self._workers:
                    self._look()
            if self._workers:
                return self._workers
            if monotonic() > deadline:
                raise ShardError(
                    f"No shard could be computed: the cluster has had no worker for {patience:g} s. Start workers."
                )
            heartbeat()
            sleep(POLLING)

    def _look(self) -> None:
        """Find out which workers there are."""
        scheduler = self.client.scheduler
        if scheduler is None:
            raise ShardError(CLOSED)
        self._workers = sorted(self._bounded(scheduler.ncores))
        self._looked = monotonic()

    def _bounded(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of a call to the scheduler, within the time limit of the computation that runs, if it has one."""
        if self._deadline == -np.inf:
            return self.client.sync(call)
        try:
            return self.client.sync(call, callback_timeout=self._left())
        except TimeoutError:
            if self._left():
                raise  # of the network
            raise LateError from None

    def _left(self) -> float:
        """Return the seconds until the time limit of the computation that runs."""
        return max(self._deadline - monotonic(), 0.0)

    def send(self, blocks: Sequence[np.ndarray], workers: Sequence[str] | None = None, copies: int = 1) -> list[Any]:
        """Send arrays to the workers, each to one of them; others fetch it from there when a task needs it.

        Arrays that are arguments of tasks pass through the scheduler. That is fast for small ones, and slow for large ones.

        Parameters
        ----------
        blocks : sequence of ndarray
        workers : sequence of str, default None
            The worker of each array; None: Dask chooses.
        copies : int, default 1
            Number of tasks that need each array.

        Returns
        -------
        list
            Arguments of tasks: futures, or the arrays themselves if all copies have at most MAX_INLINE bytes.

        Raises
        ------
        LateError
            If some arrays have not arrived when the time limit has passed; it names their workers.
        """
        if copies * sum(getattr(block, "nbytes", np.inf) for block in blocks) <= MAX_INLINE:
            return list(blocks)
        places: dict[str | None, list[int]] = {}
        for i in range(len(blocks)):
            places.setdefault(None if workers is None else workers[i], []).append(i)

        async def scatter() -> dict[int, Future]:
            sending = {
                asyncio.ensure_future(
                    self.client.scatter(
                        [blocks[i] for i in chosen],
                        workers=None if place is None else [place],
                        hash=False,
                        asynchronous=True,
                    )
                ): place
                for place, chosen in places.items()
            }
            done, late = await asyncio.wait(sending, timeout=None if self._deadline == -np.inf else self._left())
            for task in late:
                task.cancel()
            if late:
                raise LateError([place for task in late if (place := sending[task]) is not None])
            found: dict[int, Future] = {}
            for task in done:
                try:
                    found.update(zip(places[sending[task]], task.result(), strict=True))
                except KeyError:  # by this, the scheduler says that it no longer has such a worker
                    raise ConnectionError(f"the worker {sending[task]} is gone") from None
            return found

        sent = self.client.sync(scatter)
        return self._noted([sent[i] for i in range(len(blocks))])

    def share(self, blocks: Sequence[np.ndarray], workers: Sequence[str]) -> list[dict[str, Any]]:
        """Send arrays that all of these workers need: to the first one, from where they are passed on along a tree.

        Returns
        -------
        list of dict
            For each array, the argument of the tasks on each worker.
        """
        sent = self.send(blocks, [workers[0]] * len(blocks), copies=len(workers))
        shared = [{workers[0]: argument} for argument in sent]
        for j, worker in enumerate(workers[1:], start=1):
            above = [known[workers[(j - 1) // FAN_OUT]] for known in shared]
            if j * FAN_OUT + 1 < len(workers) and any(isinstance(argument, Future) for argument in above):
                above = self.map(passed_on, above, workers=[worker] * len(above))
            for known, argument in zip(shared, above, strict=True):
                known[worker] = argument
        return shared

    def map(self, function: Callable[..., Any], *args: Sequence[Any], workers: Sequence[str]) -> list[Future]:
        """Start a task for each shard, with its arguments, on its worker; one message to the scheduler for all of them."""
        name = f"{getattr(function, '__name__', 'task')}-{uuid4().hex}"
        keys = [f"{name}-{i}" for i in range(len(workers))]
        self._needed.update(workers)
        with dask.annotate(workers=dict(zip(keys, ([worker] for worker in workers), strict=True)).get):
            return self._noted(self.client.map(function, *args, key=keys, pure=False))

    def submit(self, function: Callable[..., Any], *args: Any) -> Future:
        """Start a task on any worker."""
        return self._noted([self.client.submit(function, *args, pure=False)])[0]

    def _noted(self, futures: Sequence[Future]) -> list[Future]:
        self._made.update(futures)
        return list(futures)

    def free(self) -> None:
        """Stop what is computed, and free the memory of the workers, although objects here still refer to it.

        What is needed afterwards is loaded or computed again, as after the death of all workers.
        """
        if self._open():
            self.client.cancel(list(self._made), force=True)

    def _open(self) -> bool:
        return self.client.status not in ("closing", "closed")

    def results(
        self, start: Callable[[], Sequence[Future]], late: Callable[[Sequence[Future]], str] | None = None
    ) -> list[Any]:
        """Return the results of the tasks that ``start`` submits; call it again if workers have died.

        ``late`` names in messages what is not finished, given the tasks; None: :func:`unfinished`, for one task for each shard.
        """
        late = unfinished if late is None else late
        for attempt in range(1, MAX_ATTEMPTS + 1):
            heartbeat()
            if not self._open():
                raise ShardError(CLOSED)
            futures: Sequence[Future] = ()
            try:
                self._begin(again=attempt > 1)
                futures = start()
                return self._gathered(futures)
            except (ShardError, BudgetEnd):
                raise
            except LateError:
                names = late(futures)
                with suppress(TimeoutError, OSError):
                    self.client.sync(lambda: self.client.cancel(list(futures), asynchronous=True), callback_timeout=1)  # noqa: B023
                raise ShardError(no_answer(names, self.timeout)) from None
            except LOST as error:
                if attempt == MAX_ATTEMPTS:
                    raise ShardError(
                        f"{late(futures)} could not be computed in {MAX_ATTEMPTS} attempts, in each of which a worker "
                        f"died or could not be reached ({explain(error)}): look at the logs of the workers; shards may be "
                        "larger than their memory."
                    ) from None
                sleep(min(POLLING * 2 ** (attempt - 1), MAX_PAUSE))  # until the scheduler has noticed as well
            except Exception as error:
                if self._open():
                    raise ShardError(f"{late(futures)} could not be computed ({explain(error)}).") from error
            finally:
                self._deadline = -np.inf
        raise ShardError("No shard could be computed: the client was closed while it was used.")

    def _begin(self, again: bool) -> None:
        """Set the time limit of an attempt, and look for workers if some may have died or joined."""
        self._needed = set()
        self._limit()
        if again or monotonic() > self._looked + REFRESH:
            self._look()
        if not self._workers:
            self.workers()
            self._limit()

    def _limit(self) -> None:
        self._deadline = -np.inf if self.timeout is None else monotonic() + self.timeout

    def _gathered(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results of tasks, before the time limit. Raise ConnectionError if a worker that must run one is gone.

        Raise ShardError if there is no worker for MAX_WAIT seconds. A worker may also die after its tasks and before their
        results are here: Dask itself would then wait without end.
        """
        gathering: asyncio.Task[list[Any]] | None = None

        def gather() -> Awaitable[list[Any]]:
            return self.client.gather(list(futures), asynchronous=True)

        async def all_of_them() -> list[Any]:
            with self.client.as_current():
                await wait(list(futures))
            return await gather()

        async def finished(seconds: float) -> bool:
            nonlocal gathering
            if gathering is None:  # one for all polls: each wait of Dask that times out leaves a task for each future
                gathering = asyncio.ensure_future(all_of_them())
            await asyncio.wait([gathering], timeout=seconds)
            return gathering.done()

        try:
            while True:
                left = np.inf if self._deadline == -np.inf else self._left()
                if self.client.sync(finished, min(POLLING, left)):
                    assert gathering is not None
                    return list(gathering.result())
                heartbeat()
                if any(future.status == "error" for future in futures):
                    return list(self._bounded(gather))  # raises the error, and does not wait for other tasks
                if left == 0:
                    raise LateError
                self._look()
                gone = self._needed.difference(self._workers)
                if gone:
                    raise ConnectionError(f"the worker {min(gone)} is gone")
                self.workers()
        finally:
            if gathering is not None:
                with suppress(RuntimeError):  # the client is closed, and its loop with it
                    gathering.get_loop().call_soon_threadsafe(gathering.cancel)


def passed_on(block: np.ndarray) -> np.ndarray:
    """Return an array, which the worker holds from then on."""
    return block


def lost(future: Future | None) -> bool:
    """Return whether what a future stands for must be computed again."""
    return future is None or future.status not in ("finished", "pending")


def no_answer(names: str, timeout: float | None) -> str:
    """Say that shards, or what else is named, are late."""
    return f"{names} gave no answer within {timeout:g} s: restart the workers that hang or can't be reached, or raise timeout."


def unfinished(futures: Sequence[Future], names: Sequence[Any] | None = None, what: str = "Shard") -> str:
    """Name the shards, or what else the tasks are about, whose tasks are not finished; ``names``: None for 0, 1, ..."""
    names = range(len(futures)) if names is None else names
    return named([name for name, future in zip(names, futures, strict=False) if future.status != "finished"], what)


def named(late: Sequence[Any], what: str = "Shard") -> str:
    """Return "Shard 1" or "Shards 1, 2"; "A shard" for none."""
    if not late:
        return f"A {what.lower()}"
    return f"{what} {late[0]}" if len(late) == 1 else f"{what}s {', '.join(map(str, late))}"
