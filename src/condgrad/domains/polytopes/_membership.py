"""Membership in a polytope that is known by its linear oracle only, by a minimum-norm-point algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad.points import ActiveSet

ROUNDING = 1e-14
"""Progress below this, relative to the points, is rounding."""


def is_within(lmo: Callable[[np.ndarray], Any], x: np.ndarray, room: float) -> bool:
    """Whether the polytope has a point within a distance of x.

    The nearest point of the hull of some vertices is found exactly, then the oracle adds the vertex that lies furthest towards x.
    It ends when that hull is near enough, or when a hyperplane separates x from the polytope by more than the distance. A point
    inside takes about as many calls as it needs vertices, at most one more than the dimension.

    Parameters
    ----------
    lmo : callable
        The linear oracle, which answers with vertices.
    x : np.ndarray of float
        A point.
    room : float
        The distance.

    Returns
    -------
    bool

    References
    ----------
    P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 11 (1976).
    """
    if not np.isfinite(x).all():
        return False
    hull, last = ActiveSet.at(np.asarray(lmo(-x))), math.inf
    while True:
        near = hull.point()
        off = x - near
        distance = float(np.linalg.norm(off))
        if distance <= room:
            return True
        if distance >= last:  # rounding
            return False
        last = distance
        vertex = np.asarray(lmo(-off))
        if float(np.vdot(off, x - vertex)) > room * distance:
            return False
        size = max(float(np.linalg.norm(near)), float(np.linalg.norm(vertex)))
        if float(np.vdot(off, vertex - near)) <= ROUNDING * size * distance or not math.isfinite(distance):
            return False
        hull = hull.with_atom(vertex).nearest(x)
