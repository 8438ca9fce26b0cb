"""One million lines of CSV: `condgrad.data.load` beside `pandas.read_csv` and factorising both columns of names.

The column pyarrow has the parts of `load` that are calls of pyarrow: parsing text, and numbering the names of both columns.

Each round reads each file once with each reader, so that whatever else the machine does slows down both. The time of a reader is
its least over the rounds. CPU seconds count all threads. Peak memory is that of a separate process, without its imports.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from benchmarks.harness import Claim, Row, arguments, finish, table
from condgrad.data import load

LINES, QUICK_LINES = 1_000_000, 200_000
ROUNDS, QUICK_ROUNDS = 15, 5
MAX_RATIO = 1.2
PEAK = """
import sys
from pathlib import Path
from benchmarks.readers import READERS, peak
small = Path(sys.argv[2]).with_suffix(".small")
READERS[sys.argv[1]](small)
before = peak()
READERS[sys.argv[1]](Path(sys.argv[2]))
print(peak() - before)
"""


def peak() -> float:
    """MiB that this process has had at most. Linux only: what getrusage says of a new process may be that of its parent."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def by_pandas(path: Path) -> Any:
    frame = pd.read_csv(path)
    return [pd.factorize(frame[name]) for name in frame.columns[:2]]


def by_pyarrow(path: Path) -> Any:
    """What `load` can't do without: the ids as text, so that 007 and 7 stay two names, and numbered by pyarrow."""
    types = {"user": pa.string(), "item": pa.string(), "rating": pa.float64()}
    options = csv.ConvertOptions(column_types=types, check_utf8=False)
    found = csv.read_csv(path, csv.ReadOptions(use_threads=False), convert_options=options)
    return [found[name].dictionary_encode() for name in ("user", "item")]


READERS: dict[str, Callable[[Path], Any]] = {"pandas": by_pandas, "pyarrow": by_pyarrow, "condgrad": load}


def write(folder: Path, lines: int) -> dict[str, Path]:
    """Ids that are integers with ratings or with 17 digits, and ids that are strings; 60,000 rows and 4,000 columns."""
    rng = np.random.default_rng(0)
    places = rng.choice(60_000 * 4_000, size=lines, replace=False)
    rows, cols = (places // 4_000).tolist(), (places % 4_000).tolist()
    stars, values = (rng.integers(1, 11, lines) / 2).tolist(), rng.normal(size=lines).tolist()
    texts = {
        "integers, ratings": (f"{i},{j},{x}\n" for i, j, x in zip(rows, cols, stars, strict=True)),
        "integers, 17 digits": (f"{i},{j},{x!r}\n" for i, j, x in zip(rows, cols, values, strict=True)),
        "strings, 17 digits": (f"user {i},item-{j},{x!r}\n" for i, j, x in zip(rows, cols, values, strict=True)),
    }
    paths = {}
    for name, text in texts.items():
        paths[name] = folder / f"{name.replace(', ', '-').replace(' ', '-')}.csv"
        with paths[name].open("w", encoding="utf-8") as file:
            file.write("user,item,rating\n")
            file.writelines(text)
        paths[name].with_suffix(".small").write_text("user,item,rating\n1,2,3\n", encoding="utf-8")
    return paths


def measure(name: str, path: Path, rounds: int) -> Row:
    seconds: dict[str, list[float]] = {reader: [] for reader in READERS}
    cpu: dict[str, list[float]] = {reader: [] for reader in READERS}
    for _ in range(rounds):
        for reader, read in READERS.items():
            begun, used = perf_counter(), process_time()
            read(path)
            seconds[reader].append(perf_counter() - begun)
            cpu[reader].append(process_time() - used)
    row: Row = {"file": name, "MB": path.stat().st_size / 1e6, "rounds": rounds}
    for reader, times in seconds.items():
        command = [sys.executable, "-c", PEAK, reader, str(path)]
        memory = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        row |= {f"{reader} s": min(times), f"{reader} CPU s": min(cpu[reader]), f"{reader} MiB": float(memory)}
        row |= {f"{reader} rounds s": times}
    return row | {"CPU ratio": row["condgrad CPU s"] / row["pandas CPU s"]}


def main() -> None:
    args = arguments(__doc__)
    lines, rounds = (QUICK_LINES, QUICK_ROUNDS) if args.quick else (LINES, ROUNDS)
    with TemporaryDirectory() as folder:
        rows = [measure(name, path, rounds) for name, path in write(Path(folder), lines).items()]
    shown = (
        "file",
        "MB",
        "pandas s",
        "condgrad s",
        "pandas CPU s",
        "pyarrow CPU s",
        "condgrad CPU s",
        "CPU ratio",
        "pandas MiB",
        "condgrad MiB",
    )
    table(
        f"{lines:,} lines of CSV",
        shown,
        [[row[name] for name in shown] for row in rows],
        "Least of interleaved rounds.",
    )
    claims = [
        Claim(
            f"{row['file']}: the CPU time of pandas.read_csv and factorising, at most {MAX_RATIO} times",
            f"<= {MAX_RATIO}",
            f"{row['CPU ratio']:.2f}",
            row["CPU ratio"] <= MAX_RATIO,
        )
        for row in rows
    ]
    finish("readers", args, rows, claims, lines=lines, pandas=pd.__version__)


if __name__ == "__main__":
    main()
