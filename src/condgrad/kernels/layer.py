"""What numba's threading layers can't do, and how the loops work all the same.

GNU's OpenMP (``omp``, the usual layer on Linux) keeps a pool of threads, which a forked process does not have. numba guards
against its use: in the child of a process that has run a parallel loop, the next one sends SIGTERM to the child. On a single
thread OpenMP needs no pool, so loops run on one thread there; their bits do not depend on the number of threads.

The layer ``workqueue`` ends the process when two threads run loops at the same time: with this layer they take turns.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_turn = threading.RLock()
_forked = False
"""Whether this process was forked from one whose OpenMP threads it does not have."""
_unguarded: int | None = None
"""The process in which numba's guard was lifted."""


class ForkWarning(UserWarning):
    """The compiled loops run on one thread, because this process was forked from one that had already run some."""


def threads(numba: Any) -> int:
    """How many threads a loop that is called from this thread may use."""
    if _forked:
        _lift_guard(numba)
        numba.set_num_threads(1)
    return int(numba.get_num_threads())


def exclusive(numba: Any) -> AbstractContextManager[Any]:
    """Around a loop: one at a time, where the layer does not allow two."""
    return _turn if numba.threading_layer() == "workqueue" else nullcontext()


def _lift_guard(numba: Any) -> None:
    """Have numba take this process for the one that began to use OpenMP: its guard compares process ids, whatever the number of
    threads. Launched again with one thread, OpenMP also gives one to threads that begin later."""
    global _unguarded
    if _unguarded == os.getpid():
        return
    omp = sys.modules["numba.np.ufunc.omppool"]
    if not hasattr(omp, "launch_threads"):
        raise RuntimeError(
            f"This process was forked from one that has run parallel loops, and numba {numba.__version__} can't run them in it: "
            "start processes by multiprocessing.get_context('spawn')."
        )
    ctypes.CFUNCTYPE(None, ctypes.c_int)(omp.launch_threads)(1)
    _unguarded = os.getpid()
    if numba.config.NUMBA_NUM_THREADS > 1:
        warnings.warn(
            "This process was forked from one that has run parallel loops, so they run on one thread here; results are the same. "
            "To use more threads, start processes by multiprocessing.get_context('spawn').",
            ForkWarning,
            stacklevel=2,
        )


def _after_fork() -> None:
    global _forked, _turn
    _turn = threading.RLock()  # another thread of the parent may have held it
    omp = sys.modules.get("numba.np.ufunc.omppool")
    if omp is not None and getattr(omp, "openmp_vendor", "") == "GNU":
        _forked = _forked or _launched()


def _launched() -> bool:
    """Whether numba had begun to use OpenMP when this process was forked."""
    try:
        return bool(sys.modules["numba"].threading_layer() == "omp")
    except (KeyError, ValueError):  # numba is not imported, or no parallel loop has run
        return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
