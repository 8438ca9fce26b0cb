"""The fully corrective inner solver: the best point in the convex hull of the atoms so far, recomputed when an atom is added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from math import inf, sqrt
from typing import Any

import numpy as np

from condgrad.checks import whole
from condgrad.inner.condg import EPS, like
from condgrad.points import ActiveSet, inner, norm2
from condgrad.points.base import same
from condgrad.points.rounding import gap_rounding
from condgrad.protocols import InnerStop, Point, Prox, vertex_oracle
from condgrad.runtime.signals import heartbeat


@dataclass(frozen=True)
class Corrective:
    """Solve the prox subproblem as a minimum-norm-point problem: find the point of the atoms' hull nearest to z = u - gamma g.

    Before each linear oracle call a small quadratic programme over the simplex of weights is solved exactly, which does what any
    number of away and pairwise steps over the atoms would do; the call then measures the gap, and if that is too large it adds
    one atom. Atoms with positive weight are kept between outer steps, so near a solution one or two calls are enough; on a
    polytope the method is finite. Where the hull has nothing as good as the centre u, u is added as an atom, so that no step is
    worse than one of CondG. Structured atoms of the set (``atom``) are kept as they are.

    Parameters
    ----------
    max_calls : int, default None
        Maximum number of linear oracle calls in one prox, each of which adds an atom. After the last one the gap of
        the point is not measured, and reported as infinite; ``with_gap`` measures it by one more call. None: no limit.
    """

    max_calls: int | None = None

    def __post_init__(self) -> None:
        if self.max_calls is not None:
            whole(self.max_calls, "max_calls")

    def init(self, domain: Any, x: Point) -> ActiveSet:
        """The active set of x alone."""
        return ActiveSet.at(x, origin=getattr(domain, "atom", None) is None)

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: ActiveSet) -> Prox:
        """Solve the prox subproblem at u with gradient g and step size gamma, until ``stop`` allows the gap."""
        vertex, hull = vertex_oracle(domain), memory
        own = hull.x is not None and same(hull.x, u)
        centre = hull.structured_point() if own else u
        # the products of the atoms with z: z itself is not formed
        at_centre = hull.gram @ hull.weights if own else hull.products(hull.from_origin(centre))
        pull = at_centre - gamma * hull.products(g)
        terms = sqrt(norm2(g)) + sqrt(norm2(centre)) / gamma
        for t in count(1):
            heartbeat()
            hull, used = hull.nearest_by_products(pull)
            pull, u_t = pull[used], hull.point()
            way = u_t - centre
            moved = norm2(way)
            if t == 1 and not own and moved + 2 * gamma * (inner(g, u_t) - inner(g, centre)) > 0.0:
                hull, pull = added(hull, u, centre, gamma, g, pull)  # no point of the hull is as good as u
                hull, used = hull.nearest_by_products(pull)
                pull, u_t = pull[used], hull.point()
                way = u_t - centre
                moved = norm2(way)
            if self.max_calls is not None and t > self.max_calls:
                return answered(u, u_t, inf, hull)
            direction = g + (1 / gamma) * way
            v_t = vertex(direction)
            to_vertex = u_t - v_t
            V = inner(direction, to_vertex)
            size = terms + sqrt(norm2(u_t)) / gamma
            # the factor 8 accounts for the rounding of the weights
            if stop(moved / gamma) >= V or 8 * EPS * size * sqrt(norm2(to_vertex)) >= V:
                break
            larger, more = added(hull, v_t, centre, gamma, g, pull)
            distances2 = larger.gram[-1, -1] + np.diag(hull.gram) - 2 * larger.gram[-1, :-1]
            if distances2.min() <= 0.0:
                break  # the atom is not new: the remaining gap is rounding of the weights
            hull, pull = larger, more
        return answered(u, u_t, max(V, 0.0) + gap_rounding(direction, u_t, v_t, size), hull)


def added(
    hull: ActiveSet, atom: Point, centre: Point, gamma: float, g: Point, pull: np.ndarray
) -> tuple[ActiveSet, np.ndarray]:
    """The hull with one more atom, and the products of its atoms with z."""
    larger = hull.with_atom(atom)
    from_origin = larger.from_origin(centre)
    if larger.origin is not hull.origin:
        return larger, larger.products(from_origin) - gamma * larger.products(g)
    last = larger.atoms[-1]
    return larger, np.append(pull, inner(last, from_origin) - gamma * inner(last, g))


def answered(u: Point, u_t: Point, gap: float, hull: ActiveSet) -> Prox:
    """The prox point, as an array if the centre u is one, and the hull as the memory for the next prox subproblem."""
    point = like(u, u_t)
    return Prox(point, gap, replace(hull, x=point))
