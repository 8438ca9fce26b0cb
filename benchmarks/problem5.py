"""CPU time until the squared gradient mapping is at most 1e-3 or 1e-8 on problem (5): NCGS against Frank-Wolfe and full SVDs.

Problem (5) is F(X) = sum of 1 - exp(-(X_ij - Y_ij)^2) over the observed tenth of a matrix, 5% of it corrupted, over the nuclear
ball. ``orthonormal``: R is the nuclear norm of Y, as in the paper; ``gaussian``: entries of size 1, R is 0.3 of it;
``gaussian, R = nuc``: R is the nuclear norm, and solutions have ten times the rank of Y.

What is measured. Seconds of CPU time, of all threads, from the start at 0 to the first iterate whose mapping with
gamma = 1/(2L) is certified to be at most the target, by one judge for all methods and while the watch stands still: see judge.py.

``ncgs, until certified`` is not ended by the judge, but by its own certificate, and what it returns is verified. Beside it is
``factored, no certificate``, what people write themselves: L-BFGS over factors from a random start. It is given the rank that
ncgs has found, which it could not know, and the judge ends it. It is the limit of what can be done, and proves nothing. Both are
also run on matrices with three times as many rows as columns, and to 1e-8; rivals are run there only to 1e-3 and where R is the
nuclear norm.

``rough frank-wolfe`` is Frank-Wolfe with the oracle of our own warm start, which is accurate to a tenth of the gap: no rule that
condgrad offers, and not part of the claims, but the strongest Frank-Wolfe known here. The accelerated gradient method stands for
that of pyproximal, which takes 1.15 times as long (see judge.py).

Runs of less than a second are made three times, and the median counts. A peer that has not reached the target after PATIENCE
times our time on the same data is ended, and its ratio is a lower bound. Where R is the nuclear norm, the limit is MARGIN times
the claimed ratio. Weaker variants and larger sizes have fewer seeds, so that all of it ends. ``--only 200,600x200`` runs these
sizes, ``--generators`` and ``--targets`` those data and targets, ``--seeds`` limits the seeds, and ``--peers`` keeps the rivals
whose names begin so. BLAS has one thread; kernels are compiled and warm before it begins.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
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
    until_certified,
    with_condgrad,
    with_copt,
    with_factors,
    with_fista,
    with_rough_oracle,
)
from condgrad.runtime.progress import duration

PATIENCE, SHORT = {"ncgs": 21, "ncgs-vr": 21}, {"ncgs": 12, "ncgs-vr": 21}
"""A peer is ended after this multiple of the CPU time of our rival, but not before LEAST seconds; SHORT with --quick."""
MARGIN = 1.05
LEAST = 1.0
OUR_LIMIT = 300.0
HIGH = 1e-8
MAX_TO_ROUGH = 2.0
"""What is claimed: the most times the time to TARGET that the time to HIGH may be."""
LARGEST_TALL = 3000
"""Most rows of a matrix with three times as many rows as columns."""
GENERATORS = ("orthonormal", "gaussian", "gaussian, R = nuc")
SMALL_RADII = GENERATORS[:2]
RANKS = {200: 5, 400: 8, 1000: 10, 2000: 10}


# ----------------------------------------------------------------------------------------------------------- measuring


class Cell(NamedTuple):
    """What one table is about. Matrices have ``size`` columns and ``tall`` times as many rows."""

    size: int
    generator: str
    tall: int = 1
    target: float = TARGET

    @property
    def first(self) -> bool:
        """Whether all methods are compared here."""
        return self.tall == 1 and self.target == TARGET

    @property
    def shape(self) -> tuple[int, int]:
        return self.tall * self.size, self.size

    def __str__(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]}, {self.generator}, to {self.target:g}"


class Case(NamedTuple):
    size: int
    generator: str
    seed: int
    tall: int = 1
    target: float = TARGET

    @property
    def cell(self) -> Cell:
        return Cell(self.size, self.generator, self.tall, self.target)


@lru_cache(maxsize=2)
def problem(case: Case) -> cg.Problem:
    (m, n), rank = case.cell.shape, RANKS.get(case.size, 3)
    data = cg.paper_data(m, n, rank, seed=case.seed, generator=case.generator.partition(",")[0])
    share = {"orthonormal": 1.0, "gaussian": 0.3}.get(case.generator, 1.0)
    R = float(rank) if case.generator == "orthonormal" else share * data.nuclear_norm
    objective = cg.Completion(data.rows, data.cols, data.values, (m, n), cg.Welsch(1.0))
    return cg.Problem(objective, cg.NuclearBall((m, n), R))


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
    """``seeds`` of them with one thread and ``two`` with two; with --quick ``quick``, with one.

    ``more`` of them on the cells where not all methods are compared.
    """

    name: str
    make: Callable[..., Run]
    """With ``target=``, if it is run to another one than TARGET."""
    seeds: Seeds
    quick: int = 0
    two: Seeds = (0, 0, 0, 0)
    rival: str | None = "ncgs"
    """Whose time its own is compared with; None for ours."""
    generators: tuple[str, ...] = GENERATORS
    more: Seeds = (0, 0, 0, 0)
    claimed: float = 10.0
    """The multiple of the rival's time that is claimed of it; where R is the nuclear norm, it is ended soon after."""

    @property
    def run(self) -> Run:
        """The run to TARGET."""
        return self.make()


