"""The intersection of a set with a half-space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import copysign, sqrt, ulp
from typing import Any, NamedTuple, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import L2Ball
from condgrad.domains.combinators._combination import (
    DIGITS,
    Combination,
    check_set,
    contained,
    diameter_of,
    max_norm_of,
    only_if,
    parts_project,
    start_of,
)
from condgrad.domains.combinators._examples import a_point_of, vertices_of
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes import Box
from condgrad.domains.simplices import Simplex
from condgrad.points import inner
from condgrad.protocols import Point
from condgrad.runtime.signals import heartbeat, report_inexact

MAX_CALLS = 200
"""Maximum number of linear minimisations over S in one call; about 30 halve the multiplier's interval to rounding."""
ACCURACY = 2e-15
"""An error below this, relative to the terms of the value, is rounding."""


class _Vertex(NamedTuple):
    """A point of S with its value <d, x> and its excess <a, x> - b."""

    x: Point
    value: float
    excess: float


def _share(low: _Vertex, high: _Vertex) -> float:
    """The weight of ``high`` in the combination of the two that lies on the plane <a, x> = b."""
    return low.excess / (low.excess - high.excess) if high.excess < 0 else 1.0


def _mixed_value(low: _Vertex, high: _Vertex) -> float:
    share = _share(low, high)
    return (1 - share) * low.value + share * high.value


@final
@dataclass(frozen=True, eq=False)
class HalfSpaceCut(Combination):
    """{x in S : <a, x> <= b}

    The linear oracle maximises the dual function q(t) = min over S of <d + t a, x> - t b over the multiplier t >= 0. Each
    value of q is one linear minimisation over S and gives a line above q; the next t is where the two lines that enclose the
    maximum meet. The answer is a vertex of S, or the combination with <a, x> = b of the last two vertices: on a polytope
    exactly, after finitely many calls; on other sets the interval of t halves from call to call, until the difference to the
    dual value, which bounds the error, is rounding. An error that is left after 200 calls is reported, and certificates
    include it.

    The projection, where S has one, is found by the same search, of the multiplier t with <a, P(x - t a)> = b. ``diameter`` and
    ``max_norm`` are those of S: upper bounds.

    Parameters
    ----------
    domain : Domain
        The set S.
    normal : array_like of float, of the shape of S
        The vector a, not 0.
    offset : float
        The number b.

    Raises
    ------
    ValueError
        If the normal is 0, or if no point of S is in the half-space.

    Examples
    --------
    Shares of at most 60 % in the first two of three assets:

    >>> import numpy as np, condgrad as cg
    >>> S = cg.HalfSpaceCut(cg.Simplex(3), [1.0, 1.0, 0.0], 0.6)
    >>> S.lmo(np.array([-3.0, -1.0, -2.0])), S.project(np.array([1.0, 0.0, 0.0])).round(3)
    (array([0.6, 0. , 0.4]), array([0.6, 0. , 0.4]))

    References
    ----------
    D. P. Bertsekas. Nonlinear Programming, chapter 6 (dual and cutting plane methods). Athena Scientific, 2016.
    """

    domain: Any
    normal: Any
    offset: float

    def __post_init__(self) -> None:
        shape = checks.as_shape(check_set(self.domain, "HalfSpaceCut").shape, "HalfSpaceCut")
        normal = checks.finite_array(self.normal, "The normal of HalfSpaceCut")
        checks.same_shape(normal.shape, shape, "The normal of HalfSpaceCut")
        if not normal.any():
            raise ValueError("The normal of HalfSpaceCut is 0: give the vector a of the half-space <a, x> <= b.")
        checks.settle(self, normal=normal, offset=checks.real(self.offset, "The offset of HalfSpaceCut"))
        least = self._excess(self._deepest)
        if least > DIGITS * (abs(self._bound) + sqrt(float(np.vdot(self._deepest, self._deepest)))):
            raise ValueError(
                f"HalfSpaceCut is an empty set: <a, x> is at least {(least + self._bound) * self._length:.6g} on "
                f"{type(self.domain).__name__}, above the offset {self.offset:.6g}; give a larger one."
            )

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.normal.shape

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.domain,)

    @cached_property
    def _length(self) -> float:
        top = float(np.abs(self.normal).max())
        return top * float(np.linalg.norm(self.normal / top))

    @cached_property
    def _unit(self) -> np.ndarray:
        """a / |a|."""
        return checks.read_only(self.normal / self._length)

    @cached_property
    def _bound(self) -> float:
        """b / |a|."""
        return self.offset / self._length

    @cached_property
    def _deepest(self) -> np.ndarray:
        """The point of S with the least <a, x>."""
        return checks.read_only(np.asarray(self.domain.lmo(self._unit)))

    def _excess(self, x: Point) -> float:
        return inner(self._unit, x) - self._bound

    @property
    def diameter(self) -> float:
        """An upper bound: that of S."""
        return diameter_of(self.domain)

    @property
    def max_norm(self) -> float:
        """An upper bound: that of S."""
        return max_norm_of(self.domain)

    def lmo(self, direction: Point) -> Point:
        d = self._direction(direction)

        def vertex(x: Point) -> _Vertex:
            return _Vertex(x, inner(d, x), self._excess(x))

        low, high = vertex(self.domain.lmo(d)), vertex(self._deepest)
        if low.excess <= 0.0:
            return low.x
        if low.excess <= high.excess:  # the half-space touches S only
            return high.x
        dual, exact = low.value, False
        for _ in range(MAX_CALLS):
            heartbeat()
            t = max((high.value - low.value) / (low.excess - high.excess), 0.0)
            new = vertex(self.domain.lmo(d + t * self._unit))
            dual = max(dual, new.value + t * new.excess)
            size = abs(low.value) + abs(high.value) + t * (abs(self._bound) + abs(low.excess) + abs(high.excess))
            exact = _mixed_value(low, high) - dual <= ACCURACY * size or new[1:] in (low[1:], high[1:])
            if exact:
                break
            low, high = (new, high) if new.excess > 0 else (low, new)
        value = _mixed_value(low, high)
        if not exact:
            report_inexact(
                value - dual,
                f"The linear oracle of HalfSpaceCut did not converge: the value of its answer, {value:.6g}, may be above the "
                f"minimum by up to {value - dual:.2g}, which is certified.",
            )
        share = _share(low, high)
        return (1 - share) * low.x + share * high.x

    @only_if(parts_project)
    def project(self, x: Point) -> Point:
        """P(x - t a), with P the projection onto S, and t >= 0 the multiplier for which it is in the half-space."""
        from scipy.optimize import brentq

        x = np.asarray(checks.finite(self._point(x), type(self).__name__))

        def at(t: float) -> Point:
            heartbeat()
            return self.domain.project(x - t * self._unit)

        def excess(t: float) -> float:
            return self._excess(at(t))

        if excess(0.0) <= 0.0:
            return self.domain.project(x)
        size = max_norm_of(self.domain)
        x = checks.finite(x, type(self).__name__, size)
        high, most = max(self._excess(x), DIGITS * size), 1e18 * (size + abs(self._bound) + np.abs(x).max())
        while excess(high) > 0.0 and high < most:
            high *= 2
        if excess(high) > 0.0:  # the half-space touches S only
            return at(high)
        t = brentq(excess, 0.0, high, xtol=1e-300, rtol=8.9e-16, maxiter=500)
        nearest = at(t)
        over = self._excess(nearest)
        if abs(over) <= DIGITS * size:
            return self._moved_in(nearest)
        # from a far x, the digits of t allow points on both sides of the plane only: the nearest point is between them
        step, other, beyond = copysign(ulp(t), over), nearest, over
        while beyond * over > 0.0:
            other = at(min(max(t + step, 0.0), high))
            step, beyond = 2 * step, self._excess(other)
        share = over / (over - beyond)
        return (1 - share) * nearest + share * other

    def start(self) -> Point:
        """The start of S, moved towards the point with the least <a, x> until it is in the half-space."""
        return self._moved_in(start_of(self.domain))

    def _moved_in(self, x: Point) -> Point:
        over, least = self._excess(x), self._excess(self._deepest)
        if over <= 0.0:
            return x
        share = over / (over - least) if least < 0 else 1.0
        return (1 - share) * x + share * self._deepest

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        """Whether x is in S, up to its tolerance, and in the half-space, up to a tolerance relative to ``max_norm``."""
        x = self._point(x)
        return contained(self.domain, x, tolerance) and self._excess(x) <= tolerance * self.max_norm


