"""Figures for print as PNG, SVG and PDF. The same data give the same bytes. The only module that imports matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.report.bands import Band, bands
from condgrad.report.blocks import Curve, Picture, Plot
from condgrad.report.style import INK, MATRIX_COLOURS, UNKNOWN_COLOUR, Look, looks
from condgrad.runtime.extras import needed_for

MARKER_SHAPES = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "nabla": "v",
    "plus": "P",
    "hexagon": "h",
}
SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,  # embed fonts as TrueType
    "svg.fonttype": "none",  # keep text as text, not as outlines
    "svg.hashsalt": "condgrad",
}
METADATA: Mapping[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Metadata without dates and versions, so that files are reproducible."""


def check_plotting() -> None:
    """Raise MissingExtra, with the pip command, if matplotlib is not installed."""
    with needed_for("Figures for print (PNG, SVG, PDF)"):
        import matplotlib  # noqa: F401


def draw_plot(plot: Plot, folder: Path) -> None:
    """Draw a panel for each of the first three units, side by side, with the legend below them."""
    units = list(plot.units.items())[:3]
    columns = max(2, len(units))
    rows = ceil((len(plot.curves) + 1) / columns)
    with _figure(1.0 + 3.5 * len(units), 3.6 + 0.21 * rows, folder / plot.name) as figure:
        panels = figure.subplots(1, len(units), sharey=True, squeeze=False)[0]
        for panel, (unit, label) in zip(panels, units, strict=True):
            drawn = zip(plot.curves, looks(plot.curves), bands(plot, unit), strict=True)
            legend = [(_line(panel, i, *what), _escape_dollars(what[0].label)) for i, what in enumerate(drawn)]
            if plot.target is not None:
                target = panel.axhline(plot.target, color="0.35", linestyle=":", linewidth=1.2)
                legend.append((target, f"target {plot.target:g}"))
            panel.set(xlabel=_escape_dollars(label), xscale=plot.scales[0], yscale=plot.scales[1])
            panel.grid(True, which="major", color="0.9", linewidth=0.6)
        panels[0].set_ylabel(_escape_dollars(plot.y))
        figure.suptitle(_escape_dollars(plot.title), fontsize=11)
        if legend:
            figure.legend(
                *zip(*legend, strict=True), loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2
            )


def _line(panel: Any, i: int, curve: Curve, look: Look, band: Band | None) -> Any:
    """Draw the median with a few markers, the quartiles as a band, and a cross at the end of a curve with a note."""
    colour = "black" if look.colour == INK else look.colour
    x, y = (band.x, band.middle) if band else (np.empty(0), np.empty(0))
    style = {"color": colour, "linestyle": (0, [d / 2 for d in look.dashes]) if look.dashes else "-", "linewidth": 1.4}
    every = max(1, len(x) // 5)
    marks = {"marker": MARKER_SHAPES[look.marker], "markersize": 4, "markevery": (3 * i % every, every)}
    (line,) = panel.plot(x, y, **style, **marks)
    if band and band.runs > 1 and len(x) > 1:
        panel.fill_between(x, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
    if band and curve.note:
        panel.plot(x[-1:], y[-1:], "x", color=colour, markersize=8, markeredgewidth=1.8)
    return line


def draw_picture(picture: Picture, folder: Path) -> None:
    """Draw the matrices side by side, in the same colours as on the page."""
    with _figure(1.0 + 2.4 * len(picture.images), 3.0, folder / picture.name) as figure:
        from matplotlib.colors import LinearSegmentedColormap

        colours = LinearSegmentedColormap.from_list("condgrad", MATRIX_COLOURS).with_extremes(bad=UNKNOWN_COLOUR)
        panels = figure.subplots(1, len(picture.images), squeeze=False)[0]
        for panel, (label, image) in zip(panels, picture.images.items(), strict=True):
            entries = np.ma.masked_invalid(np.asarray(image, dtype=float))
            drawn = panel.imshow(entries, colours, vmin=-picture.scale, vmax=picture.scale, interpolation="nearest")
            panel.set_title(_escape_dollars(label), fontsize=9)
            panel.set_axis_off()
        figure.colorbar(drawn, ax=panels, shrink=0.8, aspect=30)
        figure.suptitle(_escape_dollars(picture.title), fontsize=11)


def _escape_dollars(text: str) -> str:
    """Escape dollar signs, between which matplotlib expects a formula."""
    return text.replace("$", r"\$")


@contextmanager
def _figure(width: float, height: float, stem: Path) -> Iterator[Any]:
    """Yield a figure to draw on and save it in every format at the end."""
    check_plotting()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the layout is computed once for all formats
        for kind, metadata in METADATA.items():
            figure.savefig(stem.with_name(f"{stem.name}.{kind}"), dpi=220, metadata=metadata)
