"""One fit in a process of its own, with one thread: its CPU seconds, its peak memory and what it found.

The watch runs from arrays of entries to predictions, or to the engine's answer. Before it, a small fit has imported and compiled
what there is, and the entries are loaded: memory is counted above that.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import condgrad as cg
from benchmarks.completion_data import Entries, synthetic
from benchmarks.harness import Row

TARGET, SLACK = 1e-3, 1e-3
"""The engine stops at this squared mapping, or when its loss is by no more than this part above the estimator's, whose own
tolerance that is."""
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class Stopped(Exception):
    """The fit has used up its CPU seconds."""


def measure(
    name: str, train: Entries, at: Entries, seed: int, settings: Row, limit: float | None = None
) -> tuple[np.ndarray, Row]:
    """Predictions and a row of what they cost; Stopped after ``limit`` CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "train.npz", train)
        save(Path(folder) / "at.npz", at)
        order = {"what": "predict", "name": name, "seed": seed, "settings": settings, "limit": limit}
        row = run(order, Path(folder))
        return np.load(Path(folder) / "predictions.npy"), row


def against_engine(size: int, entries: int) -> Iterator[Row]:
    """The estimator and the engine on the problem of benchmarks/scale.py. The engine runs until its loss is as good as the
    estimator's."""
    from benchmarks.scale_problem import RANK, SHARE, draw

    with tempfile.TemporaryDirectory() as folder:
        rows, cols, values, nuclear = draw(size, size, RANK, entries, 0)
        save(Path(folder) / "train.npz", Entries(rows, cols, values, (size, size)))
        del rows, cols, values
        loss = None
        for what in ("estimator", "engine"):
            row = run({"what": what, "radius": SHARE * nuclear, "loss": loss, "limit": None}, Path(folder))
            loss = row["loss"]
            yield {"part": "engine", "name": what, "size": size, **row}


def run(order: Row, folder: Path) -> Row:
    """What the process prints as its last line."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.completion_run", str(folder), json.dumps(order)]
    environment = {**os.environ, **ONE_THREAD, "TQDM_DISABLE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    name = order.get("name", order["what"])
    if done.returncode == -signal.SIGXCPU:
        raise Stopped(f"{name} was stopped after {order['limit']:.0f} s of CPU time")
    if done.returncode != 0:
        raise RuntimeError(f"{name} failed with {done.returncode}: {done.stderr.strip()[-2000:]}")
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def save(path: Path, entries: Entries) -> None:
    np.savez(path, rows=entries.rows, cols=entries.cols, values=entries.values, shape=entries.shape)


def load(path: Path) -> Entries:
    with np.load(path) as file:
        m, n = file["shape"].tolist()
        return Entries(file["rows"], file["cols"], file["values"], (m, n))


def memory(field: str) -> float:
    """VmRSS or VmHWM of this process, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def stop_after(limit: float) -> None:
    """The system ends this process when it has used ``limit`` CPU seconds from now on."""
    soft = ceil(process_time() + limit)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 5))


# -------------------------------------------------------------------------------------------------- in the new process


def prediction(order: Row, train: Entries, folder: Path) -> tuple[Row, Row]:
    """What it costs, and what else was found."""
    from benchmarks.completion_peers import predict

    fit = partial(predict, order["name"], seed=order["seed"], settings=order["settings"])
    small, elsewhere = synthetic(200, 2, 10_000)
    fit(small, elsewhere)
    at = load(folder / "at.npz")
    if order["limit"] is not None:
        stop_after(order["limit"])
    cost, (predictions, found) = watched(lambda: fit(train, at))
    np.save(folder / "predictions.npy", predictions)
    return cost, found


def estimate(order: Row, train: Entries, folder: Path) -> tuple[Row, Row]:
    """The estimator, on a sparse matrix, with this radius and loss and without biases."""
    from condgrad.learn import RobustCompletion

    def prepare(entries: Entries) -> csr_matrix:
        return csr_matrix((entries.values, (entries.rows, entries.cols)), entries.shape)

    def fit(X: csr_matrix, radius: float) -> cg.LowRank:
        model = RobustCompletion(loss=cg.Welsch(1.0), radius=radius, biases=False).fit(X)
        return cg.LowRank(model.row_factors_, model.components_.T)

    return answered(prepare, fit, order, train)


def solve(order: Row, train: Entries, folder: Path) -> tuple[Row, Row]:
    """The engine, as a user calls it, until its loss is as good as the one that is ordered."""

    def enough(record: Any, x: Any) -> bool:
        return bool(record.fun <= (1 + SLACK) * order["loss"])

    def fit(entries: Entries, radius: float) -> Any:
        objective = cg.Completion(entries.rows, entries.cols, entries.values, entries.shape, cg.Welsch(1.0))
        ball, stop = cg.NuclearBall(entries.shape, radius), cg.Mapping(TARGET) | cg.Steps(60)
        return cg.minimize(objective, ball, stop=stop, callback=enough, output="last", progress=False).x

    return answered(lambda entries: entries, fit, order, train)


def answered(
    prepare: Callable[[Entries], Any], fit: Callable[[Any, float], Any], order: Row, train: Entries
) -> tuple[Row, Row]:
    """The cost of a fit, and the loss of its answer, off the watch."""
    fit(prepare(synthetic(200, 2, 10_000)[0]), 100.0)
    data = prepare(train)
    cost, x = watched(lambda: fit(data, order["radius"]))
    objective = cg.Completion(train.rows, train.cols, train.values, train.shape, cg.Welsch(1.0))
    return cost, {"loss": objective.value(x), "rank": x.rank}


def watched(work: Callable[[], Any]) -> tuple[Row, Any]:
    """What it costs, and what it gives."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    base, begun = memory("VmRSS"), process_time()
    found = work()
    return {"cpu": process_time() - begun, "peak": memory("VmHWM") - base}, found


def main() -> None:
    folder, order = Path(sys.argv[1]), json.loads(sys.argv[2])
    work = {"predict": prediction, "estimator": estimate, "engine": solve}[order["what"]]
    cost, found = work(order, load(folder / "train.npz"), folder)
    print(json.dumps({**cost, **found}))


if __name__ == "__main__":
    main()
