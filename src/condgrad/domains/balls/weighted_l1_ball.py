"""The weighted l1 ball."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.linalg.selection import index_of_largest_size
from condgrad.points.sparse_array import SparseArray


@final
@dataclass(frozen=True, eq=False)
class WeightedL1Ball(Ball):
    """{x : sum w_i |x_i| <= r}, with weights w > 0

    The ball of the adaptive lasso: an entry with a large weight is kept small. The projection is exact, by Newton's method on a
    piecewise linear equation.

    Parameters
    ----------
    weights : array_like of float
        The weights w, all positive; their shape is that of the points.
    radius : float, default 1.0
        The radius r.

    References
    ----------
    H. Zou, "The adaptive lasso and its oracle properties", Journal of the American Statistical Association 101 (2006).

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> ball = cg.WeightedL1Ball([1.0, 4.0], 2.0)
    >>> ball.lmo(np.array([1.0, -3.0])), ball.lmo(np.array([1.0, -5.0]))
    (array([-2.,  0.]), array([0. , 0.5]))
    """

    weights: Any
    radius: float = 1.0
    shape: Shape = field(init=False, repr=False)
    _relative: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = checks.finite_array(self.weights, "The array of weights of WeightedL1Ball")
        if np.any(weights <= 0):
            worst = float(weights.min())
            raise ValueError(f"The weights of WeightedL1Ball must be positive, but one is {worst:g}: give larger ones.")
        checks.settle(self, weights=weights, shape=weights.shape)
        self._settle()
        checks.settle(self, _relative=checks.read_only(weights / weights.min()))

    def norm(self, x: np.ndarray) -> float:
        return float(self.weights.reshape(-1) @ np.abs(x).reshape(-1))

    @property
    def max_norm(self) -> float:
        return self.radius / float(self.weights.min())

    def atom(self, direction: np.ndarray) -> SparseArray:
        direction = self._point(direction)
        largest = index_of_largest_size(direction, self._relative)
        size = self.radius / self.weights.reshape(-1)[largest]
        return SparseArray(largest, -math.copysign(size, direction.reshape(-1)[largest]), self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()

    def project(self, x: np.ndarray) -> np.ndarray:
        """sign(x) max(|x| - theta w, 0); the norm falls in theta and is convex, so Newton's steps from 0 never go too far.

        Where the weights differ much, rounding of |x| - theta w changes the norm by more than a factor near 1 can correct. A last
        step, from these differences, corrects it.
        """
        x = checks.finite(self._point(x), type(self).__name__, self.max_norm)
        if self.norm(x) <= self.radius:
            return x
        size, w = np.abs(x), self.weights
        kept, theta, count = size > 0, 0.0, x.size + 1
        while 0 < kept.sum() < count:
            count, theta = kept.sum(), self._excess(size, kept)
            kept = size > theta * w
        found = np.maximum(size - theta * w, 0.0)
        found = np.maximum(found - (found > 0) * w * self._excess(found, found > 0), 0.0)
        return self._onto_boundary(np.copysign(found, x))

    def _excess(self, size: np.ndarray, kept: np.ndarray) -> float:
        """The theta for which the kept entries of size - theta w have the norm r."""
        w = self.weights[kept]
        return float(w @ size[kept] - self.radius) / (float(w @ w) or 1.0)


def _weighted_l1_balls() -> Examples:
    return {
        "": WeightedL1Ball([1.0, 0.5, 2.0, 3.0, 1.0], 2.0),
        "of matrices": WeightedL1Ball([[1.0, 10.0], [0.1, 1.0]], 0.5),
        "of one": WeightedL1Ball([4.0]),
    }


def _in_weighted_l1_ball(ball: WeightedL1Ball, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.sum(ball.weights * np.abs(x))), rng)


def _weighted_l1_vertices(ball: WeightedL1Ball) -> np.ndarray:
    corners = np.diag(ball.radius / ball.weights.ravel())
    return np.concatenate([corners, -corners]).reshape(-1, *ball.shape)


ENTRY = DomainEntry(
    "weighted-l1-ball", WeightedL1Ball, "{x : sum w_i |x_i| <= r}",
    "the vertex at the largest |direction_i| / w_i, with the opposite sign",
    _weighted_l1_balls, _in_weighted_l1_ball, vertices=_weighted_l1_vertices, arrays=("weights",),
)  # fmt: skip
