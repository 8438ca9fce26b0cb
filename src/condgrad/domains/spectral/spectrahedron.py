"""The spectrahedron."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.spectral._factored import FactoredSpectrahedron, factored_spectrahedron
from condgrad.domains.spectral._spectra import LowRankSet, eigenvalues, lowest_vectors, report_unconverged, square_shape
from condgrad.linalg.simplex_projection import onto_simplex
from condgrad.points import LowRank
from condgrad.points.low_rank import outer
from condgrad.protocols import Point


@final
@dataclass(frozen=True)
class Spectrahedron(LowRankSet):
    """{X = X' : lambda_i(X) >= 0, trace X = r}, or trace X <= r where not ``equal``

    With ``equal=False`` it is the set of positive semidefinite matrices of bounded trace.

    Parameters
    ----------
    shape : int or tuple of int
        n, or (n, n).
    radius : float, default 1.0
        The number r, above 0.
    equal : bool, default True
        Whether the trace is r, or at most r.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> bounded = cg.Spectrahedron(2, 3.0, equal=False)
    >>> bounded.contains(np.zeros((2, 2))), cg.Spectrahedron(2, 3.0).contains(np.zeros((2, 2)))
    (True, False)
    """

    shape: Shape
    radius: float = 1.0
    equal: bool = True

    spectrum: ClassVar[str] = "eigen"
    narrowest: ClassVar[int] = 1

    def __post_init__(self) -> None:
        radius = checks.positive(self.radius, "The radius of Spectrahedron")
        checks.yes_or_no(self.equal, "The equal of Spectrahedron")
        checks.settle(self, shape=square_shape(self.shape, "Spectrahedron"), radius=radius)

    @property
    def diameter(self) -> float:
        if self.shape[0] == 1:
            return 0.0 if self.equal else self.radius
        return self.radius * math.sqrt(2)

    @property
    def max_norm(self) -> float:
        return self.radius

    @property
    def trace(self) -> float:
        return self.radius

    @property
    def floor(self) -> float:
        return -math.inf if self.equal else 0.0

    def lmo_near(
        self, direction: Point, block: np.ndarray | None = None, accuracy: float = 0.0
    ) -> tuple[Point, np.ndarray]:
        direction = self._point(direction)
        vectors, _, values, error = lowest_vectors(direction, 1, block, accuracy / self.radius)
        report_unconverged("Spectrahedron", self.radius * error, -self.radius * float(values[0]))
        top = vectors[:, : 0 if values[0] >= 0 and not self.equal else 1]
        return outer(self.radius * top, top, direction), vectors

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The eigenvalues of the projection of a matrix with these eigenvalues."""
        kept = np.maximum(values, 0.0)
        return kept if not self.equal and kept.sum() <= self.radius else onto_simplex(values, self.radius)

    def start(self) -> np.ndarray:
        return self.radius / self.shape[0] * np.eye(*self.shape) if self.equal else np.zeros(self.shape)

    def low_rank_start(self) -> LowRank:
        """A vertex, or 0 where that is a point of the set."""
        corner = np.eye(self.shape[0], int(self.equal))
        return LowRank(self.radius * corner, corner)

    def factored(self, x: Point, grad: Point) -> FactoredSpectrahedron:
        """The set near x as the image of a factor: matrices of trace r, or all of them if the trace of x is smaller or falls."""
        return factored_spectrahedron(self.radius, self._point(x), grad, fixed=self.equal)

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        slack = tolerance * self.radius
        values = eigenvalues(self._point(x), slack)
        if values is None or values[0] < -slack:
            return False
        excess = float(values.sum()) - self.radius
        return excess <= slack and (excess >= -slack or not self.equal)


def _spectrahedra() -> Examples:
    return {
        "": Spectrahedron(4, 2.0),
        "up to": Spectrahedron((3, 3), 0.5, equal=False),
        "of one": Spectrahedron(1, 3.0),
        "of one up to": Spectrahedron(1, 3.0, equal=False),
    }


def _in_spectrahedron(domain: Spectrahedron, rng: np.random.Generator) -> np.ndarray:
    n = domain.shape[0]
    factor = rng.standard_normal((n, rng.integers(1, n + 1)))
    share = 1.0 if domain.equal else rng.choice([1.0, rng.random()])
    return domain.radius * share * factor @ factor.T / np.sum(factor**2)


def _spectrahedron_minimum(domain: Spectrahedron, g: np.ndarray) -> float:
    lowest = float(np.linalg.eigvalsh((g + g.T) / 2)[0])
    return domain.radius * (lowest if domain.equal else min(0.0, lowest))


ENTRY = DomainEntry(
    "spectrahedron", Spectrahedron, "{X = X' : X >= 0, trace X = r (or <= r)}",
    "the lowest eigenvector of the symmetric part",
    _spectrahedra, _in_spectrahedron, _spectrahedron_minimum,
)  # fmt: skip
