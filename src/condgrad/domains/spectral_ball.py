"""The spectral (operator) norm ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad.domains._ball import Ball, Shape
from condgrad.domains._spectra import check_matrix_shape, scaled_to_unit, shrink_singular, singular_values


@final
@dataclass(frozen=True)
class SpectralBall(Ball):
    """{X : sigma_1(X) <= r}, the largest singular value of an m x n matrix"""

    shape: Shape
    radius: float = 1.0

    spectrum: ClassVar[str] = "singular"

    def __post_init__(self) -> None:
        self._settle()
        check_matrix_shape(self.shape, "SpectralBall")

    def norm(self, x: np.ndarray) -> float:
        return float(singular_values(x)[0])

    @property
    def max_norm(self) -> float:
        return self.radius * math.sqrt(min(self.shape))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        left, _, right = np.linalg.svd(scaled_to_unit(self._point(direction)), full_matrices=False)
        return -self.radius * (left @ right)

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The singular values of the projection of a matrix with these singular values."""
        return np.minimum(values, self.radius)

    def project(self, x: np.ndarray) -> np.ndarray:
        return shrink_singular(self._point(x), self.shrink)
