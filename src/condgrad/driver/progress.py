"""Progress line with the estimated remaining time, for runs of more than two seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from math import isfinite
from time import monotonic
from typing import TextIO

from condgrad.protocols import Record, Stop

SWITCH = "CONDGRAD_PROGRESS"
"""Environment variable: 0 switches off all progress displays, in this process and its child processes."""
EVERY_ON_TERMINAL, EVERY_ELSEWHERE = 0.2, 10.0
"""Seconds between two updates: on a terminal one line is rewritten, elsewhere each update is a new line."""


def switched_off() -> bool:
    """Whether the environment variable switches progress off."""
    return os.environ.get(SWITCH, "").strip().lower() in ("0", "off", "no", "false")


class Progress:
    """Callback that shows progress: rewrites one line on a terminal, elsewhere writes a line every ten seconds.

    Parameters
    ----------
    title : str
        Beginning of the line.
    stop : Stop
        Stopping rule, which estimates the progress.
    stream : text file object, optional
        By default stderr.
    quiet_for : float, default 2.0
        Seconds before the first line.
    """

    def __init__(self, title: str, stop: Stop, stream: TextIO | None = None, quiet_for: float = 2.0):
        self.title, self.stop, self.stream = title, stop, stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.begun = monotonic()
        self.due = self.begun + quiet_for
        self.wrote = False

    def __call__(self, record: Record, trace: Sequence[Record]) -> None:
        now = monotonic()
        if now < self.due:
            return
        self.due = now + (EVERY_ON_TERMINAL if self.terminal else EVERY_ELSEWHERE)
        line = self.line(record, self.stop.progress(record, trace), now - self.begun)
        self.stream.write(f"\r\x1b[K{line}" if self.terminal else line + "\n")
        self.stream.flush()
        self.wrote = True

    def line(self, record: Record, share: float, elapsed: float) -> str:
        """Text of the line; ``share`` is the estimated progress from 0 to 1."""
        phase = "" if record.phase == "main" else f"{record.phase}, "
        parts = [f"{self.title}: {phase}step {record.k}"]
        if isfinite(record.fun):
            parts.append(f"F {record.fun:.6g}")
        if isfinite(record.mapping):
            parts.append(f"mapping^2 {record.mapping:.2e}")
        parts += [f"LO {record.lo}"] + ([f"UB {record.ub}"] if record.ub else [])
        left = f", about {duration(elapsed * (1 - share) / share)} left" if share > 0.01 else ""
        return "  ".join(parts) + f"  [{duration(elapsed)}{left}]"

    def close(self) -> None:
        """End the line on a terminal."""
        if self.wrote and self.terminal:
            self.stream.write("\n")


def duration(seconds: float) -> str:
    """Duration as text in seconds, minutes or hours."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
