"""Matrices of low rank, kept as factors."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from condgrad import kernels
from condgrad.checks import read_only, real, whole
from condgrad.linalg.qr import qr
from condgrad.points.base import Structured
from condgrad.points.pattern import Pattern
from condgrad.storage.stored import check_array, stored

TERMS = 16
"""A combination of more factor pairs than this is written as one pair."""

CANCELLED = 1e-6
"""A squared norm that is so much smaller than what it is the sum of is computed anew, from singular values: a small difference
of large points keeps its digits, and no square is negative."""


def _validate_factors(factors: Factors) -> None:
    check_array(factors.U, factors.U.shape[:2], "U")
    check_array(factors.V, (len(factors.V), factors.U.shape[1]), "V")
    whole(factors.base, "base", least=0)
    if not all(isinstance(number, float | None) for number in (factors.norm2, *factors.apart.values())):
        raise TypeError("a norm or a distance is no number")
    if factors.seen is not None:
        pattern, values = factors.seen
        if not isinstance(pattern, Pattern) or values.shape != (pattern.size,) or values.dtype != float:
            raise ValueError("one float for each entry of the pattern was expected")


@stored(fields=("U", "V", "base", "norm2", "seen", "apart"), validate=_validate_factors)
class Factors:
    """U V', never changed: with its |.|^2 and its values on a pattern, once somebody has asked for them."""

    __slots__ = ("U", "V", "__weakref__", "apart", "base", "norm2", "seen")

    def __init__(self, U: np.ndarray, V: np.ndarray, base: int | None = None):
        self.U, self.V = read_only(np.ascontiguousarray(U)), read_only(np.ascontiguousarray(V))
        self.base = U.shape[1] if base is None else base
        """The rank when it was last compressed."""
        self.norm2: float | None = None
        self.seen: tuple[Pattern, np.ndarray] | None = None
        self.apart: WeakKeyDictionary[Factors, float] = WeakKeyDictionary()
        """How far others are, in squares: a step is measured more than once."""

    def inner(self, other: Factors) -> float:
        if other is self:
            found = self.norm2
            if found is None:
                parts = (self.U.T @ self.U) * (self.V.T @ self.V)
                found = float(parts.sum())
                if parts.size and found < CANCELLED * parts.max():
                    found = float(np.sum(svd(self.U, self.V)[1] ** 2))
                self.norm2 = found
            return found
        return float(np.vdot(self.U.T @ other.U, self.V.T @ other.V))

    def distance2(self, other: Factors) -> float:
        """|self - other|^2"""
        found = self.apart.get(other)
        if found is None:
            parts = self.inner(self), other.inner(other)
            found = sum(parts) - 2 * self.inner(other)
            if found < CANCELLED * max(parts):
                found = small_distance2(self.U, self.V, other.U, other.V)
            self.apart[other] = other.apart[self] = found
        return found

    def at(self, pattern: Pattern) -> np.ndarray:
        pattern.carry(self)
        seen = self.seen  # read once: another thread may drop it
        if seen is None or seen[0] is not pattern:
            self.seen = seen = (pattern, read_only(pattern.sample(self.U, self.V)))
        return seen[1]

    def carry(self, pattern: Pattern, values: np.ndarray) -> None:
        pattern.carry(self)
        self.seen = (pattern, values)

    def carries(self, pattern: Pattern) -> bool:
        """Whether the values on this pattern are there."""
        seen = self.seen
        return seen is not None and seen[0] is pattern

    def uncached(self) -> Factors:
        """The same factors, with nothing computed of them yet."""
        return Factors(self.U, self.V, self.base)

    def __reduce__(self) -> Any:
        """For pickle and copy: the factors and their norm; what was computed together with others stays behind."""
        return _factors, (self.U, self.V, self.base, self.norm2)


def _factors(U: np.ndarray, V: np.ndarray, base: int, norm2: float | None) -> Factors:
    made = Factors(U, V, base)
    made.norm2 = norm2
    return made


