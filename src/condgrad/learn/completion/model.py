"""The class `Model`: the model of a completion, which is a low-rank matrix plus biases."""

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
    """A low-rank matrix x and biases, with the loss and the settings with which they were fitted."""

    x: LowRank
    biases: Biases
    loss: Loss
    sigma: float
    """Scale of the errors of inliers, which determines the width of the loss."""
    radius: float = 0.0
    """Radius of the nuclear-norm ball."""
    rank: int | None = None
    """Maximum rank of x, if x was refitted in a ball so large that its singular values are not shrunk; None otherwise."""
    state: NCGSState | None = None
    """State of the solver after the last step. None if the solver should start from x."""
    value: float = np.nan
    """Loss after the solver's steps of the last round, before the refit of the biases that ends a round (see ``Fit.improve``)."""
    result: Result | None = None
    """Result of the last run of the solver on all entries."""

    def solver_state(self, solver: NCGS, problem: Problem) -> NCGSState:
        """The state from which the solver continues: the state of the last step, adapted to L of this problem, or a new state."""
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
        """U and V such that U V' is the matrix of all predictions, including the biases."""
        U, V = (np.concatenate(parts, axis=1) for parts in zip(self.x.factors(), self.biases.factors(), strict=True))
        return U, V
