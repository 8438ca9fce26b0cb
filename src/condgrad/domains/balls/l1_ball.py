"""The l1 ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.linalg.selection import index_of_largest_size, indices_in_increasing_order
from condgrad.linalg.simplex_projection import onto_simplex
from condgrad.points.sparse_array import SparseArray
from condgrad.points.stack import Stack


@final
@dataclass(frozen=True)
class L1Ball(Ball):
    """{x : sum |x_i| <= r}

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    radius : float, default 1.0
        The radius r.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> ball = cg.L1Ball(3, 2.0)
    >>> ball.lmo(np.array([1.0, -3.0, 0.0])), ball.atom(np.array([1.0, -3.0, 0.0]))
    (array([0., 2., 0.]), SparseArray(1 entries, shape (3,)))
    """

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()

    def norm(self, x: np.ndarray) -> float:
        return float(np.abs(x).sum())

    @property
    def max_norm(self) -> float:
        return self.radius

    def atom(self, direction: np.ndarray) -> SparseArray:
        direction = self._point(direction)
        largest = index_of_largest_size(direction)
        return SparseArray(largest, -math.copysign(self.radius, direction.reshape(-1)[largest]), self.shape)

    def atoms(self, direction: np.ndarray, number: int) -> Stack:
        """The best vertices, at most ``number`` of them and the best one first, found in about two passes."""
        direction = self._point(direction)
        order = indices_in_increasing_order(direction, number, sizes=True)
        return Stack.of_single_entries(order, -np.copysign(self.radius, direction.reshape(-1)[order]), self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()

    def project(self, x: np.ndarray) -> np.ndarray:
        x = checks.finite(self._point(x), type(self).__name__, self.max_norm)
        return x if self.norm(x) <= self.radius else np.sign(x) * onto_simplex(np.abs(x), self.radius)


def _l1_balls() -> Examples:
    return {"": L1Ball(5, 2.0), "of matrices": L1Ball((2, 2), 0.1), "of one": L1Ball(1, 3.0)}


def _in_l1_ball(ball: L1Ball, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, np.abs(x).sum(), rng)


def _l1_vertices(ball: L1Ball) -> np.ndarray:
    one = np.eye(math.prod(ball.shape))
    return ball.radius * np.concatenate([one, -one]).reshape(-1, *ball.shape)


ENTRY = DomainEntry(
    "l1-ball", L1Ball, "{x : |x|_1 <= r}", "the vertex at the largest entry, with the opposite sign",
    _l1_balls, _in_l1_ball, vertices=_l1_vertices,
)  # fmt: skip
