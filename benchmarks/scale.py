"""A laptop's largest problem: 20,000 x 20,000, rank 20, 10 million observed entries, 5 % of them outliers.

Measured: the peak memory of a whole run from 0 until the squared gradient mapping is certified to be at most 1e-3; the time of
an outer step near the solution against the sum of its kernel passes, timed alone right after it; each kernel against what the
machine allows; two threads against one; how the cost of a gradient and a pass grows with the entries and with the rank; the
time of the first use after an installation. docs/spectral.md has the formulas. BLAS stays at one thread throughout. With
``--near``, only steps near the solution are run, of 2,000 x 2,000 with 400,000 entries on one thread.
"""

from __future__ import annotations

import gc
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numba

import condgrad as cg
from benchmarks.harness import Claim, Row, arguments, finish, table
from benchmarks.scale_measurements import (
    Alone,
    first_use,
    growth,
    least_seconds,
    limits,
    memory,
    near_steps,
    run,
    seconds,
)
from benchmarks.scale_problem import problem
from condgrad.paper.exponents import slope

MAX_STEP_RATIO = 1.3
"""Claimed of an outer step near the solution: at most this many times the time of its kernel passes."""


def shares(steps: list[Row]) -> list[tuple[str, float, float]]:
    """Mean seconds of a step by kernel, and of all else (blocks made orthogonal, small decompositions, checks)."""
    whole = fmean(step["seconds"] for step in steps)
    kernels = sorted({kernel for step in steps for kernel in step["by_kernel"]})
    parts = [(kernel, fmean(step["by_kernel"].get(kernel, 0.0) for step in steps)) for kernel in kernels]
    parts.append(("all else", whole - sum(seconds for _, seconds in parts)))
    return [(name, seconds, seconds / whole) for name, seconds in [*parts, ("the step", whole)]]


def near_claim(steps: list[Row]) -> Claim:
    """Show where the time of outer steps near the solution goes. Returns the claim about them."""
    table("Where the CPU time of an outer step near the solution goes", ("", "seconds", "share"), shares(steps))
    ratio, within = (median(step["seconds"] / step[passes] for step in steps) for passes in ("passes", "inside"))
    return Claim(
        "outer step near the solution / its kernel passes alone",
        f"<= {MAX_STEP_RATIO:g}",
        f"{ratio:.2f} (median of {len(steps)}; over its passes as they are timed within the step {within:.2f})",
        ratio <= MAX_STEP_RATIO,
    )


def main() -> None:
    args = arguments(
        __doc__, lambda parser: parser.add_argument("--near", action="store_true", help="only a step near the solution")
    )
    if args.near:
        numba.set_num_threads(1)
        objective, domain = problem(2_000, 400_000)
        steps = near_steps(objective, domain, run(objective, domain)[0].x)
        return finish("scale-near", args, steps, [near_claim(steps)])
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
            ("UB", result.counts["ub"]),
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
    claims.append(near_claim(near))

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
            polish=False,
            progress=False,
        )
        return times[-1]

    speedups = []
    for _ in range(3):
        one, two = steps_from(result.x, 1), steps_from(result.x, 2)
        speedups.append(one / two)
    kernel_speedups = []
    for kernel in ("sample", "times", "transposed_times", "welsch"):
        pair = []
        for threads in (1, 2):
            numba.set_num_threads(threads)
            pair.append(alone(kernel, 24 if kernel != "welsch" else 0))
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
