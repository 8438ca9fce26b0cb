"""Fast parser of delimited text: splits many lines into columns, by pyarrow (`arrow_columns`) if it is installed, else by Python.

Lines and cells that can't be parsed here do not raise an error. Instead, masks tell the caller which lines and cells were parsed.
The caller reads the other lines one by one (`lines.LineReader`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from condgrad.data import arrow_columns

DECIMALS = re.compile(r"[0-9.eE+-]*+")
"""Only cells that match this expression are passed to `float`. Without this check, `float` would also convert 1_0 and inf."""


def quotes_are_read() -> bool:
    """Whether `parse` accepts quoted cells, which only pyarrow can parse."""
    return arrow_columns.available()


def parse(
    data: np.ndarray,
    delimiter: str,
    width: int,
    wanted: Iterable[int],
    quotes: bool,
    missing: Sequence[str] = (),
    number: int | None = None,
) -> tuple[dict[int, Any], np.ndarray]:
    """Split lines into cells.

    Parameters
    ----------
    data : ndarray of uint8
        The bytes of whole lines. No quoted cell may contain a newline.
    delimiter : str
        One character.
    width : int
        Number of cells in a line.
    wanted : iterable of int
        Numbers of the columns to return, counted from 0.
    quotes : bool
        Whether a quote at the beginning of a cell opens a quoted cell. Must be False without pyarrow.
    missing : sequence of str, default ()
        Texts of cells that mean a missing value. Such cells become null.
    number : int, default None
        Number of the column that the caller will convert by `decimals`. pyarrow may return this column as numbers.

    Returns
    -------
    columns : dict of int to column
        The wanted cells of the lines that have ``width`` cells. A column is a pyarrow array, or a list of str and None.
    fits : ndarray of bool, shape (lines,)
        Mask of the lines that have ``width`` cells.
    """
    if arrow_columns.available():
        return arrow_columns.parse(data, delimiter, width, wanted, quotes, missing, number)
    ends = data == ord("\n")
    cells = np.flatnonzero(ends | (data == ord(delimiter)))
    fits = np.diff(np.flatnonzero(ends[cells]), prepend=-1) == width
    if not fits.all():
        data = data[np.repeat(fits, np.diff(np.flatnonzero(ends), prepend=-1))]
    texts = data.tobytes().decode().replace("\n", delimiter).split(delimiter)[:-1]
    if (data == ord(" ")).any() or (data == ord("\t")).any():
        texts = [text.strip(arrow_columns.BLANKS) for text in texts]
    known = set(missing)
    columns: dict[int, Any] = {k: texts[k::width] for k in dict.fromkeys(wanted)}
    if known:
        columns = {k: [None if cell in known else cell for cell in column] for k, column in columns.items()}
    return columns, fits


def decimals(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Convert the cells of a column to numbers, correctly rounded.

    Parameters
    ----------
    column : column of length k
        The cells, as `parse` returns them.

    Returns
    -------
    numbers : ndarray of float64, shape (k,)
        The numbers; NaN for a null cell and for a cell without a number.
    ok : ndarray of bool, shape (k,)
        Mask of the cells that are finite numbers.
    """
    if not isinstance(column, list):
        return arrow_columns.decimals(column)
    if DECIMALS.fullmatch("".join(filter(None, column))):
        try:
            numbers = np.array([np.nan if cell is None else float(cell) for cell in column], dtype=float)
            return numbers, np.isfinite(numbers)
        except ValueError:
            pass
    numbers = np.array([np.nan if cell is None else _decimal(cell) for cell in column], dtype=float)
    return numbers, np.isfinite(numbers)


def _decimal(cell: str) -> float:
    """The number in a cell; NaN if the cell is not a decimal number."""
    if not DECIMALS.fullmatch(cell):
        return np.nan
    try:
        return float(cell)
    except ValueError:
        return np.nan


def is_null(column: Any) -> np.ndarray:
    """Mask of the cells that are null."""
    if isinstance(column, list):
        return np.fromiter((cell is None for cell in column), dtype=bool, count=len(column))
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def chosen(column: Any, which: np.ndarray) -> Any:
    """The cells of a column or of an ndarray at which the mask ``which`` is True."""
    if isinstance(column, list):
        return list(compress(column, which.tolist()))
    return arrow_columns.chosen(column, which)
