"""Common code of the sets of matrices that are defined by singular values or eigenvalues.

The projection onto such a set keeps the singular vectors or eigenvectors of a matrix. The set's method ``shrink`` maps the values
of a matrix, in decreasing order, to those of its projection.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from math import sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.linalg.dense_bound import dense_eigenvalue_bound, dense_singular_bound
from condgrad.linalg.eigenvalue_bound import EigenvalueBound, eigenvalue_bound
from condgrad.linalg.extreme_eigen import Tridiagonal
from condgrad.linalg.lanczos import (
    RITZ,
    SPARE,
    lowest_eigen,
    random_block,
    symmetric_times,
    top_of_gram,
    top_singular,
    wider,
)
from condgrad.linalg.selection import finite_size
from condgrad.linalg.simplex_projection import onto_simplex
from condgrad.points import LowRank, inner, norm2
from condgrad.points.base import Structured
from condgrad.points.low_rank import outer, wide
from condgrad.protocols import Point
from condgrad.runtime.signals import heartbeat, report_inexact

Shrink = Callable[[np.ndarray], np.ndarray]

USUAL = (1e-60, 1e60)
"""Largest absolute entries of matrices whose products and decompositions neither overflow nor lose digits."""


def square_shape(shape: Shape, owner: str) -> tuple[int, int]:
    """Return the shape (n, n), given as (n, n) or as n; raise ValueError for any other shape."""
    sizes = checks.as_shape(shape if isinstance(shape, tuple | list) else (shape, shape), owner)
    if len(sizes) != 2 or sizes[0] != sizes[1]:
        raise ValueError(f"{owner} is a set of symmetric matrices, but got shape {sizes}: give (n, n), or n alone.")
    return sizes[0], sizes[1]


def check_matrix_shape(shape: tuple[int, ...], owner: str) -> None:
    """Raise ValueError if ``shape`` does not have two dimensions."""
    if len(shape) != 2:
        raise ValueError(f"{owner} is a set of matrices, but got shape {shape}: give (rows, columns).")


def check_count(value: int, what: str, shape: tuple[int, ...]) -> int:
    """Return ``value`` as an int; raise ValueError if it is above min(shape), the number of singular values or eigenvalues."""
    number = checks.whole(value, what)
    if number > min(shape):
        raise ValueError(f"{what} is at most {min(shape)} for matrices of shape {shape}, but got {number}.")
    return number


def scaled_to_unit(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix divided by its largest absolute entry, so that sums and halves neither overflow nor underflow; NaN and
    Inf are refused."""
    return matrix / (finite_size(matrix) or 1.0)


