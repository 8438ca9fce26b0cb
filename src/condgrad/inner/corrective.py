"""The fully corrective inner solver. After each new atom it finds the best point in the convex hull of all atoms so far."""

from __future__ import annotations

from collections.abc import Callable
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

    Before each linear oracle call, a small quadratic programme over the weights of the atoms is solved exactly. Its solution is
    as good as any number of away and pairwise steps over these atoms. The oracle call then measures the gap. If the gap is too
    large, the vertex found by the call becomes an atom. (A set with a method ``atoms`` may give several vertices in one call.)
    Atoms with positive weight are kept between outer steps, so near a solution one or two calls are enough. On a polytope the
    method ends after finitely many calls. If no point of the hull is as good as the centre u, u is added as an atom, so that no
    step is worse than a step of CondG. If the set has structured atoms (a method ``atom``), they are stored in that form.

    Parameters
    ----------
    max_calls : int, default None
        Maximum number of linear oracle calls in one prox; None: no limit. The last call measures the gap of the point, and its
        atom is kept with weight 0 for the next prox. There is one exception. If the point is still the centre u at the last
        call, the new atom is used to move the point. The gap of the new point is then not measured, and is reported as infinite.
        ``with_gap`` measures this gap by one more call.
    """

    max_calls: int | None = None

    def __post_init__(self) -> None:
        if self.max_calls is not None:
            whole(self.max_calls, "max_calls")

    def init(self, domain: Any, x: Point) -> ActiveSet:
        """Return the memory before the first prox: the active set with x as its only atom."""
        return ActiveSet.at(x, origin=getattr(domain, "atom", None) is None)

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: ActiveSet) -> Prox:
        """Solve the prox subproblem at u with gradient g and step size gamma, until ``stop`` allows the gap."""
        vertices, hull = vertices_oracle(domain), memory
        own = hull.x is not None and same(hull.x, u)
        centre = hull.structured_point() if own else u
        # ``pull`` will have the inner products of the atoms with z; z itself is not formed
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
                hull = hull.with_atom(u)  # no point of the hull is as good as u
                pull = hull.products(hull.from_origin(centre)) - gamma * hull.products(g)
                hull, used = hull.nearest_by_products(pull)
                pull, u_t = pull[used], hull.point()
                way = u_t - centre
                moved = norm2(way)
            if self.max_calls is not None and t > self.max_calls:
                return answered(u, u_t, inf, hull)
            direction = g + (1 / gamma) * way
            found = vertices(direction, min(max(FEW_ATOMS, len(hull.atoms)), MOST_ATOMS))
            v_t = found[0]
            to_vertex = u_t - v_t
            V = inner(direction, to_vertex)
            size = terms + sqrt(norm2(u_t)) / gamma
            # the factor 8 accounts for the rounding of the weights
            if stop(moved / gamma) >= V or 8 * EPS * size * sqrt(norm2(to_vertex)) >= V:
                break
            if len(found) > 1:
                falls = inner(direction, u_t) - found.products(direction)
                found = found.kept(np.flatnonzero(falls >= VIOLATION_SHARE * falls[0]))
            larger = hull.with_atoms(found)
            if not distinct(larger, len(found)):
                larger = hull.with_atoms([v_t])
                if not distinct(larger, 1):
                    break  # the atom is not new: the remaining gap is rounding of the weights
            pull = extended(pull, hull, larger, gamma, direction)
            hull = larger
            if t == self.max_calls and moved > 0.0:
                break  # the last atoms are there for the next prox
        return answered(u, u_t, max(V, 0.0) + gap_rounding(direction, u_t, v_t, size), hull)


FEW_ATOMS, MOST_ATOMS, VIOLATION_SHARE = 8, 128, 1 / 16
"""Constants for sets that return several vertices in one oracle call. The number of vertices asked for is the number of atoms of
the hull, so that the number of atoms may double from call to call. It is at least FEW_ATOMS, and at most MOST_ATOMS, which limits
the time of one quadratic programme. A vertex becomes an atom if the prox objective decreases towards it at least VIOLATION_SHARE
times as fast as towards the best vertex."""


def vertices_oracle(domain: Any) -> Callable[[Point, int], Any]:
    """Return a function of (direction, number) that returns vertices, the best one first.

    The function is the method ``atoms`` of the set, which returns a Stack of vertices. If the set has no such method, the
    function returns a list of one vertex.
    """
    if (several := getattr(domain, "atoms", None)) is not None:
        return several
    vertex = vertex_oracle(domain)
    return lambda direction, number: [vertex(direction)]


def extended(pull: np.ndarray, hull: ActiveSet, larger: ActiveSet, gamma: float, direction: Point) -> np.ndarray:
    """The inner products of the atoms of ``larger`` with z, given those of the atoms of ``hull``, to which atoms were added.

    The point u_t of ``larger`` and the direction satisfy z = u_t - gamma direction, so that the Gram matrix has a part of them.
    """
    n = len(hull.atoms)
    if larger.origin is not hull.origin:  # it was dropped: all products have changed
        return larger.gram @ larger.weights - gamma * larger.products(direction)
    last = larger.atoms.kept(np.arange(n, len(larger.atoms)))
    return np.append(pull, larger.gram[n:] @ larger.weights - gamma * last.products(direction))


def distinct(hull: ActiveSet, number: int) -> bool:
    """Whether none of the last ``number`` atoms equals another atom of the hull."""
    squares = hull.gram.diagonal()
    first = len(squares) - number
    distances2 = squares[first:, None] + squares - 2 * hull.gram[first:]
    distances2[np.arange(number), np.arange(first, len(squares))] = inf
    return bool(distances2.min() > 0.0)


def answered(u: Point, u_t: Point, gap: float, hull: ActiveSet) -> Prox:
    """The prox point, as an array if the centre u is an array. The hull is the memory for the next prox subproblem."""
    point = like(u, u_t)
    return Prox(point, gap, replace(hull, x=point))
