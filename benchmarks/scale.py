"""A laptop's largest problem: 20,000 x 20,000, rank 20, 10 million observed entries, 5 % of them outliers.

Measured: the peak memory of a whole run from 0 until the squared gradient mapping is certified to be at most 1e-3; the time of
an outer step near the solution against the sum of its kernel passes, timed alone right after it; each kernel against what the
machine allows; two threads against one; how the cost of a gradient and a pass grows with the entries and with the rank; the
time of the first use after an installation. docs/spectral.md has the formulas. BLAS stays at one thread throughout.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numba
import numpy as np

import condgrad as cg
from benchmarks.harness import Claim, Row, arguments, finish, table
from condgrad import kernels
from condgrad.experiments.exponents import slope
from condgrad.points import SparsePlusLowRank
from condgrad.points.krylov import singular_ritz

RANK, OUTLIERS, NOISE, TARGET = 20, 0.05, 3.0, 1e-3
SHARE = 0.9
"""The radius, as a share of the truth's nuclear norm."""


# --------------------------------------------------------------------------------------------------------------- data


def draw(m: int, n: int, rank: int, entries: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Rows, columns and values of a gaussian matrix of this rank, some corrupted; and the matrix's nuclear norm."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, rank)) / np.sqrt(rank), rng.standard_normal((n, rank))
    flat = np.sort(rng.integers(m * n, size=entries + entries // 10))
    flat = flat[np.append(True, np.diff(flat) > 0)]
    flat = flat[np.sort(rng.permutation(len(flat))[:entries])]
    rows, cols = (flat // n).astype(np.int32), (flat % n).astype(np.int32)
    values = kernels.sample_at(rows, cols, U, V)
    bad = rng.random(len(values)) < OUTLIERS
    values[bad] += rng.uniform(-NOISE, NOISE, int(bad.sum()))
    core = np.linalg.qr(U)[1] @ np.linalg.qr(V)[1].T
    return rows, cols, values, float(np.linalg.norm(core, "nuc"))


def problem(size: int, entries: int) -> tuple[cg.Completion, cg.NuclearBall]:
    """Made by another process, so that this one's memory is the solver's alone."""
    with tempfile.TemporaryDirectory() as folder:
        code = (
            "import sys, numpy as np; from benchmarks.scale import draw, RANK; "
            "d = draw(int(sys.argv[1]), int(sys.argv[1]), RANK, int(sys.argv[2]), 0); "
            "[np.save(f'{sys.argv[3]}/{i}.npy', a) for i, a in enumerate(d)]"
        )
        subprocess.run([sys.executable, "-c", code, str(size), str(entries), folder], check=True)
        rows, cols, values, nuclear = (np.load(Path(folder) / f"{i}.npy") for i in range(4))
    objective = cg.Completion(rows, cols, values, (size, size), cg.Welsch(1.0))
    return objective, cg.NuclearBall((size, size), SHARE * float(nuclear))


# ------------------------------------------------------------------------------------------------------- measurements


def memory(field: str) -> float:
    """VmRSS or VmHWM of this process, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """The best of some, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        begun = perf_counter()
        work()
        times.append(perf_counter() - begun)
    return min(times)


BLOCKS = ("sample", "times", "transposed_times")


class Log:
    """Every kernel call while it is on: its name and the width of its block."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.run = kernels._run

    def __enter__(self) -> Log:
        def logged(kernel: str, work: int, *args: Any) -> None:
            self.calls.append((kernel, args[3].shape[1] if kernel in BLOCKS else 0))
            self.run(kernel, work, *args)

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

    def __call__(self, kernel: str, width: int, repeats: int = 5) -> float:
        rng, (m, n) = np.random.default_rng(0), self.pattern.shape
        U, V = rng.standard_normal((m, max(width, 1))), rng.standard_normal((n, max(width, 1)))
        z = self.values + 0.1
        work = {
            "sample": lambda: self.pattern.sample(U, V),
            "times": lambda: self.pattern.times(self.values, V),
            "transposed_times": lambda: self.pattern.transposed_times(self.values, U),
            "loss": lambda: kernels.loss("welsch", 1.0, z, self.values, np.empty(0)),
            "add": lambda: kernels.add(z, 0.5, self.values),
            "dot": lambda: kernels.dot(z, self.values),
            "distance2": lambda: kernels.distance2(1.0, z, 1.0, self.values),
        }[kernel]
        return seconds(work, repeats)


def near_steps(objective: Any, domain: Any, x: Any, steps: int = 8) -> list[Row]:
    """Outer steps that begin near the solution: each one's seconds, and right after it those of its kernel passes alone. The
    first two are left out: they still look for the step size."""
    alone, rows = Alone(objective), []
    with Log() as log:
        last = {"seconds": 0.0}

        def note(record: Any, x: Any) -> None:
            calls, took = Counter(log.calls), record.seconds - last["seconds"]
            if record.k > 2:
                passes = sum(count * alone(*call, repeats=3) for call, count in calls.items())
                rows.append({"near": record.k, "seconds": took, "passes": passes, "calls": sum(calls.values())})
            last["seconds"] = record.seconds
            log.calls.clear()

        cg.minimize(objective, domain, x, stop=cg.Steps(steps + 2), callback=note, progress=False)
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


# --------------------------------------------------------------------------------------------------------------- main


def main() -> None:
    args = arguments(__doc__)
    size, entries = (4_000, 1_600_000) if args.quick else (20_000, 10_000_000)
    numba.set_num_threads(2)
    claims: list[Claim] = []
    warm = first_use()
    cg.minimize(*problem(300, 10_000), tol=1e-2, progress=False)  # loads all that is loaded once
    gc.collect()

    base = memory("VmRSS")
    objective, domain = problem(size, entries)
    n_entries = objective.n_terms
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    result, steps = run(objective, domain)
    peak = memory("VmHWM") - base
    observations = 16 * n_entries / 2**20
    widest = max(step["rank"] for step in steps)
    factors = 8 * 2 * size * 6 * (widest + 20) / 2**20
    alone, near = Alone(objective), near_steps(objective, domain, result.x)
    ratios = [step["seconds"] / step["passes"] for step in near]
    gradient = objective.grad(result.x)
    oracle = seconds(lambda: domain.lmo(gradient), 2)
    table(
        f"A run of {size:,} x {size:,}, {n_entries:,} entries, from 0 to a squared mapping of {result.certificate.upper:.1e}",
        ("", "measured"),
        [
            ("seconds (two threads)", result.seconds),
            ("CPU seconds", result.cpu),
            ("steps", result.steps),
            ("FO", result.counts["fo"]),
            ("LO", result.counts["lo"]),
            ("rank of the answer", result.x.rank),
            ("largest rank on the way", widest),
            ("peak memory above the bare process, MB", peak),
            ("observations (int32, int32, float64), MB", observations),
            ("factors: six pairs of blocks of the largest rank + 20, MB", factors),
            ("an outer step near the solution, s", median(s["seconds"] for s in near)),
            ("the same over its kernel passes alone", median(ratios)),
            ("one linear oracle call at the solution, to full accuracy, s", oracle),
        ],
    )
    claims.append(
        Claim("the run reaches its target, certified", "converged", result.status, result.status == "converged")
    )
    claims.append(
        Claim(
            "peak memory, MB",
            f"< 3 observations + factors = {3 * observations + factors:.0f}",
            f"{peak:.0f}",
            peak < 3 * observations + factors,
        )
    )
    claims.append(
        Claim(
            "outer step near the solution / its kernel passes alone",
            "<= 1.5",
            f"{median(ratios):.2f} (median of {len(ratios)})",
            median(ratios) <= 1.5,
        )
    )

    numba.set_num_threads(1)
    lines, efficiencies = [], []
    for width in (8, 24, 48):
        of = limits(width, objective.pattern)
        for kernel in ("sample", "times", "transposed_times"):
            took, least = alone(kernel, width), least_seconds(kernel, width, n_entries, of)
            efficiencies.append({"kernel": kernel, "width": width, "seconds": took, "least": least, **of})
            lines.append((kernel, width, took, 2e-9 * width * n_entries / took, least, least / took))
    table(
        "Kernels on one thread against what the machine allows",
        ("kernel", "columns", "seconds", "Gflop/s", "least seconds", "share"),
        lines,
    )
    worst = min(e["least"] / e["seconds"] for e in efficiencies)
    claims.append(Claim("share of what the machine allows, worst kernel", ">= 0.5", f"{worst:.2f}", worst >= 0.5))

    def steps_from(x0: Any, threads: int) -> float:
        numba.set_num_threads(threads)
        times: list[float] = []
        cg.minimize(
            objective,
            domain,
            x0,
            stop=cg.Steps(4),
            callback=lambda record, x: times.append(record.seconds) and None,
            progress=False,
        )
        return times[-1]

    speedups = []
    for _ in range(3):
        one, two = steps_from(result.x, 1), steps_from(result.x, 2)
        speedups.append(one / two)
    kernel_speedups = []
    for kernel in ("sample", "times", "transposed_times", "loss"):
        pair = []
        for threads in (1, 2):
            numba.set_num_threads(threads)
            pair.append(alone(kernel, 24 if kernel != "loss" else 0))
        kernel_speedups.append((kernel, *pair, pair[0] / pair[1]))
    kernel_speedups.append(("four outer steps near the solution", one, two, median(speedups)))
    table("Two threads against one", ("", "one thread, s", "two threads, s", "ratio"), kernel_speedups)
    claims.append(
        Claim(
            "two threads against one, outer steps near the solution",
            ">= 1.6",
            f"{median(speedups):.2f}",
            median(speedups) >= 1.6,
        )
    )

    numba.set_num_threads(1)
    grown = list(growth(entries, size))
    for what in ("entries", "rank"):
        part = [g for g in grown if g["grows"] == what]
        p = slope([g[what] for g in part], [g["seconds"] for g in part])
        table(f"A gradient and a pass, by {what}", (what, "seconds"), [(g[what], g["seconds"]) for g in part])
        claims.append(Claim(f"exponent of the cost in the {what}", "1 +- 0.15", f"{p:.2f}", abs(p - 1) <= 0.15))

    table("First use", ("", "seconds"), [("after install", warm["first"]), ("afterwards", warm["afterwards"])])
    claims.append(
        Claim(
            "first use after install, s, with a message",
            "< 15",
            f"{warm['first']:.1f}",
            warm["first"] < 15 and warm["message"],
        )
    )
    claims.append(Claim("first use afterwards, s", "< 0.5", f"{warm['afterwards']:.2f}", warm["afterwards"] < 0.5))

    rows = [
        *({**s, "calls": [list(c) for c in s["calls"]]} for s in steps),
        *near,
        {"oracle": oracle},
        *efficiencies,
        *grown,
        {"speedups": speedups},
        warm,
    ]
    finish("scale", args, rows, claims, size=size, entries=n_entries, peak=peak, base=base)


if __name__ == "__main__":
    main()
