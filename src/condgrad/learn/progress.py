"""Progress messages of a fit that takes several runs of the solver. They are logged, and on request also written to stderr."""

from __future__ import annotations

import logging

from condgrad.runtime.progress import ProgressLine, duration, switched_off

logger = logging.getLogger(__name__)


class ProgressReporter:
    """Reports the rounds of a fit by log messages of level INFO.

    With ``shown``, lines with an estimate of the remaining time are also written to stderr, after the first two seconds. If the
    logger is enabled for INFO, nothing is written to stderr, because each line would appear twice.
    """

    def __init__(self, shown: bool) -> None:
        self.shown = shown and not switched_off() and not logger.isEnabledFor(logging.INFO)
        self.display = ProgressLine(rewrite=False)
        self.last = self.display.started

    def __call__(self, line: str, rounds: int) -> None:
        """Report a round that has ended. ``rounds`` is the number of rounds that may follow."""
        logger.info("RobustCompletion: %s", line)
        if not self.shown:
            return
        due = self.display.is_due()
        took, self.last = self.display.now - self.last, self.display.now
        if due:
            elapsed, remaining = duration(self.display.elapsed), duration(took * rounds)
            self.display.show(f"RobustCompletion: {line}  [{elapsed}, about {remaining} left]")
