"""Gradients of a sharded objective, and points minus a step along one: linear operators whose values stay on the workers."""

from __future__ import annotations

from math import fsum, sqrt
from typing import Any

import numpy as np

from condgrad.checks import not_negative, real
from condgrad.distributed import shards
from condgrad.distributed.cluster import Future
from condgrad.distributed.held import DerivedShards
from condgrad.distributed.pattern import ShardedPattern
from condgrad.points.base import Structured
from condgrad.points.low_rank import CANCELLATION_RATIO, Factors, LowRank, wide
from condgrad.points.sparse_plus_low_rank import FLOAT32_ROUNDOFF, Transposed, matrix_of, with_type
from condgrad.runtime.cache import active
from condgrad.storage.stored import stored


def _validate_slopes(slopes: ShardedSlopes) -> None:
    if not isinstance(slopes.pattern, ShardedPattern) or not isinstance(slopes.factors, Factors):
        raise ValueError("a sharded pattern and factors were expected")
    if (len(slopes.factors.U), len(slopes.factors.V)) != slopes.pattern.shape:
        raise ValueError(f"factors of another shape than {slopes.pattern.shape}")
    real(slopes.value, "value")
    real(slopes.product, "product")
    not_negative(slopes.norm2, "norm2")


@stored(fields=("pattern", "factors", "value", "product", "norm2"), validate=_validate_slopes)
class ShardedSlopes:
    """The derivatives of all losses at a point, on the workers. They free them when this object is gone.

    It keeps the factors of the point, from which slopes that are lost with a worker are computed again: to the same bits, since
    those of a shard depend on the shard and the factors only. A checkpoint holds the factors and no slopes.

    Parameters
    ----------
    pattern : ShardedPattern
    factors : Factors
        The point.
    """

    pattern: ShardedPattern
    factors: Factors
    value: float
    """Sum of all losses."""
    product: float
    """Inner product of the slopes and the point."""
    norm2: float
    _held: DerivedShards | None = None

    def __init__(self, pattern: ShardedPattern, factors: Factors):
        self.pattern, self.factors = pattern, factors
        cluster = pattern.cluster
        found = cluster.results(lambda: cluster.map(shards.numbers_of, self.futures(), workers=pattern.held.owners))
        self.value, self.product, self.norm2 = (fsum(numbers) for numbers in zip(*found, strict=True))

    def futures(self) -> list[Future]:
        """Return the slopes of each shard; those that are lost are computed again."""
        if self._held is None:
            pattern, U = self.pattern, self.factors.U
            self._held = pattern.derived(shards.evaluate, lambda: [pattern.rows(U)], [self.factors.V], (pattern.loss,))
        return self._held.futures()

    def inner(self, other: ShardedSlopes) -> float:
        """Return the sum of the products of two slopes."""
        if other is self:
            return self.norm2
        known = active().numbers
        found = known.get(self, other)
        if found is None:
            found = fsum(self.pattern.each(shards.dot, held=lambda: [self.futures(), other.futures()]))
            known.put(self, other, found)
            known.put(other, self, found)
        return found

    def inner_product(self, factors: Factors) -> float:
        """Return <S, U V'> for the sparse matrix S of the slopes."""
        if factors is self.factors:
            return self.product
        known = active().numbers
        found = known.get(self, factors)
        if found is None:
            parts = self.pattern.each(
                shards.product, by_rows=[factors.U], common=[factors.V], held=lambda: [self.futures()]
            )
            found = fsum(parts)
            known.put(self, factors, found)
        return found


def _validate_direction(x: ShardedDirection) -> None:
    if not isinstance(x.pattern, ShardedPattern) or not isinstance(x.low, LowRank):
        raise ValueError("a sharded pattern and a low-rank part were expected")
    if not x.pattern.shape == x.low.shape == x.shape:
        raise ValueError("a pattern and a low-rank part of the same shape were expected")
    for coefficient, slopes in x.terms:
        if not isinstance(slopes, ShardedSlopes) or slopes.pattern is not x.pattern:
            raise ValueError("slopes of another pattern")
        real(coefficient, "The coefficient of a term")


