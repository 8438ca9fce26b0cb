"""What the sets of matrices that only look at singular values or eigenvalues have in common.

Such a set says by ``shrink`` which values a projection leaves of the given ones (in falling order); the singular or
eigenvectors stay as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from condgrad import checks
from condgrad.domains._ball import Shape
from condgrad.linalg.eigenvalue_bound import EigenvalueBound, eigenvalue_bound
from condgrad.linalg.lanczos import RITZ, SPARE, lowest_eigen, random_block, symmetric_times, top_singular, wider
from condgrad.linalg.simplex_projection import onto_simplex
from condgrad.points import LowRank, inner, norm2
from condgrad.points.base import Structured
from condgrad.points.low_rank import outer
from condgrad.protocols import Point
from condgrad.runtime.signals import beat, inexact

Shrink = Callable[[np.ndarray], np.ndarray]


def square(shape: Shape, owner: str) -> tuple[int, int]:
    """(n, n), which a single number n stands for too."""
    sizes = checks.as_shape(shape if isinstance(shape, tuple | list) else (shape, shape), owner)
    if len(sizes) != 2 or sizes[0] != sizes[1]:
        raise ValueError(f"{owner} is a set of symmetric matrices, but got shape {sizes}: give (n, n), or n alone.")
    return sizes[0], sizes[1]


def matrices(shape: tuple[int, ...], owner: str) -> None:
    """Refuses what is no shape of matrices."""
    if len(shape) != 2:
        raise ValueError(f"{owner} is a set of matrices, but got shape {shape}: give (rows, columns).")


def count(value: int, what: str, shape: tuple[int, ...]) -> int:
    """``value`` as an int; of the singular values or eigenvalues of a matrix there are at most min(shape)."""
    number = checks.whole(value, what)
    if number > min(shape):
        raise ValueError(f"{what} is at most {min(shape)} for matrices of shape {shape}, but got {number}.")
    return number


def unit(matrix: np.ndarray) -> np.ndarray:
    """The matrix with its largest entry at 1 or -1: neither sums nor halves overflow or vanish."""
    return matrix / (np.abs(matrix).max() or 1.0)


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """The symmetric part; the rest is orthogonal to every symmetric matrix."""
    return matrix / 2 + matrix.T / 2


def eigenvalues(x: Point, tolerance: float) -> np.ndarray | None:
    """The eigenvalues of x, rising; None where x is not symmetric up to the tolerance. Of a LowRank, with one zero more."""
    if isinstance(x, LowRank):
        U, V = x.factors()
        if norm2(x - LowRank(V, U)) > tolerance**2:
            return None
        Q, _ = np.linalg.qr(np.column_stack([U, V]))
        return np.sort(np.append(np.linalg.eigvalsh(symmetric((Q.T @ U) @ (V.T @ Q))), 0.0))
    if not np.isfinite(x).all() or np.abs(x - x.T).max() > tolerance:
        return None
    return np.linalg.eigvalsh(symmetric(x))


def singular_values(x: np.ndarray) -> np.ndarray:
    """The singular values of x, falling; they are infinite where x is not finite."""
    return np.linalg.svd(x, compute_uv=False) if np.isfinite(x).all() else np.full(min(x.shape), np.inf)


def shrink_singular(x: np.ndarray, shrink: Shrink) -> np.ndarray:
    """U shrink(sigma) V', and x itself where nothing shrinks."""
    left, sigma, right = np.linalg.svd(x, full_matrices=False)
    shrunk = shrink(sigma)
    return x if np.array_equal(shrunk, sigma) else (left * shrunk) @ right


def shrink_eigen(x: np.ndarray, shrink: Shrink) -> np.ndarray:
    """V shrink(lambda) V' of the symmetric part, where what is left is >= 0."""
    values, vectors = np.linalg.eigh(symmetric(x))
    root = vectors[:, ::-1] * np.sqrt(shrink(values[::-1]))
    return root @ root.T  # symmetric to the last bit


ROUNDING = 1e-13
"""What a product can be wrong by, relative to the matrix."""
SMALL = 64
"""Up to this many rows or columns a full SVD is as fast as a Lanczos method."""


def small(A: Point) -> np.ndarray | None:
    """The matrix written out, its largest entry at 1 or -1, where it is small: whichever way a point is kept, it gets the
    same answer."""
    return unit(np.asarray(A)) if min(A.shape) <= SMALL and max(A.shape) <= 16 * SMALL else None


def matrix(x: Any, shape: tuple[int, ...], owner: str) -> Point:
    """x, if it has the shape: a structured matrix as it is, anything else as an array."""
    if isinstance(x, Structured):
        checks.same_shape(x.shape, shape, f"The point given to {owner}")
        return x
    return checks.point(x, shape, owner)


