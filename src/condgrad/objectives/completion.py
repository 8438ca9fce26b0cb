"""Matrix completion on dense matrices: problem (5) of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np

from condgrad import checks
from condgrad.objectives.losses import Loss, Welsch, check_loss
from condgrad.objectives.sums import Sum


@final
@dataclass(frozen=True, eq=False)
class Completion(Sum):
    """F(X) = sum over the observed (i, j) of phi(X_ij, Y_ij), the *sum* as in the paper; its Hessian is diagonal.

    As a finite sum it is (1/n) sum of n phi(X_ij, Y_ij), n the number of observations.
    """

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    loss: Loss = field(default_factory=Welsch)
    n_terms: int = field(init=False)
    _flat: np.ndarray = field(init=False, repr=False)
    """Where the observed entries are in the raveled matrix."""

    def __post_init__(self) -> None:
        shape = _matrix_shape(self.shape)
        values = checks.finite_array(self.values, "The list of values of Completion")
        if values.ndim != 1 or not values.size:
            raise ValueError(f"Completion needs a list of at least one observed value, but got shape {values.shape}.")
        rows = _indices(self.rows, "rows", shape[0], values.shape)
        cols = _indices(self.cols, "cols", shape[1], values.shape)
        flat = rows * shape[1] + cols
        cells, counts = np.unique(flat, return_counts=True)
        if len(cells) < len(flat):
            i, j = divmod(int(cells[counts.argmax()]), shape[1])
            raise ValueError(
                f"Entry ({i}, {j}) is observed {counts.max()} times: keep one observation of it, or their mean."
            )
        check_loss(self.loss, values)
        checks.settle(self, rows=rows, cols=cols, values=values, shape=shape, n_terms=len(values), _flat=flat)

    @classmethod
    def from_dense(cls, Y: Any, mask: Any = None, loss: Loss | None = None) -> Self:
        """From a matrix and the mask of what is observed in it; without a mask, NaN stands for what is not."""
        Y = np.asarray(Y, dtype=float)
        seen = ~np.isnan(Y) if mask is None else np.asarray(mask, dtype=bool)
        checks.same_shape(seen.shape, _matrix_shape(Y.shape), "The mask given to Completion")
        rows, cols = np.nonzero(seen)
        return cls(rows, cols, Y[seen], Y.shape, Welsch() if loss is None else loss)

    @property
    def lower_bound(self) -> float:
        return self.n_terms * self.loss.lower_bound

    @property
    def smoothness(self) -> float:
        return self.loss.smoothness

    @property
    def lower_smoothness(self) -> float:
        return self.loss.lower_smoothness

    @property
    def term_smoothness(self) -> float:
        return self.n_terms * self.loss.smoothness

    @property
    def mean_square_smoothness(self) -> float:
        return math.sqrt(self.n_terms) * self.loss.smoothness

    def value(self, x: np.ndarray) -> float:
        return float(np.sum(self.loss.value(self._seen(x, self._flat), self.values)))

    def grad(self, x: np.ndarray) -> np.ndarray:
        return self._scatter(self.loss.deriv(self._seen(x, self._flat), self.values), self._flat)

    def term_rows(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return self.n_terms * self.loss.deriv(self._seen(x, self._flat[batch]), self.values[batch])

    def assemble(self, rows: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return self._scatter(rows, self._flat[batch]) / len(batch)

    def _seen(self, x: np.ndarray, flat: np.ndarray) -> np.ndarray:
        return checks.point(x, self.shape, "Completion").take(flat)

    def _scatter(self, weights: np.ndarray, flat: np.ndarray) -> np.ndarray:
        """The matrix with these entries; what falls on the same entry adds up."""
        return np.bincount(flat, weights, minlength=math.prod(self.shape)).reshape(self.shape)


def _matrix_shape(given: Any) -> tuple[int, ...]:
    shape = checks.as_shape(given, "Completion")
    if len(shape) != 2:
        raise ValueError(f"Completion is about matrices, but got shape {shape}: give (rows, columns).")
    return shape


def _indices(given: Any, name: str, size: int, shape: tuple[int, ...]) -> np.ndarray:
    indices = np.array(given)
    checks.same_shape(indices.shape, shape, f"The list of {name} of Completion (one for each value)")
    if indices.dtype.kind not in "iu":
        raise ValueError(
            f"The {name} of Completion must be whole numbers, but got dtype {indices.dtype}: pass integers."
        )
    if indices.min() < 0 or indices.max() >= size:
        raise ValueError(
            f"The {name} of Completion go from {indices.min()} to {indices.max()}, but the matrix has {size} {name}: "
            f"count from 0 to {size - 1}, or give a larger shape."
        )
    indices = indices.astype(np.intp)
    indices.setflags(write=False)
    return indices