def moderate(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix, scaled by a power of two, which changes no bits, if its largest absolute entry is outside of USUAL."""
    size = finite_size(matrix)
    if USUAL[0] < size < USUAL[1]:
        return matrix
    exponent = -math.frexp(size)[1]
    half = exponent // 2  # in two steps: the whole power may overflow
    return matrix * math.ldexp(1.0, half) * math.ldexp(1.0, exponent - half)


def symmetric_part(matrix: np.ndarray) -> np.ndarray:
    """Return the symmetric part; the antisymmetric part is orthogonal to every symmetric matrix."""
    half = matrix / 2
    return half + half.T


def eigenvalues(x: Point, tolerance: float) -> np.ndarray | None:
    """Return the eigenvalues of x in increasing order; None if x is not symmetric up to the tolerance.

    For a LowRank they are those of its factors' span and one 0.
    """
    if isinstance(x, LowRank):
        U, V = map(wide, x.factors())
        if norm2(x - LowRank(V, U)) > tolerance**2:
            return None
        Q, _ = np.linalg.qr(np.column_stack([U, V]))
        return np.sort(np.append(np.linalg.eigvalsh(symmetric_part((Q.T @ U) @ (V.T @ Q))), 0.0))
    if not np.isfinite(x).all() or np.abs(x - x.T).max() > tolerance:
        return None
    return np.linalg.eigvalsh(symmetric_part(x))


def singular_values(x: np.ndarray) -> np.ndarray:
    """Return the singular values of x in decreasing order; all are infinite if x is not finite."""
    return np.linalg.svd(x, compute_uv=False) if np.isfinite(x).all() else np.full(min(x.shape), np.inf)


def shrink_singular(x: np.ndarray, shrink: Shrink) -> np.ndarray:
    """Return U shrink(sigma) V' for the SVD of x; x itself if ``shrink`` changes no value."""
    left, sigma, right = np.linalg.svd(x, full_matrices=False)
    shrunk = shrink(sigma)
    return x if np.array_equal(shrunk, sigma) else (left * shrunk) @ right


def shrink_eigen(x: np.ndarray, shrink: Shrink) -> np.ndarray:
    """Return V shrink(lambda) V' for the symmetric part of x; the values of ``shrink`` must be >= 0."""
    values, vectors = np.linalg.eigh(symmetric_part(x))
    root = vectors[:, ::-1] * np.sqrt(shrink(values[::-1]))
    return root @ root.T  # symmetric to the last bit


PRODUCT_ROUNDING = 1e-13
"""Bound on the rounding error of a matrix product, relative to the norm of the matrix."""
MAX_DENSE_SIZE = 64
"""Maximum number of rows or columns for which a full SVD is as fast as a Lanczos method."""
MAX_DENSE_GRAM_SIZE = 400
"""Minimum dimension up to which the top singular vectors of full accuracy are eigenvectors of A A' or A'A: Lanczos takes several
times as long there."""
MAX_DENSE_EIGEN_SIZE, MAX_DENSE_BLOCK_SIZE = 400, 640
"""Maximum number of rows of an array for which one eigenvector at an end of the spectrum, or several, are found as fast by LAPACK
as by a Lanczos method that no block warm-starts; for a spectrum without gaps, which is its worst case."""
MAX_GRAM_SIZE = 400
"""The same for a pair of singular vectors, as an eigenvector of a Gram matrix: the smaller one of the two sizes of the array."""


def dense_if_small(A: Point) -> np.ndarray | None:
    """Return a small matrix as an array, scaled if it is huge or tiny; None for a large one.

    So the answer for a small matrix does not depend on whether it is an array or structured.
    """
    return moderate(np.asarray(A)) if min(A.shape) <= MAX_DENSE_SIZE and max(A.shape) <= 16 * MAX_DENSE_SIZE else None


def as_matrix(x: Any, shape: tuple[int, ...], owner: str) -> Point:
    """Return x after a check of its shape: a structured matrix unchanged, anything else as an array."""
    if isinstance(x, Structured):
        checks.same_shape(x.shape, shape, f"The point given to {owner}")
        return x
    return checks.point(x, shape, owner)


def start_seed(near: np.ndarray | None) -> int:
    """Return the seed of the random start vector of an oracle, a function of the span of ``near`` up to rounding.

    The vectors that an oracle returns join the caller's block, and with them the start vector. Another call with the same start
    vector would find only what is in the block already.
    """
    return 0 if near is None else 1 + int(1e3 * np.linalg.norm(near.T @ random_block(len(near), 1)))


class Vectors(NamedTuple):
    """Left and right vectors and their values, the best first; values of a multiple of the matrix, if that is huge or tiny.

    ``error`` bounds how much the sum of the values of the first k, which were asked for, can be improved; 0 if they have the
    accuracy asked for.
    """

    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    error: float = 0.0


def top_vectors(A: Point, near: np.ndarray | None, accuracy: float) -> Vectors:
    """Return singular vectors; the value of the first pair is within ``accuracy`` of the largest."""
    if (whole := dense_if_small(A)) is not None:
        left, values, right = np.linalg.svd(whole, full_matrices=False)
        return Vectors(left, right.T, values)
    dense = isinstance(A, np.ndarray) or max(A.shape) <= 4 * MAX_GRAM_SIZE
    if accuracy == 0.0 and dense and min(A.shape) <= MAX_GRAM_SIZE and (near is None or not near.size):
        return _by_gram_matrix(moderate(np.asarray(A)))
    size = 1.0 if isinstance(A, Structured) else finite_size(A) or 1.0
    A = A / size
    if accuracy == 0.0 and min(A.shape) <= MAX_DENSE_GRAM_SIZE and max(A.shape) <= 4 * MAX_DENSE_GRAM_SIZE:
        left, values, right = top_of_gram(np.asarray(A))
        return Vectors(left, right, size * values)
    left, values, right, residual, accurate = top_singular(A, near, accuracy / size, start_seed(near))
    error = 0.0 if accurate else value_error("singular", A, left[:, :1], right[:, :1], values[:1], residual)
    return Vectors(left, right, size * values, size * error)


def _by_gram_matrix(A: np.ndarray) -> Vectors:
    """The top pair from the eigenvector of A A' or A'A, the smaller one.

    The largest eigenvalue of a Gram matrix has full relative precision, unlike the others, and so has its square root.
    """
    rows = A if A.shape[0] <= A.shape[1] else A.T
    last = len(rows) - 1
    short = Tridiagonal(rows @ rows.T).eigenpairs(last, last)[1]
    long = rows.T @ short
    value = float(np.linalg.norm(long))
    long = long / value if value > 0 else np.eye(len(long), 1)
    left, right = (short, long) if rows is A else (long, short)
    return Vectors(left, right, np.array([value]))


def lowest_vectors(A: Point, k: int, near: np.ndarray | None, accuracy: float) -> Vectors:
    """Return the k lowest eigenvectors of the symmetric part, possibly followed by others."""
    if (whole := dense_if_small(A)) is not None:
        values, vectors = np.linalg.eigh(symmetric_part(whole))
        return Vectors(vectors, vectors, values)
    most = MAX_DENSE_EIGEN_SIZE if k == 1 else MAX_DENSE_BLOCK_SIZE
    if near is None and isinstance(A, np.ndarray) and len(A) <= most:
        values, vectors = Tridiagonal(symmetric_part(moderate(A))).eigenpairs(0, k - 1)
        return Vectors(vectors, vectors, values)
    size = 1.0 if isinstance(A, Structured) else finite_size(A) or 1.0
    A = A / size
    vectors, values, residual, accurate = lowest_eigen(A, k, near, accuracy / size, start_seed(near))
    lowest = vectors[:, :k]
    error = 0.0 if accurate else value_error("eigen", -1.0 * A, lowest, lowest, -values[:k], residual)
    return Vectors(vectors, vectors, size * values, size * error)


MAX_DENSE_PRODUCT = 2.5e7
"""Maximum number of multiplications in the Gram matrix of an array for which a Cholesky factorisation of it bounds the values of
the array as fast as a block Lanczos method: 290 rows and columns, or 600 x 200."""
BOUND_SLACKS = (0.0, 1e-6, 1e-4, 1e-2, 1.0)
"""Margins, relative to the norm of the matrix, by which the values outside the given vectors may exceed the smallest given value;
tried in this order."""


def value_error(
    spectrum: str, A: Point, left: np.ndarray, right: np.ndarray, values: np.ndarray, residual: float
) -> float:
    """Return a bound on how much the sum of the largest values of A exceeds the sum of these Ritz values.

    Without the coupling between the Ritz vectors and their orthogonal complement, whose norm is at most the residual, the values
    of A would be the Ritz values and those on the complement, which linalg/eigenvalue_bound.py bounds. The coupling changes each
    value by at most the residual.
    """
    size = sqrt(norm2(A))
    bound = size
    for slack in BOUND_SLACKS:
        needed = float(values[-1]) + residual + slack * size
        bound = min(bound, bound_outside(spectrum, A, left, right, needed, size).bound)
        if bound <= needed:
            break
    return float(np.maximum(bound - values, 0.0).sum()) + len(values) * residual


def report_unconverged(owner: str, error: float, size: float) -> None:
    """Report that the answer of a linear oracle, with value -size, may be above the minimum by up to ``error``; 0: no report."""
    if error > 0.0:
        sentence = (
            f"The linear oracle of {owner} did not converge: the value of its answer, {-size:.6g}, may be above the minimum by "
            f"up to {error:.2g}, which is certified."
        )
        report_inexact(error, sentence)


def bound_outside(
    spectrum: str, z: Point, left: np.ndarray, right: np.ndarray, needed: float, size: float
) -> EigenvalueBound:
    """Return an upper bound on the singular values (or eigenvalues) of z on the orthogonal complement of the given Ritz vectors.

    The search stops as soon as the bound is at most ``needed``. ``size`` is the norm of z. A small z is factorised as an array.
    """
    if min(z.shape) * z.shape[0] * z.shape[1] <= MAX_DENSE_PRODUCT:
        return _dense_bound(spectrum, z, left, right, needed, size or 1.0)
    noise, seed = PRODUCT_ROUNDING * size, start_seed(right)
    if spectrum == "eigen":
        return eigenvalue_bound(lambda Q: symmetric_times(z, Q), right, needed, lambda length: noise, seed)

    unit, noise = size or 1.0, PRODUCT_ROUNDING

    def square(Q: np.ndarray) -> np.ndarray:
        P = (z @ Q) / unit
        return (z.T @ (P - left @ (left.T @ P))) / unit

    square_needed = min(needed / unit, 1e100) ** 2 if needed >= 0 else -np.inf
    bound, vectors = eigenvalue_bound(
        square, right, square_needed, lambda length: noise * max(sqrt(length), noise), seed
    )
    return EigenvalueBound(needed if bound == square_needed else unit * sqrt(max(bound, 0.0)), vectors)


def _dense_bound(
    spectrum: str, z: Point, left: np.ndarray, right: np.ndarray, needed: float, unit: float
) -> EigenvalueBound:
    """The same by a Cholesky factorisation of z / unit as an array."""
    scaled, scaled_needed = np.asarray(z) / unit, needed / unit
    if spectrum == "eigen":
        found = dense_eigenvalue_bound(symmetric_part(scaled), right, scaled_needed, PRODUCT_ROUNDING)
    else:
        found = dense_singular_bound(scaled, left, right, scaled_needed, PRODUCT_ROUNDING)
    return EigenvalueBound(needed if found.bound == scaled_needed else unit * found.bound, found.vectors)


MAX_PROJECTION_PASSES = 300
"""Maximum number of passes of subspace iteration in one projection."""


def project_structured(domain: Any, z: Structured) -> LowRank:
    """Return the projection of a structured matrix, by subspace iteration until the projection no longer changes.

    The block has the last two sets of Ritz vectors, which makes the iteration converge like conjugate gradients (Knyazev 2001).
    It is doubled if ``shrink`` keeps nearly all of its values. An iteration that misses a singular vector does not change either,
    so the linear oracle checks the result.
    """
    max_rank, last, before = min(z.shape), None, np.zeros((z.shape[1], 0))
    block = z.low_rank_part().factors()[1]
    for _ in range(MAX_PROJECTION_PASSES):
        heartbeat()
        left, values, right = RITZ[domain.spectrum](z, wider(block, domain.narrowest, max_rank))
        shrunk = domain.shrink(values)
        k = int(np.count_nonzero(shrunk))
        p = outer(left[:, :k] * shrunk[:k], right[:, :k], z)
        enough = k + SPARE <= len(values) or len(values) == max_rank
        found = before
        if enough and last is not None and norm2(p - last) <= 1e-26 * max(norm2(p), norm2(last)):
            if len(values) == max_rank:
                return p
            vertex, found = domain.lmo_near(p - z, right[:, :k], 0.0)
            if inner(p - z, p - vertex) <= 1e-11 * (sqrt(norm2(z)) + sqrt(norm2(p))) * domain.max_norm:
                return p
        spare = right[:, : k + SPARE]
        block = np.column_stack([spare, found] if enough else [right, random_block(len(right), k + SPARE)])
        last, before = p, spare
    raise checks.BadOracle(
        f"The projection has not converged after {MAX_PROJECTION_PASSES} passes over the matrix: use ncgs, which needs no exact "
        "projection."
    )


class LowRankSet(ABC):
    """Abstract base class of sets whose vertices and projections have low rank.

    The oracles also accept structured matrices. Subclasses implement ``lmo_near`` and ``shrink``.
    """

    shape: Shape
    spectrum: ClassVar[str]

    def _point(self, x: Point) -> Point:
        return as_matrix(x, self.shape, type(self).__name__)

    @property
    @abstractmethod
    def max_norm(self) -> float:
        """Largest norm of a point of the set."""

    @abstractmethod
    def lmo_near(
        self, direction: Point, block: np.ndarray | None = None, accuracy: float = 0.0
    ) -> tuple[Point, np.ndarray]:
        """Return a minimiser of <direction, .> to the given accuracy, and the vectors found; ``block`` warm-starts the search."""

    @abstractmethod
    def shrink(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the projection of a matrix with these values, in decreasing order."""

    def lmo(self, direction: Point) -> Point:
        """Return a point of the set that minimises <direction, x>."""
        return self.lmo_near(direction)[0]

    def beyond(self, z: Point, left: np.ndarray, right: np.ndarray, needed: float, size: float) -> EigenvalueBound:
        """Return an upper bound on the values of z on the orthogonal complement of the given Ritz vectors."""
        return bound_outside(self.spectrum, z, left, right, needed, size)

    def project(self, x: Point) -> Point:
        """Return the point of the set nearest to x."""
        x = checks.finite(self._point(x), type(self).__name__, self.max_norm)
        if isinstance(x, Structured):
            return project_structured(self, x)
        return shrink_eigen(x, self.shrink) if self.spectrum == "eigen" else shrink_singular(x, self.shrink)


def onto_capped_simplex(x: np.ndarray, total: int) -> np.ndarray:
    """Return the nearest point with entries in [0, 1] that sum to ``total``: clip(x - theta, 0, 1).

    The sum decreases with theta and is linear between neighbouring breakpoints x_i and x_i - 1. Relative to the ``total``-th
    largest entry theta lies in [-1, 0], so entries whose distance to this entry is above 1 can be clipped first.
    """
    near = np.clip(x - np.sort(x)[-total], -1.0, 1.0)
    rising = np.sort(near)
    sums = np.concatenate([[0.0], np.cumsum(rising)])
    thetas = np.sort(np.clip(np.concatenate([near, near - 1]), -1.0, 0.0))
    zeros, below_one = np.searchsorted(rising, thetas), np.searchsorted(rising, thetas + 1)
    totals = sums[below_one] - sums[zeros] - (below_one - zeros) * thetas + (x.size - below_one)
    return np.clip(near - np.interp(-total, -totals, thetas), 0.0, 1.0)


def onto_top_sum(s: np.ndarray, k: int, radius: float) -> np.ndarray:
    """Return the nearest values whose k largest sum to at most ``radius``; s is decreasing and not negative.

    By the optimality conditions the first h < k values decrease by the same theta, the next ones, the k-th among them, become
    equal to tau, and those from the t-th on do not change: max(s - theta, min(s, tau)). Here theta is s_0 - top. For every pair
    (h, t), two linear equations determine tau and top; the solution is the pair for which the result is in decreasing order.
    There are fewer pairs than the matrix has entries.
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
    return nearest * (radius / nearest[:k].sum())  # removes rounding, which matters if s is much larger than the radius
