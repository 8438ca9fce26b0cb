"""What a long computation says aside, to whoever listens: that it is alive, and that an answer is not exact.

The contracts have no room for either: an oracle answers with a point. So a loop that can go long without an oracle call says
``beat()`` in each pass, by which its run can show progress and end at a deadline; and an oracle that did not get as far as it
should says by how much its answer may be off, for the certificate to take in.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class InexactOracleWarning(UserWarning):
    """A linear oracle's answer is known to a stated error only."""


class Inexact(NamedTuple):
    """<direction, answer> may be above the minimum by at most ``error``."""

    error: float
    sentence: str


class _Ear(NamedTuple):
    beat: Callable[[], None] | None
    heard: list[Inexact]


_EARS: ContextVar[tuple[_Ear, ...]] = ContextVar("ears", default=())


@contextmanager
def listening(
    on_beat: Callable[[], None] | None = None, heard: list[Inexact] | None = None, alone: bool = False
) -> Iterator[list[Inexact]]:
    """What is said meanwhile, in this thread: answers that are not exact, in a list that grows; ``on_beat`` may raise.

    ``alone``: nobody else listens, as in a run inside a run.
    """
    ear = _Ear(on_beat, [] if heard is None else heard)
    token = _EARS.set((ear,) if alone else (*_EARS.get(), ear))
    try:
        yield ear.heard
    finally:
        _EARS.reset(token)


def worst(heard: list[Inexact]) -> float:
    """The largest error of what was heard; 0 where all was exact."""
    return max((one.error for one in heard), default=0.0)


def beat() -> None:
    """Said once a pass by loops that may go long without an oracle call."""
    for ear in _EARS.get():
        if ear.beat is not None:
            ear.beat()


def inexact(error: float, sentence: str) -> None:
    """Said by a linear oracle whose answer may be off by ``error``. Where nobody listens it is a warning: never silent."""
    ears = _EARS.get()
    for ear in ears:
        ear.heard.append(Inexact(error, sentence))
    if not ears:
        warnings.warn(sentence, InexactOracleWarning, stacklevel=2)
