"""A report's folder: the page, the raw data, the figures."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from condgrad.atomic import filling
from condgrad.report import figures, page
from condgrad.report.blocks import Block, Picture, Plot
from condgrad.report.plain import plain


class NoFigures(UserWarning):
    """Matplotlib is not installed: the page is complete, the figures for print beside it are missing."""


def write(folder: Path, title: str, blocks: Sequence[Block], facts: Mapping[str, Any], raw: Any) -> Path:
    """Write ``report.html``, ``data.json`` with the raw data, and NAME.png, .svg and .pdf of each plot and picture.

    The page holds everything that it shows, the raw data too, and fetches nothing. Returns its path. All files come together at
    the end: a report that is interrupted or fails leaves the folder as it was.
    """
    names = [block.name for block in blocks if isinstance(block, Plot | Picture)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"Two plots or pictures are named '{name}', but their files would be the same: rename one."
            )
    data = json.dumps(plain(raw), allow_nan=False)
    with filling(folder) as made:
        (made / "data.json").write_text(data + "\n", encoding="utf-8")
        try:
            for block in blocks:
                if isinstance(block, Plot):
                    figures.draw_plot(block, made)
                elif isinstance(block, Picture):
                    figures.draw_picture(block, made)
            drawn = True
        except figures.NoPlotting as error:
            warnings.warn(str(error), NoFigures, stacklevel=2)
            drawn = False
        (made / "report.html").write_text(page.page(title, blocks, facts, data, drawn), encoding="utf-8")
    return folder / "report.html"
