"""An objective plus a penalty of each variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.objectives.losses import Loss, check_loss
from condgrad.points.rounding import grad_scale
from condgrad.protocols import Objective, Point, missing


@final
@dataclass(frozen=True, eq=False)
class Penalized:
    """F(x) + strength sum_j phi(x_j, 0), with a smooth penalty phi such as the Moreau envelopes ``MCP`` and ``SCAD``.

    Parameters
    ----------
    objective : Objective
        F, on points that are arrays; its ``value`` and ``grad`` are used.
    penalty : Loss
        phi, a loss for real labels.
    strength : float, default 1.0
        Weight of the penalty; positive.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(100, 6))
    >>> F = cg.LinearModel(A, A[:, 0] + 0.1 * rng.normal(size=100), cg.Squared())
    >>> sparse = cg.Penalized(F, cg.MCP(lam=0.3, gamma=3.0, mu=0.05))
    >>> cg.minimize(sparse, cg.Box(-2 * np.ones(6), 2 * np.ones(6)), tol=1e-6).x.round(2)
    array([1., 0., 0., 0., 0., 0.])
    """

    objective: Any
    penalty: Loss
    strength: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.objective, type):
            name = self.objective.__name__
            raise TypeError(f"The objective is the class {name}, an instance was expected: {name}(...).")
        lacking = missing(self.objective, Objective)
        if lacking:
            raise TypeError(
                f"Penalized needs an objective with value and grad, {type(self.objective).__name__} has no {lacking[0]}: give "
                "one such as LinearModel or Function."
            )
        check_loss(self.penalty, np.zeros(0))
        if self.penalty.labels != "real":
            raise ValueError(
                f"{type(self.penalty).__name__} is a loss for labels -1 and 1, a penalty of each variable was expected: use MCP, "
                "SCAD, SmoothedAbsolute or another loss for real labels."
            )
        checks.settle(self, strength=checks.positive(self.strength, "The strength of Penalized"))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the points."""
        return getattr(self.objective, "shape", None)

    @property
    def smoothness(self) -> float | None:
        """L of F and of the penalty together; None if F's is not known."""
        return self._sum("smoothness")

    @property
    def lower_smoothness(self) -> float | None:
        """l of F and of the penalty together; None if F's is not known."""
        return self._sum("lower_smoothness")

    @property
    def lower_bound(self) -> float | None:
        """That of F: penalties are not negative."""
        return getattr(self.objective, "lower_bound", None)

    @property
    def precision(self) -> float | None:
        """Machine epsilon of F's gradients; None if F does not state it."""
        return getattr(self.objective, "precision", None)

    def grad_scale(self, x: Point) -> float:
        """A bound on the sum of the norms of the terms of F's gradient, for the rounding of certificates; 0 if F does not state
        it."""
        return grad_scale(self.objective, x)

    def value(self, x: Point) -> float:
        """Return F(x) and the penalty together."""
        x = checks.point(x, self.shape, "Penalized")
        return float(self.objective.value(x)) + self.strength * float(np.sum(self.penalty.value(x, np.zeros(1))))

    def grad(self, x: Point) -> np.ndarray:
        """Return the gradient of both."""
        x = checks.point(x, self.shape, "Penalized")
        return self.objective.grad(x) + self.strength * self.penalty.deriv(x, np.zeros(1))

    def _sum(self, constant: str) -> float | None:
        own = getattr(self.objective, constant, None)
        return None if own is None else own + self.strength * getattr(self.penalty, constant)
