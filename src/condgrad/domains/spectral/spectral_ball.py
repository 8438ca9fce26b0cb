"""The spectral (operator) norm ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.domains.spectral._spectra import check_matrix_shape, moderate, shrink_singular, singular_values


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
        left, _, right = np.linalg.svd(moderate(self._point(direction)), full_matrices=False)
        return -self.radius * (left @ right)

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The singular values of the projection of a matrix with these singular values."""
        return np.minimum(values, self.radius)

    def project(self, x: np.ndarray) -> np.ndarray:
        return shrink_singular(checks.finite(self._point(x), type(self).__name__, self.max_norm), self.shrink)


def _spectral_balls() -> Examples:
    return {
        "": SpectralBall((4, 3), 1.5),
        "wide": SpectralBall((2, 5), 0.3),
        "of a row": SpectralBall((1, 4), 7.0),
        "of one": SpectralBall((1, 1)),
    }


def _in_spectral_ball(ball: SpectralBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.norm(x, 2)), rng)


def _spectral_minimum(ball: SpectralBall, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm(g, "nuc"))


ENTRY = DomainEntry(
    "spectral-ball", SpectralBall, "{X : sigma_1(X) <= r}", "-r times the polar factor, by a full SVD",
    _spectral_balls, _in_spectral_ball, _spectral_minimum,
)  # fmt: skip
