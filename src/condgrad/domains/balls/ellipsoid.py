"""Ellipsoids around 0."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape, is_safe
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.linalg.selection import largest_size

STEPS = 100
"""Of Newton's method, which needs about ten."""
SAFE_VALUES = (1e-100, 1e100)
"""Between these a quotient by an eigenvalue neither overflows nor vanishes where its product with the direction is safe."""


@final
@dataclass(frozen=True, eq=False)
class Ellipsoid(Ball):
    """{x : x'A x <= r^2}, with A positive definite

    A linear minimisation takes one pass over a diagonal A, and two products with a full one, whose eigenvectors are computed
    once. The projection is exact, by Newton's method on one equation.

    Parameters
    ----------
    matrix : array_like of float, shape (n,) or (n, n)
        The diagonal of A, or A itself, symmetric and positive definite.
    radius : float, default 1.0
        The radius r.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.Ellipsoid([1.0, 4.0], 2.0).lmo(np.array([0.0, 1.0]))
    array([-0., -1.])
    >>> cg.Ellipsoid([[2.0, 1.0], [1.0, 2.0]]).diameter
    2.0
    """

    matrix: Any
    radius: float = 1.0
    shape: Shape = field(init=False, repr=False)
    _values: np.ndarray = field(init=False, repr=False)
    _vectors: Any = field(init=False, repr=False)
    _moderate: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        matrix = checks.finite_array(self.matrix, "The matrix of Ellipsoid")
        if matrix.ndim not in (1, 2) or len({*matrix.shape}) != 1:
            raise ValueError(
                f"The matrix of Ellipsoid has shape {matrix.shape}: give a square matrix, or its diagonal as a vector."
            )
        checks.settle(self, matrix=matrix, shape=matrix.shape[:1])
        self._settle()
        if matrix.ndim == 1:
            values, vectors = matrix, None
        elif np.abs(matrix - matrix.T).max() > 1e-12 * np.abs(matrix).max():
            raise ValueError("The matrix of Ellipsoid is not symmetric: give (A + A') / 2, which has the same x'A x.")
        else:
            values, vectors = np.linalg.eigh(matrix / 2 + matrix.T / 2)
        if not values.min() > len(values) * np.finfo(float).eps * values.max() * (vectors is not None):
            raise ValueError(
                f"The matrix of Ellipsoid must be positive definite, but its smallest eigenvalue is {values.min():g}: "
                "the set would not be bounded; add a multiple of the identity."
            )
        moderate = bool(SAFE_VALUES[0] < values.min() and values.max() < SAFE_VALUES[1])
        checks.settle(self, _values=checks.read_only(values), _vectors=checks.read_only(vectors), _moderate=moderate)

    def _coordinates(self, x: np.ndarray) -> np.ndarray:
        """x in the basis of the axes."""
        return x if self._vectors is None else self._vectors.T @ x

    def _from_coordinates(self, z: np.ndarray) -> np.ndarray:
        return z if self._vectors is None else self._vectors @ z

    def norm(self, x: np.ndarray) -> float:
        top = largest_size(x)
        if not 0 < top < math.inf:
            return top
        return top * float(np.linalg.norm(np.sqrt(self._values) * self._coordinates(x / top)))

    @property
    def max_norm(self) -> float:
        return self.radius / math.sqrt(float(self._values.min()))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        direction = self._point(direction)
        if self._moderate and self._vectors is None:
            with np.errstate(over="ignore", invalid="ignore"):
                z = direction / self._values
                square = float(direction @ z)
            if is_safe(square):  # which no NaN or Inf is
                z *= -self.radius / math.sqrt(square)
                return z
        direction = self._direction(direction)
        z = self._coordinates(direction / (largest_size(direction) or 1.0)) / np.sqrt(self._values)
        z /= largest_size(z) or 1.0
        return self._from_coordinates(-self.radius / (np.linalg.norm(z) or 1.0) * z / np.sqrt(self._values))

    def project(self, x: np.ndarray) -> np.ndarray:
        """z / (1 + mu a) in the basis of the axes; 1 / norm is concave in mu, so that Newton's steps from 0 never go too far."""
        x = checks.finite(self._point(x), type(self).__name__, self.max_norm)
        size = self.norm(x)
        if size <= self.radius:
            return x
        a, z, mu = self._values, self._coordinates(x) / size, 0.0  # of norm 1
        r = self.radius / size
        for _ in range(STEPS):
            scaled = 1 + mu * a
            terms = a * (z / scaled) ** 2
            norm = math.sqrt(float(terms.sum()))
            step = (norm / r - 1) * norm**2 / float(np.sum(terms * a / scaled))
            if not mu + step > mu:
                break
            mu += step
        found = z / (1 + mu * a)
        return self._from_coordinates(found * (self.radius / float(np.linalg.norm(np.sqrt(a) * found))))


def _ellipsoids() -> Examples:
    turned = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]
    full = turned * [0.2, 1.0, 4.0, 25.0] @ turned.T
    return {
        "": Ellipsoid([0.25, 1.0, 4.0, 9.0], 1.5),
        "with a full matrix": Ellipsoid((full + full.T) / 2, 0.5),
        "of one": Ellipsoid([[4.0]]),
    }


def _norm(ellipsoid: Ellipsoid, x: np.ndarray) -> float:
    A = ellipsoid.matrix if ellipsoid.matrix.ndim == 2 else np.diag(ellipsoid.matrix)
    return math.sqrt(x @ A @ x)


def _in_ellipsoid(ellipsoid: Ellipsoid, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ellipsoid.shape, rng)
    return in_ball(ellipsoid, x, _norm(ellipsoid, x), rng)


def _ellipsoid_minimum(ellipsoid: Ellipsoid, g: np.ndarray) -> float:
    A = ellipsoid.matrix if ellipsoid.matrix.ndim == 2 else np.diag(ellipsoid.matrix)
    return -ellipsoid.radius * math.sqrt(g @ np.linalg.solve(A, g))


ENTRY = DomainEntry(
    "ellipsoid", Ellipsoid, "{x : x'A x <= r^2}", "the direction, solved with A, reversed and scaled to the boundary",
    _ellipsoids, _in_ellipsoid, _ellipsoid_minimum, arrays=("matrix",),
)  # fmt: skip
