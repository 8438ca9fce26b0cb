"""The watch of a run: it stands still while metrics are taken and listeners speak."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time


class Watch:
    def __init__(self, seconds: float = 0.0, cpu: float = 0.0, wall: float = 0.0) -> None:
        """Begins at what a run had spent when it was saved."""
        clock, process = now()
        self._begun, self._first = (clock - seconds, process - cpu), clock - wall
        self._stopped: tuple[float, float] | None = None

    @property
    def seconds(self) -> float:
        return (self._stopped or now())[0] - self._begun[0]

    @property
    def wall(self) -> float:
        """Seconds since the run began, pauses and all."""
        return now()[0] - self._first

    @property
    def cpu(self) -> float:
        return (self._stopped or now())[1] - self._begun[1]

    @contextmanager
    def paused(self) -> Iterator[None]:
        if self._stopped is not None:  # it stands still already
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
    """Seconds by the clock, and of CPU time of all threads."""
    return perf_counter(), process_time()
