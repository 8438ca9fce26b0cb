"""The class `Asked`: what the user asked for, that is, the problem, the method and the settings of one run.

An `Asked` does not change during the run. The class `reached.Reached` has everything that changes.
"""

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
"""Called as ``callback(record, x)`` at the start and after each step. If it returns True, the run ends."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The problem, the method, the stopping rule and the settings of one run; see :func:`condgrad.run` for the settings."""

    problem: Problem
    """The objective and the set. Oracle calls through this object are not counted."""
    measured: Problem
    """The problem whose oracles measure the iterates: ``problem`` itself or, if F is an expectation, a problem in which F is
    replaced by the mean over a fixed batch of samples."""
    solver: Solver
    x0: Point
    stop: Rule
    name: str
    """Name of the method."""
    every: int = 1
    """Number of steps from one row of the trace to the next."""
    output: str = "best"
    """The iterate to return, one of ``OUTPUTS``."""
    measure: bool | float = False
    listeners: Sequence[Listener] = ()
    """Functions that are called as ``listener(record, trace)`` after each step, such as a progress display."""
    callback: Callback | None = None
    seed: int = 0
    spec: str = ""
    """Hash of the problem, the method and the settings."""
    checked: bool = True
    """Whether iterates are audited and certified. If it is True and an oracle fails, the run ends with a result. If it is False,
    the exception of the oracle is raised. It is False in the intermediate runs of a fit."""

    @cached_property
    def has_value(self) -> bool:
        """Whether values of F can be computed. This is False if F is an expectation."""
        return fits(self.problem.objective, Objective)

    @cached_property
    def budgets(self) -> tuple[Any, ...]:
        """Limits on oracle calls, time and memory, which are also checked within a step."""
        return self.stop.budgets()

    @cached_property
    def watches(self) -> set[str]:
        """Names of the measures that the stopping rule uses: ``mapping``, ``gap``, both or none."""
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
        """The number by which certificates are compared: the gap if ``by_gap``, else the upper bound on the squared mapping."""
        return certificate.gap if self.by_gap else certificate.upper
