"""The convex hull of a union of sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import isfinite, sqrt
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import L1Ball, L2Ball
from condgrad.domains.combinators._combination import (
    LARGEST,
    SMALLEST,
    Combination,
    as_answer,
    check_sets,
    contained,
    diameter_of,
    max_norm_of,
    reached,
    start_of,
)
from condgrad.domains.combinators._examples import a_point_of, known_minimum
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes import Box
from condgrad.domains.simplices import Simplex
from condgrad.points import inner, norm2
from condgrad.protocols import Point, has, vertex_oracle


@final
@dataclass(frozen=True, init=False)
class HullOfUnion(Combination):
    """conv(S_1 u ... u S_m), for sets of one shape

    The linear oracle is the best of the answers of the sets. ``max_norm`` is the largest one: exact where those of the sets are.
    ``diameter`` is an upper bound, exact for balls around 0. Membership is found by linear minimisations (16,500 at most,
    80 for each entry), where none of the sets contains the point. There is no projection: use ``inner="corrective"``, which is
    the default here.

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
    >>> import numpy as np, condgrad as cg
    >>> S = cg.HullOfUnion(cg.L2Ball(2), cg.Box([3.0, 0.0], [4.0, 0.0]))
    >>> S.lmo(np.array([-1.0, 0.0])), S.lmo(np.array([0.0, 1.0]))
    (array([4., 0.]), array([-0., -1.]))
    """

    sets: tuple[Any, ...]

    def __init__(self, *sets: Any):
        checks.settle(self, sets=check_sets(sets, "HullOfUnion"))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return checks.as_shape(self.sets[0].shape, "HullOfUnion")

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.sets

    @property
    def diameter(self) -> float:
        """An upper bound: two sets are no further apart than their norms, or their distances to the starts, add up to."""
        widths, norms = [*map(diameter_of, self.sets)], [*map(max_norm_of, self.sets)]
        starts = [start_of(one) for one in self.sets]
        apart = (
            min(norms[i] + norms[j], sqrt(norm2(starts[i] - starts[j])) + widths[i] + widths[j])
            for i, j in combinations(range(len(self.sets)), 2)
        )
        return max([*widths, *apart])

    @property
    def max_norm(self) -> float:
        return max(map(max_norm_of, self.sets))

    def lmo(self, direction: Point) -> Point:
        direction = self._passed_on(direction)
        offers = [_offer(one, direction) for one in self.sets]
        values = [abs(value) for value, _ in offers]
        if not (
            all(map(isfinite, values)) and SMALLEST < max(values) < LARGEST
        ):  # some may have overflowed or vanished
            direction = self._direction(direction)
            offers = [
                (inner(direction, vertex()), vertex) for vertex in (_offer(one, direction)[1] for one in self.sets)
            ]
        return as_answer(min(offers, key=lambda offer: offer[0])[1]())

    def start(self) -> Point:
        """The mean of the starts."""
        total = start_of(self.sets[0])
        for one in self.sets[1:]:
            total = total + start_of(one)
        return (1 / len(self.sets)) * total

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        """Whether x is in the set, up to a tolerance relative to ``max_norm``, or to that of the sets."""
        x = self._point(x)
        if any(has(one, "contains") and contained(one, x, tolerance) for one in self.sets):
            return True
        return reached((self,), x, tolerance * self.max_norm)


def _offer(domain: Any, direction: Point) -> tuple[float, Callable[[], Point]]:
    """The minimum of <direction, x> over a set, and a function that returns a minimiser; without one where that saves time."""
    if isinstance(domain, L2Ball) and isinstance(direction, np.ndarray):
        return domain.minimum_and_vertex(direction)
    vertex = vertex_oracle(domain)(direction)
    return inner(direction, vertex), lambda: vertex


def hull_of_union(sets: Any) -> HullOfUnion:
    """The hull of the union of a list of sets: what a spec gives."""
    return HullOfUnion(*sets)


def _hulls_of_unions() -> Examples:
    return {
        "": HullOfUnion(L1Ball(3), Box([2.0, 0.0, 0.0], [3.0, 1.0, 0.5])),
        "of a ball": HullOfUnion(L2Ball(3, 0.8), L1Ball(3)),
        "of one": HullOfUnion(Simplex((2, 2))),
    }


def _in_hull_of_union(domain: HullOfUnion, rng: np.random.Generator) -> np.ndarray:
    weights = rng.dirichlet(np.full(len(domain.sets), 0.5))
    return sum((w * a_point_of(one, rng) for w, one in zip(weights, domain.sets, strict=True)), np.zeros(domain.shape))


def _hull_of_union_minimum(domain: HullOfUnion, g: np.ndarray) -> float:
    return min(known_minimum(one, g) for one in domain.sets)


ENTRY = DomainEntry(
    "hull-of-union", hull_of_union, "conv(S_1 u ... u S_m)", "the best of the answers of the sets",
    _hulls_of_unions, _in_hull_of_union, _hull_of_union_minimum, sets=("sets",), bounds=("diameter",),
)  # fmt: skip
