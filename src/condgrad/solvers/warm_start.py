r"""Warm start of a sliding method on a spectral set: a few Frank-Wolfe steps.

From 0 the first prox points have nearly full rank and take most of the time. A few Frank-Wolfe steps of length 2/(k+2) give a
start whose rank is at most their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import Any, ClassVar

import numpy as np

from condgrad.checks import not_negative, positive, whole
from condgrad.points import inner, norm2
from condgrad.protocols import Point, Problem, Solver
from condgrad.storage.stored import check_array, stored

LMO_ACCURACY = 0.1
"""Accuracy of the linear oracle in the warm start, relative to the gap of the step before; in the first step, to a lower bound on
the gap."""


def _validate(state: WarmStartState) -> None:
    if whole(state.k, "k", least=-state.steps) >= 0:
        raise ValueError("the warm start is over")
    check_array(state.block, (state.x.shape[1], np.shape(state.block)[-1]), "block")
    not_negative(state.gap, "gap")
    if not isnan(state.L):
        positive(state.L, "L")


@stored(validate=_validate)
@dataclass(frozen=True, kw_only=True)
class WarmStartState:
    """State of a warm start, before step 0 of the method: ``k`` goes from -steps to -1."""

    k: int
    x: Point
    L: float
    """The smoothness of the objective; NaN: not known."""
    steps: int
    """Number of steps of the warm start."""
    block: np.ndarray
    """Vectors from which the next call of the linear oracle starts."""
    gap: float
    """Frank-Wolfe gap of the last step."""
    certificate: None = None
    descent: None = None
    phase: ClassVar[str] = "warm-start"


@dataclass(frozen=True)
class WarmStart:
    """Take ``steps`` Frank-Wolfe steps, numbered from -steps + 1 to 0, then those of ``solver`` from the point reached.

    Step 0 ends with the initial state of the solver. The oracle calls of the Frank-Wolfe steps are counted like all others.

    Parameters
    ----------
    solver : Solver
        The method to start.
    steps : int
        Number of Frank-Wolfe steps.
    """

    solver: Solver
    steps: int

    def init(self, problem: Problem, x0: Point) -> Any:
        """Return the state before the first Frank-Wolfe step."""
        if self.steps == 0:
            return self.solver.init(problem, x0)
        L, block = problem.objective.smoothness, np.zeros((problem.domain.shape[1], 0))
        return WarmStartState(k=-self.steps, x=x0, L=L or nan, steps=self.steps, block=block, gap=0.0)

    def step(self, problem: Problem, state: Any) -> Any:
        """Return the state after one Frank-Wolfe step, or, once these are done, after one step of the solver."""
        if not isinstance(state, WarmStartState):
            return self.solver.step(problem, state)
        k, x = self.steps + state.k, state.x
        grad = problem.objective.grad(x)
        known = state.gap or least_gap(problem.domain, grad, x)
        s, block = problem.domain.lmo_near(grad, state.block, LMO_ACCURACY * known)
        gap = max(inner(grad, x - s), 0.0)
        x = x + 2 / (k + 2) * (s - x)
        if state.k == -1:
            return self.solver.init(problem, x)
        return WarmStartState(k=state.k + 1, x=x, L=state.L, steps=self.steps, block=block, gap=gap)


def least_gap(domain: Any, grad: Point, x: Point) -> float:
    """Return a lower bound on the Frank-Wolfe gap at x; 0 if none is known without the linear oracle.

    The largest singular value of the gradient is at least the root mean square of all of them.
    """
    if domain.spectrum != "singular" or domain.narrowest != 1:
        return 0.0
    return max(inner(grad, x) + domain.trace * sqrt(norm2(grad) / min(grad.shape)), 0.0)
