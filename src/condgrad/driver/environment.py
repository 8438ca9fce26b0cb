"""The environment of a run, which a reader needs to repeat it: versions, threads and machine."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from condgrad import kernels

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
"""The variables that limit a BLAS's threads; the first that is set holds."""


def environment() -> dict[str, str]:
    """Versions, machine and date, for the facts of a report."""
    return {**versions(), "machine": machine(), "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


@cache
def _versions() -> dict[str, str]:
    from condgrad import __version__  # which is set when all else is imported

    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"condgrad": __version__, "Python": platform.python_version(), **libraries}


def versions() -> dict[str, str]:
    return dict(_versions())


def threads() -> dict[str, int | None]:
    """Of the compiled loops (None before their first use) and of the BLAS (None where nothing limits it)."""
    return {"numba": kernels.threads(), "blas": _blas_threads()}


def _blas_threads() -> int | None:
    known: Any = sys.modules.get("threadpoolctl")  # whoever has loaded it may have changed them
    if known is not None:
        found = [library["num_threads"] for library in _libraries(known).info() if library["user_api"] == "blas"]
        return max(found, default=None)
    limits = (os.environ.get(name, "") for name in BLAS_THREADS)
    return next((int(limit) for limit in limits if limit.isdigit()), None)


@cache
def _libraries(threadpoolctl: Any) -> Any:
    """The thread pools of the process: to look for them takes 7 ms, longer than a short run; to ask their size is free."""
    return threadpoolctl.ThreadpoolController()


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores"


def _processor() -> str:
    """Its trade name where the system tells, as Linux does."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "processor not known"
