"""A few answers of a user's linear oracle are remembered: an answer that is worse than one of them is not a minimiser.

The sets of this library are exempt: their oracles are tested, and cost little more than the comparison would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf, sqrt
from typing import Any

import numpy as np

from condgrad.checks import BadOracle, NonFinite, read_only
from condgrad.domains import ProjectableUserSet, UserSet
from condgrad.driver.resolve import check_point, unwrapped
from condgrad.points import SparseArray, inner, norm2
from condgrad.points.rounding import precision_of, sum_rounding
from condgrad.protocols import Point
from condgrad.runtime.signals import receiving, report_inexact, worst

REMEMBERED = 8
"""Answers that are remembered: those that were given last."""
TOLERATED = 1e-6
"""An answer that is worse by at most this, relative to |direction| times the size of the answers, is called inexact: its error is
added to the gap. One that is worse by more ends the run."""
OF_A_POINT = 1e-5
"""The same for a known point of the set, which may be off by as much as counts as inside (1e-6 of the set) itself."""
DIGITS = 4
"""Both in units of the type of the answers, where that is coarser: float16 and bfloat16."""
PROBES = (1e-3, 1e-2, 1e-1, 0.3, 1.0, 1.0, 1.0, 3.0, 3.0)
"""Lengths of the random vectors, relative to the direction, by which it is changed to see other answers."""
FAVOURS = (0.01, 0.1, 1.0, 10.0)
"""By how much, relative to the direction, an answer is favoured over another one to see the next best."""

Vertices = tuple[Point, ...]


def by_user(domain: Any) -> bool:
    """Is this set's linear oracle somebody else's?"""
    given = unwrapped(domain)
    own = type(given).__module__.startswith("condgrad.")
    if not own or isinstance(given, UserSet | ProjectableUserSet | Compared):
        return True
    return any(map(by_user, getattr(given, "parts", ())))  # the sets that a combination is made of


class Compared:
    """The set, with every answer of its linear oracle compared with those before."""

    def __init__(self, domain: Any):
        self._domain = domain
        self.remembered: Vertices = ()
        self.points: Vertices = ()
        """Known points of the set, with which answers are compared too: the start, and where a claim is checked its points."""
        self.refuted = False
        """The oracle has been shown not to minimise: nothing that rests on it is a certificate."""
        self.precision = 0.0
        """The relative distance of two numbers of the coarsest type in which the set has answered."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._domain, name)
        return partial(self._asked, found) if name == "atom" and found is not None else found

    def lmo(self, direction: Point) -> Point:
        return self._asked(self._domain.lmo, direction)

    def _asked(self, oracle: Callable[[Point], Point], direction: Point) -> Point:
        """The answer of the oracle, compared."""
        with receiving() as reports:
            vertex = oracle(read_only(direction))
        check_point(vertex, f"The linear oracle's answer of {type(self._domain).__name__}")
        self.precision = max(self.precision, precision_of(vertex), getattr(self._domain, "precision", 0.0))
        known, value = self.remembered, inner(direction, vertex)
        if not np.isfinite(value):  # is refused by whoever asked
            return vertex
        if (coarse := self.type_error(direction, vertex)) > 0.0:
            sentence = (
                f"The linear oracle of {type(self._domain).__name__} answers in numbers with a relative distance of "
                f"{self.precision:.3g} (float16 or coarser), so that <direction, answer> may be off by {coarse:.3g}."
            )
            report_inexact(coarse, sentence)
        error = worst(reports) + coarse
        for point in self.points:
            excess = value - inner(direction, point)
            if excess > 0.0:
                scale = sqrt(norm2(direction)) * (sqrt(norm2(vertex)) + sqrt(norm2(point)))
                if excess > error + max(OF_A_POINT, DIGITS * self.precision) * scale:
                    self._refuse(excess, "a known point of the set")
        values = [inner(direction, other) for other in known]
        self.compare(direction, vertex, known, values, error)
        self.remembered = _latest(vertex, known, [v == value for v in values])
        return vertex

    def compare(self, direction: Point, vertex: Point, others: Vertices, values: list[float], known: float) -> None:
        """Refuse an answer that is worse than one of the others; where it is so by little, by more than a known error, say so."""
        excess = inner(direction, vertex) - min(values, default=inf)
        if excess <= 0.0:
            return
        other = others[int(np.argmin(values))]
        scale = sqrt(norm2(direction)) * (sqrt(norm2(vertex)) + sqrt(norm2(other)))
        if excess > known + sum_rounding(direction) * scale:
            self._worse(excess, known + max(TOLERATED, DIGITS * self.precision) * scale)

    def type_error(self, direction: Point, vertex: Point) -> float:
        """What an exact answer is off by once rounded, where its type is coarser than what counts as exact; else 0."""
        if self.precision <= TOLERATED:
            return 0.0
        return self.precision / 2 * sqrt(norm2(direction)) * sqrt(norm2(vertex))

    def _worse(self, excess: float, tolerated: float) -> None:
        if excess > tolerated:
            self._refuse(excess, "one of its earlier answers")
        name = type(self._domain).__name__
        sentence = f"The linear oracle of {name} is not exact: one of its answers was worse than an earlier one by {excess:.3g}."
        report_inexact(excess, sentence)

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
    if isinstance(x, SparseArray) and isinstance(y, SparseArray):
        return np.array_equal(x.indices, y.indices) and np.array_equal(x.values, y.values)
    return x is y or (isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and bool(np.array_equal(x, y)))


