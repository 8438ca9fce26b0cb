"""CPU time until the squared gradient mapping is at most 1e-3 on problem (5): NCGS against Frank-Wolfe, copt and full SVDs.

Problem (5) is F(X) = sum of 1 - exp(-(X_ij - Y_ij)^2) over the observed tenth of a matrix, 5% of it corrupted, over the nuclear
ball. ``orthonormal``: R is the nuclear norm of Y, as in the paper; ``gaussian``: entries of size 1, R is 0.3 of it;
``gaussian, R = nuc``: R is the nuclear norm, and solutions have ten times the rank of Y.

What is measured. Seconds of CPU time, of all threads, from the start at 0 to the first iterate whose mapping with
gamma = 1/(2L) is certified to be at most 1e-3, by one judge for all methods and while the watch stands still: see judge.py.

``rough frank-wolfe`` is Frank-Wolfe with the oracle of our own warm start, which is accurate to a tenth of the gap: no rule that
condgrad offers, and not part of the claims, but the strongest Frank-Wolfe known here. ``factored, no certificate`` is L-BFGS
over factors of the rank that ncgs has found: the limit of what can be done, without a proof.

Runs of less than a second are made three times, and the median counts. A peer that has not got there after PATIENCE times our
time on the same data is ended, and its ratio is a lower bound. Weaker variants and larger sizes have fewer seeds, so that all of
it ends. BLAS has one thread; kernels are compiled and warm before it begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from statistics import median
from typing import Any, NamedTuple

import numba

import condgrad as cg
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from benchmarks.judge import (
    TARGET,
    Run,
    copt,
    with_condgrad,
    with_copt,
    with_factors,
    with_fista,
    with_rough_oracle,
)
from condgrad.runtime.progress import duration

PATIENCE, SHORT = {"ncgs": 21, "ncgs-vr": 21}, {"ncgs": 12, "ncgs-vr": 21}
"""A peer is ended after so many times the CPU time of its rival among ours, but not before LEAST seconds; SHORT with --quick."""
LEAST = 1.0
OUR_LIMIT = 120.0
GENERATORS = ("orthonormal", "gaussian", "gaussian, R = nuc")
SMALL_RADII = GENERATORS[:2]
RANKS = {200: 5, 400: 8, 1000: 10, 2000: 10}


# ----------------------------------------------------------------------------------------------------------- measuring


class Case(NamedTuple):
    size: int
    generator: str
    seed: int


@lru_cache(maxsize=2)
def problem(case: Case) -> cg.Problem:
    n, rank = case.size, RANKS.get(case.size, 3)
    data = cg.paper_data(n, n, rank, seed=case.seed, generator=case.generator.partition(",")[0])
    share = {"orthonormal": 1.0, "gaussian": 0.3}.get(case.generator, 1.0)
    R = float(rank) if case.generator == "orthonormal" else share * data.nuclear_norm
    objective = cg.Completion(data.rows, data.cols, data.values, (n, n), cg.Welsch(1.0))
    return cg.Problem(objective, cg.NuclearBall((n, n), R))


def timed(run: Run, known: cg.Problem, limit: float) -> Row:
    """One run, or of three the one of median CPU time where that is less than a second."""
    first = run(known, limit)
    if not first["reached"] or first["cpu"] >= 1:
        return first
    return sorted([first, run(known, limit), run(known, limit)], key=lambda r: r["cpu"])[1]


# ---------------------------------------------------------------------------------------------------------- contenders


Seeds = tuple[int, int, int, int]
"""How many seeds, at each size."""


@dataclass(frozen=True)
class Contender:
    """``seeds`` of them with one thread and ``two`` with two; with --quick ``quick``, with one."""

    name: str
    run: Run
    seeds: Seeds
    quick: int = 0
    two: Seeds = (0, 0, 0, 0)
    rival: str | None = "ncgs"
    """Whose time its own is compared with; None for ours."""
    generators: tuple[str, ...] = GENERATORS


def rule(
    name: str, low_rank: Seeds, dense: Seeds, quick: tuple[int, int] = (0, 0), two: Seeds = (0, 0, 0, 0)
) -> list[Contender]:
    """A Frank-Wolfe rule on low-rank points and on arrays: the better of the two counts."""
    return [
        Contender(f"frank-wolfe {name}, low-rank", with_condgrad("frank-wolfe", rule=name), low_rank, quick[0], two),
        Contender(f"frank-wolfe {name}, dense", with_condgrad("frank-wolfe", True, rule=name), dense, quick[1]),
    ]


ROUGH = "rough frank-wolfe, low-rank"
"""No rule that condgrad offers, and no claim: but fair, since our own warm start has this oracle."""
PROJECTED, FISTA = "full SVD, projected-gradient", "full SVD, accelerated (FISTA)"
FACTORED = "factored, no certificate"
CONTENDERS = [
    Contender("ncgs", with_condgrad("ncgs"), (5, 5, 5, 5), 2, (1, 1, 2, 2), None),
    Contender("ncgs-ii", with_condgrad("ncgs-ii"), (2, 2, 1, 1), 1, rival=None, generators=SMALL_RADII),
    Contender("ncgs-vr", with_condgrad("ncgs-vr"), (5, 3, 2, 2), 2, (1, 1, 1, 0), None, SMALL_RADII),
    *rule("open-loop", (1, 1, 2, 2), (5, 5, 1, 0), quick=(1, 2), two=(0, 0, 1, 0)),
    *rule("line-search", (1, 0, 1, 0), (1, 1, 0, 0)),
    *rule("adaptive", (1, 0, 0, 0), (1, 1, 0, 0)),
    *rule("short", (1, 0, 0, 0), (1, 1, 0, 0)),
    *rule("bounded", (1, 0, 0, 0), (1, 1, 0, 0)),
    Contender(ROUGH, with_rough_oracle(), (3, 3, 2, 1), 1),
    Contender("copt sublinear", with_copt("sublinear"), (5, 5, 2, 1), 2),
    Contender("copt backtracking", with_copt("backtracking"), (1, 1, 0, 0)),
    Contender("copt DR", with_copt("DR"), (1, 1, 0, 0)),
    Contender(PROJECTED, with_condgrad("projected-gradient", True), (3, 3, 1, 1), 1),
    Contender(FISTA, with_fista(), (3, 3, 1, 1), 1),
    Contender(FACTORED, with_factors(), (5, 5, 2, 2), 2),
    Contender("svfw, low-rank", with_condgrad("svfw"), (1, 1, 1, 1), rival="ncgs-vr", generators=SMALL_RADII),
    Contender("svfw, dense", with_condgrad("svfw", True), (2, 1, 0, 0), 1, rival="ncgs-vr", generators=SMALL_RADII),
    Contender("sagafw, dense", with_condgrad("sagafw", True), (1, 0, 0, 0), rival="ncgs-vr", generators=SMALL_RADII),
]
"""More seeds for the best of each family, fewer for the others and for the sizes on which a run takes a minute."""

GUESSES = {
    (200, "orthonormal"): (0.03, 0.09),
    (200, "gaussian"): (0.1, 0.5),
    (400, "orthonormal"): (0.08, 0.4),
    (400, "gaussian"): (0.15, 0.6),
    (1000, "orthonormal"): (0.6, 3.0),
    (1000, "gaussian"): (0.3, 1.6),
    (2000, "orthonormal"): (1.3, 3.5),
    (2000, "gaussian"): (1.0, 4.5),
    (200, "gaussian, R = nuc"): (0.5, 0.0),
    (400, "gaussian, R = nuc"): (1.5, 0.0),
    (1000, "gaussian, R = nuc"): (7.0, 0.0),
    (2000, "gaussian, R = nuc"): (30.0, 0.0),
}
"""CPU seconds that ncgs and ncgs-vr took once, for guesses of the time left and nothing else."""


def guess(contender: Contender, case: Case, patience: dict[str, int]) -> float:
    """Seconds that the contender takes on one seed, looks of the judge and all."""
    ncgs, vr = GUESSES[case.size, case.generator]
    looks = 1.0 + (case.size / 500) ** 2
    if contender.rival is None:
        return {"ncgs": ncgs, "ncgs-ii": 6 * ncgs, "ncgs-vr": vr}[contender.name] + looks / 2
    return max(LEAST, patience[contender.rival] * (vr if contender.rival == "ncgs-vr" else ncgs)) + looks


class Benchmark:
    """The jobs, in an order that has each case's own methods before its peers: their time is what a peer is given."""

    def __init__(self, contenders: list[Contender], quick: bool):
        self.contenders, self.quick = contenders, quick
        self.patience = SHORT if quick else PATIENCE
        self.ours: dict[tuple[Case, str], float] = {}

    def seeds(self, contender: Contender, size: int, threads: int = 1) -> int:
        if self.quick:
            return contender.quick if threads == 1 else 0
        return (contender.seeds if threads == 1 else contender.two)[list(RANKS).index(size)]

    def jobs(self) -> list[Job]:
        jobs = []
        sizes = [size for size in RANKS if size <= 400 or not self.quick]
        for size, generator, seed in product(sizes, GENERATORS, range(5)):
            case = Case(size, generator, seed)
            for threads, contender in product((1, 2)[: numba.config.NUMBA_NUM_THREADS], self.contenders):
                large = generator not in SMALL_RADII and size > 200 and self.quick
                if seed < self.seeds(contender, size, threads) and generator in contender.generators and not large:
                    jobs.append(self.job(case, contender, threads))
        return jobs

    def job(self, case: Case, contender: Contender, threads: int) -> Job:
        return Job(guess(contender, case, self.patience), lambda: [self.row(case, contender, threads)])

    def row(self, case: Case, contender: Contender, threads: int) -> Row:
        limit = OUR_LIMIT
        if contender.rival:
            limit = max(LEAST, self.patience[contender.rival] * self.ours[case, contender.rival])
        numba.set_num_threads(threads)
        try:
            row = timed(contender.run, problem(case), limit)
        finally:
            numba.set_num_threads(1)
        if contender.rival is None and threads == 1:
            self.ours[case, contender.name] = row["cpu"]
        n_terms = problem(case).objective.n_terms
        facts = {"threads": threads, "method": contender.name, "rival": contender.rival, "limit": limit}
        return {**case._asdict(), **facts, "n_terms": n_terms, **row}


