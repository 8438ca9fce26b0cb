"""The memory of this process."""

from __future__ import annotations

import os
import sys
from time import monotonic

EVERY = 0.01
"""Seconds for which a reading is good: a budget is asked before each oracle call, and some take microseconds."""

_last = (-1.0, 0.0)


def resident() -> float:
    """Megabytes (10^6 bytes) of this process in memory now; where the system does not tell, the most there have been."""
    global _last
    now = monotonic()
    if not 0 <= now - _last[0] < EVERY:
        _last = (now, _read())
    return _last[1]


def _read() -> float:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, ValueError):
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
