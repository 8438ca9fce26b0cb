"""RobustCompletion with defaults on a large table, beside cmfrec with 10 factors: error, CPU time and memory above the data.

Claimed: at most twice the CPU time and the memory of cmfrec. Each fit has a process of its own, with one thread. cmfrec is in the
environment of `make bench-completion`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.completion_data import Entries
from benchmarks.completion_peers import OURS
from benchmarks.completion_run import measure
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off

RANK, NOISE, OUTLIERS = 10, 0.3, 0.05
"""Rank of the truth, whose entries have variance 1, the noise, and the share of gross outliers in the table with outliers."""
MOST = 2.0
METHODS: dict[str, Row] = {OURS: {}, "cmfrec, implicit features": {"k": RANK, "reg": 10.0, "implicit": None}}


def draw(size: int, entries: int, outliers: float) -> tuple[Entries, Entries]:
    """Entries with noise, and the truth at 200,000 other places."""
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((size, RANK)) / np.sqrt(RANK), rng.standard_normal((size, RANK))
    flat = rng.choice(size * size, entries + 200_000, replace=False)
    rows, cols = (flat // size).astype(np.int32), (flat % size).astype(np.int32)
    values = np.concatenate(
        [
            np.einsum("ij,ij->i", U[r], V[c])
            for r, c in zip(np.array_split(rows, 50), np.array_split(cols, 50), strict=True)
        ]
    )
    truth = Entries(rows[entries:], cols[entries:], values[entries:], (size, size))
    values = values[:entries] + NOISE * rng.standard_normal(entries)
    wrong = rng.random(entries) < outliers
    values[wrong] += rng.uniform(-10, 10, int(wrong.sum()))
    return Entries(rows[:entries], cols[:entries], values, (size, size)), truth


def compare(size: int, entries: int, outliers: float) -> Iterator[Row]:
    train, at = draw(size, entries, outliers)
    for name, settings in METHODS.items():
        predictions, cost = measure(name, train, at, 0, settings)
        error = float(np.linalg.norm(predictions - at.values) / np.linalg.norm(at.values))
        yield {"outliers": outliers, "method": name, "error": error, **cost}


def main() -> None:
    args = arguments(__doc__)
    size, entries = (5_000, 2_500_000) if args.quick else (20_000, 10_000_000)
    shares = (0.0, OUTLIERS)
    rows = work_off("large table", [Job(1, lambda share=share: compare(size, entries, share)) for share in shares])
    columns = ("outliers", "method", "error", "cpu", "peak")
    table(f"{size:,} x {size:,}, {entries:,} entries", columns, [tuple(row[key] for key in columns) for row in rows])
    claims: list[Claim] = []
    for share in shares:
        ours, theirs = (row for row in rows if row["outliers"] == share)
        for key, what in (("cpu", "CPU time"), ("peak", "memory above the data")):
            ratio = ours[key] / theirs[key]
            claims.append(
                Claim(f"{share:.0%} outliers: {what} over cmfrec's", f"<= {MOST:g}", f"{ratio:.3g}", ratio <= MOST)
            )
    finish("large_defaults", args, rows, claims)


if __name__ == "__main__":
    main()
