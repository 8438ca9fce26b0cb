"""How the cost grows: gradients of NCGS and Frank-Wolfe as eps shrinks, term gradients of NCGS-VR as n grows.

spread  F(x) = sum_i w_i r_i^2 / (2 (1 + r_i^2/s^2)), r = x - c, over the simplex: a robust, non-convex loss with curvatures w
        over four decades; its solutions lie inside faces, where Frank-Wolfe zigzags.
pole    F(x) = -log(1 + |x - c|^2/delta^2)/2 over the simplex, from near c: rolling off a softened pole. Made to be slow: over
        the range of eps that is used here the bounds of option I and of Frank-Wolfe are nearly attained.
sum     F(x) = (1/n) sum_i 1 - exp(-(a_i'x - y_i)^2), |a_i| = 1, over the l1 ball: each term has L = 2, whatever n is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

import condgrad as cg
from benchmarks.harness import Job, Row, arguments, at_most, below, finish, table, work_off
from condgrad.driver.metrics import mapping
from condgrad.paper.exponents import Estimate, estimate, slope
from condgrad.spec import robust_regression

CERTIFIED, GAP, MEASURED = "certified mapping^2", "gap", "measured mapping^2"
SLIDING = {"NCGS I": ("ncgs", {"adaptive": False}), "NCGS II": ("ncgs-ii", {})}
"""The paper's steps: with one that adapts, the exponents would not be those of its bounds."""
INNERS = {"corrective": cg.Corrective(), "condg": cg.CondG()}
RULES = ("short", "bounded", "adaptive", "open-loop", "line-search")


# ----------------------------------------------------------------------------------------------------------- families


def spread(seed: int) -> tuple[cg.Problem, np.ndarray]:
    d, s, rng = 50, 0.3, np.random.default_rng(seed)
    w = 10.0 ** -rng.permutation(np.linspace(0, 4, d))
    c = rng.standard_normal(d)
    c *= 4 / np.abs(c).sum()

    def value(x: np.ndarray) -> float:
        r2 = (x - c) ** 2
        return float(np.sum(w * r2 / (1 + r2 / s**2)) / 2)

    def grad(x: np.ndarray) -> np.ndarray:
        r = x - c
        return w * r / (1 + r * r / s**2) ** 2

    domain = cg.Simplex(d)
    return cg.Problem(cg.Function(value, grad, d, smoothness=1.0), domain), domain.start()


def pole(seed: int) -> tuple[cg.Problem, np.ndarray]:
    d, delta, rng = 10, 0.003, np.random.default_rng(seed)
    c, towards = rng.dirichlet(np.ones(d)), rng.dirichlet(np.ones(d))
    x0 = c + delta * (towards - c)

    def value(x: np.ndarray) -> float:
        return float(-np.log1p(np.sum((x - c) ** 2) / delta**2) / 2)

    def grad(x: np.ndarray) -> np.ndarray:
        r = x - c
        return -r / (delta**2 + r @ r)

    return cg.Problem(cg.Function(value, grad, d, smoothness=delta**-2), cg.Simplex(d)), x0


def robust_sum(n: int, seed: int) -> cg.Problem:
    return cg.Problem(robust_regression(Path(), n, seed=seed), cg.L1Ball(10, 1.5))


@dataclass(frozen=True)
class Family:
    make: Callable[[int], tuple[cg.Problem, np.ndarray]]
    grids: dict[str, np.ndarray]
    """The values of eps for each criterion, falling."""
    steps: int
    """Of Frank-Wolfe."""
    inners: tuple[str, ...]


def decades(first: float, last: float) -> np.ndarray:
    """From 10^first down to 10^last, four to a decade."""
    return 10.0 ** np.arange(first, last - 0.01, -0.25)


# ----------------------------------------------------------------------------------------------------------- measuring


