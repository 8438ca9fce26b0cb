"""A few answers of a user's linear oracle are remembered: an answer that is worse than one of them is not a minimiser.

The sets of this library are exempt: their oracles are tested, and cost little more than the comparison would.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from condgrad.checks import BadOracle
from condgrad.domains import ProjectableUserSet, UserSet
from condgrad.driver.resolve import unwrapped
from condgrad.points import inner, norm2
from condgrad.points.rounding import units
from condgrad.protocols import Point
from condgrad.runtime.signals import inexact, listening, worst

REMEMBERED = 8
"""Answers that are remembered: those that were given last."""
TOLERATED = 1e-6
"""An answer that is worse by at most this, relative to |direction| times the size of the answers, is called inexact: its error is
added to the gap. One that is worse by more ends the run."""
OF_A_POINT = 1e-5
"""The same for a known point of the set, which may be off by as much as counts as inside (1e-6 of the set) itself."""
PROBES = (1e-3, 1e-2, 1e-1, 1.0)
"""Lengths of the random vectors, relative to the direction, by which it is changed to see other answers."""
FAVOURS = (0.1, 10.0)
"""By how much, relative to the direction, the answer is favoured to see the next best one."""

Vertices = tuple[Point, ...]


def by_user(domain: Any) -> bool:
    """Is this set's linear oracle somebody else's?"""
    given = unwrapped(domain)
    own = type(given).__module__.startswith("condgrad.")
    return not own or isinstance(given, UserSet | ProjectableUserSet | Compared)


class Compared:
    """The set, with every answer of its linear oracle compared with those before."""

    def __init__(self, domain: Any):
        self._domain = domain
        self.remembered: Vertices = ()
        self.points: Vertices = ()
        """Known points of the set, with which answers are compared too: the start, and where a claim is checked its points."""
        self.refuted = False
        """The oracle has been shown not to minimise: nothing that rests on it is a certificate."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._domain, name)

    def lmo(self, direction: Point) -> Point:
        with listening() as heard:
            vertex = self._domain.lmo(direction)
        known, value = self.remembered, inner(direction, vertex)
        if not np.isfinite(value):  # is refused by whoever asked
            return vertex
        for point in self.points:
            excess = value - inner(direction, point)
            if excess > 0.0:
                scale = sqrt(norm2(direction)) * (sqrt(norm2(vertex)) + sqrt(norm2(point)))
                if excess > worst(heard) + OF_A_POINT * scale:
                    self._refuse(excess, "a known point of the set")
        values = [inner(direction, other) for other in known]
        if known and min(values) < value:
            other = known[int(np.argmin(values))]
            scale = sqrt(norm2(direction)) * (sqrt(norm2(vertex)) + sqrt(norm2(other)))
            excess = value - min(values)
            if excess > worst(heard) + units(direction) * scale:
                self._worse(excess, worst(heard) + TOLERATED * scale)
        self.remembered = _latest(vertex, known, [v == value for v in values])
        return vertex

    def _worse(self, excess: float, tolerated: float) -> None:
        if excess > tolerated:
            self._refuse(excess, "one of its earlier answers")
        name = type(self._domain).__name__
        sentence = f"The linear oracle of {name} is not exact: one of its answers was worse than an earlier one by {excess:.3g}."
        inexact(excess, sentence)

    def _refuse(self, excess: float, than: str) -> None:
        self.refuted = True
        raise BadOracle(
            f"The linear oracle of {type(self._domain).__name__} answered with a point that is worse than {than} by "
            f"{excess:.3g}: lmo must return a minimiser of <direction, .> over the set; check that it looks at the direction "
            "it is given, and at every vertex."
        )


def _latest(vertex: Point, known: Vertices, equal: list[bool]) -> Vertices:
    """The vertex, and those before it without its twin and without the oldest."""
    twin = next((i for i, same in enumerate(equal) if same and _same(known[i], vertex)), None)
    if twin is not None:
        return known if twin == 0 else (known[twin], *known[:twin], *known[twin + 1 :])
    kept = (
        np.array(vertex) if isinstance(vertex, np.ndarray) else vertex
    )  # an oracle may answer in the same array again
    return (kept, *known)[:REMEMBERED]


def _same(x: Point, y: Point) -> bool:
    return x is y or (isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and bool(np.array_equal(x, y)))


def compared(domain: Any) -> Any:
    """The set with its answers compared, under its own class's name, which messages show."""
    return type(type(domain).__name__, (Compared,), {})(domain)


def probe(domain: Compared, direction: Point, points: Vertices) -> float:
    """Ask for other answers, then for the direction's own again: an oracle that is not exact, or that answers a question asked
    before, is likely to be worse than one of them, or than a known point, which raises BadOracle.

    Directions near and far from the given one, the opposite one, and ones that favour the answer itself: an oracle that
    overlooks a better vertex answers with that one once its answer is the best. At most 13 calls, of arrays only.

    Parameters
    ----------
    domain : Compared
    direction : array or structured point
        On the answer to it a certificate rests.
    points : tuple of points
        Known points of the set, beside ``domain.points``.

    Returns
    -------
    float
        By how much the answer to ``direction`` is worse than the best one seen, where that is little enough to be an error.
    """
    if not isinstance(direction, np.ndarray):
        return 0.0
    before, domain.points = domain.points, (*domain.points, *points)
    try:
        vertex = domain.lmo(direction)
        for other in _others(direction, vertex, domain.points):
            domain.lmo(other)
        with listening() as heard:
            domain.lmo(direction)
        return worst(heard)
    finally:
        domain.points = before


def _others(direction: np.ndarray, vertex: Point, points: Vertices) -> Iterator[np.ndarray]:
    rng, size = np.random.default_rng((0, 0, 7)), sqrt(norm2(direction))
    away = [np.asarray(vertex - point) for point in points]
    for towards in away:
        length = sqrt(norm2(towards))
        if length > 0.0:
            yield from (direction - favour * size / length * towards for favour in FAVOURS)
    for share in PROBES:
        yield direction + share * size / sqrt(max(direction.size, 1)) * rng.standard_normal(direction.shape)
    yield -direction
