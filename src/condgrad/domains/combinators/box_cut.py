"""The intersection of some sets with a box."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import L1Ball, L2Ball, LinfBall
from condgrad.domains.combinators._combination import Combination
from condgrad.domains.combinators._examples import a_point_of
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes import Box
from condgrad.domains.simplices import Simplex
from condgrad.linalg.clipped_shift import clipped_shift
from condgrad.linalg.selection import increasing_order

ROUNDING = 1e-12
"""Bounds that exclude every point by less than this, relative to the set, are taken for rounding."""


@final
@dataclass(frozen=True, eq=False)
class BoxCut(Combination):
    """{x in S : lower <= x <= upper}, for S a simplex, an l1, l2 or l-infinity ball, or a box

    The linear oracle is exact. For the simplex and the l1 ball the entries with the best slopes are filled up to their bounds,
    in O(n log n); for the l2 ball the entries are clip(-d_i / t, lower_i, upper_i), with a multiplier t. The projection is exact
    too, by the multiplier of the constraint of S. ``diameter`` and ``max_norm`` are the smaller ones of S and of the box: upper
    bounds.

    Parameters
    ----------
    domain : Simplex, L1Ball, L2Ball, LinfBall or Box
        The set S. The oracles of other sets say nothing about the part of them inside a box, so they are refused: a single
        bound can be cut off by :class:`condgrad.HalfSpaceCut`.
    lower, upper : float or array_like of float, of the shape of S
        The bounds.

    Raises
    ------
    TypeError
        If S is another set.
    ValueError
        If no point of S is in the box.

    Examples
    --------
    Shares of at most one half:

    >>> import numpy as np, condgrad as cg
    >>> S = cg.BoxCut(cg.Simplex(3), 0.0, 0.5)
    >>> S.lmo(np.array([-3.0, 1.0, -2.0])), S.project(np.array([1.0, 0.0, 0.0])).round(3)
    (array([0.5, 0. , 0.5]), array([0.5 , 0.25, 0.25]))
    """

    domain: Any
    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        rule = _RULES.get(type(self.domain))
        if rule is None:
            known = ", ".join(cls.__name__ for cls in _RULES)
            raise TypeError(
                f"BoxCut has linear oracles for {known} cut by a box, but got {type(self.domain).__name__}: cut single "
                "bounds off by HalfSpaceCut, or give your own oracle by user_set(lmo, shape)."
            )
        shape = self.domain.shape
        ends = [checks.finite_array(end, f"The {name} bound of BoxCut") for name, end in self._ends()]
        box = Box(*(np.broadcast_to(end, shape) if end.ndim == 0 else end for end in ends))
        checks.same_shape(box.shape, shape, "The box of BoxCut")
        checks.settle(self, lower=box.lower, upper=box.upper)
        if sentence := self._rule.empty():
            raise ValueError(f"BoxCut is an empty set: {sentence}; give wider bounds.")

    def _ends(self) -> tuple[tuple[str, Any], tuple[str, Any]]:
        return ("lower", self.lower), ("upper", self.upper)

    @cached_property
    def _rule(self) -> _Rule:
        return _RULES[type(self.domain)](self.domain, self.lower, self.upper)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.domain.shape

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.domain,)

    @property
    def _box(self) -> Box:
        return Box(self.lower, self.upper)

    @property
    def diameter(self) -> float:
        """An upper bound: the smaller diameter."""
        return min(self.domain.diameter, self._box.diameter)

    @property
    def max_norm(self) -> float:
        """An upper bound: the smaller one of the two largest norms."""
        return min(self.domain.max_norm, self._box.max_norm)

    def lmo(self, direction: Any) -> np.ndarray:
        return self._rule.lmo(np.asarray(self._direction(direction)))

    def project(self, x: Any) -> np.ndarray:
        """The nearest point, by the multiplier of the constraint of S."""
        return self._rule.project(np.asarray(checks.finite(self._point(x), type(self).__name__, self.max_norm)))

    def start(self) -> np.ndarray:
        """The projection of the start of S."""
        return self.project(self.domain.start())

    def contains(self, x: Any, tolerance: float = 1e-9) -> bool:
        """Whether x is in S, up to its tolerance, and in the box, up to a tolerance relative to the largest norm in S."""
        x = np.asarray(self._point(x))
        slack = tolerance * self.domain.max_norm
        inside = bool(np.all(x >= self.lower - slack) and np.all(x <= self.upper + slack))
        return inside and self.domain.contains(x, tolerance)


@dataclass(frozen=True)
class _Rule(ABC):
    """A set cut by a box: the oracles of one kind of set."""

    domain: Any
    lower: np.ndarray
    upper: np.ndarray

    @abstractmethod
    def empty(self) -> str:
        """Why no point is in both, or ""."""

    @abstractmethod
    def lmo(self, d: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def project(self, z: np.ndarray) -> np.ndarray: ...


class _SimplexRule(_Rule):
    @cached_property
    def bottom(self) -> np.ndarray:
        return np.maximum(self.lower, 0.0)

    def empty(self) -> str:
        r, least, most = self.domain.radius, float(self.bottom.sum()), float(self.upper.sum())
        if least > r * (1 + ROUNDING) or most < r * (1 - ROUNDING) or np.any(self.upper < self.bottom):
            return f"the entries of its points add up to {least:.6g} to {most:.6g}, those of Simplex to {r:.6g}"
        return ""

    def lmo(self, d: np.ndarray) -> np.ndarray:
        return self.bottom + _filled(increasing_order(d.reshape(-1)), self.upper - self.bottom, self.budget)

    @property
    def budget(self) -> float:
        return self.domain.radius - float(self.bottom.sum())

    def project(self, z: np.ndarray) -> np.ndarray:
        """clip(z - t, lower, upper), with the sum r."""
        return clipped_shift(z, self.bottom, self.upper, self.domain.radius)


class _L1Rule(_Rule):
    @cached_property
    def centre(self) -> np.ndarray:
        """The point of the box nearest to 0."""
        return np.clip(0.0, self.lower, self.upper)

    def empty(self) -> str:
        least = self.domain.norm(self.centre)
        if least > self.domain.radius * (1 + ROUNDING):
            return f"the least norm in the box is {least:.6g}, above the radius {self.domain.radius:.6g}"
        return ""

    def lmo(self, d: np.ndarray) -> np.ndarray:
        room = np.where(d > 0, self.centre - self.lower, np.where(d < 0, self.upper - self.centre, 0.0))
        budget = max(self.domain.radius - float(np.abs(self.centre).sum()), 0.0)
        order = increasing_order(-np.abs(d).reshape(-1))
        return self.centre - np.sign(d) * _filled(order, room, budget)

    def project(self, z: np.ndarray) -> np.ndarray:
        """clip of the soft threshold of z at t, with the l1 norm r; in sizes it is a box cut by a plane."""
        nearest = np.clip(z, self.lower, self.upper)
        if np.abs(nearest).sum() <= self.domain.radius:
            return nearest
        sign = np.where(self.centre == 0, np.where(z < 0, -1.0, 1.0), np.sign(self.centre))
        high = np.where(sign > 0, self.upper, -self.lower)
        return sign * clipped_shift(sign * z, np.abs(self.centre), high, self.domain.radius)


class _L2Rule(_L1Rule):
    def lmo(self, d: np.ndarray) -> np.ndarray:
        corner = np.where(d > 0, self.lower, np.where(d < 0, self.upper, self.centre))
        return corner if self.domain.norm(corner) <= self.domain.radius else self._of_norm(-d)

    def project(self, z: np.ndarray) -> np.ndarray:
        inside = np.clip(z, self.lower, self.upper)
        return inside if self.domain.norm(inside) <= self.domain.radius else self._of_norm(z)

    def _of_norm(self, w: np.ndarray) -> np.ndarray:
        """clip(w / t, lower, upper), with the t > 0 for which its norm is r.

        The norm falls with t. Where an entry reaches a bound, its formula changes: t is searched among these places. Between two
        of them, the entries that are not at a bound are a multiple of those of w.
        """
        norm, r = self.domain.norm, self.domain.radius

        def at(t: float) -> np.ndarray:
            return np.clip(w / t, self.lower, self.upper)

        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            kinks = np.concatenate([(w / self.lower).ravel(), (w / self.upper).ravel()])
            kinks = np.unique(kinks[(kinks > 0) & (kinks < inf)])
            after = bisect_left(kinks, -r, key=lambda t: -norm(at(t)))  # the first one with a norm of at most r
            low = float(kinks[after - 1]) if after else 0.0
            high = float(kinks[after]) if after < len(kinks) else inf
            x = at(sqrt(low or high / 2) * sqrt(high) if high < inf else 2 * low or 1.0)
            free = (x > self.lower) & (x < self.upper)
            rest = norm(np.where(free, 0.0, x)) / r
            if not free.any() or rest >= 1.0:
                return at(high)
            x[free] = L2Ball(w.shape, r * sqrt((1 - rest) * (1 + rest))).lmo(np.where(free, -w, 0.0))[free]
            return np.clip(x, self.lower, self.upper)


class _BoxRule(_Rule):
    """Two boxes make one."""

    @cached_property
    def both(self) -> tuple[np.ndarray, np.ndarray]:
        r = self.domain.radius if isinstance(self.domain, LinfBall) else None
        ends = (-r, r) if r is not None else (self.domain.lower, self.domain.upper)
        return np.maximum(self.lower, ends[0]), np.minimum(self.upper, ends[1])

    def empty(self) -> str:
        lower, upper = self.both
        return "the two boxes have no point in common" if np.any(lower > upper) else ""

    def lmo(self, d: np.ndarray) -> np.ndarray:
        return np.where(d > 0, *self.both)

    def project(self, z: np.ndarray) -> np.ndarray:
        return np.clip(z, *self.both)


_RULES: dict[type, type[_Rule]] = {
    Simplex: _SimplexRule,
    L1Ball: _L1Rule,
    L2Ball: _L2Rule,
    LinfBall: _BoxRule,
    Box: _BoxRule,
}


def _filled(order: np.ndarray, room: np.ndarray, budget: float) -> np.ndarray:
    """A budget that is spent on the entries in this order, each up to its room."""
    sorted_room = room.ravel()[order]
    before = np.concatenate([[0.0], np.cumsum(sorted_room)[:-1]])
    spent = np.zeros(room.size)
    spent[order] = np.clip(budget - before, 0.0, sorted_room)
    return spent.reshape(room.shape)


def _box_cuts() -> Examples:
    return {
        "": BoxCut(Simplex(4, 2.0), [0.1, -1.0, 0.0, 0.2], [1.0, 0.7, 0.5, 3.0]),
        "of an l1 ball": BoxCut(L1Ball(3, 2.0), [-1.0, 0.2, -3.0], [0.5, 1.0, 3.0]),
        "of an l2 ball": BoxCut(L2Ball(3, 1.5), [-1.0, 0.2, -3.0], [0.5, 1.0, 3.0]),
        "of an l-infinity ball": BoxCut(LinfBall((2, 2)), -0.5, 3.0),
        "of a box": BoxCut(Box([0.0, -1.0], [2.0, 1.0]), [1.0, -3.0], [5.0, 0.0]),
    }


def _in_box_cut(domain: BoxCut, rng: np.random.Generator) -> np.ndarray:
    """A random point of S, moved towards the start until it is in the box."""
    x, start = a_point_of(domain.domain, rng), domain.start()
    step = start - x
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(
            x < domain.lower, (domain.lower - x) / step, np.where(x > domain.upper, (domain.upper - x) / step, 0)
        )
    return np.clip(x + min(float(shares.max()), 1.0) * step, domain.lower, domain.upper)


def _box_cut_minimum(domain: BoxCut, g: np.ndarray) -> float:
    """By linear programming; for an l2 ball by trying which entries are at which bound."""
    from scipy.optimize import linprog

    S, lower, upper, c = domain.domain, domain.lower.ravel(), domain.upper.ravel(), g.ravel()
    if isinstance(S, L2Ball):
        return min(_l2_candidates(S.radius, lower, upper, c), default=inf)
    if isinstance(S, Simplex):
        found = linprog(
            c, A_eq=np.ones((1, c.size)), b_eq=[S.radius], bounds=list(zip(np.maximum(lower, 0), upper, strict=True))
        )
        return float(found.fun or 0.0)
    if isinstance(S, L1Ball):  # x = p - q, with p, q >= 0
        pair = np.concatenate([np.eye(c.size), -np.eye(c.size)], axis=1)
        rows = np.concatenate([np.ones((1, 2 * c.size)), pair, -pair])
        found = linprog(np.concatenate([c, -c]), A_ub=rows, b_ub=np.concatenate([[S.radius], upper, -lower]))
        return float(found.fun or 0.0)
    inner_box = Box(-S.radius, np.full(g.shape, S.radius)) if isinstance(S, LinfBall) else S
    bottom, top = np.maximum(lower, inner_box.lower.ravel()), np.minimum(upper, inner_box.upper.ravel())
    return float(np.minimum(c * bottom, c * top).sum())


def _l2_candidates(r: float, lower: np.ndarray, upper: np.ndarray, c: np.ndarray) -> list[float]:
    """Values at the points of the ball that are stationary with some entries at their bounds."""
    values = []
    for places in itertools.product((0, 1, 2), repeat=c.size):
        place = np.array(places)
        x = np.select([place == 0, place == 1], [lower, upper], 0.0)
        rest, size = r**2 - float(x @ x), float(np.linalg.norm(c[place == 2]))
        if rest >= 0 and size > 0:
            x[place == 2] = -c[place == 2] * sqrt(rest) / size
        if x @ x <= r**2 * (1 + 1e-15) and np.all(x >= lower) and np.all(x <= upper):
            values.append(float(c @ x))
    return values


ENTRY = DomainEntry(
    "box-cut", BoxCut, "{x in S : lower <= x <= upper}", "the best entries are filled up to their bounds; l2: by a multiplier",
    _box_cuts, _in_box_cut, _box_cut_minimum,
    arrays=("lower", "upper"), sets=("domain",), bounds=("diameter", "max_norm"),
)  # fmt: skip
