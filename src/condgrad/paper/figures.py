"""Figure 1 of the paper: NCGS against Frank-Wolfe (1a), NCGS-VR against SVFW and SAGAFW (1b), on problem (5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isfinite, nan
from typing import Any

from condgrad.paper.figure1_methods import SMOOTHNESS, TARGET, Line
from condgrad.paper.pool import Outcomes
from condgrad.paper.runs import Outcome, Run, failed
from condgrad.paper.sections import Told
from condgrad.paper.verdicts import OURS, PAPER, RIVAL, TUNED, Claim, Row, best, judge, note, took
from condgrad.protocols import COUNTERS
from condgrad.report import Curve, Plot, Table, Text, quartiles
from condgrad.report.plain import number
from condgrad.spec import paper_matrix, to_twelve

UNITS = ("cpu", "fo", "ifo", "lo", "ub")
FRACTION = 0.3
"""R of the gaussian data, as a fraction of the matrix's nuclear norm."""

GROUPS = {OURS: OURS, PAPER: "the paper's method", TUNED: "the paper's method", RIVAL: RIVAL}
"""How the curves are grouped in the figure's legend."""


@dataclass(frozen=True)
class Figure:
    """One panel of Figure 1.

    Parameters
    ----------
    name : str
        fig1a or fig1b.
    size, rank : int
        Of the square matrix.
    lines : tuple of Line
        The methods.
    claim : Claim
        What the paper says of the panel.
    stop : dict
        The budget of a run, as in the section [stop] of a spec.
    seeds : sequence of int
        Seeds of the data that are shown.
    tuning_seed : int or None
        Seed of the data on which settings are chosen, not one of ``seeds``; None: nothing is tuned, presets are used.
    generators : sequence of str
        How the data are made.
    gradients : str
        The gradients that are counted: fo or ifo.
    """

    name: str
    size: int
    rank: int
    lines: tuple[Line, ...]
    claim: Claim
    stop: dict[str, Any]
    seeds: Sequence[int]
    tuning_seed: int | None
    generators: Sequence[str]
    gradients: str

    def runs(self) -> list[Run]:
        """Every setting of the grids on the tuning seed, and on the seeds that are shown what waits for no choice."""
        if self.tuning_seed is None:
            return self.shown(
                self.lines, {g: {line.label: line.preset for line in self.lines} for g in self.generators}
            )
        fixed = [line for line in self.lines if len(line.grid) == 1]
        settings = [setting for line in self.lines if len(line.grid) > 1 for setting in line.grid.values()]
        trials = [self.trial(g, setting) for g in self.generators for setting in settings]
        return trials + self.shown(fixed, {g: {line.label: "" for line in fixed} for g in self.generators})

    def more(self, made: Outcomes) -> list[Run]:
        """What was chosen, on the seeds that are shown."""
        if self.tuning_seed is None:
            return []
        grids = [line for line in self.lines if len(line.grid) > 1]
        return self.shown(grids, {g: self.choices(g, made) for g in self.generators})

    def shown(self, lines: Sequence[Line], chosen: dict[str, dict[str, str]]) -> list[Run]:
        return [
            self.run(g, seed, line.grid[chosen[g][line.label]])
            for seed in self.seeds
            for g in self.generators
            for line in lines
        ]

    def trial(self, generator: str, setting: dict[str, Any]) -> Run:
        """A run for tuning, which ends at the target."""
        assert self.tuning_seed is not None
        return self.run(generator, self.tuning_seed, setting, until=TARGET)

    def run(self, generator: str, seed: int, setting: dict[str, Any], until: float = TARGET / 10) -> Run:
        recipe = {"shape": [self.size, self.size], "rank": self.rank, "generator": generator, "seed": seed}
        R = radius(self.size, self.rank, generator, seed)
        method = {**setting, "seed": seed, "measure": True}
        if "scale" in method:  # the h0 for which sqrt(h0/(L D^2)) is this, with D = 2 R
            method["initial_gap"] = SMOOTHNESS * (2 * R * method.pop("scale")) ** 2
        if method.pop("batches", None):
            method["batch"] = observed(self.size, self.rank, generator, seed) // 4
            method |= {"epoch": 5} if method["name"] != "sagafw" else {}
        return {
            "problem": {"objective": "paper", "sigma": 1.0, **recipe},
            "set": {"name": "nuclear-ball", "radius": R},
            "method": method,
            "stop": {"mapping": until, **self.stop},
            "keep": {"what": "trace"},
        }

    # --------------------------------------------------------------------------------------------------------- tuning

    def choices(self, generator: str, made: Outcomes) -> dict[str, str]:
        """The setting of each method: its only one, its preset, or the best on the tuning seed."""
        if self.tuning_seed is None:
            return {line.label: line.preset for line in self.lines}
        return {
            line.label: min(line.grid, key=lambda said: self.merit(generator, line.grid[said], made))
            if len(line.grid) > 1
            else ""
            for line in self.lines
        }

    def merit(self, generator: str, setting: dict[str, Any], made: Outcomes) -> tuple[float, bool, float]:
        """First at the target on the tuning seed; where none gets there, nearest to it at the end of the budget."""
        outcome = made[self.trial(generator, setting)]
        return reached(outcome)["cpu"], failed(outcome), least(outcome)

    def tuning(self, generator: str, made: Outcomes) -> dict[str, Any]:
        """What came of each setting on the tuning seed."""
        if self.tuning_seed is None:
            return {}
        found = {}
        for line in self.lines:
            if len(line.grid) > 1:
                merits = {said: self.merit(generator, setting, made) for said, setting in line.grid.items()}
                found[line.label] = {
                    said: {"cpu": known([cpu])[0], "mapping at the end": end} for said, (cpu, _, end) in merits.items()
                }
        return found

    # ------------------------------------------------------------------------------------------------------ reporting

    def tell(self, made: Outcomes) -> Told:
        plots: list[Any] = []
        tables: list[Any] = []
        facts: dict[str, Any] = {
            "size": self.size,
            "rank": self.rank,
            "target": TARGET,
            "seeds": list(self.seeds),
            "tuning seed": self.tuning_seed,
            "claim": self.claim.said,
        }
        for generator in self.generators:
            chosen = self.choices(generator, made)
            outcomes = {
                line.label: [made[self.run(generator, seed, line.grid[chosen[line.label]])] for seed in self.seeds]
                for line in self.lines
            }
            rows = [self.row(line, chosen[line.label], outcomes[line.label]) for line in self.lines]
            plots.append(self.plot(generator, rows, outcomes))
            tables.append(self.table(generator, rows))
            facts[generator] = {
                "R": [radius(self.size, self.rank, generator, seed) for seed in self.seeds],
                "rows": rows,
                "verdicts": self.verdicts(generator, rows, made),
                "tuning": self.tuning(generator, made),
                "curves": {label: [curve_of(outcome) for outcome in found] for label, found in outcomes.items()},
            }
        first, *rest = (block for pair in zip(plots, tables, strict=True) for block in pair)
        telling = self.headline(facts[self.generators[0]]["rows"])
        return Told(self.name, Text(f"Figure {self.name[3:]}", [telling]), rest, facts, telling, (first,))

    def headline(self, rows: list[Row]) -> str:
        """condgrad's defaults against the best rival, and the paper's own method."""
        by_name = {row["method"]: row for row in rows}
        ours = by_name[self.lines[0].label]
        rival = best([row for row in rows if row["whose"] == RIVAL])
        paper = best([row for row in rows if row["whose"] == TUNED])
        found = judge(ours, rival)
        other = f"the best rival ({rival['method']}: {took(rival)})"
        faster = found["measure"] == "cpu" and found["ratio"] > 1
        compared = f", {found['by']} as {other}" if faster else f", against {other}"
        return (
            f"condgrad's {ours['method']} brings the squared gradient mapping to {number(TARGET)} in {took(ours)} of CPU time"
            f"{compared}; the paper's own procedure takes {took(paper)} ({paper['method']})."
        )

    def verdicts(self, generator: str, rows: list[Row], made: Outcomes) -> list[dict[str, Any]]:
        """One for each reading of the claim. Which form of the paper's method is compared was chosen on the tuning seed."""
        by_name = {row["method"]: row for row in rows}
        grids = {line.label: line.grid for line in self.lines}
        chosen = self.choices(generator, made)
        found = []
        for reading in self.claim.readings:
            own = reading.own[0]
            if self.tuning_seed is not None and len(reading.own) > 1:
                own = min(reading.own, key=lambda label: self.merit(generator, grids[label][chosen[label]], made))
            found.append(
                {
                    "reading": reading.said,
                    "own": own,
                    "rival": reading.rival,
                    **judge(by_name[own], by_name[reading.rival]),
                }
            )
        return found

    @property
    def title(self) -> str:
        return f"Figure {self.name[3:]}: {self.size} × {self.size}, rank {self.rank}"  # noqa: RUF001

    def row(self, line: Line, chosen: str, outcomes: list[Outcome]) -> Row:
        at = [reached(outcome) for outcome in outcomes]
        there = [a for a, outcome in zip(at, outcomes, strict=True) if isfinite(a["cpu"]) or not failed(outcome)]
        there = there or [dict.fromkeys(UNITS, inf)]  # a run that failed is not taken for a slow one
        failures = [failed(outcome) and not isfinite(a["cpu"]) for a, outcome in zip(at, outcomes, strict=True)]
        times = [a["cpu"] for a in there]
        return {
            "method": line.label,
            "whose": line.whose,
            "setting": chosen,
            "reached": sum(isfinite(a["cpu"]) for a in at),
            "runs": len(outcomes),
            "cpu": known([quartiles(times)[1]])[0],
            "cpu range": known([min(times), max(times)]),
            **{oracle: counted([a[oracle] for a in there]) for oracle in (self.gradients, "lo", "ub")},
            "mapping at the end": float(quartiles([least(outcome) for outcome in outcomes])[1]),
            "cpu spent": float(quartiles([outcome["cpu"] for outcome in outcomes])[1]),
            "steps": int(quartiles([outcome["steps"] for outcome in outcomes])[1]),
            "failed": sum(failures),
            "why": next((o["message"] for o, bad in zip(outcomes, failures, strict=True) if bad), ""),
            "times": known(a["cpu"] for a in at),
            "spent": [outcome["cpu"] for outcome in outcomes],
            "ends": [least(outcome) for outcome in outcomes],
            "failures": failures,
        }

    def table(self, generator: str, rows: list[Row]) -> Table:
        several = len(self.seeds) > 1
        gradients = self.gradients.upper()
        header = ["method", "setting", *(["reached", "CPU s", "range"] if several else ["CPU s"])]
        header += [gradients, "LO", "UB", "mapping at the end", "CPU s in all"]
        lines = []
        for row in rows:
            some = f"{row['reached']} of {row['runs']}" + (f", {row['failed']} failed" if row["failed"] else "")
            time = [some, row["cpu"], span(row["cpu range"])] if several else [row["cpu"]]
            ended = [row["mapping at the end"], row["cpu spent"]]
            lines.append(
                [row["method"], row["setting"] or None, *time, row[self.gradients], row["lo"], row["ub"], *ended]
            )
        seeds = f"Medians over {len(self.seeds)} seeds" if several else "One seed"
        about = (
            f"{seeds}. CPU s, {gradients}, LO and UB: until the squared gradient mapping is at most {number(TARGET)}."
        )
        caption = f"Figure {self.name[3:]}, {generator} data: cost to the target"
        return Table(caption, header, lines, about if generator == self.generators[0] else "")

    def plot(self, generator: str, rows: list[Row], outcomes: dict[str, list[Outcome]]) -> Plot:
        drawn = {line.label for line in self.lines if line.drawn}
        curves = [
            Curve(row["method"], [curve_of(o) for o in outcomes[row["method"]]], GROUPS[row["whose"]], note(row))
            for row in rows
            if row["method"] in drawn
        ]
        counters = (self.gradients, "lo", "ub")
        units = {"cpu": "CPU seconds"} | {name: f"{COUNTERS[name]} ({name.upper()})" for name in counters}
        title = f"{self.title}, {generator} data"
        several = (
            f"Line: median over {len(self.seeds)} seeds; shade: quartiles." if len(self.seeds) > 1 else "One seed."
        )
        about = f"{several} A cross: the curve ends above the target."
        name = f"{self.name}-{generator}"
        return Plot(name, title, "squared gradient mapping, best so far", units, curves, TARGET, about)


