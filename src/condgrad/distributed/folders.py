"""Folders of Parquet or CSV files as the source of sharded data: the workers read them, and the driver never holds the data.

Entries of a matrix are in the files in any order. Each file is read twice, by one worker: once to count the entries of ranges of
rows, from which the shards are cut, and once to write its entries to a file for each shard. A shard is loaded from these files.
If rows and columns have names, the files are read once before, to list the names. Rows of a linear model are not reordered: each
file is a shard.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from condgrad import checks
from condgrad.data.delimited import role
from condgrad.distributed.cluster import Cluster, Future, unfinished
from condgrad.distributed.shards import ShardError, explain
from condgrad.distributed.sources import Build, Loader, Opened, balanced, default_shards
from condgrad.runtime.extras import needed_for
from condgrad.storage.atomic import replacing

BATCH_ROWS = 2**20
"""Number of lines of a Parquet file that are in memory at a time while they are counted."""
CSV_BLOCK_BYTES = 2**24
"""Number of bytes of a CSV file that are in memory at a time while they are counted."""
MAX_RANGES = 4096
"""Maximum number of ranges of rows whose entries are counted: shards begin at the bounds of ranges."""
FORMATS = (".parquet", ".csv")
NAME, INDEX, NUMBER = "name", "index", "number"
"""Kinds of columns: names of rows or columns, their numbers from 0, and values."""


def files_in(path: str) -> list[str]:
    """Return the Parquet or CSV files of a folder, or those that a pattern names, in the order of their names.

    Raise ValueError if there are none, or both.
    """
    with needed_for("Folders of Parquet or CSV files"):
        import pyarrow  # noqa: F401
    named = Path(path).glob("*") if Path(path).is_dir() else map(Path, glob(path))
    names = sorted(map(str, named))
    found = {ending: [file for file in names if file.endswith(ending)] for ending in FORMATS}
    given = [files for files in found.values() if files]
    if len(given) != 1:
        what = "both Parquet and CSV files" if given else "no files *.parquet or *.csv"
        raise ValueError(f"There are {what} in {path}: name a folder with files of one format.")
    return given[0]


def column_names(path: str, given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the columns with row, column and value: those given, those with known names, or the only three."""
    file = files_in(path)[0]
    with reading(file):
        known = schema_of(file).names
    if given is not None:
        return tuple(known[int(name)] if name.isdecimal() and int(name) < len(known) else name for name in given)
    roles = [role(name) for name in known]
    if all(roles.count(part) == 1 for part in range(3)):
        return tuple(known[roles.index(part)] for part in range(3))
    if len(known) != 3:
        raise ValueError(
            f"It is not clear which of the columns {', '.join(known)} of {file} are row, column and value: name them by columns."
        )
    return tuple(known)