def fresh(near: np.ndarray | None) -> int:
    """A seed, another one for each ``near``, and for the same one up to rounding and rotations the same every time.

    What an oracle sees joins the block of who asked, and with it the vector that it began with: from there again, it would
    only see what is known already.
    """
    return 0 if near is None else 1 + int(1e3 * np.linalg.norm(near.T @ random_block(len(near), 1)))


class Vectors(NamedTuple):
    """Left and right vectors, the best first, and their values; ``error`` is how much better the first k, which were asked for,
    could be in the sum of their values: 0 where they are as accurate as was asked."""

    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    error: float = 0.0


def top_vectors(A: Point, near: np.ndarray | None, accuracy: float) -> Vectors:
    """Singular vectors, the value of the top pair within ``accuracy`` of the largest."""
    if (whole := small(A)) is not None:
        left, values, right = np.linalg.svd(whole, full_matrices=False)
        return Vectors(left, right.T, values)
    size = 1.0 if isinstance(A, Structured) else np.abs(A).max() or 1.0
    A = A / size
    left, values, right, residual, accurate = top_singular(A, near, accuracy / size, fresh(near))
    error = 0.0 if accurate else unseen("singular", A, left[:, :1], right[:, :1], values[:1], residual)
    return Vectors(left, right, size * values, size * error)


def lowest_vectors(A: Point, k: int, near: np.ndarray | None, accuracy: float) -> Vectors:
    """The k lowest eigenvectors of the symmetric part, and perhaps more."""
    if (whole := small(A)) is not None:
        values, vectors = np.linalg.eigh(symmetric(whole))
        return Vectors(vectors, vectors, values)
    size = 1.0 if isinstance(A, Structured) else np.abs(A).max() or 1.0
    A = A / size
    vectors, values, residual, accurate = lowest_eigen(A, k, near, accuracy / size, fresh(near))
    lowest = vectors[:, :k]
    error = 0.0 if accurate else unseen("eigen", -1.0 * A, lowest, lowest, -values[:k], residual)
    return Vectors(vectors, vectors, size * values, size * error)


SLACKS = (0.0, 1e-6, 1e-4, 1e-2, 1.0)
"""Relative to the matrix: what is tried as a bound on what has not been seen, beyond the values that have been."""


def unseen(spectrum: str, A: Point, left: np.ndarray, right: np.ndarray, values: np.ndarray, residual: float) -> float:
    """How much larger the sum of the largest values of A can be than that of some Ritz values with these vectors and residual.

    Apart from what couples the vectors to the outside, which is at most the residual, A has their values and those outside,
    which linalg/eigenvalue_bound.py bounds: so no value is larger than both, and each is off by the residual at the most.
    """
    size = sqrt(norm2(A))
    bound = size
    for slack in SLACKS:
        needed = float(values[-1]) + residual + slack * size
        bound = min(bound, beyond(spectrum, A, left, right, needed, size).bound)
        if bound <= needed:
            break
    return float(np.maximum(bound - values, 0.0).sum()) + len(values) * residual


def said(owner: str, error: float, size: float) -> None:
    """A linear oracle tells of an error that it could not get rid of; ``size`` is that of its best value."""
    if error > 0.0:
        sentence = (
            f"The linear oracle of {owner} did not converge: the value of its answer, {-size:.6g}, may be above the minimum by "
            f"up to {error:.2g}, which is certified."
        )
        inexact(error, sentence)


def beyond(spectrum: str, z: Point, left: np.ndarray, right: np.ndarray, needed: float, size: float) -> EigenvalueBound:
    """A bound on the singular values or eigenvalues that z, which has the ``size``, has outside of some of its Ritz vectors; it
    is sought as far as to ``needed``."""
    noise, seed = ROUNDING * size, fresh(right)
    if spectrum == "eigen":
        return eigenvalue_bound(lambda Q: symmetric_times(z, Q), right, needed, lambda length: noise, seed)

    unit, noise = size or 1.0, ROUNDING

    def square(Q: np.ndarray) -> np.ndarray:
        P = (z @ Q) / unit
        return (z.T @ (P - left @ (left.T @ P))) / unit

    square_needed = min(needed / unit, 1e100) ** 2 if needed >= 0 else -np.inf
    bound, vectors = eigenvalue_bound(
        square, right, square_needed, lambda length: noise * max(sqrt(length), noise), seed
    )
    return EigenvalueBound(needed if bound == square_needed else unit * sqrt(max(bound, 0.0)), vectors)


PASSES = 300


