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
from condgrad.paper.sections import SectionReport
from condgrad.paper.verdicts import OURS, PAPER, RIVAL, TUNED, Claim, Row, best, compare, end_note, time_text
from condgrad.protocols import COUNTERS
from condgrad.report import Curve, Plot, Table, Text, quartiles
from condgrad.report.plain import format_number
from condgrad.spec import paper_matrix, to_twelve

UNITS = ("cpu", "fo", "ifo", "lo", "ub")
RADIUS_FRACTION = 0.3
"""Radius R for gaussian data, as a fraction of the nuclear norm of the matrix."""

GROUPS = {OURS: OURS, PAPER: "the paper's method", TUNED: "the paper's method", RIVAL: RIVAL}
"""Group of each kind of method in the legend of the figure."""


@dataclass(frozen=True)
class Figure:
    """One panel of Figure 1.

    Parameters
    ----------
    name : str
        "fig1a" or "fig1b".
    size, rank : int
        Number of rows (and of columns) and rank of the matrix.
    lines : tuple of Line
        The methods.
    claim : Claim
        What the paper says about the panel.
    stop : dict
        Budget of a run, as in the section [stop] of a spec.
    seeds : sequence of int
        Seeds of the data that are shown.
    tuning_seed : int or None
        Seed of the data on which settings are chosen, not one of ``seeds``. None: presets are used, nothing is tuned.
    generators : sequence of str
        Generators of the data, a subset of ``GENERATORS``.
    gradients : {"fo", "ifo"}
        Counter of gradients that is shown.
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
        """Runs known in advance: all settings of the grids on the tuning seed, and methods without a grid on the shown seeds."""
        if self.tuning_seed is None:
            return self.runs_on_shown_seeds(
                self.lines, {g: {line.label: line.preset for line in self.lines} for g in self.generators}
            )
        fixed = [line for line in self.lines if len(line.grid) == 1]
        settings = [setting for line in self.lines if len(line.grid) > 1 for setting in line.grid.values()]
        tuning_runs = [self.tuning_run(g, setting) for g in self.generators for setting in settings]
        return tuning_runs + self.runs_on_shown_seeds(
            fixed, {g: {line.label: "" for line in fixed} for g in self.generators}
        )

    def follow_up_runs(self, finished: Outcomes) -> list[Run]:
        """Runs of the chosen settings on the shown seeds."""
        if self.tuning_seed is None:
            return []
        grids = [line for line in self.lines if len(line.grid) > 1]
        return self.runs_on_shown_seeds(grids, {g: self.choices(g, finished) for g in self.generators})

    def runs_on_shown_seeds(self, lines: Sequence[Line], chosen: dict[str, dict[str, str]]) -> list[Run]:
        """Runs of methods with their chosen settings (generator -> label -> name of the setting)."""
        return [
            self.run(g, seed, line.grid[chosen[g][line.label]])
            for seed in self.seeds
            for g in self.generators
            for line in lines
        ]

    def tuning_run(self, generator: str, setting: dict[str, Any]) -> Run:
        """Run on the tuning seed, which stops at the target."""
        assert self.tuning_seed is not None
        return self.run(generator, self.tuning_seed, setting, until=TARGET)

    def run(self, generator: str, seed: int, setting: dict[str, Any], until: float = TARGET / 10) -> Run:
        recipe = {"shape": [self.size, self.size], "rank": self.rank, "generator": generator, "seed": seed}
        R = radius(self.size, self.rank, generator, seed)
        method = {**setting, "seed": seed, "measure": True}
        if "scale" in method:  # h0 such that sqrt(h0/(L D^2)) equals the scale, with D = 2 R
            method["initial_gap"] = SMOOTHNESS * (2 * R * method.pop("scale")) ** 2
        if method.pop("batches", None):
            method["batch"] = observed_count(self.size, self.rank, generator, seed) // 4
            method |= {"epoch": 5} if method["name"] != "sagafw" else {}
        return {
            "problem": {"objective": "paper", "sigma": 1.0, **recipe},
            "set": {"name": "nuclear-ball", "radius": R},
            "method": method,
            "stop": {"mapping": until, **self.stop},
            "keep": {"what": "trace"},
        }

    # --------------------------------------------------------------------------------------------------------- tuning

    def choices(self, generator: str, finished: Outcomes) -> dict[str, str]:
        """Name of the setting of each method: its only one, its preset, or the best on the tuning seed."""
        if self.tuning_seed is None:
            return {line.label: line.preset for line in self.lines}
        return {
            line.label: min(line.grid, key=lambda name: self.merit(generator, line.grid[name], finished))
            if len(line.grid) > 1
            else ""
            for line in self.lines
        }

    def merit(self, generator: str, setting: dict[str, Any], finished: Outcomes) -> tuple[float, bool, float]:
        """Sort key of a setting: CPU time to the target on the tuning seed; if it is not reached, the smallest mapping."""
        outcome = finished[self.tuning_run(generator, setting)]
        return cost_at_target(outcome)["cpu"], failed(outcome), smallest_mapping(outcome)

    def tuning(self, generator: str, finished: Outcomes) -> dict[str, Any]:
        """CPU time to the target and smallest mapping of each setting on the tuning seed."""
        if self.tuning_seed is None:
            return {}
        found = {}
        for line in self.lines:
            if len(line.grid) > 1:
                merits = {name: self.merit(generator, setting, finished) for name, setting in line.grid.items()}
                found[line.label] = {
                    name: {"cpu": finite_or_none([cpu])[0], "mapping at the end": end}
                    for name, (cpu, _, end) in merits.items()
                }
        return found

    # ------------------------------------------------------------------------------------------------------ reporting

    def report(self, finished: Outcomes) -> SectionReport:
        """Plots, tables and verdicts."""
        plots: list[Any] = []
        tables: list[Any] = []
        facts: dict[str, Any] = {
            "size": self.size,
            "rank": self.rank,
            "target": TARGET,
            "seeds": list(self.seeds),
            "tuning seed": self.tuning_seed,
            "claim": self.claim.text,
        }
        for generator in self.generators:
            chosen = self.choices(generator, finished)
            outcomes = {
                line.label: [finished[self.run(generator, seed, line.grid[chosen[line.label]])] for seed in self.seeds]
                for line in self.lines
            }
            rows = [self.row(line, chosen[line.label], outcomes[line.label]) for line in self.lines]
            plots.append(self.plot(generator, rows, outcomes))
            tables.append(self.table(generator, rows))
            facts[generator] = {
                "R": [radius(self.size, self.rank, generator, seed) for seed in self.seeds],
                "rows": rows,
                "verdicts": self.verdicts(generator, rows, finished),
                "tuning": self.tuning(generator, finished),
                "curves": {label: [curve_of(outcome) for outcome in found] for label, found in outcomes.items()},
            }
        first, *rest = (block for pair in zip(plots, tables, strict=True) for block in pair)
        sentence = self.headline(facts[self.generators[0]]["rows"])
        return SectionReport(self.name, Text(f"Figure {self.name[3:]}", [sentence]), rest, facts, sentence, (first,))

    def headline(self, rows: list[Row]) -> str:
        """One sentence that compares condgrad's defaults with the best rival and with the paper's method."""
        by_name = {row["method"]: row for row in rows}
        ours = by_name[self.lines[0].label]
        rival = best([row for row in rows if row["whose"] == RIVAL])
        paper = best([row for row in rows if row["whose"] == TUNED])
        found = compare(ours, rival)
        other = f"the best rival ({rival['method']}: {time_text(rival)})"
        faster = found["measure"] == "cpu" and found["ratio"] > 1
        compared = f", {found['by']} as {other}" if faster else f", against {other}"
        return (
            f"condgrad's {ours['method']} brings the squared gradient mapping to {format_number(TARGET)} in {time_text(ours)} of "
            f"CPU time{compared}; the paper's own procedure takes {time_text(paper)} ({paper['method']})."
        )

    def verdicts(self, generator: str, rows: list[Row], finished: Outcomes) -> list[dict[str, Any]]:
        """Verdict for each reading of the claim. The variant of the paper's method was chosen on the tuning seed."""
        by_name = {row["method"]: row for row in rows}
        grids = {line.label: line.grid for line in self.lines}
        chosen = self.choices(generator, finished)
        found = []
        for reading in self.claim.readings:
            own = reading.own[0]
            if self.tuning_seed is not None and len(reading.own) > 1:
                own = min(reading.own, key=lambda label: self.merit(generator, grids[label][chosen[label]], finished))
            found.append(
                {
                    "reading": reading.text,
                    "own": own,
                    "rival": reading.rival,
                    **compare(by_name[own], by_name[reading.rival]),
                }
            )
        return found

    @property
    def title(self) -> str:
        return f"Figure {self.name[3:]}: {self.size} × {self.size}, rank {self.rank}"  # noqa: RUF001

    def row(self, line: Line, chosen: str, outcomes: list[Outcome]) -> Row:
        """Summary of one method over all shown seeds."""
        costs = [cost_at_target(outcome) for outcome in outcomes]
        completed = [a for a, outcome in zip(costs, outcomes, strict=True) if isfinite(a["cpu"]) or not failed(outcome)]
        completed = completed or [dict.fromkeys(UNITS, inf)]  # a failed run does not count as a slow one
        failures = [failed(outcome) and not isfinite(a["cpu"]) for a, outcome in zip(costs, outcomes, strict=True)]
        times = [a["cpu"] for a in completed]
        return {
            "method": line.label,
            "whose": line.whose,
            "setting": chosen,
            "reached": sum(isfinite(a["cpu"]) for a in costs),
            "runs": len(outcomes),
            "cpu": finite_or_none([quartiles(times)[1]])[0],
            "cpu range": finite_or_none([min(times), max(times)]),
            **{oracle: median_count([a[oracle] for a in completed]) for oracle in (self.gradients, "lo", "ub")},
            "mapping at the end": float(quartiles([smallest_mapping(outcome) for outcome in outcomes])[1]),
            "cpu spent": float(quartiles([outcome["cpu"] for outcome in outcomes])[1]),
            "steps": int(quartiles([outcome["steps"] for outcome in outcomes])[1]),
            "failed": sum(failures),
            "why": next((o["message"] for o, bad in zip(outcomes, failures, strict=True) if bad), ""),
            "times": finite_or_none(a["cpu"] for a in costs),
            "spent": [outcome["cpu"] for outcome in outcomes],
            "ends": [smallest_mapping(outcome) for outcome in outcomes],
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
            time = [some, row["cpu"], range_text(row["cpu range"])] if several else [row["cpu"]]
            ended = [row["mapping at the end"], row["cpu spent"]]
            lines.append(
                [row["method"], row["setting"] or None, *time, row[self.gradients], row["lo"], row["ub"], *ended]
            )
        seeds = f"Medians over {len(self.seeds)} seeds" if several else "One seed"
        about = f"{seeds}. CPU s, {gradients}, LO and UB: until the squared gradient mapping is at most {format_number(TARGET)}."
        caption = f"Figure {self.name[3:]}, {generator} data: cost to the target"
        return Table(caption, header, lines, about if generator == self.generators[0] else "")

    def plot(self, generator: str, rows: list[Row], outcomes: dict[str, list[Outcome]]) -> Plot:
        drawn = {line.label for line in self.lines if line.drawn}
        curves = [
            Curve(row["method"], [curve_of(o) for o in outcomes[row["method"]]], GROUPS[row["whose"]], end_note(row))
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
    """Radius R of the nuclear-norm ball."""
    if generator == "orthonormal":
        return float(rank)
    return to_twelve(RADIUS_FRACTION * paper_matrix([size, size], rank, generator, seed).nuclear_norm)


@cache
def observed_count(size: int, rank: int, generator: str, seed: int) -> int:
    """Number of observed entries: the n of the finite sum."""
    return len(paper_matrix([size, size], rank, generator, seed).values)


def cost_at_target(outcome: Outcome) -> dict[str, float]:
    """Cost in each unit at the first measurement at or below the target; infinite if there is none."""
    trace = outcome["trace"]
    for i, found in enumerate(trace["mapping"]):
        if found is not None and found <= TARGET:
            return {unit: trace[unit][i] for unit in UNITS}
    return dict.fromkeys(UNITS, inf)


def smallest_mapping(outcome: Outcome) -> float:
    """Smallest squared gradient mapping measured in a run."""
    return min((m for m in outcome["trace"]["mapping"] if m is not None), default=inf)


def finite_or_none(values: Iterable[float]) -> list[float | None]:
    """Replace infinite values (targets that were not reached) by None."""
    return [float(v) if isfinite(v) else None for v in values]


def range_text(ends: list[float | None]) -> str | None:
    """Text of a range; an end that is None (a budget that was used up) is shown as "over"."""
    return None if ends == [None, None] else " to ".join("over" if end is None else format_number(end) for end in ends)


def median_count(calls: Sequence[float]) -> int | None:
    """Median number of calls; None if it is infinite."""
    middle = quartiles(calls)[1]
    return int(middle) if isfinite(middle) else None


def curve_of(outcome: Outcome) -> dict[str, list[float]]:
    """Trace of a run in the form that ``report.Curve`` expects."""
    trace = outcome["trace"]
    units = {unit: trace[unit] for unit in UNITS}
    return {**units, "y": [nan if m is None else m for m in trace["mapping"]]}
