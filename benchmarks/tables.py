"""RobustCompletion with its defaults on ratings, sensor tables and synthetic matrices, against tuned plain peers.

1. MovieLens 100K with four training sets (benchmarks/completion_data.py): test RMSE, and CPU time over that of one fit with the
   Welsch loss.
2. Sensor tables (road traffic, temperatures, metro passengers) with random holes or whole days of a sensor missing, clean and
   with 5 % gross outliers: relative error at the holes, with and without the tensor view (``period``), against SoftImpute,
   iterative SVD and LRTC-TNN (benchmarks/lrtc_tnn.py), tuned on held-out entries.
3. Synthetic matrices of rank 4 with 0 to 40 % wrong entries, scattered, one-sided, by row and by block: relative error at the
   holes, against the Welsch loss alone and the two peers.

Medians over seeds. The settings of the estimator were chosen with ratings, traffic, and synthetic matrices of all four families,
seeds 0 to 2. Temperatures, metro passengers and all other seeds were kept aside: ``--aside`` runs those tables and, with other
seeds, the ratings and two of the families. The test set of the ratings is the same for all seeds. The tensor view was built with
traffic and metro passengers, seeds 0 and 1: for it only temperatures and the other seeds were kept aside.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.completion_data import MOVIELENS, SETS, contaminated, movielens, rmse, split
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from benchmarks.lrtc_tnn import lrtc_tnn
from benchmarks.tables_data import DIRT, FOLDER, HOLES, SENSORS, SHARES, Case, sensors, synthetic
from benchmarks.tables_peers import iterative_svd, soft_impute
from condgrad.learn import RobustCompletion

OURS, WELSCH = "RobustCompletion()", 'RobustCompletion("welsch")'
TENSOR, LRTC = "RobustCompletion(period=)", "LRTC-TNN"
PARTS = ("ratings", "sensors", "synthetic")
PEERS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "SoftImpute": soft_impute,
    "iterative SVD": iterative_svd,
}
TARGETS = dict(zip(SETS, (0.898, 0.906, 0.933, 0.905), strict=True))
SLACK = 1.02
"""On sensor tables ours may be worse than the better peer by this factor."""
NO_WORSE = 1.05
"""On synthetic matrices ours may be worse than the Welsch loss alone by this factor."""
TUNED, ASIDE = range(3), range(10, 13)
"""Seeds that settings were chosen with, and seeds that were kept aside."""


def ours(seed: int, loss: str = "auto") -> RobustCompletion:
    return RobustCompletion(loss, random_state=seed)


def ratings_jobs(seeds: range) -> list[Job]:
    train, test = split(movielens())

    def job(kind: str, seed: int) -> Job:
        def work() -> Iterator[Row]:
            given = contaminated(train, kind)
            X = csr_matrix((given.values, (given.rows, given.cols)), given.shape)
            row: Row = {"part": "ratings", "data": kind, "seed": seed}
            for name, loss in ((WELSCH, "welsch"), (OURS, "auto")):
                begun = process_time()
                model = ours(seed, loss).fit(X)
                took = process_time() - begun
                error = rmse(model.predict(np.column_stack([test.rows, test.cols])), test.values)
                row |= {name: error, f"{name} CPU": took}
            yield {**row, "loss": model.loss_, "averaged": model.averaging_ is not None}

        return Job(3.0, work)

    return [job(kind, seed) for kind in SETS for seed in seeds]


def table_job(part: str, data: str, dirt: str, case: Callable[[], Case], seed: int, with_welsch: bool) -> Job:
    def work() -> Iterator[Row]:
        made = case()
        begun = process_time()
        model = ours(seed).fit(made.seen)
        row: Row = {"part": part, "data": data, "dirt": dirt, "seed": seed, "CPU": process_time() - begun}
        row |= {OURS: made.error(model.fill("nothing")), "loss": model.loss_}
        row["averaged"] = model.averaging_ is not None
        for name, peer in PEERS.items():
            row[name] = made.error(peer(made.seen, seed))
        if with_welsch:
            row[WELSCH] = made.error(ours(seed, "welsch").fit(made.seen).fill("nothing"))
        yield row

    return Job(2.0, work)


def sensors_job(name: str, holes: str, seed: int) -> Job:
    """The plain fit and its peers, then the tensor view and LRTC-TNN: rows are times in the data, and columns for the view."""

    def work() -> Iterator[Row]:
        case, period = sensors(name, holes, seed), SENSORS[name](seed)[1]
        [row] = table_job("sensors", name, holes, lambda: case, seed, False).work()
        begun = process_time()
        model = RobustCompletion(period=period, random_state=seed).fit(case.seen.T)
        row |= {f"{TENSOR} CPU": process_time() - begun, TENSOR: case.error(model.fill("nothing").T)}
        row["view"] = None if model.view_ is None else model.view_._asdict()
        begun = process_time()
        row[LRTC] = case.error(lrtc_tnn(case.seen, period, seed))
        yield {**row, f"{LRTC} CPU": process_time() - begun}

    return Job(20.0, work)


def of(rows: list[Row], field: str, **which: Any) -> float:
    """The median of a field over the rows that are asked for."""
    found = [row[field] for row in rows if all(row[key] == value for key, value in which.items())]
    return median(found) if found else float("nan")


def ratings_table(rows: list[Row]) -> list[Claim]:
    ratio = {kind: of(rows, f"{OURS} CPU", data=kind) / of(rows, f"{WELSCH} CPU", data=kind) for kind in SETS}
    lines = [
        (
            kind,
            *(f"{of(rows, name, data=kind):.4f}" for name in (OURS, WELSCH)),
            f"{TARGETS[kind]:.3f}",
            f"{ratio[kind]:.1f}",
        )
        for kind in SETS
    ]
    table("MovieLens 100K: test RMSE", ("", OURS, WELSCH, "required", "CPU time over Welsch"), lines)
    claims = []
    for kind, bound in TARGETS.items():
        found = of(rows, OURS, data=kind)
        claims.append(Claim(f"MovieLens, {kind}: test RMSE", f"<= {bound:.3f}", f"{found:.4f}", found <= bound))
    slowest = max(ratio.values())
    claims.append(Claim("MovieLens: CPU time over one fit with Welsch", "<= 3", f"{slowest:.1f}", slowest <= 3))
    return claims


def sensors_table(rows: list[Row], names: list[str]) -> list[Claim]:
    lines, claims = [], []
    for name in names:
        for holes in HOLES:
            found = {who: of(rows, who, data=name, dirt=holes) for who in (OURS, TENSOR, *PEERS, LRTC)}
            better, dirty = min(found[who] for who in PEERS), holes.endswith("outliers")
            ratio, of_view = found[OURS] / better, found[TENSOR] / found[LRTC]
            lines.append((name, holes, *(f"{error:.4f}" for error in found.values()), f"{ratio:.3f}", f"{of_view:.3f}"))
            bound = 1.0 if dirty else SLACK
            claims += [
                Claim(f"{name}, {holes}: {what} over the better peer", f"<= {bound}", f"{value:.3f}", value <= bound)
                for what, value in ((OURS, ratio), (TENSOR, found[TENSOR] / better))
            ]
            claims.append(
                Claim(f"{name}, {holes}: the tensor view over {LRTC}", "<= 1.0", f"{of_view:.3f}", of_view <= 1.0)
            )
    header = ("", "", OURS, TENSOR, *PEERS, LRTC, "plain over the better peer", f"view over {LRTC}")
    table("Sensor tables: relative error at the holes", header, lines)
    return claims


def synthetic_table(rows: list[Row], families: list[str]) -> list[Claim]:
    lines, claims = [], []
    for dirt in families:
        for share in SHARES:
            found = {who: of(rows, who, data=share, dirt=dirt) for who in (OURS, WELSCH, *PEERS)}
            ratio = found[OURS] / found[WELSCH]
            lines.append((dirt, f"{share:.0%}", *(f"{error:.3f}" for error in found.values()), f"{ratio:.2f}"))
            what = f"synthetic, {dirt}, {share:.0%}: error over Welsch's"
            claims.append(Claim(what, f"<= {NO_WORSE}", f"{ratio:.2f}", ratio <= NO_WORSE))
    table(
        "Synthetic, rank 4: relative error at the holes",
        ("wrong entries", "share", OURS, WELSCH, *PEERS, "over Welsch"),
        lines,
    )
    return claims


def main() -> None:
    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--aside", action="store_true", help="the data that were kept aside")
        parser.add_argument("--only", choices=PARTS, help="one of the three parts")

    args = arguments(__doc__, options)
    wanted = PARTS if args.only is None else (args.only,)
    seeds = ASIDE if args.aside else TUNED
    seeds = seeds[:1] if args.quick else seeds
    rows: list[Row] = []
    claims: list[Claim] = []

    def part(title: str, jobs: list[Job]) -> list[Row]:
        found = work_off(title, jobs)
        rows.extend(found)
        return found

    if "ratings" not in wanted:
        pass
    elif MOVIELENS.exists():
        claims += ratings_table(part("ratings", ratings_jobs(seeds)))
    else:
        print(f"MovieLens 100K is left out: there is no file u.data in {MOVIELENS.parent}.", file=sys.stderr)
    if "sensors" not in wanted:
        pass
    elif FOLDER.exists():
        names = ["temperature", "metro"] if args.aside else ["traffic"]
        jobs = [sensors_job(name, holes, seed) for name in names for holes in HOLES for seed in seeds]
        claims += sensors_table(part("sensors", jobs), names)
    else:
        print(f"Sensor tables are left out: there is no folder {FOLDER}.", file=sys.stderr)
    if "synthetic" in wanted:
        claims += synthetic_part(args.aside, seeds, part)
    finish("tables-aside" if args.aside else "tables", args, rows, claims)


def synthetic_part(aside: bool, seeds: range, part: Callable[[str, list[Job]], list[Row]]) -> list[Claim]:
    families = [dirt for dirt in DIRT if (dirt in ("one-sided", "by block")) == aside]
    jobs = [
        table_job("synthetic", share, dirt, lambda d=dirt, x=share, s=seed: synthetic(d, x, s), seed, True)  # type: ignore
        for dirt in families
        for share in SHARES
        for seed in seeds
    ]
    return synthetic_table(part("synthetic", jobs), families)


if __name__ == "__main__":
    main()
