"""The l1 ball cut by a box."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.linalg.clipped_shift import clipped_shift
from condgrad.linalg.knapsack import filled_in_order, largest_square
from condgrad.linalg.selection import increasing_order, indices_of_smallest


@final
@dataclass(frozen=True, eq=False)
class L1BallInBox:
    """{x : |x|_1 <= r, lower <= x <= upper}

    For example portfolios with bounded positions and bounded leverage, or sparse vectors of one sign. A linear minimisation is a
    sort. ``diameter`` and ``max_norm`` are upper bounds, exact for a box that is symmetric around 0.

    Parameters
    ----------
    lower, upper : array_like of float
        Bounds; a number stands for a bound that is the same everywhere, and -inf and inf for none.
    radius : float, default 1.0
        The radius r of the l1 ball.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.L1BallInBox([-1.0, -1.0, 0.0], 1.0, 1.5).lmo(np.array([3.0, -2.0, 5.0]))
    array([-1. ,  0.5,  0. ])
    """

    lower: Any
    upper: Any
    radius: float = 1.0
    shape: Shape = field(init=False, repr=False)
    _near: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        radius = checks.positive(self.radius, "The radius of L1BallInBox")
        bounds = [checks.real_array(x, f"The {name} bound of L1BallInBox") for name, x in self._given()]
        if bounds[0].ndim and bounds[1].ndim:
            checks.same_shape(bounds[1].shape, bounds[0].shape, "The upper bound of L1BallInBox")
        lower, upper = np.broadcast_arrays(*bounds)
        if lower.ndim == 0:
            raise ValueError("L1BallInBox got two numbers as bounds: give one as an array of the shape of the points.")
        if not np.all(lower <= upper):
            i = tuple(int(k) for k in np.argwhere(~(lower <= upper))[0])
            raise ValueError(
                f"L1BallInBox is an empty set: lower {lower[i]} is not below upper {upper[i]} at index {i}; correct them."
            )
        lower, upper = np.maximum(lower, -radius), np.minimum(upper, radius)
        near = np.clip(0.0, lower, upper)
        if not np.abs(near).sum() <= radius or np.any(lower > upper):
            least = float(np.abs(np.clip(0.0, *np.broadcast_arrays(*bounds))).sum())
            raise ValueError(
                f"L1BallInBox is an empty set: all points of the box have an l1 norm of at least {least:g}, above the "
                f"radius {radius:g}; give a larger radius."
            )
        lower, upper, near = (checks.read_only(x) for x in (lower, upper, near))
        checks.settle(self, lower=lower, upper=upper, radius=radius, shape=lower.shape, _near=near)

    def _given(self) -> list[tuple[str, Any]]:
        return [("lower", self.lower), ("upper", self.upper)]

    @cached_property
    def _budget(self) -> float:
        """The radius minus the l1 norm of the point of the box that is nearest to 0."""
        return max(self.radius - float(np.abs(self._near).sum()), 0.0)

    @cached_property
    def _typical_room(self) -> float:
        """What all entries of a direction with random signs have room for, on average."""
        return float(np.sum(self.upper - self.lower)) / 2 or 1.0

    @property
    def diameter(self) -> float:
        """An upper bound: differences are at most upper - lower, and their l1 norm is at most twice the radius."""
        return math.sqrt(largest_square(self.upper - self.lower, 2 * self.radius))

    @property
    def max_norm(self) -> float:
        """An upper bound: sizes are at most those of the bounds, and sum to at most the radius."""
        return math.sqrt(largest_square(np.maximum(-self.lower, self.upper), self.radius))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """From the point nearest to 0, entries move to their bounds, steepest first, until the radius is used up."""
        flat = checks.direction(direction, self.shape, "L1BallInBox").reshape(-1)
        lower, upper, vertex = self.lower.reshape(-1), self.upper.reshape(-1), self._near.flatten()
        budget, n = self._budget, flat.size
        k = min(n, 16 + int(2 * n * min(1.0, budget / self._typical_room)))
        while True:  # the k steepest entries, until they have room for the whole budget
            steepest = indices_of_smallest(flat, k, sizes=True) if k <= n // 4 else np.arange(n)
            slopes, near = flat[steepest], vertex[steepest]
            room = np.where(slopes > 0, lower[steepest], upper[steepest]) - near  # away from 0, or none
            if len(steepest) == n or np.abs(room).sum() >= budget * (1 + 1e-9):
                break
            k *= 4
        order = increasing_order(-np.abs(slopes))
        room = room[order]
        vertex[steepest[order]] += np.copysign(filled_in_order(np.abs(room), budget), room)
        return vertex.reshape(self.shape)

    def project(self, x: np.ndarray) -> np.ndarray:
        """clip(soft(x, theta), lower, upper); in sizes it is a box cut by a plane."""
        x = checks.finite_point(x, self.shape, "L1BallInBox", self.max_norm)
        nearest = np.clip(x, self.lower, self.upper)
        if np.abs(nearest).sum() <= self.radius:
            return nearest
        sign = np.where(self._near == 0, np.where(x < 0, -1.0, 1.0), np.sign(self._near))
        high = np.where(sign > 0, self.upper, -self.lower)
        return sign * clipped_shift(sign * x, np.abs(self._near), high, self.radius)

    def start(self) -> np.ndarray:
        """Return the point that is nearest to 0."""
        return self._near.copy()

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        x, slack = checks.point(x, self.shape, "L1BallInBox"), tolerance * self.radius
        inside = np.all((x >= self.lower - slack) & (x <= self.upper + slack))
        return bool(inside and np.abs(x).sum() <= self.radius + slack)


def _cut_l1_balls() -> Examples:
    return {
        "": L1BallInBox(-np.array([1.0, 0.5, 2.0, 1.0]), [1.0, 0.5, 2.0, 1.0], 2.2),
        "of one sign": L1BallInBox([0.0, 0.0, -1.0], [1.0, np.inf, 0.0], 1.5),
        "away from 0": L1BallInBox([0.2, -3.0, -1.0], [1.0, -0.1, 0.5], 2.0),
        "of matrices": L1BallInBox(-0.4, np.ones((2, 2)), 1.1),
        "a box": L1BallInBox([-1.0, -2.0], [0.5, 1.0], 5.0),
    }


def _in_cut_l1_ball(domain: L1BallInBox, rng: np.random.Generator) -> np.ndarray:
    """A point of the box, drawn to the one nearest to 0 as far as the radius asks for."""
    near = np.clip(0.0, domain.lower, domain.upper)
    x = rng.uniform(domain.lower, domain.upper)
    t = 1.0
    while np.abs(near + t * (x - near)).sum() > domain.radius:
        t *= 0.9
    return near + t * (x - near)


def _cut_l1_minimum(domain: L1BallInBox, g: np.ndarray) -> float:
    """By trying all vertices: each entry at a bound or at 0, but for one, which has the rest of the radius."""
    lower, upper, g = domain.lower.ravel(), domain.upper.ravel(), g.ravel()
    choices = [{lo, up, min(max(0.0, lo), up)} for lo, up in zip(lower, upper, strict=True)]
    best = math.inf
    for corner in itertools.product(*choices):
        x = np.array(corner)
        if np.abs(x).sum() <= domain.radius * (1 + 1e-14):
            best = min(best, float(g @ x))
        for i in range(len(x)):
            left = domain.radius - np.abs(np.delete(x, i)).sum()
            for value in (left, -left):
                if left >= 0 and lower[i] <= value <= upper[i]:
                    best = min(best, float(g @ x + g[i] * (value - x[i])))
    return best


ENTRY = DomainEntry(
    "l1-ball-in-box", L1BallInBox, "{x : |x|_1 <= r, lower <= x <= upper}",
    "entries at their bounds, steepest first, until the radius is used up",
    _cut_l1_balls, _in_cut_l1_ball, _cut_l1_minimum, arrays=("lower", "upper"), bounds=("diameter", "max_norm"),
)  # fmt: skip
