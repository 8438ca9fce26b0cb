"""The nuclear (trace) norm ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad.domains._ball import Ball, Shape
from condgrad.domains._lanczos import top_pair
from condgrad.domains._spectra import shrink_singular
from condgrad.domains.simplex import onto_simplex


@final
@dataclass(frozen=True)
class NuclearBall(Ball):
    """{X : sum_i sigma_i(X) <= r}, the singular values of an m x n matrix"""

    shape: Shape
    radius: float = 1.0

    spectrum: ClassVar[str] = "singular"

    def __post_init__(self) -> None:
        self._settle()
        if len(self.shape) != 2:
            raise ValueError(f"NuclearBall is a set of matrices, but got shape {self.shape}: give (rows, columns).")

    def norm(self, x: np.ndarray) -> float:
        return float(np.linalg.svd(x, compute_uv=False).sum()) if np.isfinite(x).all() else np.inf

    @property
    def max_norm(self) -> float:
        return self.radius

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        left, right = top_pair(self._point(direction))
        return np.outer(-self.radius * left, right)

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The singular values of the projection of a matrix with these singular values."""
        return values if values.sum() <= self.radius else onto_simplex(values, self.radius)

    def project(self, x: np.ndarray) -> np.ndarray:
        return shrink_singular(self._point(x), self.shrink)
