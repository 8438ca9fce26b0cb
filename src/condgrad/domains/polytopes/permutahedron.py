"""The permutahedron."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture
from condgrad.domains.polytopes._direction import scaled
from condgrad.linalg.selection import increasing_order


@final
@dataclass(frozen=True, eq=False)
class Permutahedron:
    """{x : sum x = sum w, the k largest entries of x sum to at most those of w for each k}, the convex hull of all orders of w.

    The linear oracle sorts, in O(n log n). So does the projection, by an isotonic regression.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        w, in any order. ``numpy.arange(1, n + 1)`` gives soft ranks.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> ranks = cg.Permutahedron([1.0, 2.0, 3.0])
    >>> ranks.lmo(np.array([0.3, -1.0, 5.0]))
    array([2., 3., 1.])
    >>> ranks.project(np.array([0.0, 9.0, 0.0]))
    array([1.5, 3. , 1.5])

    References
    ----------
    M. Blondel, O. Teboul, Q. Berthet, J. Djolonga, Fast differentiable sorting and ranking, ICML 2020.
    """

    values: Any

    def __post_init__(self) -> None:
        values = checks.finite_array(self.values, "The values of Permutahedron")
        if values.ndim != 1 or not values.size:
            raise ValueError(f"The values of Permutahedron have shape {values.shape}, but a vector was expected.")
        checks.settle(self, values=checks.read_only(np.sort(values)[::-1]))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def diameter(self) -> float:
        """Exact: from the falling to the rising order."""
        return float(np.linalg.norm(self.values - self.values[::-1]))

    @property
    def max_norm(self) -> float:
        """Exact: that of w."""
        return float(np.linalg.norm(self.values))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """The largest value where the direction is smallest, and so on."""
        vertex = np.empty(self.shape)
        vertex[increasing_order(scaled(direction, self.shape, "Permutahedron"))] = self.values
        return vertex

    def project(self, x: np.ndarray) -> np.ndarray:
        """The nearest point: x minus the falling vector that is nearest to the sorted x minus w."""
        from scipy.optimize import isotonic_regression

        x = checks.finite_point(x, self.shape, "Permutahedron", self.max_norm)
        order = np.argsort(-x, kind="stable")
        # what all entries of x have in common does not matter: without it nothing is lost when x is far away
        off = (x - x.mean())[order] - (self.values - self.values.mean())
        nearest = np.empty(self.shape)
        fit = isotonic_regression(off, increasing=False).x
        nearest[order] = self.values + (off - fit)
        return nearest

    def start(self) -> np.ndarray:
        """The middle, the mean of w everywhere."""
        return np.full(self.shape, self.values.mean())

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether the sums of the largest entries are as required, up to ``tolerance`` times the diameter, and rounding."""
        x = checks.point(x, self.shape, "Permutahedron")
        if not np.isfinite(x).all():
            return False
        excess = np.cumsum(np.sort(x)[::-1] - self.values)
        slack = tolerance * (self.diameter or self.max_norm) + 4 * np.finfo(float).eps * float(
            np.abs(self.values).sum()
        )
        return bool(np.all(excess <= slack) and abs(excess[-1]) <= slack)


def _permutahedra() -> Examples:
    return {
        "": Permutahedron([1.0, 2.0, 3.0, 5.0]),
        "with ties": Permutahedron([0.0, 2.0, 2.0]),
        "far away": Permutahedron([1e6, 1e6 + 1, 1e6 + 3]),
        "of one": Permutahedron([4.0]),
    }


@lru_cache(maxsize=4)
def _all_orders(domain: Permutahedron) -> np.ndarray:
    return np.array(sorted(set(itertools.permutations(domain.values.tolist()))))


def _in_permutahedron(domain: Permutahedron, rng: np.random.Generator) -> np.ndarray:
    return mixture(_all_orders(domain), rng)


ENTRY = DomainEntry(
    "permutahedron", Permutahedron, "{x : x is majorised by w}", "w in the order opposite to that of the direction",
    _permutahedra, _in_permutahedron, vertices=_all_orders, arrays=("values",),
)  # fmt: skip
