"""What a run is asked to do: fixed from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from condgrad.certificate import Certificate
from condgrad.driver.stopping import Rule
from condgrad.protocols import Listener, Objective, Point, Problem, Record, Solver, fits

OUTPUTS = ("best", "last", "lowest")
"""The iterates that a run can return."""

Callback = Callable[[Record, Point], bool | None]
"""Called as ``callback(record, x)`` at the start and after each step; returning True ends the run."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The problem, the method, the stopping rule and the settings of one run; see :func:`condgrad.run` for the settings."""

    problem: Problem
    """The objective and the set, without counters of oracle calls."""
    measured: Problem
    """The problem on which points are measured: for an expectation, on a fixed batch of samples."""
    solver: Solver
    x0: Point
    stop: Rule
    name: str
    every: int = 1
    output: str = "best"
    measure: bool | float = False
    listeners: Sequence[Listener] = ()
    callback: Callback | None = None
    seed: int = 0
    spec: str = ""
    """Hash of the problem, the method and the settings."""
    checked: bool = True
    """Whether iterates are audited and certified, and a fault of an oracle ends the run with a result. False for the intermediate
    runs of a fit, in which such a fault is raised."""

    @cached_property
    def has_value(self) -> bool:
        """Whether F has values; an expectation has none."""
        return fits(self.problem.objective, Objective)

    @cached_property
    def budgets(self) -> tuple[Any, ...]:
        """Limits on oracle calls, steps, time and memory."""
        return self.stop.budgets()

    @cached_property
    def watches(self) -> set[str]:
        """The measures that the stopping rule uses: ``mapping``, ``gap``."""
        return self.stop.watches()

    @cached_property
    def eps(self) -> float | None:
        """Tolerance on the squared gradient mapping."""
        return self.stop.tolerance()

    @cached_property
    def gap_eps(self) -> float | None:
        """Tolerance on the Frank-Wolfe gap."""
        return self.stop.gap_tolerance()

    @property
    def by_gap(self) -> bool:
        """Whether the stopping rule uses the Frank-Wolfe gap only."""
        return self.watches == {"gap"}

    @property
    def keep_best(self) -> bool:
        """Whether the iterate with the smallest certified measure is returned."""
        return self.output == "best"

    def rank(self, certificate: Certificate) -> float:
        """The measure by which the best certificate is chosen."""
        return certificate.gap if self.by_gap else certificate.upper