def sliding(name: str, family: Family, seed: int, method: str, inner: str, calls: int) -> Iterator[Row]:
    """One run for each eps, with the schedule for that eps, up to the first that takes more than the allowed LO calls."""
    problem, x0 = family.make(seed)
    name_of, options = SLIDING[method]
    for eps in family.grids[CERTIFIED]:
        r = cg.minimize(
            problem.objective,
            problem.domain,
            x0,
            method=name_of,
            schedule=cg.practical(eps),
            inner=INNERS[inner],
            stop=cg.Mapping(eps) | cg.Calls(calls, "lo"),
            every=10**9,
            progress=False,
            **options,
        )
        if r.certificate is None or r.certificate.upper > 1.001 * eps:
            return
        cost = {"eps": eps, "fo": r.counts["fo"], "lo": r.counts["lo"]}
        yield {"family": name, "method": f"{method}, {inner}", "criterion": CERTIFIED, "seed": seed, **cost}


def frank_wolfe(name: str, family: Family, seed: int, rule: str) -> Iterator[Row]:
    """One run; for each criterion and eps, what had been spent when it was first met.

    The third criterion is generous: at steps 3% apart, the exact mapping is taken by a projection that is not counted.
    """
    problem, x0 = family.make(seed)
    gamma = 1 / (2 * problem.objective.smoothness)
    seen: dict[str, list[tuple[float, int, int]]] = {criterion: [] for criterion in family.grids}
    least = dict.fromkeys(seen, np.inf)
    next_measure = 1

    def note(criterion: str, found: float, record: Any) -> None:
        if found < least[criterion]:
            least[criterion] = found
            seen[criterion].append((found, record.fo, record.lo))

    def watch(record: Any, x: np.ndarray) -> None:
        nonlocal next_measure
        note(CERTIFIED, record.mapping, record)
        note(GAP, record.gap, record)
        if record.k >= next_measure:
            note(MEASURED, mapping(problem, x, gamma).upper, record)
            next_measure = int(1.03 * record.k) + 1

    steps = family.steps // 10 if rule == "line-search" else family.steps
    cg.minimize(
        problem.objective,
        problem.domain,
        x0,
        method="frank-wolfe",
        rule=rule,
        stop=cg.Steps(steps),
        callback=watch,
        every=10**9,
        progress=False,
    )
    for criterion, grid in family.grids.items():
        for eps in grid:
            fo, lo = next(((fo, lo) for found, fo, lo in seen[criterion] if found <= eps), (0, 0))
            if fo:
                cost = {"eps": eps, "fo": fo, "lo": lo}
                yield {"family": name, "method": f"Frank-Wolfe, {rule}", "criterion": criterion, "seed": seed, **cost}


def finite_sum(n: int, seed: int, eps: float = 1e-6, steps: int = 5000) -> Iterator[Row]:
    """Until the squared mapping is at most eps: NCGS-VR with the theorem's batch, epoch and step, and full gradients."""
    problem = robust_sum(n, seed)
    for method in ("ncgs-vr", "ncgs"):
        r = cg.minimize(
            problem.objective,
            problem.domain,
            method=method,
            schedule=cg.theory(steps),
            stop=cg.Mapping(eps) | cg.Steps(steps),
            output="best",
            every=10**9,
            seed=seed,
            progress=False,
        )
        if r.success:
            cost = {"n": n, "steps": r.steps, "ifo": r.counts["ifo"]}
            yield {"family": "sum", "method": method, "seed": seed, "eps": eps, **cost}


# ----------------------------------------------------------------------------------------------------------- reporting


