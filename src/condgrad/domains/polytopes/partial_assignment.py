"""The polytope of partial assignments."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture
from condgrad.domains.polytopes._direction import moderate
from condgrad.domains.polytopes._zero_one import ZeroOnePolytope


@final
@dataclass(frozen=True)
class PartialAssignment(ZeroOnePolytope):
    """{X : X >= 0, every row and every column of X sums to at most 1}, with sum X = k where k is given.

    The vertices are matrices with at most one 1 in every row and column, and k ones where k is given. The linear oracle is an
    assignment problem (of m + n - k rows and columns for a given k), solved exactly in cubic time.

    Parameters
    ----------
    shape : (int, int)
        Rows m and columns n.
    k : int, default None
        Number of pairs, at most min(m, n). None: any number.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cost = np.array([[-3.0, 1.0], [-4.0, -2.0], [2.0, 2.0]])
    >>> cg.PartialAssignment((3, 2)).lmo(cost)
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    >>> cg.PartialAssignment((3, 2), k=1).atom(cost)
    SparseArray(1 entries, shape (3, 2))

    References
    ----------
    M. Dell'Amico, S. Martello, The k-cardinality assignment problem, Discrete Applied Mathematics 76 (1997).
    """

    shape: Shape
    k: int | None = None

    def __post_init__(self) -> None:
        shape = checks.as_shape(self.shape, "PartialAssignment")
        if len(shape) != 2:
            raise ValueError(f"PartialAssignment is a set of matrices, but got shape {shape}: give (rows, columns).")
        k = None if self.k is None else checks.whole(self.k, "The k of PartialAssignment")
        if k is not None and k > min(shape):
            raise ValueError(
                f"The k of PartialAssignment is at most {min(shape)} for matrices of shape {shape}, but got {k}."
            )
        checks.settle(self, shape=shape, k=k)

    @property
    def _most(self) -> int:
        return min(self.shape) if self.k is None else self.k

    @property
    def diameter(self) -> float:
        """Exact: two assignments of as many pairs as possible that share none."""
        if max(self.shape) == 1:
            return 1.0 if self.k is None else 0.0
        return math.sqrt(2 * self._most)

    @property
    def max_norm(self) -> float:
        """Exact: that of an assignment of as many pairs as possible."""
        return math.sqrt(self._most)

    def _ones(self, direction: np.ndarray) -> np.ndarray:
        return self._chosen(moderate(direction, self.shape, "PartialAssignment"))

    def _chosen(self, direction: np.ndarray) -> np.ndarray:
        from scipy.optimize import linear_sum_assignment

        (m, n), k = self.shape, self.k
        if k is None:
            rows, columns = linear_sum_assignment(np.minimum(direction, 0.0))
            kept = direction[rows, columns] < 0
        else:  # n - k more rows and m - k more columns take what is not paired, at no cost, and never each other
            cost = np.full((m + n - k, m + n - k), np.inf)
            cost[:m, :n], cost[m:, :n], cost[:m, n:] = direction, 0.0, 0.0
            rows, columns = linear_sum_assignment(cost)
            kept = (rows < m) & (columns < n)
        return rows[kept] * n + columns[kept]

    def start(self) -> np.ndarray:
        """The same number everywhere: with half of the largest sums where k is not given."""
        share = 1 / (2 * max(self.shape)) if self.k is None else self.k / math.prod(self.shape)
        return np.full(self.shape, share)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether no entry is below -tolerance and the sums are as required within the tolerance."""
        x = self._point(x)
        sums = np.concatenate([x.sum(axis=0), x.sum(axis=1)])
        inside = bool(np.all(x >= -tolerance) and np.all(sums <= 1 + tolerance))
        return inside and (self.k is None or bool(abs(x.sum() - self.k) <= tolerance * self.k))


def _partial_assignments() -> Examples:
    return {
        "": PartialAssignment((3, 4), 2),
        "of any number": PartialAssignment((3, 2)),
        "of all rows": PartialAssignment((2, 4), 2),
        "of one": PartialAssignment((1, 1)),
    }


@lru_cache(maxsize=4)
def _all_assignments(domain: PartialAssignment) -> np.ndarray:
    m, n = domain.shape
    found = []
    for k in range(min(m, n) + 1) if domain.k is None else [domain.k]:
        for rows in itertools.combinations(range(m), k):
            for columns in itertools.permutations(range(n), k):
                x = np.zeros((m, n))
                x[list(rows), list(columns)] = 1.0
                found.append(x)
    return np.array(found)


def _in_partial_assignment(domain: PartialAssignment, rng: np.random.Generator) -> np.ndarray:
    return mixture(_all_assignments(domain), rng)


ENTRY = DomainEntry(
    "partial-assignment", PartialAssignment, "{X : X >= 0, rows and columns sum to at most 1, sum X = k}",
    "at most one 1 in a row or column, by an assignment problem",
    _partial_assignments, _in_partial_assignment, vertices=_all_assignments,
)  # fmt: skip
