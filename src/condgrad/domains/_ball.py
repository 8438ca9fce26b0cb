"""What the balls {x : |x| <= r} have in common, whatever their norm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from condgrad import checks

Shape = Any
"""An int or a tuple where it is given, a tuple once it is stored."""


class Ball(ABC):
    """Abstract: a ball around 0, symmetric, so its diameter is twice its largest (Euclidean) norm."""

    shape: Shape
    radius: float

    def _settle(self) -> None:
        """For ``__post_init__``: the fields in their final form."""
        owner = type(self).__name__
        radius = checks.positive(self.radius, f"The radius of {owner}")
        checks.settle(self, shape=checks.as_shape(self.shape, owner), radius=radius)

    def _point(self, x: Any) -> np.ndarray:
        return checks.point(x, self.shape, type(self).__name__)

    @abstractmethod
    def norm(self, x: np.ndarray) -> float:
        """The norm whose ball this is."""

    @property
    @abstractmethod
    def max_norm(self) -> float: ...

    @abstractmethod
    def lmo(self, direction: np.ndarray) -> np.ndarray: ...

    @property
    def diameter(self) -> float:
        return 2 * self.max_norm

    def start(self) -> np.ndarray:
        return np.zeros(self.shape)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        return bool(self.norm(self._point(x)) <= self.radius * (1 + tolerance))


def entrywise_norm(x: np.ndarray, p: float) -> float:
    """(sum |x_i|^p)^(1/p) for finite p, scaled so that no power overflows."""
    size = np.abs(x)
    top = float(size.max())
    if not 0 < top < np.inf:
        return top
    return top * float(np.sum((size / top) ** p) ** (1 / p))
