"""The watch of a run: it stands still while metrics are taken and listeners speak."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time


class Watch:
    def __init__(self) -> None:
        self._wall, self._cpu = perf_counter(), process_time()

    @property
    def seconds(self) -> float:
        return perf_counter() - self._wall

    @property
    def cpu(self) -> float:
        return process_time() - self._cpu

    @contextmanager
    def paused(self) -> Iterator[None]:
        wall, cpu = perf_counter(), process_time()
        try:
            yield
        finally:
            self._wall += perf_counter() - wall
            self._cpu += process_time() - cpu
