"""Quadratic functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.objectives._matrices import Matrix, as_matrix, curvature, is_single, row_squares, times


@final
@dataclass(frozen=True, eq=False)
class Quadratic:
    """F(x) = x'Qx / 2 + b'x + c for vectors x; Q symmetric, dense or scipy-sparse, of any signature.

    A matrix Q of float32 stays float32, in half of the memory; everything that is computed from it is float64.
    """

    Q: Matrix
    b: Any = None
    c: float = 0.0

    lower_bound = None

    def __post_init__(self) -> None:
        Q = as_matrix(self.Q, "The Q of Quadratic")
        n, columns = Q.shape
        if n != columns:
            raise ValueError(f"The Q of Quadratic has shape {Q.shape}, but must be square.")
        if abs(Q - Q.T).max() > 1e-10 * abs(Q).max():
            raise ValueError("The Q of Quadratic is not symmetric: pass (Q + Q.T) / 2, which gives the same function.")
        b = checks.finite_array(np.zeros(n) if self.b is None else self.b, "The b of Quadratic")
        checks.same_shape(b.shape, (n,), "The b of Quadratic")
        checks.settle(self, Q=Q, b=b, c=checks.real(self.c, "The c of Quadratic"))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.b.shape

    @property
    def smoothness(self) -> float:
        return self._curvature[0]

    @property
    def lower_smoothness(self) -> float:
        return self._curvature[1]

    @cached_property
    def _curvature(self) -> tuple[float, float]:
        return curvature(self.Q)

    @cached_property
    def _size(self) -> float:
        """|Q|_F"""
        return float(np.sqrt(row_squares(self.Q).sum() if is_single(self.Q) else (self.Q * self.Q).sum()))

    def grad_scale(self, x: np.ndarray) -> float:
        """|Q|_F |x| + |b|, at least the norm of the terms of the gradient."""
        return self._size * float(np.linalg.norm(x)) + float(np.linalg.norm(self.b))

    def value(self, x: np.ndarray) -> float:
        x = checks.point(x, self.shape, "Quadratic")
        return float(x @ times(self.Q, x) / 2 + self.b @ x + self.c)

    def grad(self, x: np.ndarray) -> np.ndarray:
        return times(self.Q, checks.point(x, self.shape, "Quadratic")) + self.b
