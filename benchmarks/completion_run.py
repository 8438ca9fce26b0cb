"""One fit in a process of its own, with one thread: its CPU seconds, its peak memory and its predictions.

The watch runs from arrays of entries to predictions. Before it, a small fit has imported and compiled what there is, and the
entries are loaded: memory is counted above that.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from math import ceil
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.completion_data import Entries, synthetic
from benchmarks.harness import Row

ONE_THREAD = {
    name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
}


class Stopped(Exception):
    """The fit has used up its CPU seconds."""


def measure(
    name: str, train: Entries, at: Entries, seed: int, settings: dict[str, Any], limit: float | None = None
) -> tuple[np.ndarray, Row]:
    """Predictions and a row of what they cost; Stopped after ``limit`` CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "train.npz", train)
        save(Path(folder) / "at.npz", at)
        order = {"name": name, "seed": seed, "settings": settings, "limit": limit}
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.completion_run", folder, json.dumps(order)]
        environment = {**os.environ, **ONE_THREAD, "TQDM_DISABLE": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == -signal.SIGXCPU:
            raise Stopped(f"{name} was stopped after {limit:.0f} s of CPU time")
        if done.returncode != 0:
            raise RuntimeError(f"{name} failed: {done.stderr.strip().splitlines()[-1:]}")
        return np.load(Path(folder) / "predictions.npy"), json.loads(done.stdout.splitlines()[-1])


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
    import resource

    soft = ceil(process_time() + limit)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 5))


def main() -> None:
    from benchmarks.completion_peers import predict

    folder, order = Path(sys.argv[1]), json.loads(sys.argv[2])
    name, seed, settings = order["name"], order["seed"], order["settings"]
    predict(name, *synthetic(200, 2, 10_000), seed, settings)
    train, at = load(folder / "train.npz"), load(folder / "at.npz")
    if order["limit"] is not None:
        stop_after(order["limit"])
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    base, begun = memory("VmRSS"), process_time()
    predictions = predict(name, train, at, seed, settings)
    cpu, peak = process_time() - begun, memory("VmHWM") - base
    np.save(folder / "predictions.npy", predictions)
    print(json.dumps({"cpu": cpu, "peak": peak}))


if __name__ == "__main__":
    main()
