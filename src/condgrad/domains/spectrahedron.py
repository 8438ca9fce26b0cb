"""The spectrahedron."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad import checks
from condgrad.domains._ball import Shape
from condgrad.domains._spectra import eigenvalues, shrink_eigen, square, symmetric, unit
from condgrad.domains.simplex import onto_simplex


@final
@dataclass(frozen=True)
class Spectrahedron:
    """{X = X' : lambda_i(X) >= 0, trace X = r}, or trace X <= r where not ``equal``"""

    shape: Shape
    radius: float = 1.0
    equal: bool = True

    spectrum: ClassVar[str] = "eigen"

    def __post_init__(self) -> None:
        radius = checks.positive(self.radius, "The radius of Spectrahedron")
        checks.yes_or_no(self.equal, "The equal of Spectrahedron")
        checks.settle(self, shape=square(self.shape, "Spectrahedron"), radius=radius)

    @property
    def diameter(self) -> float:
        if self.shape[0] == 1:
            return 0.0 if self.equal else self.radius
        return self.radius * math.sqrt(2)

    @property
    def max_norm(self) -> float:
        return self.radius

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        direction = checks.point(direction, self.shape, "Spectrahedron")
        values, vectors = np.linalg.eigh(symmetric(unit(direction)))
        if values[0] >= 0 and not self.equal:
            return np.zeros(self.shape)
        return self.radius * np.outer(vectors[:, 0], vectors[:, 0])

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The eigenvalues of the projection of a matrix with these eigenvalues."""
        kept = np.maximum(values, 0.0)
        return kept if not self.equal and kept.sum() <= self.radius else onto_simplex(values, self.radius)

    def project(self, x: np.ndarray) -> np.ndarray:
        return shrink_eigen(checks.point(x, self.shape, "Spectrahedron"), self.shrink)

    def start(self) -> np.ndarray:
        return self.radius / self.shape[0] * np.eye(*self.shape) if self.equal else np.zeros(self.shape)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        slack = tolerance * self.radius
        values = eigenvalues(checks.point(x, self.shape, "Spectrahedron"), slack)
        if values is None or values[0] < -slack:
            return False
        excess = float(values.sum()) - self.radius
        return excess <= slack and (excess >= -slack or not self.equal)
