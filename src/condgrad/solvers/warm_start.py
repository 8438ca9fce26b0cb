r"""Warm start of a sliding method on a spectral set: a few Frank-Wolfe steps.

From 0 the first prox points have nearly full rank and take most of the time. A few Frank-Wolfe steps of length 2/(k+2) give a
start whose rank is at most their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.points import inner
from condgrad.protocols import Point, Problem, Solver

LMO_ACCURACY = 0.1
"""Accuracy of the linear oracle in the warm start, relative to the gap of the step before."""


@dataclass(frozen=True)
class WarmStart:
    """Run ``steps`` Frank-Wolfe steps in ``init``, then ``solver`` from the point reached.

    The oracle calls of the Frank-Wolfe steps are counted like all others.

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
        """Return the solver's initial state after the Frank-Wolfe steps from x0."""
        x, gap = x0, 0.0
        block = np.zeros((problem.domain.shape[1], 0))
        for k in range(self.steps):
            grad = problem.objective.grad(x)
            s, block = problem.domain.lmo_near(grad, block, LMO_ACCURACY * gap)
            gap = max(inner(grad, x - s), 0.0)
            x = x + 2 / (k + 2) * (s - x)
        return self.solver.init(problem, x)

    def step(self, problem: Problem, state: Any) -> Any:
        """Return the state after one step of the solver."""
        return self.solver.step(problem, state)
