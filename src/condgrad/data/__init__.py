"""Observations from files: CSV and its kin, Parquet, NPZ, Matrix Market; labelled features from LIBSVM.

Faults in a file are reported with their lines: with ``strict`` the first one is refused, else all are counted and listed in a
Cleanup.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from condgrad.checks import BadData, as_shape, choice, whole, yes_or_no
from condgrad.data import delimited, matrix_market, npz, parquet
from condgrad.data.delimited import Columns
from condgrad.data.diagnostics import Cleanup, Fault, Limits, Notes
from condgrad.data.libsvm import Labelled, load_labelled
from condgrad.data.observations import Observations
from condgrad.data.text_stream import head

__all__ = ["BadData", "Cleanup", "Fault", "Labelled", "Limits", "Observations", "load", "load_labelled"]

logger = logging.getLogger(__name__)

READERS: dict[str, tuple[Callable[..., Observations], set[str]]] = {
    "csv": (delimited.read, {"columns", "delimiter", "header", "ids", "base", "shape", "wide"}),
    "parquet": (parquet.read, {"columns", "ids", "base", "shape"}),
    "npz": (npz.read, set()),
    "matrix-market": (matrix_market.read, set()),
}
"""Each format's reader, and what may be said to it."""

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
    """The observed entries of a matrix in a file; text may be gzipped.

    ``format``: csv (any of , ; tab | or blanks between the cells), parquet, npz or matrix-market; by default the name
    tells, else the first bytes. ``columns``: which hold the row, the column and the value, by name or counted from 0; by
    default a header's known names, or the first three. ``values=False`` reads pairs. With ``ids=False`` the rows and
    columns are positions counted from ``base``, in a matrix of ``shape`` (by default the least that has them all), and no names.
    ``wide``: whether text is a table with a line for each row, whose first cell is the row's name, and a column for each column
    (an empty cell is missing); by default where it can be nothing else.
    """
    path = Path(path)
    notes = Notes(path, yes_or_no(strict, "strict"))
    reader, known = READERS[format_of(path, format, notes)]
    notes.unit = {npz.read: "element", parquet.read: "row"}.get(reader, "line")
    said: dict[str, Any] = {"columns": columns, "delimiter": delimiter, "header": header, "shape": shape}
    said = {name: value for name, value in said.items() if value is not None}
    said |= ({} if yes_or_no(ids, "ids") else {"ids": False}) | ({"base": whole(base, "base", 0)} if base != 0 else {})
    if wide is not None:
        said["wide"] = yes_or_no(wide, "wide")
        if wide and reader is not delimited.read:
            raise ValueError(f"{path.name} is no text, but wide tables are read from text: write it as CSV.")
        if wide and (columns is not None or header is False or not ids or not values):
            raise ValueError(
                "A wide table has a header and names of its own: leave out columns=, header=, ids= and values=."
            )
    for name in said:
        if name not in known:
            raise ValueError(f"{path.name} has its own {name}, so {name}= can't be given: leave it out.")
    if ids and (shape is not None or base):
        raise ValueError("A shape or a base is for positions, but ids are read: say ids=False too.")
    if shape is not None:
        said["shape"] = as_shape(shape, "the observations")
        if len(said["shape"]) != 2:
            raise ValueError(f"The shape must be (rows, columns), but got {shape!r}.")
    found = reader(path, notes, limits or Limits(), values=yes_or_no(values, "values"), **said)
    logger.log(logging.INFO if found.cleanup.clean else logging.WARNING, "%s", found.cleanup)
    return found


def format_of(path: Path, format: str | None, notes: Notes) -> str:
    """The format that is asked for; else that of the name, if the first bytes don't contradict; else that of the bytes."""
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
