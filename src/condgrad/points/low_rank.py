"""The class `LowRank`: a low-rank matrix U V', stored as the factors U and V."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad import kernels
from condgrad.checks import read_only, real, whole
from condgrad.linalg.qr import qr
from condgrad.points.base import Structured
from condgrad.points.pattern import Pattern
from condgrad.runtime.cache import active, in_run
from condgrad.storage.stored import check_array, stored

MAX_TERMS = 16
"""Maximum number of products U V' in a linear combination. A combination of more products is merged into one product."""

CANCELLATION_RATIO = 1e-6
"""If a squared norm is below this share of its largest term, it has lost digits by cancellation. It is then computed again by a
formula without cancellation. A small difference of large points thus keeps its digits, and no squared norm is negative."""


def _validate_factors(factors: Factors) -> None:
    check_array(factors.U, factors.U.shape[:2], "U")
    check_array(factors.V, (len(factors.V), factors.U.shape[1]), "V")
    if factors.U.dtype != factors.V.dtype or factors.U.dtype not in (np.float32, np.float64):
        raise ValueError("two factors of float32 or of float64 were expected")
    whole(factors.base, "base", least=0)


@stored(fields=("U", "V", "base"), validate=_validate_factors)
class Factors:
    """Immutable product U V'. Its norm, distances and entries are cached in the cache of the run (``runtime.cache.active()``)."""

    __slots__ = ("U", "V", "__weakref__", "base")

    def __init__(self, U: np.ndarray, V: np.ndarray, base: int | None = None):
        self.U, self.V = read_only(np.ascontiguousarray(U)), read_only(np.ascontiguousarray(V))
        self.base = U.shape[1] if base is None else base
        """Number of columns of U and V after the last compression."""

    def inner(self, other: Factors) -> float:
        """Return <self, other>."""
        if other is not self:
            return float(np.vdot(wide(self.U).T @ wide(other.U), wide(self.V).T @ wide(other.V)))
        known = active().numbers
        found = known.get(self, self)
        if found is None:
            U, V = wide(self.U), wide(self.V)
            parts = (U.T @ U) * (V.T @ V)
            found = float(parts.sum())
            if parts.size and found < CANCELLATION_RATIO * parts.max():
                found = float(np.sum(svd(self.U, self.V)[1] ** 2))
            known.put(self, self, found)
        return found

    def distance2(self, other: Factors) -> float:
        """Return |self - other|^2. The number is cached, because the length of a step is needed more than once."""
        known = active().numbers
        found = known.get(self, other)
        if found is None:
            parts = self.inner(self), other.inner(other)
            found = sum(parts) - 2 * self.inner(other)
            if found < CANCELLATION_RATIO * max(parts):
                found = small_distance2(wide(self.U), wide(self.V), wide(other.U), wide(other.V))
            known.put(self, other, found)
            known.put(other, self, found)
        return found

    def at(self, pattern: Pattern, known: np.ndarray | None = None) -> np.ndarray:
        """Return the entries of U V' on the pattern. If the cache does not have them, they are computed and cached.

        ``known`` has these entries if the caller has computed them already.
        """
        recent = active().values(pattern)
        values = recent.use(self)
        if values is None:
            recent.make_room(pattern.max_cached)
            values = recent[self] = read_only(pattern.sample(self.U, self.V)) if known is None else known
        return values

    def has_cached(self, pattern: Pattern) -> bool:
        """Return whether the values on this pattern are cached."""
        return self in active().values(pattern)

    def __reduce__(self) -> Any:
        """Make pickle and copy call the constructor, so that the arrays of the new object are read-only too."""
        return Factors, (self.U, self.V, self.base)


def _validate_low_rank(x: LowRank) -> None:
    for coefficient, factors in x.terms:
        if not isinstance(factors, Factors) or (len(factors.U), len(factors.V)) != x.shape:
            raise ValueError(f"factors of another shape than {x.shape}")
        real(coefficient, "The coefficient of a term")


