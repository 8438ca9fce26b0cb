"""Progress messages on stderr while kernels are compiled, which takes seconds at the first call."""

from __future__ import annotations

from typing import Any

from numba.core import event

from condgrad.runtime.progress import EVERY_ELSEWHERE, ProgressLine


class CompileProgress(event.Listener):
    """Listener of numba's compile events that reports the compilation of the kernels in one module.

    On a terminal it rewrites one line and removes it at the end. Otherwise it prints one line at the first compilation, and
    another one after every ten seconds of compilation.
    """

    def __init__(self, module: str):
        self.module = module
        self.done = 0
        self.seconds = 0.0
        self.last_report = -EVERY_ELSEWHERE
        self.display = ProgressLine()

    def on_start(self, event: Any) -> None:
        if not self._ours(event):
            return
        name = event.data["dispatcher"].py_func.__name__
        so_far = f" ({self.done} done in {self.seconds:.0f} s)" if self.done else ""
        self.display = ProgressLine()
        if self.display.rewrite:
            self.display.show(f"condgrad: compiling the kernel {name}, once on this machine{so_far} ...")
        elif self.seconds - self.last_report >= EVERY_ELSEWHERE:
            self.last_report = self.seconds
            self.display.show(f"condgrad: compiling kernels, once on this machine{so_far} ...")

    def on_end(self, event: Any) -> None:
        if not self._ours(event):
            return
        self.done += 1
        self.display.is_due()  # looks at the clock
        self.seconds += self.display.elapsed
        self.display.close(keep=False)

    def _ours(self, event: Any) -> bool:
        return bool(event.data["dispatcher"].py_func.__module__ == self.module)
