"""RobustCompletion against cornac, fancyimpute, pymanopt, cmfrec, surprise and myFM, on ratings and on a matrix with outliers.

`make bench-completion` installs the peers into an environment of their own and runs this. In four parts:

1. MovieLens 100K, where the data are: a random fifth is the test set, and there are four training sets, clean and contaminated.
   RobustCompletion has its defaults. Peers have settings that were chosen on a tenth of the clean training set, held out:
   `python -m benchmarks.completion_tune` chooses them again. The test set is looked at here alone, after all settings.
2. A synthetic matrix of rank 10 with noise and 10 % gross outliers: the relative error at entries that nobody has seen. Peers
   know the rank. Settings of cornac, SoftImpute and cmfrec are the best of a few by the truth itself, on a smaller matrix;
   those of the others were not searched. RobustCompletion has its defaults.
   A peer that takes more than PATIENCE times our CPU time is stopped.
3. The radius that RobustCompletion chooses against a fine grid of radii, judged by the test set.
4. The estimator against the engine that it stands on, with the same radius and loss and without biases, to the same loss.

Each fit has a process and one thread of its own. Times are CPU seconds from arrays to predictions, kernels compiled and
libraries loaded; memory is the peak above the process with its data loaded. Medians over seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.completion_data import MOVIELENS, SETS, Entries, contaminated, movielens, rmse, split, synthetic
from benchmarks.completion_peers import OURS, PEERS, missing
from benchmarks.completion_run import Stopped, against_engine, measure
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off

REQUIRED = dict(zip(SETS, (0.914, 0.918, 0.940, 0.918), strict=True))
AIMS = dict(zip(SETS, (0.908, 0.913, 0.933, 0.912), strict=True))
SOFT_IMPUTE = "fancyimpute SoftImpute, centred"
PATIENCE, LEAST = 20, 60.0
"""A peer is stopped after PATIENCE times our CPU time, but not before LEAST seconds."""
FINE = np.geomspace(0.4, 2.5, 20)
"""The fine grid: these times the radius that was chosen."""


class Size(NamedTuple):
    seeds: int
    synthetic: tuple[int, int]
    """Rows, which are as many as columns, and entries."""
    radii: int
    small: tuple[int, int]
    """The synthetic matrix of the radii."""
    engine: tuple[int, int]


FULL = Size(3, (5_000, 2_500_000), 20, (1_000, 200_000), (20_000, 10_000_000))
QUICK = Size(1, (1_000, 500_000), 5, (500, 100_000), (4_000, 1_000_000))
"""As many entries in a row of the synthetic matrix: peers' settings suit both."""


# ------------------------------------------------------------------------------------------------------------ ratings


def ratings_jobs(train: Entries, test: Entries, names: list[str], seeds: int) -> list[Job]:
    def job(name: str, kind: str, seed: int) -> Job:
        def work() -> Iterator[Row]:
            settings = {} if name == OURS else PEERS[name].ratings
            predicted, cost = measure(name, contaminated(train, kind), test, seed, settings)
            yield {
                "part": "ratings",
                "name": name,
                "set": kind,
                "seed": seed,
                "rmse": rmse(predicted, test.values),
                **cost,
            }

        return Job(GUESSES.get(name, 2.0), work)

    return [job(name, kind, seed) for name in names for kind in SETS for seed in range(seeds)]


GUESSES = {SOFT_IMPUTE: 8.0, "myFM, Gibbs": 14.0, OURS: 4.0}
"""CPU seconds, for guesses of the time left and nothing else."""


def of(rows: list[Row], field: str, **which: Any) -> float:
    """The median of a field over the rows that are asked for; nan if there is none."""
    found = [row[field] for row in rows if all(row.get(key) == value for key, value in which.items()) and field in row]
    return median(found) if found else float("nan")


def four(value: float) -> str:
    return f"{value:.4f}"


def ratings_table(rows: list[Row], names: list[str]) -> None:
    lines = [
        (
            name,
            *(four(of(rows, "rmse", name=name, set=kind)) for kind in SETS),
            of(rows, "cpu", name=name),
            of(rows, "peak", name=name),
        )
        for name in names
    ]
    lines.append(("required of ours", *map(four, REQUIRED.values()), "a fifth of SoftImpute's", ""))
    lines.append(("aim", *map(four, AIMS.values()), "below all", ""))
    table("MovieLens 100K: test RMSE", ("", *SETS, "CPU s", "peak MB"), lines)