class Curves:
    """The rows by method: slopes, and differences of slopes, seed by seed."""

    def __init__(self, rows: list[Row], seeds: range):
        self.rows, self.seeds = rows, seeds

    def points(
        self, family: str, method: str, criterion: str | None, seed: int, cost: str, over: str
    ) -> dict[float, int]:
        wanted = (family, method, criterion, seed)
        found = (r for r in self.rows if (r["family"], r["method"], r.get("criterion"), r["seed"]) == wanted)
        return {r[over]: r[cost] for r in found}

    def exponents(self, family: str, method: str, criterion: str | None, cost: str, over: str = "eps") -> list[float]:
        """For each seed the p of cost ~ (1/eps)^p, or of cost ~ n^p."""
        sign = -1 if over == "eps" else 1
        curves = (self.points(family, method, criterion, seed, cost, over) for seed in self.seeds)
        return [sign * slope(list(curve), list(curve.values())) for curve in curves]

    def lead(self, one: str, others: list[str], theirs: str) -> tuple[str, Estimate]:
        """The FO slope of ``one`` less that of the closest of the others, on the eps that both reached.

        ``one`` goes by its certificate, the others by the criterion ``theirs``; the family is spread.
        """
        found = {}
        for other in others:
            differences = []
            for seed in self.seeds:
                a = self.points("spread", one, CERTIFIED, seed, "fo", "eps")
                b = self.points("spread", other, theirs, seed, "fo", "eps")
                shared = sorted(a.keys() & b.keys())
                differences.append(slope(shared, [b[e] for e in shared]) - slope(shared, [a[e] for e in shared]))
            found[other] = estimate(differences)
        return max(found.items(), key=lambda item: nan_last(item[1].mean + item[1].half))

    def largest(self, family: str, methods: list[str], criterion: str, cost: str) -> tuple[str, Estimate]:
        found = {m: estimate(self.exponents(family, m, criterion, cost)) for m in methods}
        return max(found.items(), key=lambda item: nan_last(item[1].mean))

    def line(self, family: str, method: str, criterion: str) -> tuple[Any, ...]:
        curves = [self.points(family, method, criterion, seed, "fo", "eps") for seed in self.seeds]
        reached = [eps for curve in curves for eps in curve]
        span = f"{max(reached):.0e} .. {min(reached):.0e}" if reached else "-"
        most = max((fo for curve in curves for fo in curve.values()), default=nan)
        bound = "-" if criterion == MEASURED else "1" if method.startswith("NCGS") else "2"
        fo, lo = (estimate(self.exponents(family, method, criterion, cost)) for cost in ("fo", "lo"))
        return family, method, criterion, span, most, str(fo), bound, str(lo), "-" if criterion == MEASURED else "2"


def nan_last(value: float) -> float:
    """For a maximum that must not overlook what could not be measured."""
    return inf if isnan(value) else value


LEGEND = """
Cost ~ (1/eps)^slope: a fit for each seed, then mean ± half width of the 95% interval over seeds; 'bound' is the paper's.
Bounds are upper bounds for the worst function: measured slopes may be smaller, and are where F is benign near the solution.
certified mapping^2  what the method itself proves; Frank-Wolfe proves |g|^2 <= 2 L gap
gap                  Frank-Wolfe's own criterion, that of its 1/eps^2
measured mapping^2   generous to Frank-Wolfe: its exact mapping, by projections that are not counted; the paper has no bound
The range of eps ends where a method's budget did, or with the grid.
spread: a robust loss whose curvatures span four decades.
pole: made so that the bounds of option I and of the rules short and bounded are nearly attained. There both methods roll down the
same flank: 1 and 2 are the exponents of two different criteria, and by the measured mapping Frank-Wolfe has the 1 too. The rules
that are not tied to L leave the flank in a few long steps.
"""


