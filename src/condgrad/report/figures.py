"""Figures for print, as PNG, SVG and PDF: the same data give the same bytes. The only folder that imports matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.report.bands import Band, bands
from condgrad.report.blocks import Picture, Plot
from condgrad.report.look import INK, Look, looks, painted

SHAPES = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "nabla": "v", "plus": "P", "hexagon": "h"}
SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,  # fonts embedded as fonts
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "condgrad",
}
UNDATED: Mapping[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


class NoPlotting(ImportError):
    """Matplotlib is not installed."""


def draw_plot(plot: Plot, folder: Path) -> None:
    """One panel for each unit, side by side; the legend stands below them and covers no data."""
    columns = min(len(plot.curves), max(2, len(plot.units)))
    rows = ceil(len(plot.curves) / columns) if columns else 0
    with _figure(1.0 + 3.5 * len(plot.units), 3.6 + 0.21 * rows, folder / plot.name) as figure:
        panels = figure.subplots(1, len(plot.units), sharey=True, squeeze=False)[0]
        for panel, (unit, label) in zip(panels, plot.units.items(), strict=True):
            for i, (look, band) in enumerate(zip(looks(plot.curves), bands(plot, unit), strict=True)):
                _line(panel, look, band, i, plot.curves[i].label, bool(plot.curves[i].note))
            if plot.target is not None:
                panel.axhline(plot.target, color="0.35", linestyle=":", linewidth=1.2, label=f"target {plot.target:g}")
            panel.set(xlabel=label, xscale="log", yscale="log")
            panel.grid(True, which="major", color="0.9", linewidth=0.6)
        panels[0].set_ylabel(plot.y)
        figure.suptitle(plot.title, fontsize=11)
        if plot.curves:
            handles = panels[0].get_legend_handles_labels()
            figure.legend(*handles, loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2)


def _line(panel: Any, look: Look, band: Band | None, i: int, label: str, ended: bool) -> None:
    """The median with a few markers, the quartiles as a band, and a cross where a curve ended at its budget."""
    colour = "black" if look.colour == INK else look.colour
    x, y = (band.x, band.middle) if band else (np.empty(0), np.empty(0))
    style = {"color": colour, "linestyle": (0, [d / 2 for d in look.dashes]) if look.dashes else "-", "linewidth": 1.4}
    every = max(1, len(x) // 5)
    panel.plot(x, y, **style, marker=SHAPES[look.marker], markersize=4, markevery=(3 * i % every, every), label=label)
    if band and band.runs > 1 and len(x) > 1:
        panel.fill_between(x, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
    if band and ended:
        panel.plot(x[-1:], y[-1:], "x", color=colour, markersize=8, markeredgewidth=1.8)


def draw_picture(picture: Picture, folder: Path) -> None:
    """The matrices side by side, their colours as on the page."""
    images = {label: np.asarray(image, dtype=float) for label, image in picture.images.items()}
    with _figure(0.4 + 2.4 * len(images), 3.1, folder / picture.name) as figure:
        for panel, (label, image) in zip(
            figure.subplots(1, len(images), squeeze=False)[0], images.items(), strict=True
        ):
            panel.imshow(painted(image, picture.scale), interpolation="nearest")
            panel.set_title(label, fontsize=9)
            panel.set_axis_off()
        figure.suptitle(picture.title, fontsize=11)


@contextmanager
def _figure(width: float, height: float, stem: Path) -> Iterator[Any]:
    """A figure to draw on, saved in every format at the end."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise NoPlotting(
            "Matplotlib is not installed, so no PNG, SVG and PDF were written: pip install 'condgrad[plot]' for them."
        ) from None
    with rc_context(SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        for kind, metadata in UNDATED.items():
            figure.savefig(stem.with_name(f"{stem.name}.{kind}"), dpi=220, metadata=metadata)
