"""Progress of a fit that takes several runs of the engine: on stderr where it is asked for, and to the logger always."""

from __future__ import annotations

import logging
import sys
from time import monotonic

from condgrad.driver.progress import EVERY_ELSEWHERE, duration, switched_off

logger = logging.getLogger(__name__)

QUIET_FOR, EVERY_ON_TERMINAL = 2.0, 1.0
"""Seconds before the first line on stderr, and between two lines on a terminal."""


class Telling:
    """Logs each round at level INFO.

    With ``shown`` it also writes a line to stderr, once two seconds have passed, with an estimate of the remaining time; not
    where the logger takes INFO, so that no line is written twice.
    """

    def __init__(self, shown: bool) -> None:
        self.shown = shown and not switched_off() and not logger.isEnabledFor(logging.INFO)
        self.begun = self.last = monotonic()
        self.due = self.begun + QUIET_FOR

    def __call__(self, line: str, rounds: int) -> None:
        logger.info("RobustCompletion: %s", line)
        if not self.shown:
            return
        now = monotonic()
        took, self.last = now - self.last, now
        if now > self.due:
            self.due = now + (EVERY_ON_TERMINAL if sys.stderr.isatty() else EVERY_ELSEWHERE)
            remaining = duration(took * rounds)
            print(
                f"RobustCompletion: {line}  [{duration(now - self.begun)}, about {remaining} left]",
                file=sys.stderr,
                flush=True,
            )