@stored(fields=("terms", "shape"), validate=_validate_low_rank)
class LowRank(Structured):
    """Low-rank matrix X = U V', or a linear combination of a few such products (its terms).

    If U and V are both float32, they stay float32; otherwise both become float64. Products, norms and compressed sums are always
    computed in float64, so that only U and V themselves are rounded to float32.

    Inner products and norms take O((m + n) r^2) operations, and entries on a pattern take O(entries r). The inner products, norms
    and entries of a linear combination are sums over its terms. A combination of many terms is merged into one product. Its
    factors are compressed (by QR and a small SVD) if they have more than 32 columns each, and more than twice as many as after
    the last compression.

    Parameters
    ----------
    U : array_like of float, shape (m, r)
        Left factor.
    V : array_like of float, shape (n, r)
        Right factor.

    Raises
    ------
    ValueError
        If U and V are not matrices with the same number of columns.

    Examples
    --------
    >>> x = LowRank(np.ones((3, 1)), np.ones((4, 1)))
    >>> (x - 0.5 * x).inner(x), np.asarray(x + x)[0, 0]
    (6.0, np.float64(2.0))
    """

    shape: tuple[int, int]
    _whole: tuple[np.ndarray, np.ndarray] | None = None

    def __init__(self, U: Any, V: Any):
        U, V = np.asarray(U), np.asarray(V)
        dtype = np.float32 if U.dtype == V.dtype == np.float32 else float
        U, V = np.array(U, dtype=dtype, order="C"), np.array(V, dtype=dtype, order="C")
        if U.ndim != 2 or V.ndim != 2 or U.shape[1] != V.shape[1]:
            raise ValueError(f"LowRank needs U of m x r and V of n x r, but got shapes {U.shape} and {V.shape}.")
        self._set_terms(((1.0, Factors(U, V)),), (U.shape[0], V.shape[0]))

    def _set_terms(self, terms: tuple[tuple[float, Factors], ...], shape: tuple[int, int]) -> None:
        self.terms, self.shape, self._whole = terms, shape, None

    def __getstate__(self) -> tuple[Any, ...]:
        return self.terms, self.shape

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._set_terms(*state)

    def uncached(self) -> LowRank:
        """Copy of the matrix. A run may merge the terms of the copy in place without changing this object."""
        return LowRank._of(self.terms, self.shape)

    @classmethod
    def _of(cls, terms: tuple[tuple[float, Factors], ...], shape: tuple[int, int]) -> LowRank:
        made = cls.__new__(cls)
        made._set_terms(terms, shape)
        return made

    @classmethod
    def of_factors(cls, U: np.ndarray, V: np.ndarray) -> LowRank:
        """Make a LowRank without copying U and V. They become read-only, so that no other code can write to them."""
        return cls._of(((1.0, Factors(U, V)),), (len(U), len(V)))

    @classmethod
    def zeros(cls, shape: tuple[int, int]) -> LowRank:
        """Return the zero matrix."""
        return cls._of((), shape)

    @property
    def rank(self) -> int:
        """Number of columns of the factors, an upper bound on the rank."""
        return sum(factors.U.shape[1] for _, factors in self.terms)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 if there are factors and all of them are float32, else float64."""
        return np.result_type(*(f.U.dtype for _, f in self.terms)) if self.terms else np.dtype(float)

    @property
    def T(self) -> LowRank:
        """The transpose."""
        return LowRank._of(tuple((c, Factors(f.V, f.U, f.base)) for c, f in self.terms), self.shape[::-1])

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return U and V with X = U V'."""
        whole, terms = self._whole, self.terms  # read once: another thread may merge the terms
        if whole is None:
            if not terms:
                m, n = self.shape
                whole = np.zeros((m, 0)), np.zeros((n, 0))
            elif len(terms) == 1 and terms[0][0] == 1.0:
                whole = terms[0][1].U, terms[0][1].V
            else:
                U = np.concatenate([c * wide(f.U) for c, f in terms], axis=1)
                V = np.concatenate([f.V for _, f in terms], axis=1)
                whole = read_only(U), read_only(V)
            self._whole = whole
        return whole

    def merged_factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return U and V with X = U V'.

        In a run, the terms are first merged into one, because a gradient caches its inner product with X only if X is one term
        (see :meth:`SparsePlusLowRank.cache_product`).
        """
        if self._should_merge():
            self._merge_terms()
        return self.factors()

    def svd(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the SVD, truncated to the numerical rank: left singular vectors, singular values, right singular vectors."""
        return svd(*self.factors())

    def compressed(self) -> LowRank:
        """Return the same matrix as one product U V' with orthogonal columns. Their number is the numerical rank."""
        left, sigma, right = self.svd()
        return LowRank(left * sigma, right)

    def scaled(self, factor: float) -> LowRank:
        return LowRank._of(tuple((factor * c, f) for c, f in self.terms), self.shape)

    def plus(self, other: Structured) -> Any:
        if not isinstance(other, LowRank):
            return other.plus(self)
        self.same_shape(other)
        coefficients = {id(f): (c, f) for c, f in self.terms}
        for c, f in other.terms:
            known = coefficients.get(id(f))
            coefficients[id(f)] = (c if known is None else c + known[0], f)
        total = LowRank._of(tuple((c, f) for c, f in coefficients.values() if c != 0.0), self.shape)
        if len(total.terms) > MAX_TERMS:
            total._merge_terms()
        return total

    def _should_merge(self) -> bool:
        """Whether the terms should be merged in place.

        Terms are merged only during a run, because no other thread uses the points of a run. Outside of a run, another thread may
        use the point at the same time.
        """
        return in_run() and (len(self.terms) > 1 or (bool(self.terms) and self.terms[0][0] != 1.0))

    def _merge_terms(self) -> Factors:
        """Rewrite the matrix as one term, in place.

        The factors are compressed if they have more than 32 columns each, and if this number has more than doubled since the last
        compression.
        """
        base = max([16, *(f.base for _, f in self.terms)])
        if self.rank > 2 * base:
            left, sigma, right = self.svd()
            factors = Factors(left * sigma, right)
        else:
            factors = Factors(*self.factors(), base)
            known = active().numbers
            if all(known.get(f, f) is not None for _, f in self.terms):
                known.put(factors, factors, self.inner(self))
        self._set_terms(((1.0, factors),), self.shape)
        return factors

    def cached_at(self, pattern: Pattern) -> np.ndarray:
        """Return the entries on the pattern. During a run they are cached, and reused for points computed from this point.

        Entries on a float32 pattern are not cached, because the rounding errors of reused entries would add up.
        """
        values = self.at(pattern)
        if pattern.dtype != np.float32 and self._should_merge():
            self._merge_terms().at(pattern, known=values)
        return values

    def at(self, pattern: Pattern) -> np.ndarray:
        """Return the entries on the pattern. Cached entries of the terms are reused."""
        self.same_shape(pattern)
        terms = self.terms
        if not terms:
            return read_only(np.zeros(pattern.size, pattern.dtype))
        if pattern.dtype == np.float32:
            return read_only(pattern.sample(*self.factors()))
        c, first = terms[0]
        total = first.at(pattern)
        if len(terms) > 1 or c != 1.0:
            total = c * total
        for c, f in terms[1:]:
            kernels.add(total, c, f.at(pattern))
        return read_only(total)

    def at_entries(self, pattern: Pattern, entries: np.ndarray) -> np.ndarray:
        """Return the values of the matrix at the positions of the pattern that have the indices ``entries``.

        The cost is proportional to len(entries).
        """
        self.same_shape(pattern)
        total = np.zeros(len(entries))
        for c, f in self.terms:
            total += c * (f.at(pattern)[entries] if f.has_cached(pattern) else pattern.sample_at(entries, f.U, f.V))
        return total

    def inner(self, other: Any) -> float:
        self.same_shape(other)
        if isinstance(other, np.ndarray):
            U, V = self.factors()
            return float(np.vdot(wide(U), other @ wide(V)))
        if not isinstance(other, LowRank):
            return other.inner(self)
        terms = self.terms
        if other is self and len(terms) == 2 and terms[0][0] == -terms[1][0]:
            (c, f), (_, g) = terms
            return c**2 * f.distance2(g)
        parts = [c * d * f.inner(g) for c, f in terms for d, g in (terms if other is self else other.terms)]
        total = sum(parts, 0.0)
        if other is self and len(parts) > 1 and total < CANCELLATION_RATIO * max(parts):
            return float(np.sum(self.svd()[1] ** 2))
        return total

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        U, V = self.factors()
        return wide(U) @ (wide(V).T @ wide(W))

    def low_rank_part(self) -> LowRank:
        return self

    def to_dense(self) -> np.ndarray:
        U, V = self.factors()
        return wide(U) @ wide(V).T

    def __repr__(self) -> str:
        return f"LowRank({self.shape[0]} x {self.shape[1]}, rank at most {self.rank})"


