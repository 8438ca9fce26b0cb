"""The Euclidean ball."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape, entrywise_norm, is_safe
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal


@final
@dataclass(frozen=True)
class L2Ball(Ball):
    """{x : sum x_i^2 <= r^2}

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    radius : float, default 1.0
        The radius r.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.L2Ball(2, 10.0).lmo(np.array([3.0, -4.0]))
    array([-6.,  8.])
    """

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()

    def norm(self, x: np.ndarray) -> float:
        return entrywise_norm(x, 2)

    @property
    def max_norm(self) -> float:
        return self.radius

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.minimum_and_vertex(direction)[1]()

    def minimum_and_vertex(self, direction: np.ndarray) -> tuple[float, Callable[[], np.ndarray]]:
        """Return the minimum of <direction, x> (NaN if it may overflow or vanish), and a function that returns the minimiser."""
        direction, square = checks.direction_and_square(direction, self.shape, "L2Ball")
        if not is_safe(square):
            return math.nan, lambda: -self._onto_sphere(direction)
        length = math.sqrt(square)
        return -self.radius * length, lambda: -self.radius / length * direction

    def project(self, x: np.ndarray) -> np.ndarray:
        x = checks.finite(self._point(x), type(self).__name__)
        return x if self.norm(x) <= self.radius else self._onto_sphere(x)

    def _onto_sphere(self, x: np.ndarray) -> np.ndarray:
        """r x / |x|, and 0 for 0; the largest entry is divided out first: no square may overflow or vanish."""
        scaled = x / (np.abs(x).max() or 1.0)
        return self.radius / (np.linalg.norm(scaled) or 1.0) * scaled


def _l2_balls() -> Examples:
    return {"": L2Ball((2, 3), 0.5), "of one": L2Ball(1, 7.0)}


def _in_l2_ball(ball: L2Ball, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.norm(x)), rng)


def _l2_minimum(ball: L2Ball, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm(g))


ENTRY = DomainEntry(
    "l2-ball", L2Ball, "{x : |x|_2 <= r}", "the direction, reversed and scaled to the sphere",
    _l2_balls, _in_l2_ball, _l2_minimum,
)  # fmt: skip
