"""Several folds of the rows of one problem, which a search fits and judges together.

With few rows, a single held-out part is too small to choose a loss or a radius.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condgrad.learn.linear_problem import Fit, LinearProblem
from condgrad.objectives import Loss

Coefficients = tuple[np.ndarray, ...]
"""Coefficients of each fold."""


@dataclass(frozen=True, eq=False)
class Folds:
    """The training rows of all folds, or their held-out rows. Errors of the rows of all folds are concatenated."""

    problems: list[LinearProblem]
    """One problem for each fold."""

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the rows; None if all weights are equal."""
        found = [problem.weights for problem in self.problems if problem.weights is not None]
        return np.concatenate(found) if found else None

    def with_constraint(self, constraint: str | None) -> Folds:
        """The same folds with another constraint."""
        return Folds([problem.with_constraint(constraint) for problem in self.problems])

    def zero(self) -> Coefficients:
        """Coefficients of 0."""
        return tuple(problem.zero() for problem in self.problems)

    def fit(self, loss: Loss, radius: float | None, start: Coefficients, scale: float = 1.0) -> Fit:
        """Fit each fold. The result is that of the last fold. The fit is binding if the fit of any fold is binding."""
        fits = [problem.fit(loss, radius, x, scale) for problem, x in zip(self.problems, start, strict=True)]
        return Fit(tuple(fit.x for fit in fits), fits[-1].result, any(fit.binding for fit in fits))

    def errors(self, x: Coefficients) -> np.ndarray:
        """Predictions minus targets, of shape (rows, tasks)."""
        return np.concatenate([problem.errors(W) for problem, W in zip(self.problems, x, strict=True)])

    def first_radius(self, scale: float) -> float:
        """Length of the first Frank-Wolfe step of least squares in the first fold."""
        return self.problems[0].first_radius(scale)

    def norm(self, x: Coefficients) -> float:
        """The largest norm of the coefficients of any fold."""
        return max(problem.norm(W) for problem, W in zip(self.problems, x, strict=True))

    def robust_start(self) -> Coefficients | None:
        """Coefficients from which a redescending loss can start; None if there are too few rows or too many features."""
        starts = [problem.robust_start() for problem in self.problems]
        found = tuple(start for start in starts if start is not None)
        return found if len(found) == len(starts) else None
