"""A report's folder: the page, the raw data, the figures."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from condgrad.report import figures as print_figures
from condgrad.report import page
from condgrad.report.blocks import Block, Picture, Plot
from condgrad.report.plain import plain
from condgrad.runtime.extras import MissingExtra
from condgrad.storage.atomic import filling
from condgrad.storage.files import NotAFile, open_file


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
        Draw NAME.png, NAME.svg and NAME.pdf of each plot and picture with matplotlib, which takes seconds.

    Returns
    -------
    Path
        The page.

    Notes
    -----
    Figures of an earlier report in the folder that this one does not draw are deleted, since they would show other data than the
    page: those that the earlier page lists, as long as they are as they were drawn. No other file is deleted.
    """
    names = [block.name for block in blocks if isinstance(block, Plot | Picture)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"Two plots or pictures are named '{name}', but their files would be the same: rename one."
            )
    data = json.dumps(plain(raw), allow_nan=False)
    earlier = _figures_listed(folder / "report.html")
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
        drawn = {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(made.iterdir())
            if file.name != "data.json"
        }
        whole = page.page(title, blocks, facts, data, drawn if figures else None)
        # the name of a file need not be UTF-8
        (made / "report.html").write_text(whole, encoding="utf-8", errors="backslashreplace")
    for name, digest in earlier.items():
        if name not in drawn:
            _delete_if_unchanged(folder / name, digest)
    return folder / "report.html"


def _figures_listed(earlier: Path) -> dict[str, str]:
    """The figures beside an earlier report and their digests, as its page lists them; none where there is no such page."""
    try:
        with open_file(earlier) as file:
            return page.figures_listed(file.read(page.HEAD_BYTES).decode(errors="replace"))
    except (OSError, NotAFile):
        return {}


def _delete_if_unchanged(file: Path, digest: str) -> None:
    try:
        with open_file(file) as opened:
            unchanged = hashlib.sha256(opened.read()).hexdigest() == digest
    except (OSError, NotAFile):  # it has gone, or something else stands there
        return
    if unchanged:
        file.unlink(missing_ok=True)
