"""The nuclear (trace) norm ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.sparse.linalg import ArpackError, svds

from condgrad.domains._ball import Ball, Shape
from condgrad.domains.simplex import onto_simplex

_SMALL = 64
"""Up to this many rows or columns the full SVD is as fast as Lanczos."""


@final
@dataclass(frozen=True)
class NuclearBall(Ball):
    """{X : sum_i sigma_i(X) <= r}, the singular values of an m x n matrix"""

    shape: Shape
    radius: float = 1.0

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

    def project(self, x: np.ndarray) -> np.ndarray:
        x = self._point(x)
        left, sigma, right = np.linalg.svd(x, full_matrices=False)
        return x if sigma.sum() <= self.radius else (left * onto_simplex(sigma, self.radius)) @ right


def top_pair(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit singular vectors (u, v) of the largest singular value; the same for the same matrix."""
    scaled = matrix / (np.abs(matrix).max() or 1.0)  # Lanczos squares the matrix
    if min(matrix.shape) > _SMALL and scaled.any():
        try:
            first = np.random.default_rng(0).standard_normal(min(matrix.shape))
            left, _, right = svds(scaled, k=1, v0=first, tol=0, rng=np.random.default_rng(0))
            return left[:, 0], right[0]
        except ArpackError:  # no convergence: the full SVD is slower and always answers
            pass
    left, _, right = np.linalg.svd(scaled, full_matrices=False)
    return left[:, 0], right[0]
