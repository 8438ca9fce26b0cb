"""Convergence plots. The only folder that imports matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.driver import Trace

AXES = {"cpu": "CPU seconds", "fo": "full gradients (FO)", "lo": "linear oracle calls (LO)", "k": "steps"}
# Okabe and Ito's colours, safe for colour-blind readers; the dashes tell curves apart without colour.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
DASHES = ["-", "--", "-.", ":"]


class NoPlotting(ImportError):
    """Matplotlib is not installed."""


def convergence(
    curves: Mapping[str, Trace],
    path: str | Path,
    title: str,
    against: Sequence[str] = ("cpu",),
    target: float | None = None,
) -> None:
    """The best squared gradient mapping so far of each curve, on log scales, one panel for each unit of cost."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise NoPlotting("Matplotlib is not installed: pip install 'condgrad[plot]' for the plot.") from None

    figure = Figure(figsize=(1.2 + 5.2 * len(against), 4.4), layout="constrained")
    panels = figure.subplots(1, len(against), sharey=True, squeeze=False)[0]
    for panel, unit in zip(panels, against, strict=True):
        for i, (label, trace) in enumerate(curves.items()):
            x, y = _best_so_far(trace, unit)
            colour, dash = COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]
            panel.plot(x, y, dash, color=colour, label=label, linewidth=1.8, marker="o" if len(x) == 1 else None)
        if target is not None:
            panel.axhline(target, color="0.6", linewidth=0.8)
        panel.set(xlabel=AXES[unit], xscale="log", yscale="log")
        panel.grid(True, which="major", color="0.9")
    panels[0].set_ylabel("squared gradient mapping, best so far")
    figure.suptitle(title)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=150)


def _best_so_far(trace: Trace, unit: str) -> tuple[Any, Any]:
    x, best = trace[unit].astype(float), np.fmin.accumulate(trace["mapping"])
    spent = (x > 0) & (trace["fo"] + trace["ifo"] + trace["sfo"] > 0)  # the row of the start has cost nothing yet
    known = np.isfinite(best) & spent
    return x[known], best[known]
