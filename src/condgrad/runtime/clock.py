"""Clock of a run, which is paused while metrics are computed and callbacks run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time


class Watch:
    """Wall-clock time and CPU time of a run, without and with pauses.

    Parameters
    ----------
    seconds, cpu, wall : float, default 0.0
        Times at which the clock starts. A resumed run starts with the times in its checkpoint.
    """

    def __init__(self, seconds: float = 0.0, cpu: float = 0.0, wall: float = 0.0) -> None:
        clock, process = now()
        self._begun, self._first = (clock - seconds, process - cpu), clock - wall
        self._stopped: tuple[float, float] | None = None

    @property
    def seconds(self) -> float:
        """Wall-clock seconds without pauses."""
        return (self._stopped or now())[0] - self._begun[0]

    @property
    def wall(self) -> float:
        """Wall-clock seconds including pauses."""
        return perf_counter() - self._first

    @property
    def cpu(self) -> float:
        """CPU seconds of all threads without pauses."""
        return (self._stopped or now())[1] - self._begun[1]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock during the block. Blocks may be nested."""
        if self._stopped is not None:  # paused already
            yield
            return
        self._stopped = stopped = now()
        try:
            yield
        finally:
            again = now()
            self._begun = (self._begun[0] + again[0] - stopped[0], self._begun[1] + again[1] - stopped[1])
            self._stopped = None


def now() -> tuple[float, float]:
    """Readings of the wall clock and of the CPU time of all threads, in seconds."""
    return perf_counter(), process_time()
