"""Extreme singular vectors and eigenvectors of a matrix (an array or a structured point), by Lanczos methods.

The Lanczos methods use only products with the matrix. This file also has single passes of subspace iteration and full
decompositions, which return vectors and values in a common form (``Triple``).

ARPACK is not used: for equal singular values, it restarts from random numbers that no seed controls, so that two calls with the
same matrix give different vectors (seen with scipy 1.17 and the identity matrix).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import matmul
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from condgrad.linalg.qr import by_cholesky, qr
from condgrad.runtime.signals import heartbeat

STEPS, KEPT = 100, 30
"""Number of Lanczos vectors before a restart, and number of Ritz vectors that a restart keeps."""
MAX_RESTARTS = 40
"""Maximum number of rounds in one search. Every round except the first begins with a restart."""
SECOND_TRY = 3
"""If a search does not converge within MAX_RESTARTS rounds, a second search follows, with STEPS and KEPT times this factor."""
ACCURACY = 1e-13
"""If the caller gives no accuracy, the search ends when the expected further growth of the Ritz value is at most this share of
the value."""
RESIDUAL = 1e-11
"""The search ends when the residual is at most this share of the Ritz value, which is then precise to all digits."""
SURE = 1e-10
"""If the caller gives no accuracy, small growth ends the search only if the residual is at most this share of the Ritz value. The
reason: if two singular values are close, a Ritz value stays near the smaller one for some steps, with a larger residual."""
MAX_VECTORS = 16
"""Maximum number of singular triplets returned."""
SPARE = 8
"""Number of columns of a block in addition to the rank that is sought."""
FILL = 2**33
"""Seed of the random columns that are added to a block. No random start uses this seed, so that these columns are independent of
every start."""
NOTHING = 1e-13
"""Singular values, or absolute eigenvalues, below this share of the largest one are treated as rounding errors."""
RANDOM_PART = 0.5
"""Weight of the random part of a start that is biased towards given vectors."""


class Triplets(NamedTuple):
    """Singular triplets, A right_i = value_i left_i, with decreasing values. Only the first triplet is computed accurately.

    ``residual`` is the residual of the first triplet.
    """

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray
    residual: float
    accurate: bool = True
    """False if neither the first search nor the larger second search converged."""


class Lowest(NamedTuple):
    """Eigenvectors and eigenvalues in increasing order. ``residual`` is the sum of the residual norms of the k lowest pairs."""

    vectors: np.ndarray
    values: np.ndarray
    residual: float
    accurate: bool = True


def random_block(n: int, columns: int, seed: int = FILL) -> np.ndarray:
    """Reproducible random block with columns of norm about 1."""
    return np.random.default_rng(seed).standard_normal((n, columns)) / np.sqrt(n)


def top_singular(A: Any, near: np.ndarray | None = None, accuracy: float = 0.0, seed: int = 0) -> Triplets:
    """Compute the top singular triplet, and further Ritz triplets that are less accurate.

    ``accuracy`` is the target for the absolute error of the top value. The method is Golub-Kahan bidiagonalisation with full
    reorthogonalisation. Its start is random (one start for each seed) and biased towards the span of ``near``. Because of the
    random part, no singular vector is missed.

    The search ends when the residual is at most ``accuracy``, or when the expected further growth of the value is at most
    ``accuracy``. The expected growth is an extrapolation of past growth. The accuracy is therefore an estimate, not a proven
    bound; it is good enough to choose a vertex. Proven bounds are in linalg/eigenvalue_bound.py.
    """
    for room in (1, SECOND_TRY):
        start = biased(random_block(A.shape[1], 1, seed), near)[:, 0]
        basis = _Bidiagonal(A, start / np.linalg.norm(start), room)
        accurate, found = _grown(basis, accuracy), basis.triplets()
        if accurate:
            return found
        near = found.right
    return found._replace(accurate=False)


def top_of_gram(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return left vectors, values and right vectors of up to MAX_VECTORS top singular triplets of a small array.

    They are computed from the eigenvectors of A A' or A'A, whichever is smaller. The first value has full relative precision. The
    squares of the other values have an absolute error of about machine precision times the square of the first value.
    """
    if A.shape[0] > A.shape[1]:
        right, values, left = top_of_gram(A.T)
        return left, values, right
    n, scaled = len(A), np.ldexp(A, -np.frexp(np.abs(A).max(initial=0.0))[1])
    # scaled by a power of two, because LAPACK would scale a very large or very small matrix by another number, with rounding
    sought = max(n - MAX_VECTORS, 0), n - 1
    vectors = eigh(scaled @ scaled.T, subset_by_index=sought, overwrite_a=True, check_finite=False)[1]
    # the memory layout affects the last bits of products: use the layout that a checkpoint restores
    left = np.ascontiguousarray(vectors[:, ::-1])
    right, R = np.linalg.qr(A.T @ left)  # R is nearly diagonal; QR gives orthonormal columns even if values are 0
    signs = np.where(np.diag(R) < 0, -1.0, 1.0)
    return left, np.abs(np.diag(R)), right * signs


