"""The hypersimplex."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.linalg.clipped_shift import clipped_shift
from condgrad.linalg.selection import finite_size, indices_of_smallest
from condgrad.points.sparse_array import SparseArray


@final
@dataclass(frozen=True)
class Hypersimplex:
    """{x : 0 <= x <= r, sum x = k r}, the convex hull of the vectors with k entries r and all others 0

    The relaxation of choosing k of n, for example sensors or experiments.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    k : int
        Number of entries of a vertex that are not 0.
    radius : float, default 1.0
        The largest entry r.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.Hypersimplex(4, 2).lmo(np.array([1.0, -3.0, 0.0, 2.0]))
    array([0., 1., 1., 0.])
    """

    shape: Shape
    k: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        radius = checks.positive(self.radius, "The radius of Hypersimplex")
        shape = checks.as_shape(self.shape, "Hypersimplex")
        checks.settle(self, shape=shape, k=checks.entry_count(self.k, shape, "Hypersimplex"), radius=radius)

    @property
    def diameter(self) -> float:
        return self.radius * math.sqrt(2 * min(self.k, math.prod(self.shape) - self.k))

    @property
    def max_norm(self) -> float:
        return self.radius * math.sqrt(self.k)

    def atom(self, direction: np.ndarray) -> SparseArray:
        flat = checks.point(direction, self.shape, "Hypersimplex").reshape(-1)
        smallest = indices_of_smallest(flat, self.k)
        finite_size(flat[smallest])
        return SparseArray(smallest, self.radius, self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()

    def project(self, x: np.ndarray) -> np.ndarray:
        x = checks.finite_point(x, self.shape, "Hypersimplex", self.max_norm)
        return clipped_shift(x, 0.0, self.radius, self.k * self.radius)

    def start(self) -> np.ndarray:
        return np.full(self.shape, self.radius * self.k / math.prod(self.shape))

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        x, slack = checks.point(x, self.shape, "Hypersimplex"), tolerance * self.max_norm
        inside = np.all((x >= -slack) & (x <= self.radius + slack))
        return bool(inside and abs(np.sum(x) - self.k * self.radius) <= math.sqrt(self.k) * slack)


def _hypersimplexes() -> Examples:
    return {
        "": Hypersimplex(5, 2, 1.5),
        "of matrices": Hypersimplex((2, 3), 4, 0.1),
        "with one": Hypersimplex(3, 1),
        "with all": Hypersimplex(3, 3, 2.0),
    }


def _in_hypersimplex(domain: Hypersimplex, rng: np.random.Generator) -> np.ndarray:
    """A random mean of vertices."""
    x, size = np.zeros(domain.shape), math.prod(domain.shape)
    for share in rng.dirichlet(np.ones(4)):
        x.flat[rng.choice(size, domain.k, replace=False)] += share * domain.radius
    return x


def _hypersimplex_vertices(domain: Hypersimplex) -> np.ndarray:
    chosen = list(itertools.combinations(range(math.prod(domain.shape)), domain.k))
    vertices = np.zeros((len(chosen), math.prod(domain.shape)))
    np.put_along_axis(vertices, np.array(chosen), domain.radius, axis=1)
    return vertices.reshape(-1, *domain.shape)


ENTRY = DomainEntry(
    "hypersimplex", Hypersimplex, "{x : 0 <= x <= r, sum x = k r}", "r at the k smallest entries",
    _hypersimplexes, _in_hypersimplex, vertices=_hypersimplex_vertices,
)  # fmt: skip
