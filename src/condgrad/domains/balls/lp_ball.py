"""The lp balls between l1 and l-infinity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape, entrywise_norm
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal

_OWN_CLASS = {1.0: "L1Ball", 2.0: "L2Ball", math.inf: "LinfBall"}


@final
@dataclass(frozen=True)
class LpBall(Ball):
    """{x : sum |x_i|^p <= r^p}, 1 < p < inf and p != 2

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    p : float
        The exponent.
    radius : float, default 1.0
        The radius r.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.LpBall(2, 3.0).lmo(np.array([1.0, 0.0]))
    array([-1., -0.])
    """

    shape: Shape
    p: float
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()
        if self.p in _OWN_CLASS:
            raise ValueError(f"LpBall got p = {self.p}, which has a class of its own: use {_OWN_CLASS[self.p]}.")
        checks.settle(self, p=checks.real(self.p, "The p of LpBall"))
        if self.p < 1:
            raise ValueError(f"The p of LpBall must be above 1, but got {self.p}: below 1 the set is not convex.")

    def norm(self, x: np.ndarray) -> float:
        return entrywise_norm(x, self.p)

    @property
    def max_norm(self) -> float:
        return self.radius * math.prod(self.shape) ** max(0.0, 0.5 - 1 / self.p)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """Equality in Hoelder's: |x_i| goes with |direction_i|^(q - 1), and q - 1 = 1 / (p - 1)."""
        direction = self._direction(direction)
        size = np.abs(direction)
        size /= size.max() or 1.0
        weight = size ** (1 / (self.p - 1))
        power = float(np.vdot(size, weight))  # the sum of weight^p, as weight^(p - 1) is the size
        weight *= self.radius / (power ** (1 / self.p) or 1.0)
        return np.copysign(weight, -direction, out=weight)


def _lp_balls() -> Examples:
    return {
        "": LpBall(5, 3.0, 2.0),
        "1.5": LpBall(4, 1.5, 0.5),
        "1.01": LpBall(3, 1.01),
        "80 of matrices": LpBall((2, 2), 80.0, 3.0),
    }


def _in_lp_ball(ball: LpBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, entrywise_norm(x, ball.p), rng)


def _lp_minimum(ball: LpBall, g: np.ndarray) -> float:
    return -ball.radius * entrywise_norm(g, ball.p / (ball.p - 1))


ENTRY = DomainEntry(
    "lp-ball", LpBall, "{x : |x|_p <= r}", "the case of equality in Hoelder's inequality",
    _lp_balls, _in_lp_ball, _lp_minimum,
)  # fmt: skip