def _validate_low_rank(x: LowRank) -> None:
    for coefficient, factors in x.terms:
        if not isinstance(factors, Factors) or (len(factors.U), len(factors.V)) != x.shape:
            raise ValueError(f"factors of another shape than {x.shape}")
        real(coefficient, "The coefficient of a term")


@stored(fields=("terms", "shape"), validate=_validate_low_rank)
class LowRank(Structured):
    """X = U V' for U of m x r and V of n x r, or a combination of a few of these: sums cost nothing until they are used.

    Inner products and norms take O((m + n) r^2), values on a pattern O(entries r), and those of a combination are the
    combination of those. Sums of many terms are recompressed (QR and a small SVD) when their width has doubled.

    >>> x = LowRank(np.ones((3, 1)), np.ones((4, 1)))
    >>> (x - 0.5 * x).inner(x), np.asarray(x + x)[0, 0]
    (6.0, np.float64(2.0))
    """

    shape: tuple[int, int]
    _whole: tuple[np.ndarray, np.ndarray] | None = None

    def __init__(self, U: Any, V: Any):
        U, V = np.array(U, dtype=float, order="C"), np.array(V, dtype=float, order="C")
        if U.ndim != 2 or V.ndim != 2 or U.shape[1] != V.shape[1]:
            raise ValueError(f"LowRank needs U of m x r and V of n x r, but got shapes {U.shape} and {V.shape}.")
        self._hold(((1.0, Factors(U, V)),), (U.shape[0], V.shape[0]))

    def _hold(self, terms: tuple[tuple[float, Factors], ...], shape: tuple[int, int]) -> None:
        self.terms, self.shape, self._whole = terms, shape, None

    def __getstate__(self) -> tuple[Any, ...]:
        return self.terms, self.shape

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._hold(*state)

    def uncached(self) -> LowRank:
        """The same point, with nothing computed of it yet: what a run begins with, so that its bits depend on x0 alone."""
        return LowRank._of(tuple((c, f.uncached()) for c, f in self.terms), self.shape)

    @classmethod
    def _of(cls, terms: tuple[tuple[float, Factors], ...], shape: tuple[int, int]) -> LowRank:
        made = cls.__new__(cls)
        made._hold(terms, shape)
        return made

    @classmethod
    def of_factors(cls, U: np.ndarray, V: np.ndarray) -> LowRank:
        """The same as LowRank(U, V) for arrays that nobody else will change: they are not copied, but made read-only."""
        return cls._of(((1.0, Factors(U, V)),), (len(U), len(V)))

    @classmethod
    def zeros(cls, shape: tuple[int, int]) -> LowRank:
        return cls._of((), shape)

    @property
    def rank(self) -> int:
        """The width of the factors: the rank, or more."""
        return sum(factors.U.shape[1] for _, factors in self.terms)

    @property
    def T(self) -> LowRank:
        return LowRank._of(tuple((c, Factors(f.V, f.U, f.base)) for c, f in self.terms), self.shape[::-1])

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """U and V with X = U V'."""
        whole, terms = self._whole, self.terms  # read once: another thread may write the point as one term
        if whole is None:
            if not terms:
                m, n = self.shape
                whole = np.zeros((m, 0)), np.zeros((n, 0))
            elif len(terms) == 1 and terms[0][0] == 1.0:
                whole = terms[0][1].U, terms[0][1].V
            else:
                U = np.concatenate([c * f.U for c, f in terms], axis=1)
                V = np.concatenate([f.V for _, f in terms], axis=1)
                whole = read_only(U), read_only(V)
            self._whole = whole
        return whole

    def svd(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Left vectors, singular values (falling) and right vectors, those that are not zero up to rounding."""
        return svd(*self.factors())

    def compressed(self) -> LowRank:
        """The same matrix with as few columns as its rank, orthonormal but for a scale."""
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
        if len(total.terms) > TERMS:
            total._fold()
        return total

    def _fold(self) -> Factors:
        """The same matrix as one term, recompressed when it has grown to twice its rank."""
        base = max([16, *(f.base for _, f in self.terms)])
        if self.rank > 2 * base:
            left, sigma, right = self.svd()
            factors = Factors(left * sigma, right)
        else:
            factors = Factors(*self.factors(), base)
            if all(f.norm2 is not None for _, f in self.terms):
                factors.norm2 = self.inner(self)
        self._hold(((1.0, factors),), self.shape)
        return factors

    def carried_at(self, pattern: Pattern) -> np.ndarray:
        """The entries on the pattern, which from now on are carried along: of what is made from this point, too."""
        values, terms = self.at(pattern), self.terms
        if len(terms) > 1 or (terms and terms[0][0] != 1.0):
            self._fold().carry(pattern, values)
        return values

    def at(self, pattern: Pattern) -> np.ndarray:
        """The entries on the pattern; those that a term carries are not computed again."""
        self.same_shape(pattern)
        terms = self.terms
        if not terms:
            return read_only(np.zeros(pattern.size))
        c, first = terms[0]
        total = first.at(pattern)
        if len(terms) > 1 or c != 1.0:
            total = c * total
        for c, f in terms[1:]:
            kernels.add(total, c, f.at(pattern))
        return read_only(total)

    def at_entries(self, pattern: Pattern, entries: np.ndarray) -> np.ndarray:
        """The values at some entries of the pattern, at the price of these alone."""
        self.same_shape(pattern)
        total = np.zeros(len(entries))
        for c, f in self.terms:
            total += c * (f.at(pattern)[entries] if f.carries(pattern) else pattern.sample_at(entries, f.U, f.V))
        return total

    def inner(self, other: Any) -> float:
        self.same_shape(other)
        if isinstance(other, np.ndarray):
            U, V = self.factors()
            return float(np.vdot(U, other @ V))
        if not isinstance(other, LowRank):
            return other.inner(self)
        terms = self.terms
        if other is self and len(terms) == 2 and terms[0][0] == -terms[1][0]:
            (c, f), (_, g) = terms
            return c**2 * f.distance2(g)
        parts = [c * d * f.inner(g) for c, f in terms for d, g in (terms if other is self else other.terms)]
        total = sum(parts, 0.0)
        if other is self and len(parts) > 1 and total < CANCELLED * max(parts):
            return float(np.sum(self.svd()[1] ** 2))
        return total

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        U, V = self.factors()
        return U @ (V.T @ W)

    def low_rank_part(self) -> LowRank:
        return self

    def to_dense(self) -> np.ndarray:
        U, V = self.factors()
        return U @ V.T

    def __repr__(self) -> str:
        return f"LowRank({self.shape[0]} x {self.shape[1]}, rank at most {self.rank})"


def small_distance2(U: np.ndarray, V: np.ndarray, P: np.ndarray, Q: np.ndarray) -> float:
    """|U V' - P Q'|^2 where the two nearly cancel.

    With the T for which P T comes nearest to U, the difference is (U - P T) V' + P (V T' - Q)': both parts are small, and
    they are orthogonal but for rounding, so that their squares keep their digits.
    """
    T = np.linalg.pinv(P.T @ P, hermitian=True) @ (P.T @ U)
    A, B = U - P @ T, V @ T.T - Q
    squares = np.vdot(A.T @ A, V.T @ V) + np.vdot(P.T @ P, B.T @ B) + 2 * np.vdot(A.T @ P, V.T @ B)
    return max(float(squares), 0.0)


def svd(U: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of U V': left vectors, singular values (falling) and right vectors, those that are not zero up to rounding."""
    (left, R), (right, S) = qr(U), qr(V)
    P, sigma, Ot = np.linalg.svd(R @ S.T)
    k = int(np.sum(sigma > 1e-15 * max(len(U), len(V)) * sigma[0])) if sigma.size else 0
    return left @ P[:, :k], sigma[:k], right @ Ot[:k].T


def outer(U: np.ndarray, V: np.ndarray, like: Any) -> Any:
    """U V', of low rank where the other is structured, an array where it is one."""
    return LowRank.of_factors(U, V) if isinstance(like, Structured) else U @ V.T
