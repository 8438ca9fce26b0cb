"""The nuclear norm ball of symmetric matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.domains.spectral._spectra import (
    MAX_DENSE_EIGEN_SIZE,
    as_matrix,
    dense_if_small,
    eigenvalues,
    lowest_vectors,
    moderate,
    report_unconverged,
    square_shape,
    symmetric_part,
)
from condgrad.linalg.extreme_eigen import Tridiagonal
from condgrad.linalg.simplex_projection import onto_simplex
from condgrad.points.low_rank import outer
from condgrad.protocols import Point


def onto_l1_ball(values: np.ndarray, radius: float) -> np.ndarray:
    """The nearest vector with an l1 norm of at most ``radius``: of eigenvalues of either sign."""
    sizes = np.abs(values)
    return values if sizes.sum() <= radius else np.sign(values) * onto_simplex(sizes, radius)


def larger_end(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the eigenvector of the eigenvalue with the largest absolute value, shape (n, 1), and minus the sign of this value,
    of a symmetric or Hermitian matrix; the larger eigenvalue, if both ends are as far from 0."""
    reduced, last = Tridiagonal(matrix), len(matrix) - 1
    lowest, highest = reduced.eigenvalues(0, 0)[0], reduced.eigenvalues(last, last)[0]
    at, sign = (last, -1.0) if highest >= -lowest else (0, 1.0)
    return reduced.eigenpairs(at, at)[1], sign


@final
@dataclass(frozen=True)
class SymmetricNuclearBall(Ball):
    """{X = X' : sum_i |lambda_i(X)| <= r}, the eigenvalues of an n x n matrix

    The linear oracle sees the symmetric part of the direction, and answers with r v v' or -r v v', for the eigenvector v of the
    eigenvalue with the largest absolute value: by two Lanczos iterations, for matrices of up to 400 rows by LAPACK. Answers to
    structured directions are LowRank. The projection is a full decomposition of a dense matrix. The fast spectral inner solver is
    for sets that look at one end of the spectrum, which this one does not: prox subproblems are solved by projection.

    Parameters
    ----------
    shape : int or tuple of int
        n, or (n, n).
    radius : float, default 1.0
        The number r, above 0.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> ball = cg.SymmetricNuclearBall(2, 3.0)
    >>> ball.lmo(np.array([[1.0, 0.0], [0.0, -2.0]])).round(3) + 0.0
    array([[0., 0.],
           [0., 3.]])

    References
    ----------
    M. Jaggi. Revisiting Frank-Wolfe: projection-free sparse convex optimization. ICML 2013, section 4.3.
    """

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        shape = square_shape(self.shape, "SymmetricNuclearBall")
        checks.settle(self, shape=shape, radius=checks.positive(self.radius, "The radius of SymmetricNuclearBall"))

    def norm(self, x: Point) -> float:
        x = np.asarray(x)
        return float(np.abs(np.linalg.eigvalsh(symmetric_part(x))).sum()) if np.isfinite(x).all() else np.inf

    @property
    def max_norm(self) -> float:
        return self.radius

    def lmo(self, direction: Point) -> Point:
        direction = as_matrix(direction, self.shape, "SymmetricNuclearBall")
        dense = isinstance(direction, np.ndarray) and len(direction) <= MAX_DENSE_EIGEN_SIZE
        whole = moderate(np.asarray(direction)) if dense else dense_if_small(direction)
        if whole is not None:
            v, sign = larger_end(symmetric_part(whole))
        else:
            low, high = (lowest_vectors(sign * direction, 1, None, 0.0) for sign in (1.0, -1.0))
            bottom, top, lowest, highest = low.left[:, :1], high.left[:, :1], low.values[0], -high.values[0]
            size = max(-float(lowest), float(highest), 0.0)
            report_unconverged("SymmetricNuclearBall", self.radius * max(low.error, high.error), self.radius * size)
            v, sign = (top, -1.0) if highest >= -lowest else (bottom, 1.0)
        return outer(sign * self.radius * v, v, direction)

    def project(self, x: Point) -> np.ndarray:
        """The matrix with the eigenvectors of the symmetric part of x, and with its eigenvalues projected onto the l1 ball."""
        x = checks.finite(as_matrix(x, self.shape, "SymmetricNuclearBall"), "SymmetricNuclearBall", self.radius)
        x = symmetric_part(x)
        values, vectors = np.linalg.eigh(x)
        shrunk = onto_l1_ball(values, self.radius)
        return x if shrunk is values else symmetric_part((vectors * shrunk) @ vectors.T)

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        """Whether x is symmetric and in the ball, up to a tolerance relative to the radius."""
        values = eigenvalues(as_matrix(x, self.shape, "SymmetricNuclearBall"), tolerance * self.radius)
        return values is not None and bool(np.abs(values).sum() <= self.radius * (1 + tolerance))


def _symmetric_nuclear_balls() -> Examples:
    return {
        "": SymmetricNuclearBall(4, 3.0),
        "small": SymmetricNuclearBall((2, 2), 0.1),
        "of one": SymmetricNuclearBall(1, 2.0),
    }


def _in_symmetric_nuclear_ball(ball: SymmetricNuclearBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x + x.T, float(np.linalg.norm(x + x.T, "nuc")), rng)


def _symmetric_nuclear_minimum(ball: SymmetricNuclearBall, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm((g + g.T) / 2, 2))


ENTRY = DomainEntry(
    "symmetric-nuclear-ball", SymmetricNuclearBall, "{X = X' : |X|_* <= r}",
    "the eigenvector of the largest absolute eigenvalue of the symmetric part, by Lanczos",
    _symmetric_nuclear_balls, _in_symmetric_nuclear_ball, _symmetric_nuclear_minimum,
)  # fmt: skip
