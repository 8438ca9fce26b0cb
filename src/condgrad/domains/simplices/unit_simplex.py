"""The unit simplex: the probability simplex and 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.linalg.selection import index_of_smallest
from condgrad.linalg.simplex_projection import onto_simplex
from condgrad.points.sparse_array import SparseArray


@final
@dataclass(frozen=True)
class UnitSimplex:
    """{x : x >= 0, sum x <= r}

    The part of the l1 ball without negative entries.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    radius : float, default 1.0
        The largest sum r of the entries.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> simplex = cg.UnitSimplex(3)
    >>> simplex.lmo(np.array([1.0, -3.0, 0.0])), simplex.lmo(np.array([1.0, 3.0, 0.0]))
    (array([0., 1., 0.]), array([0., 0., 0.]))
    """

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        radius = checks.positive(self.radius, "The radius of UnitSimplex")
        checks.settle(self, shape=checks.as_shape(self.shape, "UnitSimplex"), radius=radius)

    @property
    def diameter(self) -> float:
        return self.radius * (math.sqrt(2) if math.prod(self.shape) > 1 else 1.0)

    @property
    def max_norm(self) -> float:
        return self.radius

    def atom(self, direction: np.ndarray) -> SparseArray:
        """An entry of r, or nothing where no entry of the direction is negative."""
        direction = checks.entries(direction, self.shape, "UnitSimplex")
        smallest = index_of_smallest(direction)
        found = [smallest] if direction.reshape(-1)[smallest] < 0 else []
        return SparseArray(found, self.radius, self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()

    def project(self, x: np.ndarray) -> np.ndarray:
        x = checks.finite_point(x, self.shape, "UnitSimplex", self.radius)
        positive = np.maximum(x, 0.0)
        return positive if positive.sum() <= self.radius else onto_simplex(x, self.radius)

    def start(self) -> np.ndarray:
        return np.full(self.shape, self.radius / (math.prod(self.shape) + 1))

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        x, slack = checks.point(x, self.shape, "UnitSimplex"), tolerance * self.radius
        return bool(np.all(x >= -slack) and np.sum(x) <= self.radius + slack)


def _unit_simplexes() -> Examples:
    return {"": UnitSimplex(5, 2.0), "of one": UnitSimplex(1, 3.0), "of matrices": UnitSimplex((2, 3))}


def _in_unit_simplex(simplex: UnitSimplex, rng: np.random.Generator) -> np.ndarray:
    shares = rng.dirichlet(np.full(math.prod(simplex.shape) + 1, 0.5))
    return simplex.radius * shares[1:].reshape(simplex.shape)


def _unit_simplex_vertices(simplex: UnitSimplex) -> np.ndarray:
    size = math.prod(simplex.shape)
    return simplex.radius * np.eye(size + 1, size).reshape(-1, *simplex.shape)


ENTRY = DomainEntry(
    "unit-simplex", UnitSimplex, "{x : x >= 0, sum x <= r}", "the vertex at the smallest entry, or 0 if none is negative",
    _unit_simplexes, _in_unit_simplex, vertices=_unit_simplex_vertices,
)  # fmt: skip
