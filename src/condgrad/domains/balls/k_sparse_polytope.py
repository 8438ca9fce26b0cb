"""The k-sparse polytope."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.linalg.clipped_shift import clipped_shift
from condgrad.linalg.selection import indices_of_smallest
from condgrad.points.sparse_array import SparseArray


@final
@dataclass(frozen=True)
class KSparsePolytope(Ball):
    """{x : |x|_1 <= k r, |x|_inf <= r}, the convex hull of the vectors with at most k entries from -r to r that are not 0

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    k : int
        Number of entries of a vertex that are not 0, from 1 (the l1 ball) to the number of all (the l-infinity ball).
    radius : float, default 1.0
        The radius r.

    References
    ----------
    M. Besançon, A. Carderera and S. Pokutta, "FrankWolfe.jl: a high-performance and flexible toolbox for Frank-Wolfe
    algorithms and conditional gradients", INFORMS Journal on Computing 34 (2022).

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.KSparsePolytope(4, 2, 0.5).lmo(np.array([1.0, -3.0, 2.0, 0.0]))
    array([ 0. ,  0.5, -0.5,  0. ])
    """

    shape: Shape
    k: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()
        checks.settle(self, k=checks.entry_count(self.k, self.shape, "KSparsePolytope"))

    def norm(self, x: np.ndarray) -> float:
        size = np.abs(x)
        return float(max(size.max(), size.sum() / self.k))

    @property
    def max_norm(self) -> float:
        return self.radius * math.sqrt(self.k)

    def atom(self, direction: np.ndarray) -> SparseArray:
        direction = self._point(direction)
        largest = indices_of_smallest(direction, self.k, sizes=True)
        return SparseArray(largest, -np.copysign(self.radius, direction.reshape(-1)[largest]), self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()

    def project(self, x: np.ndarray) -> np.ndarray:
        x = checks.finite(self._point(x), type(self).__name__, self.max_norm)
        clipped = np.clip(x, -self.radius, self.radius)
        if np.abs(clipped).sum() <= self.k * self.radius:
            return clipped
        return np.sign(x) * clipped_shift(np.abs(x), 0.0, self.radius, self.k * self.radius)


def _k_sparse_polytopes() -> Examples:
    return {
        "": KSparsePolytope(5, 2, 1.5),
        "of matrices": KSparsePolytope((2, 2), 3, 0.1),
        "with one": KSparsePolytope(3, 1),
        "with all": KSparsePolytope(3, 3, 2.0),
    }


def _in_k_sparse_polytope(polytope: KSparsePolytope, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(polytope.shape, rng)
    return in_ball(polytope, x, max(np.abs(x).max(), np.abs(x).sum() / polytope.k), rng)


def _k_sparse_vertices(polytope: KSparsePolytope) -> np.ndarray:
    found = []
    for places in itertools.combinations(range(math.prod(polytope.shape)), polytope.k):
        for signs in itertools.product([-1.0, 1.0], repeat=polytope.k):
            vertex = np.zeros(polytope.shape)
            vertex.flat[list(places)] = polytope.radius * np.array(signs)
            found.append(vertex)
    return np.array(found)


ENTRY = DomainEntry(
    "k-sparse-polytope", KSparsePolytope, "{x : |x|_1 <= k r, |x|_inf <= r}",
    "r at the k largest entries, with the opposite signs",
    _k_sparse_polytopes, _in_k_sparse_polytope, vertices=_k_sparse_vertices,
)  # fmt: skip
