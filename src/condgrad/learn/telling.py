"""Progress of a fit that takes several runs of the engine."""

from __future__ import annotations

import sys
from time import monotonic

from condgrad.driver.progress import duration


def silent(line: str, rounds: int) -> None:
    pass


class Telling:
    """A line on stderr after each round, once two seconds have passed, with a guess of the time left."""

    def __init__(self) -> None:
        self.begun = self.last = monotonic()
        self.said = 0.0

    def __call__(self, line: str, rounds: int) -> None:
        now = monotonic()
        took, self.last = now - self.last, now
        if now - self.begun > 2 and now - self.said > 1:
            self.said = now
            left = duration(took * rounds)
            print(
                f"RobustCompletion: {line}  [{duration(now - self.begun)}, about {left} left]",
                file=sys.stderr,
                flush=True,
            )
