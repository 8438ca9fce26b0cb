"""Loops that are shared by threads: every part once, in any thread, after a fork and after an interruption too."""

import os
import threading
import time

import pytest

from condgrad.kernels import thread_pool
from condgrad.kernels.thread_pool import share


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 1000])
@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_the_parts_make_up_the_loop(length: int, threads: int) -> None:
    parts: list[tuple[int, int]] = []
    share(lambda begin, end: parts.append((begin, end)), length, threads)
    assert sorted(i for begin, end in parts for i in range(begin, end)) == list(range(length))


def test_several_threads_work_at_the_same_time() -> None:
    """Each part waits for the other one."""
    together = threading.Barrier(2, timeout=60)
    share(lambda begin, end: together.wait(), 2, 2)


def test_a_part_is_finished_when_share_returns() -> None:
    done = []

    def part(begin: int, end: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.05)
        done.append(begin)

    for _ in range(5):
        done.clear()
        share(part, 4, 2)
        assert sorted(done) == [0, 1, 2, 3]


def test_an_interruption_leaves_the_pool_usable() -> None:
    def part(begin: int, end: int) -> None:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        share(part, 100, 2)
    test_the_parts_make_up_the_loop(100, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_starts_its_own_threads() -> None:
    """The parent's are not there: without new ones the child would wait for ever."""
    share(lambda begin, end: None, 2, 2)
    assert thread_pool._pools
    if (child := os.fork()) == 0:
        together = threading.Barrier(2, timeout=60)
        share(lambda begin, end: together.wait() and None, 2, 2)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
