"""Signals from a long computation to the run that called it: heartbeats, and the errors of inexact oracles.

An oracle returns a point and nothing else, so other information needs another way. A loop that can run long without an oracle
call calls ``heartbeat()`` in each pass: then the run shows progress, or ends at a deadline. An oracle that did not reach its
accuracy calls ``report_inexact``, and the certificates of the run include the error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class InexactOracleWarning(UserWarning):
    """A linear oracle's answer is known only up to a stated error."""


class Inexact(NamedTuple):
    """Report of an inexact answer: <direction, answer> is above the minimum by at most ``error``.

    The sentence is empty if the error is within the accuracy that the oracle states.
    """

    error: float
    sentence: str


class _Receiver(NamedTuple):
    on_heartbeat: Callable[[], None] | None
    reports: list[Inexact]


_RECEIVERS: ContextVar[tuple[_Receiver, ...]] = ContextVar("receivers", default=())


@contextmanager
def receiving(
    on_heartbeat: Callable[[], None] | None = None, reports: list[Inexact] | None = None, alone: bool = False
) -> Iterator[list[Inexact]]:
    """Receive the heartbeats and reports of this thread inside the block. Reports are appended to the yielded list.

    ``on_heartbeat`` may raise an exception, which ends the computation. With ``alone``, the receivers of enclosing blocks receive
    nothing; this is used for a run inside a run.
    """
    receiver = _Receiver(on_heartbeat, [] if reports is None else reports)
    token = _RECEIVERS.set((receiver,) if alone else (*_RECEIVERS.get(), receiver))
    try:
        yield receiver.reports
    finally:
        _RECEIVERS.reset(token)


def worst(reports: list[Inexact]) -> float:
    """Largest reported error; 0 if every answer was exact."""
    return max((report.error for report in reports), default=0.0)


def heartbeat() -> None:
    """Called in each pass of a loop that may run long without an oracle call."""
    for receiver in _RECEIVERS.get():
        if receiver.on_heartbeat is not None:
            receiver.on_heartbeat()


def report_inexact(error: float, sentence: str) -> None:
    """Called by a linear oracle whose answer may be off by ``error``. Without a receiver, the report becomes a warning.

    The sentence is empty if the error is within the accuracy that the oracle states. Certificates then include the error without
    a warning.
    """
    receivers = _RECEIVERS.get()
    for receiver in receivers:
        receiver.reports.append(Inexact(error, sentence))
    if not receivers and sentence:
        warnings.warn(sentence, InexactOracleWarning, stacklevel=2)