@dataclass(frozen=True)
class EntryFolder:
    """A folder of Parquet or CSV files with one entry of the matrix in each line, in any order.

    Parameters
    ----------
    path : str
        The folder, whose files ``*.parquet`` or ``*.csv`` are read, or a pattern of the names of such files, such as
        ``"ratings/*.parquet"``. They are read in the order of their names.
    scratch : str
        An existing folder with room for all entries (16 to 32 bytes each). A folder of its own is made in it, and removed with
        the objective. All workers and the driver must see both folders under these names.
    columns : tuple of str, default ("row", "col", "value")
        Names of the columns with the row, the column and the value of an entry; a fourth one has weights.
    names : bool, default False
        Whether rows and columns have names: any numbers or strings, of one type in all files. False: they are numbers, counted
        from 0. Names in CSV files are strings, as written there, unless all of them are whole numbers.
    """

    path: str
    scratch: str
    columns: tuple[str, ...] = ("row", "col", "value")
    names: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or len(self.columns) not in (3, 4):
            raise ValueError(
                f"EntryFolder has the columns {self.columns!r}, 3 or 4 names were expected: row, column, value, weight."
            )

    @classmethod
    def from_dask(
        cls, frame: Any, scratch: str, columns: tuple[str, ...] = ("row", "col", "value"), names: bool = False
    ) -> EntryFolder:
        """Write a Dask DataFrame with one entry in each line to a folder in ``scratch``: the workers do, a partition at a time.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
        scratch, columns, names
            As for the class.

        Returns
        -------
        EntryFolder
            Its files are removed when it is gone, which may be as soon as the objective has been made.
        """
        if not hasattr(frame, "to_parquet") or not hasattr(frame, "npartitions"):
            raise TypeError(f"The frame is of type {type(frame).__name__}, a Dask DataFrame was expected.")
        path = folder_in(scratch, "condgrad-entries-")
        folder = cls(path, scratch, columns, names)
        weakref.finalize(folder, shutil.rmtree, path, ignore_errors=True)
        frame[list(columns)].to_parquet(path, write_index=False)
        return folder

    def open(self, cluster: Cluster, shape: tuple[int, int] | None, shards: int | None) -> Opened:
        files, names = files_in(self.path), None
        if self.names:
            found = cluster.results(
                lambda: [cluster.submit(names_in, file, self.columns) for file in files],
                lambda tasks: unfinished(tasks, files, "File"),
            )
            names = tuple(all_names(lists, self.path) for lists in zip(*found, strict=True))
            known = len(names[0]), len(names[1])
            if shape not in (None, known):
                raise ValueError(f"The shape is {shape}, but the files name {known}: leave the shape out.")
            shape = known
        if shape is None:
            raise ValueError("The shape is missing: give it, or names=True if rows and columns have names.")
        n_rows, width = shape[0], -(-shape[0] // MAX_RANGES)

        def each(function: Any, *args: Any) -> list[Any]:
            """Return the results of a function of each file."""

            def start() -> list[Future]:
                sent = cluster.send(names or (), copies=len(files))  # each time: the worker that holds them may die
                return [cluster.submit(function, file, n, self.columns, *args, *sent) for n, file in enumerate(files)]

            return cluster.results(start, lambda tasks: unfinished(tasks, files, "File"))

        counts = np.asarray(sum(each(count, n_rows, width)))
        checks.whole(int(counts.sum()), f"The number of entries in {self.path}")
        parts = default_shards(int(counts.sum()), n_rows) if shards is None else shards
        cuts = np.minimum(balanced(counts, parts) * width, n_rows)
        folder = folder_in(self.scratch, "condgrad-shards-")
        opened = Partitioned(folder, len(files), parts, shape, names)
        try:
            each(partition, cuts, folder)
        except BaseException:
            opened.remove()  # at once: a traceback may keep this object, and the disk may be full
            raise
        return opened


class Partitioned:
    """Entries on disk, with files for each shard; they are removed when this object is gone."""

    def __init__(self, folder: str, files: int, n_shards: int, shape: tuple[int, int], names: Any):
        self.folder, self.files, self.n_shards, self.shape, self.names = folder, files, n_shards, shape, names
        self.remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def submit(
        self, cluster: Cluster, numbers: Sequence[int], build: Build, workers: Sequence[str]
    ) -> Sequence[Future]:
        read = partial(read_parts, self.folder, self.files)
        return Loader(read, self.n_shards).submit(cluster, numbers, build, workers)


@dataclass(frozen=True)
class RowFolder:
    """A folder of Parquet or CSV files with one row of a linear model in each line. Each file is a shard.

    Parameters
    ----------
    path : str
        The folder, which all workers see under this name. Its files ``*.parquet`` or ``*.csv`` are read, in the order of their
        names.
    target : str
        Name of the column with the targets y.
    features : sequence of str, default None
        Names of the columns of A; None: all columns but the target and the weights, in the order of the first file.
    weight : str, default None
        Name of the column with the weights; None: all rows count the same.
    single : bool, default False
        Whether A is float32, in half of the memory.
    """

    path: str
    target: str
    features: tuple[str, ...] | None = None
    weight: str | None = None
    single: bool = False

    def open(self, cluster: Cluster, shape: tuple[int, int] | None, shards: int | None) -> Opened:
        if isinstance(self.features, str):
            raise ValueError(f"The features of RowFolder are {self.features!r}: give a list of names of columns.")
        files = files_in(self.path)
        with reading(files[0]):
            known = schema_of(files[0]).names
        features = self.features or tuple(name for name in known if name not in (self.target, self.weight))
        if not features:
            raise ValueError(f"The files in {self.path} have no columns but {self.target}: features are missing.")
        read = partial(read_rows, files, tuple(features), self.target, self.weight, self.single)
        return Loader(read, len(files)).open(cluster, shape, shards)


def folder_in(scratch: str, prefix: str) -> str:
    """Make a folder of its own in the scratch folder."""
    try:
        return tempfile.mkdtemp(prefix=prefix, dir=scratch)
    except OSError as error:
        raise ValueError(
            f"No folder could be made in {scratch} ({explain(error)}): name an existing scratch folder that may be written to."
        ) from None


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Turn an exception into a ShardError that names the file."""
    try:
        yield
    except Exception as error:
        raise ShardError(f"The file {file} could not be read ({explain(error)}): correct it.") from None


def schema_of(file: str) -> Any:
    """Return the names and types of the columns of a file; types in a CSV file are those of its first block."""
    if file.endswith(".csv"):
        from pyarrow import csv

        with csv.open_csv(file) as opened:
            return opened.schema
    from pyarrow.parquet import read_schema

    return read_schema(file)


def read_rows(
    files: list[str], features: tuple[str, ...], target: str, weight: str | None, single: bool, number: int
) -> tuple[np.ndarray, ...]:
    """Return (A, y) or (A, y, weights) of a file."""
    columns = (*features, target, *([weight] if weight else []))
    parts = list(batches(files[number], columns, [NUMBER] * len(columns)))
    data = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)] or [np.zeros(0)] * len(columns)
    d = len(features)
    A = np.empty((len(data[d]), d), np.float32 if single else float)
    for j in range(d):
        A[:, j] = data[j]
    return (A, *data[d:])


def batches(file: str, columns: Sequence[str], kinds: Sequence[str]) -> Iterator[list[np.ndarray]]:
    """Yield the columns of a file, of the kinds NAME, INDEX or NUMBER, a batch of lines at a time."""
    schema = schema_of(file)
    missing = [name for name in columns if name not in schema.names]
    if missing:
        raise ValueError(f"there is no column {missing[0]} among {', '.join(schema.names)}")
    for batch in _read_csv(file, columns, kinds, schema) if file.endswith(".csv") else _read_parquet(file, columns):
        found = [batch.column(name) for name in columns]
        if any(column.null_count for column in found):
            raise ValueError("a line has an empty cell")
        arrays = [column.to_numpy(zero_copy_only=False) for column in found]
        yield [_checked(*each) for each in zip(arrays, columns, kinds, strict=True)]


def _checked(array: np.ndarray, column: str, kind: str) -> np.ndarray:
    """Return what a column holds as an array of the type that its kind needs."""
    if kind == INDEX and array.dtype.kind not in "iu":
        raise ValueError(
            f"the column {column} holds {array.dtype}, whole numbers were expected: give names=True for names"
        )
    if kind == NAME and array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"a name in the column {column} is NaN")
    if kind == NUMBER:
        return array.astype(float) if array.dtype.kind in "Ob" else array
    return array.astype(str) if array.dtype.kind == "O" else array


def _read_csv(file: str, columns: Sequence[str], kinds: Sequence[str], schema: Any) -> Iterator[Any]:
    """Read names as text, and numbers as float64 if the first ones happen to be whole."""
    import pyarrow as pa
    from pyarrow import csv

    types = {name: pa.string() for name, kind in zip(columns, kinds, strict=True) if kind == NAME}
    for name, kind in zip(columns, kinds, strict=True):
        found = schema.field(name).type
        if kind == NUMBER and (pa.types.is_integer(found) or pa.types.is_floating(found)):
            types[name] = pa.float64()
    missing = {"null_values": [""], "strings_can_be_null": True} if NAME in kinds else {}  # a name may be NA
    converting = csv.ConvertOptions(include_columns=list(columns), column_types=types, **missing)
    with csv.open_csv(file, csv.ReadOptions(block_size=CSV_BLOCK_BYTES, use_threads=False), None, converting) as opened:
        yield from opened


def _read_parquet(file: str, columns: Sequence[str]) -> Iterator[Any]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as opened:
        yield from opened.iter_batches(batch_size=BATCH_ROWS, columns=list(columns))


def entries_in(file: str, columns: Sequence[str], row_names: Any = None, col_names: Any = None) -> Iterator[list[Any]]:
    """Yield the columns of a file with entries, a batch at a time; names of rows and columns are replaced by their numbers."""
    kind = INDEX if row_names is None else NAME
    for found in batches(file, columns, (kind, kind, NUMBER, NUMBER)[: len(columns)]):
        for k, names in enumerate((row_names, col_names)[: len(found)]):
            if names is not None:
                found[k] = np.searchsorted(names, found[k].astype(names.dtype))
        yield found


def names_in(file: str, columns: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of the rows and of the columns in a file, each once."""
    with reading(file):
        found = [[np.unique(names) for names in parts] for parts in batches(file, columns[:2], (NAME, NAME))]
        rows, cols = ([part[k] for part in found] or [np.zeros(0)] for k in range(2))
        return np.unique(np.concatenate(rows)), np.unique(np.concatenate(cols))


def all_names(lists: Sequence[np.ndarray], path: str) -> np.ndarray:
    """Return the names in all files, each once; they are numbers if they are text in which all are whole numbers."""
    given = [names for names in lists if names.size]
    if not given:
        raise ValueError(f"The files in {path} have no entries: give at least one.")
    kinds, merged = {names.dtype.kind for names in given}, np.result_type(*(names.dtype for names in given))
    if len(kinds) > 1 and merged.kind not in "iu":  # int and float, or text: names that differ might become the same
        types = ", ".join(sorted({str(names.dtype) for names in given}))
        raise ValueError(
            f"The files in {path} have names of different types ({types}): write all of them with one type."
        )
    names = np.unique(np.concatenate(given))
    if names.dtype.kind == "U":
        try:
            numbers = names.astype(np.int64)
        except (ValueError, OverflowError):
            return names
        if np.array_equal(numbers.astype(str), names):  # not 007
            return np.sort(numbers)
    return names


def count(
    file: str,
    number: int,
    columns: Sequence[str],
    n_rows: int,
    width: int,
    row_names: Any = None,
    col_names: Any = None,
) -> np.ndarray:
    """Return the number of entries of each range of ``width`` rows; raise ShardError if the file can't be used."""
    counts = np.zeros(-(-n_rows // width), np.int64)
    with reading(file):
        for (rows,) in entries_in(file, columns[:1], row_names):
            if rows.size and (rows.min() < 0 or rows.max() >= n_rows):
                raise ValueError(f"rows go from {rows.min()} to {rows.max()}, but the matrix has {n_rows}")
            counts += np.bincount(rows // width, minlength=len(counts))
    return counts


def part(folder: str, shard: int, number: int) -> Path:
    """Return the name of the file with the entries of a shard from one of the given files."""
    return Path(folder) / f"shard-{shard:06d}-part-{number:06d}.npz"


def partition(
    file: str,
    number: int,
    columns: Sequence[str],
    cuts: np.ndarray,
    folder: str,
    row_names: Any = None,
    col_names: Any = None,
) -> None:
    """Write the entries of a file to a file for each shard. It may run twice: files are replaced as a whole."""
    with reading(file):
        found = list(entries_in(file, columns, row_names, col_names))
        data = [np.concatenate(column) for column in zip(*found, strict=True)] or [np.zeros(0, int)] * len(columns)
    try:
        shard = np.searchsorted(cuts[1:-1], data[0], side="right")
        order = np.argsort(shard, kind="stable")
        ends = np.searchsorted(shard[order], np.arange(len(cuts)))
        for i in range(len(cuts) - 1):
            kept = order[ends[i] : ends[i + 1]]
            with replacing(part(folder, i, number)) as stream:
                np.savez(stream, *(column[kept] for column in data))
    except Exception as error:
        raise ShardError(
            f"The entries of {file} could not be written to {folder} ({explain(error)}): check the room on the disk."
        ) from None


def read_parts(folder: str, files: int, shard: int) -> tuple[Any, ...]:
    """Return the entries of a shard, from its files."""
    parts = []
    for number in range(files):
        with np.load(part(folder, shard, number), allow_pickle=False) as saved:
            parts.append([saved[f"arr_{k}"] for k in range(len(saved.files))])
    parts = [part for part in parts if part[0].size] or parts[:1]  # the types of empty files do not count
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
