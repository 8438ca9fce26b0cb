"""The capped simplex."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.linalg.clipped_shift import clipped_shift
from condgrad.linalg.knapsack import filled_in_order, largest_square
from condgrad.linalg.selection import finite_size, increasing_order, indices_of_smallest
from condgrad.points.sparse_array import SparseArray

FIRST = 64
"""Number of the smallest entries with which a vertex is looked for first; it is doubled until their caps suffice."""


@final
@dataclass(frozen=True, eq=False)
class CappedSimplex:
    """{x : 0 <= x <= u, sum x = r}

    For example portfolios with a largest share for each asset, or the weights of a risk measure (CVaR). A linear minimisation
    fills the caps u of the smallest entries of the direction. ``diameter`` is an upper bound, exact for equal caps where two
    vertices can have disjoint supports.

    Parameters
    ----------
    upper : array_like of float
        The caps u, positive; their shape is that of the points.
    radius : float, default 1.0
        The sum r of the entries, at most the sum of the caps.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.CappedSimplex(np.full(4, 0.4)).lmo(np.array([1.0, -3.0, 0.0, 2.0])).round(12)
    array([0.2, 0.4, 0.4, 0. ])
    """

    upper: Any
    radius: float = 1.0
    shape: Shape = field(init=False, repr=False)
    _total: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        radius = checks.positive(self.radius, "The radius of CappedSimplex")
        upper = checks.finite_array(self.upper, "The array of caps of CappedSimplex", "give r where there is no cap")
        if np.any(upper <= 0):
            worst = float(upper.min())
            raise ValueError(f"The caps of CappedSimplex must be positive, but one is {worst:g}: give larger ones.")
        total, shape = float(upper.sum()), checks.as_shape(upper.shape, "CappedSimplex")
        if total < radius * (1 - 1e-12):  # ten times 0.1 is below 1 by rounding
            raise ValueError(
                f"CappedSimplex is an empty set: its caps sum to {total:g}, less than the sum {radius:g}; raise them."
            )
        upper = checks.read_only(np.minimum(upper, radius))
        checks.settle(self, upper=upper, radius=radius, shape=shape, _total=float(upper.sum()))

    @property
    def diameter(self) -> float:
        """An upper bound: what one point has more than another sums to at most r, or the sum of the caps minus r."""
        moved = max(min(self.radius, self._total - self.radius), 0.0)
        return math.sqrt(min(2 * largest_square(self.upper, moved), largest_square(self.upper, 2 * moved)))

    @property
    def max_norm(self) -> float:
        return math.sqrt(largest_square(self.upper, self.radius))

    def atom(self, direction: np.ndarray) -> SparseArray:
        flat, upper = checks.point(direction, self.shape, "CappedSimplex").reshape(-1), self.upper.reshape(-1)
        k = min(FIRST, flat.size)
        while (smallest := indices_of_smallest(flat, k)) is not None and k < flat.size:
            if upper[smallest].sum() >= self.radius * (1 + 1e-9):
                break
            k = min(4 * k, flat.size)
        order = smallest[increasing_order(flat[smallest])]
        filled = filled_in_order(upper[order], self.radius)
        used = order[filled > 0]
        finite_size(flat[used])
        return SparseArray(used, filled[filled > 0], self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()

    def project(self, x: np.ndarray) -> np.ndarray:
        return clipped_shift(
            checks.finite_point(x, self.shape, "CappedSimplex", self.radius), 0.0, self.upper, self.radius
        )

    def start(self) -> np.ndarray:
        """Return the point that is proportional to the caps."""
        return self.upper * (self.radius / self._total)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        x, slack = checks.point(x, self.shape, "CappedSimplex"), tolerance * self.radius
        inside = np.all((x >= -slack) & (x <= self.upper + slack))
        return bool(inside and abs(np.sum(x) - self.radius) <= slack)


def _capped_simplexes() -> Examples:
    return {
        "": CappedSimplex([0.5, 0.25, 1.0, 3.0, 0.1], 1.25),
        "with equal caps": CappedSimplex(np.full(5, 0.4)),
        "of matrices": CappedSimplex(np.full((2, 2), 3.0), 7.0),
        "of one point": CappedSimplex([1.0, 2.0], 3.0),
    }


def _in_capped_simplex(domain: CappedSimplex, rng: np.random.Generator) -> np.ndarray:
    """A random mean of points that fill the caps in a random order."""
    x, upper = np.zeros(math.prod(domain.shape)), domain.upper.ravel()
    for share in rng.dirichlet(np.ones(4)):
        left = domain.radius
        for i in rng.permutation(len(x)):
            part = min(left, upper[i])
            x[i] += share * part
            left -= part
    return x.reshape(domain.shape)


def _capped_simplex_minimum(domain: CappedSimplex, g: np.ndarray) -> float:
    """By trying all vertices: each entry at 0 or its cap, but for one."""
    upper, g, best = domain.upper.ravel(), g.ravel(), math.inf
    for i in range(len(upper)):
        for full in itertools.product([0.0, 1.0], repeat=len(upper) - 1):
            x = upper * np.insert(np.array(full), i, 0.0)
            x[i] = domain.radius - x.sum()
            if -1e-14 * domain.radius <= x[i] <= upper[i] + 1e-14 * domain.radius:
                best = min(best, float(g @ x))
    return best


ENTRY = DomainEntry(
    "capped-simplex", CappedSimplex, "{x : 0 <= x <= u, sum x = r}", "caps filled from the smallest entry on",
    _capped_simplexes, _in_capped_simplex, _capped_simplex_minimum, arrays=("upper",), bounds=("diameter",),
)  # fmt: skip
