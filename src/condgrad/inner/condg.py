"""The inner solver CondG of the paper (Algorithm 2): Frank-Wolfe steps on the prox subproblem."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from condgrad.checks import whole
from condgrad.points import SparseArray, inner, norm2
from condgrad.points.rounding import gap_rounding
from condgrad.points.sparse_array import sparse_form
from condgrad.protocols import InnerStop, Point, Prox, vertex_oracle
from condgrad.runtime.signals import heartbeat

EPS = 4 * float(np.finfo(float).eps)
"""A gap is only rounding error if it is smaller than this factor times the size of the terms from which it is computed."""


@dataclass(frozen=True)
class CondG:
    """``u+ = condg(l, u, gamma, eta)``: Frank-Wolfe with exact line search on the prox subproblem, from u.

    The solver stops when ``stop`` accepts the gap, or when the gap is only rounding error, so that no step can reduce the gap.
    One linear oracle call measures the gap and gives the vertex of the next step. So after ``max_calls`` calls the solver has
    made ``max_calls`` steps, and stops. The gap of the last point is then not measured, and is reported as infinite. ``with_gap``
    measures this gap by one more call.

    Parameters
    ----------
    max_calls : int, default None
        Maximum number of linear oracle calls in one prox. There is one step for each call. None: no limit.
    """

    max_calls: int | None = None

    def __post_init__(self) -> None:
        if self.max_calls is not None:
            whole(self.max_calls, "max_calls")

    def init(self, domain: Any, x: Point) -> None:
        """No state is kept between prox subproblems."""
        return None

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: None) -> Prox:
        """Solve the prox subproblem at u with gradient g and step size gamma, until ``stop`` allows the gap."""
        vertex, length = vertex_oracle(domain), sqrt(norm2(g))
        # with sparse atoms, a sparse centre keeps u_t sparse
        centre = u_t = u if getattr(domain, "atom", None) is None else sparse_form(u)
        for t in count(1):
            heartbeat()
            if self.max_calls is not None and t > self.max_calls:
                return Prox(like(u, u_t), inf, memory)
            way = u_t - centre
            direction = g + (1 / gamma) * way
            v_t = vertex(direction)
            to_vertex = u_t - v_t
            V, distance2 = inner(direction, to_vertex), norm2(to_vertex)
            noise = EPS * (length + sqrt(norm2(u_t)) / gamma) * sqrt(distance2)
            if stop(norm2(way) / gamma) >= V or noise >= V:
                break
            xi = min(1.0, gamma * V / distance2)
            u_t = (1 - xi) * u_t + xi * v_t
        size = length + (sqrt(norm2(u_t)) + sqrt(norm2(centre))) / gamma
        return Prox(like(u, u_t), max(V, 0.0) + gap_rounding(direction, u_t, v_t, size), memory)


def like(u: Point, u_t: Point) -> Point:
    """Return u_t. It is converted to an array if u is an array and u_t is a SparseArray."""
    return np.asarray(u_t) if isinstance(u, np.ndarray) and isinstance(u_t, SparseArray) else u_t


def with_gap(prox: Prox, domain: Any, g: Point, u: Point, gamma: float) -> Prox:
    """Return the prox point with its Frank-Wolfe gap.

    If the gap is not known yet, one linear oracle call measures it.
    """
    if isfinite(prox.gap):
        return prox
    p = prox.point
    direction = g + (1 / gamma) * (p - u)
    vertex = vertex_oracle(domain)(direction)
    size = sqrt(norm2(g)) + (sqrt(norm2(p)) + sqrt(norm2(u))) / gamma
    return prox._replace(gap=max(inner(direction, p - vertex), 0.0) + gap_rounding(direction, p, vertex, size))
