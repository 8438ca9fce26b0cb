"""Tables that commands write: predictions, the best columns of each row, and a completed matrix as wide CSV.

Names are written safely for spreadsheets and terminals.
"""

from __future__ import annotations

import codecs
import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condgrad.cli.terminal import printable
from condgrad.storage.atomic import replacing

if TYPE_CHECKING:
    from condgrad.data import Observations
    from condgrad.learn import RobustCompletion

LARGEST = 100_000_000
"""Cells of a completed table that is written: about a gigabyte of text."""
FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a text begins with that spreadsheets take for a formula; the last four are the wide forms of the first."""
QUOTED = frozenset(',";\t\r\n')
"""A cell with one of these stands in quotes: also those that are delimiters for a spreadsheet in other countries."""


def housed(path: Path) -> Path:
    """The path, with a folder to be in: made when there is something to write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def recommended(model: RobustCompletion, k: int, said: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, column, prediction), the best columns of each row."""
    rows: Any = np.arange(len(model.row_biases_)) if model.row_ids_ is None else model.row_ids_
    if model.index_ is not None:
        rows = np.array(model.index_, dtype=object)
    if said is not None:
        known = {str(row): row for row in rows.tolist()}
        for name in (asked := named_rows(said)):
            if name not in known:
                raise ValueError(f"The model has no row {name!r}: give rows of the file that it was fitted to.")
        rows = np.array([known[name] for name in asked])
    best, values = model.recommend(rows, k)
    there = ~np.ma.getmaskarray(best)
    return np.broadcast_to(rows[:, None], best.shape)[there], best.compressed(), values[there]


def named_rows(said: str) -> list[str]:
    """As the cells of a line of CSV: a name with a comma in it stands in quotes."""
    from condgrad.data.lines import fields_of

    try:
        return fields_of(said, ",")
    except csv.Error as error:
        raise ValueError(
            f'--rows {said!r} can\'t be read ({error}): give names with commas between, such as ann,"Doe, bob".'
        ) from None


def check_size(shape: tuple[int, int]) -> None:
    """Refuses a table that is too large to write, before the fit."""
    if (cells := shape[0] * shape[1]) > LARGEST:
        raise ValueError(
            f"The completed table would have {cells:,} cells, but at most {LARGEST:,} are written: leave out --filled, and ask "
            "`condgrad predict` for the pairs that you need."
        )


def write_wide(path: Path, given: Observations, model: RobustCompletion, keep: str, raw: bool = False) -> None:
    """The completed matrix as wide CSV, its rows and columns in the order of the file; observed values keep all their digits."""
    from condgrad.learn.completion.entries import positions

    (m, n), filled = given.shape, model.fill(keep)
    row_ids, col_ids = (np.arange(m), np.arange(n)) if given.row_ids is None else (given.row_ids, given.col_ids)
    assert col_ids is not None and given.values is not None
    rows, cols = positions(row_ids, model.row_ids_, m), positions(col_ids, model.col_ids_, n)
    ends = np.searchsorted(given.rows, np.arange(m + 1), sorter=(order := np.argsort(given.rows, kind="stable")))
    with replacing(housed(path)) as file:
        text = codecs.getwriter("utf-8")(file)
        text.write(",".join(cell(name, raw) for name in [given.title, *col_ids.tolist()]) + "\n")
        for i, name in enumerate(row_ids.tolist()):
            line = filled[rows[i], cols]
            cells = [f"{value:.6g}" for value in line.tolist()]
            for k in order[ends[i] : ends[i + 1]].tolist():
                if line[j := given.cols[k]] == given.values[k]:
                    cells[j] = repr(float(given.values[k]))
            text.write(",".join([cell(name, raw), *cells]) + "\n")


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
        with replacing(housed(path)) as file:
            codecs.getwriter("utf-8")(file).writelines(_with_header(lines))
    elif sys.stdout is None:
        raise ValueError("Standard output is closed, but the predictions go there: open it, or give --out FILE.csv.")
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
    from condgrad.data.lines import NUMBER  # here: it loads scipy, which `condgrad --version` does not need

    text = str(value)
    if not raw and isinstance(value, str) and text.startswith(FORMULA) and not NUMBER.fullmatch(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if QUOTED & set(text) else text
