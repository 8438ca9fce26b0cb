"""Ratings on Dask workers, in Spark's ALS and in cmfrec: the same Parquet files and threads, with and without gross errors.

The values are those of a matrix of rank 10 with noise; RMSE is that of predictions of the matrix itself at entries that were not
given. condgrad is `RobustCompletion(client=...)` with worker processes of one thread, as `condgrad complete --workers`; it is not
told the rank. Spark's ALS and cmfrec run in the interpreter that `--peers` names, where they are installed, with as many threads,
the true rank, and the best of three regularisations by the RMSE of a tenth of the entries. `implicit` is not here: it fits
whether there is an entry, and not its value. Memory is the sum of the peaks of all processes, and CPU time that of all.
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
from time import monotonic, process_time
from typing import Any

import numpy as np

from benchmarks import scale_out
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad import kernels
from condgrad.distributed import EntryFolder, ShardedCompletion
from condgrad.distributed.start import local_cluster
from condgrad.learn import RobustCompletion

THREADS, NOISE, GROSS, SHARE, UNSEEN = 2, 0.1, 10.0, 0.05, 200_000
COMMON = """
import json, os, subprocess, sys, time
folder, unseen, threads, memory = sys.argv[1:]
def fields(pid, name):
    with open(f"/proc/{pid}/{name}") as lines:
        return lines.read()
def peak(pid):
    return next((int(line.split()[1]) / 1024 for line in fields(pid, "status").splitlines() if line.startswith("VmHWM")), 0.0)
def cpu(pid):
    found = fields(pid, "stat").rpartition(")")[2].split()
    return (int(found[11]) + int(found[12])) / os.sysconf("SC_CLK_TCK")
def say(pids, **more):
    print(json.dumps(more | {"megabytes": sum(map(peak, pids)), "cpu": sum(map(cpu, pids))}))
begun = time.monotonic()
"""
SPARK = """
from pyspark.sql import SparkSession
from pyspark.ml.recommendation import ALS
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
java = spark.sparkContext._gateway.proc.pid
children = subprocess.run(["pgrep", "-P", str(java)], capture_output=True, text=True).stdout.split()
say([os.getpid(), java, *map(int, children)], rmse=error, seconds=time.monotonic() - begun, setting=f"regParam={best}")
"""
CMFREC = """
import numpy as np, pyarrow.parquet as parquet
from cmfrec import CMF
from scipy.sparse import coo_array
def read(path):
    table = parquet.read_table(path)
    return [table[name].to_numpy() for name in ("row", "col", "value")]
rows, cols, values = read(folder)
shape = int(rows.max()) + 1, int(cols.max()) + 1
def fitted(part, lam):
    data = coo_array((values[part], (rows[part], cols[part])), shape)
    return CMF(k=10, lambda_=lam, niter=10, nthreads=int(threads), use_float=True, verbose=False, random_state=0,
               precompute_for_predictions=False).fit(data)
def rmse(model, at):
    return float(np.sqrt(np.mean((model.predict(at[0], at[1]) - at[2]) ** 2)))
kept = np.random.default_rng(0).random(len(rows)) < 0.9
held_out = rows[~kept], cols[~kept], values[~kept]
best = min((1.0, 3.0, 10.0), key=lambda lam: rmse(fitted(kept, lam), held_out))
error = rmse(fitted(slice(None), best), read(unseen))
say([os.getpid()], rmse=error, seconds=time.monotonic() - begun, setting=f"lambda={best:g}")
"""
PEERS = {"Spark ALS": SPARK, "cmfrec": CMFREC}


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


def compare(entries: int, size: int, peers: str | None, memory: str) -> Iterator[Row]:
    shards = max(8, entries // 2**21)
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
            about = {"part": "peers", "entries": entries, "size": size, "gross errors": wrong}
            yield about | {"method": "condgrad"} | ours(data, folder, size, shards, rows, cols, values)
            for name, script in PEERS.items() if peers is not None else ():
                command = [peers, "-c", COMMON + script, str(data), f"{folder}/unseen.parquet", str(THREADS), memory]
                environment = os.environ | {"OMP_NUM_THREADS": str(THREADS), "PYTHONPATH": ""}
                found = subprocess.run(command, capture_output=True, text=True, env=environment)
                if found.returncode:
                    raise RuntimeError(f"{name} failed: {found.stderr[-2000:]}")
                yield about | {"method": name} | json.loads(found.stdout.splitlines()[-1])


def ours(
    data: Path, folder: str, size: int, shards: int, rows: np.ndarray, cols: np.ndarray, values: np.ndarray
) -> Row:
    from distributed import Client

    begun, own = monotonic(), process_time()
    with local_cluster(THREADS) as cluster, Client(cluster) as client:
        source = EntryFolder(str(data), folder)
        objective = ShardedCompletion(source, (size, size), client=client, shards=shards)
        model: Any = RobustCompletion(client=client, loss="huber").fit(objective)
        error = float(np.sqrt(np.mean((model.predict_names(rows, cols) - values) ** 2)))
        took = monotonic() - begun
        pids = list(client.run(os.getpid).values())
        cpu = process_time() - own + sum(map(scale_out.cpu_of, pids))
        megabytes = sum(map(scale_out.memory, [os.getpid(), *pids]))
    setting = f"huber, rank {len(model.singular_values_)}"
    return {"rmse": error, "seconds": took, "megabytes": megabytes, "cpu": cpu, "setting": setting}


def claims(rows: list[Row]) -> list[Claim]:
    made = []
    by = {(row["gross errors"], row["method"]): row for row in rows}
    for (wrong, name), peer in by.items():
        if name == "condgrad":
            continue
        mine, about = by[wrong, "condgrad"], f"{name}, {wrong:.0%} gross errors"
        errors = f"{mine['rmse']:.3g} and {peer['rmse']:.3g}"
        made.append(Claim(f"RMSE beside {about}", "not above", errors, mine["rmse"] <= peer["rmse"]))
        for what in ("cpu", "megabytes"):
            made.append(Claim(f"{what} over {about}", "reported", f"{mine[what] / peer[what]:.2f}", True))
    return made


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--entries", type=int, help="default 10 million")
    parser.add_argument("--size", type=int, help="rows and columns, default 10 times the square root of the entries")
    parser.add_argument(
        "--peers", metavar="PYTHON", help="interpreter with pyspark and cmfrec; without it, condgrad alone"
    )
    parser.add_argument("--memory", default="8g", help="of Spark's driver (default: 8g)")


def main() -> None:
    args = arguments(__doc__, options)
    entries = args.entries or (200_000 if args.quick else 10_000_000)
    work = partial(compare, entries, args.size or int(np.sqrt(100 * entries)), args.peers, args.memory)
    rows = work_off("scale-out-peers", [Job(1, partial(scale_out.told, work))])
    columns = ["method", "gross errors", "entries", "size", "rmse", "seconds", "cpu", "megabytes", "setting"]
    table("peers", columns, [[row[name] for name in columns] for row in rows])
    finish("scale_out_peers", args, rows, claims(rows), peers=args.peers is not None, python=sys.version.split()[0])


if __name__ == "__main__":
    main()
