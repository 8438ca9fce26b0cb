"""A folder of Parquet files as the source of a sharded matrix: the workers read it, and the driver never holds an entry.

Entries are in the files in any order. Each file is read twice, by one worker: once to count the entries of ranges of rows, from
which the shards are cut, and once to write its entries to a file for each shard. A shard is loaded from these files.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from condgrad import checks
from condgrad.distributed.cluster import Cluster, Future
from condgrad.distributed.shards import ShardError, explain, load
from condgrad.distributed.sources import Opened, balanced, default_shards
from condgrad.objectives.losses import Loss
from condgrad.runtime.extras import needed_for
from condgrad.storage.atomic import replacing

BATCH_ROWS = 2**20
"""Number of entries of a file that are in memory at a time while they are counted."""
MAX_RANGES = 4096
"""Maximum number of ranges of rows whose entries are counted: shards begin at the bounds of ranges."""


@dataclass(frozen=True)
class ParquetFolder:
    """A folder of Parquet files with one entry of the matrix in each row, in any order.

    Parameters
    ----------
    path : str
        The folder. Its files ``*.parquet`` are read, in the order of their names.
    scratch : str
        An existing folder with room for all entries (16 to 32 bytes each). A folder of its own is made in it, and removed with
        the objective. All workers and the driver must see both folders under these names.
    columns : tuple of str, default ("row", "col", "value")
        Names of the columns with the numbers of the row and the column, counted from 0, and the value; a fourth one has weights.
    """

    path: str
    scratch: str
    columns: tuple[str, ...] = ("row", "col", "value")

    def __post_init__(self) -> None:
        if len(self.columns) not in (3, 4):
            raise ValueError(
                f"ParquetFolder has {len(self.columns)} columns, 3 or 4 were expected: row, column, value, weight."
            )

    def open(self, cluster: Cluster, shape: tuple[int, int], shards: int | None) -> Opened:
        with needed_for("Parquet files"):
            import pyarrow.parquet  # noqa: F401
        files = sorted(str(file) for file in Path(self.path).glob("*.parquet"))
        if not files:
            raise ValueError(f"There are no files *.parquet in {self.path}: name the folder that has them.")
        width = -(-shape[0] // MAX_RANGES)
        counts = sum(
            cluster.results(lambda: [cluster.submit(count, file, self.columns, shape[0], width) for file in files])
        )
        entries = int(np.sum(counts))
        checks.whole(entries, f"The number of entries in {self.path}")
        parts = default_shards(entries, shape[0]) if shards is None else shards
        cuts = np.minimum(balanced(np.asarray(counts), parts) * width, shape[0])
        folder = tempfile.mkdtemp(prefix="condgrad-shards-", dir=self.scratch)
        opened = Partitioned(folder, len(files), parts)
        cluster.results(
            lambda: [
                cluster.submit(partition, file, self.columns, cuts, folder, number) for number, file in enumerate(files)
            ]
        )
        return opened


class Partitioned:
    """Entries on disk, with files for each shard; they are removed when this object is gone."""

    def __init__(self, folder: str, files: int, n_shards: int):
        self.folder, self.files, self.n_shards = folder, files, n_shards
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def submit(self, cluster: Cluster, number: int, shape: tuple[int, int], loss: Loss, worker: str) -> Future:
        return cluster.submit(load, number, partial(read_parts, self.folder, self.files), shape, loss)


def batches(file: str, columns: tuple[str, ...]) -> Iterator[list[np.ndarray]]:
    """Yield the columns of a file, a batch of rows at a time."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as opened:
        missing = [name for name in columns if name not in opened.schema_arrow.names]
        if missing:
            raise ValueError(f"there is no column {missing[0]} among {', '.join(opened.schema_arrow.names)}")
        for batch in opened.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
            found = [batch.column(name) for name in columns]
            if any(column.null_count for column in found):
                raise ValueError("an entry is missing a row, a column or a value")
            yield [column.to_numpy(zero_copy_only=False) for column in found]


def count(file: str, columns: tuple[str, ...], n_rows: int, width: int) -> np.ndarray:
    """Return the number of entries of each range of ``width`` rows; raise ShardError if the file can't be used."""
    counts = np.zeros(-(-n_rows // width), np.int64)
    try:
        for (rows,) in batches(file, columns[:1]):
            if rows.dtype.kind not in "iu":
                raise ValueError(f"the column {columns[0]} holds {rows.dtype}, whole numbers were expected")
            if rows.size and (rows.min() < 0 or rows.max() >= n_rows):
                raise ValueError(f"rows go from {rows.min()} to {rows.max()}, but the matrix has {n_rows}")
            counts += np.bincount(rows // width, minlength=len(counts))
    except Exception as error:
        raise ShardError(f"The file {file} could not be read ({explain(error)}): correct it.") from None
    return counts


def part(folder: str, shard: int, number: int) -> Path:
    """Return the name of the file with the entries of a shard from one Parquet file."""
    return Path(folder) / f"shard-{shard:06d}-part-{number:06d}.npz"


def partition(file: str, columns: tuple[str, ...], cuts: np.ndarray, folder: str, number: int) -> None:
    """Write the entries of a Parquet file to a file for each shard. It may run twice: files are replaced as a whole."""
    try:
        found = list(batches(file, columns))
        data = [np.concatenate(column) for column in zip(*found, strict=True)] or [np.zeros(0, int)] * len(columns)
        shard = np.searchsorted(cuts[1:-1], data[0], side="right")
        order = np.argsort(shard, kind="stable")
        ends = np.searchsorted(shard[order], np.arange(len(cuts)))
        for i in range(len(cuts) - 1):
            kept = order[ends[i] : ends[i + 1]]
            with replacing(part(folder, i, number)) as stream:
                np.savez(stream, *(column[kept] for column in data))
    except Exception as error:
        raise ShardError(
            f"The entries of {file} could not be written to {folder} ({explain(error)}): check the file and the room on the disk."
        ) from None


def read_parts(folder: str, files: int, shard: int) -> tuple[Any, ...]:
    """Return the entries of a shard, from its files."""
    parts = []
    for number in range(files):
        with np.load(part(folder, shard, number), allow_pickle=False) as saved:
            parts.append([saved[f"arr_{k}"] for k in range(len(saved.files))])
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
