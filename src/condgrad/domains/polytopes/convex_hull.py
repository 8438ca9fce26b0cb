"""The convex hull of given points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture
from condgrad.domains.polytopes._direction import scaled
from condgrad.domains.polytopes._membership import is_within
from condgrad.domains.polytopes._sparse import kept_rows
from condgrad.points import SparseArray

PAIRS = 2000
"""The distances of all pairs are computed for at most as many points."""


@final
@dataclass(frozen=True, eq=False)
class ConvexHull:
    """{sum_i w_i p_i : w >= 0, sum w = 1}, the convex hull of the points p_1, ..., p_k.

    The linear oracle is one product with the array of points. Sparse points are kept as they are, and their atoms are sparse.

    Parameters
    ----------
    points : array_like of float, shape (k, ...), or scipy sparse array, shape (k, n)
        One point after the other along the first axis. Points that are not vertices do no harm.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> triangle = cg.ConvexHull([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> triangle.lmo(np.array([-1.0, 1.0]))
    array([2., 0.])
    """

    points: Any

    def __post_init__(self) -> None:
        import scipy.sparse as sp

        if sp.issparse(self.points):
            points = kept_rows(self.points, "The points of ConvexHull")
        else:
            points = checks.finite_array(self.points, "The points of ConvexHull")
        if points.ndim < 2 or 0 in points.shape:
            raise ValueError(
                f"The points of ConvexHull have shape {points.shape}, but at least one point along the first axis was expected."
            )
        checks.settle(self, points=points)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.points.shape[1:]

    @property
    def _sparse(self) -> bool:
        return not isinstance(self.points, np.ndarray)

    @property
    def _rows(self) -> Any:
        return self.points if self._sparse else self.points.reshape(len(self.points), -1)

    @cached_property
    def _norms(self) -> np.ndarray:
        rows = self._rows
        return np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel())

    @cached_property
    def diameter(self) -> float:
        """Exact for up to 2000 points; else an upper bound, twice the largest distance to the mean of the points."""
        rows, count = self._rows, self.points.shape[0]
        middle = np.asarray(rows.mean(axis=0)).ravel()
        if count <= PAIRS and not self._sparse:
            rows = rows - middle  # so that the differences keep their digits
            return max(float(np.linalg.norm(rows[i:] - rows[i], axis=1).max()) for i in range(count))
        squares, products = self._norms**2, rows @ (rows.T if count <= PAIRS else middle)
        if count <= PAIRS:
            apart = squares[:, None] + squares - 2 * products.toarray()
            np.fill_diagonal(apart, 0.0)
            rounding = 8 * np.finfo(float).eps * float(squares.max()) if apart.any() else 0.0
            return float(np.sqrt(max(float(apart.max()), 0.0) + rounding))
        return 2 * float(np.sqrt(np.max(np.maximum(squares - 2 * products + middle @ middle, 0.0))))

    @property
    def max_norm(self) -> float:
        """Exact: the largest norm of a point."""
        return float(self._norms.max())

    def _best(self, direction: np.ndarray) -> int:
        return int(np.argmin(self._rows @ scaled(direction, self.shape, "ConvexHull").ravel()))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """The first of the points that minimise <direction, x>."""
        best = self._best(direction)
        return self._row(best).to_dense() if self._sparse else np.array(self.points[best])

    def atom(self, direction: np.ndarray) -> SparseArray:
        """The answer of ``lmo`` as its entries that are not 0."""
        return self._row(self._best(direction))

    def _row(self, i: int) -> SparseArray:
        if not self._sparse:
            flat = self._rows[i]
            used = np.flatnonzero(flat)
            return SparseArray(used, flat[used], self.shape)
        span = slice(*self.points.indptr[i : i + 2])
        return SparseArray(self.points.indices[span], self.points.data[span], self.shape)

    def start(self) -> np.ndarray:
        """The mean of the points."""
        return np.asarray(self._rows.mean(axis=0)).reshape(self.shape)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether x is within ``tolerance`` times the diameter, by as many calls of the linear oracle as x needs points."""
        x = checks.point(x, self.shape, "ConvexHull")
        room = tolerance * (self.diameter or self.max_norm) + 8 * np.finfo(float).eps * self.max_norm
        return is_within(self.lmo, x, room)


def _convex_hulls() -> Examples:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    sparse = sp.csr_array(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -3.0], [0.0, 1.0, 1.0]]))
    return {
        "": ConvexHull(rng.integers(-3, 4, (7, 3))),
        "of sparse points": ConvexHull(sparse),
        "of matrices": ConvexHull(rng.standard_normal((5, 2, 2))),
        "of one": ConvexHull([[1.0, 2.0]]),
    }


def _given_points(domain: ConvexHull) -> np.ndarray:
    return domain.points.toarray() if domain._sparse else domain.points


def _in_convex_hull(domain: ConvexHull, rng: np.random.Generator) -> np.ndarray:
    return mixture(_given_points(domain), rng)


ENTRY = DomainEntry(
    "convex-hull", ConvexHull, "{sum_i w_i p_i : w >= 0, sum w = 1}", "the best of the points",
    _convex_hulls, _in_convex_hull, vertices=_given_points, arrays=("points",),
)  # fmt: skip
