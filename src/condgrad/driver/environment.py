"""Environment of a run: versions, threads and machine. It is recorded so that a result can be reproduced."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from condgrad import kernels

BLAS_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
"""Environment variables that limit the threads of the BLAS. The first one that is set applies."""


def environment() -> dict[str, str]:
    """Versions, machine and date, as a report lists them.

    Returns
    -------
    dict of str to str
    """
    return {**versions(), "machine": machine(), "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


@cache
def _versions() -> dict[str, str]:
    from condgrad import __version__  # imported here, because condgrad sets it after it has imported this module

    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"condgrad": __version__, "Python": platform.python_version(), **libraries}


def versions() -> dict[str, str]:
    """Versions of condgrad, Python and the numerical libraries."""
    return dict(_versions())


def threads() -> dict[str, int | None]:
    """Number of threads of the compiled loops (None before their first use) and of the BLAS (None if it is not limited)."""
    return {"numba": kernels.threads(), "blas": _blas_threads()}


def _blas_threads() -> int | None:
    # a program may have changed the number of threads with threadpoolctl: ask this package, if it is imported
    threadpoolctl: Any = sys.modules.get("threadpoolctl")
    if threadpoolctl is not None:
        found = [
            library["num_threads"] for library in _thread_pools(threadpoolctl).info() if library["user_api"] == "blas"
        ]
        return max(found, default=None)
    limits = (os.environ.get(name, "") for name in BLAS_THREAD_VARIABLES)
    return next((int(limit) for limit in limits if limit.isdigit()), None)


@cache
def _thread_pools(threadpoolctl: Any) -> Any:
    """Thread pools of the process. They are cached, because finding them takes 7 ms, which is longer than a short run."""
    return threadpoolctl.ThreadpoolController()


def machine() -> str:
    """Operating system, architecture, processor and number of cores."""
    return f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores"


def _processor() -> str:
    """Name of the processor: on Linux the model name, elsewhere the answer of the platform module."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "processor not known"
