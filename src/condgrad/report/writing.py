"""A report's folder: the page, the raw data, the figures."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from condgrad.atomic import filling
from condgrad.extras import MissingExtra
from condgrad.report import figures as print_figures
from condgrad.report import page
from condgrad.report.blocks import Block, Picture, Plot
from condgrad.report.plain import plain


class NoFigures(UserWarning):
    """Matplotlib is not installed: the page is complete, the figures for print beside it are missing."""


def write(
    folder: Path, title: str, blocks: Sequence[Block], facts: Mapping[str, Any], raw: Any, figures: bool = True
) -> Path:
    """Write a report into a folder.

    Parameters
    ----------
    folder : Path
        Gets ``report.html``, which holds all that it shows and the raw data and fetches nothing, and ``data.json``. Made if
        it does not exist. All files come together at the end: a report that is interrupted or fails leaves the folder as it was.
    title : str
        Heading of the page.
    blocks : sequence of Text, Table, Plot or Picture
        Content of the page, in order.
    facts : mapping of str to anything
        Shown as a list at the end of the page.
    raw : anything that JSON can hold
        Content of ``data.json``.
    figures : bool, default True
        Draw NAME.png, NAME.svg and NAME.pdf of each plot and picture with matplotlib, which takes seconds. If False, such
        files of an earlier report in the folder are deleted, since they would show other data than the page.

    Returns
    -------
    Path
        The page.
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
            for block in blocks if figures else ():
                if isinstance(block, Plot):
                    print_figures.draw_plot(block, made)
                elif isinstance(block, Picture):
                    print_figures.draw_picture(block, made)
        except MissingExtra as error:
            warnings.warn(str(error), NoFigures, stacklevel=2)
            figures = False
        (made / "report.html").write_text(page.page(title, blocks, facts, data, figures), encoding="utf-8")
    if not figures:
        for name in names:
            for kind in print_figures.UNDATED:
                (folder / f"{name}.{kind}").unlink(missing_ok=True)
    return folder / "report.html"
