"""The scaled probability simplex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains._ball import Shape
from condgrad.linalg.simplex_projection import onto_simplex


@final
@dataclass(frozen=True)
class Simplex:
    """{x : x >= 0, sum x = r}"""

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        radius = checks.positive(self.radius, "The radius of Simplex")
        checks.settle(self, shape=checks.as_shape(self.shape, "Simplex"), radius=radius)

    @property
    def diameter(self) -> float:
        return self.radius * math.sqrt(2) if math.prod(self.shape) > 1 else 0.0

    @property
    def max_norm(self) -> float:
        return self.radius

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        vertex = np.zeros(self.shape)
        vertex.flat[np.argmin(checks.point(direction, self.shape, "Simplex"))] = self.radius
        return vertex

    def project(self, x: np.ndarray) -> np.ndarray:
        return onto_simplex(checks.point(x, self.shape, "Simplex"), self.radius)

    def start(self) -> np.ndarray:
        return np.full(self.shape, self.radius / math.prod(self.shape))

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        x, slack = checks.point(x, self.shape, "Simplex"), tolerance * self.radius
        return bool(np.all(x >= -slack) and abs(np.sum(x) - self.radius) <= slack)