def ratings_claims(rows: list[Row]) -> list[Claim]:
    claims = []
    for kind, bound in REQUIRED.items():
        found = of(rows, "rmse", name=OURS, set=kind)
        claims.append(Claim(f"MovieLens, {kind}: test RMSE", f"<= {bound:.3f}", four(found), round(found, 4) <= bound))
    share = of(rows, "cpu", name=OURS) / of(rows, "cpu", name=SOFT_IMPUTE)
    claims.append(Claim("MovieLens: CPU time over SoftImpute's", "<= 0.2", f"{share:.2f}", share <= 0.2))
    return claims


def aims_table(rows: list[Row], names: list[str]) -> list[Row]:
    """The aims, which are not required: whether they are met."""
    found = {kind: of(rows, "rmse", name=OURS, set=kind) for kind in SETS}
    lines = [(kind, f"<= {aim:.3f}", four(found[kind]), found[kind] <= aim) for kind, aim in AIMS.items()]
    peers = {name: of(rows, "cpu", name=name) for name in names if name != OURS}
    if peers:
        fastest, ours = min(peers, key=lambda name: peers[name]), of(rows, "cpu", name=OURS)
        lines.append(
            ("CPU s", f"< {peers[fastest]:.2f} ({fastest}, the fastest)", f"{ours:.2f}", ours < peers[fastest])
        )
    table(
        "Aims, not required",
        ("", "aim", "measured", ""),
        [(*line[:3], "met" if line[3] else "not met") for line in lines],
    )
    return [{"part": "aims", "what": what, "aim": aim, "measured": got, "met": met} for what, aim, got, met in lines]


# ---------------------------------------------------------------------------------------------------------- synthetic


def relative(predicted: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(predicted - truth) / np.linalg.norm(truth))


def synthetic_jobs(size: int, entries: int, names: list[str]) -> list[Job]:
    """Ours comes first: its time is what peers are given a multiple of."""
    seen, truth = synthetic(size, 10, entries)
    ours: list[float] = []

    def job(name: str) -> Job:
        def work() -> Iterator[Row]:
            row: Row = {"part": "synthetic", "name": name, "robust": name == OURS or PEERS[name].robust}
            limit = max(PATIENCE * ours[0], LEAST) if ours else None
            try:
                predicted, cost = measure(name, seen, truth, 0, {} if name == OURS else PEERS[name].synthetic, limit)
            except Stopped as stopped:
                yield {**row, "stopped": str(stopped), "limit": limit}
                return
            if name == OURS:
                ours.append(cost["cpu"])
            yield {**row, "error": relative(predicted, truth.values), **cost}

        return Job(GUESSES.get(name, 2.0), work)

    return [job(name) for name in sorted(names, key=lambda name: name != OURS)]


def synthetic_table(rows: list[Row], size: int, entries: int) -> list[Claim]:
    title = f"Synthetic, {size:,} x {size:,}, rank 10, {entries:,} entries, 10 % gross outliers"
    ours = of(rows, "error", name=OURS)
    lines = [
        (row["name"], f"> {row['limit']:.0f}", "-", "stopped", "-")
        if "stopped" in row
        else (row["name"], row["cpu"], row["peak"], row["error"], f"{row['error'] / ours:.1f}")
        for row in rows
    ]
    legend = "cmfrec has no implicit features here: which entries are seen says nothing."
    table(title, ("", "CPU s", "peak MB", "relative error", "over ours"), lines, legend)
    squared = [row["error"] for row in rows if not row["robust"] and "error" in row]
    least = min(squared, default=float("nan")) / ours
    what = f"recovery error over ours: best of {len(squared)} squared-loss peers"
    return [Claim(what, ">= 10", f"{least:.1f}", least >= 10)]


# -------------------------------------------------------------------------------------------------------------- radii


