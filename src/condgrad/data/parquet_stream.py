"""Reads and writes Parquet files part by part, for tables that do not fit in memory."""

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
"""Maximum number of rows of a part that is read."""


def pairs(path: Path, columns: Sequence[str | int] | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Read a file of pairs (row, column). Yields the rows and the columns of the pairs, part by part.

    ``columns`` has the names or the numbers (from 0) of the two columns. By default, they are the columns with known names, or
    the only two columns.
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
                raise BadData(
                    f"{path}: the file has the columns {', '.join(known)}: name the two that have the rows and the columns of "
                    "the pairs."
                )
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
    """Context that writes a file with the columns row, column and value. It yields a function that writes a part.

    An existing file is replaced only when the block ends without an error. In all parts, names must have the same types.
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
