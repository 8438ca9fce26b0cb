"""The fully corrective inner solver: the best point in the convex hull of the atoms so far, recomputed when an atom is added."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import inf, sqrt
from typing import Any

import numpy as np

from condgrad.checks import whole
from condgrad.inner.condg import EPS
from condgrad.points import ActiveSet, inner, norm2
from condgrad.points.rounding import gap_rounding
from condgrad.protocols import InnerStop, Point, Prox
from condgrad.runtime.signals import heartbeat


@dataclass(frozen=True)
class Corrective:
    """Solve the prox subproblem as a minimum-norm-point problem: find the point of the atoms' hull nearest to z = u - gamma g.

    Each linear oracle call adds one atom, then a small quadratic programme over the simplex of weights is solved exactly.
    Atoms with positive weight are kept between outer steps, so near a solution one or two calls are enough; on a polytope the
    method is finite. The centre u is added as an atom, so that no step is worse than a step of CondG.

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
        return ActiveSet.at(x)

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: ActiveSet) -> Prox:
        """Solve the prox subproblem at u with gradient g and step size gamma, until ``stop`` allows the gap."""
        z = u - gamma * g
        hull = memory.with_atom(u)
        for t in count(1):
            heartbeat()
            hull = hull.nearest(z)
            u_t = hull.point()
            if self.max_calls is not None and t > self.max_calls:
                return Prox(u_t, inf, hull)
            direction = (1 / gamma) * (u_t - z)
            v_t = domain.lmo(direction)
            V = inner(direction, u_t - v_t)
            # the factor 8 accounts for the rounding of the weights
            noise = 8 * EPS * (sqrt(norm2(u_t)) + sqrt(norm2(z))) / gamma * sqrt(norm2(u_t - v_t))
            if stop(norm2(u_t - u) / gamma) >= V or noise >= V:
                break
            larger = hull.with_atom(v_t)
            distances2 = larger.gram[-1, -1] + np.diag(hull.gram) - 2 * larger.gram[-1, :-1]
            if distances2.min() <= 0.0:
                break  # the atom is not new: the remaining gap is rounding of the weights
            hull = larger
        size = (sqrt(norm2(u_t)) + sqrt(norm2(z))) / gamma
        return Prox(u_t, max(V, 0.0) + gap_rounding(direction, u_t, v_t, size), hull)
