"""The polytope of the bases of a matroid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture
from condgrad.domains.polytopes._membership import is_within
from condgrad.domains.polytopes._zero_one import ZeroOnePolytope, between_0_and_1
from condgrad.linalg.selection import increasing_order


@final
@dataclass(frozen=True, eq=False)
class MatroidBasePolytope(ZeroOnePolytope):
    """{x : x >= 0, x(E) = rank(E), x(S) <= rank(S) for all S}, the convex hull of the bases of a matroid on E = {0, ..., n - 1}.

    The linear oracle is the greedy algorithm: elements in the order of the direction, each taken where it raises the rank. It is
    exact, and calls ``rank`` for blocks of elements: once, if the first ones of the order are independent, and at most about 2 n
    times; or it calls ``prefixes`` once.

    Parameters
    ----------
    shape : int
        Number n of elements.
    rank : callable
        ``rank(chosen)``, the rank of an array of different elements: the size of its largest independent subset.
    prefixes : callable, default None
        ``prefixes(order)``, the ranks of the first 1, 2, ..., n elements of an order of all elements, where that costs less than
        many calls of ``rank``.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> vectors = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 1.0]])
    >>> bases = cg.MatroidBasePolytope(3, lambda chosen: np.linalg.matrix_rank(vectors[chosen]))
    >>> bases.lmo(np.array([-2.0, -3.0, 5.0]))
    array([0., 1., 1.])

    References
    ----------
    J. Edmonds, Matroids and the greedy algorithm, Mathematical Programming 1 (1971).
    """

    shape: Any
    rank: Callable[[np.ndarray], Any]
    prefixes: Callable[[np.ndarray], Any] | None = None
    size: int = field(init=False)
    """Number of elements of a base."""

    def __post_init__(self) -> None:
        shape = checks.as_shape(self.shape, "MatroidBasePolytope")
        if len(shape) != 1:
            raise ValueError(f"MatroidBasePolytope is a set of vectors, but got shape {shape}: give n.")
        checks.function(self.rank, "The rank of MatroidBasePolytope")
        checks.settle(self, shape=shape)
        checks.settle(self, size=self._rank(np.arange(shape[0])))

    def _rank(self, chosen: np.ndarray) -> int:
        rank = checks.number_answer(self.rank(chosen), "rank")
        if rank != int(rank) or not 0 <= rank <= len(chosen):
            raise checks.BadOracle(
                f"The answer of rank to {len(chosen)} elements is {rank:g}, a whole number from 0 to {len(chosen)} was expected."
            )
        return int(rank)

    @property
    def diameter(self) -> float:
        """An upper bound: two bases that share as few elements as their number allows."""
        return math.sqrt(2 * min(self.size, self.shape[0] - self.size))

    @property
    def max_norm(self) -> float:
        """Exact: that of a base."""
        return math.sqrt(self.size)

    def _chosen(self, direction: np.ndarray) -> np.ndarray:
        order = increasing_order(direction)
        taken = self._by_blocks(order) if self.prefixes is None else self._by_prefixes(order)
        if len(taken) != self.size:
            raise checks.BadOracle(
                f"The answers of rank are not those of a matroid: it is {self.size} for all elements, but the greedy algorithm "
                f"ends with {len(taken)}."
            )
        return taken

    def _by_prefixes(self, order: np.ndarray) -> np.ndarray:
        ranks = checks.answer(self.prefixes(order), self.shape, "prefixes")  # type: ignore[misc]
        steps = np.diff(ranks, prepend=0.0)
        if np.any((steps != 0) & (steps != 1)):
            raise checks.BadOracle(
                "The answers of prefixes are not ranks: from one element to the next they grow by 0 or 1."
            )
        return order[steps == 1]

    def _by_blocks(self, order: np.ndarray) -> np.ndarray:
        """A block of elements is taken if all of them raise the rank, left out if none does, and halved otherwise."""
        taken, at, block = order[:0], 0, max(self.size, 1)
        while len(taken) < self.size and at < len(order):
            block = min(block, self.size - len(taken), len(order) - at)
            tried = np.concatenate([taken, order[at : at + block]])
            more = self._rank(tried) - len(taken)
            if block > 1 and 0 < more < block:
                block //= 2
                continue
            taken = tried if more == block else taken
            at, block = at + block, 2 * block
        return taken

    def start(self) -> np.ndarray:
        """The mean of the bases that the orders up, down and each element first give (for at most 100 elements)."""
        n = self.shape[0]
        orders = [np.arange(n), -np.arange(n), *(-np.eye(n) if n <= 100 else ())]
        return np.mean([self.lmo(np.asarray(g, dtype=float)) for g in orders], axis=0)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether x is within ``tolerance`` times the diameter, by up to n calls of the linear oracle."""
        x, room = self._point(x), tolerance * (self.diameter or self.max_norm)
        plain = between_0_and_1(x, room) and abs(float(x.sum()) - self.size) <= room * math.sqrt(len(x))
        return plain and is_within(self.lmo, x, room)


VECTORS = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def _rank_of_vectors(chosen: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(VECTORS[chosen])) if len(chosen) else 0


def _rank_of_pairs(chosen: np.ndarray) -> int:
    """A partition matroid: one of {0, 1, 2}, one of {3, 4}."""
    return len({element // 3 for element in chosen.tolist()})


def _matroid_base_polytopes() -> Examples:
    return {"": MatroidBasePolytope(5, _rank_of_vectors), "of a partition": MatroidBasePolytope(5, _rank_of_pairs)}


@lru_cache(maxsize=4)
def _all_bases(domain: MatroidBasePolytope) -> np.ndarray:
    n = domain.shape[0]
    subsets = itertools.combinations(range(n), domain.size)
    return np.array([np.isin(np.arange(n), s) * 1.0 for s in subsets if domain.rank(np.array(s)) == domain.size])


def _in_matroid_base_polytope(domain: MatroidBasePolytope, rng: np.random.Generator) -> np.ndarray:
    return mixture(_all_bases(domain), rng)


ENTRY = DomainEntry(
    "matroid-base-polytope", MatroidBasePolytope, "{x >= 0 : x(E) = rank(E), x(S) <= rank(S)}", "a base, by the greedy algorithm",
    _matroid_base_polytopes, _in_matroid_base_polytope, vertices=_all_bases, in_specs=False, bounds=("diameter",),
)  # fmt: skip