def compared(domain: Any) -> Any:
    """The set with its answers compared, under its own class's name, which messages show."""
    return type(type(domain).__name__, (Compared,), {})(domain)


def probe(domain: Compared, direction: Point, points: Vertices, brief: bool = False) -> float:
    """Ask for other answers, then for the direction's own again: an oracle that is not exact, or that answers a question asked
    before, is likely to be worse than one of them, or than a known point, which raises BadOracle.

    The opposite direction, directions near and far from the given one, and ones that favour the answer itself: an oracle that
    overlooks a better vertex answers with that one once its own answer is the best. At most 24 calls, or 10 where ``brief``,
    of arrays only.

    Parameters
    ----------
    domain : Compared
    direction : array or structured point
        On the answer to it a certificate rests.
    points : tuple of points
        Known points of the set, beside ``domain.points``.
    brief : bool, default False
        Ask only for the most telling answers: time is up, or somebody waits.

    Returns
    -------
    float
        By how much the answer to ``direction`` is worse than the best one seen, where that is little enough to be an error.
    """
    if not isinstance(direction, np.ndarray):
        return 0.0
    before, domain.points = domain.points, (*domain.points, *points)
    try:
        vertex = _finite(domain, direction)
        seen = tuple(_others(domain, direction, vertex, points, brief))
        again = _finite(domain, direction)
        values = [inner(direction, other) for other in seen]
        with receiving() as reports:  # the errors of the answers to other directions are not those of this one
            for answer in (vertex, again):
                domain.compare(direction, answer, seen, values, domain.type_error(direction, answer))
        return worst(reports)
    finally:
        domain.points = before


def _finite(domain: Compared, direction: np.ndarray) -> Point:
    vertex = domain.lmo(direction)
    if not np.isfinite(norm2(vertex)):
        raise NonFinite("The linear oracle's answer holds NaN or Inf, or is too large to square.")
    return vertex


def _others(domain: Compared, direction: np.ndarray, vertex: Point, points: Vertices, brief: bool) -> Iterator[Point]:
    """Answers to other directions: the opposite one, random ones, and ones that favour an answer over a known point."""
    seen = [_finite(domain, -direction)]
    rng, size = np.random.default_rng((0, 0, 7)), sqrt(norm2(direction) / max(direction.size, 1))
    for share in PROBES[::3] if brief else PROBES:
        seen.append(_finite(domain, direction + share * size * rng.standard_normal(direction.shape)))
    yield from seen
    next_best = sorted((one for one in seen[1:] if not _same(one, vertex)), key=lambda one: inner(direction, one))
    pairs = [(vertex, point) for point in (*points[-1:], seen[0])] + [(one, vertex) for one in next_best[:1]]
    for favoured, over in pairs[:1] if brief else pairs:
        towards = np.asarray(favoured - over)
        if (length2 := norm2(towards)) > 0.0:
            unit = sqrt(norm2(direction) / length2) * towards
            yield from (_finite(domain, direction - favour * unit) for favour in FAVOURS)