@stored(fields=("pattern", "terms", "low", "shape"), validate=_validate_direction)
class ShardedDirection(Structured):
    """The matrix c_1 S_1 + ... + X with sparse S on the workers and X of low rank here.

    ``D @ W`` takes each row from the one shard that has it; ``D.T @ Q`` is added up by the workers in an order that depends on
    the number of shards alone. So the bits depend neither on the number of workers nor on which worker has computed what.

    Parameters
    ----------
    pattern : ShardedPattern
        Positions of the entries of S.
    terms : tuple of (float, ShardedSlopes)
        Coefficients and values of the sparse matrices.
    low : LowRank, default None
        The matrix X; None: 0.
    """

    shape: tuple[int, int]

    def __init__(
        self, pattern: ShardedPattern, terms: tuple[tuple[float, ShardedSlopes], ...], low: LowRank | None = None
    ):
        self.pattern, self.terms, self.shape = pattern, terms, pattern.shape
        self.low = LowRank.zeros(pattern.shape) if low is None else low
        self.same_shape(self.low)

    @property
    def rounding(self) -> float:
        """Bound on the norm of the errors by which rounding to float32 changed the slopes; 0 for slopes of float64."""
        if self.pattern.dtype != np.float32:
            return 0.0
        return FLOAT32_ROUNDOFF * sum(abs(c) * sqrt(slopes.norm2) for c, slopes in self.terms)

    def scaled(self, factor: float) -> ShardedDirection:
        terms = tuple((factor * c, slopes) for c, slopes in self.terms)
        return ShardedDirection(self.pattern, terms, self.low.scaled(factor))

    def plus(self, other: Structured) -> Any:
        self.same_shape(other)
        if isinstance(other, LowRank):
            return ShardedDirection(self.pattern, self.terms, self.low + other)
        if not isinstance(other, ShardedDirection):
            return NotImplemented
        self._same_pattern(other)
        terms = {id(slopes): (c, slopes) for c, slopes in self.terms}
        for c, slopes in other.terms:
            terms[id(slopes)] = (c + terms.get(id(slopes), (0.0,))[0], slopes)
        left = tuple((c, slopes) for c, slopes in terms.values() if c != 0.0)
        return ShardedDirection(self.pattern, left, self.low + other.low)

    def _same_pattern(self, other: ShardedDirection) -> None:
        if other.pattern is not self.pattern:
            raise ValueError("The two sharded matrices have different observations: build both from one objective.")

    def inner(self, other: Any) -> float:
        self.same_shape(other)
        if isinstance(other, np.ndarray):
            return float(np.vdot(self.to_dense(), other))
        if other is self:
            return self._norm2()
        if isinstance(other, LowRank):
            return self._mixed(other) + self.low.inner(other)
        if not isinstance(other, ShardedDirection):
            return float(other.inner(self))
        self._same_pattern(other)
        sparse = sum(c * d * s.inner(t) for c, s in self.terms for d, t in other.terms)
        return sparse + self._mixed(other.low) + other._mixed(self.low) + self.low.inner(other.low)

    def _mixed(self, low: LowRank) -> float:
        """Return the inner product of the sparse part and a low-rank matrix."""
        return sum(c * d * slopes.inner_product(f) for c, slopes in self.terms for d, f in low.terms)

    def _norm2(self) -> float:
        """Return |self|^2. If its parts cancel, add the squares on the entries and those of the low-rank part elsewhere."""
        if len(self.terms) > 1:
            return self._norm2_by_entries()
        sparse = sum(c**2 * slopes.norm2 for c, slopes in self.terms)
        parts = sparse, 2 * self._mixed(self.low), self.low.inner(self.low)
        return sum(parts) if sum(parts) > CANCELLATION_RATIO * max(parts) else self._norm2_by_entries()

    def _norm2_by_entries(self) -> float:
        if not self.terms:
            return self.low.inner(self.low)
        U, V = self.low.factors()
        found = self._each(shards.squares, by_rows=[U], common=[V])
        both, on_entries = (fsum(numbers) for numbers in zip(*found, strict=True))
        return both + max(self.low.inner(self.low) - on_entries, 0.0)

    def _each(self, function: Any, by_rows: Any = (), common: Any = ()) -> list[Any]:
        """Return a function of each shard and its values."""
        return self.pattern.each(function, common=common, by_rows=by_rows, **self._values())

    def _values(self) -> dict[str, Any]:
        """Return the arguments of a function of each shard that stand for the sparse part."""
        coefficients = tuple(c for c, _ in self.terms)
        return {"last": (coefficients,), "held": lambda: [slopes.futures() for _, slopes in self.terms]}

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        block, vector = matrix_of(W)
        out = self.low @ block if self.low.terms else np.zeros((self.shape[0], block.shape[1]))
        if self.terms:
            for about, rows in zip(self.pattern.summaries, self._each(shards.times, common=[block]), strict=True):
                out[about.first : about.stop] += rows
        return with_type(self.pattern.dtype, W, out[:, 0] if vector else out)

    @property
    def T(self) -> Transposed:
        return Transposed(self)

    def transposed_times(self, Q: np.ndarray) -> np.ndarray:
        """Return D' Q for a vector or a block Q."""
        block, vector = matrix_of(Q)
        out = np.zeros((self.shape[1], block.shape[1]))
        if self.terms:
            out += self.pattern.total(shards.transposed_times, by_rows=[block], **self._values())
        if self.low.terms:
            U, V = map(wide, self.low.factors())
            out += V @ (U.T @ block)
        return with_type(self.pattern.dtype, Q, out[:, 0] if vector else out)

    def low_rank_part(self) -> LowRank:
        return self.low

    def to_dense(self) -> np.ndarray:
        out = self.low.to_dense()
        if self.terms:
            for about, rows in zip(self.pattern.summaries, self._each(shards.dense), strict=True):
                out[about.first : about.stop] += rows
        return out

    def __repr__(self) -> str:
        m, n = self.shape
        return (
            f"ShardedDirection({m} x {n}, {self.pattern.size} entries in {self.pattern.n_shards} shards "
            f"+ rank at most {self.low.rank})"
        )
