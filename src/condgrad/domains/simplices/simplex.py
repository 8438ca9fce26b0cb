"""The scaled probability simplex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.linalg.selection import index_of_smallest, indices_in_increasing_order
from condgrad.linalg.simplex_projection import onto_simplex
from condgrad.points.sparse_array import SparseArray
from condgrad.points.stack import Stack


@final
@dataclass(frozen=True)
class Simplex:
    """{x : x >= 0, sum x = r}

    The probability simplex with r = 1.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    radius : float, default 1.0
        The sum r of the entries.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.Simplex(3).lmo(np.array([1.0, -3.0, 0.0]))
    array([0., 1., 0.])
    """

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        radius = checks.positive(self.radius, "The radius of Simplex")
        checks.settle(self, shape=checks.as_shape(self.shape, "Simplex"), radius=radius)

    @property
    def diameter(self) -> float:
        return self.radius * math.sqrt(2) if math.prod(self.shape) > 1 else 0.0

    @property
    def max_norm(self) -> float:
        return self.radius

    def atom(self, direction: np.ndarray) -> SparseArray:
        return SparseArray(self._smallest(direction), self.radius, self.shape)

    def atoms(self, direction: np.ndarray, number: int) -> Stack:
        """The best vertices, at most ``number`` of them and the best one first, found in about one pass."""
        order = indices_in_increasing_order(checks.entries(direction, self.shape, "Simplex"), number)
        return Stack.of_single_entries(order, np.full(len(order), self.radius), self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        vertex = np.zeros(self.shape)
        vertex.reshape(-1)[self._smallest(direction)] = self.radius
        return vertex

    def _smallest(self, direction: np.ndarray) -> int:
        return index_of_smallest(checks.entries(direction, self.shape, "Simplex"))

    def project(self, x: np.ndarray) -> np.ndarray:
        return onto_simplex(checks.finite_point(x, self.shape, "Simplex", self.radius), self.radius)

    def start(self) -> np.ndarray:
        return np.full(self.shape, self.radius / math.prod(self.shape))

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        x, slack = checks.point(x, self.shape, "Simplex"), tolerance * self.radius
        return bool(np.all(x >= -slack) and abs(np.sum(x) - self.radius) <= slack)


def _simplexes() -> Examples:
    return {"": Simplex(5, 2.0), "of one": Simplex(1, 3.0), "of matrices": Simplex((2, 3))}


def _in_simplex(simplex: Simplex, rng: np.random.Generator) -> np.ndarray:
    return simplex.radius * rng.dirichlet(np.full(math.prod(simplex.shape), 0.5)).reshape(simplex.shape)


def _simplex_vertices(simplex: Simplex) -> np.ndarray:
    return simplex.radius * np.eye(math.prod(simplex.shape)).reshape(-1, *simplex.shape)


ENTRY = DomainEntry(
    "simplex", Simplex, "{x : x >= 0, sum x = r}", "the vertex at the smallest entry",
    _simplexes, _in_simplex, vertices=_simplex_vertices,
)  # fmt: skip
