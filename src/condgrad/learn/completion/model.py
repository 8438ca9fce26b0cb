"""The model of a completion: a low-rank matrix, biases, and the loss that they were fitted with."""

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
    """Scale of ordinary errors, which determines the width of the loss."""
    radius: float = 0.0
    rank: int | None = None
    """Maximum rank of x if its singular values were refitted without an active radius (unshrunk); None if the radius limits x."""
    state: NCGSState | None = None
    """State of the solver after the last step; None: the solver starts from x."""
    value: float = np.nan
    """Loss before the last refit of the biases."""
    result: Result | None = None
    """Result of the last run of the solver on all entries."""

    def solver_state(self, solver: NCGS, problem: Problem) -> NCGSState:
        """The state to start from: that of the last step, if there is one, adapted to the smoothness of this problem."""
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

    def predict(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Predictions at the entries (rows, cols)."""
        return kernels.sample_at(rows, cols, *self.factors())

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """U and V with U V' the matrix of all predictions, biases included."""
        U, V = (np.concatenate(parts, axis=1) for parts in zip(self.x.factors(), self.biases.factors(), strict=True))
        return U, V
