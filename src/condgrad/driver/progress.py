"""Progress line of a run: the last step and the estimated remaining time, for runs of more than two seconds."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TextIO

from condgrad.protocols import Record, Stop
from condgrad.runtime.progress import ProgressLine, duration


class Progress:
    """Listener that shows progress. On a terminal it rewrites one line; elsewhere it writes a new line every ten seconds.

    Parameters
    ----------
    title : str
        Beginning of the line.
    stop : Stop
        Stopping rule. Its method ``progress`` estimates how much of the run is done.
    stream : text file object, default None
        By default stderr.
    quiet_for : float, default 2.0
        Seconds before the first line.
    """

    def __init__(self, title: str, stop: Stop, stream: TextIO | None = None, quiet_for: float = 2.0):
        self.title, self.stop, self.display = title, stop, ProgressLine(stream, quiet_for)

    def __call__(self, record: Record, trace: Sequence[Record]) -> None:
        if self.display.is_due():
            self.display.show(self.line(record, self.stop.progress(record, trace), self.display.elapsed))

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
        self.display.close()
