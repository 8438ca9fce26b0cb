"""What benchmarks/scale.py measures: a whole run, its kernels alone and against the machine, growth and the first use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numba
import numpy as np

import condgrad as cg
from benchmarks.harness import Row
from benchmarks.scale_problem import RANK, TARGET, draw
from condgrad import kernels
from condgrad.linalg.lanczos import singular_ritz
from condgrad.points import SparsePlusLowRank


def memory(field: str) -> float:
    """VmRSS or VmHWM of this process, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def seconds(work: Callable[[], Any], repeats: int = 5, clock: Callable[[], float] = perf_counter) -> float:
    """The best of some, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        begun = clock()
        work()
        times.append(clock() - begun)
    return min(times)


BLOCKS = ("sample", "times", "transposed_times")


class Log:
    """Every kernel call while it is on: its name and the width of its block. ``inside`` is the CPU time within kernels."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.inside = 0.0
        self.run = kernels._run

    def __enter__(self) -> Log:
        def logged(kernel: str, length: int, work: int, *args: Any) -> None:
            self.calls.append((kernel, args[3].shape[1] if kernel in BLOCKS else 0))
            begun = process_time()
            self.run(kernel, length, work, *args)
            self.inside += process_time() - begun

        kernels._run = logged
        return self

    def __exit__(self, *exception: Any) -> None:
        kernels._run = self.run


def run(objective: Any, domain: Any) -> tuple[Any, list[Row]]:
    """The whole run; of each step its seconds, rank and kernel calls."""
    steps: list[Row] = []
    last = {"seconds": 0.0, "calls": 0}
    with Log() as log:

        def note(record: Any, x: Any) -> None:
            calls = log.calls[last["calls"] :]
            steps.append(
                {
                    "k": record.k,
                    "seconds": record.seconds - last["seconds"],
                    "mapping": record.mapping,
                    "rank": x.rank,
                    "lo": record.lo,
                    "ub": record.ub,
                    "calls": calls,
                }
            )
            last.update(seconds=record.seconds, calls=len(log.calls))
            print(
                f"\r  step {record.k}: {record.seconds:.0f} s, rank {x.rank}, mapping {record.mapping:.2g}    ",
                end="",
                file=sys.stderr,
                flush=True,
            )

        stop = cg.Mapping(TARGET) | cg.Steps(60)
        result = cg.minimize(objective, domain, stop=stop, callback=note, progress=False)
    print("\r\x1b[K", end="", file=sys.stderr)
    return result, steps


class Alone:
    """Each kernel on the observations of a problem, timed alone."""

    def __init__(self, objective: Any):
        self.pattern, self.values = objective.pattern, objective.values

    def __call__(self, kernel: str, width: int, repeats: int = 5, clock: Callable[[], float] = perf_counter) -> float:
        rng, (m, n) = np.random.default_rng(0), self.pattern.shape
        U, V = rng.standard_normal((m, max(width, 1))), rng.standard_normal((n, max(width, 1)))
        z = self.values + 0.1
        work = {
            "sample": lambda: self.pattern.sample(U, V),
            "times": lambda: self.pattern.times(self.values, V),
            "transposed_times": lambda: self.pattern.transposed_times(self.values, U),
            "loss": lambda: kernels.loss("huber", 1.0, z, self.values, np.empty(0)),
            "welsch": lambda: kernels.loss("welsch", 1.0, z, self.values, np.empty(0)),
            "add": lambda: kernels.add(z, 0.5, self.values),
            "dot": lambda: kernels.dot(z, self.values),
            "distance2": lambda: kernels.distance2(1.0, z, 1.0, self.values),
        }[kernel]
        return seconds(work, repeats, clock)


def near_steps(objective: Any, domain: Any, x: Any, steps: int = 8) -> list[Row]:
    """Outer steps that begin near the solution: each one's CPU seconds, and right after it those of its kernel passes alone, in
    all and by kernel. The first two are left out: they still look for the step size. ``inside`` is the time of the same passes
    within the step, where blocks and observations take turns in the caches.
    """
    alone, rows = Alone(objective), []
    with Log() as log:
        last = {"seconds": 0.0}

        def note(record: Any, x: Any) -> None:
            inside = log.inside
            calls, took = Counter(log.calls), record.cpu - last["seconds"]
            if record.k > 2:
                spent: Counter[str] = Counter()
                for (kernel, width), count in calls.items():
                    spent[kernel] += count * alone(kernel, width, 3, process_time)
                row = {
                    "near": record.k,
                    "seconds": took,
                    "passes": spent.total(),
                    "inside": inside,
                    "calls": calls.total(),
                }
                rows.append({**row, "by_kernel": dict(spent)})
            last["seconds"] = record.cpu
            log.calls.clear()
            log.inside = 0.0

        cg.minimize(objective, domain, x, stop=cg.Steps(steps + 2), callback=note, polish=False, progress=False)
    return rows


