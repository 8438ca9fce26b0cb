"""The objective of matrix completion, problem (5) of the paper, for dense and low-rank points."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from condgrad import checks, kernels
from condgrad.objectives.losses import Loss, Welsch, check_loss, value_and_deriv
from condgrad.objectives.sums import Sum
from condgrad.points import LowRank, Pattern, SparsePlusLowRank
from condgrad.points.pattern import MANY_ENTRIES
from condgrad.protocols import Point
from condgrad.runtime.cache import active
from condgrad.runtime.process_memory import return_free_memory


@final
class Completion(Sum):
    """F(X) = sum over the observed (i, j) of w_ij phi(X_ij, Y_ij), the *sum* as in the paper; its Hessian is diagonal.

    As a finite sum it is (1/n) sum of n w_ij phi(X_ij, Y_ij) with n the number of observations, in row-major order. A point is
    an array or a LowRank. For a LowRank no m x n array is formed, and gradients are sparse matrices on the observed entries.

    Arrays of n numbers have the type of ``values``: float32 takes half of the memory. Then the gradient at a LowRank is
    computed in float64 and rounded, which certificates account for.

    Parameters
    ----------
    rows, cols : array_like of int, shape (n,)
        Indices of the observed entries, in any order, without repeats.
    values : array_like of float, shape (n,)
        Observed values Y_ij. An array of float32 stays float32, all others become float64.
    shape : tuple of two ints
        Shape of the matrix.
    loss : Loss, default None
        The loss phi; None: ``Welsch()``.
    weights : array_like of float, shape (n,), default None
        Weights w_ij >= 0, not all 0, stored in the type of ``values``; None: all are 1.
    biases : {"rows", "columns", "both"}, default None
        Subtract the means of rows and columns from the observations first. They are in the attribute ``biases``, and a
        prediction is X_ij + biases.at(i, j). None: no biases.

    Raises
    ------
    ValueError
        If an argument has a wrong shape or type, an index is out of range, or an entry occurs twice.
    """

    low_rank = True
    """LowRank points are accepted; the default start is a LowRank if the set provides one."""

    def __init__(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        shape: tuple[int, int],
        loss: Loss | None = None,
        weights: Any = None,
        biases: str | None = None,
    ):
        self.shape = m, n = _matrix_shape(shape)
        self.loss = Welsch() if loss is None else loss
        values = checks.finite_array(values, "The list of values of Completion", keep_float32=True)
        if values.ndim != 1 or not values.size:
            raise ValueError(f"Completion needs a list of at least one observed value, but got shape {values.shape}.")
        rows = _indices(rows, "rows", m, values.shape)
        cols = _indices(cols, "cols", n, values.shape)
        weights = _weights(weights, values.shape, values.dtype)
        check_loss(self.loss, values)

        if not _in_order(rows, cols):
            positions = np.multiply(rows, n, dtype=np.int64)
            positions += cols
            order = np.argsort(positions)
            rows, cols, values, positions = rows[order], cols[order], values[order], positions[order]
            weights = weights[order] if weights.size else weights
            repeated = positions[1:] == positions[:-1]
            if repeated.any():
                first = int(np.argmax(repeated))
                times = int(np.sum(positions == positions[first]))
                raise ValueError(
                    f"Entry ({rows[first]}, {cols[first]}) is observed {times} times: keep one observation of it, or their mean."
                )
            del positions, order, repeated
        self.pattern = Pattern(rows, cols, (m, n), values.dtype)
        self.n_terms = len(values)
        self.biases = None if biases is None else Biases.fit(rows, cols, values, (m, n), self.loss, biases)
        if self.biases is not None:
            values = (values - self.biases.at(rows, cols)).astype(values.dtype, copy=False)
        self.values = checks.read_only(values)
        self.weights = checks.read_only(weights)
        """Length 0 if all weights are 1."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.values, self.weights = checks.read_only(self.values), checks.read_only(self.weights)

    @classmethod
    def from_dense(cls, Y: Any, mask: Any = None, loss: Loss | None = None, **keywords: Any) -> Self:
        """Build the objective from a matrix.

        Parameters
        ----------
        Y : array_like of float, shape (m, n)
            The matrix.
        mask : array_like of bool, shape (m, n), default None
            True for observed entries; None: the entries that are not NaN.
        loss : Loss, default None
            The loss; None: ``Welsch()``.
        **keywords
            Further arguments of :class:`Completion`.

        Returns
        -------
        Completion
        """
        Y = np.asarray(Y)
        Y = Y if Y.dtype == np.float32 else np.asarray(Y, dtype=float)
        observed = ~np.isnan(Y) if mask is None else np.asarray(mask, dtype=bool)
        checks.same_shape(observed.shape, _matrix_shape(Y.shape), "The mask given to Completion")
        rows, cols = np.nonzero(observed)
        return cls(rows, cols, Y[observed], Y.shape, loss, **keywords)

    def replaced(self, values: np.ndarray | None = None, loss: Loss | None = None) -> Self:
        """Return a copy with other values (in the order of the pattern) or another loss; the pattern and its type are shared."""
        other = copy.copy(self)
        other.values = self.values if values is None else checks.read_only(values.astype(self.dtype, copy=False))
        other.loss = self.loss if loss is None else loss
        return other

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the arrays with one number for each observation: float32 or float64."""
        return self.pattern.dtype

    @property
    def _max_weight(self) -> float:
        """The largest weight of an observation."""
        return float(self.weights.max()) if self.weights.size else 1.0

    @property
    def lower_bound(self) -> float:
        """A lower bound of F."""
        return (float(self.weights.sum(dtype=float)) if self.weights.size else self.n_terms) * self.loss.lower_bound

    @property
    def smoothness(self) -> float:
        """Lipschitz constant L of the gradient of F."""
        return self._max_weight * self.loss.smoothness

    @property
    def lower_smoothness(self) -> float:
        """Non-convexity l: F + (l/2) |X|^2 is convex."""
        return self._max_weight * self.loss.lower_smoothness

    @property
    def term_smoothness(self) -> float:
        return self.n_terms * self.smoothness

    @property
    def mean_square_smoothness(self) -> float:
        """Mean-square Lipschitz constant K of the gradients of the terms."""
        return math.sqrt(self.n_terms) * self.smoothness

    def value(self, x: Point) -> float:
        """Return F(x)."""
        if isinstance(x, LowRank):
            return self._evaluate(x, slopes=False)[0]
        losses = self.loss.value(self._point(x)[self.pattern.rows, self.pattern.cols], self.values)
        return float(np.sum(self.weights * losses if self.weights.size else losses))

    def grad(self, x: Point) -> Point:
        """Return the gradient at x: an array for an array, a SparsePlusLowRank for a LowRank."""
        if isinstance(x, LowRank):
            return self._evaluate(x, slopes=True)[1]
        slopes = self.loss.deriv(self._point(x)[self.pattern.rows, self.pattern.cols], self.values)
        return self.pattern.to_dense(self.weights * slopes if self.weights.size else slopes)

    def term_rows(self, x: Point, batch: np.ndarray) -> np.ndarray:
        """Return the gradients of the terms of a batch at x, each by its single nonzero entry."""
        if isinstance(x, LowRank):
            z = x.at_entries(self.pattern, batch)
        else:
            z = self._point(x)[self.pattern.row_of(batch), self.pattern.indices[batch]]
        slopes = self.loss.deriv(z, self.values[batch])
        return self.n_terms * (self.weights[batch] * slopes if self.weights.size else slopes)

    def assemble(self, rows: np.ndarray, batch: np.ndarray) -> SparsePlusLowRank:
        """Return the mean gradient of a batch from its rows, as a sparse matrix; added to an array, it becomes an array."""
        values = np.bincount(batch, rows / len(batch), minlength=self.n_terms)
        return SparsePlusLowRank(self.pattern, values.astype(self.dtype, copy=False))

    def _evaluate(self, x: LowRank, slopes: bool) -> tuple[float, Any]:
        """Return the value and, with ``slopes``, the gradient at x, from one pass over the observations; cached."""
        evaluations = active().evaluations(self)
        known = evaluations.find(x, slopes)
        if known is not None:
            return known
        checks.same_shape(x.shape, self.shape, "The point given to Completion")
        evaluations.release()
        grad: SparsePlusLowRank | None
        if self.dtype == np.float32 or self.n_terms > MANY_ENTRIES:
            value, grad = self._evaluate_in_pieces(x)
        else:
            z = x.cached_at(self.pattern)
            value, deriv = value_and_deriv(self.loss, z, self.values, self.weights, slopes)
            grad = SparsePlusLowRank(self.pattern, deriv) if slopes else None
            if grad is not None:
                # cached: every step needs this product, when the cached values of x may have been dropped
                grad.inner(x)
        evaluations.put(x, value, grad)
        return value, grad

    def _evaluate_in_pieces(self, x: LowRank) -> tuple[float, SparsePlusLowRank]:
        """Return the value and the gradient at x, for observations in float32 or very many ones.

        The entries of x are computed in float64, a piece of the observations at a time, and are not stored: of all that is
        computed, only the gradient has the length of the observations. So it comes with the value, and is what is cached.
        """
        if self.n_terms > MANY_ENTRIES:
            return_free_memory()
        slopes, values, products = np.empty(self.n_terms, self.dtype), [], []
        U, V = x.merged_factors()
        for entries, z in self.pattern.pieces(U, V):
            weights = self.weights[entries] if self.weights.size else self.weights
            value, deriv = value_and_deriv(self.loss, z, self.values[entries], weights)
            slopes[entries] = deriv
            values.append(value)
            products.append(kernels.dot(slopes[entries], z))
        grad = SparsePlusLowRank(self.pattern, slopes)
        grad.cache_product(x, math.fsum(products))
        return math.fsum(values), grad

    def _point(self, x: np.ndarray) -> np.ndarray:
        return checks.point(x, self.shape, "Completion")


@dataclass(frozen=True, eq=False)
class Biases:
    """The additive model mean + row_i + column_j."""

    mean: float
    rows: np.ndarray
    cols: np.ndarray

    def at(self, rows: Any, cols: Any) -> np.ndarray:
        """Return the biases at the entries (rows, cols)."""
        return self.mean + self.rows[rows] + self.cols[cols]

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return U and V of rank 2 with U V' the matrix of biases, so that they can be sampled like a low-rank matrix."""
        U, V = np.ones((len(self.rows), 2)), np.ones((len(self.cols), 2))
        U[:, 0], V[:, 1] = self.rows + self.mean, self.cols
        return U, V

    @classmethod
    def fit(cls, rows: Any, cols: Any, values: np.ndarray, shape: tuple[int, int], loss: Loss, which: str) -> Biases:
        """Fit row or column means of the residuals; for both, alternate between them."""
        checks.choice(which, ("rows", "columns", "both"), "choice of biases")
        if loss.labels != "real":
            raise ValueError(
                f"biases are means of real observations, {type(loss).__name__} has labels: leave them out."
            )
        mean, (m, n) = float(values.mean(dtype=float)), shape
        row, col = np.zeros(m), np.zeros(n)
        row_count, col_count = np.bincount(rows, minlength=m), np.bincount(cols, minlength=n)
        for _ in range(20 if which == "both" else 1):
            if which != "columns":
                row = np.bincount(rows, values - mean - col[cols], m) / np.maximum(row_count, 1)
            if which != "rows":
                col = np.bincount(cols, values - mean - row[rows], n) / np.maximum(col_count, 1)
        return cls(mean, row, col)


