"""The l-infinity ball."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal


@final
@dataclass(frozen=True)
class LinfBall(Ball):
    """{x : max |x_i| <= r}

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    radius : float, default 1.0
        The radius r.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.LinfBall(3, 2.0).lmo(np.array([3.0, -4.0, 0.0]))
    array([-2.,  2.,  2.])
    """

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()

    def norm(self, x: np.ndarray) -> float:
        return float(np.abs(x).max())

    @property
    def max_norm(self) -> float:
        return self.radius * math.sqrt(math.prod(self.shape))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        # not -r sign(direction): where the direction is 0 that is no vertex, and active sets live on vertices
        vertex = 0.0 - self._direction(direction)
        return np.copysign(self.radius, vertex, out=vertex)

    def project(self, x: np.ndarray) -> np.ndarray:
        return np.clip(checks.finite(self._point(x), type(self).__name__), -self.radius, self.radius)


def _linf_balls() -> Examples:
    return {"": LinfBall(4, 1.5), "of one": LinfBall(1)}


def _in_linf_ball(ball: LinfBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, np.abs(x).max(), rng)


def _linf_vertices(ball: LinfBall) -> np.ndarray:
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=math.prod(ball.shape))))
    return ball.radius * signs.reshape(-1, *ball.shape)


ENTRY = DomainEntry(
    "linf-ball", LinfBall, "{x : |x|_inf <= r}", "r with the opposite sign of each entry",
    _linf_balls, _in_linf_ball, vertices=_linf_vertices,
)  # fmt: skip
