"""What a worker computes: a shard of observed entries with its losses, slopes and products. Nothing here knows Dask."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from condgrad import checks, kernels
from condgrad.objectives.completion import Completion
from condgrad.objectives.losses import Loss, value_and_deriv
from condgrad.points import Pattern


class ShardError(RuntimeError):
    """A shard could not be read or computed. The message names the shard and the cause."""


@dataclass(frozen=True, eq=False)
class Shard:
    """Observed entries of consecutive rows, in row-major order; perhaps none."""

    number: int
    first: int
    """Number of the first row. The pattern counts rows from here."""
    pattern: Pattern
    values: np.ndarray
    weights: np.ndarray
    """Length 0 if all weights are 1."""

    def __sizeof__(self) -> int:
        """Bytes of the arrays: Dask sends tasks to the data by these sizes, and not the data to the tasks."""
        pattern = self.pattern
        return sum(a.nbytes for a in (pattern.indices, pattern.indptr, pattern.cuts, self.values, self.weights))


class ShardSummary(NamedTuple):
    """What the driver knows of a shard."""

    first: int
    stop: int
    """Number of the last row, plus 1."""
    entries: int
    max_weight: float
    weight: float
    """Sum of the weights."""
    dtype: str
    checksum: str


class Slopes(NamedTuple):
    """Derivatives of the losses of a shard at a point X, in the type of the values, and numbers that belong to them."""

    slopes: np.ndarray
    value: float
    """Sum of the losses."""
    product: float
    """<S, X> for the sparse matrix S of the slopes."""
    norm2: float

    def __sizeof__(self) -> int:
        return self.slopes.nbytes


def explain(error: BaseException) -> str:
    """Return the type and message of an exception as part of a sentence."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}".rstrip(".: ")


def build(number: int, data: Any, shape: tuple[int, int], loss: Loss) -> Shard:
    """Return the shard of the entries (rows, cols, values) or (rows, cols, values, weights); raise ShardError for bad data."""
    try:
        data = tuple(data)
        if len(data) not in (3, 4):
            raise ValueError(f"there are {len(data)} arrays, not (rows, cols, values) or (rows, cols, values, weights)")
        rows, cols, values, weights = (*data, None) if len(data) == 3 else data
        rows = np.asarray(rows)
        if not any(np.size(array) for array in data if array is not None):
            return Shard(number, 0, Pattern((), (), (0, shape[1])), np.zeros(0), np.zeros(0))
        if rows.size and (rows.min() < 0 or rows.max() >= shape[0]):
            raise ValueError(f"rows go from {rows.min()} to {rows.max()}, but the matrix has {shape[0]}")
        first = int(rows.min()) if rows.size else 0
        local = (int(rows.max()) - first + 1 if rows.size else 1, shape[1])
        none_counts = weights is not None and not np.any(
            weights
        )  # Completion refuses that; other shards may have weights
        try:
            entries = Completion(rows - first, cols, values, local, loss, None if none_counts else weights)
        except ValueError:
            Completion(rows, cols, values, shape, loss)  # the same error with the row numbers of the whole matrix
            raise
        if none_counts:
            checks.same_shape(np.shape(weights), rows.shape, "The list of weights (one for each value)")
    except Exception as error:
        raise ShardError(f"Shard {number} has entries that can't be used ({explain(error)}): correct them.") from None
    kept = np.zeros(rows.shape, entries.dtype) if none_counts else entries.weights
    return Shard(number, first, entries.pattern, entries.values, kept)


def load(number: int, loader: Any, build: Any) -> Any:
    """Return the shard of the data that ``loader(number)`` reads; an exception of the loader becomes a ShardError."""
    try:
        data = loader(number)
    except (Exception, SystemExit) as error:
        raise ShardError(
            f"Shard {number} could not be loaded ({explain(error)}): correct the loader or its data."
        ) from None
    return build(number, data)


def summarise(shard: Shard) -> ShardSummary:
    """Return what the driver needs to know of a shard."""
    pattern, weights = shard.pattern, shard.weights
    digest = hashlib.sha256()
    for array in (pattern.indptr, pattern.indices, shard.values, weights):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return ShardSummary(
        shard.first,
        shard.first + pattern.shape[0],
        pattern.size,
        float(weights.max()) if weights.size else float(pattern.size > 0),
        float(weights.sum(dtype=float)) if weights.size else float(pattern.size),
        pattern.dtype.name,
        digest.hexdigest()[:16],
    )


