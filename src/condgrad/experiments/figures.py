"""Figure 1 of the paper: NCGS against Frank-Wolfe (1a), NCGS-VR against SVFW and SAGAFW (1b), on problem (5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isfinite, nan
from typing import Any

from condgrad.experiments.pool import Outcomes
from condgrad.experiments.runs import Outcome, Run, failed
from condgrad.experiments.sections import Told
from condgrad.experiments.spec import paper_matrix, to_twelve
from condgrad.experiments.verdicts import OURS, PAPER, RIVAL, TUNED, Claim, Row, note, verdict
from condgrad.report import Curve, Plot, Table, Text, quartiles

TARGET = 1e-3
UNITS = ("cpu", "fo", "ifo", "lo")
GENERATORS = ("orthonormal", "gaussian")
FRACTION = 0.3
"""Of the gaussian matrix's nuclear norm: its R."""

GROUPS = {OURS: OURS, PAPER: "the paper's own procedure", TUNED: "the paper's own procedure", RIVAL: RIVAL}
"""How the curves stand together in the figure's legend."""
HEADLINES = ("NCGS I", "NCGS II", "NCGS-VR")
"""Curves whose colours no other has."""


@dataclass(frozen=True)
class Line:
    """A curve of the figure. Of several settings the one that does best on the first seed is shown, and all are named."""

    label: str
    whose: str
    settings: tuple[dict[str, Any], ...]
    said: tuple[str, ...] = ()
    """What each of several settings is called."""


def line(label: str, whose: str, **setting: Any) -> Line:
    return Line(label, whose, (setting,))


def tuned(label: str, whose: str, common: dict[str, Any], tried: dict[str, dict[str, Any]]) -> Line:
    return Line(label, whose, tuple({**common, **setting} for setting in tried.values()), tuple(tried))


def condg(calls: int, c: float) -> dict[str, Any]:
    schedule = {"name": "practical", "eps": TARGET, "c": c}
    return {"inner": {"name": "condg", "max_calls": calls}, "schedule": schedule, "warm_start": 0}


CONDG = {
    "3 calls a prox": condg(3, 0.5),
    "10 calls a prox": condg(10, 0.5),
    "30 calls a prox": condg(30, 0.5),
    "gap at most 10 |step|^2/gamma": condg(1000, 10.0),
    "gap at most 50 |step|^2/gamma": condg(1000, 50.0),
}
"""The paper's 1/N can't be what its authors ran. A budget of calls, or an accuracy in proportion to the step, might be."""
TO_THE_LETTER = {"schedule": {"name": "theory", "steps": 1000}, "output": "best"}
STEPS = {f"t = {scale:g}/sqrt(k)": {"scale": scale, "output": "best"} for scale in (0.1, 1.0, 0.3, 0.03, 0.01)}
"""Of SVFW and SAGAFW in step k. Their theorem's is sqrt(h0/(T L D^2)), with h0 >= F(x0) - F*."""

FIGURE_1A = (
    line("NCGS I", OURS, name="ncgs"),
    line("NCGS II", OURS, name="ncgs-ii"),
    line("NCGS I, fixed step", OURS, name="ncgs", adaptive=False),
    line("NCGS I, theory", PAPER, name="ncgs", inner="condg", schedule={"name": "theory", "steps": 100}),
    tuned("NCGS I, condg tuned", TUNED, {"name": "ncgs", "adaptive": False}, CONDG),
    *(
        line(f"FW, {said}", RIVAL, name="frank-wolfe", rule=rule)
        for rule, said in {
            "open-loop": "2/(k+2)",
            "line-search": "line search",
            "short": "short step",
            "bounded": "bounded step",
            "adaptive": "adaptive",
        }.items()
    ),
)
FIGURE_1B = (
    line("NCGS-VR", OURS, name="ncgs-vr"),
    line("NCGS-VR, theory", PAPER, name="ncgs-vr", inner="condg", **TO_THE_LETTER),
    tuned("NCGS-VR, condg tuned", TUNED, {"name": "ncgs-vr"}, {k: v for k, v in CONDG.items() if "call" in k}),
    line("SVFW", RIVAL, name="svfw", **TO_THE_LETTER),
    tuned("SVFW, tuned", RIVAL, {"name": "svfw"}, STEPS),
    line("SAGAFW", RIVAL, name="sagafw", **TO_THE_LETTER),
    tuned("SAGAFW, tuned", RIVAL, {"name": "sagafw"}, STEPS),
)