def _in_order(rows: np.ndarray, cols: np.ndarray) -> bool:
    """Return whether the entries are in row-major order, without repeats."""
    later = cols[1:] > cols[:-1]
    later &= rows[1:] == rows[:-1]
    later |= rows[1:] > rows[:-1]
    return bool(later.all())


def _weights(given: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return validated weights of this type; an empty array for None."""
    if given is None:
        return np.empty(0, dtype)
    weights = checks.finite_array(given, "The list of weights of Completion")
    checks.same_shape(weights.shape, shape, "The list of weights of Completion (one for each value)")
    if weights.min() < 0 or weights.max() <= 0:
        raise ValueError("The weights of Completion must not be negative, nor all zero: leave out entries of weight 0.")
    weights = weights.astype(dtype, copy=False)
    if not np.isfinite(weights).all() or weights.max() <= 0:
        raise ValueError(
            "The weights of Completion are not in the range of float32, the type of the values: scale them."
        )
    return weights


def _matrix_shape(given: Any) -> tuple[int, ...]:
    """Return a validated shape with two dimensions."""
    shape = checks.as_shape(given, "Completion")
    if len(shape) != 2:
        raise ValueError(f"Completion is about matrices, but got shape {shape}: give (rows, columns).")
    return shape


def _indices(given: Any, name: str, size: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return validated indices below ``size``, of a signed integer type."""
    indices = np.asarray(given)
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
    return indices.astype(np.int64) if indices.dtype.kind == "u" else indices
