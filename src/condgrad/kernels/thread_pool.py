"""Threads that share a loop. They are kept for the next loop; a forked process starts its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise

PARTS_PER_THREAD = 4
"""A loop is divided into this number of parts for each thread, so that one with longer rows does not delay the rest."""

_pools: dict[int, ThreadPoolExecutor] = {}
"""Pools by their number of threads. The thread that calls works too, so a pool has one thread less than a loop."""


def share(part: Callable[[int, int], None], length: int, threads: int) -> None:
    """Call ``part(begin, end)`` for parts that make up range(length), on this number of threads.

    Parameters
    ----------
    part : callable
        Computes a part of the loop, without the GIL. It raises nothing.
    length : int
        Length of the loop.
    threads : int
        Number of threads, with the calling one.
    """
    if threads == 1 or length < 2:
        part(0, length)
        return
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads - 1, thread_name_prefix="condgrad")
    count = min(length, PARTS_PER_THREAD * threads)
    ends = [length * i // count for i in range(count + 1)]
    left = list(pairwise(ends))

    def work() -> None:
        while True:
            try:
                begin, end = left.pop()  # one operation, which no other thread can interrupt
            except IndexError:
                return
            part(begin, end)

    others = [_pools[threads].submit(work) for _ in range(threads - 1)]
    work()
    wait(others)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)
