"""Resident memory of this process, and a function that returns freed memory to the operating system."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from time import monotonic

CACHE_SECONDS = 0.01
"""Seconds for which a measurement of the memory is reused. Budgets are checked before each oracle call, and some calls take only
microseconds."""

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
    """Return freed memory to the operating system, if the C library can do this (glibc).

    Without this call, temporary blocks of some megabytes leave gaps in the heap, which remain memory of the process. The call
    takes milliseconds.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; on Windows CDLL(None) fails
        return None