def project_structured(domain: Any, z: Structured) -> LowRank:
    """The projection of a matrix that is known through its products: subspace iteration until nothing moves.

    The block has the last two sets of Ritz vectors, which makes it converge like conjugate gradients (Knyazev 2001), and
    doubles where all of it was needed. What it has not seen does not move either: so the linear oracle has the last word.
    """
    most, last, before = min(z.shape), None, np.zeros((z.shape[1], 0))
    block = z.low_rank_part().factors()[1]
    for _ in range(PASSES):
        beat()
        left, values, right = RITZ[domain.spectrum](z, wider(block, domain.narrowest, most))
        kept = domain.shrink(values)
        k = int(np.count_nonzero(kept))
        p = outer(left[:, :k] * kept[:k], right[:, :k], z)
        enough = k + SPARE <= len(values) or len(values) == most
        seen = before
        if enough and last is not None and norm2(p - last) <= 1e-26 * max(norm2(p), norm2(last)):
            if len(values) == most:
                return p
            vertex, seen = domain.lmo_near(p - z, right[:, :k], 0.0)
            if inner(p - z, p - vertex) <= 1e-11 * (sqrt(norm2(z)) + sqrt(norm2(p))) * domain.max_norm:
                return p
        spare = right[:, : k + SPARE]
        block = np.column_stack([spare, seen] if enough else [right, random_block(len(right), k + SPARE)])
        last, before = p, spare
    raise checks.BadOracle(
        f"The projection has not settled after {PASSES} passes over the matrix: use ncgs, which needs no exact projection."
    )


class OfLowRank(ABC):
    """Abstract: a set whose vertices and projections have low rank. Its oracles take matrices that are known through their
    products too, and ``lmo_near`` is its linear oracle."""

    shape: Shape
    spectrum: ClassVar[str]

    def _point(self, x: Point) -> Point:
        return matrix(x, self.shape, type(self).__name__)

    @abstractmethod
    def lmo_near(
        self, direction: Point, block: np.ndarray | None = None, accuracy: float = 0.0
    ) -> tuple[Point, np.ndarray]: ...

    @abstractmethod
    def shrink(self, values: np.ndarray) -> np.ndarray: ...

    def lmo(self, direction: Point) -> Point:
        return self.lmo_near(direction)[0]

    def beyond(self, z: Point, left: np.ndarray, right: np.ndarray, needed: float, size: float) -> EigenvalueBound:
        return beyond(self.spectrum, z, left, right, needed, size)

    def project(self, x: Point) -> Point:
        x = self._point(x)
        if isinstance(x, Structured):
            return project_structured(self, x)
        return shrink_eigen(x, self.shrink) if self.spectrum == "eigen" else shrink_singular(x, self.shrink)


def onto_capped_simplex(x: np.ndarray, total: int) -> np.ndarray:
    """The nearest point with entries in [0, 1] that sum to ``total``: clip(x - theta, 0, 1).

    The sum falls with theta, and linearly so between any two of the x_i and x_i - 1. Seen from the entry of rank
    ``total``, theta lies in [-1, 0], so what is further away than 1 may be anywhere.
    """
    near = np.clip(x - np.sort(x)[-total], -1.0, 1.0)
    rising = np.sort(near)
    sums = np.concatenate([[0.0], np.cumsum(rising)])
    thetas = np.sort(np.clip(np.concatenate([near, near - 1]), -1.0, 0.0))
    zeros, below_one = np.searchsorted(rising, thetas), np.searchsorted(rising, thetas + 1)
    totals = sums[below_one] - sums[zeros] - (below_one - zeros) * thetas + (x.size - below_one)
    return np.clip(near - np.interp(-total, -totals, thetas), 0.0, 1.0)


def onto_top_sum(s: np.ndarray, k: int, radius: float) -> np.ndarray:
    """The nearest values whose k largest sum to at most ``radius``; s falls and is not negative.

    By the optimality conditions the first h < k values fall by one and the same theta, the next ones, the k-th among
    them, meet at tau, and from the t-th on they stay: max(s - theta, min(s, tau)). Here theta is s_0 - top. Every pair
    (h, t) has its tau and top, by two linear equations, and the pair that keeps the order is the one. There are fewer
    pairs than the matrix has entries.
    """
    if s[:k].sum() <= radius:
        return s
    nearest = onto_simplex(s, radius)
    if (s - nearest).sum() <= k * (s[0] - nearest[0]):  # tau = 0
        return nearest
    h, t = np.arange(k)[:, None], np.arange(k, s.size + 1)
    drop, sums = s - s[0], np.concatenate([[0.0], np.cumsum(s)])
    room = radius - np.concatenate([[0.0], np.cumsum(drop)])[h]
    top = ((t - h) * room - (k - h) * (sums[t] - sums[h] - (k - h) * s[0])) / ((k - h) ** 2 + h * (t - h))
    tau = (room - h * top) / (k - h)
    before, after = np.concatenate([[np.inf], drop])[h], np.concatenate([s, [-np.inf]])[t]
    disorder = np.maximum.reduce([tau - (before + top), drop[h] + top - tau, tau - s[t - 1], after - tau])
    best = np.unravel_index(np.argmin(disorder), disorder.shape)
    nearest = np.maximum(drop + top[best], np.minimum(s, tau[best]))
    return nearest * (radius / nearest[:k].sum())  # 1, but for rounding where s is much larger than the radius
