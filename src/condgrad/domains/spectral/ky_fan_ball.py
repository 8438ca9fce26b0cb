"""The Ky Fan norm balls, from the spectral ball (k = 1) to the nuclear ball (k = min(m, n))."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.domains.spectral._spectra import (
    check_count,
    check_matrix_shape,
    moderate,
    onto_top_sum,
    shrink_singular,
    singular_values,
)


@final
@dataclass(frozen=True)
class KyFanBall(Ball):
    """{X : sigma_1(X) + ... + sigma_k(X) <= r}, the k largest singular values of an m x n matrix"""

    shape: Shape
    k: int
    radius: float = 1.0

    spectrum: ClassVar[str] = "singular"

    def __post_init__(self) -> None:
        self._settle()
        check_matrix_shape(self.shape, "KyFanBall")
        checks.settle(self, k=check_count(self.k, "The k of KyFanBall", self.shape))

    def norm(self, x: np.ndarray) -> float:
        return float(singular_values(x)[: self.k].sum())

    @property
    def max_norm(self) -> float:
        """The larger of the two kinds of extreme points: r u v', and r/k times a matrix with all singular values 1."""
        return self.radius * max(1.0, math.sqrt(min(self.shape)) / self.k)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """The dual norm is max(sigma_1, sum sigma / k), and one kind of extreme point goes with each of the two."""
        left, sigma, right = np.linalg.svd(moderate(self._point(direction)), full_matrices=False)
        if self.k * sigma[0] >= sigma.sum():
            return np.outer(-self.radius * left[:, 0], right[0])
        return -self.radius / self.k * (left @ right)

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The singular values of the projection of a matrix with these singular values."""
        return onto_top_sum(values, self.k, self.radius)

    def project(self, x: np.ndarray) -> np.ndarray:
        return shrink_singular(checks.finite(self._point(x), type(self).__name__, self.max_norm), self.shrink)


def _ky_fan_balls() -> Examples:
    return {
        "": KyFanBall((4, 5), 2, 3.0),
        "tall": KyFanBall((7, 3), 2, 0.5),
        "like spectral": KyFanBall((4, 6), 1, 2.0),
        "like nuclear": KyFanBall((5, 3), 3, 2.0),
        "of more ranks": KyFanBall((6, 6), 4),
        "of one": KyFanBall((1, 1), 1, 4.0),
    }


def _in_ky_fan_ball(ball: KyFanBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.svd(x, compute_uv=False)[: ball.k].sum()), rng)


def _ky_fan_minimum(ball: KyFanBall, g: np.ndarray) -> float:
    return -ball.radius * float(max(np.linalg.norm(g, 2), np.linalg.norm(g, "nuc") / ball.k))


ENTRY = DomainEntry(
    "ky-fan-ball", KyFanBall, "{X : sigma_1(X) + ... + sigma_k(X) <= r}",
    "the better of the top pair and the polar factor / k, by a full SVD",
    _ky_fan_balls, _in_ky_fan_ball, _ky_fan_minimum,
)  # fmt: skip
