r"""A short Frank-Wolfe run before a method that slides over a spectral set.

From 0 the first prox points have nearly full rank, and that is where the time goes. A few Frank-Wolfe steps with 2/(k+2) give
a start whose rank is at most their number. The linear oracle is asked only for a tenth of the last gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.points import inner
from condgrad.protocols import Point, Problem, Solver

ACCURACY = 0.1


@dataclass(frozen=True)
class WarmStart:
    """``solver``, begun where ``steps`` Frank-Wolfe steps lead; their oracle calls are counted like all others."""

    solver: Solver
    steps: int

    def init(self, problem: Problem, x0: Point) -> Any:
        x, gap = x0, 0.0
        block = np.zeros((problem.domain.shape[1], 0))
        for k in range(self.steps):
            grad = problem.objective.grad(x)
            s, block = problem.domain.lmo_near(grad, block, ACCURACY * gap)
            gap = max(inner(grad, x - s), 0.0)
            x = x + 2 / (k + 2) * (s - x)
        return self.solver.init(problem, x)

    def step(self, problem: Problem, state: Any) -> Any:
        return self.solver.step(problem, state)