def warm_up(contenders: list[Contender]) -> None:
    """Kernels, BLAS, imports: everything runs once on something small, with one thread and with two."""
    for threads in sorted({1, min(2, numba.config.NUMBA_NUM_THREADS)}, reverse=True):
        numba.set_num_threads(threads)
        for contender in contenders:
            contender.run(problem(Case(100, "gaussian", 0)), 0.3 if contender.rival else 10.0)


# ----------------------------------------------------------------------------------------------------------- reporting


class Ratio(NamedTuple):
    """CPU time over our own, on one seed; ``ended``: it had not got there, so the true ratio is larger."""

    value: float
    ended: bool


class Results:
    def __init__(self, rows: list[Row]):
        self.rows = rows

    def find(self, size: int, generator: str, method: str, threads: int = 1) -> dict[int, Row]:
        """By seed."""
        wanted = (size, generator, method, threads)
        found = (r for r in self.rows if (r["size"], r["generator"], r["method"], r["threads"]) == wanted)
        return {r["seed"]: r for r in found}

    def ratios(self, size: int, generator: str, ours: str, family: str) -> list[Ratio]:
        """On each seed: the best of all methods whose name begins so, over ours; 0 where ours did not get there."""
        known, found = self.find(size, generator, ours), []
        names = {r["method"] for r in self.rows if r["method"].startswith(family)}
        peers = [self.find(size, generator, name) for name in names]
        for seed, own in known.items():
            here = [peer[seed] for peer in peers if seed in peer]
            if here:
                best = min(here, key=lambda r: r["cpu"])
                found.append(Ratio(best["cpu"] / own["cpu"] if own["reached"] else 0.0, not best["reached"]))
        return found

    def lines(self, size: int, generator: str, contenders: list[Contender]) -> list[tuple[Any, ...]]:
        lines = []
        for c in contenders:
            runs = list(self.find(size, generator, c.name).values())
            if not runs:
                continue
            reached = sum(r["reached"] for r in runs)
            ratios = self.ratios(size, generator, c.rival or "ncgs", c.name)
            late = "> " if 2 * reached <= len(runs) else ""  # the median is a lower bound
            cpu, seconds, ratio = (
                f"{late}{value:#.3g}".rstrip(".")
                for value in (
                    median(r["cpu"] for r in runs),
                    median(r["seconds"] for r in runs),
                    median(r.value for r in ratios),
                )
            )
            counts = (int(median(r[what] for r in runs)) for what in ("steps", "fo", "lo", "ub", "po"))
            steps, fo, lo, ub, po = counts
            ifo = median(r["ifo"] / r["n_terms"] for r in runs)
            there = f"{reached} of {len(runs)}"
            lines.append((c.name, there, cpu, seconds, ratio, steps, fo, ifo, lo, ub, po))
        return lines

    def claim(self, size: int, generator: str, ours: str, family: str, said: str, required: float) -> Claim | None:
        ratios = self.ratios(size, generator, ours, family)
        if not ratios:
            return None
        ended = sum(r.ended for r in ratios)
        middle, worst = median(r.value for r in ratios), min(ratios)
        measured = (
            f"{'> ' if 2 * ended >= len(ratios) else ''}{middle:.3g}, worst seed {'> ' * worst.ended}{worst.value:.3g}"
        )
        measured += f" ({len(ratios)} seed{'s' * (len(ratios) > 1)}, not there in {ended})"
        claim = f"{size} x {size}, {generator}: CPU time of {said} / of {ours}"
        return Claim(claim, f">= {required:g} (median)", measured, middle >= required)