@dataclass(frozen=True)
class Figure:
    """One panel of Figure 1, for both generators: ``stop`` is the budget of a curve, ``seeds`` those of its data."""

    name: str
    size: int
    rank: int
    lines: tuple[Line, ...]
    claim: Claim
    stop: dict[str, Any]
    seeds: Sequence[int]
    settings: int
    """At most so many are tried of each line that is tuned."""
    gradients: str
    """Those that are counted: fo or ifo."""

    def runs(self) -> list[Run]:
        """All but those that wait for a choice of settings: every setting on the first seed, then the others' seeds."""
        first = [
            self.run(g, self.seeds[0], setting)
            for g in GENERATORS
            for line in self.lines
            for setting in line.settings[: self.settings]
        ]
        fixed = [line.settings[0] for line in self.lines if len(line.settings) == 1]
        return first + [self.run(g, seed, s) for seed in self.seeds[1:] for g in GENERATORS for s in fixed]

    def more(self, made: Outcomes) -> list[Run]:
        several = [line for line in self.lines if len(line.settings) > 1]
        chosen = [(g, line.settings[self.choose(g, line, made)]) for g in GENERATORS for line in several]
        return [self.run(g, seed, setting) for seed in self.seeds[1:] for g, setting in chosen]

    def run(self, generator: str, seed: int, setting: dict[str, Any]) -> Run:
        recipe: dict[str, Any] = {
            "shape": [self.size, self.size],
            "rank": self.rank,
            "generator": generator,
            "seed": seed,
        }
        R = radius(self.size, self.rank, generator, seed)
        method = {**setting, "seed": seed, "measure": True}
        if "scale" in method:  # the h0 for which sqrt(h0/(L D^2)) is this, with L = 2 and D = 2 R
            method["initial_gap"] = 8 * (R * method.pop("scale")) ** 2
        return {
            "problem": {"objective": "paper", "sigma": 1.0, **recipe},
            "set": {"name": "nuclear-ball", "radius": R},
            "method": method,
            "stop": {"mapping": TARGET / 10, **self.stop},
            "keep": {"what": "trace"},
        }

    def choose(self, generator: str, line: Line, made: Outcomes) -> int:
        """The setting that is first at the target on the first seed; where none gets there, the one that comes nearest."""

        def merit(i: int) -> tuple[float, bool, float]:
            outcome = made[self.run(generator, self.seeds[0], line.settings[i])]
            return reached(outcome)["cpu"], failed(outcome), best(outcome)

        return min(range(len(line.settings[: self.settings])), key=merit)

    # ------------------------------------------------------------------------------------------------------- reporting

    def tell(self, made: Outcomes) -> Told:
        blocks: list[Any] = [Text(self.title, [self.claim.said])]
        facts: dict[str, Any] = {"size": self.size, "rank": self.rank, "target": TARGET, "seeds": list(self.seeds)}
        for generator in GENERATORS:
            chosen = {line.label: self.choose(generator, line, made) for line in self.lines}
            outcomes = {
                line.label: [made[self.run(generator, seed, line.settings[chosen[line.label]])] for seed in self.seeds]
                for line in self.lines
            }
            rows = [self.row(line, chosen[line.label], outcomes[line.label]) for line in self.lines]
            said = verdict(rows, self.claim, TARGET)
            blocks += [
                Text(f"Figure {self.name[3:]}, {generator}: what is seen", said),
                self.plot(generator, rows, outcomes),
                self.table(generator, rows),
            ]
            curves = {label: [curve_of(outcome) for outcome in found] for label, found in outcomes.items()}
            radii = [radius(self.size, self.rank, generator, seed) for seed in self.seeds]
            facts[generator] = {"R": radii, "rows": rows, "verdict": said, "curves": curves}
        return Told(self.name, blocks, facts)

    @property
    def title(self) -> str:
        return f"Figure {self.name[3:]}: {self.size} x {self.size}, rank {self.rank}"

    def row(self, line: Line, chosen: int, outcomes: list[Outcome]) -> Row:
        there = [at for outcome in outcomes if isfinite((at := reached(outcome))["cpu"]) or not failed(outcome)]
        there = there or [dict.fromkeys(UNITS, inf)]  # who failed is not said to take longer
        tried = ", ".join(line.said[: self.settings])
        low, middle, high = known(quartiles([at["cpu"] for at in there]))
        failures = [outcome["message"] for outcome in outcomes if failed(outcome)]
        return {
            "method": line.label,
            "whose": line.whose,
            "reached": sum(isfinite(at["cpu"]) for at in there),
            "runs": len(outcomes),
            "cpu": middle,
            "cpu quartiles": [low, high],
            **{oracle: counted([at[oracle] for at in there]) for oracle in (self.gradients, "lo")},
            "mapping at the end": float(quartiles([best(outcome) for outcome in outcomes])[1]),
            "cpu spent": float(quartiles([outcome["cpu"] for outcome in outcomes])[1]),
            "steps": int(quartiles([outcome["steps"] for outcome in outcomes])[1]),
            "failed": len(failures),
            "why": failures[0] if failures else "",
            "setting": f"{line.said[chosen]} (tried: {tried})" if line.said else "",
        }

    def table(self, generator: str, rows: list[Row]) -> Table:
        header = [
            "method",
            "which",
            "reached",
            "CPU s",
            "quartiles",
            self.gradients.upper(),
            "LO",
            "ended at",
            "CPU s in all",
        ]
        lines = [
            [
                row["method"],
                row["whose"],
                f"{row['reached']} of {row['runs']}" + (f", {row['failed']} failed" if row["failed"] else ""),
                row["cpu"],
                span(row["cpu quartiles"]) if row["runs"] > 1 else None,
                row[self.gradients],
                row["lo"],
                row["mapping at the end"],
                row["cpu spent"],
            ]
            for row in rows
        ]
        settings = [f"{row['method']}: {row['setting']}." for row in rows if row["setting"]]
        note = (
            f"Medians over {len(self.seeds)} seed{'s' * (len(self.seeds) > 1)}; until the squared gradient mapping is at most "
            f"{TARGET:g}. 'Ended at': the least squared mapping, and what was spent in all. "
        )
        return Table(f"{self.title}, {generator}: cost to the target", header, lines, note + " ".join(settings))

    def plot(self, generator: str, rows: list[Row], outcomes: dict[str, list[Outcome]]) -> Plot:
        curves = [
            Curve(label, [curve_of(o) for o in outcomes[label]], GROUPS[row["whose"]], note(row), label in HEADLINES)
            for row in rows
            for label in [row["method"]]
        ]
        gradients = {"fo": "full gradients (FO)", "ifo": "term gradients (IFO)"}[self.gradients]
        units = {"cpu": "CPU seconds", self.gradients: gradients, "lo": "linear oracle calls (LO)"}
        title = f"{self.title}, {generator}"
        return Plot(f"{self.name}-{generator}", title, "squared gradient mapping, best so far", units, curves, TARGET)


