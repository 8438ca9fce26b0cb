"""CSV tables that commands write: predictions, the best columns of each row, and completed matrices.

Names are escaped so that they cannot act as formulas in a spreadsheet or as control sequences in a terminal.
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

MAX_CELLS = 100_000_000
"""Maximum number of cells of a completed table, about a gigabyte of text."""
FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""First characters of texts that spreadsheets read as formulas; the last four are the full-width forms of the first four."""
QUOTED_CHARACTERS = frozenset(',";\t\r\n')
"""Characters for which a cell is quoted, among them delimiters of spreadsheets in other locales."""


def make_parent(path: Path) -> Path:
    """Create the parent folder of a path that is about to be written, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def recommendations(
    model: RobustCompletion, k: int, row_names: str | None, include_seen: bool = False, most: int | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows, columns and predictions of the ``k`` best columns of each row, or of each row in ``row_names``.

    With ``most``, a part has about this many predictions at most; None: all are in one part.
    """
    rows: Any = np.arange(len(model.row_biases_)) if model.row_ids_ is None else model.row_ids_
    if model.index_ is not None:
        rows = np.array(model.index_, dtype=object)
    if row_names is not None:
        known = {str(row): row for row in rows.tolist()}
        for name in (requested := parse_row_names(row_names)):
            if name not in known:
                raise ValueError(f"The model has no row {name!r}: give rows of the training data.")
        rows = np.array([known[name] for name in requested])
    size = len(rows) if most is None else max(most // max(k, 1), 1)
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        best, values = model.recommend(part, k, not include_seen)
        present = ~np.ma.getmaskarray(best)
        yield np.broadcast_to(part[:, None], best.shape)[present], best.compressed(), values[present]


def parse_row_names(row_names: str) -> list[str]:
    """Parse comma-separated names as a line of CSV: a name with a comma is quoted."""
    from condgrad.data.lines import fields_of

    try:
        return fields_of(row_names, ",")
    except csv.Error as error:
        raise ValueError(
            f'--rows {row_names!r} can\'t be read ({error}): give names separated by commas, such as ann,"Doe, bob".'
        ) from None


def check_size(shape: tuple[int, int]) -> None:
    """Raise ValueError if the completed table has more than ``MAX_CELLS`` cells."""
    if (cells := shape[0] * shape[1]) > MAX_CELLS:
        raise ValueError(
            f"The completed table would have {cells:,} cells, but at most {MAX_CELLS:,} are written: leave out --filled, and use "
            "`condgrad predict` for the pairs that you need."
        )


def write_wide(path: Path, given: Observations, model: RobustCompletion, keep: str, raw: bool = False) -> None:
    """Write the completed matrix as wide CSV, in the order of the data file, with all digits of observed values."""
    from condgrad.learn.completion.entries import positions

    (m, n), filled = given.shape, model.fill(keep)
    row_ids, col_ids = (np.arange(m), np.arange(n)) if given.row_ids is None else (given.row_ids, given.col_ids)
    assert col_ids is not None and given.values is not None
    rows, cols = positions(row_ids, model.row_ids_, m), positions(col_ids, model.col_ids_, n)
    ends = np.searchsorted(given.rows, np.arange(m + 1), sorter=(order := np.argsort(given.rows, kind="stable")))
    with replacing(make_parent(path)) as file:
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
    """Write predictions as CSV, with a header that `condgrad complete` can read.

    Parameters
    ----------
    path : Path or None
        Output file, replaced only when the table is complete. None: standard output, with control characters escaped if it is
        a terminal.
    rows, cols : ndarray of shape (k,)
        Names or numbers.
    values : ndarray of shape (k,)
    raw : bool, default False
        Write names unchanged. By default an apostrophe is put before a name that a spreadsheet would read as a formula.
    """
    cells = zip(rows.tolist(), cols.tolist(), (f"{value:.6g}" for value in values.tolist()), strict=True)
    lines = (",".join(cell(part, raw) for part in line) + "\n" for line in cells)
    if path is not None:
        with replacing(make_parent(path)) as file:
            codecs.getwriter("utf-8")(file).writelines(_with_header(lines))
    elif sys.stdout is None:
        raise ValueError(
            "Standard output is closed, but the predictions are written there: open it, or give --out FILE.csv."
        )
    else:
        shown = map(printable, _with_header(lines)) if sys.stdout.isatty() else _with_header(lines)
        sys.stdout.writelines(shown)


def _with_header(lines: Iterable[str]) -> Iterator[str]:
    yield "row,column,value\n"
    yield from lines


def cell(value: Any, raw: bool = False) -> str:
    """Text of one CSV cell, quoted if necessary.

    Parameters
    ----------
    value : str or number
        Numbers, and texts that are numbers such as "-5", are never changed.
    raw : bool, default False
        Do not put an apostrophe before a text that a spreadsheet would read as a formula.

    Returns
    -------
    cell : str
    """
    from condgrad.data.lines import NUMBER  # local, because it imports scipy, which `condgrad --version` does not need

    text = str(value)
    if not raw and isinstance(value, str) and text.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if QUOTED_CHARACTERS & set(text) else text
