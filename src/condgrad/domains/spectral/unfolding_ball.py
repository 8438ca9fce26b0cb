"""The nuclear norm ball of an unfolding of a tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.domains.spectral.nuclear_ball import NuclearBall


@final
@dataclass(frozen=True)
class UnfoldingBall(Ball):
    """{X : sum_i sigma_i(X_(k)) <= r}, the singular values of the mode-k unfolding of an n-way array

    The unfolding X_(k) has a row for each index of axis k, and a column for each index of the other axes together. The linear
    oracle answers with r times an outer product of a vector along axis k and an array along the others: by Lanczos, for small
    unfoldings by a full SVD. The projection is a full SVD of the unfolding. Sums over several modes are a
    :class:`condgrad.MinkowskiSum` of such balls (the latent norm).

    Parameters
    ----------
    shape : tuple of int
        Shape of the array, with at least two axes.
    mode : int
        The axis k, from 0 on.
    radius : float, default 1.0
        The number r, above 0.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> ball = cg.UnfoldingBall((2, 3, 2), mode=1)
    >>> x = np.zeros((2, 3, 2))
    >>> x[1, 2, 0] = 5.0
    >>> vertex = ball.lmo(x)
    >>> vertex.shape, vertex[1, 2, 0].round(6)
    ((2, 3, 2), np.float64(-1.0))

    References
    ----------
    R. Tomioka, T. Suzuki. Convex tensor decomposition via structured Schatten norm regularization. NIPS 2013.
    """

    shape: Shape
    mode: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()
        mode = checks.whole(self.mode, "The mode of UnfoldingBall", least=0)
        if len(self.shape) < 2 or mode >= len(self.shape):
            raise ValueError(
                f"UnfoldingBall got the mode {mode} for the shape {self.shape}: give at least two axes, and one of them."
            )
        checks.settle(self, mode=mode)

    @cached_property
    def _ball(self) -> NuclearBall:
        rows = self.shape[self.mode]
        return NuclearBall((rows, math.prod(self.shape) // rows), self.radius)

    def unfolded(self, x: np.ndarray) -> np.ndarray:
        """The matrix X_(k)."""
        return np.moveaxis(np.asarray(x), self.mode, 0).reshape(self._ball.shape)

    def folded(self, matrix: np.ndarray) -> np.ndarray:
        """The array whose unfolding is the matrix."""
        others = (size for axis, size in enumerate(self.shape) if axis != self.mode)
        return np.ascontiguousarray(np.moveaxis(matrix.reshape(self.shape[self.mode], *others), 0, self.mode))

    def norm(self, x: np.ndarray) -> float:
        return self._ball.norm(self.unfolded(x))

    @property
    def max_norm(self) -> float:
        return self.radius

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.folded(self._ball.lmo(self.unfolded(self._point(direction))))

    def project(self, x: np.ndarray) -> np.ndarray:
        """The array whose unfolding is the projection of the unfolding of x onto the nuclear norm ball."""
        return self.folded(self._ball.project(self.unfolded(self._point(x))))


def _unfolding_balls() -> Examples:
    return {
        "": UnfoldingBall((2, 3, 4), 1, 3.0),
        "last": UnfoldingBall((3, 2, 2), 2, 0.5),
        "of a matrix": UnfoldingBall((3, 2), 0),
    }


def _in_unfolding_ball(ball: UnfoldingBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, float(np.linalg.norm(ball.unfolded(x), "nuc")), rng)


def _unfolding_minimum(ball: UnfoldingBall, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm(ball.unfolded(g), 2))


ENTRY = DomainEntry(
    "unfolding-ball", UnfoldingBall, "{X : |X_(k)|_* <= r}", "the top pair of singular vectors of the unfolding, by Lanczos",
    _unfolding_balls, _in_unfolding_ball, _unfolding_minimum,
)  # fmt: skip
