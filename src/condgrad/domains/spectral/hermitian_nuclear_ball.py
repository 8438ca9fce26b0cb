"""The nuclear norm ball of Hermitian matrices, in real numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball
from condgrad.domains.spectral._spectra import moderate
from condgrad.domains.spectral.symmetric_nuclear_ball import larger_end, onto_l1_ball


@final
@dataclass(frozen=True)
class HermitianNuclearBall(Ball):
    """{X = X* : sum_i |lambda_i(X)| <= r}, the eigenvalues of a complex n x n matrix

    Points are real arrays x of shape (2, n, n), which stand for X = x[0] + i x[1]: the library's points are real, and so are
    inner products, <x, y> = Re trace(X* Y). :meth:`to_complex` and :meth:`to_real` convert. A gradient has the derivatives by the
    real parts in its first matrix and those by the imaginary parts in its second.

    The linear oracle and the projection see the Hermitian part of their argument. The oracle takes one reduction to tridiagonal
    form and one eigenvector, the projection a full decomposition.

    Parameters
    ----------
    shape : int or tuple of int
        n, or (2, n, n).
    radius : float, default 1.0
        The number r, above 0.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> ball = cg.HermitianNuclearBall(2)
    >>> direction = np.array([[1, -1j], [1j, 1]])
    >>> vertex = ball.lmo(ball.to_real(direction))
    >>> np.linalg.eigvalsh(ball.to_complex(vertex)).round(6), float(np.vdot(ball.to_real(direction), vertex).round(6))
    (array([-1.,  0.]), -2.0)
    """

    shape: Shape
    radius: float = 1.0

    def __post_init__(self) -> None:
        given = self.shape if isinstance(self.shape, tuple | list) else (2, self.shape, self.shape)
        sizes = checks.as_shape(given, "HermitianNuclearBall")
        if len(sizes) != 3 or sizes[0] != 2 or sizes[1] != sizes[2]:
            raise ValueError(
                f"HermitianNuclearBall is a set of pairs of n x n matrices, the real and the imaginary part, but got shape "
                f"{sizes}: give (2, n, n), or n alone."
            )
        radius = checks.positive(self.radius, "The radius of HermitianNuclearBall")
        checks.settle(self, shape=sizes, radius=radius)

    @staticmethod
    def to_complex(x: Any) -> np.ndarray:
        """The complex matrix x[0] + i x[1]."""
        real, imaginary = np.asarray(x, dtype=float)
        return real + 1j * imaginary

    @staticmethod
    def to_real(matrix: Any) -> np.ndarray:
        """The real array of the real and the imaginary part of a complex matrix."""
        matrix = np.asarray(matrix)
        return np.stack([matrix.real, matrix.imag]).astype(float)

    def _decomposed(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, increasing, and eigenvectors of the Hermitian part."""
        X = self.to_complex(x)
        return np.linalg.eigh(X / 2 + X.conj().T / 2)

    def norm(self, x: np.ndarray) -> float:
        return float(np.abs(self._decomposed(x)[0]).sum()) if np.isfinite(x).all() else np.inf

    @property
    def max_norm(self) -> float:
        return self.radius

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        X = self.to_complex(moderate(self._point(direction)))
        v, sign = larger_end(X / 2 + X.conj().T / 2)
        vertex = (sign * self.radius * v) @ v.conj().T
        return np.stack([vertex.real, vertex.imag])

    def project(self, x: np.ndarray) -> np.ndarray:
        """The matrix with the eigenvectors of the Hermitian part of x, and with its eigenvalues projected onto the l1 ball."""
        values, vectors = self._decomposed(checks.finite(self._point(x), type(self).__name__, self.max_norm))
        nearest = (vectors * onto_l1_ball(values, self.radius)) @ vectors.conj().T
        return self.to_real(nearest / 2 + nearest.conj().T / 2)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether x is Hermitian and in the ball, up to a tolerance relative to the radius."""
        x = self._point(x)
        if not np.isfinite(x).all():
            return False
        X = self.to_complex(x)
        hermitian = np.abs(X - X.conj().T).max() <= tolerance * self.radius
        return bool(hermitian and self.norm(x) <= self.radius * (1 + tolerance))


def _hermitian_nuclear_balls() -> Examples:
    return {
        "": HermitianNuclearBall(3, 2.0),
        "small": HermitianNuclearBall((2, 2, 2), 0.1),
        "of one": HermitianNuclearBall(1),
    }


def _in_hermitian_nuclear_ball(ball: HermitianNuclearBall, rng: np.random.Generator) -> np.ndarray:
    X = ball.to_complex(rng.standard_normal(ball.shape))
    X = X + X.conj().T
    return in_ball(ball, ball.to_real(X), float(np.linalg.norm(X, "nuc")), rng)


def _hermitian_nuclear_minimum(ball: HermitianNuclearBall, g: np.ndarray) -> float:
    G = ball.to_complex(g)
    return -ball.radius * float(np.linalg.norm((G + G.conj().T) / 2, 2))


ENTRY = DomainEntry(
    "hermitian-nuclear-ball", HermitianNuclearBall, "{X = X* : |X|_* <= r}, X = x[0] + i x[1]",
    "the eigenvector of the largest absolute eigenvalue of the Hermitian part, by LAPACK",
    _hermitian_nuclear_balls, _in_hermitian_nuclear_ball, _hermitian_nuclear_minimum,
)  # fmt: skip