def wide(block: np.ndarray) -> np.ndarray:
    """Convert a float32 array to float64. Other arrays are returned unchanged."""
    return block.astype(float) if block.dtype == np.float32 else block


def small_distance2(U: np.ndarray, V: np.ndarray, P: np.ndarray, Q: np.ndarray) -> float:
    """Return |U V' - P Q'|^2 for products that nearly cancel.

    Let T minimise |P T - U|. The difference is (U - P T) V' + P (V T' - Q)'. Both summands are small, and nearly orthogonal. The
    sum of their squared norms and of twice their inner product therefore loses no digits.
    """
    T = np.linalg.pinv(P.T @ P, hermitian=True) @ (P.T @ U)
    A, B = U - P @ T, V @ T.T - Q
    squares = np.vdot(A.T @ A, V.T @ V) + np.vdot(P.T @ P, B.T @ B) + 2 * np.vdot(A.T @ P, V.T @ B)
    return max(float(squares), 0.0)


def svd(U: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the SVD of U V', truncated to the numerical rank: left singular vectors, singular values, right singular vectors."""
    (left, R), (right, S) = qr(wide(U)), qr(wide(V))
    P, sigma, Ot = np.linalg.svd(R @ S.T)
    k = int(np.sum(sigma > 1e-15 * max(len(U), len(V)) * sigma[0])) if sigma.size else 0
    return left @ P[:, :k], sigma[:k], right @ Ot[:k].T


def outer(U: np.ndarray, V: np.ndarray, like: Any) -> Any:
    """Return U V' as a LowRank if ``like`` is structured, else as an array."""
    return LowRank.of_factors(U, V) if isinstance(like, Structured) else U @ V.T
