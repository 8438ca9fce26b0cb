"""The l-infinity ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad.domains._ball import Ball, Shape


@final
@dataclass(frozen=True)
class LinfBall(Ball):
    """{x : max |x_i| <= r}"""

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()

    def norm(self, x: np.ndarray) -> float:
        return float(np.abs(x).max())

    @property
    def max_norm(self) -> float:
        return self.radius * math.sqrt(math.prod(self.shape))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        # not -r sign(direction): where the direction is 0 that is no vertex, and active sets live on vertices
        return np.where(self._point(direction) > 0, -self.radius, self.radius)

    def project(self, x: np.ndarray) -> np.ndarray:
        return np.clip(self._point(x), -self.radius, self.radius)
