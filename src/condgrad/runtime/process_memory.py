"""Resident memory of this process, and a function that returns freed memory to the operating system."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from time import monotonic

CACHE_SECONDS = 0.01
"""Seconds for which a reading is reused: budgets are checked before each oracle call, and some calls take microseconds."""

_last_reading = (-1.0, 0.0)


def resident() -> float:
    """Resident memory in megabytes (10^6 bytes); on systems without /proc, the peak of the resident memory."""
    global _last_reading
    now = monotonic()
    if not 0 <= now - _last_reading[0] < CACHE_SECONDS:
        _last_reading = (now, _read())
    return _last_reading[1]


def _read() -> float:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, ValueError):
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def return_free_memory() -> None:
    """Return freed memory to the operating system, where the C library can (glibc).

    Otherwise the gaps that temporary blocks of some megabytes leave in the heap stay part of the process. Takes milliseconds.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; on Windows None is no library
        return None
