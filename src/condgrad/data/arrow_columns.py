"""Columns of delimited text, parsed by pyarrow. Cells that are not plain are reported, not refused: a careful reader takes them.

pyarrow is optional. Without it every line is read by the careful reader of `lines`, with the same result.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

BLANKS = " \t"
"""Characters that are cut off at both ends of a cell."""
PLAIN_NUMBER = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
DIGITS = b"-0123456789"
MAX_DIGITS = 18
"""Digits of a whole number that surely fits into 64 bits."""


@cache
def available() -> bool:
    """Whether pyarrow can be imported. A warning says so if it is installed and can't be."""
    try:
        import pyarrow.csv
    except ModuleNotFoundError:
        return False
    except ImportError as error:
        warnings.warn(
            f"pyarrow is installed but can't be imported ({error}): text is read by a slower reader. Install it again.",
            stacklevel=2,
        )
        return False
    return bool(pyarrow.csv)


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
    columns = (column.combine_chunks() for column in table.itercolumns())
    return dict(zip(map(int, kept), columns, strict=True)), fits


def chosen(cells: Any, which: np.ndarray) -> Any:
    """The cells of an ndarray or of a pyarrow column under a mask."""
    import pyarrow as pa

    return cells[which] if isinstance(cells, np.ndarray) else cells.filter(pa.array(which))


def joined(columns: Iterable[Any]) -> Any:
    """The cells of several columns, one column after the other."""
    import pyarrow as pa

    return pa.concat_arrays(columns)


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

    column = trimmed(column)
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
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

    if not len(column):
        return np.empty(0, dtype=np.int64)
    bounds, text = _buffers(column)
    if text[:1].tobytes() not in DIGITS:
        return None
    length, start = bounds[1:] - bounds[:-1], bounds[:-1]
    signs = np.count_nonzero(text - ord("0") > 9)  # unsigned: bytes below 0 are large
    if signs == len(text) or length.min() == 0 or length.max() > MAX_DIGITS:
        return None
    if signs:
        minus = text[start] == ord("-")
        if np.count_nonzero(minus) != signs or (length[minus] == 1).any():
            return None
        start = start + minus
    if ((text[start] == ord("0")) & ((length > 1) | (start != bounds[:-1]))).any():
        return None
    return column.cast(pa.int64()).to_numpy()


def _buffers(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """(bounds of the cells, bytes of all of them) of a pyarrow.StringArray."""
    _, offsets, text = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    cells = np.frombuffer(text or b"", dtype=np.uint8)[bounds[0] : bounds[-1]]
    return bounds - bounds[0], cells


def trimmed(column: Any) -> Any:
    """A column without blanks around its cells; the column itself if it has no blank."""
    from pyarrow import compute

    return compute.ascii_trim(column, BLANKS) if (_buffers(column)[1] <= ord(" ")).any() else column


def filled(column: Any) -> np.ndarray:
    """Mask of the cells that are not empty and do not begin with a blank."""
    bounds, text = _buffers(column)
    full = bounds[1:] > bounds[:-1]
    return full & (text[np.minimum(bounds[:-1], len(text) - 1)] > ord(" ")) if len(text) else full


def encode(columns: Sequence[Any]) -> tuple[np.ndarray, Any]:
    """Number the different cells of columns that follow each other.

    Parameters
    ----------
    columns : sequence of pyarrow.StringArray
        With k cells in all.

    Returns
    -------
    codes : ndarray of int32, shape (k,)
    names : pyarrow.StringArray
        ``names[codes[i]]`` is cell i without the blanks around it. A name may occur twice.
    """
    import pyarrow as pa

    encoded = pa.chunked_array(columns).dictionary_encode()  # all chunks have the dictionary of the last one
    codes = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    return np.concatenate(codes), trimmed(encoded.chunks[-1].dictionary)


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
        All names, sorted, each once.
    """
    import pyarrow as pa
    from pyarrow import compute

    texts = [_strings(names) for _, names in parts]
    encoded = pa.concat_arrays(texts).dictionary_encode()
    order = compute.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    place, begins = rank[encoded.indices.to_numpy()], np.cumsum([0, *map(len, texts)])
    positions = [place[begin:][codes] for begin, (codes, _) in zip(begins[:-1], parts, strict=True)]
    names = np.empty(len(order), dtype=object)
    names[:] = encoded.dictionary.take(order).to_pylist()
    return np.concatenate(positions), names


def _strings(names: Any) -> Any:
    import pyarrow as pa

    if isinstance(names, np.ndarray):
        return pa.array(names).cast(pa.string())
    return pa.array(names, pa.string()) if isinstance(names, list) else names
