"""Colours, dashes and markers of curves, on the page and in print.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish. Grey replaces their yellow, which is too pale
for lines on white.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from condgrad.report.blocks import Curve

INK = "ink"
"""Colour of the text: black on a light page, white on a dark one."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK, "#767676")
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (3, 3), (8, 3, 2, 3))
MARKERS = ("circle", "square", "triangle", "diamond", "nabla", "plus", "hexagon")
MATRIX_COLOURS = ("#00507D", "#56B4E9", "#FFFFFF", "#E69F00", "#A23B00")
"""Colours of matrix entries from -scale (blue) over 0 (white) to scale (orange)."""
UNKNOWN_COLOUR = "#D8D8D8"
"""Colour of unknown matrix entries."""


@dataclass(frozen=True)
class Look:
    """Colour, dashes and marker of a curve."""

    colour: str
    dashes: tuple[float, ...]
    marker: str


def looks(curves: Sequence[Curve]) -> list[Look]:
    """Choose the look of each curve.

    Each curve has its own colour and marker. Dashes distinguish groups, and curves of the same colour if there are more curves
    than colours. Headlines get the first colours, the other curves share the remaining ones.
    """
    groups = list(dict.fromkeys(curve.group for curve in curves))
    n_headlines = min(sum(curve.headline for curve in curves), len(COLOURS) - 1)
    palettes = {True: COLOURS[:n_headlines], False: COLOURS[n_headlines:]}
    count = {True: 0, False: 0}
    found = []
    for i, curve in enumerate(curves):
        palette, j = palettes[curve.headline], count[curve.headline]
        count[curve.headline] += 1
        dashes = DASHES[(groups.index(curve.group) + j // len(palette)) % len(DASHES)]
        found.append(Look(palette[j % len(palette)], dashes, MARKERS[i % len(MARKERS)]))
    return found


def to_rgb(image: np.ndarray, scale: float) -> np.ndarray:
    """Convert a matrix to an RGB image, of shape (m, n, 3) and dtype uint8."""
    stops = np.array([_rgb(colour) for colour in MATRIX_COLOURS], dtype=float)
    known = np.isfinite(image)
    position = (np.clip(np.where(known, image, 0.0) / scale, -1, 1) + 1) / 2 * (len(stops) - 1)
    channels = [np.interp(position, np.arange(len(stops)), stops[:, channel]) for channel in range(3)]
    return np.where(known[..., None], np.stack(channels, axis=-1), _rgb(UNKNOWN_COLOUR)).round().astype(np.uint8)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
