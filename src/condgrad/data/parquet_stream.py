"""Parquet files that are read and written a part at a time, for tables that do not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from condgrad.checks import BadData
from condgrad.data.delimited import role
from condgrad.runtime.extras import needed_for
from condgrad.storage.atomic import replacing

CHUNK_ROWS = 2**20
"""Number of rows of a part that is read."""


def pairs(path: Path, columns: Sequence[str | int] | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows and the columns of pairs in a file, a part at a time.

    ``columns`` are the two columns, by name or counted from 0; None: those with known names, or the only two.
    """
    with needed_for("Parquet files"):
        import pyarrow as pa
        from pyarrow import parquet
    try:
        with path.open("rb") as source, parquet.ParquetFile(source) as file:
            known = file.schema_arrow.names
            roles = [role(name) for name in known]
            by_role = [known[roles.index(part)] for part in range(2)] if {0, 1} <= set(roles) else known
            given = by_role if columns is None else columns
            names = [known[c] if isinstance(c, int) and c < len(known) else str(c) for c in given]
            if len(names) != 2 or not set(names) <= set(known):
                raise BadData(f"{path}: there are the columns {', '.join(known)}: name two of them, rows and columns.")
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=names):
                found = [batch.column(name) for name in names]
                if any(column.null_count for column in found):
                    raise BadData(f"{path}: a pair has an empty cell: leave it out.")
                rows, cols = (column.to_numpy(zero_copy_only=False) for column in found)
                yield rows, cols
    except pa.ArrowException as error:
        raise BadData(f"{path} is no Parquet file, or it is damaged ({error}): write it again.") from None


@contextmanager
def predictions(path: Path) -> Iterator[Callable[[np.ndarray, np.ndarray, np.ndarray], None]]:
    """Write a file with the columns row, column and value; it is replaced only when the block has ended without an error.

    Yields a function that writes a part. All parts must have names of the same types.
    """
    with needed_for("Parquet files"):
        import pyarrow as pa
        from pyarrow import parquet
    with replacing(path) as file:
        writer = None

        def write(rows: np.ndarray, cols: np.ndarray, values: np.ndarray) -> None:
            nonlocal writer
            part = pa.table({"row": rows, "column": cols, "value": values})
            writer = writer or parquet.ParquetWriter(file, part.schema)
            writer.write_table(part)

        yield write
        if writer is None:
            write(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        writer.close()  # type: ignore[union-attr]
