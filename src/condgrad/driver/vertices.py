"""Check of a user's linear oracle: each of its answers is compared with earlier answers.

The answer v to a direction d is worse than an earlier answer u if <d, v> is larger than <d, u>. Then v is not a minimiser. The
sets of this library are not checked, because their oracles are tested, and because the comparison would take about as long as a
call of their oracles.
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
"""The last REMEMBERED answers of the linear oracle are stored."""
TOLERATED = 1e-6
"""Maximum amount by which an answer may be worse than another answer, relative to |direction| times the sum of the norms of both
answers. Up to this limit the answer is called inexact, and its error is added to the gap. Above the limit the run ends."""
OF_A_POINT = 1e-5
"""Maximum amount by which an answer may be worse than a known point of the set, relative as in ``TOLERATED``. This limit is
larger, because a known point may be outside of the set by up to 1e-6 of the diameter."""
DIGITS = 4
"""If answers have a coarse type such as float16 or bfloat16, the limits ``TOLERATED`` and ``OF_A_POINT`` are raised to this
factor times the machine epsilon of the type."""
PROBES = (1e-3, 1e-2, 1e-1, 0.3, 1.0, 1.0, 1.0, 3.0, 3.0)
"""Lengths of the random vectors that :func:`probe` adds to a direction to obtain other answers, relative to the norm of the
direction."""
FAVOURS = (0.01, 0.1, 1.0, 10.0)
"""Lengths of the vectors that :func:`probe` subtracts from a direction, relative to the norm of the direction. Such a vector
points from another point to the favoured point."""

Vertices = tuple[Point, ...]


def by_user(domain: Any) -> bool:
    """Whether the user wrote the linear oracle of this set, or of one of the sets that it combines."""
    given = unwrapped(domain)
    own = type(given).__module__.startswith("condgrad.")
    if not own or isinstance(given, UserSet | ProjectableUserSet | Compared):
        return True
    return any(map(by_user, getattr(given, "parts", ())))  # the sets of a combination, such as a product


class Compared:
    """Wrapper of a set that compares every answer of its linear oracle with earlier answers."""

    def __init__(self, domain: Any):
        self._domain = domain
        self.remembered: Vertices = ()
        """The last answers. The latest answer comes first."""
        self.points: Vertices = ()
        """Known points of the set, with which answers are also compared: the start, and the points of a certificate while this
        certificate is checked."""
        self.refuted = False
        """Whether the oracle has been shown not to minimise. No certificate may then rely on it."""
        self.precision = 0.0
        """Machine epsilon of the coarsest type among the answers."""

    def __getattr__(self, name: str) -> Any:
        if name == "atoms":  # answers are compared one by one
            return None
        found = getattr(self._domain, name)
        return partial(self._asked, found) if name == "atom" and found is not None else found

    def lmo(self, direction: Point) -> Point:
        return self._asked(self._domain.lmo, direction)

    def _asked(self, oracle: Callable[[Point], Point], direction: Point) -> Point:
        """Call the oracle, and compare its answer with known points and earlier answers."""
        with receiving() as reports:
            vertex = oracle(read_only(direction))
        check_point(vertex, f"The linear oracle's answer of {type(self._domain).__name__}", self._domain.shape)
        self.precision = max(self.precision, precision_of(vertex), getattr(self._domain, "precision", 0.0))
        known, value = self.remembered, inner(direction, vertex)
        if not np.isfinite(value):  # the caller refuses the answer
            return vertex
        if (coarse := self.type_error(direction, vertex)) > 0.0:
            sentence = (
                f"The linear oracle of {type(self._domain).__name__} answers in a type with machine epsilon "
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
        """Compare an answer with other answers. Raises BadOracle if it is clearly worse than one of them.

        If the answer is slightly worse, but by more than the ``known`` error, it is reported as inexact.
        """
        excess = inner(direction, vertex) - min(values, default=inf)
        if excess <= 0.0:
            return
        other = others[int(np.argmin(values))]
        scale = sqrt(norm2(direction)) * (sqrt(norm2(vertex)) + sqrt(norm2(other)))
        if excess > known + sum_rounding(direction) * scale:
            self._worse(excess, known + max(TOLERATED, DIGITS * self.precision) * scale)

    def type_error(self, direction: Point, vertex: Point) -> float:
        """Rounding error of <direction, answer> if the machine epsilon of the answer's type is above TOLERATED; else 0."""
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
            f"{excess:.3g}: lmo must return a minimiser of <direction, .> over the set; check that it uses the direction "
            "it is given, and considers every vertex."
        )


def _latest(vertex: Point, known: Vertices, equal: list[bool]) -> Vertices:
    """Put a new vertex before the known vertices, and drop the oldest vertex if there are more than ``REMEMBERED``.

    If a known vertex equals the new vertex, it is moved to the front instead.
    """
    twin = next((i for i, same in enumerate(equal) if same and _same(known[i], vertex)), None)
    if twin is not None:
        return known if twin == 0 else (known[twin], *known[:twin], *known[twin + 1 :])
    kept = (
        np.array(vertex) if isinstance(vertex, np.ndarray) else vertex
    )  # a copy: the oracle may write its next answer to the same array
    return (kept, *known)[:REMEMBERED]


def _same(x: Point, y: Point) -> bool:
    if isinstance(x, SparseArray) and isinstance(y, SparseArray):
        return np.array_equal(x.indices, y.indices) and np.array_equal(x.values, y.values)
    return x is y or (isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and bool(np.array_equal(x, y)))


def compared(domain: Any) -> Any:
    """Wrap a set in a subclass of Compared. The subclass has the name of the set's class, for messages."""
    return type(type(domain).__name__, (Compared,), {})(domain)


def probe(domain: Compared, direction: Point, points: Vertices, brief: bool = False) -> float:
    """Call the linear oracle for the direction of a certificate and for other directions, and compare the answers.

    The other directions are the opposite direction, random directions, and directions that are changed so that <direction, .>
    decreases at one known point of the set (the favoured point), relative to another point. If the oracle has overlooked a better
    vertex, it is likely to return this vertex for one of these directions. At the end the oracle is called for the given
    direction again. In total there are at most 24 calls, or 10 with ``brief``. A structured direction is not checked.

    Parameters
    ----------
    domain : Compared
        The set.
    direction : array or structured point
        The direction of the certificate, which relies on the oracle's answer.
    points : tuple of points
        Known points of the set, in addition to ``domain.points``.
    brief : bool, default False
        Whether only the calls are made that are most likely to reveal an error, because time is short.

    Returns
    -------
    float
        The error of the answer to ``direction``: by how much it is worse than the best answer found.

    Raises
    ------
    BadOracle
        If the answer is so much worse than another answer or a known point that the oracle is wrong, not only inexact.
    """
    if not isinstance(direction, np.ndarray):
        return 0.0
    before, domain.points = domain.points, (*domain.points, *points)
    try:
        vertex = _finite(domain, direction)
        seen = tuple(_probe_answers(domain, direction, vertex, points, brief))
        again = _finite(domain, direction)
        values = [inner(direction, other) for other in seen]
        with receiving() as reports:  # only the errors of the answers to this direction
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


def _probe_answers(
    domain: Compared, direction: np.ndarray, vertex: Point, points: Vertices, brief: bool
) -> Iterator[Point]:
    """Yield the answers for the opposite direction, for random directions, and for directions that favour a point."""
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
