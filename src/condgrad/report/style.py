"""How curves look, on the page and in print: Okabe and Ito's colours, safe for colour-blind readers, with dashes and markers.

Their yellow is too pale for lines on white; a grey stands in for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from condgrad.report.blocks import Curve

INK = "ink"
"""The colour of the text: black on white, white on black."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK, "#767676")
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (3, 3), (8, 3, 2, 3))
MARKERS = ("circle", "square", "triangle", "diamond", "nabla", "plus", "hexagon")
MATRIX_COLOURS = ("#00507D", "#56B4E9", "#FFFFFF", "#E69F00", "#A23B00")
"""From minus the scale to plus the scale: blue, white at zero, orange."""
UNKNOWN = "#D8D8D8"


@dataclass(frozen=True)
class Look:
    colour: str
    dashes: tuple[float, ...]
    marker: str


def looks(curves: Sequence[Curve]) -> list[Look]:
    """Each curve has its own colour and marker; the dashes tell groups apart, and come to help where colours run out.

    Headlines have the first colours, and the others share what is left.
    """
    groups = list(dict.fromkeys(curve.group for curve in curves))
    kept = min(sum(curve.headline for curve in curves), len(COLOURS) - 1)
    palettes = {True: COLOURS[:kept], False: COLOURS[kept:]}
    count = {True: 0, False: 0}
    found = []
    for i, curve in enumerate(curves):
        palette, j = palettes[curve.headline], count[curve.headline]
        count[curve.headline] += 1
        dashes = DASHES[(groups.index(curve.group) + j // len(palette)) % len(DASHES)]
        found.append(Look(palette[j % len(palette)], dashes, MARKERS[i % len(MARKERS)]))
    return found


def painted(image: np.ndarray, scale: float) -> np.ndarray:
    """The matrix as red, green, blue bytes."""
    stops = np.array([_rgb(colour) for colour in MATRIX_COLOURS], dtype=float)
    known = np.isfinite(image)
    place = (np.clip(np.where(known, image, 0.0) / scale, -1, 1) + 1) / 2 * (len(stops) - 1)
    channels = [np.interp(place, np.arange(len(stops)), stops[:, channel]) for channel in range(3)]
    return np.where(known[..., None], np.stack(channels, axis=-1), _rgb(UNKNOWN)).round().astype(np.uint8)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
