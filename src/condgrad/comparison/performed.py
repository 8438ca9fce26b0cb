"""One run of a comparison: performed with the iterates measured by the driver, and kept as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from condgrad.comparison.requested import Requested
from condgrad.comparison.source import Source
from condgrad.driver import CpuSeconds, Result, Trace, minimize
from condgrad.driver.stopping import Mapping as MappingRule
from condgrad.driver.stopping import Rule
from condgrad.protocols import COUNTERS, Objective, Point, Record, fits

UNITS = {"cpu": "CPU seconds", **{name: f"{noun} ({name.upper()})" for name, noun in COUNTERS.items()}}
"""The units of cost, with their labels: columns of a trace."""
COLUMNS = ("k", *UNITS, "fun", "mapping")
"""Columns of the trace of a run."""


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """One run of a comparison.

    Attributes
    ----------
    label : str
        Name of the method in the comparison, with its options.
    seed : int
        Seed of the run.
    trace : dict of str to ndarray of shape (rows,)
        One row for each step at which the mapping was measured, with the columns ``k``, ``cpu``, the counters of
        ``condgrad.protocols.COUNTERS``, ``fun`` and ``mapping``, a certified upper bound on the squared gradient mapping.
    status, message : str
        How the run ended.
    choice : dict or None
        The choice of ``method="auto"``.
    """

    label: str
    seed: int
    trace: Mapping[str, np.ndarray]
    status: str
    message: str
    choice: Mapping[str, Any] | None = None

    def cost(self, target: float, unit: str = "cpu") -> float:
        """Cost of the first measured iterate whose squared mapping is at most ``target``.

        Parameters
        ----------
        target : float
            Squared gradient mapping.
        unit : str, default "cpu"
            "cpu" for CPU seconds, or a counter of oracle calls.

        Returns
        -------
        float
            Infinite if the run did not reach the target.
        """
        reached = np.flatnonzero(self.trace["mapping"] <= target)
        return float(self.trace[unit][reached[0]]) if len(reached) else inf

    @property
    def best(self) -> float:
        """The smallest squared mapping; infinite if none was measured."""
        return float(np.min(self.trace["mapping"], initial=inf))

    def plain(self) -> dict[str, Any]:
        """The run as lists, dicts, strings and numbers."""
        return {**vars(self), "trace": {name: column.tolist() for name, column in self.trace.items()}}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> ComparedRun:
        """The run from the answer of :meth:`plain`."""
        trace = {name: np.array(column, dtype=float) for name, column in plain["trace"].items()}
        return cls(**{**plain, "trace": trace})


@dataclass(frozen=True)
class Setting:
    """What all runs of a comparison share: the last target, the budget and further keywords of ``minimize``."""

    target: float
    budget: Rule | float
    keywords: Mapping[str, Any]

    @property
    def stop(self) -> Rule:
        budget = self.budget if isinstance(self.budget, Rule) else CpuSeconds(self.budget)
        return MappingRule(self.target) | budget


def perform(source: Source, asked: Requested, seed: int, setting: Setting) -> ComparedRun:
    """Run a method until the last target or the end of the budget.

    The trace has the steps at which the driver measured the mapping, with the clock paused; F is evaluated there only. Each row
    includes the cost of the choice of ``method="auto"``.
    """
    rows: list[Record] = []
    problem = source.problem(seed)
    objective = problem.objective

    def keep(record: Record, x: Point) -> None:
        if isfinite(record.mapping):
            rows.append(replace(record, fun=float(objective.value(x)) if fits(objective, Objective) else nan))

    result = minimize(
        objective,
        problem.domain,
        source.x0,
        method=asked.method,
        stop=setting.stop,
        seed=seed,
        every=2**62,  # no rows but those that are measured: a value of F at each step would cost more than many steps
        measure=source.smoothness(seed),
        callback=keep,
        progress=False,
        on_interrupt="raise",
        **{**setting.keywords, **asked.settings},
    )
    return performed(asked.label, seed, result, rows)


def performed(label: str, seed: int, result: Result, rows: list[Record]) -> ComparedRun:
    """The run as it is kept. Its last measurement may be that of the returned point, after the end of the run."""
    last = result.trace[-1:] if len(result.trace) else []
    rows = rows + [row for row in last if isfinite(row.mapping) and (not rows or row.k > rows[-1].k)]
    trace = {name: Trace(rows)[name].astype(float) for name in COLUMNS}
    if result.choice is not None:
        for name, spent in {"cpu": result.choice.cpu, **result.choice.counts}.items():
            trace[name] = trace[name] + spent
    chosen = None if result.choice is None else asdict(result.choice)
    return ComparedRun(label, seed, trace, result.status, result.message, chosen)
