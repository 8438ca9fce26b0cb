"""Peak memory of the run of benchmarks/scale.py in float64 and in float32: five runs each, every one in its own process.

The peak is that of the run above the process before the observations were loaded, as benchmarks/scale.py measures it. In
float32 the values of the observations are float32, and the run has the same target, which it has to certify.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import condgrad as cg
from benchmarks.harness import Claim, Row, arguments, finish, table
from benchmarks.scale_measurements import memory, run
from benchmarks.scale_problem import problem

LIMITS = {"float64": 500, "float32": 300}
"""Claimed limits of the peak, in MB."""
SIZES = {True: (4_000, 1_600_000), False: (20_000, 10_000_000)}
"""Rows (and columns) and entries of the problem, by whether it is the quick one."""


def measure(dtype: str, size: int, entries: int) -> Row:
    """Peak memory and CPU time of one run in this process, which must not have done anything else."""
    cg.minimize(*problem(300, 10_000, dtype), stop=cg.Steps(5), progress=False)  # loads all that is loaded once
    gc.collect()
    base = memory("VmRSS")
    objective, domain = problem(size, entries, dtype)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    result, steps = run(objective, domain)
    return {
        "dtype": dtype,
        "peak": memory("VmHWM") - base,
        "cpu": result.cpu,
        "steps": result.steps,
        "status": result.status,
        "mapping": result.certificate.upper,
        "fun": result.fun,
        "widest": max(step["rank"] for step in steps),
        "rank": result.x.rank,
    }


def measure_apart(dtype: str, quick: bool) -> Row:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale_memory", "one", dtype, *map(str, SIZES[quick])]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(found.stdout.splitlines()[-1])


def claims(rows: list[Row]) -> list[Claim]:
    """What is claimed of these runs: each reaches its target, and stays below the limit of its type."""
    made = []
    for dtype, limit in LIMITS.items():
        own = [row for row in rows if row["dtype"] == dtype]
        peaks = ", ".join(f"{row['peak']:.0f}" for row in own)
        made.append(
            Claim(f"peak memory in {dtype}, MB", f"all < {limit}", peaks, all(row["peak"] < limit for row in own))
        )
        ended = {row["status"] for row in own}
        made.append(
            Claim(f"{dtype} reaches its target", "all converged", ", ".join(sorted(ended)), ended == {"converged"})
        )
    return made


def main() -> None:
    args = arguments(__doc__)
    rows = [measure_apart(dtype, args.quick) for dtype in LIMITS for _ in range(5)]
    shown = [(r["dtype"], r["peak"], r["cpu"], r["steps"], r["status"], r["mapping"], r["widest"]) for r in rows]
    table(
        "A run of {:,} x {:,}, {:,} entries".format(SIZES[args.quick][0], *SIZES[args.quick]),
        ("type", "peak, MB", "CPU seconds", "steps", "status", "squared mapping", "largest rank"),
        shown,
    )
    finish("scale_memory", args, rows, claims(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        main()
