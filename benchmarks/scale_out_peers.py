"""Ratings on Dask workers and in Spark's ALS: the same Parquet files, the same number of threads, with and without gross errors.

The values are those of a matrix of rank 10 with noise; RMSE is that of predictions of the matrix itself at entries that were not
given. condgrad is `RobustCompletion(client=...)` with worker processes of one thread, as `condgrad complete --workers`; Spark's
ALS runs in the interpreter that `--spark` names, where pyspark is installed, with as many local threads, the true rank, and the
best of three regularisations by the RMSE of a tenth of the entries. `implicit` is not here: it fits whether there is an entry,
and not its value. Memory is the sum of the peaks of all processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from benchmarks import scale_out
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad import kernels
from condgrad.distributed import EntryFolder, ShardedCompletion
from condgrad.distributed.start import local_cluster
from condgrad.learn import RobustCompletion

THREADS, NOISE, GROSS, SHARE, UNSEEN = 2, 0.1, 10.0, 0.05, 200_000
SPARK = """
import json, os, subprocess, sys, time
folder, unseen, threads, memory = sys.argv[1:]
from pyspark.sql import SparkSession
from pyspark.ml.recommendation import ALS
begun = time.monotonic()
spark = (SparkSession.builder.master(f"local[{threads}]").config("spark.driver.memory", memory)
         .config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
entries, unseen = spark.read.parquet(folder), spark.read.parquet(unseen)
train, held_out = entries.randomSplit([0.9, 0.1], seed=0)
def fitted(part, reg):
    return ALS(rank=10, maxIter=10, regParam=reg, userCol="row", itemCol="col", ratingCol="value", seed=0,
               coldStartStrategy="drop").fit(part)
def rmse(model, part):
    found = model.transform(part).selectExpr("avg(pow(prediction - value, 2)) as e").first()
    return found["e"] ** 0.5
best = min((0.01, 0.03, 0.1), key=lambda reg: rmse(fitted(train, reg), held_out))
error = rmse(fitted(entries, best), unseen)
took = time.monotonic() - begun
def peak(pid):
    with open(f"/proc/{pid}/status") as lines:
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)
java = spark.sparkContext._gateway.proc.pid
children = subprocess.run(["pgrep", "-P", str(java)], capture_output=True, text=True).stdout.split()
pids = [os.getpid(), java, *map(int, children)]
print(json.dumps({"rmse": error, "seconds": took, "megabytes": sum(map(peak, pids)), "setting": f"regParam={best}"}))
"""


def shard(size: int, entries: int, shards: int, wrong: float, i: int) -> dict[str, np.ndarray]:
    """The entries of a shard as columns; ``wrong`` is the share of gross errors."""
    rng = np.random.default_rng((3, i))
    rows, cols, _ = scale_out.make(size, size, entries, shards, "float64", i)
    values = truth(size, shards, rows, cols) + NOISE * rng.standard_normal(len(rows))
    bad = rng.random(len(rows)) < wrong
    values[bad] += rng.uniform(-GROSS, GROSS, int(bad.sum()))
    return {"row": rows, "col": cols, "value": values.astype(np.float32)}


def truth(size: int, shards: int, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    U = np.concatenate([scale_out.row_factor(size, shards, i)[1] for i in range(shards)])
    return kernels.sample_at(rows, cols, U, scale_out.column_factor(size))


def write(path: Path, columns: dict[str, np.ndarray]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path)


def compare(entries: int, spark: str | None, memory: str) -> Iterator[Row]:
    size, shards = int(np.sqrt(100 * entries)), max(8, entries // 2**21)
    rng = np.random.default_rng(4)
    rows, cols = (rng.integers(size, size=UNSEEN).astype(np.int32) for _ in range(2))
    values = truth(size, shards, rows, cols)
    for wrong in (0.0, SHARE):
        with tempfile.TemporaryDirectory(prefix="condgrad-peers-") as folder:
            data = Path(folder) / "data"
            data.mkdir()
            for i in range(shards):
                write(data / f"{i:05}.parquet", shard(size, entries, shards, wrong, i))
            write(Path(folder) / "unseen.parquet", {"row": rows, "col": cols, "value": values.astype(np.float32)})
            about = {"part": "peers", "entries": entries, "gross errors": wrong}
            yield about | {"method": "condgrad"} | ours(data, folder, size, shards, rows, cols, values)
            if spark is not None:
                command = [spark, "-c", SPARK, str(data), f"{folder}/unseen.parquet", str(THREADS), memory]
                said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                yield about | {"method": "Spark ALS"} | json.loads(said.splitlines()[-1])


def ours(
    data: Path, folder: str, size: int, shards: int, rows: np.ndarray, cols: np.ndarray, values: np.ndarray
) -> Row:
    from distributed import Client

    begun = monotonic()
    with local_cluster(THREADS) as cluster, Client(cluster) as client:
        source = EntryFolder(str(data), folder)
        objective = ShardedCompletion(source, (size, size), client=client, shards=shards)
        model: Any = RobustCompletion(client=client, loss="huber").fit(objective)
        error = float(np.sqrt(np.mean((model.predict_names(rows, cols) - values) ** 2)))
        took = monotonic() - begun
        pids = [os.getpid(), *client.run(os.getpid).values()]
    megabytes = sum(map(scale_out.memory, pids))
    setting = f"huber, rank {len(model.singular_values_)}"
    return {"rmse": error, "seconds": took, "megabytes": megabytes, "setting": setting}


def claims(rows: list[Row]) -> list[Claim]:
    made = []
    by = {(row["gross errors"], row["method"]): row for row in rows}
    for wrong in (0.0, SHARE):
        mine, spark = by[wrong, "condgrad"], by.get((wrong, "Spark ALS"))
        if spark is not None:
            errors = f"{mine['rmse']:.3g} and {spark['rmse']:.3g}"
            made.append(
                Claim(f"RMSE with {wrong:.0%} gross errors", "<= Spark's", errors, mine["rmse"] <= spark["rmse"])
            )
            ratio = mine["seconds"] / spark["seconds"]
            made.append(Claim(f"seconds over Spark's, {wrong:.0%} gross errors", "reported", f"{ratio:.2f}", True))
    return made


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--entries", type=int, help="default 10 million")
    parser.add_argument("--spark", metavar="PYTHON", help="interpreter with pyspark; without it, condgrad alone")
    parser.add_argument("--memory", default="8g", help="of Spark's driver (default: 8g)")


def main() -> None:
    args = arguments(__doc__, options)
    entries = args.entries or (200_000 if args.quick else 10_000_000)
    rows = work_off("scale-out-peers", [Job(1, partial(compare, entries, args.spark, args.memory))])
    columns = ["method", "gross errors", "entries", "rmse", "seconds", "megabytes", "setting"]
    table("peers", columns, [[row[name] for name in columns] for row in rows])
    finish("scale_out_peers", args, rows, claims(rows), spark=args.spark is not None, python=sys.version.split()[0])


if __name__ == "__main__":
    main()
