"""Columns of delimited text, parsed by pyarrow. Cells that are not plain are reported, not refused: a careful reader takes them.

pyarrow is optional. Without it every line is read by the careful reader of `lines`, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

BLANKS = " \t"
"""Characters that are cut off at both ends of a cell."""
PLAIN_NUMBER = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
MAX_DIGITS = 18
"""Digits of a whole number that surely fits into 64 bits."""


@cache
def available() -> bool:
    """Whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def parse(
    data: np.ndarray, delimiter: str, width: int, wanted: Iterable[int], quotes: bool, missing: Sequence[str] = ()
) -> tuple[dict[int, Any], np.ndarray]:
    """Split lines into cells.

    Parameters
    ----------
    data : ndarray of uint8
        Whole lines, none of them empty; quoted cells are closed on their line.
    delimiter : str
        One character.
    width : int
        Number of cells in a line.
    wanted : iterable of int
        Columns to return, from 0.
    quotes : bool
        Whether a quote at the beginning of a cell opens a quoted cell.
    missing : sequence of str, default ()
        Cells that become null.

    Returns
    -------
    columns : dict of int to pyarrow.StringArray
        The wanted cells of the lines that have ``width`` cells.
    fits : ndarray of bool, shape (lines,)
        Which lines these are.
    """
    import pyarrow as pa
    from pyarrow import csv

    wrong: list[int] = []

    def skip(row: Any) -> str:
        wrong.append(row.number - 1)
        return "skip"

    names = [str(k) for k in range(width)]
    kept = [str(k) for k in dict.fromkeys(wanted)]
    table = csv.read_csv(
        pa.BufferReader(pa.py_buffer(data)),
        read_options=csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False),
        parse_options=csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quotes else False,
            ignore_empty_lines=False,
            invalid_row_handler=skip,
        ),
        convert_options=csv.ConvertOptions(
            include_columns=kept,
            column_types=dict.fromkeys(kept, pa.string()),
            null_values=list(missing),
            strings_can_be_null=bool(missing),
            check_utf8=False,
        ),
    )
    fits = np.ones(table.num_rows + len(wrong), dtype=bool)
    fits[wrong] = False
    return {int(name): table.column(name).combine_chunks() for name in kept}, fits


def chosen(column: Any, which: np.ndarray) -> Any:
    """The cells of a column under a mask."""
    import pyarrow as pa

    return column.filter(pa.array(which))


def decimals(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Convert cells to numbers, correctly rounded.

    Parameters
    ----------
    column : pyarrow.StringArray of length k

    Returns
    -------
    numbers : ndarray of float64, shape (k,)
        NaN for null.
    ok : ndarray of bool, shape (k,)
        Which cells are finite numbers.
    """
    import pyarrow as pa
    from pyarrow import compute

    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        column = compute.ascii_trim(column, BLANKS)
        plain = compute.match_substring_regex(column, PLAIN_NUMBER)
        numbers = compute.if_else(plain, column, pa.scalar(None, pa.string())).cast(pa.float64())
    numbers = numbers.to_numpy(zero_copy_only=False)
    return numbers, np.isfinite(numbers)


def integers(column: Any) -> np.ndarray | None:
    """Convert cells to whole numbers, if all of them are written as Python writes them.

    Parameters
    ----------
    column : pyarrow.StringArray of length k
        Without null.

    Returns
    -------
    numbers : ndarray of int64, shape (k,), or None
        None if a cell is something else, such as 007, +7 or 0x7, which pyarrow would convert.
    """
    import pyarrow as pa

    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    if not len(column):
        return np.empty(0, dtype=np.int64)
    _, offsets, text = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    cells, length = np.frombuffer(text, dtype=np.uint8), np.diff(bounds)
    first, second = cells[bounds[:-1]], cells[np.minimum(bounds[:-1] + 1, len(cells) - 1)]
    minus = first == ord("-")
    padded = np.where(minus, second, first) == ord("0")
    if (padded & (length > 1)).any() or (length - minus).max() > MAX_DIGITS:
        return None
    return numbers.to_numpy()


def encode(column: Any) -> tuple[np.ndarray, Any, np.ndarray]:
    """Number the different cells.

    Parameters
    ----------
    column : pyarrow.StringArray of length k

    Returns
    -------
    codes : ndarray of int32, shape (k,)
    names : pyarrow.StringArray
        ``names[codes[i]]`` is cell i without the blanks around it. A name may occur twice.
    ok : ndarray of bool, shape (k,)
        Which cells are not empty.
    """
    from pyarrow import compute

    encoded = column.dictionary_encode()
    codes, names = encoded.indices.to_numpy(), compute.ascii_trim(encoded.dictionary, BLANKS)
    return codes, names, compute.binary_length(names).to_numpy()[codes] > 0


def merge(parts: Sequence[tuple[np.ndarray, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Number the names of several parts together.

    Parameters
    ----------
    parts : sequence of (codes, names)
        ``names`` are a pyarrow.StringArray, a list of str, or an ndarray of int64.

    Returns
    -------
    positions : ndarray of int64
        For each code of each part, the position of its name among all.
    names : ndarray of str objects
        All names that are in use, sorted, each once.
    """
    import pyarrow as pa
    from pyarrow import compute

    texts = [_strings(names) for _, names in parts]
    encoded = pa.concat_arrays(texts).dictionary_encode()
    begins = np.cumsum([0, *map(len, texts)])
    place = encoded.indices.to_numpy()
    codes = np.concatenate([place[begin:][codes] for begin, (codes, _) in zip(begins[:-1], parts, strict=True)])
    used = np.flatnonzero(np.bincount(codes, minlength=len(encoded.dictionary)))
    names = encoded.dictionary.take(pa.array(used))
    order = compute.sort_indices(names).to_numpy()
    rank = np.zeros(len(encoded.dictionary), dtype=np.int64)
    rank[used[order]] = np.arange(len(order))
    return rank[codes], np.array([*names.take(pa.array(order)).to_pylist(), None], dtype=object)[:-1]


def _strings(names: Any) -> Any:
    import pyarrow as pa

    if isinstance(names, np.ndarray):
        return pa.array(names).cast(pa.string())
    return pa.array(names, pa.string()) if isinstance(names, list) else names
