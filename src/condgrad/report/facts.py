"""What a reader must know to run it again: versions and machine."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

from condgrad import __version__


def surroundings() -> dict[str, str]:
    """Versions, machine and date, for the facts of a report."""
    return {
        "condgrad": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba")},
        "machine": machine(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores"


def _processor() -> str:
    """Its trade name where the system tells, as Linux does."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "processor not known"
