"""The Birkhoff polytope."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._direction import moderate
from condgrad.domains.polytopes._zero_one import ZeroOnePolytope


@final
@dataclass(frozen=True)
class Birkhoff(ZeroOnePolytope):
    """{X : X >= 0, every row and every column of X sums to 1}, the convex hull of the permutation matrices.

    The linear oracle is an assignment problem, solved exactly in O(n^3) by scipy's shortest augmenting paths.

    Parameters
    ----------
    shape : int or (int, int)
        n, or (n, n).

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cost = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    >>> cg.Birkhoff(3).lmo(cost)
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 1.]])
    >>> cg.Birkhoff(3).atom(cost)
    SparseArray(3 entries, shape (3, 3))

    References
    ----------
    D. F. Crouse, On implementing 2D rectangular assignment algorithms, IEEE Transactions on Aerospace and Electronic
    Systems 52 (2016).
    """

    shape: Shape

    def __post_init__(self) -> None:
        sizes = checks.as_shape(self.shape, "Birkhoff")
        if len(sizes) > 2 or sizes[0] != sizes[-1]:
            raise ValueError(
                f"Birkhoff is a set of square matrices, but got shape {self.shape}: give (n, n), or n alone."
            )
        checks.settle(self, shape=(sizes[0], sizes[0]))

    @property
    def diameter(self) -> float:
        """Exact: two permutations that agree nowhere."""
        return math.sqrt(2 * self.shape[0]) if self.shape[0] > 1 else 0.0

    @property
    def max_norm(self) -> float:
        """Exact: that of a permutation matrix."""
        return math.sqrt(self.shape[0])

    def permutation(self, direction: np.ndarray) -> np.ndarray:
        """Columns of the ones in the rows of the vertex that minimises <direction, X>, an array of int."""
        from scipy.optimize import linear_sum_assignment

        return linear_sum_assignment(moderate(direction, self.shape, "Birkhoff"))[1]

    def _chosen(self, direction: np.ndarray) -> np.ndarray:
        columns = self.permutation(direction)
        return np.arange(len(columns)) * len(columns) + columns

    def _ones(self, direction: np.ndarray) -> np.ndarray:
        return self._chosen(direction)  # assignments need no factor

    def start(self) -> np.ndarray:
        """The middle, 1/n everywhere."""
        return np.full(self.shape, 1 / self.shape[0])

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether no entry is below -tolerance and every row and column sums to 1 within the tolerance."""
        x = self._point(x)
        sums = np.concatenate([x.sum(axis=0), x.sum(axis=1)])
        return bool(np.all(x >= -tolerance) and np.all(np.abs(sums - 1) <= tolerance))


def _birkhoffs() -> Examples:
    return {"": Birkhoff(3), "of one": Birkhoff(1), "larger": Birkhoff((4, 4))}


def _in_birkhoff(domain: Birkhoff, rng: np.random.Generator) -> np.ndarray:
    n = domain.shape[0]
    return np.tensordot(rng.dirichlet(np.full(4, 0.5)), [np.eye(n)[rng.permutation(n)] for _ in range(4)], axes=1)


def _permutations(domain: Birkhoff) -> np.ndarray:
    n = domain.shape[0]
    return np.array([np.eye(n)[list(order)] for order in itertools.permutations(range(n))])


ENTRY = DomainEntry(
    "birkhoff", Birkhoff, "{X : X >= 0, rows and columns sum to 1}", "a permutation matrix, by an assignment problem",
    _birkhoffs, _in_birkhoff, vertices=_permutations,
)  # fmt: skip
