"""Tables 1 to 3 of the paper: measured exponents of gradient and linear oracle calls in 1/eps and n, beside the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import Any

from condgrad.paper.exponents import Estimate, Growth, estimate, growth
from condgrad.paper.pool import Outcomes
from condgrad.paper.runs import Run, failed
from condgrad.paper.sections import SectionReport
from condgrad.report import Table, Text
from condgrad.report.plain import format_value

MAPPING, GAP = "mapping", "gap"
CRITERION_NAMES = {MAPPING: "squared mapping", GAP: "gap"}
CONDG = {"inner": "condg"}


@dataclass(frozen=True)
class Entry:
    """Row of a table: a method, the criterion of its theorem, and the exponents of the bounds."""

    label: str
    method: dict[str, Any]
    steps: str
    """Key of the list of N in ``Configuration.steps``."""
    criterion: str
    gradients: str
    bound: Fraction | None
    """Exponent of 1/eps in the bound on gradients; None if no theorem bounds gradients and LO."""
    bound_lo: Fraction = Fraction(2)
    bound_n: Fraction | None = None
    note: str = ""


def sliding(label: str, name: str, steps: str, gradients: str, bound: int, **options: Any) -> Entry:
    """Row of a sliding method, which is measured by the squared gradient mapping."""
    return Entry(label, {"name": name, **CONDG}, steps, MAPPING, gradients, Fraction(bound), **options)


def by_gap(
    label: str, steps: str, gradients: str, bound: Fraction | None, method: dict[str, Any], **options: Any
) -> Entry:
    """Row of a Frank-Wolfe method, which is measured by the Frank-Wolfe gap."""
    return Entry(label, method, steps, GAP, gradients, bound, **options)


RULES = {
    "short": ("short step", Fraction(2)),
    "bounded": ("bounded step", Fraction(2)),
    "open-loop": ("2/(k+2)", None),
}
TABLE_1 = (
    sliding("NCGS I", "ncgs", "sliding", "fo", 1),
    sliding("NCGS II", "ncgs-ii", "sliding", "fo", 1),
    *(
        by_gap(f"FW, {text}", "frank-wolfe", "fo", bound, {"name": "frank-wolfe", "rule": rule})
        for rule, (text, bound) in RULES.items()
    ),
)
TABLE_2 = (
    sliding("stochastic NCGS", "stochastic-ncgs", "growing", "ifo", 2),
    by_gap("SVFW-S", "sampling", "ifo", Fraction(10, 3), {"name": "svfw-s"}),
    by_gap("SAGAFW-S", "sampling", "ifo", Fraction(8, 3), {"name": "sagafw-s"}, note="claimed"),
)
TABLE_3 = (
    sliding("NCGS I", "ncgs", "sum", "ifo", 1, bound_n=Fraction(1)),
    by_gap(
        "FW, short step",
        "sum, Frank-Wolfe",
        "ifo",
        Fraction(2),
        {"name": "frank-wolfe", "rule": "short"},
        bound_n=Fraction(1),
    ),
    sliding("NCGS-VR", "ncgs-vr", "sum", "ifo", 1, bound_n=Fraction(2, 3)),
    by_gap("SVFW", "sum, Frank-Wolfe", "ifo", Fraction(2), {"name": "svfw"}, bound_n=Fraction(2, 3)),
)
TABLES = {1: TABLE_1, 2: TABLE_2, 3: TABLE_3}
CAPTIONS = {
    1: "Table 1, full gradients: FO and LO to a criterion of eps",
    2: "Table 2, samples: SFO and LO to a criterion of eps",
    3: "Table 3, finite sums: IFO and LO to a criterion of eps, with n terms",
}


@dataclass(frozen=True)
class Tables:
    """Runs and exponents of Tables 1 to 3."""

    seeds: Sequence[int]
    steps: dict[str, tuple[int, ...]]
    """Numbers of steps N, by kind of method."""
    terms: dict[int, tuple[int, ...]] = field(default_factory=lambda: {1: (1000,), 2: (5000,), 3: (125, 1000, 8000)})
    """Numbers of terms n of the finite sums, by table."""

    def runs(self) -> list[Run]:
        return [
            self.run(entry, N, n, seed)
            for seed in self.seeds
            for number, entries in TABLES.items()
            for entry in entries
            for n in self.terms[number]
            for N in self.steps[entry.steps]
        ]

    def follow_up_runs(self, finished: Outcomes) -> list[Run]:
        return []

    def run(self, entry: Entry, N: int, n: int, seed: int) -> Run:
        schedule = {"name": "theory", "steps": N}
        return {
            "problem": {"objective": "robust-regression", "terms": n, "seed": seed},
            "set": {"name": "l1-ball", "radius": 1.5},
            "method": {**entry.method, "schedule": schedule, "seed": seed, "output": "last", "every": N},
            "stop": {"steps": N},
            "keep": {"what": "output"},
        }

    def report(self, finished: Outcomes) -> SectionReport:
        facts: dict[str, Any] = {"seeds": list(self.seeds), "steps": self.steps, "terms": self.terms, "tables": {}}
        blocks: list[Any] = []
        for number, entries in TABLES.items():
            rows = [self.row(entry, self.points(entry, self.terms[number], finished)) for entry in entries]
            blocks.append(table(number, rows, len(self.seeds)))
            facts["tables"][str(number)] = rows
        return SectionReport("tables", Text("Tables 1 to 3: orders of cost", [RECIPE, READING]), blocks, facts)

    def points(self, entry: Entry, terms: tuple[int, ...], finished: Outcomes) -> list[dict[str, Any]]:
        """Points to which the exponents are fitted; failed runs are left out."""
        design = [(seed, n, N) for seed in self.seeds for n in terms for N in self.steps[entry.steps]]
        outcomes = [(at, finished[self.run(entry, at[2], at[1], at[0])]) for at in design]
        return [
            {"seed": seed, "n": n, "N": N, "eps": outcome[entry.criterion], "counts": outcome["counts"]}
            for (seed, n, N), outcome in outcomes
            if not failed(outcome)
        ]

    def row(self, entry: Entry, points: list[dict[str, Any]]) -> dict[str, Any]:
        """Exponents of one method, fitted seed by seed, beside the bounds."""
        found: dict[str, list[Growth]] = {entry.gradients: [], "lo": []}
        for seed in self.seeds:
            here = [point for point in points if point["seed"] == seed]
            sizes = [point["n"] for point in here] if entry.bound_n else None
            for oracle, growths in found.items():
                costs = [point["counts"][oracle] for point in here]
                growths.append(growth([point["eps"] for point in here], costs, sizes))
        gradients, calls = (estimate(g.in_eps for g in found[oracle]) for oracle in (entry.gradients, "lo"))
        in_n = estimate(g.in_n for g in found[entry.gradients]) if entry.bound_n else None
        bounds = [(gradients, entry.bound), (calls, entry.bound_lo)] if entry.bound else []
        bounds += [(in_n, entry.bound_n)] if in_n and entry.bound_n else []
        eps = [point["eps"] for point in points]
        return {
            "method": entry.label,
            "criterion": CRITERION_NAMES[entry.criterion],
            "eps": [max(eps), min(eps)] if eps else None,
            "gradients": gradients._asdict(),
            "gradients bound": f"{entry.bound}{f' ({entry.note})' * bool(entry.note)}" if entry.bound else None,
            "lo": calls._asdict(),
            "lo bound": str(entry.bound_lo) if entry.bound else None,
            "n": in_n._asdict() if in_n else None,
            "n bound": str(entry.bound_n) if entry.bound_n else None,
            "reading": compare_with_bounds(
                [(measured, float(bound)) for measured, bound in bounds], (gradients, calls)
            ),
            "points": points,
        }


def compare_with_bounds(pairs: list[tuple[Estimate, float]], fitted: Sequence[Estimate] = ()) -> str:
    """Where the confidence intervals of the exponents of a row lie relative to their bounds, in words."""
    if any(measured.n == 0 for measured in [*fitted, *(measured for measured, _ in pairs)]):
        return "not fitted"
    if not pairs:
        return "no bound"
    if not all(isfinite(measured.half) for measured, _ in pairs):
        return "no interval from one seed"
    if any(measured.half > bound / 2 for measured, bound in pairs):
        return "too uncertain to say"
    if any(measured.mean - measured.half > bound for measured, bound in pairs):
        return "above one, over this range"
    if all(measured.mean + measured.half < bound for measured, bound in pairs):
        return "below: they are upper bounds"
    return "at the bounds or below"


def exponent_text(found: dict[str, Any], seeds: int) -> str:
    """Text of an exponent, with the number of seeds if some could not be fitted."""
    text = str(Estimate(**found))
    return f"{text.removesuffix(' (one seed)')} ({found['n']} of {seeds} seeds)" if 0 < found["n"] < seeds else text


def table(number: int, rows: list[dict[str, Any]], seeds: int) -> Table:
    oracle = {1: "FO", 2: "SFO", 3: "IFO"}[number]
    in_n = number == 3
    header = ["method", "criterion", "eps", f"{oracle}, in 1/eps", "bound", "LO, in 1/eps", "bound"]
    header += [f"{oracle}, in n", "bound"] if in_n else []
    lines = []
    for row in rows:
        cells = [row["method"], row["criterion"], " to ".join(map(format_value, row["eps"])) if row["eps"] else None]
        cells += [
            exponent_text(row["gradients"], seeds),
            row["gradients bound"],
            exponent_text(row["lo"], seeds),
            row["lo bound"],
        ]
        cells += [exponent_text(row["n"], seeds), row["n bound"]] if in_n else []
        lines.append([*cells, row["reading"]])
    return Table(CAPTIONS[number], [*header, "seen from the bounds"], lines, NOTES[number])


RECIPE = (
    "One family for all: robust regression, F(x) = (1/n) sum_i 1 - exp(-(a_i'x - y_i)^2) with |a_i| = 1 in 10 dimensions, a "
    "fifth of the observations off by up to 3, over the l1 ball of radius 1.5; each term has L = 2. Every method takes its "
    "theorem's parameters for N steps (sliding methods the paper's condg with accuracy 1/N), for several N, and is measured "
    "at the output for which its theorem holds: the best iterate of a deterministic method; of a stochastic one the mean "
    "over the distribution of its random output, along the run (at most 128 iterates). The measure is the theorem's: the "
    "squared gradient mapping, gamma = 1/(2L), of sliding methods, the Frank-Wolfe gap of the others. The two differ, so "
    "exponents of the two kinds are not comparable."
)
READING = (
    "Cost ~ (1/eps)^p n^q: p and q by least squares on the logarithms, seed by seed (the cost is fixed and eps is measured, so "
    "log(1/eps) is the dependent variable); shown are the mean over seeds and the half width of its 95 % confidence interval "
    "(Student's, over seeds). The paper's bounds are upper bounds for the worst function, up to constants: on a benign one "
    "the exponents are smaller, and over a range of eps that is not small enough they may be larger. "
    "The ranges of N were chosen after first runs: on one seed and with N from 8 or 16 on, NCGS, NCGS-VR, SVFW, "
    "SVFW-S and SAGAFW-S had exponents above their bounds."
)
NOTES = {
    1: "Frank-Wolfe's bound is that of the short and the bounded step; 2/(k+2) has none on non-convex functions.",
    2: (
        "The distribution is that of 5,000 terms, drawn with replacement. The paper's Table 2 has the bounds of SVFW-S and "
        "SAGAFW-S swapped against its own text; they are shown here as Reddi et al. (2016) have them."
    ),
    3: "SVFW's bound has a term n besides n^(2/3)/eps^2. Exponents in 1/eps and n are fitted together.",
}
