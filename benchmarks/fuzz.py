"""Fuzzing of all that reads files: no error but the documented ones, no hang, no memory blow-up.

Each target is read in processes of its own by three engines: hypothesis edits valid files, libFuzzer (by atheris) looks for
new branches of the readers, and long runs of single tokens show whether time grows faster than length. A case has 5 s and a
process 4 GiB. What is found is printed with its case and fails the claim.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from time import monotonic

from benchmarks.fuzz_targets import SEED, TARGETS
from benchmarks.fuzzing import CASE_SECONDS, MEMORY_MIB
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off

ENGINES = ("hypothesis", "guided", "lengths")


def fuzz(target: str, engine: str, amount: int) -> list[Row]:
    command = [sys.executable, "-m", "benchmarks.fuzzing", target, engine, str(amount)]
    allowed = {"guided": 10 * amount, "lengths": 1800}.get(engine, CASE_SECONDS * amount)
    begun = monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=allowed + 120, check=False, env=os.environ
    )
    row: Row = {"target": target, "engine": engine, "seconds": monotonic() - begun, "found": ""}
    if engine == "guided":
        row |= {"cases": stat(done.stderr, "number_of_executed_units"), "peak_mib": stat(done.stderr, "peak_rss_mb")}
        row["edges"] = max(map(int, re.findall(r"cov: (\d+)", done.stderr)), default=0)
    elif done.returncode == 0:
        row |= json.loads(done.stdout.splitlines()[-1])
    if done.returncode != 0:
        row = {"cases": 0, "peak_mib": 0.0} | row | {"found": done.stderr[-4000:]}
    return [row]


def stat(said: str, name: str) -> int:
    """A figure of libFuzzer's."""
    found = re.findall(rf"stat::{name}:\s+(\d+)", said)
    return int(found[-1]) if found else 0


def main() -> None:
    args = arguments(__doc__)
    if not find_spec("atheris"):
        sys.exit(
            "The guided engine needs atheris: run `make fuzz`, which installs it, or pip install 'condgrad[fuzz]'."
        )
    amounts = {"hypothesis": 1000, "guided": 30, "lengths": 1_000_000}
    if args.quick:
        amounts = {"hypothesis": 200, "guided": 5, "lengths": 100_000}
    jobs = [
        Job(1.0, lambda name=name, engine=engine: fuzz(name, engine, amounts[engine]))
        for name in TARGETS
        for engine in ENGINES
    ]
    rows = work_off("fuzz", jobs)
    columns = ("target", "engine", "cases", "taken", "branches", "seconds", "peak MiB", "")
    lines = [
        (
            row["target"],
            row["engine"],
            row["cases"],
            str(row.get("taken", "")),
            str(row.get("edges", "")),
            row["seconds"],
            row["peak_mib"],
            "FOUND" if row["found"] else "",
        )
        for row in rows
    ]
    legend = "taken: cases that were read as valid, the others were refused as documented. branches: of the readers, reached."
    table("Cases by target and engine", columns, lines, legend)
    for row in rows:
        if row["found"]:
            print(f"\n{row['target']}, {row['engine']}:\n{row['found']}")
    claims = []
    for name in TARGETS:
        here = [row for row in rows if row["target"] == name]
        found = sum(bool(row["found"]) for row in here)
        counted = f"{found} in {sum(row['cases'] for row in here):,} cases"
        holds = not found and all(row["cases"] for row in here)
        claims.append(Claim(f"{name}: undocumented errors, hangs, memory blow-ups", "0", counted, holds))
    finish("fuzz", args, rows, claims, seed=SEED, case_seconds=CASE_SECONDS, memory_mib=MEMORY_MIB)


if __name__ == "__main__":
    main()
