"""The Schatten norm balls between the nuclear and the spectral ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import LpBall
from condgrad.domains.balls._ball import Ball, Shape, entrywise_norm
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.domains.spectral._spectra import check_matrix_shape, moderate, singular_values

_OWN_CLASS = {1.0: "NuclearBall", 2.0: "L2Ball", math.inf: "SpectralBall"}


@final
@dataclass(frozen=True)
class SchattenBall(Ball):
    """{X : sum_i sigma_i(X)^p <= r^p}, the singular values of an m x n matrix, 1 < p < inf and p != 2

    The linear oracle takes one full SVD and answers with the case of equality in Hoelder's inequality. It is exact, as are
    ``diameter`` and ``max_norm``. There is no projection, as for :class:`condgrad.LpBall`.

    Parameters
    ----------
    shape : tuple of int
        (m, n).
    p : float
        Above 1 and not 2: use NuclearBall for 1, L2Ball for 2 and SpectralBall for infinity.
    radius : float, default 1.0
        The number r, above 0.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> ball = cg.SchattenBall((2, 3), 4.0)
    >>> ball.lmo(np.array([[8.0, 0.0, 0.0], [0.0, 1.0, 0.0]])).round(3) + 0.0
    array([[-0.985,  0.   ,  0.   ],
           [ 0.   , -0.492,  0.   ]])

    References
    ----------
    R. Bhatia. Matrix Analysis, chapter IV. Springer, 1997.
    """

    shape: Shape
    p: float
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()
        check_matrix_shape(self.shape, "SchattenBall")
        if self.p in _OWN_CLASS:
            raise ValueError(f"SchattenBall got p = {self.p}, which has a class of its own: use {_OWN_CLASS[self.p]}.")
        checks.settle(self, p=checks.real(self.p, "The p of SchattenBall"))
        if self.p < 1:
            raise ValueError(f"The p of SchattenBall must be above 1, but got {self.p}: below 1 the set is not convex.")

    def norm(self, x: np.ndarray) -> float:
        return entrywise_norm(singular_values(x), self.p)

    @property
    def max_norm(self) -> float:
        return self.radius * min(self.shape) ** max(0.0, 0.5 - 1 / self.p)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        left, sigma, right = np.linalg.svd(moderate(self._point(direction)), full_matrices=False)
        return (left * LpBall(sigma.size, self.p, self.radius).lmo(sigma)) @ right


def _schatten_balls() -> Examples:
    return {
        "": SchattenBall((4, 3), 3.0, 2.0),
        "1.5": SchattenBall((2, 5), 1.5, 0.5),
        "1.01": SchattenBall((3, 3), 1.01),
        "20 of a row": SchattenBall((1, 4), 20.0, 3.0),
    }


def _in_schatten_ball(ball: SchattenBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, entrywise_norm(np.linalg.svd(x, compute_uv=False), ball.p), rng)


def _schatten_minimum(ball: SchattenBall, g: np.ndarray) -> float:
    return -ball.radius * entrywise_norm(np.linalg.svd(g, compute_uv=False), ball.p / (ball.p - 1))


ENTRY = DomainEntry(
    "schatten-ball", SchattenBall, "{X : |sigma(X)|_p <= r}", "Hoelder's inequality for singular values, by a full SVD",
    _schatten_balls, _in_schatten_ball, _schatten_minimum,
)  # fmt: skip
