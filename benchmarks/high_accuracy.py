"""CPU time to 1e-3 and to 1e-8 on problem (5): ncgs with its factored phase and without, beside L-BFGS on factors, unproven.

Gaussian data, R = 0.3 and 1.0 of the nuclear norm of Y, square and 3:1 shapes. The times of ncgs are those until ``converged``:
the squared gradient mapping is certified, and what is returned is verified. ``factored, no certificate`` is what people write
themselves: L-BFGS over (U, V) with X = R U V'/s, from a random start, with the rank of the solution that ncgs has found, which
it could not know. It is ended by the judge of judge.py, while its clock stands still, at its first point whose squared mapping
is at most the target. It is the limit: it proves nothing, and misses what lies outside of its rank.

With R = 1.0, from 400 columns on, rivals with full SVDs and Frank-Wolfe (the rules here and copt's, dense, which is the faster
form at these ranks) are run too, under the same judge. Each is ended after PATIENCE times the time of ncgs on the same data.

``--only 400x400,1200x400`` runs these sizes, ``--shares 1.0`` and ``--targets 1e-3`` these radii and targets, ``--alone``
leaves the rivals out. BLAS has one thread; kernels are compiled and warm before it begins.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import NamedTuple

import numba

import condgrad as cg
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from benchmarks.judge import Run, copt, with_condgrad, with_copt, with_factors, with_fista
from condgrad.points import LowRank

TARGETS = (1e-3, 1e-8)
SHARES = (0.3, 1.0)
RANKS = {200: 5, 400: 8, 1000: 10, 2000: 10}
LIMIT = 120.0
"""CPU seconds after which a run is ended."""
MAX_RATIO, MAX_TO_LIMIT = 2.0, 2.0
"""What is claimed: 1e-8 takes at most this many times the time to 1e-3, and a certified run that of the one without a proof."""


RIVALS_FROM = 400
"""Number of columns from which on rivals are run."""


class Rival(NamedTuple):
    """``required`` times the time of ncgs is claimed, at least, of the best of its family."""

    name: str
    family: str
    run: Callable[[float], Run]
    required: float


FULL_SVD, FRANK_WOLFE = "full SVDs", "Frank-Wolfe"
RIVALS = [
    Rival("full SVD, projected-gradient", FULL_SVD, lambda to: with_condgrad("projected-gradient", True, to), 5.0),
    Rival("full SVD, accelerated (FISTA)", FULL_SVD, with_fista, 5.0),
    Rival(
        "frank-wolfe open-loop", FRANK_WOLFE, lambda to: with_condgrad("frank-wolfe", True, to, rule="open-loop"), 10.0
    ),
    Rival("copt sublinear", FRANK_WOLFE, lambda to: with_copt("sublinear", to), 10.0),
]
PATIENCE = 1.05
"""A rival is ended after this multiple of the claimed time."""


class Case(NamedTuple):
    rows: int
    columns: int
    share: float
    target: float

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns}, R = {self.share:g} nuc, to {self.target:g}"


def problem(case: Case) -> cg.Problem:
    shape, rank = (case.rows, case.columns), RANKS.get(case.columns, 3)
    data = cg.paper_data(*shape, rank, seed=0, generator="gaussian")
    objective = cg.Completion(data.rows, data.cols, data.values, shape, cg.Welsch(1.0))
    return cg.Problem(objective, cg.NuclearBall(shape, case.share * data.nuclear_norm))


def certified(known: cg.Problem, case: Case, polish: bool) -> tuple[Row, LowRank]:
    """Until the run has converged."""
    stop = cg.Mapping(case.target) | cg.CpuSeconds(LIMIT)
    r = cg.minimize(known.objective, known.domain, stop=stop, every=10**9, polish=polish, progress=False)
    facts = {"reached": r.status == "converged", "rank": r.x.rank, "fun": r.fun, "fo": r.counts["fo"], "steps": r.steps}
    return {"cpu": r.cpu, **facts}, r.x


NAMES = ("ncgs", "ncgs, polish=False", "factored, no certificate")


def rows_of(case: Case, plain: bool, rivals: bool = False) -> list[Row]:
    known = problem(case)
    ours, x = certified(known, case, polish=True)
    limit = with_factors(case.target)(known, LIMIT)
    found = {NAMES[0]: ours, NAMES[2]: {**limit, "rank": x.rank}}
    if plain:
        found[NAMES[1]] = certified(known, case, polish=False)[0]
    if rivals:
        for rival in RIVALS if copt is not None else [r for r in RIVALS if not r.name.startswith("copt")]:
            found[rival.name] = {**rival.run(case.target)(known, PATIENCE * rival.required * ours["cpu"]), "rank": 0}
    return [{**case._asdict(), "method": name, **row} for name, row in found.items()]


def claims_of(rows: list[Row]) -> list[Claim]:
    by = {(Case(r["rows"], r["columns"], r["share"], r["target"]), r["method"]): r for r in rows}
    claims = []
    for case in dict.fromkeys(case for case, _ in by):
        ours, limit = by[case, NAMES[0]], by[case, NAMES[2]]
        claims.append(Claim(f"{case}: certified", "converged", f"{ours['cpu']:.3g} s", ours["reached"]))
        ratio = ours["cpu"] / limit["cpu"]
        text = f"{ratio:.3g}" if limit["reached"] else f"{ratio:.3g}, which did not get there"
        holds = ratio <= MAX_TO_LIMIT or not limit["reached"]
        claims.append(Claim(f"{case}: CPU time / of {NAMES[2]}", f"<= {MAX_TO_LIMIT:g}", text, holds))
        for family, required in dict.fromkeys((rival.family, rival.required) for rival in RIVALS):
            rows_here = [by[case, r.name] for r in RIVALS if r.family == family and (case, r.name) in by]
            if rows_here:
                best = min(rows_here, key=lambda row: row["cpu"] if row["reached"] else float("inf"))
                ratio, ended = best["cpu"] / ours["cpu"], "" if best["reached"] else "> "
                name = f"{case}: CPU time of the best with {family} / of {NAMES[0]}"
                claims.append(Claim(name, f">= {required:g}", f"{ended}{ratio:.3g}", ratio >= required))
        rough = by.get((case._replace(target=TARGETS[0]), NAMES[0]))
        if case.target == TARGETS[1] and rough is not None:
            ratio = ours["cpu"] / rough["cpu"]
            claims.append(Claim(f"{case}: CPU time / to 1e-3", f"<= {MAX_RATIO:g}", f"{ratio:.3g}", ratio <= MAX_RATIO))
    return claims


def options(parser: argparse.ArgumentParser) -> None:
    def numbers(text: str) -> list[float]:
        return [float(part) for part in text.split(",")]

    def shapes(text: str) -> list[tuple[int, int]]:
        return [(int(m), int(n)) for m, n in (part.split("x") for part in text.split(","))]

    parser.add_argument("--only", type=shapes, metavar="400x400,1200x400", help="sizes")
    parser.add_argument("--shares", type=numbers, default=SHARES, help="radii, as shares of the nuclear norm")
    parser.add_argument("--targets", type=numbers, default=TARGETS, help="squared mappings")
    parser.add_argument("--alone", action="store_true", help="without rivals")


def main() -> None:
    args = arguments(__doc__, options)
    numba.set_num_threads(1)
    sizes = [size for size in RANKS if size <= 200 or not args.quick]
    shapes = [(size, size) for size in sizes] + [(3 * size, size) for size in sizes if not args.quick and size <= 1000]
    cases = [
        Case(*shape, share, target) for shape, share, target in product(args.only or shapes, args.shares, args.targets)
    ]
    rows_of(Case(60, 60, 0.3, 1e-3), plain=True, rivals=True)  # kernels, BLAS, imports

    def job(case: Case) -> Job:
        plain = case.columns <= 100 and case.target == TARGETS[0] and not args.alone
        rivals = case.share == 1.0 and case.columns >= RIVALS_FROM and not args.alone
        return Job(case.rows * case.columns, partial(rows_of, case, plain, rivals))

    rows = work_off("high_accuracy", [job(case) for case in cases])
    for case in cases:
        lines = [
            (r["method"], "yes" if r["reached"] else "no", r["cpu"], r["rank"] or "-", r["steps"], r["fo"])
            for r in rows
            if Case(r["rows"], r["columns"], r["share"], r["target"]) == case
        ]
        table(f"Problem (5), gaussian, {case}", ("method", "there", "CPU", "rank", "steps", "FO"), lines)
    finish("high_accuracy", args, rows, claims_of(rows), limit=LIMIT)


if __name__ == "__main__":
    main()
