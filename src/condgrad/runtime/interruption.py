"""Ctrl-C and SIGTERM: exceptions that carry what was reached, and signals that wait until something short is done."""

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
    """SIGTERM during a run, where the program does not handle the signal itself.

    When it leaves the outermost run the signal is sent again, with its default action: the process ends, as if the run had not
    taken the signal over.
    """


ACTIONS = ("raise", "return")
"""What a run may do after a signal."""


def default_action() -> str:
    """In an interactive session "return": somebody wants to look at what was reached. In a script "raise": it has to end."""
    ipython = sys.modules.get("IPython")
    session = (
        hasattr(sys, "ps1") or sys.flags.interactive or (ipython is not None and ipython.get_ipython() is not None)
    )
    return "return" if session else "raise"


def attach(interruption: KeyboardInterrupt, **reached: Any) -> None:
    """Put what was reached on the exception, as attributes.

    The exception stays the same one: if it were a subclass and nobody caught it, Python would not end with the exit status of
    Ctrl-C, by which a shell knows that its own loop has to end.
    """
    vars(interruption).update(reached)


def said(interruption: KeyboardInterrupt) -> str:
    return "Terminated by SIGTERM." if isinstance(interruption, Terminated) else "Interrupted from the keyboard."


@contextmanager
def terminable(deliver: bool = False) -> Iterator[None]:
    """SIGTERM raises ``Terminated`` here, where it would end the process.

    A program that handles or ignores it keeps doing so, and outside of the main thread Python lets nobody handle signals. With
    ``deliver``, the signal is sent again, with its default action, when a ``Terminated`` leaves the block: the process ends.
    Where the block lies inside another one, that is for the other to do.
    """
    if not _in_charge() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
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
        raise  # also where the signal is blocked
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def held_back() -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM wait until the block is done, then come, unless it takes them off the list: for what is short and
    must not be lost."""
    waiting: list[int] = []
    if not _in_charge():
        yield waiting
        return
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    ours = {number: handler for number, handler in before.items() if handler is not None}  # None: not set from Python
    for number in ours:
        signal.signal(number, lambda signum, frame: waiting.append(signum))
    try:
        yield waiting
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        for signum in dict.fromkeys(waiting):
            signal.raise_signal(signum)


_owner = 0
"""The process whose run handles SIGTERM."""


def _terminate(signum: int, frame: Any) -> None:
    if os.getpid() != _owner:  # forked inside a run, and ended before the handler could be reset
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    raise Terminated


def _default_in_child() -> None:
    """A process that is forked inside a run is not the run: SIGTERM ends it, as it would have without one."""
    if signal.getsignal(signal.SIGTERM) is _terminate and _in_charge():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_default_in_child)


def _in_charge() -> bool:
    return threading.current_thread() is threading.main_thread()
