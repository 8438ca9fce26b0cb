"""Matrix completion: problem (5) of the paper, on dense and on low-rank points."""

from __future__ import annotations

import copy
import math
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from condgrad import checks
from condgrad.objectives.losses import Loss, Welsch, check_loss, value_and_deriv
from condgrad.objectives.sums import Sum
from condgrad.points import LowRank, Pattern, SparsePlusLowRank
from condgrad.protocols import Point


class _Last(threading.local):
    """The low-rank point that this thread evaluated last (a weak reference), its value and its gradient.

    One for each thread: threads that share an objective must not get each other's answers, nor each other's last bits.
    """

    evaluation: tuple[Any, float, Any] = (None, 0.0, None)


@final
class Completion(Sum):
    """F(X) = sum over the observed (i, j) of w_ij phi(X_ij, Y_ij), the *sum* as in the paper; its Hessian is diagonal.

    As a finite sum it is (1/n) sum of n w_ij phi(X_ij, Y_ij), n the number of observations, which are kept row by row. A
    point is an array or a LowRank: then nothing of m x n is formed, gradients are sparse and live on the observations.

    ``weights`` are one for each observation. ``biases`` ("rows", "columns" or "both") takes the means of rows and columns out of
    the observations first; they are kept in ``.biases``, and a prediction is X_ij + biases.at(i, j).
    """

    low_rank = True
    """It takes LowRank points, and the default start is one where the set has it."""

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
        values = checks.finite_array(values, "The list of values of Completion")
        if values.ndim != 1 or not values.size:
            raise ValueError(f"Completion needs a list of at least one observed value, but got shape {values.shape}.")
        rows = _indices(rows, "rows", m, values.shape)
        cols = _indices(cols, "cols", n, values.shape)
        weights = _weights(weights, values.shape)
        check_loss(self.loss, values)

        places = np.multiply(rows, n, dtype=np.int64)
        places += cols
        if not (places[1:] > places[:-1]).all():
            order = np.argsort(places)
            rows, cols, values, places = rows[order], cols[order], values[order], places[order]
            weights = weights[order] if weights.size else weights
        twice = places[1:] == places[:-1]
        if twice.any():
            again = int(np.argmax(twice))
            times = int(np.sum(places == places[again]))
            raise ValueError(
                f"Entry ({rows[again]}, {cols[again]}) is observed {times} times: keep one observation of it, or their mean."
            )
        del places
        self.pattern = Pattern(rows, cols, (m, n))
        self.n_terms = len(values)
        self.biases = None if biases is None else Biases.fit(rows, cols, values, (m, n), self.loss, biases)
        self.values = checks.read_only(values if self.biases is None else values - self.biases.at(rows, cols))
        self.weights = checks.read_only(weights)
        """Of length 0 where all are 1."""
        self._last = _Last()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: all but the last evaluation."""
        return {name: value for name, value in vars(self).items() if name != "_last"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.values, self.weights = checks.read_only(self.values), checks.read_only(self.weights)
        self._last = _Last()

    @classmethod
    def from_dense(cls, Y: Any, mask: Any = None, loss: Loss | None = None, **keywords: Any) -> Self:
        """From a matrix and the mask of what is observed in it; without a mask, NaN stands for what is not."""
        Y = np.asarray(Y, dtype=float)
        seen = ~np.isnan(Y) if mask is None else np.asarray(mask, dtype=bool)
        checks.same_shape(seen.shape, _matrix_shape(Y.shape), "The mask given to Completion")
        rows, cols = np.nonzero(seen)
        return cls(rows, cols, Y[seen], Y.shape, loss, **keywords)

    def replaced(self, values: np.ndarray | None = None, loss: Loss | None = None) -> Self:
        """The same entries with other values (in the order of the pattern) or another loss; nothing else is made anew."""
        other = copy.copy(self)
        other.values = self.values if values is None else checks.read_only(values)
        other.loss = self.loss if loss is None else loss
        return other

    @property
    def _heaviest(self) -> float:
        return float(self.weights.max()) if self.weights.size else 1.0

    @property
    def lower_bound(self) -> float:
        return (float(self.weights.sum()) if self.weights.size else self.n_terms) * self.loss.lower_bound

    @property
    def smoothness(self) -> float:
        return self._heaviest * self.loss.smoothness

    @property
    def lower_smoothness(self) -> float:
        return self._heaviest * self.loss.lower_smoothness

    @property
    def term_smoothness(self) -> float:
        return self.n_terms * self.smoothness

    @property
    def mean_square_smoothness(self) -> float:
        return math.sqrt(self.n_terms) * self.smoothness

    def value(self, x: Point) -> float:
        if isinstance(x, LowRank):
            return self._at(x, slopes=False)[0]
        losses = self.loss.value(self._point(x)[self.pattern.rows, self.pattern.cols], self.values)
        return float(np.sum(self.weights * losses if self.weights.size else losses))

    def grad(self, x: Point) -> Point:
        if isinstance(x, LowRank):
            return self._at(x, slopes=True)[1]
        slopes = self.loss.deriv(self._point(x)[self.pattern.rows, self.pattern.cols], self.values)
        return self.pattern.to_dense(self.weights * slopes if self.weights.size else slopes)

    def term_rows(self, x: Point, batch: np.ndarray) -> np.ndarray:
        if isinstance(x, LowRank):
            z = x.at_entries(self.pattern, batch)
        else:
            z = self._point(x)[self.pattern.row_of(batch), self.pattern.indices[batch]]
        slopes = self.loss.deriv(z, self.values[batch])
        return self.n_terms * (self.weights[batch] * slopes if self.weights.size else slopes)

    def assemble(self, rows: np.ndarray, batch: np.ndarray) -> SparsePlusLowRank:
        """Sparse for any point; it becomes an array where it meets one."""
        return SparsePlusLowRank(self.pattern, np.bincount(batch, rows / len(batch), minlength=self.n_terms))

    def _at(self, x: LowRank, slopes: bool) -> tuple[float, Any]:
        """The value and the gradient at x (where it is asked for: it takes memory), from one pass over the observations."""
        point, value, grad = self._last.evaluation
        if point is None or point() is not x or (slopes and grad is None):
            checks.same_shape(x.shape, self.shape, "The point given to Completion")
            self._last.evaluation, grad = (None, 0.0, None), None  # so that there is one gradient in memory, not two
            z = x.carried_at(self.pattern)
            value, deriv = value_and_deriv(self.loss, z, self.values, self.weights, slopes)
            grad = SparsePlusLowRank(self.pattern, deriv) if slopes else None
            if grad is not None:
                grad.inner(x)  # which it remembers: every step asks for it, when the sampled values of x may have gone
            self._last.evaluation = (weakref.ref(x), value, grad)
        return value, grad

    def remembered(self) -> Any:
        """What it keeps between calls, on which the last bits of later answers depend; a checkpoint takes it along."""
        return self._last.evaluation, self.pattern.remembered()

    def remember(self, remembered: Any) -> None:
        """Set what :meth:`remembered` returned; TypeError or ValueError for anything else, as a checkpoint may be forged."""
        (point, value, grad), carrying = remembered
        known = isinstance(grad, SparsePlusLowRank) and grad.pattern is self.pattern
        if not isinstance(point, weakref.ref | None) or not isinstance(value, float) or not (known or grad is None):
            raise TypeError("a point, its value and its gradient were expected")
        self._last.evaluation = (point, value, grad)
        self.pattern.remember(carrying)

    def _point(self, x: np.ndarray) -> np.ndarray:
        return checks.point(x, self.shape, "Completion")


@dataclass(frozen=True, eq=False)
class Biases:
    """mean + row_i + column_j: what a matrix has without any interaction."""

    mean: float
    rows: np.ndarray
    cols: np.ndarray

    def at(self, rows: Any, cols: Any) -> np.ndarray:
        return self.mean + self.rows[rows] + self.cols[cols]

    @classmethod
    def fit(cls, rows: Any, cols: Any, values: np.ndarray, shape: tuple[int, int], loss: Loss, which: str) -> Biases:
        """Means of what the others leave over; of both, by turns."""
        checks.choice(which, ("rows", "columns", "both"), "choice of biases")
        if loss.labels != "real":
            raise ValueError(
                f"biases are means of real observations, {type(loss).__name__} has labels: leave them out."
            )
        mean, (m, n) = float(values.mean()), shape
        row, col = np.zeros(m), np.zeros(n)
        row_count, col_count = np.bincount(rows, minlength=m), np.bincount(cols, minlength=n)
        for _ in range(20 if which == "both" else 1):
            if which != "columns":
                row = np.bincount(rows, values - mean - col[cols], m) / np.maximum(row_count, 1)
            if which != "rows":
                col = np.bincount(cols, values - mean - row[rows], n) / np.maximum(col_count, 1)
        return cls(mean, row, col)


def _weights(given: Any, shape: tuple[int, ...]) -> np.ndarray:
    if given is None:
        return np.empty(0)
    weights = checks.finite_array(given, "The list of weights of Completion")
    checks.same_shape(weights.shape, shape, "The list of weights of Completion (one for each value)")
    if weights.min() < 0 or weights.max() <= 0:
        raise ValueError("The weights of Completion must not be negative, nor all zero: drop what has no weight.")
    return weights


def _matrix_shape(given: Any) -> tuple[int, ...]:
    shape = checks.as_shape(given, "Completion")
    if len(shape) != 2:
        raise ValueError(f"Completion is about matrices, but got shape {shape}: give (rows, columns).")
    return shape


def _indices(given: Any, name: str, size: int, shape: tuple[int, ...]) -> np.ndarray:
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
