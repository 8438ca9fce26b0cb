"""The class `SparsePlusLowRank`: the sum of a sparse and a low-rank matrix, such as a gradient of matrix completion."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from condgrad import kernels
from condgrad.checks import not_negative, read_only, real
from condgrad.points.base import Structured
from condgrad.points.low_rank import CANCELLATION_RATIO, Factors, LowRank, wide
from condgrad.points.pattern import MANY_ENTRIES, Pattern
from condgrad.runtime.cache import active
from condgrad.storage.stored import check_array, stored


def _validate(x: SparsePlusLowRank) -> None:
    if (
        not isinstance(x.pattern, Pattern)
        or not isinstance(x.low, LowRank)
        or not x.pattern.shape == x.low.shape == x.shape
    ):
        raise ValueError("a pattern and a low-rank part of the same shape were expected")
    check_array(x.values, (x.pattern.size,), "values")
    if x.values.dtype not in (np.float32, np.float64):
        raise ValueError("values of float32 or float64 were expected")
    real(x.scale, "scale")
    if x.noise is not None:
        not_negative(x.noise, "noise")


FLOAT32_ROUNDOFF = float(np.finfo(np.float32).eps) / 2
"""Maximum relative rounding error of one rounding to float32."""


@stored(fields=("pattern", "values", "low", "scale", "shape", "noise"), validate=_validate)
class SparsePlusLowRank(Structured):
    """The matrix D = scale S + X with S sparse and X of low rank, such as a point minus a multiple of a gradient.

    The products ``D @ W`` and ``D.T @ Q`` read the entries of S once for all columns of W or Q. float32 values stay float32; all
    other values become float64. Products and norms are computed in float64. A product is rounded to float32 if both the values
    and the block W or Q are float32.

    Parameters
    ----------
    pattern : Pattern
        Positions of the entries of S.
    values : ndarray of float, shape (pattern.size,)
        Values of the entries of S.
    low : LowRank, default None
        The matrix X. By default X = 0.
    scale : float, default 1.0
        Factor of S.
    noise : float, default None
        Bound on the norm of the rounding errors of the values. By default float32 values are assumed to be rounded once, and
        float64 values to be exact.
    """

    def __init__(
        self,
        pattern: Pattern,
        values: np.ndarray,
        low: LowRank | None = None,
        scale: float = 1.0,
        noise: float | None = None,
    ):
        values = np.asarray(values)
        values = values if values.dtype == np.float32 else np.asarray(values, dtype=float)
        if values.shape != (pattern.size,):
            raise ValueError(
                f"Got values of shape {values.shape} for a pattern of {pattern.size} entries: give one value for each entry."
            )
        self.pattern, self.scale, self.shape, self.noise = pattern, scale, pattern.shape, noise
        self.values: np.ndarray = read_only(values) if values.flags.writeable else values
        self.low = LowRank.zeros(pattern.shape) if low is None else low
        self.same_shape(self.low)

    def __reduce__(self) -> Any:
        """Make pickle and copy call the constructor, so that the arrays of the new object are read-only too."""
        return SparsePlusLowRank, (self.pattern, self.values, self.low, self.scale, self.noise)

    @property
    def rounding(self) -> float:
        """Bound on the norm of the rounding error of the matrix scale S. It is 0 for float64 values if no ``noise`` was given."""
        if self.noise is None:
            single = self.values.dtype == np.float32
            self.noise = FLOAT32_ROUNDOFF * sqrt(kernels.dot(self.values, self.values)) if single else 0.0
        return abs(self.scale) * self.noise

    def scaled(self, factor: float) -> SparsePlusLowRank:
        return self._same_values(self.low.scaled(factor), factor * self.scale)

    def _same_values(self, low: LowRank, scale: float) -> SparsePlusLowRank:
        return SparsePlusLowRank(self.pattern, self.values, low, scale, self.noise)

    def plus(self, other: Structured) -> Any:
        self.same_shape(other)
        if isinstance(other, LowRank):
            return self._same_values(self.low + other, self.scale)
        if not isinstance(other, SparsePlusLowRank):
            return NotImplemented
        self._same_pattern(other)
        low = self.low + other.low
        if other.values is self.values:
            return self._same_values(low, self.scale + other.scale)
        if other.scale == -self.scale:  # a difference: allocate one new array, not two
            total = SparsePlusLowRank(self.pattern, self.values - other.values, low, self.scale)
        else:
            total = SparsePlusLowRank(self.pattern, self.sparse_values() + other.sparse_values(), low)
        if np.float32 in (self.values.dtype, other.values.dtype):  # factor 2: sparse_values() rounds once more
            rounding = 2 * (self.rounding + other.rounding) + total.rounding
            total.noise = rounding / abs(total.scale) if total.scale else 0.0
        return total

    def sparse_values(self) -> np.ndarray:
        """Return the values of the entries of the matrix scale S."""
        return self.values if self.scale == 1.0 else self.scale * self.values

    def inner(self, other: Any) -> float:
        self.same_shape(other)
        if isinstance(other, np.ndarray):
            return float(np.vdot(self.to_dense(), other))
        if other is self:
            return self._norm2()
        if isinstance(other, LowRank):
            return self.scale * sum(c * self._sparse_inner(f) for c, f in other.terms) + self.low.inner(other)
        self._same_pattern(other)
        return sum(self._parts(other))

    def _parts(self, other: SparsePlusLowRank) -> tuple[float, float, float]:
        """Return the sparse, mixed and low-rank parts of <self, other>, without a temporary array as long as ``values``."""
        sparse = self.scale * other.scale * kernels.dot(self.values, other.values)
        mixed = self.scale * sum(c * self._sparse_inner(f) for c, f in other.low.terms)
        mixed += other.scale * sum(c * other._sparse_inner(f) for c, f in self.low.terms)
        return sparse, mixed, self.low.inner(other.low)

    def _norm2(self) -> float:
        """Return |self|^2.

        If the three parts of the inner product nearly cancel, |self|^2 is computed as a sum of squares instead: of the entries of
        scale S + X on the pattern, and of the entries of X off the pattern.
        """
        parts = self._parts(self)
        if sum(parts) > CANCELLATION_RATIO * max(parts):
            return sum(parts)
        if self.values.dtype == np.float32:
            return self._norm2_in_pieces()
        on = self.low.at(self.pattern)
        both = self.sparse_values() + on
        return kernels.dot(both, both) + max(self.low.inner(self.low) - kernels.dot(on, on), 0.0)

    def _norm2_in_pieces(self) -> float:
        """Return |self|^2 as a sum of squares for float32 values. The squares are computed in float64, piece by piece."""
        squares = on_pattern = 0.0
        for entries, on in self.pattern.pieces(*self.low.factors()):
            both = on + self.scale * self.values[entries].astype(float)
            squares, on_pattern = squares + kernels.dot(both, both), on_pattern + kernels.dot(on, on)
        return squares + max(self.low.inner(self.low) - on_pattern, 0.0)

    def distance2(self, other: Any) -> float:
        """Return |self - other|^2. If the low-rank parts are equal, no temporary array as long as ``values`` is needed."""
        if not isinstance(other, SparsePlusLowRank) or (self.low - other.low).terms:
            return super().distance2(other)
        self._same_pattern(other)
        return kernels.distance2(self.scale, self.values, other.scale, other.values)

    def _same_pattern(self, other: SparsePlusLowRank) -> None:
        if other.pattern is not self.pattern:
            raise ValueError("The two sparse matrices have different observations: build both from one objective.")

    def cache_product(self, x: LowRank, product: float) -> None:
        """Cache the inner product <S, x>, given as ``product``. If x is a linear combination of several terms, nothing is
        cached."""
        if len(x.terms) == 1 and x.terms[0][0] == 1.0:
            active().numbers.put(self.values, x.terms[0][1], product)

    def _sparse_inner(self, factors: Factors) -> float:
        """Return <S, U V'>. The number is cached, because a step needs it again.

        The number is computed from the entries of U V' on the pattern, which are then cached too. In two cases it is computed as
        <U, S V> instead. First, on a float32 pattern, because the entries would be rounded. Second, if the entries are not cached
        yet, and U has one column or the pattern has more than MANY_ENTRIES entries.
        """
        found = active().numbers.get(self.values, factors)
        if found is None:
            narrow = factors.U.shape[1] == 1 or self.pattern.size > MANY_ENTRIES
            if (narrow and not factors.has_cached(self.pattern)) or self.pattern.dtype == np.float32:
                found = float(np.vdot(wide(factors.U), self.pattern.times(self.values, wide(factors.V))))
            else:
                found = kernels.dot(self.values, factors.at(self.pattern))
            active().numbers.put(self.values, factors, found)
        return found

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        block, vector = matrix_of(W)
        out = self.pattern.times(self.values, block)
        if self.scale != 1.0:
            out *= self.scale
        if self.low.terms:
            out += self.low @ block
        return with_type(self.values.dtype, W, out[:, 0] if vector else out)

    @property
    def T(self) -> Transposed:
        return Transposed(self)

    def transposed_times(self, Q: np.ndarray) -> np.ndarray:
        """Return D' Q for a vector or a block Q."""
        block, vector = matrix_of(Q)
        out = self.pattern.transposed_times(self.values, block)
        if self.scale != 1.0:
            out *= self.scale
        if self.low.terms:
            U, V = map(wide, self.low.factors())
            out += V @ (U.T @ block)
        return with_type(self.values.dtype, Q, out[:, 0] if vector else out)

    def low_rank_part(self) -> LowRank:
        return self.low

    def to_dense(self) -> np.ndarray:
        values = self.sparse_values() if self.values.dtype != np.float32 else self.scale * self.values.astype(float)
        return self.pattern.to_dense(values) + self.low.to_dense()

    def __repr__(self) -> str:
        m, n = self.shape
        return f"SparsePlusLowRank({m} x {n}, {self.pattern.size} entries + rank at most {self.low.rank})"


class Transposed:
    """The transpose of a linear operator that has a method ``transposed_times``. It supports only the product ``@``."""

    def __init__(self, operator: Any):
        self.operator, self.shape = operator, operator.shape[::-1]

    def __matmul__(self, Q: np.ndarray) -> np.ndarray:
        return self.operator.transposed_times(Q)


def matrix_of(W: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return W as a C-contiguous matrix of float64, and whether W is a vector."""
    W = np.asarray(W, dtype=float)
    return np.ascontiguousarray(W if W.ndim == 2 else W[:, None]), W.ndim == 1


def with_type(dtype: np.dtype[Any], block: Any, product: np.ndarray) -> np.ndarray:
    """Round a product to float32 if both factors are float32: the operator, whose type is ``dtype``, and the block."""
    single = dtype == np.float32 == getattr(block, "dtype", None)
    return product.astype(np.float32) if single else product