def radius_jobs(cases: dict[str, tuple[Entries, Entries]], radii: int) -> list[Job]:
    """For each case: the radius that is chosen, then a fine grid around it."""
    chosen: dict[str, float] = {}

    def job(case: str, factor: float | None) -> Job:
        def work() -> Iterator[Row]:
            train, test = cases[case]
            settings = {} if factor is None else {"radius": factor * chosen[case]}
            predicted, cost = measure(OURS, train, test, 0, settings)
            chosen.setdefault(case, cost["radius"])
            yield {"part": "radius", "case": case, "factor": factor, "rmse": rmse(predicted, test.values), **cost}

        return Job(1.0, work)

    grid = [float(f) for f in FINE[:: max(len(FINE) // radii, 1)]]
    return [job(case, factor) for case in cases for factor in [None, 1.0, *grid]]


def radius_table(rows: list[Row], cases: list[str]) -> list[Claim]:
    lines, claims = [], []
    for case in cases:
        auto = next(row for row in rows if row["case"] == case and row["factor"] is None)
        best = min(
            (row for row in rows if row["case"] == case and row["factor"] is not None), key=lambda row: row["rmse"]
        )
        ratio = auto["rmse"] / best["rmse"]
        lines.append((case, auto["radius"], four(auto["rmse"]), best["radius"], four(best["rmse"]), f"{ratio:.4f}"))
        claims.append(
            Claim(f"radius, {case}: test RMSE over the grid's best", "<= 1.005", f"{ratio:.4f}", ratio <= 1.005)
        )
    table(
        "The radius: chosen by held-out entries, and the best of a fine grid by the test set",
        ("", "chosen", "test RMSE", "best", "test RMSE", "ratio"),
        lines,
    )
    return claims


# -------------------------------------------------------------------------------------------------------------- engine


def engine_table(rows: list[Row], size: int, entries: int) -> list[Claim]:
    names = ("engine", "estimator")
    fields = ("cpu", "peak", "loss", "rank")
    found = {name: [of(rows, field, name=name) for field in fields] for name in names}
    lines = [(name, cpu, peak, f"{loss:.1f}", rank) for name, (cpu, peak, loss, rank) in found.items()]
    title = f"The estimator on the engine: {size:,} x {size:,}, {entries:,} entries, fixed radius and scale, no biases"
    legend = "The engine runs as a user calls it, until its loss is within 0.1 %, the estimator's tolerance, of the estimator's."
    table(title, ("", "CPU s", "peak MB", "loss", "rank"), lines, legend)
    claims = []
    for what, field in (("time", "cpu"), ("memory", "peak")):
        added = of(rows, field, name="estimator") / of(rows, field, name="engine") - 1
        text = f"{what} that the estimator adds to the engine's, to the same loss"
        claims.append(Claim(text, "< 5 %", f"{added:+.1%}", added < 0.05))
    return claims


# --------------------------------------------------------------------------------------------------------------- main


def main() -> None:
    args = arguments(__doc__)
    size = QUICK if args.quick else FULL
    absent = {name: why for name in PEERS if (why := missing(name))}
    for name, why in absent.items():
        print(f"{name} is left out: {why}")
    names = [OURS, *(name for name in PEERS if name not in absent)]
    rows: list[Row] = []
    claims: list[Claim] = []
    cases: dict[str, tuple[Entries, Entries]] = {}

    def part(title: str, jobs: Callable[[], list[Job]]) -> list[Row]:
        found = work_off(title, jobs())
        rows.extend(found)
        return found

    if MOVIELENS.exists():
        train, test = split(movielens())
        found = part("ratings", lambda: ratings_jobs(train, test, names, size.seeds))
        ratings_table(found, names)
        claims += ratings_claims(found)
        rows += aims_table(found, names)
        cases = {
            f"MovieLens, {kind}": (contaminated(train, kind), test) for kind in (SETS if not args.quick else SETS[::3])
        }
    else:
        print(f"MovieLens 100K is left out: there is no file u.data in {MOVIELENS.parent}.", file=sys.stderr)

    found = part("synthetic", lambda: synthetic_jobs(*size.synthetic, names))
    claims += synthetic_table(found, *size.synthetic)

    cases[f"synthetic, {size.small[1]:,} entries"] = synthetic(size.small[0], 10, size.small[1])
    found = part("radius", lambda: radius_jobs(cases, size.radii))
    claims += radius_table(found, list(cases))

    found = list(against_engine(*size.engine))
    rows += found
    claims += engine_table(found, *size.engine)
    settings = {name: {"ratings": peer.ratings, "synthetic": peer.synthetic} for name, peer in PEERS.items()}
    finish("completion", args, rows, claims, settings=settings, absent=absent)


if __name__ == "__main__":
    main()
