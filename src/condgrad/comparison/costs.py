"""The comparison of methods: costs to targets, performance profiles, tables, files and a report."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.checks import choice
from condgrad.comparison.performed import UNITS, ComparedRun
from condgrad.driver.environment import environment
from condgrad.report.bands import quartiles
from condgrad.report.blocks import Block, Curve, Plot, Table
from condgrad.report.folder import write
from condgrad.report.plain import format_number, plain
from condgrad.report.text_table import table
from condgrad.runtime.extras import needed_for
from condgrad.storage.atomic import write_text

SHORT = {"cpu": "CPU s"}
"""Names of units in the headers of tables, where it is not the counter in capitals."""
MEASURED = (
    "The squared gradient mapping is an upper bound, measured by the driver with the clock paused, with the same step size for "
    "all methods. It is measured at steps 1, 2, 3, ... whose distance grows by a tenth."
)
PROFILE_NOTE = (
    "Performance profile: the share of all pairs of a seed and a target at which the cost of a method is at most x times that of "
    "the cheapest method. At x = 1 it is the share of wins, at the right end the share of targets reached."
)


@dataclass(eq=False)
class Comparison:
    """Several methods on one problem: their runs, and what they cost.

    Attributes
    ----------
    labels : list of str
        The methods that took part.
    seeds : list of int
        The seeds.
    targets : list of float
        Squared gradient mappings, in decreasing order; runs end at the last.
    runs : list of ComparedRun
        The finished runs.
    skipped : dict of str to str
        The methods that do not fit the problem, each with the reason.
    smoothness : float
        The constant L of the mapping that was measured; for data that differ between seeds, that of the first seed.
    interrupted : bool
        Whether Ctrl-C or SIGTERM ended the comparison before its last run.
    failed : dict of str to str
        Methods of which a run raised an error, with its message.
    """

    labels: list[str]
    seeds: list[int]
    targets: list[float]
    runs: list[ComparedRun]
    skipped: dict[str, str]
    smoothness: float
    interrupted: bool = False
    failed: dict[str, str] = field(default_factory=dict)

    # --------------------------------------------------------------------------------------------------------- numbers

    def of(self, label: str) -> list[ComparedRun]:
        """The runs of a method.

        Parameters
        ----------
        label : str
            Its name in the comparison.

        Returns
        -------
        list of ComparedRun
        """
        choice(label, self.labels, "method of the comparison")
        return [run for run in self.runs if run.label == label]

    def cost(self, label: str, target: float | None = None, unit: str = "cpu") -> np.ndarray:
        """Cost of a method to a target.

        Parameters
        ----------
        label : str
            The method.
        target : float, default None
            Squared gradient mapping; None: the last target.
        unit : str, default "cpu"
            "cpu" for CPU seconds, or a counter: "fo", "sfo", "ifo", "lo", "ub", "po", "values".

        Returns
        -------
        ndarray of float, shape (runs,)
            One number for each run; infinite where the target was not reached.
        """
        choice(unit, UNITS, "unit of cost")
        aim = self.targets[-1] if target is None else target
        return np.array([run.cost(aim, unit) for run in self.of(label)])

    def median(self, label: str, target: float | None = None, unit: str = "cpu") -> float:
        """Median cost over all seeds; infinite if fewer than half of them reached the target.

        A seed with which the method was not run because it had missed the target too often counts as missed.

        Parameters
        ----------
        label, target, unit
            As in :meth:`cost`.

        Returns
        -------
        float
        """
        return float(self._quartiles(label, target, unit)[1])

    def winner(self, target: float | None = None, unit: str = "cpu") -> str | None:
        """The method with the lowest median cost.

        Parameters
        ----------
        target, unit
            As in :meth:`cost`.

        Returns
        -------
        str or None
            None if no method reached the target.
        """
        costs = {label: self.median(label, target, unit) for label in self.labels}
        best = min(costs, key=lambda label: costs[label])
        return best if isfinite(costs[best]) else None

    def units(self) -> dict[str, str]:
        """The units of cost that some run used, with their labels.

        Returns
        -------
        dict of str to str
        """
        return {unit: name for unit, name in UNITS.items() if any((run.trace[unit] > 0).any() for run in self.runs)}

    def profile(self, unit: str = "cpu") -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Performance profile (Dolan and Moré 2002) over all pairs of a seed and a target.

        Parameters
        ----------
        unit : str, default "cpu"
            As in :meth:`cost`.

        Returns
        -------
        dict of str to tuple of two ndarrays of shape (points,)
            For each method ratios to the cheapest method, in increasing order, and the share of pairs at which the ratio is at
            most that. The first ratio is 1.
        """
        costs = np.array([[self._by_seed(label, aim, unit) for aim in self.targets] for label in self.labels])
        best = costs.min(axis=0)
        counted = np.isfinite(best) & (best > 0)
        pairs = max(int(counted.sum()), 1)
        found = {}
        for label, own in zip(self.labels, costs, strict=True):
            ratios = np.sort(own[counted] / best[counted])
            ratios = ratios[np.isfinite(ratios)]
            x = np.concatenate([[1.0], ratios])
            found[label] = x, np.searchsorted(ratios, x, side="right") / pairs
        return found

    def _by_seed(self, label: str, target: float, unit: str) -> list[float]:
        costs = {run.seed: run.cost(target, unit) for run in self.of(label)}
        return [costs.get(seed, inf) for seed in self.seeds]

    def _quartiles(self, label: str, target: float | None, unit: str) -> np.ndarray:
        costs = list(self.cost(label, target, unit))
        if not self.interrupted:  # seeds that were left out, because most of them had missed the target
            costs += [inf] * (len(self.seeds) - len(costs))
        return quartiles(np.array(costs)) if costs else np.full(3, inf)

    # ---------------------------------------------------------------------------------------------------------- tables

    def rows(self) -> list[dict[str, Any]]:
        """Median and quartiles of the cost in every unit, for each method and target.

        Returns
        -------
        list of dict
            With the keys ``method``, ``target``, ``runs``, ``reached``, and for each unit, such as ``cpu``: ``cpu``,
            ``cpu_low`` and ``cpu_high``; infinite where the target was not reached.
        """
        found = []
        for target in self.targets:
            for label in self.labels:
                runs = self.of(label)
                row: dict[str, Any] = {"method": label, "target": target, "runs": len(runs)}
                row["reached"] = sum(run.best <= target for run in runs)
                for unit in self.units():
                    row[f"{unit}_low"], row[unit], row[f"{unit}_high"] = map(
                        float, self._quartiles(label, target, unit)
                    )
                found.append(row)
        return found

    def table(self, target: float | None = None) -> tuple[list[str], list[list[Any]]]:
        """Header and rows of the table of one target: the methods by their median CPU time.

        Parameters
        ----------
        target : float, default None
            None: the last target.

        Returns
        -------
        tuple of list of str and list of list
        """
        aim = self.targets[-1] if target is None else target
        units = self.units()
        header = ["method", "reached", *(SHORT.get(unit, unit.upper()) for unit in units), "best mapping"]
        order = sorted(self.labels, key=lambda label: (self.median(label, aim), self._best(label)))
        rows = []
        for label in order:
            runs = self.of(label)
            reached = f"{sum(run.best <= aim for run in runs)} of {len(runs)}"
            rows.append([label, reached, *(self._cell(label, aim, unit) for unit in units), self._best(label)])
        return header, rows

    def _best(self, label: str) -> float:
        bests = [run.best for run in self.of(label)]
        return float(np.median(bests)) if bests else inf

    def _cell(self, label: str, target: float, unit: str) -> str:
        low, middle, high = self._quartiles(label, target, unit)
        if not isfinite(middle):
            return "-"
        if low == high:
            return _number(middle, unit)
        upper = _number(high, unit) if isfinite(high) else "-"
        return f"{_number(middle, unit)} ({_number(low, unit)} to {upper})"

    def __str__(self) -> str:
        parts = []
        for target in self.targets:
            parts.append(f"Cost to a squared mapping of {target:g} (median, quartiles)\n{table(*self.table(target))}")
        parts += [f"{label}: failed. {why}" for label, why in self.failed.items()]
        if self.skipped:
            parts.append("\n".join(["Not compared:", *(f"  {label}: {why}" for label, why in self.skipped.items())]))
        if self.interrupted:
            parts.append(f"Interrupted after {len(self.runs)} runs.")
        return "\n\n".join(parts)

    __repr__ = __str__

    # ----------------------------------------------------------------------------------------------------------- files

    def plain(self) -> dict[str, Any]:
        """The comparison as lists, dicts, strings and finite numbers; None for what is not finite.

        Returns
        -------
        dict of str to Any
            With the keys ``targets``, ``seeds``, ``smoothness``, ``rows``, ``runs``, ``skipped``, ``failed``, ``interrupted``.
        """
        names = ("targets", "seeds", "smoothness", "skipped", "failed", "interrupted")
        content = {name: getattr(self, name) for name in names}
        found: dict[str, Any] = plain({**content, "rows": self.rows(), "runs": [run.plain() for run in self.runs]})
        return found

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`plain` to a file.

        Parameters
        ----------
        path : str or Path
        """
        write_text(path, json.dumps(self.plain(), allow_nan=False) + "\n")

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`rows` to a file, as a table with a header.

        Parameters
        ----------
        path : str or Path
        """
        text = io.StringIO(newline="")
        rows = self.rows()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(path, text.getvalue())

    def to_dataframe(self) -> Any:
        """Convert :meth:`rows` to a pandas DataFrame (needs the extra ``table``).

        Returns
        -------
        pandas.DataFrame
        """
        with needed_for("Data frames"):
            import pandas

        return pandas.DataFrame(self.rows())

    def report(
        self,
        folder: str | Path,
        title: str = "Comparison of methods",
        facts: Mapping[str, Any] | None = None,
        figures: bool = False,
    ) -> Path:
        """Write a page with plots and tables into a folder.

        Parameters
        ----------
        folder : str or Path
            Folder for ``report.html`` and ``data.json``, and the figures.
        title : str, default "Comparison of methods"
            Heading of the page.
        facts : mapping of str to Any, default None
            Shown at the end of the page, before versions and machine.
        figures : bool, default False
            Also draw figure files for print.

        Returns
        -------
        Path
            The file report.html.
        """
        shown = {"smoothness of the measured mapping": self.smoothness, "seeds": self.seeds, **(facts or {})}
        return write(Path(folder), title, self.blocks(), {**shown, **environment()}, self.plain(), figures)

    def blocks(self) -> list[Block]:
        """The blocks of the report: convergence, profiles, a table for each target, and the methods that were not compared.

        Returns
        -------
        list of Table and Plot
        """
        units = self.units()
        blocks: list[Block] = []
        measured = [label for label in self.labels if any(len(run.trace["mapping"]) for run in self.of(label))]
        if units and measured:
            y = "squared gradient mapping, best so far"
            curves = [Curve(label, [self._curve(run, units) for run in self.of(label)]) for label in measured]
            blocks.append(Plot("convergence", "Convergence", y, units, curves, self.targets[-1], MEASURED))
            blocks += [self._profile_plot(unit, name) for unit, name in units.items()]
        for target in self.targets:
            best = self.winner(target)
            note = f"Lowest median CPU time: {best}." if best else "No method reached this target."
            blocks.append(
                Table(f"Cost to a squared mapping of {target:g} (median, quartiles)", *self.table(target), note)
            )
        chosen = {run.label: run.choice["reason"] for run in self.runs if run.choice}
        excluded = [*chosen.items(), *self.failed.items(), *self.skipped.items()]
        if excluded:
            blocks.append(Table("Remarks, and methods that were not compared", ["method", "remark"], excluded))
        return blocks

    def _curve(self, run: ComparedRun, units: Sequence[str] | Mapping[str, str]) -> dict[str, np.ndarray]:
        return {**{unit: run.trace[unit] for unit in units}, "y": run.trace["mapping"]}

    def _profile_plot(self, unit: str, name: str) -> Plot:
        """The performance profiles in one unit, as step functions."""
        found = self.profile(unit)
        end = max(x[-1] for x, _ in found.values())
        steps = {label: _steps(x, share, end) for label, (x, share) in found.items()}
        curves = [Curve(label, [{unit: x, "y": share}]) for label, (x, share) in steps.items()]
        x, y = {unit: f"factor to the cheapest method, {name}"}, "share of targets reached"
        title, scales = f"Performance profile: {name}", ("log", "linear")
        return Plot(f"profile-{unit}", title, y, x, curves, note=PROFILE_NOTE, as_given=True, scales=scales)


def _steps(x: np.ndarray, share: np.ndarray, end: float) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the step function that has the value share[i] from x[i] on, up to ``end``."""
    x = np.append(x, end)
    return np.repeat(x, 2)[1:-1], np.repeat(share, 2)


def _number(value: float, unit: str) -> str:
    return format_number(value) if unit == "cpu" else f"{round(value):,}"
