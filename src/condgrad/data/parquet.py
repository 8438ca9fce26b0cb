"""Parquet: columns by their names, batch by batch. The only file here that needs pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from condgrad.data.delimited import Columns, check_columns, places
from condgrad.data.index import Index, Names, Positions, Unusable
from condgrad.data.notes import Limits, Notes, shortly
from condgrad.data.observations import Observations, observations
from condgrad.data.text import FREE, opened

BATCH = 2**16


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
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ImportError("Parquet needs pyarrow: pip install 'condgrad[table]'.") from None
    needed = 3 if values else 2
    check_columns(columns, needed)
    m, n = shape or (None, None)
    rows: Index = Names("row", notes, limits) if ids else Positions("row", limits, base, m)
    cols: Index = Names("column", notes, limits) if ids else Positions("column", limits, base, n)
    reader = _Reader(rows, cols, notes)
    with opened(path, notes) as raw:
        try:
            file = parquet.ParquetFile(raw)
            names = _chosen(file, columns, needed, path, notes, limits)
            for batch in file.iter_batches(batch_size=BATCH, columns=names):
                reader.read(*(batch.column(name) for name in names))
                if notes.lines > limits.entries:
                    raise pa.ArrowInvalid("more rows than announced")
        except (pa.ArrowException, OSError, MemoryError, LookupError, UnicodeDecodeError) as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            notes.refuse(f"this is no Parquet file, or it is damaged ({said[:100].rstrip('.')})", "write it anew")
    return reader.close(values, limits)


def _chosen(file: Any, columns: Columns, needed: int, path: Path, notes: Notes, limits: Limits) -> list[str]:
    """The columns to read, after what the file announces is within the limits."""
    about, size = file.metadata, path.stat().st_size
    unpacked = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    allowed = min(limits.bytes, max(FREE, limits.ratio * size))
    if unpacked > allowed or about.num_rows > limits.entries:
        notes.refuse(
            f"the file's {size} bytes announce {unpacked} bytes in {about.num_rows} rows, but {allowed} bytes and "
            f"{limits.entries} rows are allowed",
            "check where it comes from, or raise Limits(bytes=..., entries=..., ratio=...)",
        )
    names = file.schema_arrow.names
    _, where = places(names, columns, needed, header=True)
    if isinstance(where, str):
        notes.refuse(where, "name them by columns=(row, column, value)")
    if max(where) >= len(names):
        notes.refuse(f"there are {len(names)} columns, but column {max(where)} was asked for", "count columns from 0")
    return [names[k] for k in where]


class _Reader:
    def __init__(self, rows: Index, cols: Index, notes: Notes):
        self.rows, self.cols, self.notes = rows, cols, notes
        self.values: list[np.ndarray] = []
        self.lines: list[np.ndarray] = []

    def read(self, rows: Any, cols: Any, values: Any = None) -> None:
        lines = self.notes.lines + 1 + np.arange(len(rows))
        self.notes.lines += len(rows)
        given = [_integers(rows), _integers(cols), np.zeros(len(rows)) if values is None else _floats(values)]
        i, j, numbers = given
        if i is not None and j is not None and numbers is not None and self.rows.fits(i) and self.cols.fits(j):
            self.rows.take_numbers(i)
            self.cols.take_numbers(j)
            self.values.append(numbers)
            self.lines.append(lines)
            return
        cells = [None] * len(rows) if values is None else values.to_pylist()
        kept, read = [], []
        for line, row, col, cell in zip(lines.tolist(), rows.to_pylist(), cols.to_pylist(), cells, strict=True):
            try:
                entry = self.rows.check(_name(row)), self.cols.check(_name(col))
                read.append(0.0 if values is None else _number(cell))
            except Unusable as error:
                self.notes.fault(error.args[0], line, *error.args[1:])
                continue
            self.rows.add(entry[0])
            self.cols.add(entry[1])
            kept.append(line)
        self.values.append(np.array(read, dtype=float))
        self.lines.append(np.array(kept, dtype=np.int64))

    def close(self, values: bool, limits: Limits) -> Observations:
        numbers = np.concatenate([*self.values, np.empty(0)]) if values else None
        lines = np.concatenate([*self.lines, np.empty(0, dtype=np.int64)])
        return observations(self.rows.close(), self.cols.close(), numbers, lines, self.notes, limits)


def _name(cell: Any) -> str:
    """A table that had holes keeps whole numbers as floats: 3.0 is 3."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.decode(errors="replace").strip() if isinstance(cell, bytes) else str(cell).strip()


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
    """The column at once, where it is of integers without holes."""
    from pyarrow import types

    if column.null_count or not types.is_integer(column.type) or column.type == "uint64":
        return None
    return column.to_numpy(zero_copy_only=False).astype(np.int64)


def _floats(column: Any) -> np.ndarray | None:
    """The column at once, where it is of finite numbers without holes."""
    from pyarrow import types

    if column.null_count or not (types.is_integer(column.type) or types.is_floating(column.type)):
        return None
    numbers = column.to_numpy(zero_copy_only=False).astype(float)
    return numbers if np.isfinite(numbers).all() else None
