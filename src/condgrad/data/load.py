"""`load`: the observed entries of a matrix from a file of any supported format."""

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
"""Reader and accepted keyword arguments of each format."""

SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".npz": "npz", ".mtx": "matrix-market", ".mm": "matrix-market"}
SUFFIXES |= dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".dat", ".data"), "csv")
BEGINNINGS = {matrix_market.MAGIC[:8]: "matrix-market", b"PK\x03\x04": "npz", b"PAR1": "parquet"}


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
        Text may be gzipped.
    format : {"csv", "parquet", "npz", "matrix-market"}, default None
        By default the suffix of the file's name decides, else its first bytes; else it is read as csv, which is text with commas,
        semicolons, tabs, bars or blanks between the cells.
    columns : sequence of str or of int, default None
        The three columns of the file that hold the row, the column and the value of an entry, in this order: by their names in
        the header, or by numbers from 0. By default the columns of the header with known names, such as user, item and rating;
        without a header the first three.
    strict : bool, default False
        Raise on the first fault. By default lines with faults are dropped or merged, and counted in ``cleanup``.
    values : bool, default True
        False reads pairs (row, column) without values.
    delimiter : str, default None
        One character; by default the one that makes three columns with numbers as values.
    header : bool, default None
        Whether the first line is a header. By default it is one if none of its cells is a number.
    ids : bool, default True
        False reads rows and columns as positions, not as names.
    base : int, default 0
        First position in the file, with ``ids=False``.
    shape : tuple of two int, default None
        Shape of the matrix, with ``ids=False``; by default the smallest that has all positions.
    limits : Limits, default None
        Limits on the size of the file; by default ``Limits()``.
    wide : bool, default None
        Whether text is a wide table: a line for each row of the matrix, which begins with the row's name, and a cell for each
        column. Empty cells are entries that were not observed. By default the text is read as a wide table only if it can't be
        a list of entries.

    Returns
    -------
    observations : Observations

    Raises
    ------
    BadData
        If the file is damaged, exceeds the limits or is mostly unusable; with ``strict`` on its first fault.
    ValueError
        If the arguments contradict each other or the format.
    MissingExtra
        If a Parquet file is read without pyarrow.

    Notes
    -----
    pyarrow parses text if it is installed (``pip install 'condgrad[table]'``); without it Python splits the lines, which takes
    longer. Lines that are not plain go through a careful reader, which finds faults. The result is the same.

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
            raise ValueError(f"{path.name} has its own {name}, so {name}= can't be given: leave it out.")
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
    """The given format; else that of the suffix, which the first bytes must not contradict; else that of the first bytes."""
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
