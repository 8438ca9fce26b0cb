"""Base class of the norm balls {x : |x| <= r}, for any norm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from condgrad import checks

Shape = Any
"""An int or a tuple of ints as an argument, a tuple of ints as an attribute."""


SAFE = (1e-200, 1e200)
"""Between these a sum of squares is exact to rounding, since no square that matters has overflowed or vanished."""


def is_safe(square: float) -> bool:
    """Return whether a sum of squares is far from overflow and underflow, so that nothing has to be scaled; NaN is not."""
    return SAFE[0] < square < SAFE[1]


class Ball(ABC):
    """Abstract base class of balls around 0. They are symmetric, so the diameter is twice the largest Euclidean norm."""

    shape: Shape
    radius: float

    def _settle(self) -> None:
        """Validate and normalise the fields; called by ``__post_init__``."""
        owner = type(self).__name__
        radius = checks.positive(self.radius, f"The radius of {owner}")
        checks.settle(self, shape=checks.as_shape(self.shape, owner), radius=radius)

    def _point(self, x: Any) -> np.ndarray:
        """Return x as an array of the shape of the set."""
        return checks.point(x, self.shape, type(self).__name__)

    def _direction(self, direction: Any) -> np.ndarray:
        """Return a direction as an array of the shape of the set; NaN and Inf are refused."""
        return checks.direction(direction, self.shape, type(self).__name__)

    @abstractmethod
    def norm(self, x: np.ndarray) -> float:
        """Return the norm of x that defines the ball."""

    @property
    @abstractmethod
    def max_norm(self) -> float:
        """Largest Euclidean norm of a point of the set."""

    @abstractmethod
    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """Return a point of the set that minimises <direction, x>."""

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance between two points of the set."""
        return 2 * self.max_norm

    def _onto_boundary(self, x: np.ndarray) -> np.ndarray:
        """Return the multiple of x whose norm is the radius. For projections, whose norm the digits of a far point leave open."""
        size = self.norm(x)
        return x * (self.radius / size) if size > 0 else x

    def start(self) -> np.ndarray:
        """Return the default starting point, 0."""
        return np.zeros(self.shape)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Return whether x is in the set, up to a relative tolerance on the radius."""
        return bool(self.norm(self._point(x)) <= self.radius * (1 + tolerance))


def entrywise_norm(x: np.ndarray, p: float) -> float:
    """Return (sum |x_i|^p)^(1/p) for finite p, scaled so that no power overflows."""
    size = np.abs(x)
    top = float(size.max())
    if not 0 < top < np.inf:
        return top
    return top * float(np.sum((size / top) ** p) ** (1 / p))
