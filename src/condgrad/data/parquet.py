"""Reader of Parquet files. It finds the columns by name, and reads them in batches. It needs pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from condgrad.data import text_stream
from condgrad.data.delimited import WIDE_TABLE_ADVICE, Columns, check_columns, places, sides
from condgrad.data.diagnostics import Limits, Notes, Unusable, shortly
from condgrad.data.labels import Collected, Index
from condgrad.data.observations import Observations, observations
from condgrad.runtime.extras import needed_for
from condgrad.storage.files import size_of

BATCH_ROWS = 2**16
"""Number of rows that are read at a time."""
LIMITS_ADVICE = "check where it comes from, or raise Limits(bytes=..., entries=..., ratio=...)"
MIN_ENTRY_BYTES = 32
"""Minimum number of bytes that an entry takes in memory."""


def read(
    path: Path,
    notes: Notes,
    limits: Limits,
    columns: Columns = None,
    values: bool = True,
    ids: bool = True,
    base: int = 0,
    shape: tuple[int, int] | None = None,
) -> Observations:
    """Read a Parquet file. See `load` for the parameters."""
    with needed_for("Parquet files"):
        import pyarrow as pa
        from pyarrow import parquet
    needed = 3 if values else 2
    check_columns(columns, needed)
    rows, cols = sides(notes, limits, ids, base, shape)
    with text_stream.opened(path, notes) as raw:
        try:
            file = parquet.ParquetFile(raw)
            allowed = limits.allowed(size_of(raw))
            names = _chosen(file, columns, needed, allowed, notes, limits)
            single = values and file.schema_arrow.field(names[2]).type == pa.float32()
            reader = _Reader(rows, cols, notes, limits, allowed, np.float32 if single else float)
            file = parquet.ParquetFile(
                raw, read_dictionary=names
            )  # a text that occurs in many rows is then in memory once
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=names):
                reader.read(*(batch.column(name) for name in names))
                if notes.lines > limits.entries:
                    raise pa.ArrowInvalid("more rows than announced")
        except (pa.ArrowException, OSError, MemoryError, LookupError, UnicodeDecodeError) as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            notes.refuse(f"this is no Parquet file, or it is damaged ({said[:100].rstrip('.')})", "write it again")
    return reader.close(values, limits)


def _chosen(file: Any, columns: Columns, needed: int, allowed: int, notes: Notes, limits: Limits) -> list[str]:
    """Names of the columns to read. A file is refused if the sizes in its header exceed the limits."""
    from pyarrow import types

    about, schema = file.metadata, file.schema_arrow
    names = schema.names
    _, where = places(names, columns, needed, header=True)
    if isinstance(where, str):
        notes.refuse(
            where, "name them by columns=(row, column, value)" + WIDE_TABLE_ADVICE * (columns is None and needed == 3)
        )
    if max(where) >= len(names):
        notes.refuse(f"there are {len(names)} columns, but column {max(where)} was asked for", "count columns from 0")
    kinds = [schema.field(k).type for k in where]
    for k, kind in zip(where, kinds, strict=True):
        if types.is_nested(kind):
            notes.refuse(f"the column {shortly(names[k])} holds {shortly(str(kind))}", "give one value in each row")
    encoded = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    row = MIN_ENTRY_BYTES + sum(kind.byte_width for kind in kinds if types.is_fixed_size_binary(kind))
    unpacked = max(encoded, about.num_rows * row)
    if unpacked > allowed or about.num_rows > limits.entries:
        notes.refuse(
            f"the file announces {unpacked} bytes in {about.num_rows} rows, but {allowed} bytes and "
            f"{limits.entries} rows are allowed",
            LIMITS_ADVICE,
        )
    return [names[k] for k in where]


class _Reader:
    """Collects rows, columns and values. A batch that has only numbers is added at once, any other batch cell by cell."""

    def __init__(self, rows: Index, cols: Index, notes: Notes, limits: Limits, allowed: int, dtype: type):
        self.rows, self.cols, self.notes, self.limits, self.allowed = rows, cols, notes, limits, allowed
        self.values, self.lines = Collected(dtype), Collected()
        self.bytes = 0

    def read(self, rows: Any, cols: Any, values: Any = None) -> None:
        lines = self.notes.lines + 1 + np.arange(len(rows))
        self.notes.lines += len(rows)
        given = [_integers(rows), _integers(cols), np.zeros(len(rows)) if values is None else _floats(values)]
        i, j, numbers = given
        if i is not None and j is not None and numbers is not None and self.rows.fits(i) and self.cols.fits(j):
            self.rows.take(i)
            self.cols.take(j)
            self.values.extend(numbers)
            self.lines.extend(lines)
            return
        cells = [None] * len(rows) if values is None else self._cells(values)
        for line, row, col, cell in zip(lines.tolist(), self._cells(rows), self._cells(cols), cells, strict=True):
            try:
                entry = self.rows.check(self._name(row)), self.cols.check(self._name(col))
                number = 0.0 if values is None else _number(cell)
            except Unusable as error:
                self.notes.fault(error.args[0], line, *error.args[1:])
                continue
            self.rows.add(entry[0])
            self.cols.add(entry[1])
            self.values.add(number)
            self.lines.add(line)

    def _cells(self, column: Any) -> list[Any]:
        """Convert the cells to Python objects. The file is refused if all cells read so far together exceed the limits.

        Equal cells of a dictionary column are one object. For the limits, each of them counts.
        """
        import pyarrow as pa

        if not hasattr(column, "dictionary"):
            self._count(column.nbytes)
            try:
                return list(column.to_pylist())
            except (OverflowError, ValueError):
                self.notes.refuse(
                    f"a {column.type} in this column is outside of the range of Python",
                    "write it as text or as a number",
                )
        where = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        used, place, often = np.unique(where, return_inverse=True, return_counts=True)
        there = used >= 0
        texts: list[Any] = column.dictionary.take(pa.array(used[there])).to_pylist()
        self._count(
            sum(
                len(cell) * n
                for cell, n in zip(texts, often[there].tolist(), strict=True)
                if isinstance(cell, str | bytes)
            )
        )
        texts = texts if there.all() else [None, *texts]
        return [texts[k] for k in place.tolist()]

    def _count(self, nbytes: int) -> None:
        self.bytes += nbytes
        if self.bytes > self.allowed:
            self.notes.refuse(
                f"the cells unpack to more than {self.allowed} bytes, but that much is not allowed", LIMITS_ADVICE
            )

    def _name(self, cell: Any) -> str:
        """The name in a cell. 3.0 becomes the name "3", because tables with missing cells store whole numbers as floats."""
        if cell is None or cell != cell:
            return ""
        if isinstance(cell, float) and cell.is_integer():
            return str(int(cell))
        name = cell.decode(errors="replace").strip() if isinstance(cell, bytes) else str(cell).strip()
        if len(name) > self.limits.line:
            expected = f"at most {self.limits.line} are allowed"
            raise Unusable("long line", f"{len(name)} characters in a name", expected)
        return name

    def close(self, values: bool, limits: Limits) -> Observations:
        numbers = self.values.close() if values else None
        return observations(self.rows.close(), self.cols.close(), numbers, self.lines.close(), self.notes, limits)


def _number(cell: Any) -> float:
    if cell is None or cell != cell:
        raise Unusable("missing value", "the value is missing", "a number was expected")
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        raise Unusable("not a number", f"the value is {shortly(str(cell))}", "a number was expected") from None
    if not np.isfinite(number):
        raise Unusable("not finite", f"the value is {cell}", "a finite number was expected")
    return number


def _integers(column: Any) -> np.ndarray | None:
    """The column as an array of int64; None if the column has missing cells or its type is not an integer type."""
    from pyarrow import types

    if column.null_count or not types.is_integer(column.type) or column.type == "uint64":
        return None
    return column.to_numpy(zero_copy_only=False).astype(np.int64)


def _floats(column: Any) -> np.ndarray | None:
    """The column as an array of floats; None if the column has missing cells or cells that are not finite numbers."""
    from pyarrow import types

    if column.null_count or not (types.is_integer(column.type) or types.is_floating(column.type)):
        return None
    numbers = column.to_numpy(zero_copy_only=False)
    numbers = numbers if numbers.dtype == np.float32 else numbers.astype(float)
    return numbers if np.isfinite(numbers).all() else None