def _half_space_cuts() -> Examples:
    return {
        "": HalfSpaceCut(Simplex(4, 2.0), [1.0, -1.0, 2.0, 0.5], 1.5),
        "of a ball": HalfSpaceCut(L2Ball((2, 2), 1.5), [[3.0, 0.0], [-4.0, 1.0]], 2.0),
        "of a box": HalfSpaceCut(Box([-1.0, 0.0, 2.0], [1.0, 1.0, 3.0]), [1.0, 1.0, 1.0], 3.0),
        "loose": HalfSpaceCut(Simplex(3), [1.0, 1.0, 1.0], 7.0),
    }


def _in_half_space_cut(domain: HalfSpaceCut, rng: np.random.Generator) -> np.ndarray:
    x, deep = a_point_of(domain.domain, rng), np.asarray(domain.start())
    over = float(np.vdot(domain.normal, x)) - domain.offset
    room = domain.offset - float(np.vdot(domain.normal, deep))
    return x if over <= 0 else x + (over / (over + room) if room > 0 else 1.0) * (deep - x)


def _half_space_cut_minimum(domain: HalfSpaceCut, g: np.ndarray) -> float:
    """Of a ball in closed form; of a polytope the least of its vertices and of all points of the plane between two of them."""
    a, b = domain.normal / np.linalg.norm(domain.normal), domain.offset / float(np.linalg.norm(domain.normal))
    if isinstance(domain.domain, L2Ball):
        r, size, along = domain.domain.radius, float(np.linalg.norm(g)), float(np.vdot(a, g))
        if -r * along <= b * size:
            return -r * size
        return b * along - sqrt(r**2 - b**2) * float(np.linalg.norm(g - along * a))
    found = [(float(np.vdot(g, v)), float(np.vdot(a, v)) - b) for v in vertices_of(domain.domain)]
    inside = [(f, h) for f, h in found if h <= 0]
    edges = [f + (F - f) * h / (h - H) for f, h in inside for F, H in found if H > 0]
    return min([f for f, _ in inside] + edges)


ENTRY = DomainEntry(
    "half-space-cut", HalfSpaceCut, "{x in S : <a, x> <= b}", "a combination of two vertices of S, by a search of the multiplier",
    _half_space_cuts, _in_half_space_cut, _half_space_cut_minimum,
    arrays=("normal",), sets=("domain",), bounds=("diameter", "max_norm"),
)  # fmt: skip
