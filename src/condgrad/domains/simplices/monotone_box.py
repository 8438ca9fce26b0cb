"""The monotone cone cut by a box."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.linalg.selection import largest_size


@final
@dataclass(frozen=True)
class MonotoneBox:
    """{x : lower <= x_1 <= x_2 <= ... <= x_n <= upper}, the monotone cone cut by a box

    Vectors that don't fall: isotonic regression, distribution functions, calibration maps. Its n + 1 vertices are steps from
    ``lower`` to ``upper``; a linear minimisation is a sum of the direction's last entries for each of them. The projection is
    isotonic regression, clipped to the bounds.

    Parameters
    ----------
    shape : int or tuple of one int
        Length of the points.
    lower, upper : float, default 0.0 and 1.0
        The bounds.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> monotone = cg.MonotoneBox(4)
    >>> monotone.lmo(np.array([-1.0, 2.0, -3.0, 1.0])), monotone.project(np.array([0.5, 0.25, 2.0, 0.5]))
    (array([0., 0., 1., 1.]), array([0.375, 0.375, 1.   , 1.   ]))
    """

    shape: Shape
    lower: float = 0.0
    upper: float = 1.0

    def __post_init__(self) -> None:
        shape = checks.as_shape(self.shape, "MonotoneBox")
        if len(shape) != 1:
            raise ValueError(f"MonotoneBox got the shape {shape}, but only vectors have an order: give a length.")
        lower = checks.real(self.lower, "The lower bound of MonotoneBox")
        upper = checks.real(self.upper, "The upper bound of MonotoneBox")
        if lower > upper:
            raise ValueError(f"MonotoneBox is an empty set: lower {lower:g} is above upper {upper:g}; correct them.")
        checks.settle(self, shape=shape, lower=lower, upper=upper)

    @property
    def diameter(self) -> float:
        return (self.upper - self.lower) * math.sqrt(self.shape[0])

    @property
    def max_norm(self) -> float:
        return max(abs(self.lower), abs(self.upper)) * math.sqrt(self.shape[0])

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        direction = checks.direction(direction, self.shape, "MonotoneBox")
        after = np.cumsum(direction[::-1] / (largest_size(direction) or 1.0))  # sums of the last 1, 2, ... entries
        last = int(np.argmin(after)) + 1
        vertex = np.full(self.shape, self.lower)
        if after[last - 1] < 0:
            vertex[-last:] = self.upper
        return vertex

    def project(self, x: np.ndarray) -> np.ndarray:
        from scipy.optimize import isotonic_regression

        x = checks.finite_point(x, self.shape, "MonotoneBox")
        return np.clip(isotonic_regression(x).x, self.lower, self.upper)

    def start(self) -> np.ndarray:
        """Return the mean of the vertices."""
        return self.lower + (self.upper - self.lower) * np.arange(1, self.shape[0] + 1) / (self.shape[0] + 1)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        x = checks.point(x, self.shape, "MonotoneBox")
        slack = tolerance * (self.upper - self.lower or self.max_norm) + 4 * np.finfo(float).eps * self.max_norm
        if not np.isfinite(x).all():
            return False
        return bool(x.min() >= self.lower - slack and x.max() <= self.upper + slack and np.all(np.diff(x) >= -slack))


def _monotone_boxes() -> Examples:
    return {
        "": MonotoneBox(5, -1.0, 2.0),
        "of one": MonotoneBox(1),
        "far away": MonotoneBox(3, 1e6, 1e6 + 1),
        "of one point": MonotoneBox(3, 2.0, 2.0),
    }


def _in_monotone_box(domain: MonotoneBox, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.uniform(domain.lower, domain.upper, domain.shape))


def _monotone_box_vertices(domain: MonotoneBox) -> np.ndarray:
    n = domain.shape[0]
    return np.where(np.arange(n) >= np.arange(n + 1)[:, None], domain.upper, domain.lower)


ENTRY = DomainEntry(
    "monotone-box", MonotoneBox, "{x : lower <= x_1 <= ... <= x_n <= upper}",
    "a step from lower to upper where the sum of the direction's last entries is smallest",
    _monotone_boxes, _in_monotone_box, vertices=_monotone_box_vertices,
)  # fmt: skip
