"""Directions: a sparse matrix plus one of low rank, as a linear operator."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from condgrad import kernels
from condgrad.checks import read_only, real
from condgrad.points.base import Structured
from condgrad.points.low_rank import CANCELLED, Factors, LowRank
from condgrad.points.pattern import Pattern
from condgrad.storage.stored import check_array, stored


def _validate(x: SparsePlusLowRank) -> None:
    if (
        not isinstance(x.pattern, Pattern)
        or not isinstance(x.low, LowRank)
        or not x.pattern.shape == x.low.shape == x.shape
    ):
        raise ValueError("a pattern and a low-rank part of the same shape were expected")
    check_array(x.values, (x.pattern.size,), "values")
    real(x.scale, "scale")
    if not all(isinstance(product, float) for product in x.met.values()):
        raise TypeError("products that are no numbers")


@stored(fields=("pattern", "values", "low", "scale", "shape", "met"), validate=_validate)
class SparsePlusLowRank(Structured):
    """scale S + X, for S with ``values`` on the pattern and X of low rank: a gradient, or a point minus a step along one.

    ``D @ W`` and ``D.T @ Q`` read the entries once for all columns of the block.
    """

    def __init__(
        self,
        pattern: Pattern,
        values: np.ndarray,
        low: LowRank | None = None,
        scale: float = 1.0,
        met: WeakKeyDictionary[Factors, float] | None = None,
    ):
        values = np.asarray(values, dtype=float)
        if values.shape != (pattern.size,):
            raise ValueError(
                f"Values of shape {values.shape} met a pattern of {pattern.size} entries: give one value for each entry."
            )
        self.pattern, self.scale, self.shape = pattern, scale, pattern.shape
        self.values: np.ndarray = read_only(values) if values.flags.writeable else values
        self.low = LowRank.zeros(pattern.shape) if low is None else low
        self.met: WeakKeyDictionary[Factors, float] = WeakKeyDictionary() if met is None else met
        """<S, U V'> of factors that it met: a step asks for the same ones again, when their sampled values have gone."""
        self.same_shape(self.low)

    def __reduce__(self) -> Any:
        """For pickle and copy: without the products in ``met``."""
        return SparsePlusLowRank, (self.pattern, self.values, self.low, self.scale)

    def scaled(self, factor: float) -> SparsePlusLowRank:
        return SparsePlusLowRank(self.pattern, self.values, self.low.scaled(factor), factor * self.scale, self.met)

    def plus(self, other: Structured) -> Any:
        self.same_shape(other)
        if isinstance(other, LowRank):
            return SparsePlusLowRank(self.pattern, self.values, self.low + other, self.scale, self.met)
        if not isinstance(other, SparsePlusLowRank):
            return NotImplemented
        self._same_pattern(other)
        low = self.low + other.low
        if other.values is self.values:
            return SparsePlusLowRank(self.pattern, self.values, low, self.scale + other.scale, self.met)
        if other.scale == -self.scale:  # a difference: one new array, not two
            return SparsePlusLowRank(self.pattern, self.values - other.values, low, self.scale)
        return SparsePlusLowRank(self.pattern, self.sparse_values() + other.sparse_values(), low)

    def sparse_values(self) -> np.ndarray:
        return self.values if self.scale == 1.0 else self.scale * self.values

    def inner(self, other: Any) -> float:
        self.same_shape(other)
        if isinstance(other, np.ndarray):
            return float(np.vdot(self.to_dense(), other))
        if other is self:
            return self._norm2()
        if isinstance(other, LowRank):
            return self.scale * sum(c * self._with(f) for c, f in other.terms) + self.low.inner(other)
        self._same_pattern(other)
        return sum(self._parts(other))

    def _parts(self, other: SparsePlusLowRank) -> tuple[float, float, float]:
        """Of <self, other>: sparse with sparse, sparse with low rank, low rank with low rank. No array as long as the values."""
        sparse = self.scale * other.scale * kernels.dot(self.values, other.values)
        mixed = self.scale * sum(c * self._with(f) for c, f in other.low.terms)
        mixed += other.scale * sum(c * other._with(f) for c, f in self.low.terms)
        return sparse, mixed, self.low.inner(other.low)

    def _norm2(self) -> float:
        """Where the parts cancel: the squares on the pattern, where both meet, and those of the low-rank part elsewhere."""
        parts = self._parts(self)
        if sum(parts) > CANCELLED * max(parts):
            return sum(parts)
        on = self.low.at(self.pattern)
        both = self.sparse_values() + on
        return kernels.dot(both, both) + max(self.low.inner(self.low) - kernels.dot(on, on), 0.0)

    def distance2(self, other: Structured) -> float:
        """Where both are sparse alone, without an array as long as the values."""
        if not isinstance(other, SparsePlusLowRank) or (self.low - other.low).terms:
            return super().distance2(other)
        self._same_pattern(other)
        return kernels.distance2(self.scale, self.values, other.scale, other.values)

    def _same_pattern(self, other: SparsePlusLowRank) -> None:
        if other.pattern is not self.pattern:
            raise ValueError("Two sparse directions on different observations met: build both from one objective.")

    def _with(self, factors: Factors) -> float:
        """<S, U V'>: from sampled values that are carried or will be, for rank one from a product, which keeps nothing."""
        found = self.met.get(factors)
        if found is None:
            if factors.U.shape[1] == 1 and not factors.carries(self.pattern):
                found = float(np.vdot(factors.U, self.pattern.times(self.values, factors.V)))
            else:
                found = kernels.dot(self.values, factors.at(self.pattern))
            self.met[factors] = found
        return found

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        block, vector = _block(W)
        out = self.pattern.times(self.values, block)
        if self.scale != 1.0:
            out *= self.scale
        if self.low.terms:
            out += self.low @ block
        return out[:, 0] if vector else out

    @property
    def T(self) -> _Transposed:
        return _Transposed(self)

    def transposed_times(self, Q: np.ndarray) -> np.ndarray:
        block, vector = _block(Q)
        out = self.pattern.transposed_times(self.values, block)
        if self.scale != 1.0:
            out *= self.scale
        if self.low.terms:
            U, V = self.low.factors()
            out += V @ (U.T @ block)
        return out[:, 0] if vector else out

    def low_rank_part(self) -> LowRank:
        return self.low

    def to_dense(self) -> np.ndarray:
        return self.pattern.to_dense(self.sparse_values()) + self.low.to_dense()

    def __repr__(self) -> str:
        m, n = self.shape
        return f"SparsePlusLowRank({m} x {n}, {self.pattern.size} entries + rank at most {self.low.rank})"


class _Transposed:
    """The transpose of an operator, for products only."""

    def __init__(self, operator: SparsePlusLowRank):
        self.operator, self.shape = operator, operator.shape[::-1]

    def __matmul__(self, Q: np.ndarray) -> np.ndarray:
        return self.operator.transposed_times(Q)


def _block(W: np.ndarray) -> tuple[np.ndarray, bool]:
    W = np.asarray(W, dtype=float)
    return np.ascontiguousarray(W if W.ndim == 2 else W[:, None]), W.ndim == 1
