"""What a worker computes for a linear model: a shard of rows with their targets. Nothing here knows Dask."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from condgrad import checks
from condgrad.distributed.shards import ShardError, explain
from condgrad.objectives._matrices import Matrix, arrays_of, as_matrix, gram, row_squares, times, transposed_times
from condgrad.objectives.losses import Loss, check_loss


@dataclass(frozen=True, eq=False)
class RowShard:
    """Consecutive rows of a linear model."""

    A: Matrix
    y: np.ndarray
    weights: np.ndarray
    """Weights of the rows, as given; length 0 if all are 1."""

    def __sizeof__(self) -> int:
        """Bytes of the arrays: Dask sends tasks to the data by these sizes, and not the data to the tasks."""
        return sum(array.nbytes for array in (*arrays_of(self.A), self.y, self.weights))

    def weighted(self, numbers: np.ndarray, chosen: Any = slice(None)) -> np.ndarray:
        """Return numbers of the chosen rows times the weights of these rows."""
        return self.weights[chosen] * numbers if self.weights.size else numbers


class RowSummary(NamedTuple):
    """What the driver knows of a shard of rows."""

    rows: int
    features: int
    weight: float
    """Sum of the weights."""
    max_weighted_square: float
    """Largest weight times squared norm of a row."""
    squares: float
    """Sum of the squared norms of the rows."""
    slopes2: float
    """Sum of the squared weighted slopes at 0."""
    max_weight: float
    checksum: str


def build_rows(number: int, data: Any, loss: Loss) -> RowShard:
    """Return the shard of (A, y) or (A, y, weights); raise ShardError for data that can't be used."""
    try:
        data = tuple(data)
        if len(data) not in (2, 3):
            raise ValueError(f"there are {len(data)} arrays, not (A, y) or (A, y, weights)")
        A, y = as_matrix(data[0], "A"), checks.finite_array(data[1], "y")
        checks.same_shape(y.shape, A.shape[:1], "y (one number for each row of A)")
        check_loss(loss, y)
        weights = np.zeros(0)
        if len(data) == 3 and data[2] is not None:
            weights = checks.finite_array(data[2], "The list of weights")
            checks.same_shape(weights.shape, y.shape, "The list of weights (one for each row of A)")
            if weights.size and weights.min() <= 0:
                raise ValueError(f"weights must be positive, but one is {weights.min():g}")
    except Exception as error:
        raise ShardError(f"Shard {number} has rows that can't be used ({explain(error)}): correct them.") from None
    return RowShard(A, y, weights)


def summarise_rows(shard: RowShard, loss: Loss) -> RowSummary:
    """Return what the driver needs to know of a shard of rows."""
    A, y, weights = shard.A, shard.y, shard.weights
    squares = row_squares(A)
    slopes = shard.weighted(loss.deriv(np.zeros(y.shape), y))
    digest = hashlib.sha256()
    for array in (*arrays_of(A), y, weights):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return RowSummary(
        len(y),
        A.shape[1],
        float(weights.sum()) if weights.size else float(len(y)),
        float(shard.weighted(squares).max(initial=0.0)),
        float(squares.sum()),
        float(slopes @ slopes),
        float(weights.max(initial=0.0)) if weights.size else 1.0,
        digest.hexdigest()[:16],
    )


def loss_sum(shard: RowShard, x: np.ndarray, loss: Loss) -> float:
    """Return the weighted sum of the losses of the rows."""
    return math.fsum(shard.weighted(loss.value(times(shard.A, x), shard.y)))


def gradient_sum(shard: RowShard, x: np.ndarray, loss: Loss) -> np.ndarray:
    """Return the gradient of the weighted sum of the losses of the rows."""
    return transposed_times(shard.A, shard.weighted(loss.deriv(times(shard.A, x), shard.y)))


def term_slopes(shard: RowShard, chosen: np.ndarray, x: np.ndarray, loss: Loss) -> np.ndarray:
    """Return the weighted slopes of the chosen rows."""
    return shard.weighted(loss.deriv(times(shard.A[chosen], x), shard.y[chosen]), chosen)


def assembled(shard: RowShard, chosen: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return the sum of slopes times the chosen rows."""
    return transposed_times(shard.A[chosen], slopes)


def term_gradients(shard: RowShard, chosen: np.ndarray, x: np.ndarray, loss: Loss) -> np.ndarray:
    """Return the sum of the gradients of the chosen terms."""
    return assembled(shard, chosen, term_slopes(shard, chosen, x, loss))


def gram_matrix(shard: RowShard, by_norm: bool) -> np.ndarray:
    """Return the sum of c_i a_i a_i' over the rows: c_i is the weight or, with ``by_norm``, (the weight times |a_i|)^2."""
    return gram(shard.A, np.sqrt(row_coefficients(shard, by_norm)))


def gram_times(shard: RowShard, x: np.ndarray, by_norm: bool) -> np.ndarray:
    """Return the product of that sum and a vector."""
    return transposed_times(shard.A, row_coefficients(shard, by_norm) * times(shard.A, x))


def row_coefficients(shard: RowShard, by_norm: bool) -> np.ndarray:
    """Return the coefficients c_i of :func:`gram_matrix`."""
    weights = shard.weights if shard.weights.size else np.ones(len(shard.y))
    return weights**2 * row_squares(shard.A) if by_norm else weights
