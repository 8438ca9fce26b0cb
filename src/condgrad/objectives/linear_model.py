"""Losses of linear predictions."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, final

import numpy as np

from condgrad import checks
from condgrad.objectives._matrices import Matrix, as_matrix, row_squares, spectral_norm, times, transposed_times
from condgrad.objectives.losses import Loss, check_loss
from condgrad.objectives.sums import Sum


@final
@dataclass(frozen=True, eq=False)
class LinearModel(Sum):
    """F(w) = (1/n) sum_i omega_i phi(a_i'w, y_i); A, with rows a_i, dense or scipy-sparse.

    A matrix A of float32 stays float32, in half of the memory; everything that is computed from it is float64.

    ``weights`` are positive, one for each row, by default all equal; omega are these, divided by their mean.

    The terms are ridge functions: the row of a term is the number phi', its gradient phi' a_i. Where y is a matrix with a
    column for each of several tasks, so is w, and losses are summed over the tasks: the Hessian has a block for each, so
    the constants are those of a single task.
    """

    A: Matrix
    y: np.ndarray
    loss: Loss
    n_terms: int = field(init=False)
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        A = as_matrix(self.A, "The A of LinearModel")
        if A.shape[0] == 0:
            raise ValueError("The A of LinearModel has no rows: give at least one sample.")
        y = checks.finite_array(self.y, "The y of LinearModel")
        if y.ndim != 2 or not y.shape[1]:
            checks.same_shape(y.shape, A.shape[:1], "The y of LinearModel (one number for each row of A)")
        checks.same_shape(y.shape[:1], A.shape[:1], "The y of LinearModel, of which there is a row for each row of A,")
        check_loss(self.loss, y)
        checks.settle(self, A=A, y=y, n_terms=len(y), weights=_mean_one(self.weights, len(y)))

    def replaced(self, y: np.ndarray, loss: Loss) -> Self:
        """Make a model of the same features and weights, without computing the norms of A again.

        Parameters
        ----------
        y : ndarray of the shape of ``y``
            Targets.
        loss : Loss
            Loss phi.

        Returns
        -------
        LinearModel
        """
        y = checks.finite_array(y, "The y of LinearModel")
        checks.same_shape(y.shape, self.y.shape, "The y of LinearModel")
        check_loss(loss, y)
        _ = self._mean_square, self._row_norms  # computed once, here, and copied
        other = copy.copy(self)
        for name in ("_sizes", "mean_square_smoothness"):  # these depend on y or on the loss
            vars(other).pop(name, None)
        checks.settle(other, y=y, loss=loss)
        return other

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.A.shape[1], *self.y.shape[1:])

    @property
    def lower_bound(self) -> float:
        return self.loss.lower_bound * (self.y.size / self.n_terms)

    @property
    def smoothness(self) -> float:
        return self.loss.smoothness * self._mean_square

    @property
    def lower_smoothness(self) -> float:
        return self.loss.lower_smoothness * self._mean_square

    @cached_property
    def _mean_square(self) -> float:
        """The largest eigenvalue of A' diag(omega) A / n."""
        return spectral_norm(self.A, None if self.weights is None else np.sqrt(self.weights)) ** 2 / self.n_terms

    @cached_property
    def _row_norms(self) -> np.ndarray:
        return np.sqrt(row_squares(self.A))

    @property
    def term_smoothness(self) -> float:
        squares = self._row_norms**2
        return self.loss.smoothness * float((squares if self.weights is None else self.weights * squares).max())

    @cached_property
    def mean_square_smoothness(self) -> float:
        """From (1/n) sum_i omega_i^2 |a_i|^2 a_i a_i', the Gram matrix of the rows omega_i |a_i| a_i."""
        scales = self._row_norms if self.weights is None else self.weights * self._row_norms
        return self.loss.smoothness * spectral_norm(self.A, scales) / math.sqrt(self.n_terms)

    def value(self, x: np.ndarray) -> float:
        losses = self.loss.value(times(self.A, checks.point(x, self.shape, "LinearModel")), self.y)
        return float(np.sum(self._weighted(losses))) / self.n_terms

    def grad(self, x: np.ndarray) -> np.ndarray:
        slopes = self.loss.deriv(times(self.A, checks.point(x, self.shape, "LinearModel")), self.y)
        return transposed_times(self.A, self._weighted(slopes)) / self.n_terms

    def grad_scale(self, x: np.ndarray) -> float:
        """An upper bound of |A|_F |slopes| / n, without a pass over A: slopes change by at most phi's smoothness times A x."""
        size, at_0 = self._sizes
        return size / self.n_terms * (at_0 + self._steepest * size * float(np.linalg.norm(x)))

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        """|A|_F, and the norm of the weighted slopes at 0."""
        slopes = self._weighted(self.loss.deriv(np.zeros(self.y.shape), self.y))
        return float(np.linalg.norm(self._row_norms)), float(np.linalg.norm(slopes))

    @property
    def _steepest(self) -> float:
        return self.loss.smoothness * (1.0 if self.weights is None else float(self.weights.max()))

    def term_rows(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        slopes = self.loss.deriv(times(self.A[batch], checks.point(x, self.shape, "LinearModel")), self.y[batch])
        return self._weighted(slopes, batch)

    def assemble(self, rows: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return transposed_times(self.A[batch], rows) / len(batch)

    def _weighted(self, each: np.ndarray, batch: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Numbers of rows, or of rows and tasks, times the weights of the rows."""
        if self.weights is None:
            return each
        weights = self.weights[batch]
        return (weights if each.ndim == 1 else weights[:, None]) * each


def _mean_one(given: Any, n: int) -> np.ndarray | None:
    """The weights, divided by their mean."""
    if given is None:
        return None
    weights = checks.finite_array(given, "The list of weights of LinearModel")
    checks.same_shape(weights.shape, (n,), "The list of weights of LinearModel (one for each row of A)")
    if weights.min() <= 0:
        raise ValueError(
            f"The weights of LinearModel must be positive, but one is {weights.min():g}: leave out rows that do not count."
        )
    return checks.read_only(weights / weights.mean())
