"""A report's folder: the page, the raw data, the figures."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from condgrad.report import figures, page
from condgrad.report.blocks import Block, Picture, Plot
from condgrad.report.plain import plain


class NoFigures(UserWarning):
    """Matplotlib is not installed: the page is complete, the figures for print beside it are missing."""


def write(folder: Path, title: str, blocks: Sequence[Block], facts: Mapping[str, Any], raw: Any) -> Path:
    """Write ``report.html``, ``data.json`` with the raw data, and NAME.png, .svg and .pdf of each plot and picture.

    The page holds everything that it shows, the raw data too, and fetches nothing. Returns its path.
    """
    names = [block.name for block in blocks if isinstance(block, Plot | Picture)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"Two plots or pictures are named '{name}', but their files would be the same: rename one."
            )
    folder.mkdir(parents=True, exist_ok=True)
    data = json.dumps(plain(raw), allow_nan=False)
    write_whole(folder / "data.json", data + "\n")
    try:
        for block in blocks:
            if isinstance(block, Plot):
                figures.draw_plot(block, folder)
            elif isinstance(block, Picture):
                figures.draw_picture(block, folder)
        drawn = True
    except figures.NoPlotting as error:
        warnings.warn(str(error), NoFigures, stacklevel=2)
        drawn = False
    path = folder / "report.html"
    write_whole(path, page.page(title, blocks, facts, data, drawn))
    return path


def write_whole(path: Path, text: str) -> None:
    """All or nothing: whoever is killed while writing leaves the file as it was, and beside it one that ends in its number."""
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