def evaluate(shard: Shard, U: np.ndarray, V: np.ndarray, loss: Loss) -> Slopes:
    """Return the losses and slopes at U V', where U has the rows of the shard; computed in float64, a piece at a time."""
    slopes = np.empty(shard.pattern.size, shard.pattern.dtype)
    values, products = [], []
    for entries, z in shard.pattern.pieces(U, V):
        weights = shard.weights[entries] if shard.weights.size else shard.weights
        value, deriv = value_and_deriv(loss, z, shard.values[entries], weights)
        slopes[entries] = deriv
        values.append(value)
        products.append(kernels.dot(slopes[entries], z))
    return Slopes(slopes, math.fsum(values), math.fsum(products), kernels.dot(slopes, slopes))


def numbers_of(slopes: Slopes) -> tuple[float, float, float]:
    """Return the numbers of a shard's slopes, which travel to the driver; the slopes stay."""
    return slopes[1:]


def combined(coefficients: Sequence[float], parts: Sequence[Slopes]) -> tuple[float, np.ndarray]:
    """Return a factor and an array whose product is the sum of the coefficients times the slopes, in float64 if there are two."""
    if len(parts) == 1:
        return coefficients[0], parts[0].slopes
    total = np.zeros(len(parts[0].slopes))
    for c, part in zip(coefficients, parts, strict=True):
        kernels.add(total, c, part.slopes.astype(float, copy=False))
    return 1.0, total


def times(shard: Shard, W: np.ndarray, coefficients: Sequence[float], *parts: Slopes) -> np.ndarray:
    """Return the rows of S W that belong to the shard."""
    factor, values = combined(coefficients, parts)
    return factor * shard.pattern.times(values, W)


def transposed_times(shard: Shard, Q: np.ndarray, coefficients: Sequence[float], *parts: Slopes) -> np.ndarray:
    """Return the shard's summand of S' Q, where Q has the rows of the shard."""
    factor, values = combined(coefficients, parts)
    return factor * shard.pattern.transposed_times(values, Q)


def product(shard: Shard, U: np.ndarray, V: np.ndarray, slopes: Slopes) -> float:
    """Return the shard's summand of <S, U V'>."""
    return math.fsum(kernels.dot(slopes.slopes[entries], z) for entries, z in shard.pattern.pieces(U, V))


def dot(shard: Shard, one: Slopes, other: Slopes) -> float:
    """Return the inner product of two arrays of the shard's slopes."""
    return kernels.dot(one.slopes, other.slopes)


def squares(
    shard: Shard, U: np.ndarray, V: np.ndarray, coefficients: Sequence[float], *parts: Slopes
) -> tuple[float, float]:
    """Return the sums over the shard's entries of (S + U V')^2 and of (U V')^2."""
    factor, values = combined(coefficients, parts)
    both, on_pattern = [], []
    for entries, z in shard.pattern.pieces(U, V):
        total = z + factor * values[entries].astype(float, copy=False)
        both.append(kernels.dot(total, total))
        on_pattern.append(kernels.dot(z, z))
    return math.fsum(both), math.fsum(on_pattern)


def dense(shard: Shard, coefficients: Sequence[float], *parts: Slopes) -> np.ndarray:
    """Return the rows of S that belong to the shard, as an array."""
    factor, values = combined(coefficients, parts)
    return shard.pattern.to_dense(factor * values.astype(float, copy=False))


def entries_at(shard: Shard, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and values of the entries at these positions in the shard."""
    rows = shard.pattern.row_of(positions) + shard.first
    return rows, shard.pattern.indices[positions], shard.values[positions]


def without(shard: Shard, positions: np.ndarray) -> Shard:
    """Return the shard without the entries at these positions."""
    kept = np.ones(shard.pattern.size, dtype=bool)
    kept[positions] = False
    pattern, weights = shard.pattern, shard.weights
    left = Pattern(pattern.rows[kept], pattern.indices[kept], pattern.shape, pattern.dtype)
    return replace(shard, pattern=left, values=shard.values[kept], weights=weights[kept] if weights.size else weights)


def minus_biases(shard: Shard, rows: np.ndarray, cols: np.ndarray) -> Shard:
    """Return the shard with its values minus a product of factors of rows and columns: the biases."""
    sampled = shard.pattern.sample(rows, cols)
    return replace(shard, values=np.subtract(shard.values, sampled, out=sampled))


def largest_value(shard: Shard) -> float:
    """Return the largest absolute value of the shard; 0 if it has none."""
    return float(np.abs(shard.values).max(initial=0.0))