def main() -> None:
    args = arguments(__doc__)
    quick = args.quick
    seeds = range(3 if quick else 5)
    steps = 5_000 if quick else 20_000
    fine, flank = decades(-2, -6.5), decades(4, 1.75)
    families = {
        "spread": Family(spread, {CERTIFIED: fine, GAP: fine, MEASURED: fine}, steps, ("corrective", "condg")),
        "pole": Family(pole, {CERTIFIED: flank, GAP: decades(1.5, 0.5), MEASURED: flank}, steps // 3, ("corrective",)),
    }
    calls = {"corrective": 10**6, "condg": 10_000 if quick else 40_000}
    sizes = [k**3 for k in ((5, 10, 20) if quick else (5, 7, 10, 14, 20, 28, 40))]
    weights = {"spread": 1.0, "pole": 0.4}

    jobs = [Job(0.05, lambda n=n, seed=seed: finite_sum(n, seed)) for n in sizes for seed in seeds]
    for seed in seeds:
        for name, family in families.items():
            for rule in RULES:
                jobs.append(Job(weights[name], lambda a=(name, family, seed, rule): frank_wolfe(*a)))
            for method in SLIDING:
                for inner in family.inners:
                    work = (name, family, seed, method, inner, calls[inner])
                    jobs.append(Job(weights[name], lambda a=work: sliding(*a)))
    rows = work_off("order_of_cost", jobs)
    curves = Curves(rows, seeds)

    fw = [f"Frank-Wolfe, {rule}" for rule in RULES]
    ncgs = {f: [f"{m}, {inner}" for m in SLIDING for inner in family.inners] for f, family in families.items()}
    lines = []
    for f in families:
        shown = (CERTIFIED, GAP, MEASURED) if f == "spread" else (GAP, MEASURED)
        lines += [curves.line(f, m, CERTIFIED) for m in ncgs[f]]
        lines += [curves.line(f, m, criterion) for m in fw for criterion in shown]
    columns = ("family", "method", "criterion", "eps", "most FO", "FO slope", "bound", "LO slope", "bound")
    table("Growth of FO and LO as eps shrinks", columns, lines, LEGEND)

    def per_n(n: int, method: str, what: str) -> Any:
        found = [r[what] for r in rows if (r["family"], r["method"], r.get("n")) == ("sum", method, n)]
        return int(np.median(found)) if found else nan

    both = ("ncgs-vr", "ncgs")
    reached = sum(r["family"] == "sum" for r in rows)
    vr, full = (curves.exponents("sum", method, None, "ifo", "n") for method in both)
    table(
        "IFO until the squared mapping is <= 1e-6, as n grows (medians over seeds)",
        ("n", "NCGS-VR steps", "NCGS-VR IFO", "NCGS steps", "NCGS IFO"),
        [(n, *(per_n(n, m, what) for m in both for what in ("steps", "ifo"))) for n in sizes],
        f"""
IFO ~ n^slope: NCGS-VR {estimate(vr)} (bound 2/3), NCGS with full gradients {estimate(full)} (bound 1).
NCGS-VR takes the theorem's step 1/(3 L) with the terms' L = 2, NCGS takes 1/(2 L) with F's own, smaller L: hence its fewer steps.
{reached} of {len(both) * len(sizes) * len(seeds)} runs got there.
""",
    )

    claims = []
    for f in families:
        for m in ncgs[f]:
            claims.append(at_most(f"{f}: FO slope of {m}", 1, estimate(curves.exponents(f, m, CERTIFIED, "fo"))))
        m, most = curves.largest(f, fw, GAP, "fo")
        claims.append(at_most(f"{f}: FO slope in the gap of {m}, the largest of the rules", 2, most))
        m, most = curves.largest(f, ncgs[f], CERTIFIED, "lo")
        claims.append(at_most(f"{f}: LO slope of {m}, the largest", 2, most))
    for m in (f"{method}, corrective" for method in SLIDING):
        for criterion in (CERTIFIED, MEASURED):
            closest, lead = curves.lead(m, fw, criterion)
            claim = f"spread: FO slope of {m}, minus every Frank-Wolfe rule's by {criterion}"
            claims.append(below(f"{claim} (closest: {closest.split(', ')[1]})", lead))
    claims.append(at_most("sum: IFO slope of NCGS-VR in n", 2 / 3, estimate(vr)))
    claims.append(
        below("sum: IFO slope of NCGS-VR minus that of NCGS", estimate(a - b for a, b in zip(vr, full, strict=True)))
    )
    finish("order_of_cost", args, rows, claims, seeds=list(seeds))


if __name__ == "__main__":
    main()
