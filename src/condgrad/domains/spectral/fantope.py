"""The Fantope, the convex hull of the orthogonal projectors of one rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.spectral._spectra import (
    LowRankSet,
    check_count,
    eigenvalues,
    lowest_vectors,
    onto_capped_simplex,
    report_unconverged,
    square_shape,
)
from condgrad.points import LowRank
from condgrad.points.low_rank import outer
from condgrad.protocols import Point


@final
@dataclass(frozen=True)
class Fantope(LowRankSet):
    """{X = X' : 0 <= lambda_i(X) <= 1, trace X = k}, k the rank"""

    shape: Shape
    rank: int

    spectrum: ClassVar[str] = "eigen"

    def __post_init__(self) -> None:
        shape = square_shape(self.shape, "Fantope")
        checks.settle(self, shape=shape, rank=check_count(self.rank, "The rank of Fantope", shape))

    @property
    def diameter(self) -> float:
        """Two projectors of rank k on spaces that share as little as there is room for: max(0, 2k - n) dimensions."""
        return math.sqrt(2 * min(self.rank, self.shape[0] - self.rank))

    @property
    def narrowest(self) -> int:
        return self.rank

    @property
    def max_norm(self) -> float:
        return math.sqrt(self.rank)

    @property
    def trace(self) -> float:
        return float(self.rank)

    floor: ClassVar[float] = -math.inf

    def lmo_near(
        self, direction: Point, block: np.ndarray | None = None, accuracy: float = 0.0
    ) -> tuple[Point, np.ndarray]:
        direction = self._point(direction)
        vectors, _, values, error = lowest_vectors(direction, self.rank, block, accuracy)
        report_unconverged("Fantope", error, -float(values[: self.rank].sum()))
        lowest = vectors[:, : self.rank]
        return outer(lowest, lowest, direction), vectors

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The eigenvalues of the projection of a matrix with these eigenvalues."""
        return onto_capped_simplex(values, self.rank)

    def start(self) -> np.ndarray:
        return self.rank / self.shape[0] * np.eye(*self.shape)

    def low_rank_start(self) -> LowRank:
        """A vertex."""
        corner = np.eye(self.shape[0], self.rank)
        return LowRank(corner, corner)

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        values = eigenvalues(self._point(x), tolerance)
        if values is None or values[0] < -tolerance or values[-1] > 1 + tolerance:
            return False
        return abs(float(values.sum()) - self.rank) <= tolerance * self.rank


def _fantopes() -> Examples:
    return {
        "": Fantope(5, 2),
        "of rank 1": Fantope((4, 4), 1),
        "of high rank": Fantope(6, 4),
        "of full rank": Fantope(3, 3),
        "of one": Fantope(1, 1),
    }


def _in_fantope(domain: Fantope, rng: np.random.Generator) -> np.ndarray:
    n, basis = domain.shape[0], np.linalg.qr(rng.standard_normal(domain.shape))[0]
    corners = rng.permuted(np.tile(np.arange(n), (4, 1)), axis=1) < domain.rank
    values = rng.dirichlet(np.full(4, 0.3)) @ corners
    return np.eye(n) - (basis * (1 - values)) @ basis.T


def _fantope_minimum(domain: Fantope, g: np.ndarray) -> float:
    return float(np.linalg.eigvalsh((g + g.T) / 2)[: domain.rank].sum())


ENTRY = DomainEntry(
    "fantope", Fantope, "{X = X' : 0 <= X <= I, trace X = k}",
    "the projector on the k lowest eigenvectors of the symmetric part",
    _fantopes, _in_fantope, _fantope_minimum,
)  # fmt: skip
