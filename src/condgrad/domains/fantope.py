"""The Fantope, the convex hull of the orthogonal projectors of one rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad import checks
from condgrad.domains._ball import Shape
from condgrad.domains._spectra import count, eigenvalues, onto_capped_simplex, shrink_eigen, square, symmetric, unit


@final
@dataclass(frozen=True)
class Fantope:
    """{X = X' : 0 <= lambda_i(X) <= 1, trace X = k}, k the rank"""

    shape: Shape
    rank: int

    spectrum: ClassVar[str] = "eigen"

    def __post_init__(self) -> None:
        shape = square(self.shape, "Fantope")
        checks.settle(self, shape=shape, rank=count(self.rank, "The rank of Fantope", shape))

    @property
    def diameter(self) -> float:
        """Two projectors of rank k on spaces that share as little as there is room for: max(0, 2k - n) dimensions."""
        return math.sqrt(2 * min(self.rank, self.shape[0] - self.rank))

    @property
    def max_norm(self) -> float:
        return math.sqrt(self.rank)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        direction = checks.point(direction, self.shape, "Fantope")
        lowest = np.linalg.eigh(symmetric(unit(direction))).eigenvectors[:, : self.rank]
        return lowest @ lowest.T

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The eigenvalues of the projection of a matrix with these eigenvalues."""
        return onto_capped_simplex(values, self.rank)

    def project(self, x: np.ndarray) -> np.ndarray:
        return shrink_eigen(checks.point(x, self.shape, "Fantope"), self.shrink)

    def start(self) -> np.ndarray:
        return self.rank / self.shape[0] * np.eye(*self.shape)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        values = eigenvalues(checks.point(x, self.shape, "Fantope"), tolerance)
        if values is None or values[0] < -tolerance or values[-1] > 1 + tolerance:
            return False
        return abs(float(values.sum()) - self.rank) <= tolerance * self.rank
