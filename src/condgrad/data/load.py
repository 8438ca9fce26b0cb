"""`load` reads the observed entries of a matrix from a file of any supported format."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from condgrad.checks import as_shape, choice, whole, yes_or_no
from condgrad.data import delimited, matrix_market, npz, parquet
from condgrad.data.delimited import Columns
from condgrad.data.diagnostics import Limits, Notes
from condgrad.data.observations import Observations
from condgrad.data.text_stream import head

logger = logging.getLogger("condgrad.data")


READERS: dict[str, tuple[Callable[..., Observations], set[str]]] = {
    "csv": (delimited.read, {"columns", "delimiter", "header", "ids", "base", "shape", "wide"}),
    "parquet": (parquet.read, {"columns", "ids", "base", "shape"}),
    "npz": (npz.read, set()),
    "matrix-market": (matrix_market.read, set()),
}
"""Reader of each format, and the keyword arguments of `load` that the reader accepts."""

SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".npz": "npz", ".mtx": "matrix-market", ".mm": "matrix-market"}
SUFFIXES |= dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".dat", ".data"), "csv")
"""Format of a file by the suffix of its name."""
BEGINNINGS = {matrix_market.MAGIC[:8]: "matrix-market", b"PK\x03\x04": "npz", b"PAR1": "parquet"}
"""Format of a file by its first bytes."""


def load(
    path: str | os.PathLike[str],
    format: str | None = None,
    columns: Columns = None,
    strict: bool = False,
    values: bool = True,
    delimiter: str | None = None,
    header: bool | None = None,
    ids: bool = True,
    base: int = 0,
    shape: tuple[int, int] | None = None,
    limits: Limits | None = None,
    wide: bool | None = None,
) -> Observations:
    """Read the observed entries of a matrix from a file.

    Parameters
    ----------
    path : str or os.PathLike
        The file. A text file may be gzipped.
    format : {"csv", "parquet", "npz", "matrix-market"}, default None
        Format of the file. By default, the format is recognised by the suffix of the file's name, or else by the first bytes of
        the file. If both are unknown, the file is read as "csv": text with commas, semicolons, tabs, bars or blanks between the
        cells.
    columns : sequence of str or of int, default None
        The three columns of the file that have the row, the column and the value of an entry, in this order: their names in the
        header, or their numbers, counted from 0. By default they are found in the header by known names, such as user, item and
        rating. Without a header they are the first three columns.
    strict : bool, default False
        Whether the first fault raises BadData. By default, lines with faults are dropped or merged, and counted in ``cleanup``.
    values : bool, default True
        Whether entries have values. If False, the file has pairs (row, column).
    delimiter : str, default None
        The character between two cells. By default, the character that splits the lines into three columns with numbers as
        values.
    header : bool, default None
        Whether the first line is a header. By default, it is a header if none of its cells is a number or means a missing value.
        In a file of pairs, it must in addition have known titles, or be above a column of numbers.
    ids : bool, default True
        Whether rows and columns are given by name. If False, they are given by position.
    base : int, default 0
        Position of the first row and of the first column. Only for ``ids=False``.
    shape : tuple of two int, default None
        Shape of the matrix. By default, the smallest shape that has all positions. Only for ``ids=False``.
    limits : Limits, default None
        Limits on the size of the file. By default ``Limits()``.
    wide : bool, default None
        Whether the text is a wide table. Each line of a wide table is a row of the matrix: the row's name, then a cell for each
        column. Empty cells are entries that were not observed. By default, the text is read as a wide table only if it can't be
        a list of entries (a row, a column and a value on each line).

    Returns
    -------
    observations : Observations
        The entries, and a report on the faults of the file.

    Raises
    ------
    BadData
        If the file is damaged, exceeds the limits or is mostly unusable. With ``strict``, also if the file has a fault.
    ValueError
        If the arguments contradict each other, or if the format does not accept one of them.
    MissingExtra
        If the file is a Parquet file and pyarrow is not installed.

    Notes
    -----
    If pyarrow is installed (``pip install 'condgrad[table]'``), it parses text. Without pyarrow, text is parsed by Python, which
    takes longer; the result is the same. Lines with faults or comments are read one by one.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "ratings.csv"
    ...     _ = path.write_text("user,item,rating\\nann,Alien,5\\nbob,Brazil,4\\n")
    ...     found = load(path)
    >>> found.row_ids.tolist(), found.col_ids.tolist(), found.values
    (['ann', 'bob'], ['Alien', 'Brazil'], array([5., 4.]))
    """
    path = Path(path)
    notes = Notes(path, yes_or_no(strict, "strict"))
    reader, known = READERS[format_of(path, format, notes)]
    notes.unit = {npz.read: "element", parquet.read: "row"}.get(reader, "line")
    given: dict[str, Any] = {"columns": columns, "delimiter": delimiter, "header": header, "shape": shape}
    given = {name: value for name, value in given.items() if value is not None}
    given |= ({} if yes_or_no(ids, "ids") else {"ids": False}) | ({"base": whole(base, "base", 0)} if base != 0 else {})
    if wide is not None:
        given["wide"] = yes_or_no(wide, "wide")
        if wide and reader is not delimited.read:
            raise ValueError(f"{path.name} is no text, but wide tables are read from text: write it as CSV.")
        if wide and (columns is not None or header is False or not ids or not values):
            raise ValueError(
                "A wide table has a header and names of its own: leave out columns=, header=, ids= and values=."
            )
    for name in given:
        if name not in known:
            raise ValueError(
                f"{name}= can't be given for {path.name}, because its format does not use it: leave it out."
            )
    if ids and (shape is not None or base):
        raise ValueError("A shape or a base is for positions, but ids are read: say ids=False too.")
    if shape is not None:
        given["shape"] = as_shape(shape, "the observations")
        if len(given["shape"]) != 2:
            raise ValueError(f"The shape must be (rows, columns), but got {shape!r}.")
    found = reader(path, notes, limits or Limits(), values=yes_or_no(values, "values"), **given)
    logger.log(logging.INFO if found.cleanup.clean else logging.WARNING, "%s", found.cleanup)
    return found


def format_of(path: Path, format: str | None, notes: Notes) -> str:
    """Return the given format. If it is None, the format is recognised by the suffix, or else by the first bytes, or else is
    "csv".

    A file whose first bytes contradict its suffix is refused.
    """
    if format is not None:
        return choice(format, READERS, "format")
    first = head(path, notes)
    inside = next((name for beginning, name in BEGINNINGS.items() if first.startswith(beginning)), None)
    suffix = Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()
    if suffix in (".libsvm", ".svm", ".svmlight"):
        notes.refuse("LIBSVM files have labels and features", "read it by load_labelled")
    named = SUFFIXES.get(suffix)
    if named and inside and named != inside:
        notes.refuse(
            f"the name ends with {suffix}, but the file begins as {inside}", f"say format={inside!r} or rename it"
        )
    return named or inside or "csv"
