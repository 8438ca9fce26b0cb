"""Writes the folder of a report: the page, the raw data and the figures."""

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
from condgrad.storage.atomic import replacing_files
from condgrad.storage.files import NotAFile, open_file


class NoFigures(UserWarning):
    """Warning: matplotlib is not installed, so the report has no figure files. The page is complete."""


def write(
    folder: Path, title: str, blocks: Sequence[Block], facts: Mapping[str, Any], raw: Any, figures: bool = True
) -> Path:
    """Write a report into a folder.

    Parameters
    ----------
    folder : Path
        Folder for ``report.html``, which contains the raw data and loads nothing from elsewhere, and ``data.json``. Created if
        it does not exist. All files are moved there together at the end: if writing fails or is interrupted, the folder is
        unchanged.
    title : str
        Heading of the page.
    blocks : sequence of Opening, Text, Table, Plot or Picture
        Content of the page, in order.
    facts : mapping of str to Any
        Shown as a table at the end of the page.
    raw : Any
        Content of ``data.json``: numbers, text, arrays, lists and dicts. NaN and infinite numbers become null.
    figures : bool, default True
        Draw NAME.png, NAME.svg and NAME.pdf of each plot and picture with matplotlib, which takes seconds.

    Returns
    -------
    Path
        The file ``report.html``.

    Raises
    ------
    ValueError
        If two plots or pictures have the same name.

    Warns
    -----
    NoFigures
        If figures are to be drawn and matplotlib is not installed.

    Notes
    -----
    Figures of an earlier report in the folder would show other data than the new page. Those that the earlier page lists, that
    have not been changed since, and that this report does not replace, are deleted. No other file is deleted.
    """
    names = [block.name for block in blocks if isinstance(block, Plot | Picture)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"Two plots or pictures are named '{name}', but their files would be the same: rename one."
            )
    data = json.dumps(plain(raw), allow_nan=False)
    earlier = _figures_listed(folder / "report.html")
    with replacing_files(folder) as temporary:
        (temporary / "data.json").write_text(data + "\n", encoding="utf-8")
        try:
            for block in blocks if figures else ():
                if isinstance(block, Plot):
                    print_figures.draw_plot(block, temporary)
                elif isinstance(block, Picture):
                    print_figures.draw_picture(block, temporary)
        except MissingExtra as error:
            warnings.warn(str(error), NoFigures, stacklevel=2)
            figures = False
        drawn = {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(temporary.iterdir())
            if file.name != "data.json"
        }
        html = page.page(title, blocks, facts, data, drawn if figures else None)
        # file names in the report may contain bytes that are not UTF-8
        (temporary / "report.html").write_text(html, encoding="utf-8", errors="backslashreplace")
    for name, digest in earlier.items():
        if name not in drawn:
            _delete_if_unchanged(folder / name, digest)
    return folder / "report.html"


def _figures_listed(earlier: Path) -> dict[str, str]:
    """Figure files and SHA-256 hashes that an earlier page lists; empty if there is no such page."""
    try:
        with open_file(earlier) as file:
            return page.figures_listed(file.read(page.HEAD_BYTES).decode(errors="replace"))
    except (OSError, NotAFile):
        return {}


def _delete_if_unchanged(file: Path, digest: str) -> None:
    """Delete a file if its SHA-256 hash is ``digest``."""
    try:
        with open_file(file) as opened:
            unchanged = hashlib.sha256(opened.read()).hexdigest() == digest
    except (OSError, NotAFile):  # deleted, or replaced by something that is no file
        return
    if unchanged:
        file.unlink(missing_ok=True)
