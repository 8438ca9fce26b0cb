"""Progress messages on stderr while kernels are compiled, which takes seconds at the first call."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any

from numba.core import event

REPORT_INTERVAL = 10.0
"""Minimum time in seconds between two lines if stderr is not a terminal."""


class CompileProgress(event.Listener):
    """Listener of numba's compile events that reports the compilation of the kernels in one module.

    On a terminal it rewrites one line and removes it at the end. Otherwise it prints one line at the first compilation, and
    another one after every REPORT_INTERVAL seconds of compilation.
    """

    def __init__(self, module: str):
        self.module = module
        self.done = 0
        self.seconds = 0.0
        self.last_report = -REPORT_INTERVAL
        self.started = 0.0

    def on_start(self, event: Any) -> None:
        if not self._ours(event):
            return
        self.started = monotonic()
        name = event.data["dispatcher"].py_func.__name__
        so_far = f" ({self.done} done in {self.seconds:.0f} s)" if self.done else ""
        if sys.stderr.isatty():
            self._write(f"\r\x1b[Kcondgrad: compiling the kernel {name}, once on this machine{so_far} ...")
        elif self.seconds - self.last_report >= REPORT_INTERVAL:
            self.last_report = self.seconds
            self._write(f"condgrad: compiling kernels, once on this machine{so_far} ...\n")

    def on_end(self, event: Any) -> None:
        if not self._ours(event):
            return
        self.done += 1
        self.seconds += monotonic() - self.started
        if sys.stderr.isatty():
            self._write("\r\x1b[K")

    def _ours(self, event: Any) -> bool:
        return bool(event.data["dispatcher"].py_func.__module__ == self.module)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
