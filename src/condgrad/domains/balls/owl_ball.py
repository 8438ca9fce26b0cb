"""The ball of the ordered weighted l1 norm (OWL, SLOPE)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.linalg.selection import indices_of_smallest

STEPS = 200
"""Of Newton's method with bisection, which needs about ten."""


@final
@dataclass(frozen=True, eq=False)
class OWLBall(Ball):
    """{x : sum w_i |x|_(i) <= r}, with weights w_1 >= ... >= w_n >= 0 for the sizes of the entries in falling order

    The ball of the ordered weighted l1 norm, the penalty of SLOPE: entries that are correlated get equal sizes. Equal weights
    give the l1 ball, weights (1, 0, ..., 0) the l-infinity ball, weights that fall linearly OSCAR. A linear minimisation is a
    sort. The projection is exact: Newton's method on a piecewise linear equation, each step an isotonic regression.

    Parameters
    ----------
    weights : array_like of float, shape (n,)
        The weights w, falling and not negative, the first one positive.
    radius : float, default 1.0
        The radius r.

    References
    ----------
    M. Bogdan, E. van den Berg, C. Sabatti, W. Su and E. J. Candès, "SLOPE: adaptive variable selection via convex
    optimization", Annals of Applied Statistics 9 (2015).
    X. Zeng and M. Figueiredo, "The ordered weighted l1 norm: atomic formulation, projections, and algorithms",
    arXiv:1409.4271 (2014).

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> ball = cg.OWLBall([2.0, 1.0, 1.0], 3.0)
    >>> ball.lmo(np.array([5.0, -1.0, 0.0])), ball.lmo(np.array([5.0, -4.0, 0.0]))
    (array([-1.5,  0. ,  0. ]), array([-1.,  1.,  0.]))
    """

    weights: Any
    radius: float = 1.0
    shape: Shape = field(init=False, repr=False)
    _totals: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = checks.finite_array(self.weights, "The list of weights of OWLBall")
        if weights.ndim != 1 or not weights.size or np.any(np.diff(weights) > 0) or weights[-1] < 0 or weights[0] <= 0:
            raise ValueError(
                "The weights of OWLBall must be a list of falling numbers, the first one positive and none negative: "
                "sort them in falling order."
            )
        totals = checks.read_only(np.cumsum(weights))
        checks.settle(self, weights=weights, shape=weights.shape, _totals=totals)
        self._settle()

    def norm(self, x: np.ndarray) -> float:
        return float(self.weights @ np.sort(np.abs(x))[::-1])

    @property
    def max_norm(self) -> float:
        """Of the vertices r / (w_1 + ... + w_k) at k entries."""
        return self.radius * float(np.max(np.sqrt(np.arange(1, self.shape[0] + 1)) / self._totals))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        direction = self._direction(direction)
        rising = np.abs(direction)
        rising.sort()
        rising /= rising[-1] or 1.0
        sums = np.cumsum(rising[::-1])
        sums /= self._totals
        k = int(np.argmax(sums)) + 1
        largest = indices_of_smallest(direction, k, sizes=True)  # which needs no order, as a sort of positions does
        vertex = np.zeros(self.shape)
        vertex[largest] = -np.copysign(self.radius / self._totals[k - 1], direction[largest])
        return vertex

    def project(self, x: np.ndarray) -> np.ndarray:
        """The prox of theta times the norm, which is an isotonic regression, for the theta with which its norm is r."""
        from scipy.optimize import isotonic_regression

        x = checks.finite(self._point(x), type(self).__name__, self.max_norm)
        size = self.norm(x)
        if size <= self.radius:
            return x
        order = np.argsort(-np.abs(x), kind="stable")
        z, w, r = np.abs(x)[order], self.weights, self.radius
        low, high, theta = 0.0, float(np.max(np.cumsum(z) / np.cumsum(w))), 0.0  # with theta = high all of it is 0
        for step in range(STEPS):
            fit = isotonic_regression(z - theta * w, increasing=False)
            found = np.maximum(fit.x, 0.0)
            excess = float(w @ found) - r
            low, high = (theta, high) if excess > 0 else (low, theta)
            starts = fit.blocks[:-1]
            mean = np.add.reduceat(w, starts) / np.diff(fit.blocks)
            slope = float(np.sum((np.diff(fit.blocks) * mean**2)[found[starts] > 0]))
            following = theta + excess / slope if slope > 0 else (low + high) / 2
            if following == theta:
                break
            if step % 3 == 2 or not low < following < high:
                following = (low + high) / 2
            if following in (theta, low, high):
                break
            theta = following
        point = np.empty(self.shape)
        point[order] = found
        return self._onto_boundary(np.copysign(point, x))


def _owl_balls() -> Examples:
    return {
        "": OWLBall([3.0, 2.0, 1.0, 0.5], 2.0),
        "with equal weights": OWLBall([0.5, 0.5, 0.5]),
        "with the largest only": OWLBall([2.0, 0.0, 0.0], 3.0),
        "of one": OWLBall([4.0], 2.0),
    }


def _in_owl_ball(ball: OWLBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, max(ball.weights @ np.abs(x)[list(p)] for p in itertools.permutations(range(len(x)))), rng)


def _owl_vertices(ball: OWLBall) -> np.ndarray:
    """All of them, and more points of the set: any k entries of size r / (w_1 + ... + w_k)."""
    signs = np.array([s for s in itertools.product([-1.0, 0.0, 1.0], repeat=ball.shape[0]) if any(s)])
    counts = np.count_nonzero(signs, axis=1)
    return signs * (ball.radius / np.cumsum(ball.weights)[counts - 1])[:, None]


ENTRY = DomainEntry(
    "owl-ball", OWLBall, "{x : sum w_i |x|_(i) <= r}",
    "equal sizes at the k largest entries, with the opposite signs, for the best k",
    _owl_balls, _in_owl_ball, vertices=_owl_vertices, arrays=("weights",),
)  # fmt: skip
