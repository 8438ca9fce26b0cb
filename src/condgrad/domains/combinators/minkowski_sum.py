"""The Minkowski sum of sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import L1Ball, L2Ball, LinfBall
from condgrad.domains.combinators._combination import (
    Combination,
    as_answer,
    check_sets,
    checks_directions,
    diameter_of,
    fresh,
    max_norm_of,
    reached,
    start_of,
)
from condgrad.domains.combinators._examples import a_point_of, known_minimum
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.simplices import Simplex
from condgrad.points import SparseArray
from condgrad.protocols import Point, vertex_oracle


@final
@dataclass(frozen=True, init=False)
class MinkowskiSum(Combination):
    """{x_1 + ... + x_m : x_i in S_i}, for sets of one shape

    The linear oracle is the sum of the answers of the sets. ``diameter`` and ``max_norm`` are sums of those of the sets: upper
    bounds, exact for balls of one shape. Membership is found by linear minimisations: a few
    tens, near the boundary where a set is curved some hundreds (16,500 at most, 80 for each entry). There is no projection: use
    ``inner="corrective"``, which is the default here.

    Parameters
    ----------
    *sets : Domain
        The sets, all of the same shape.

    Raises
    ------
    ValueError
        If there is no set, or if the shapes differ.

    Examples
    --------
    A sparse vector plus a small one:

    >>> import numpy as np, condgrad as cg
    >>> S = cg.MinkowskiSum(cg.L1Ball(3, 5.0), cg.LinfBall(3, 0.1))
    >>> S.lmo(np.array([1.0, -2.0, 0.5])), S.contains(np.array([4.0, 0.1, 0.1]))
    (array([-0.1,  5.1, -0.1]), True)

    References
    ----------
    M. Jaggi. Revisiting Frank-Wolfe: projection-free sparse convex optimization. ICML 2013.
    """

    sets: tuple[Any, ...]

    def __init__(self, *sets: Any):
        checks.settle(self, sets=check_sets(sets, "MinkowskiSum"))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return checks.as_shape(self.sets[0].shape, "MinkowskiSum")

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.sets

    @property
    def _terms(self) -> tuple[Any, ...]:
        """The sets; of those that are sums themselves their terms."""
        return tuple(term for one in self.sets for term in (one._terms if isinstance(one, MinkowskiSum) else (one,)))

    @property
    def diameter(self) -> float:
        """An upper bound: the sum of the diameters."""
        return sum(map(diameter_of, self.sets))

    @property
    def max_norm(self) -> float:
        """An upper bound: the sum of the largest norms."""
        return sum(map(max_norm_of, self.sets))

    def lmo(self, direction: Point) -> Point:
        direction = self._passed_on(direction)
        answers = [vertex_oracle(one)(direction) for one in self.sets]
        own = (
            i for i, (one, x) in enumerate(zip(self.sets, answers, strict=True)) if checks_directions(one) and fresh(x)
        )
        if (first := next(own, None)) is None:
            return as_answer(reduce(add, answers))
        total = answers.pop(first)  # an array that nobody else has: the others are added to it in place
        for answer in answers:
            if isinstance(answer, SparseArray):
                total.reshape(-1)[answer.indices] += answer.values
            else:
                total += answer
        return total

    def start(self) -> Point:
        """The sum of the starts."""
        return reduce(add, map(start_of, self.sets))

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        """Whether x is in the set, up to a tolerance relative to ``max_norm``."""
        return reached(self._terms, self._point(x), tolerance * self.max_norm)


def minkowski_sum(sets: Any) -> MinkowskiSum:
    """The sum of a list of sets: what a spec gives."""
    return MinkowskiSum(*sets)


def _minkowski_sums() -> Examples:
    return {
        "": MinkowskiSum(L1Ball(3, 2.0), LinfBall(3, 0.5)),
        "of a ball": MinkowskiSum(Simplex(3), L2Ball(3, 0.3)),
        "of three": MinkowskiSum(Simplex((2, 1)), L1Ball((2, 1)), LinfBall((2, 1))),
    }


def _in_minkowski_sum(domain: MinkowskiSum, rng: np.random.Generator) -> np.ndarray:
    return sum((a_point_of(one, rng) for one in domain.sets), np.zeros(domain.shape))


def _minkowski_sum_minimum(domain: MinkowskiSum, g: np.ndarray) -> float:
    return sum(known_minimum(one, g) for one in domain.sets)


ENTRY = DomainEntry(
    "minkowski-sum", minkowski_sum, "{x_1 + ... + x_m : x_i in S_i}", "the sum of the answers of the sets",
    _minkowski_sums, _in_minkowski_sum, _minkowski_sum_minimum, sets=("sets",), bounds=("diameter", "max_norm"),
)  # fmt: skip
