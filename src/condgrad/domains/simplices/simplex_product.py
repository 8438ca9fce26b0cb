"""Products of simplices: stochastic matrices."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.linalg.selection import indices_of_smallest_along
from condgrad.linalg.simplex_projection import onto_simplices
from condgrad.points.sparse_array import SparseArray


@final
@dataclass(frozen=True)
class SimplexProduct:
    """{X : X >= 0, the sums of X along an axis are r}

    With r = 1, matrices whose rows (axis 1) or columns (axis 0) are probabilities: transition matrices, soft assignments, mixed
    strategies of several players.

    Parameters
    ----------
    shape : tuple of int
        Shape of the points, with at least two axes.
    radius : float, default 1.0
        The sum r along the axis.
    axis : int, default -1
        The axis along which entries are summed: -1, the last one, for matrices with stochastic rows, 0 for stochastic columns.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.SimplexProduct((2, 3)).lmo(np.array([[1.0, -3.0, 0.0], [2.0, 1.0, 0.0]]))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    shape: Shape
    radius: float = 1.0
    axis: int = -1

    def __post_init__(self) -> None:
        radius = checks.positive(self.radius, "The radius of SimplexProduct")
        shape = checks.as_shape(self.shape, "SimplexProduct")
        if len(shape) < 2:
            raise ValueError(
                f"SimplexProduct got the shape {shape}, at least two axes were expected: use Simplex for vectors."
            )
        axis = checks.whole(self.axis, "The axis of SimplexProduct", least=-len(shape))
        if axis >= len(shape):
            raise ValueError(
                f"The axis of SimplexProduct is {axis}, but its points have {len(shape)} axes: correct it."
            )
        checks.settle(self, shape=shape, radius=radius, axis=axis % len(shape))

    @property
    def _count(self) -> int:
        """Number of simplices."""
        return math.prod(self.shape) // self.shape[self.axis]

    @property
    def diameter(self) -> float:
        return self.radius * math.sqrt(2 * self._count) if self.shape[self.axis] > 1 else 0.0

    @property
    def max_norm(self) -> float:
        return self.radius * math.sqrt(self._count)

    def atom(self, direction: np.ndarray) -> SparseArray:
        return SparseArray(self._smallest(direction), self.radius, self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        vertex = np.zeros(self.shape)
        vertex.reshape(-1)[self._smallest(direction)] = self.radius
        return vertex

    def _smallest(self, direction: np.ndarray) -> np.ndarray:
        return indices_of_smallest_along(checks.entries(direction, self.shape, "SimplexProduct"), self.axis)

    def project(self, x: np.ndarray) -> np.ndarray:
        return onto_simplices(
            checks.finite_point(x, self.shape, "SimplexProduct", self.max_norm), self.radius, self.axis
        )

    def start(self) -> np.ndarray:
        return np.full(self.shape, self.radius / self.shape[self.axis])

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        x, slack = checks.point(x, self.shape, "SimplexProduct"), tolerance * self.radius
        sums = x.sum(axis=self.axis)
        return bool(np.all(x >= -slack) and np.all(np.abs(sums - self.radius) <= slack))


def _simplex_products() -> Examples:
    return {
        "": SimplexProduct((3, 2), 2.0),
        "of columns": SimplexProduct((3, 2), axis=0),
        "of tensors": SimplexProduct((2, 2, 2), 0.5, axis=1),
        "of one point": SimplexProduct((3, 1)),
    }


def _in_simplex_product(domain: SimplexProduct, rng: np.random.Generator) -> np.ndarray:
    parts = rng.dirichlet(np.full(domain.shape[domain.axis], 0.5), size=np.delete(domain.shape, domain.axis))
    return domain.radius * np.moveaxis(parts, -1, domain.axis)


def _simplex_product_vertices(domain: SimplexProduct) -> np.ndarray:
    width = domain.shape[domain.axis]
    count, found = math.prod(domain.shape) // width, []
    for chosen in itertools.product(range(width), repeat=count):
        rows = np.eye(width)[list(chosen)].reshape(*np.delete(domain.shape, domain.axis), width)
        found.append(domain.radius * np.moveaxis(rows, -1, domain.axis))
    return np.array(found)


ENTRY = DomainEntry(
    "simplex-product", SimplexProduct, "{X : X >= 0, the sums of X along an axis are r}",
    "r at the smallest entry of each row or column",
    _simplex_products, _in_simplex_product, vertices=_simplex_product_vertices,
)  # fmt: skip