@numba.njit(fastmath=True)
def read(numbers: np.ndarray) -> float:
    """Reads all of them."""
    total = 0.0
    for i in range(len(numbers)):
        total += numbers[i]
    return total


@numba.njit(fastmath=True)
def fetch(block: np.ndarray, order: np.ndarray) -> float:
    """Reads the block's rows in this order."""
    total = 0.0
    for p in range(len(order)):
        j = order[p]
        for q in range(block.shape[1]):
            total += block[j, q]
    return total


@numba.njit(fastmath=True)
def multiply(x: np.ndarray, times: int) -> None:
    """Fused multiplications and additions that stay in registers and the first cache."""
    for _ in range(times):
        for i in range(len(x)):
            x[i] = x[i] * 0.999 + 0.001


def limits(width: int, pattern: Any) -> dict[str, float]:
    """What one thread of this machine can do: bytes a second from memory, rows of a block a second in the order in which the
    entries ask for them, operations a second."""
    stream, block, short = np.ones(20_000_000), np.ones((pattern.shape[1], width)), np.ones(512)
    order = pattern.indices[: min(pattern.size, 2_000_000)]
    return {
        "stream": stream.nbytes / seconds(lambda: read(stream)),
        "rows": len(order) / seconds(lambda: fetch(block, order)),
        "flops": 2e5 * 512 / seconds(lambda: multiply(short, 100_000)),
    }


def least_seconds(kernel: str, width: int, entries: int, of: dict[str, float]) -> float:
    """Entries come from memory (index and value, or a sampled value goes back); each asks for one row of a block; two operations
    for each of its numbers. The slowest of the three is what the machine allows."""
    return max((4 + 8) * entries / of["stream"], entries / of["rows"], 2 * width * entries / of["flops"])


def one_pass(objective: Any, rank: int) -> float:
    """A gradient at a new point of this rank, and one pass of the prox around it."""
    m, n = objective.shape
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((m, rank)) / np.sqrt(rank), rng.standard_normal((n, rank))

    def work() -> None:
        x = cg.LowRank(U, V)
        z: SparsePlusLowRank = x - 0.5 * objective.grad(x)
        singular_ritz(z, V)

    return seconds(work, 3)


def growth(entries: int, size: int) -> Iterator[Row]:
    for share in (1 / 4, 1 / 2, 3 / 4, 1):  # with fewer entries, what costs the same for any number of them shows
        rows, cols, values, _ = draw(size, size, RANK, int(share * entries), 1)
        objective = cg.Completion(rows, cols, values, (size, size))
        yield {"grows": "entries", "entries": len(values), "rank": 40, "seconds": one_pass(objective, 40)}
        if share == 1 / 4:
            for rank in (20, 40, 80, 160):  # below, the loss, which knows no rank, shows
                yield {
                    "grows": "rank",
                    "entries": len(values),
                    "rank": rank,
                    "seconds": one_pass(objective, rank),
                }


def first_use() -> Row:
    """Seconds of the first minimize with an empty cache of compiled kernels, and of the next process's; numba's import apart."""
    code = (
        "import time, numba, numpy as np, condgrad as cg; r = np.arange(40); "
        "f = cg.Completion(np.repeat(r, 4), (np.repeat(r, 4) * 7 + np.tile(np.arange(4), 40)) % 40, np.ones(160), (40, 40)); "
        "t = time.perf_counter(); cg.kernels.sample(f.pattern.indptr, f.pattern.indices, np.ones((40, 2)), np.ones((40, 2))); "
        "cg.minimize(f, cg.NuclearBall((40, 40), 5.0), tol=1e-2, progress=False); "
        "cg.minimize(f, cg.NuclearBall((40, 40), 5.0), method='ncgs-vr', tol=1e-2, progress=False); "
        "print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        runs = [
            subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
            for _ in range(3)
        ]
    message = "compiling" in runs[0].stderr and "compiling" not in runs[1].stderr
    return {
        "first": float(runs[0].stdout.split()[-1]),
        "afterwards": min(float(r.stdout.split()[-1]) for r in runs[1:]),
        "message": message,
    }
