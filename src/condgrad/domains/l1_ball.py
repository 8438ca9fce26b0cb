"""The l1 ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad.domains._ball import Ball, Shape
from condgrad.linalg.simplex_projection import onto_simplex


@final
@dataclass(frozen=True)
class L1Ball(Ball):
    """{x : sum |x_i| <= r}"""

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()

    def norm(self, x: np.ndarray) -> float:
        return float(np.abs(x).sum())

    @property
    def max_norm(self) -> float:
        return self.radius

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        direction = self._point(direction)
        largest = np.argmax(np.abs(direction))
        vertex = np.zeros(self.shape)
        vertex.flat[largest] = -np.copysign(self.radius, direction.flat[largest])
        return vertex

    def project(self, x: np.ndarray) -> np.ndarray:
        x = self._point(x)
        return x if self.norm(x) <= self.radius else np.sign(x) * onto_simplex(np.abs(x), self.radius)
