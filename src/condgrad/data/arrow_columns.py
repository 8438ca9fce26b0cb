"""Parses columns of delimited text by the optional package pyarrow. `columns` uses this module if pyarrow is installed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

BLANKS = " \t"
"""Characters that are cut off at both ends of a cell."""
PLAIN_NUMBER = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
"""Regular expression of a decimal number."""
DIGITS = b"-0123456789"
"""Characters with which an integer may begin."""
MAX_DIGITS = 18
"""Maximum number of digits of an integer. Every integer with 18 digits fits into 64 bits."""


@cache
def available() -> bool:
    """Whether pyarrow can be imported. A warning is given if it is installed but the import fails."""
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
    data: np.ndarray,
    delimiter: str,
    width: int,
    wanted: Iterable[int],
    quotes: bool,
    missing: Sequence[str] = (),
    number: int | None = None,
) -> tuple[dict[int, Any], np.ndarray]:
    """Split lines into cells by pyarrow. See `condgrad.data.columns.parse` for the parameters and results.

    Each column is a pyarrow.StringArray. The column ``number`` is a DoubleArray if all of its cells are numbers.
    """
    import pyarrow as pa
    from pyarrow import csv

    wrong: list[int] = []

    def skip(row: Any) -> str:
        wrong.append(row.number - 1)
        return "skip"

    def table_with(types: dict[str, Any]) -> Any:
        wrong.clear()
        return csv.read_csv(
            pa.BufferReader(pa.py_buffer(data)),
            read_options=csv.ReadOptions(
                column_names=[str(k) for k in range(width)], block_size=len(data) + 1, use_threads=False
            ),
            parse_options=csv.ParseOptions(
                delimiter=delimiter,
                quote_char='"' if quotes else False,
                ignore_empty_lines=False,
                invalid_row_handler=skip,
            ),
            convert_options=csv.ConvertOptions(
                include_columns=list(types),
                column_types=types,
                null_values=list(missing),
                strings_can_be_null=bool(missing),
                check_utf8=False,
            ),
        )

    types = {str(k): pa.string() for k in wanted}
    try:
        table = table_with(types if number is None else types | {str(number): pa.float64()})
    except pa.ArrowInvalid:  # a cell of the column `number` is not a number
        table = table_with(types)
    fits = np.ones(table.num_rows + len(wrong), dtype=bool)
    fits[wrong] = False
    columns = (c.chunk(0) if c.num_chunks == 1 else c.combine_chunks() for c in table.itercolumns())
    return dict(zip(map(int, types), columns, strict=True)), fits


def chosen(cells: Any, which: np.ndarray) -> Any:
    """The cells of an ndarray or of a pyarrow column at which the mask ``which`` is True."""
    import pyarrow as pa

    return cells[which] if isinstance(cells, np.ndarray) else cells.filter(pa.array(which))


def decimals(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Convert a pyarrow.StringArray or DoubleArray to numbers. See `condgrad.data.columns.decimals` for the results."""
    import pyarrow as pa
    from pyarrow import compute

    if column.type != pa.float64():
        column = trimmed(column)
        plain = compute.match_substring_regex(column, PLAIN_NUMBER)
        column = compute.if_else(plain, column, pa.scalar(None, pa.string())).cast(pa.float64())
    numbers = column.to_numpy(zero_copy_only=False)
    return numbers, np.isfinite(numbers)


def integers(column: Any) -> np.ndarray | None:
    """Convert cells to whole numbers, if every cell is an integer in Python's spelling.

    Parameters
    ----------
    column : pyarrow.StringArray of length k
        A column without null cells.

    Returns
    -------
    numbers : ndarray of int64, shape (k,), or None
        The integers, or None if a cell is anything else, such as 007, +7 or 0x7. (pyarrow would convert these three.)
    """
    import pyarrow as pa

    if not len(column):
        return np.empty(0, dtype=np.int64)
    text = _buffers(column)[1]
    if not len(text) or text[0] not in DIGITS or text.max() > ord("9"):
        return None
    try:
        numbers: np.ndarray = column.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    low, high = int(numbers.min()), int(numbers.max())
    largest = max(-low, high)
    if largest >= 10**MAX_DIGITS:
        return None
    # any other spelling of an integer, such as 007, +7 or -0, is longer than Python's: compare the total lengths
    sizes = np.abs(numbers) if low < 0 else numbers
    length = len(numbers) + (np.count_nonzero(numbers < 0) if low < 0 else 0)
    length += sum(np.count_nonzero(sizes >= 10**k) for k in range(1, len(str(largest))))
    return numbers if length == len(text) else None


