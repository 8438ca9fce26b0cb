"""The base polytope of a submodular function."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture
from condgrad.domains.polytopes._direction import scaled
from condgrad.domains.polytopes._membership import is_within
from condgrad.linalg.selection import increasing_order


@final
@dataclass(frozen=True, eq=False)
class SubmodularBasePolytope:
    """{x : x(E) = f(E), x(S) <= f(S) for all subsets S of E = {0, ..., n - 1}}, for a submodular f with f of no elements 0.

    The linear oracle is the greedy algorithm: an entry is what its element adds to f, in the order of the direction; exact, by n
    calls of f, or one call of ``prefixes``. f is not checked to be submodular: where it is not, answers are not minimal.
    The point of least norm of this set tells where f is smallest.

    Parameters
    ----------
    shape : int
        Number n of elements.
    function : callable
        ``function(chosen)``, f of an array of different elements. A constant is subtracted so that f is 0 for none.
    prefixes : callable, default None
        ``prefixes(order)``, f of the first 1, 2, ..., n elements of an order of all elements, where that costs less than n calls.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> bases = cg.SubmodularBasePolytope(3, lambda chosen: np.sqrt(len(chosen)))
    >>> bases.lmo(np.array([0.0, -1.0, 1.0])).round(3)
    array([0.414, 1.   , 0.318])

    References
    ----------
    F. Bach, Learning with submodular functions: a convex optimization perspective, Foundations and Trends in Machine Learning 6
    (2013).
    """

    shape: Any
    function: Callable[[np.ndarray], Any]
    prefixes: Callable[[np.ndarray], Any] | None = None
    _none: float = field(init=False, repr=False)
    _lowest: Any = field(init=False, repr=False)
    _highest: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = checks.as_shape(self.shape, "SubmodularBasePolytope")
        if len(shape) != 1:
            raise ValueError(f"SubmodularBasePolytope is a set of vectors, but got shape {shape}: give n.")
        checks.function(self.function, "The function of SubmodularBasePolytope")
        checks.settle(self, shape=shape, _none=0.0)
        everything = np.arange(shape[0])
        checks.settle(self, _none=self._value(everything[:0]))
        most = self._value(everything)
        highest = np.array([self._value(np.array([i])) for i in everything])
        lowest = np.array([most - self._value(np.delete(everything, i)) for i in everything])
        if np.any(lowest > highest + 1e-9 * (np.abs(lowest) + np.abs(highest))):
            i = int(np.argmax(lowest - highest))
            raise ValueError(
                f"The function of SubmodularBasePolytope is not submodular: element {i} adds {highest[i]:g} to no elements and "
                f"{lowest[i]:g} to all others, but it must not add more to more elements."
            )
        checks.settle(self, _lowest=lowest, _highest=highest)

    def _value(self, chosen: np.ndarray) -> float:
        return checks.number_answer(self.function(chosen), "function") - self._none

    @property
    def diameter(self) -> float:
        """An upper bound: each entry is between what its element adds to all others and to none."""
        return float(np.linalg.norm(self._highest - self._lowest))

    @property
    def max_norm(self) -> float:
        """An upper bound, by the same."""
        return float(np.linalg.norm(np.maximum(np.abs(self._lowest), np.abs(self._highest))))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """What each element adds to f, the element with the smallest entry of the direction first."""
        order = increasing_order(scaled(direction, self.shape, "SubmodularBasePolytope"))
        if self.prefixes is None:
            values = np.array([self._value(order[: i + 1]) for i in range(len(order))])
        else:
            values = checks.answer(self.prefixes(order), self.shape, "prefixes") - self._none
        vertex = np.empty(self.shape)
        vertex[order] = np.diff(values, prepend=0.0)
        room = 1e-9 * (np.abs(self._lowest) + np.abs(self._highest) + np.abs(values).max())
        if np.any(wrong := (vertex < self._lowest - room) | (vertex > self._highest + room)):
            i = int(np.argmax(wrong))
            raise checks.BadOracle(
                f"The function of SubmodularBasePolytope is not submodular: element {i} adds {vertex[i]:g} to some elements, but "
                f"{self._highest[i]:g} to none and {self._lowest[i]:g} to all others; what it adds may only fall."
            )
        return vertex

    def start(self) -> np.ndarray:
        """The middle between the vertices of the orders up and down."""
        rising = np.arange(float(self.shape[0]))
        return self.lmo(rising) / 2 + self.lmo(-rising) / 2

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether x is within ``tolerance`` times the diameter, by up to n calls of the linear oracle."""
        x = checks.point(x, self.shape, "SubmodularBasePolytope")
        room = tolerance * (self.diameter or self.max_norm) + 8 * np.finfo(float).eps * self.max_norm
        box = np.all((x >= self._lowest - room) & (x <= self._highest + room))
        return bool(box) and is_within(self.lmo, x, room)


EDGES = ((0, 1, 1.0), (1, 2, 2.0), (2, 3, 1.0), (3, 0, 0.5))


def _cut(chosen: np.ndarray) -> float:
    """The weight of the edges between the chosen nodes and the others, and 3."""
    inside = set(chosen.tolist())
    return 3.0 + sum(weight for u, v, weight in EDGES if (u in inside) != (v in inside))


def _root(chosen: np.ndarray) -> float:
    return float(len(chosen) ** 0.5)


def _roots(order: np.ndarray) -> np.ndarray:
    return np.sqrt(np.arange(1, len(order) + 1))


def _submodular_base_polytopes() -> Examples:
    return {"": SubmodularBasePolytope(4, _cut), "by prefixes": SubmodularBasePolytope(3, _root, _roots)}


@lru_cache(maxsize=4)
def _greedy_vertices(domain: SubmodularBasePolytope) -> np.ndarray:
    found = []
    for order in itertools.permutations(range(domain.shape[0])):
        values = [domain.function(np.array(order[:i], dtype=int)) for i in range(len(order) + 1)]
        found.append(np.diff(values)[np.argsort(order)])
    return np.array(found)


def _in_submodular_base_polytope(domain: SubmodularBasePolytope, rng: np.random.Generator) -> np.ndarray:
    return mixture(_greedy_vertices(domain), rng)


def _submodular_minimum(domain: SubmodularBasePolytope, g: np.ndarray) -> float:
    return float((_greedy_vertices(domain) @ g).min())


ENTRY = DomainEntry(
    "submodular-base-polytope", SubmodularBasePolytope, "{x : x(E) = f(E), x(S) <= f(S)}",
    "what each element adds to f, greedily",
    _submodular_base_polytopes, _in_submodular_base_polytope, _submodular_minimum, in_specs=False,
    bounds=("diameter", "max_norm"),
)  # fmt: skip