MORE = (2, 2, 1, 1)


def rule(
    name: str,
    low_rank: Seeds,
    dense: Seeds,
    quick: tuple[int, int] = (0, 0),
    two: Seeds = (0, 0, 0, 0),
    more: Seeds = (0, 0, 0, 0),
) -> list[Contender]:
    """A Frank-Wolfe rule on low-rank points and on arrays: the better of the two counts."""
    return [
        Contender(
            f"frank-wolfe {name}, low-rank", partial(with_condgrad, "frank-wolfe", rule=name), low_rank, quick[0], two
        ),
        Contender(
            f"frank-wolfe {name}, dense",
            partial(with_condgrad, "frank-wolfe", True, rule=name),
            dense,
            quick[1],
            more=more,
        ),
    ]


ROUGH = "rough frank-wolfe, low-rank"
"""No rule that condgrad offers, and no claim: but fair, since our own warm start has this oracle."""
PROJECTED, FISTA = "full SVD, projected-gradient", "full SVD, accelerated (FISTA)"
FACTORED, CERTIFIED = "factored, no certificate", "ncgs, until certified"
CONTENDERS = [
    Contender("ncgs", partial(with_condgrad, "ncgs"), (5, 5, 5, 5), 2, (1, 1, 2, 2), None, more=MORE),
    Contender(CERTIFIED, until_certified, (5, 5, 2, 2), rival=None, more=MORE),
    Contender("ncgs-ii", partial(with_condgrad, "ncgs-ii"), (2, 2, 1, 1), 1, rival=None, generators=SMALL_RADII),
    Contender("ncgs-vr", partial(with_condgrad, "ncgs-vr"), (5, 3, 2, 2), 2, (1, 1, 1, 0), None, SMALL_RADII),
    *rule("open-loop", (1, 1, 2, 2), (5, 5, 1, 0), quick=(1, 2), two=(0, 0, 1, 0), more=MORE),
    *rule("line-search", (1, 0, 1, 0), (1, 1, 0, 0)),
    *rule("adaptive", (1, 0, 0, 0), (1, 1, 0, 0)),
    *rule("short", (1, 0, 0, 0), (1, 1, 0, 0)),
    *rule("bounded", (1, 0, 0, 0), (1, 1, 0, 0)),
    Contender(ROUGH, with_rough_oracle, (3, 3, 2, 1), 1),
    Contender("copt sublinear", partial(with_copt, "sublinear"), (5, 5, 2, 1), 2, more=MORE),
    Contender("copt backtracking", partial(with_copt, "backtracking"), (1, 1, 0, 0)),
    Contender("copt DR", partial(with_copt, "DR"), (1, 1, 0, 0)),
    Contender(PROJECTED, partial(with_condgrad, "projected-gradient", True), (3, 3, 1, 1), 1, more=MORE, claimed=5.0),
    Contender(FISTA, with_fista, (3, 3, 1, 1), 1, more=MORE, claimed=5.0),
    Contender(FACTORED, with_factors, (5, 5, 2, 2), rival=CERTIFIED, more=MORE, claimed=4.0),
    Contender("svfw, low-rank", partial(with_condgrad, "svfw"), (1, 1, 1, 1), rival="ncgs-vr", generators=SMALL_RADII),
    Contender(
        "svfw, dense", partial(with_condgrad, "svfw", True), (2, 1, 0, 0), 1, rival="ncgs-vr", generators=SMALL_RADII
    ),
    Contender(
        "sagafw, dense", partial(with_condgrad, "sagafw", True), (1, 0, 0, 0), rival="ncgs-vr", generators=SMALL_RADII
    ),
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


def guess(contender: Contender, case: Case, allowed: float) -> float:
    """Seconds that the contender takes on one seed, looks of the judge and all."""
    ncgs, vr = (case.tall**1.5 * seconds for seconds in GUESSES[case.size, case.generator])
    looks = 1.0 + (case.size / 500) ** 2
    if contender.rival is None:
        return {"ncgs": ncgs, CERTIFIED: ncgs, "ncgs-ii": 6 * ncgs, "ncgs-vr": vr}[contender.name] + looks / 2
    return max(LEAST, allowed * (vr if contender.rival == "ncgs-vr" else ncgs)) + looks


class Benchmark:
    """The jobs, in an order that has each case's own methods before its peers: their time is what a peer is given."""

    def __init__(self, contenders: list[Contender], asked: argparse.Namespace):
        self.contenders, self.quick, self.asked = contenders, asked.quick, asked
        self.patience = SHORT if asked.quick else PATIENCE
        self.ours: dict[tuple[Case, str], float] = {}

    def seeds(self, contender: Contender, cell: Cell, threads: int = 1) -> int:
        if self.quick:
            return contender.quick if threads == 1 and cell.first else 0
        if cell.first:
            found = (contender.seeds if threads == 1 else contender.two)[list(RANKS).index(cell.size)]
        else:
            rivals = cell.target == TARGET and cell.generator not in SMALL_RADII
            certified = contender.name in (CERTIFIED, FACTORED)
            asked = (certified or rivals) and threads == 1 and cell.size * cell.tall <= LARGEST_TALL
            found = contender.more[list(RANKS).index(cell.size)] if asked else 0
        return min(found, self.asked.seeds)

    def cells(self) -> list[Cell]:
        sizes = [size for size in RANKS if size <= 400 or not self.quick]
        cells = [Cell(*known) for known in product(sizes, self.asked.generators, (1, 3), self.asked.targets)]
        cells = [cell for cell in cells if cell.first or cell.generator != "orthonormal"]
        return [cell for cell in cells if self.asked.only is None or cell.shape in self.asked.only]

    def jobs(self) -> list[Job]:
        jobs = []
        for cell, seed in product(self.cells(), range(5)):
            case = Case(cell.size, cell.generator, seed, cell.tall, cell.target)
            for threads, contender in product((1, 2)[: numba.config.NUMBA_NUM_THREADS], self.contenders):
                large = cell.generator not in SMALL_RADII and cell.size > 200 and self.quick
                if seed < self.seeds(contender, cell, threads) and cell.generator in contender.generators and not large:
                    jobs.append(self.job(case, contender, threads))
        return jobs

    def allowed(self, contender: Contender, case: Case) -> float:
        """After how many times the time of its rival a peer is ended."""
        if case.generator in SMALL_RADII:
            return self.patience["ncgs-vr" if contender.rival == "ncgs-vr" else "ncgs"]
        return MARGIN * contender.claimed

    def job(self, case: Case, contender: Contender, threads: int) -> Job:
        return Job(guess(contender, case, self.allowed(contender, case)), lambda: [self.row(case, contender, threads)])

    def row(self, case: Case, contender: Contender, threads: int) -> Row:
        limit = OUR_LIMIT
        if contender.rival:
            limit = max(LEAST, self.allowed(contender, case) * self.ours[case, contender.rival])
        numba.set_num_threads(threads)
        try:
            run = contender.run if case.target == TARGET else contender.make(target=case.target)
            row = timed(run, problem(case), limit)
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

    def find(self, cell: Cell, method: str, threads: int = 1) -> dict[int, Row]:
        """By seed."""
        wanted = (*cell, method, threads)
        found = (r for r in self.rows if (*(r[name] for name in Cell._fields), r["method"], r["threads"]) == wanted)
        return {r["seed"]: r for r in found}

    def ratios(self, cell: Cell, ours: str, family: str) -> list[Ratio]:
        """On each seed: the best of all methods whose name begins so, over ours; 0 where ours did not get there."""
        known, found = self.find(cell, ours), []
        names = {r["method"] for r in self.rows if r["method"].startswith(family)}
        peers = [self.find(cell, name) for name in names]
        for seed, own in known.items():
            here = [peer[seed] for peer in peers if seed in peer]
            if here:
                best = min(here, key=lambda r: r["cpu"] if r["reached"] else math.inf)
                found.append(Ratio(best["cpu"] / own["cpu"] if own["reached"] else 0.0, not best["reached"]))
        return found

    def lines(self, cell: Cell, contenders: list[Contender]) -> list[tuple[Any, ...]]:
        lines = []
        for c in contenders:
            runs = list(self.find(cell, c.name).values())
            if not runs:
                continue
            reached = sum(r["reached"] for r in runs)
            ratios = self.ratios(cell, c.rival or ("ncgs" if self.find(cell, "ncgs") else CERTIFIED), c.name)
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

    def claim(self, cell: Cell, ours: str, family: str, said: str, required: float) -> Claim | None:
        ratios = self.ratios(cell, ours, family)
        if not ratios:
            return None
        ended = sum(r.ended for r in ratios)
        middle, worst = median(r.value for r in ratios), min(ratios)
        measured = (
            f"{'> ' if 2 * ended >= len(ratios) else ''}{middle:.3g}, worst seed {'> ' * worst.ended}{worst.value:.3g}"
        )
        measured += f" ({len(ratios)} seed{'s' * (len(ratios) > 1)}, not there in {ended})"
        claim = f"{cell}: CPU time of {said} / of {ours}"
        return Claim(claim, f">= {required:g} (median)", measured, middle >= required)

    def to_rough(self, cell: Cell) -> Claim | None:
        """The claim about the time to HIGH over that to TARGET, seed by seed."""
        here, rough = self.find(cell, CERTIFIED), self.find(cell._replace(target=TARGET), CERTIFIED)
        ratios = [
            here[seed]["cpu"] / rough[seed]["cpu"] if here[seed]["reached"] else math.inf
            for seed in here
            if seed in rough
        ]
        if cell.target == TARGET or not ratios:
            return None
        measured = f"{median(ratios):.3g}, worst seed {max(ratios):.3g}"
        claim = f"{cell}: CPU time of {CERTIFIED} / to {TARGET:g}"
        return Claim(claim, f"<= {MAX_TO_ROUGH:g} (median)", measured, median(ratios) <= MAX_TO_ROUGH)


CLAIMS = (
    ("ncgs", "frank-wolfe", "the best Frank-Wolfe rule here", 10.0, 200),
    ("ncgs", "copt", "the best of copt's Frank-Wolfe", 10.0, 200),
    ("ncgs", "full SVD", "the best gradient method with full SVDs", 5.0, 400),
    (CERTIFIED, FACTORED, "L-BFGS over factors, without a certificate,", 0.5, 200),
    ("ncgs-vr", "svfw", "SVFW", 20.0, 200),
)
"""Ours, the peers' names begin with, said, the ratio that is required, from this size on."""

LEGEND = """
Medians over seeds (fewer for weaker variants), one thread. CPU and wall: seconds; ratio: CPU time over that of ncgs, seed by seed
(of svfw and sagafw: over that of ncgs-vr; of the factored method: over that of ncgs until certified).
there: runs that reached the target; others were ended when they had had {ncgs} times our time (svfw, sagafw: {ncgs-vr} times);
where R is the nuclear norm, a twentieth more than what is claimed.
'>': in half of the runs or more, so this is a lower bound.
FO: full gradients; IFO/n: term gradients by the number of terms, full gradients included;
LO: linear minimisations; UB: upper bounds; PO: projections.
"""


def main() -> None:
    args = arguments(__doc__, options)
    named = [c for c in CONTENDERS if c.rival is None or c.name.startswith(tuple(args.peers))]
    contenders = [c for c in named if copt is not None or not c.name.startswith("copt")]
    if copt is None:
        print("copt is not installed (pip install 'condgrad[peers]'): its rows and claims are left out.")
    benchmark = Benchmark(contenders, args)
    jobs = benchmark.jobs()
    print(f"This takes about {duration(sum(job.weight for job in jobs))} on an otherwise idle machine.", flush=True)
    warm_up(contenders)
    rows = work_off("problem5", jobs)

    results = Results(rows)
    cells = [cell for cell in benchmark.cells() if any(results.find(cell, c.name) for c in contenders)]
    columns = ("method", "there", "CPU", "wall", "ratio", "steps", "FO", "IFO/n", "LO", "UB", "PO")
    for cell in cells:
        legend = LEGEND.format(**benchmark.patience) if cell == cells[-1] else ""
        table(f"Problem (5), {cell}, rank {RANKS[cell.size]}", columns, results.lines(cell, contenders), legend)
    show_threads(results, cells, contenders)

    claims = [results.claim(cell, *what) for *what, first in CLAIMS for cell in cells if cell.size >= first]
    claims += [results.to_rough(cell) for cell in cells]
    finish(
        "problem5",
        args,
        rows,
        [claim for claim in claims if claim],
        patience=benchmark.patience,
        copt=getattr(copt, "__version__", None),
    )


def options(parser: argparse.ArgumentParser) -> None:
    """The arguments of this benchmark alone."""

    def shapes(text: str) -> list[tuple[int, int]]:
        sizes = [part.split("x") for part in text.split(",")]
        return [(int(size[0]), int(size[-1])) for size in sizes]

    parser.add_argument("--only", type=shapes, metavar="200,600x200", help="sizes; one number is a square matrix")
    parser.add_argument(
        "--generators", nargs="*", choices=GENERATORS, default=GENERATORS, help="generators with a radius"
    )
    parser.add_argument("--targets", type=float, nargs="*", default=[TARGET, HIGH], help="squared mappings")
    parser.add_argument("--seeds", type=int, default=5, help="most seeds")
    parser.add_argument("--peers", nargs="*", default=[""], help="only rivals whose names begin so")


def show_threads(results: Results, cells: list[Cell], contenders: list[Contender]) -> None:
    """Two threads beside one, on the same seeds."""
    lines = []
    for cell, c in product(cells, contenders):
        two = results.find(cell, c.name, threads=2)
        one = {seed: r for seed, r in results.find(cell, c.name).items() if seed in two}
        if two:
            times = [median(r[what] for r in by.values()) for what in ("cpu", "seconds") for by in (one, two)]
            there = f"{sum(r['reached'] for r in two.values())} of {len(two)}"
            lines.append((f"{cell.size}", cell.generator, c.name, there, *times))
    if lines:
        table(
            "One thread and two",
            ("size", "generator", "method", "there", "CPU, one", "CPU, two", "wall, one", "wall, two"),
            lines,
            "Seconds, medians over the same seeds. Dense runs, copt and full SVDs have none of the compiled loops.",
        )


if __name__ == "__main__":
    main()
