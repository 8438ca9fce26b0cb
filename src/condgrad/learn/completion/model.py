"""What a completion is made of: a matrix of low rank, biases, and the loss that they were fitted with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from condgrad import kernels
from condgrad.driver import Result
from condgrad.learn.completion.biases import Biases
from condgrad.objectives.losses import Loss
from condgrad.points import LowRank
from condgrad.protocols import Problem
from condgrad.solvers.ncgs import NCGS, NCGSState


@dataclass(frozen=True, eq=False)
class Model:
    """x + biases, and the loss that they were fitted with."""

    x: LowRank
    biases: Biases
    loss: Loss
    sigma: float
    radius: float = 0.0
    rank: int | None = None
    """The rank that x may have, where it is not the radius that limits it."""
    state: NCGSState | None = None
    """Of the engine, which led to x."""
    value: float = np.nan
    """Of the loss, before the biases were refitted."""
    result: Result | None = None

    def begun(self, solver: NCGS, problem: Problem) -> NCGSState:
        """The state to begin with: that in which the last steps ended, for what the problem is now."""
        if self.state is None:
            return solver.init(problem, self.x)
        L = problem.objective.smoothness
        local = self.state.local * (L / self.state.L)
        return replace(
            self.state,
            k=0,
            x=self.x,
            theta_ag=self.x,
            L=L,
            local=local,
            due=False,
            fun=None,
            grad=None,
            descent_fun=None,
        )

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return kernels.sample_at(rows, cols, *self.factors())

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """U and V with U V' all that the model predicts."""
        U, V = (np.concatenate(parts, axis=1) for parts in zip(self.x.factors(), self.biases.factors(), strict=True))
        return U, V