CLAIMS = (
    ("ncgs", "frank-wolfe", "the best Frank-Wolfe rule here", 10.0, 200),
    ("ncgs", "copt", "the best of copt's Frank-Wolfe", 10.0, 200),
    ("ncgs", "full SVD", "the best gradient method with full SVDs", 5.0, 400),
    ("ncgs", FACTORED, "L-BFGS over factors, without a certificate,", 0.5, 200),
    ("ncgs-vr", "svfw", "SVFW", 20.0, 200),
)
"""Ours, the peers' names begin with, said, the ratio that is required, from this size on."""

LEGEND = """
Medians over seeds (fewer for weaker variants), one thread. CPU and wall: seconds; ratio: CPU time over that of ncgs, seed by seed
(of svfw and sagafw: over that of ncgs-vr).
there: runs that reached the target; others were ended when they had had {ncgs} times our time (svfw, sagafw: {ncgs-vr} times).
'>': in half of the runs or more, so this is a lower bound.
FO: full gradients; IFO/n: term gradients by the number of terms, full gradients included;
LO: linear minimisations; UB: upper bounds; PO: projections.
"""


def main() -> None:
    args = arguments(__doc__)
    contenders = [c for c in CONTENDERS if copt is not None or not c.name.startswith("copt")]
    if copt is None:
        print("copt is not installed (pip install 'condgrad[peers]'): its rows and claims are left out.")
    benchmark = Benchmark(contenders, args.quick)
    jobs = benchmark.jobs()
    print(f"This takes about {duration(sum(job.weight for job in jobs))} on an otherwise idle machine.", flush=True)
    warm_up(contenders)
    rows = work_off("problem5", jobs)

    results = Results(rows)
    cells = sorted({(r["size"], r["generator"]) for r in rows}, key=lambda c: (c[0], GENERATORS.index(c[1])))
    columns = ("method", "there", "CPU", "wall", "ratio", "steps", "FO", "IFO/n", "LO", "UB", "PO")
    for size, generator in cells:
        title = (
            f"Problem (5), {size} x {size}, rank {RANKS[size]}, {generator}: until the squared mapping is <= {TARGET:g}"
        )
        last = (size, generator) == cells[-1]
        table(
            title,
            columns,
            results.lines(size, generator, contenders),
            LEGEND.format(**benchmark.patience) if last else "",
        )
    show_threads(results, cells, contenders)

    claims = [
        results.claim(size, generator, *what) for *what, first in CLAIMS for size, generator in cells if size >= first
    ]
    seeds = {c.name: [benchmark.seeds(c, size) for size in sorted({s for s, _ in cells})] for c in contenders}
    finish(
        "problem5",
        args,
        rows,
        [claim for claim in claims if claim],
        target=TARGET,
        patience=benchmark.patience,
        seeds=seeds,
        copt=getattr(copt, "__version__", None),
    )


def show_threads(results: Results, cells: list[tuple[int, str]], contenders: list[Contender]) -> None:
    """Two threads beside one, on the same seeds."""
    lines = []
    for (size, generator), c in product(cells, contenders):
        two = results.find(size, generator, c.name, threads=2)
        one = {seed: r for seed, r in results.find(size, generator, c.name).items() if seed in two}
        if two:
            times = [median(r[what] for r in by.values()) for what in ("cpu", "seconds") for by in (one, two)]
            there = f"{sum(r['reached'] for r in two.values())} of {len(two)}"
            lines.append((f"{size}", generator, c.name, there, *times))
    if lines:
        table(
            "One thread and two",
            ("size", "generator", "method", "there", "CPU, one", "CPU, two", "wall, one", "wall, two"),
            lines,
            "Seconds, medians over the same seeds. Dense runs, copt and full SVDs have none of the compiled loops.",
        )


if __name__ == "__main__":
    main()
