"""Workarounds for numba's threading layers: kernels in forked processes and in several threads.

GNU OpenMP (``omp``, the usual layer on Linux) has a pool of threads that a forked process does not inherit. numba's guard
against this sends SIGTERM to the child of a process that has run a parallel loop, as soon as the child runs one. With a single
thread OpenMP needs no pool, so kernels run on one thread in such a child; their bits do not depend on the number of threads.

The layer ``workqueue`` aborts the process if two threads run kernels at the same time, so with this layer a lock serialises them.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_lock = threading.RLock()
_forked = False
"""True if this process was forked from one with an OpenMP thread pool."""
_guard_lifted_in: int | None = None
"""Id of the process in which numba's guard was disabled."""


class ForkWarning(UserWarning):
    """The compiled loops run on one thread, because this process was forked from one that had already run some."""


def threads(numba: Any) -> int:
    """Return the maximum number of threads of a kernel that is called from this thread."""
    if _forked:
        _lift_guard(numba)
        numba.set_num_threads(1)
    return int(numba.get_num_threads())


def exclusive(numba: Any) -> AbstractContextManager[Any]:
    """Context manager around a kernel: a lock if the layer does not allow two kernels at the same time."""
    return _lock if numba.threading_layer() == "workqueue" else nullcontext()


def _lift_guard(numba: Any) -> None:
    """Launch numba's OpenMP layer again, with one thread, so that its guard accepts this process.

    The guard compares process ids, whatever the number of threads. Threads that are started later get one OpenMP thread too.
    """
    global _guard_lifted_in
    if _guard_lifted_in == os.getpid():
        return
    omp = sys.modules["numba.np.ufunc.omppool"]
    if not hasattr(omp, "launch_threads"):
        raise RuntimeError(
            f"This process was forked from one that has run parallel loops, and numba {numba.__version__} can't run them in it: "
            "start processes by multiprocessing.get_context('spawn')."
        )
    ctypes.CFUNCTYPE(None, ctypes.c_int)(omp.launch_threads)(1)
    _guard_lifted_in = os.getpid()
    if numba.config.NUMBA_NUM_THREADS > 1:
        warnings.warn(
            "This process was forked from one that has run parallel loops, so they run on one thread here; results are the same. "
            "To use more threads, start processes by multiprocessing.get_context('spawn').",
            ForkWarning,
            stacklevel=2,
        )


def _after_fork() -> None:
    global _forked, _lock
    _lock = threading.RLock()  # a thread of the parent may have held the lock
    omp = sys.modules.get("numba.np.ufunc.omppool")
    if omp is not None and getattr(omp, "openmp_vendor", "") == "GNU":
        _forked = _forked or _launched()


def _launched() -> bool:
    """Whether numba had started OpenMP when this process was forked."""
    try:
        return bool(sys.modules["numba"].threading_layer() == "omp")
    except (KeyError, ValueError):  # numba is not imported, or no parallel loop has run
        return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
