"""Progress on stderr: one line that is rewritten on a terminal; elsewhere a new line every ten seconds."""

from __future__ import annotations

import os
import sys
from time import monotonic
from typing import TextIO

SWITCH = "CONDGRAD_PROGRESS"
"""Environment variable: 0 switches off all progress displays, in this process and its child processes."""
EVERY_ON_TERMINAL, EVERY_NEW_LINE, EVERY_ELSEWHERE = 0.2, 1.0, 10.0
"""Minimum number of seconds between two updates. In this order: of a line that is rewritten on a terminal, of new lines on a
terminal, and of new lines in a file."""
ERASE = "\r\x1b[K"
"""Moves to the beginning of the line of a terminal and erases the line."""


def switched_off() -> bool:
    """Whether the environment variable switches progress off."""
    return os.environ.get(SWITCH, "").strip().lower() in ("0", "off", "no", "false")


def duration(seconds: float) -> str:
    """Duration as text in seconds, minutes or hours."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class ProgressLine:
    """The line of one progress display.

    Parameters
    ----------
    stream : text file object, default None
        By default stderr.
    quiet_for : float, default 2.0
        Seconds before the first line.
    rewrite : bool, default True
        True: a terminal shows one line, which is rewritten. False: a terminal shows all lines, at most one a second.
    """

    def __init__(self, stream: TextIO | None = None, quiet_for: float = 2.0, rewrite: bool = True):
        self.stream = stream or sys.stderr
        terminal = self.stream.isatty()
        self.rewrite = terminal and rewrite
        self.interval = (EVERY_ON_TERMINAL if rewrite else EVERY_NEW_LINE) if terminal else EVERY_ELSEWHERE
        self.started = self.now = monotonic()
        self.next_update = self.started + quiet_for
        self.shown = False

    @property
    def elapsed(self) -> float:
        """Seconds from the start to the last call of `is_due`."""
        return self.now - self.started

    def is_due(self) -> bool:
        """Read the clock and return whether a line should be shown now. If True, the next line is due after the interval."""
        self.now = monotonic()
        if self.now < self.next_update:
            return False
        self.next_update = self.now + self.interval
        return True

    def show(self, text: str) -> None:
        """Write the line. If lines are rewritten, it replaces the last line."""
        self._write(f"{ERASE}{text}" if self.rewrite else text + "\n")
        self.shown = True

    def close(self, keep: bool = True) -> None:
        """End a line that is rewritten. With ``keep`` the line stays on the terminal, otherwise it is erased."""
        if self.shown and self.rewrite:
            self._write("\n" if keep else ERASE)
            self.shown = False

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