def _grown(basis: _Bidiagonal | _Eigenbasis, accuracy: float) -> bool:
    """Grow the basis, with restarts, until its vectors are accurate. Returns False if MAX_RESTARTS rounds are not enough."""
    for again in range(MAX_RESTARTS):
        if again:
            basis.restart()
        if basis.grow(accuracy):
            return True
    return False


class _Bidiagonal:
    """Golub-Kahan basis: A V' = U' B and A' U' = V' B' + rest v e', where the rows of U and V are orthonormal.

    v is the next row of V, and e is the last unit vector.
    """

    def __init__(self, A: Any, start: np.ndarray, room: int):
        (m, n), steps, self.kept = A.shape, min(room * STEPS, *A.shape), room * KEPT
        self.A, self.At = A, A.T
        self.U, self.V, self.B = np.zeros((steps, m)), np.zeros((steps + 1, n)), np.zeros((steps, steps + 1))
        self.V[0] = start
        self.j = self.cols = 0
        self.rest = self.largest = 0.0

    def grow(self, accuracy: float) -> bool:
        """Extend the basis until the top triplet is accurate. Returns False if the basis becomes full first."""
        U, V, B = self.U, self.V, self.B
        looks: list[tuple[int, float]] = []
        next_look = self.j + 3
        while self.j < len(U):
            heartbeat()
            j = self.j
            u = _orthogonal_part(self.A @ V[j], U[:j])
            B[j, j] = length(u)
            self.cols = j + 1
            if B[j, j] <= 1e-14 * self.largest:  # A maps V into U: the subspace is invariant
                self.rest = 0.0
                return True
            U[j] = u / B[j, j]
            v = _orthogonal_part(self.At @ U[j], V[: j + 1])
            self.rest, self.j = length(v), j + 1
            self.largest = max(self.largest, B[j, j], self.rest)
            if self.rest <= 1e-14 * self.largest:
                return True
            if self.j == U.shape[1]:  # U spans the whole space, so that this last vector makes the residual 0
                B[j, j + 1], V[j + 1] = self.rest, v / self.rest
                self.cols, self.rest = j + 2, 0.0
                return True
            if self.j == next_look or self.j == len(U):
                next_look = self.j + max(3, self.j // 4)
                value, last = self.value()
                looks.append((self.j, value))
                if self.rest * last <= max(accuracy, RESIDUAL * value):
                    return True
                sure = accuracy > 0 or self.rest * last <= SURE * value
                if sure and remaining_growth(looks) <= max(accuracy, ACCURACY * value):
                    return True
            B[j, j + 1] = self.rest
            V[j + 1] = v / self.rest
        return False

    def value(self) -> tuple[float, float]:
        """Return the largest singular value of B, and the absolute value of the last component of its left singular vector.

        The residual of the Ritz vectors is ``rest`` times this component.
        """
        j, B = self.j, self.B[: self.j, : self.cols]
        # one eigenvector of B B' is computed many times as fast as an SVD of B, and the largest value is as accurate
        square, left = eigh(B @ B.T, subset_by_index=(j - 1, j - 1), overwrite_a=True, check_finite=False)
        return float(np.sqrt(square[0])), abs(float(left[-1, 0]))

    def triplets(self) -> Triplets:
        j = self.j
        if j == 0:
            return Triplets(np.eye(self.U.shape[1], 1), np.zeros(1), self.V[:1].T, 0.0)
        B = self.B[:j, : self.cols]
        left = eigh(B @ B.T, subset_by_index=(max(j - MAX_VECTORS, 0), j - 1), overwrite_a=True, check_finite=False)[1]
        left = left[:, ::-1]
        # R is nearly diagonal. QR gives orthonormal columns even if values are 0
        right, R = np.linalg.qr(B.T @ left)
        signed = np.diag(R)
        right = right * np.where(signed < 0, -1.0, 1.0)
        residual = self.rest * abs(float(left[-1, 0]))
        return Triplets((left.T @ self.U[:j]).T, np.abs(signed), (right.T @ self.V[: self.cols]).T, residual)

    def restart(self) -> None:
        """Thick restart: keep the best Ritz vectors (Baglama and Reichel 2005)."""
        j, kept = self.j, min(self.kept, self.j - 1)
        left, sigma, right = np.linalg.svd(self.B[:j, :j])
        self.U[:kept], self.V[:kept] = left[:, :kept].T @ self.U[:j], right[:kept] @ self.V[:j]
        self.V[kept] = self.V[j]
        self.B[:] = 0.0
        self.B[:kept, :kept], self.B[:kept, kept] = np.diag(sigma[:kept]), self.rest * left[-1, :kept]
        self.j = kept


def remaining_growth(looks: list[tuple[int, float]]) -> float:
    """Estimate how much a Ritz value will still grow, from its last three measurements (steps, value).

    The estimate is the larger of two extrapolations. The first assumes that growth is a geometric series, as for a spectrum with
    a gap. The second assumes that the error is proportional to 1/steps^2, as for a spectrum without a gap.
    """
    if len(looks) < 3:
        return np.inf
    (_, first), (earlier, second), (steps, third) = looks[-3:]
    before, now = second - first, third - second
    rate = min(max(now / before, 0.2), 0.9) if before > 0 else 0.9
    return now * max(rate / (1 - rate), 1 / ((steps / earlier) ** 2 - 1))


def biased(block: np.ndarray, near: np.ndarray | None) -> np.ndarray:
    """Enlarge the component of a random block in the span of ``near``, whose columns are orthonormal.

    The result depends only on the span of ``near``, not on the choice of its columns.
    """
    lean = block[:, :0] if near is None else near @ (near.T @ block)
    return block * RANDOM_PART + lean / np.linalg.norm(lean, axis=0) if lean.any() else block


def length(vector: np.ndarray) -> float:
    """Euclidean norm of a vector whose squared entries neither overflow nor underflow."""
    return math.sqrt(float(vector @ vector))


def _orthogonal_part(vector: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Component of the vector orthogonal to the rows of the basis. The second pass removes rounding errors of the first."""
    vector = vector - (basis @ vector) @ basis
    return vector - (basis @ vector) @ basis


def spanned(block: np.ndarray, fresh: Callable[[int], np.ndarray]) -> np.ndarray:
    """Orthonormal basis with as many columns as the block, whose span contains the columns of the block.

    If the columns of the block are linearly dependent, ``fresh(n)`` provides n more columns for the missing directions.
    """
    found = by_cholesky(block)
    if found is not None:
        return found[0]
    Q, R = np.linalg.qr(block)
    P, sizes, _ = np.linalg.svd(R)
    known = int(np.sum(sizes > NOTHING * sizes.max(initial=0.0)))
    missing = Q.shape[1] - known
    if missing == 0:
        return Q
    Q, more = Q @ P[:, :known], fresh(missing)
    return np.linalg.qr(np.column_stack([Q, more - Q @ (Q.T @ more)]))[0]


def rank_of(kept: np.ndarray) -> int:
    """Numerical rank: the number of values that are larger than rounding errors (NOTHING times the largest value)."""
    return int(np.count_nonzero(kept > NOTHING * kept.max(initial=0.0)))


def spare_columns(values: np.ndarray, k: int, spare: int) -> np.ndarray:
    """Indices of the first k Ritz vectors, and of up to ``spare`` further Ritz vectors.

    Further Ritz vectors are left out if their values are rounding errors, because their directions are then arbitrary.
    """
    known = np.abs(values[: k + spare]) > NOTHING * np.abs(values).max(initial=0.0)
    known[:k] = True
    return np.flatnonzero(known)


Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


def singular_ritz(A: Any, W: np.ndarray, AW: np.ndarray | None = None) -> Triple:
    """One pass of subspace iteration from the block W. Returns left singular vectors, decreasing values, right singular vectors.

    ``AW`` is the product A @ W if the caller has computed it already.
    """
    if W.shape[1] == min(A.shape):  # W must span the whole space, even if some of its columns are dependent
        W, AW = np.linalg.qr(W)[0], None
    Q = spanned(A @ W if AW is None else AW, lambda missing: A @ random_block(len(W), missing, FILL + W.shape[1]))
    right, R = qr(A.T @ Q)
    P, values, Ot = np.linalg.svd(R.T)
    return Q @ P, values, right @ Ot.T


def full_singular(A: Any) -> Triple:
    """Full SVD of a matrix, which is converted to an array: left singular vectors, decreasing values, right singular vectors."""
    left, values, right = np.linalg.svd(np.asarray(A), full_matrices=False)
    return left, values, np.ascontiguousarray(right.T)


def full_eigen(A: Any) -> Triple:
    """All eigenvectors and eigenvalues of the symmetric part of A, in the form of ``full_singular``, with decreasing values.

    The left and right vectors are both the eigenvectors.
    """
    A = np.asarray(A)
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    vectors = np.ascontiguousarray(vectors[:, ::-1])
    return vectors, values[::-1], vectors


def eigen_ritz(A: Any, W: np.ndarray, AW: np.ndarray | None = None) -> Triple:
    """One pass of subspace iteration for the largest eigenvalues of the symmetric part of A, in the form of ``singular_ritz``.

    The left and right vectors are both the Ritz vectors.
    """
    AW = symmetric_times(A, W) if AW is None else AW
    both = np.column_stack([W, AW / (np.abs(AW).max(initial=0.0) or 1.0)])
    Q = spanned(both, lambda missing: random_block(len(W), missing, FILL + W.shape[1]))
    values, E = np.linalg.eigh(Q.T @ symmetric_times(A, Q))
    vectors = Q @ E[:, ::-1][:, : W.shape[1]]
    return vectors, values[::-1][: W.shape[1]], vectors


def lowest_eigen(A: Any, k: int, near: np.ndarray | None, accuracy: float, seed: int = 0) -> Lowest:
    """Compute the k lowest eigenpairs of the symmetric part of A, and further Ritz pairs that are less accurate.

    The method is block Lanczos with full reorthogonalisation. The first block has k columns, so that eigenvalues of multiplicity
    up to k are found. The block is random and biased towards the span of ``near``, as in ``top_singular``. The search ends when
    the sum of the k residual norms is at most ``accuracy``, or when the expected further decrease of the sum of the k values is
    at most ``accuracy``.
    """
    times = partial(symmetric_times, A)
    if isinstance(A, np.ndarray):  # one product per step instead of two
        times = partial(matmul, A / 2 + A.T / 2)
    for room in (1, SECOND_TRY):
        basis = _Eigenbasis(times, k, biased(random_block(A.shape[0], k, seed), near), room)
        accurate, found = _grown(basis, accuracy), basis.lowest()
        if accurate:
            return found
        near = found.vectors
    return found._replace(accurate=False)


class _Eigenbasis:
    """Block Lanczos basis: Q has orthonormal rows q_i, AQ has the rows A q_i, and T = Q A Q'.

    ``next`` is the block of rows that is added to Q in the next step.
    """

    def __init__(self, times: Callable[[np.ndarray], np.ndarray], k: int, start: np.ndarray, room: int):
        n, self.kept = len(start), room * max(KEPT, 2 * k)
        rows = min(n, room * max(STEPS, 5 * k)) + k
        self.times, self.k, self.j = times, k, 0
        self.Q, self.AQ, self.T = np.zeros((rows, n)), np.zeros((rows, n)), np.zeros((rows, rows))
        self.next = _orthonormal(start.T, self.Q[:0], 0.0)
        self.residual, self.size = np.inf, 0.0

    def grow(self, accuracy: float) -> bool:
        """Extend the basis until the k lowest eigenvalues are accurate. Returns False if the basis becomes full first."""
        looks: list[tuple[int, float]] = []
        blocks, next_look = max(self.j // self.k, 1), max(self.j // self.k, 1) + 3
        while self.j + len(self.next) <= len(self.Q):
            heartbeat()
            old, self.j = self.j, self.j + len(self.next)
            new, j = slice(old, self.j), self.j
            self.Q[new] = self.next
            self.AQ[new] = self.times(self.next.T).T
            self.T[:j, new] = self.Q[:j] @ self.AQ[new].T
            self.T[new, :j] = self.T[:j, new].T
            self.size = max(self.size, float(np.linalg.norm(self.AQ[new], axis=1).max()))
            self.next, blocks = _orthonormal(self.AQ[new], self.Q[:j], 1e-14 * self.size), blocks + 1
            if not len(self.next):  # the rows span an invariant subspace
                self.look()
                return True
            if blocks >= next_look or j + len(self.next) > len(self.Q):
                next_look = blocks + max(3, blocks // 4)
                looks.append((blocks, -self.look()))
                if self.residual <= max(accuracy, RESIDUAL * self.size):
                    return True
                sure = accuracy > 0 or self.residual <= SURE * self.size
                if sure and remaining_growth(looks) <= max(accuracy, self.k * ACCURACY * self.size):
                    return True
        return False

    def look(self) -> float:
        """Return the sum of the k lowest Ritz values. Also updates ``residual``, the sum of their residual norms."""
        values, low = eigh(self.T[: self.j, : self.j], subset_by_index=(0, min(self.k, self.j) - 1), check_finite=False)
        outside = low.T @ self.AQ[: self.j] - values[:, None] * (low.T @ self.Q[: self.j])
        self.residual = float(np.linalg.norm(outside, axis=1).sum())
        return float(values.sum())

    def lowest(self) -> Lowest:
        wide = max(MAX_VECTORS, self.k + SPARE)
        values, E = np.linalg.eigh(self.T[: self.j, : self.j])
        return Lowest((E[:, :wide].T @ self.Q[: self.j]).T, values[:wide], self.residual)

    def restart(self) -> None:
        """Thick restart: keep the best Ritz vectors (Wu and Simon 2000)."""
        kept = min(self.kept, self.j - 1)
        values, E = np.linalg.eigh(self.T[: self.j, : self.j])
        E = E[:, :kept].T
        self.Q[:kept], self.AQ[:kept] = E @ self.Q[: self.j], E @ self.AQ[: self.j]
        self.T[:kept, :kept] = np.diag(values[:kept])
        self.j = kept


def _orthonormal(rows: np.ndarray, basis: np.ndarray, least: float) -> np.ndarray:
    """Orthonormal rows that span the component of ``rows`` orthogonal to the basis.

    Directions in which this component has a singular value of at most ``least`` are left out.
    """
    if len(rows) == 1:  # faster than the decompositions below
        row = rows[0] - (basis @ rows[0]) @ basis
        length = np.linalg.norm(row)
        if length <= least:
            return rows[:0]
        row = row / length
        row = row - (basis @ row) @ basis
        return (row / np.linalg.norm(row))[None]
    rows = rows - (rows @ basis.T) @ basis
    _, lengths, rows = np.linalg.svd(rows, full_matrices=False)
    rows = rows[lengths > least]
    return np.linalg.qr((rows - (rows @ basis.T) @ basis).T)[0].T


def symmetric_times(A: Any, W: np.ndarray) -> np.ndarray:
    """The product of the symmetric part of A, (A + A')/2, with a block."""
    return (A @ W + A.T @ W) / 2


RITZ = {"singular": singular_ritz, "eigen": eigen_ritz}
FULL = {"singular": full_singular, "eigen": full_eigen}
TIMES: dict[str, Callable[[Any, np.ndarray], np.ndarray]] = {"singular": matmul, "eigen": symmetric_times}


def wider(block: np.ndarray, least: int, most: int) -> np.ndarray:
    """Add random columns to the block until it has ``least`` + SPARE columns, then cut it to at most ``most`` columns."""
    missing = min(least + SPARE, most) - block.shape[1]
    if missing > 0:
        block = np.column_stack([block, random_block(len(block), missing, FILL + least)])
    return block[:, :most]
