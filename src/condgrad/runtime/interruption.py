"""Handling of Ctrl-C and SIGTERM: exceptions that carry partial results, and signals deferred during short critical sections."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """Raised by SIGTERM during a run, if the program has no handler of its own for this signal.

    When the exception leaves the outermost run, the signal is sent again with its default action, which ends the process.
    """


ACTIONS = ("raise", "return")
"""Values of ``on_interrupt``: what a run does after a signal."""


def default_action() -> str:
    """Default of ``on_interrupt``: "return" in an interactive session, where the user can inspect the result, else "raise"."""
    ipython = sys.modules.get("IPython")
    session = (
        hasattr(sys, "ps1") or sys.flags.interactive or (ipython is not None and ipython.get_ipython() is not None)
    )
    return "return" if session else "raise"


def attach(interruption: BaseException, **results: Any) -> None:
    """Add partial results to the exception, as attributes.

    The exception is not replaced by an exception of a subclass. If nobody caught an exception of a subclass, Python would not end
    with the exit status of Ctrl-C. A shell script needs this exit status to recognise that it must end too.
    """
    vars(interruption).update(results)


def describe_interruption(interruption: KeyboardInterrupt) -> str:
    """Sentence that names the signal."""
    return "Terminated by SIGTERM." if isinstance(interruption, Terminated) else "Interrupted from the keyboard."


@contextmanager
def raise_on_sigterm(deliver: bool = False) -> Iterator[None]:
    """Context in which SIGTERM raises ``Terminated`` instead of ending the process.

    The block changes nothing in three cases: if the program itself handles or ignores SIGTERM, outside the main thread (where
    Python does not allow signal handlers), and inside another such block.

    Parameters
    ----------
    deliver : bool, default False
        When ``Terminated`` leaves the block, send the signal again with its default action, which ends the process.
    """
    if not _in_main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    global _owner
    _owner = os.getpid()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except Terminated:
        if deliver:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
        raise  # reached if the signal is blocked
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def defer_signals() -> Iterator[list[int]]:
    """Defer Ctrl-C and SIGTERM until the end of the block, for short operations that must not be interrupted.

    Yields
    ------
    waiting : list of int
        Signals received so far. A signal that the block removes from the list is not delivered.
    """
    waiting: list[int] = []
    if not _in_main_thread():
        yield waiting
        return
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    # None: the handler was not installed from Python
    replaced = {number: handler for number, handler in before.items() if handler is not None}
    for number in replaced:
        signal.signal(number, lambda signum, frame: waiting.append(signum))
    try:
        yield waiting
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        for signum in dict.fromkeys(waiting):
            signal.raise_signal(signum)


_owner = 0
"""Id of the process that installed the handler of SIGTERM."""


def _terminate(signum: int, frame: Any) -> None:
    if os.getpid() != _owner:  # a process forked inside a run, which gets SIGTERM before its handler is reset
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    raise Terminated


def _default_in_child() -> None:
    """Restore the default action of SIGTERM in a process that is forked inside a run, so that SIGTERM ends the process."""
    if signal.getsignal(signal.SIGTERM) is _terminate and _in_main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_default_in_child)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
