"""SIGTERM as Ctrl-C, and signals that wait until something short is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """A SIGTERM, in the form in which Python tells of Ctrl-C."""


def said(interruption: KeyboardInterrupt) -> str:
    return "Terminated by SIGTERM." if isinstance(interruption, Terminated) else "Interrupted from the keyboard."


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises ``Terminated`` here, where it would end the process.

    A program that handles or ignores it keeps doing so, and outside of the main thread Python lets nobody handle signals.
    """
    if not _in_charge() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
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


def _terminate(signum: int, frame: Any) -> None:
    raise Terminated


def _in_charge() -> bool:
    return threading.current_thread() is threading.main_thread()
