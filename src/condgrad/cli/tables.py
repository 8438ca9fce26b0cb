"""Tables of predictions as CSV, safe for spreadsheets and terminals."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.atomic import replacing
from condgrad.cli.terminal import printable
from condgrad.data.lines import NUMBER
from condgrad.interruption import held_back

FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a text begins with that spreadsheets take for a formula; the last four are the wide forms of the first."""
QUOTED = frozenset(',";\t\r\n')
"""A cell with one of these stands in quotes: also those that are delimiters for a spreadsheet in other countries."""


def write_table(path: Path | None, rows: np.ndarray, cols: np.ndarray, values: np.ndarray, raw: bool = False) -> None:
    """Write predictions as CSV, with a header that `condgrad complete` reads again.

    Parameters
    ----------
    path : Path or None
        Written as a whole, or stays what it was. None: standard output, without control characters if that is a terminal.
    rows, cols : ndarray of shape (k,)
        Names or numbers.
    values : ndarray of shape (k,)
    raw : bool, default False
        Write names as they are. By default one that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    cells = zip(rows.tolist(), cols.tolist(), (f"{value:.6g}" for value in values.tolist()), strict=True)
    lines = (",".join(cell(part, raw) for part in line) + "\n" for line in cells)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with held_back(), replacing(path) as file:
            codecs.getwriter("utf-8")(file).writelines(_with_header(lines))
    else:
        shown = map(printable, _with_header(lines)) if sys.stdout.isatty() else _with_header(lines)
        sys.stdout.writelines(shown)


def _with_header(lines: Iterable[str]) -> Iterator[str]:
    yield "row,column,value\n"
    yield from lines


def cell(value: Any, raw: bool = False) -> str:
    """One cell of CSV.

    Parameters
    ----------
    value : str or number
        Numbers, and texts that are numbers such as "-5", stay as they are.
    raw : bool, default False
        Leave a text as it is that a spreadsheet would take for a formula.

    Returns
    -------
    cell : str
    """
    text = str(value)
    if not raw and isinstance(value, str) and text.startswith(FORMULA) and not NUMBER.fullmatch(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if QUOTED & set(text) else text
