"""What the benchmarks share: arguments, progress, tables, claims, slopes, and the file of results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import scipy

import condgrad
from condgrad.paper.exponents import Estimate
from condgrad.runtime.progress import duration

Row = dict[str, Any]


def arguments(
    description: str | None, more: Callable[[argparse.ArgumentParser], Any] | None = None
) -> argparse.Namespace:
    """The arguments of every benchmark, and those that ``more`` adds."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and smaller sizes")
    parser.add_argument(
        "--out", type=Path, default=Path("bench-results"), metavar="DIR", help="where the JSON file goes"
    )
    if more is not None:
        more(parser)
    return parser.parse_args()


class Job(NamedTuple):
    """A piece of work that gives rows; ``weight`` is a guess of its time, in any unit."""

    weight: float
    work: Callable[[], Iterable[Row]]


def work_off(title: str, jobs: Sequence[Job]) -> list[Row]:
    """The rows of all jobs. After two seconds the time left is said on stderr."""
    rows: list[Row] = []
    begun, done, total = monotonic(), 0.0, sum(job.weight for job in jobs)
    due, terminal = begun + 2, sys.stderr.isatty()
    for job in jobs:
        rows += job.work()
        done, now = done + job.weight, monotonic()
        if now >= due and done < total:
            left = duration((now - begun) * (total - done) / done)
            line = f"{title}: {done / total:.0%} done, {duration(now - begun)} so far, about {left} left"
            print(f"\r\x1b[K{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)
            due = now + (0.2 if terminal else 10)
    if terminal:
        print("\r\x1b[K", end="", file=sys.stderr)
    return rows


# ------------------------------------------------------------------------------------------------------------- claims


@dataclass(frozen=True)
class Claim:
    claim: str
    required: str
    measured: str
    holds: bool


def at_most(claim: str, bound: float, measured: Estimate) -> Claim:
    """The confidence interval does not lie above the bound."""
    return Claim(claim, f"<= {bound:.3g} (within the interval)", str(measured), measured.mean - measured.half <= bound)


def below(claim: str, difference: Estimate) -> Claim:
    """The confidence interval of the differences, seed by seed, lies below 0."""
    return Claim(claim, "difference < 0 (whole interval)", str(difference), difference.mean + difference.half < 0)


# ------------------------------------------------------------------------------------------------------------- output


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], legend: str = "") -> None:
    """Aligned: words to the left, numbers to the right."""
    cells = [[cell if isinstance(cell, str) else _number(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    right = [bool(cells) and all(row[j][:1] in "0123456789-><" for row in cells) for j in range(len(columns))]

    def line(row: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    print(f"\n{title}\n", line(columns), "  ".join("-" * w for w in widths), *map(line, cells), sep="\n")
    if legend:
        print("", legend.strip(), sep="\n")


def _number(value: float) -> str:
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return f"{value:.3g}" if isfinite(value) else "-"


def finish(name: str, args: argparse.Namespace, rows: list[Row], claims: list[Claim], **facts: Any) -> None:
    """Print the claims, write NAME.json, and exit as --check asks."""
    said = [("holds" if c.holds else "FAILS", c.claim, c.required, c.measured) for c in claims]
    table("Claims", ("", "claim", "required", "measured"), said)
    content = {
        "benchmark": name,
        "quick": args.quick,
        **facts,
        "machine": machine(),
        "claims": [asdict(claim) for claim in claims],
        "rows": rows,
    }
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{name}.json"
    path.write_text(json.dumps(content, indent=1, default=float) + "\n", encoding="utf-8")
    print(f"\nRaw rows in {path}")
    if args.check and not all(c.holds for c in claims):
        sys.exit(1)


def machine() -> Row:
    """What a reader needs to compare seconds; nothing that says whose machine it is."""
    return {
        "condgrad": condgrad.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "architecture": platform.machine(),
        "cpus": os.cpu_count(),
        "blas_threads": os.environ.get("OMP_NUM_THREADS"),
    }
