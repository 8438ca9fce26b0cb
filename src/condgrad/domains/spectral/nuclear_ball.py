"""The nuclear (trace) norm ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.domains.spectral._factored import FactoredBall, factored_ball
from condgrad.domains.spectral._spectra import LowRankSet, check_matrix_shape, report_unconverged, top_vectors
from condgrad.linalg.simplex_projection import onto_simplex
from condgrad.points import LowRank
from condgrad.points.low_rank import outer
from condgrad.protocols import Point


@final
@dataclass(frozen=True)
class NuclearBall(LowRankSet, Ball):
    """{X : sum_i sigma_i(X) <= r}, the singular values of an m x n matrix"""

    shape: Shape
    radius: float = 1.0

    spectrum: ClassVar[str] = "singular"
    narrowest: ClassVar[int] = 1

    def __post_init__(self) -> None:
        self._settle()
        check_matrix_shape(self.shape, "NuclearBall")

    def norm(self, x: Point) -> float:
        if isinstance(x, LowRank):
            return float(x.svd()[1].sum())
        return float(np.linalg.svd(x, compute_uv=False).sum()) if np.isfinite(x).all() else np.inf

    @property
    def max_norm(self) -> float:
        return self.radius

    @property
    def trace(self) -> float:
        return self.radius

    floor: ClassVar[float] = 0.0

    def lmo_near(
        self, direction: Point, block: np.ndarray | None = None, accuracy: float = 0.0
    ) -> tuple[Point, np.ndarray]:
        direction = self._point(direction)
        left, right, values, error = top_vectors(direction, block, accuracy / self.radius)
        report_unconverged("NuclearBall", self.radius * error, self.radius * float(values[0]))
        U, V = -self.radius * left[:, :1], right[:, :1]
        return outer(U, V, direction), right

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The singular values of the projection of a matrix with these singular values."""
        return values if values.sum() <= self.radius else onto_simplex(values, self.radius)

    def low_rank_start(self) -> LowRank:
        """0, as a point of low rank."""
        return LowRank.zeros(self.shape)

    def factored(self, x: Point, grad: Point) -> FactoredBall:
        """The ball near x as the image of factors: its boundary if x is there and -grad does not point inside, else all of it."""
        return factored_ball(self.radius, self._point(x), grad)


def _nuclear_balls() -> Examples:
    return {"": NuclearBall((5, 4), 3.0), "wide": NuclearBall((2, 6), 0.5)}


def _in_nuclear_ball(ball: NuclearBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.norm(x, "nuc")), rng)


def _nuclear_minimum(ball: NuclearBall, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm(g, 2))


ENTRY = DomainEntry(
    "nuclear-ball", NuclearBall, "{X : |X|_* <= r}",
    "the top pair of singular vectors, by Lanczos (arrays of up to 400 rows: LAPACK)",
    _nuclear_balls, _in_nuclear_ball, _nuclear_minimum,
)  # fmt: skip