@cache
def radius(size: int, rank: int, generator: str, seed: int) -> float:
    if generator == "orthonormal":
        return float(rank)
    return to_twelve(FRACTION * paper_matrix([size, size], rank, generator, seed).nuclear_norm)


@cache
def observed(size: int, rank: int, generator: str, seed: int) -> int:
    """How many entries are observed: the n of the finite sum."""
    return len(paper_matrix([size, size], rank, generator, seed).values)


def reached(outcome: Outcome) -> dict[str, float]:
    """What had been spent when the mapping was first seen at the target; infinite where it was not."""
    trace = outcome["trace"]
    for i, found in enumerate(trace["mapping"]):
        if found is not None and found <= TARGET:
            return {unit: trace[unit][i] for unit in UNITS}
    return dict.fromkeys(UNITS, inf)


def least(outcome: Outcome) -> float:
    """The least squared mapping of a run."""
    return min((m for m in outcome["trace"]["mapping"] if m is not None), default=inf)


def known(values: Iterable[float]) -> list[float | None]:
    """None where a run had not got there."""
    return [float(v) if isfinite(v) else None for v in values]


def span(ends: list[float | None]) -> str | None:
    """From the least to the most; an end that is not known is a budget that was used up."""
    return None if ends == [None, None] else " to ".join("over" if end is None else number(end) for end in ends)


def counted(calls: Sequence[float]) -> int | None:
    middle = quartiles(calls)[1]
    return int(middle) if isfinite(middle) else None


def curve_of(outcome: Outcome) -> dict[str, list[float]]:
    trace = outcome["trace"]
    units = {unit: trace[unit] for unit in UNITS}
    return {**units, "y": [nan if m is None else m for m in trace["mapping"]]}
