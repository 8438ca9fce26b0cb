"""Says on stderr why a first call takes seconds: kernels are being compiled."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any

from numba.core import event

EVERY = 10.0
"""Seconds of compilation between two lines where stderr is no terminal."""


class CompileProgress(event.Listener):
    """Listens to numba's compilations of the kernels in one module.

    On a terminal one line is rewritten and removed at the end. Elsewhere one line is printed at the first compilation, and more
    if they take long.
    """

    def __init__(self, module: str):
        self.module = module
        self.done = 0
        self.seconds = 0.0
        self.said = -EVERY
        self.begun = 0.0

    def on_start(self, event: Any) -> None:
        if not self._ours(event):
            return
        self.begun = monotonic()
        name = event.data["dispatcher"].py_func.__name__
        so_far = f" ({self.done} done in {self.seconds:.0f} s)" if self.done else ""
        if sys.stderr.isatty():
            self._write(f"\r\x1b[Kcondgrad: compiling the kernel {name}, once on this machine{so_far} ...")
        elif self.seconds - self.said >= EVERY:
            self.said = self.seconds
            self._write(f"condgrad: compiling kernels, once on this machine{so_far} ...\n")

    def on_end(self, event: Any) -> None:
        if not self._ours(event):
            return
        self.done += 1
        self.seconds += monotonic() - self.begun
        if sys.stderr.isatty():
            self._write("\r\x1b[K")

    def _ours(self, event: Any) -> bool:
        return bool(event.data["dispatcher"].py_func.__module__ == self.module)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