@cache
def radius(size: int, rank: int, generator: str, seed: int) -> float:
    if generator == "orthonormal":
        return float(rank)
    return to_twelve(FRACTION * paper_matrix([size, size], rank, generator, seed).nuclear_norm)


def reached(outcome: Outcome) -> dict[str, float]:
    """What had been spent when the mapping was first seen at the target; infinite where it was not."""
    trace = outcome["trace"]
    for i, found in enumerate(trace["mapping"]):
        if found is not None and found <= TARGET:
            return {unit: trace[unit][i] for unit in UNITS}
    return dict.fromkeys(UNITS, inf)


def best(outcome: Outcome) -> float:
    return min((m for m in outcome["trace"]["mapping"] if m is not None), default=inf)


def known(values: Iterable[float]) -> list[float | None]:
    """None where a run had not got there."""
    return [float(v) if isfinite(v) else None for v in values]


def span(ends: list[float | None]) -> str | None:
    return None if ends == [None, None] else " .. ".join("-" if end is None else f"{end:.3g}" for end in ends)


def counted(calls: Sequence[float]) -> int | None:
    middle = quartiles(calls)[1]
    return int(middle) if isfinite(middle) else None


def curve_of(outcome: Outcome) -> dict[str, list[float]]:
    trace = outcome["trace"]
    units = {unit: trace[unit] for unit in UNITS}
    return {**units, "y": [nan if m is None else m for m in trace["mapping"]]}


ORACLES = (
    "Frank-Wolfe's linear oracle is of full accuracy in each step, while that of our warm start is accurate to a tenth of the "
    "gap only. Frank-Wolfe with such an oracle, which is no rule that condgrad offers, is about twice as fast on the orthonormal "
    "data, 200 x 200: benchmarks.problem5 has it as a row ('rough frank-wolfe')."
)
RECIPE = (
    "Y has the given rank. Each entry is observed with probability 0.1, an observed entry corrupted with probability 0.05 by "
    "uniform noise in [-3, 3]. F is the sum over the observed entries of 1 - exp(-(X - Y)^2), minimised over the nuclear-norm "
    "ball of radius R. The paper does not say how Y is made. Orthonormal: Y = U V' with orthonormal factors, so that its nuclear "
    "norm is the rank, and so is R. Gaussian: normal factors, entries of size 1, R = 0.3 of the nuclear norm.",
    "The squared gradient mapping, gamma = 1/(2L), is measured outside the clock, by a full SVD, at the iterate that a method "
    "reports, on steps ever further apart. Points are kept as factors by all methods. A curve that ends above the target ended "
    "at its budget of CPU time, or failed where its entry in the legend says so.",
    "'As a user gets it': prox subproblems by the spectral inner solver, for NCGS I and NCGS-VR steps that adapt, and a warm "
    "start of 20 Frank-Wolfe steps, which count. 'The paper to the letter': the theorem's step and accuracy, 1/N with N = 100 "
    "(1a) and 1000 (1b), by the paper's condg. 'Tuned': condg with a budget of calls or a relative accuracy. SVFW and SAGAFW "
    "take their paper's batch, epoch and constant step for 1,000 steps; tuned, t = s/sqrt(k) in step k. Of the settings that "
    "are tried, the one that does best on the first seed is shown: by the mapping, which a step so long that the loss is flat "
    "there can make small too. Which settings to try, and the budgets, were settled after looking at first runs.",
    ORACLES,
)