def _buffers(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds and the bytes of a pyarrow.StringArray: cell i is ``bytes[bounds[i] : bounds[i + 1]]``."""
    _, offsets, text = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    cells = np.frombuffer(text or b"", dtype=np.uint8)[bounds[0] : bounds[-1]]
    return bounds - bounds[0], cells


def trimmed(column: Any) -> Any:
    """Remove the blanks around the cells. Returns the same object if no cell begins or ends with a blank."""
    from pyarrow import compute

    bounds, text = _buffers(column)
    if not (text <= ord(" ")).any():
        return column
    begins, ends = bounds[:-1], bounds[1:]
    full = ends > begins
    outer = np.concatenate([text[begins[full]], text[ends[full] - 1]])
    return compute.ascii_trim(column, BLANKS) if np.isin(outer, [*BLANKS.encode()]).any() else column


def filled(column: Any) -> np.ndarray:
    """Mask of the cells that are not empty and do not begin with a blank."""
    bounds, text = _buffers(column)
    full = bounds[1:] > bounds[:-1]
    if full.all():
        return text[bounds[:-1]] > ord(" ")
    return full & (text[np.minimum(bounds[:-1], len(text) - 1)] > ord(" ")) if len(text) else full


def encode(columns: Sequence[Any]) -> tuple[np.ndarray, Any]:
    """Number the distinct cells of a column that is given in parts.

    Parameters
    ----------
    columns : sequence of pyarrow.StringArray
        The parts, with k cells in all.

    Returns
    -------
    codes : ndarray of int32, shape (k,)
    names : pyarrow.StringArray
        The distinct cells without the blanks around them. ``names[codes[i]]`` is cell i.
    """
    import pyarrow as pa

    encoded = pa.chunked_array(columns).dictionary_encode()  # the dictionary of the last chunk is valid for all chunks
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    names = encoded.chunks[-1].dictionary
    if (cut := trimmed(names)) is not names:  # the same name may occur with and without blanks
        again = cut.dictionary_encode()
        codes, names = again.indices.to_numpy()[codes], again.dictionary
    return codes, names


def merge(parts: Sequence[tuple[np.ndarray, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Number the names of several parts together.

    Parameters
    ----------
    parts : sequence of (codes, names)
        ``names`` is a pyarrow.StringArray, a list of str, or an ndarray of int64. In each part, every name occurs once.

    Returns
    -------
    positions : ndarray of int64
        For each code of each part, the position of the code's name in the returned ``names``.
    names : ndarray of str objects
        The distinct names of all parts, sorted.
    """
    import pyarrow as pa
    from pyarrow import compute

    texts = [_strings(names) for _, names in parts]
    place, known = np.arange(len(texts[0])), texts[0]
    if len(texts) > 1:
        encoded = pa.concat_arrays(texts).dictionary_encode()
        place, known = encoded.indices.to_numpy(), encoded.dictionary
    order = compute.sort_indices(known)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    place, begins = rank[place], np.cumsum([0, *map(len, texts)])
    positions = [place[begin:][codes] for begin, (codes, _) in zip(begins[:-1], parts, strict=True)]
    names = np.empty(len(order), dtype=object)
    names[:] = known.take(order).to_numpy(zero_copy_only=False)
    return np.concatenate(positions), names


def _strings(names: Any) -> Any:
    import pyarrow as pa

    if isinstance(names, np.ndarray):
        return pa.array(names).cast(pa.string())
    return pa.array(names, pa.string()) if isinstance(names, list) else names
