"""Progress of a fit that takes several runs of the solver: always logged, and on request also written to stderr."""

from __future__ import annotations

import logging
import sys
from time import monotonic

from condgrad.driver.progress import EVERY_ELSEWHERE, duration, switched_off

logger = logging.getLogger(__name__)

SECONDS_TO_FIRST_LINE, SECONDS_BETWEEN_LINES = 2.0, 1.0
"""Seconds before the first line on stderr, and between two lines on a terminal."""


class ProgressReporter:
    """Log each round at level INFO.

    With ``shown`` and after two seconds, also write lines to stderr with an estimate of the remaining time, unless the logger is
    enabled for INFO: no line is written twice.
    """

    def __init__(self, shown: bool) -> None:
        self.shown = shown and not switched_off() and not logger.isEnabledFor(logging.INFO)
        self.started = self.last = monotonic()
        self.due = self.started + SECONDS_TO_FIRST_LINE

    def __call__(self, line: str, rounds: int) -> None:
        logger.info("RobustCompletion: %s", line)
        if not self.shown:
            return
        now = monotonic()
        took, self.last = now - self.last, now
        if now > self.due:
            self.due = now + (SECONDS_BETWEEN_LINES if sys.stderr.isatty() else EVERY_ELSEWHERE)
            remaining = duration(took * rounds)
            print(
                f"RobustCompletion: {line}  [{duration(now - self.started)}, about {remaining} left]",
                file=sys.stderr,
                flush=True,
            )
