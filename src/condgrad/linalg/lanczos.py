"""Singular vectors and eigenvectors of a matrix that is known through its products: arrays and structured points alike.

ARPACK is not used: where singular values are equal it starts again from random numbers that no seed reaches, so the
answers to one and the same direction differ (scipy 1.17, identity matrix).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import matmul
from typing import Any, NamedTuple

import numpy as np

from condgrad.linalg.qr import by_cholesky, qr
from condgrad.runtime.signals import beat

STEPS, KEPT = 100, 30
"""Lanczos vectors before a restart, and the best of them that it keeps."""
RESTARTS = 40
MORE = 3
"""So many times the room a search gets that did not come to its end within the restarts."""
ACCURACY = 1e-13
"""Of the value, relative to itself, where no other is asked for."""
RESIDUAL = 1e-11
"""Of the residual, relative to the value: then the value is as good as it gets."""
SURE = 1e-10
"""Of the residual, relative to the value, where no accuracy is asked for: growth alone tells no close values apart."""
WIDE = 16
"""So many singular triplets are answered with at the most."""
SPARE = 8
"""So many columns a block is wider than the rank that is looked for."""
FILL = 2**33
"""The seed of columns that fill up a block: no start has it, so what begins with a start has not been there before."""
NOTHING = 1e-13
"""What is so small relative to the largest is rounding."""
LEAN = 0.5
"""The random part of the start where there is something to lean towards."""


class Triplets(NamedTuple):
    """A right_i = value_i left_i, values falling: the first is as accurate as was asked, the others as they happen to be."""

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray
    residual: float
    accurate: bool = True
    """False where the search, with more room too, did not come to its end."""


class Lowest(NamedTuple):
    """Eigenvectors and their values, rising; the residuals' lengths of those that were asked for, in sum."""

    vectors: np.ndarray
    values: np.ndarray
    residual: float
    accurate: bool = True


def random_block(n: int, columns: int, seed: int = FILL) -> np.ndarray:
    """The same every time."""
    return np.random.default_rng(seed).standard_normal((n, columns)) / np.sqrt(n)


def top_singular(A: Any, near: np.ndarray | None = None, accuracy: float = 0.0, seed: int = 0) -> Triplets:
    """The top singular triplet, its value within ``accuracy`` of the largest, and others that were seen on the way.

    Golub-Kahan bidiagonalisation with full reorthogonalisation, from a vector that is random, the same for each seed, and leans
    towards the span of ``near``. The random part is there to miss no singular vector. An accuracy is reached when the
    residual is below it, or when the value's growth says so, from which what is still to come is extrapolated: a rough one
    is an estimate, good for a vertex to go to (linalg/eigenvalue_bound.py has bounds).
    """
    for room in (1, MORE):
        start = leaning(random_block(A.shape[1], 1, seed), near)[:, 0]
        basis = _Bidiagonal(A, start / np.linalg.norm(start), room)
        accurate, found = _grown(basis, accuracy), basis.triplets()
        if accurate:
            return found
        near = found.right
    return found._replace(accurate=False)


def _grown(basis: _Bidiagonal | _Eigenbasis, accuracy: float) -> bool:
    """Until what is looked for is accurate enough, with restarts; False when these are used up."""
    for again in range(RESTARTS):
        if again:
            basis.restart()
        if basis.grow(accuracy):
            return True
    return False


class _Bidiagonal:
    """A V' = U' B with orthonormal rows of U and V; A'U' = V'B' but for a last vector of length ``rest``."""

    def __init__(self, A: Any, start: np.ndarray, room: int):
        (m, n), steps, self.kept = A.shape, min(room * STEPS, *A.shape), room * KEPT
        self.A, self.At = A, A.T
        self.U, self.V, self.B = np.zeros((steps, m)), np.zeros((steps + 1, n)), np.zeros((steps, steps + 1))
        self.V[0] = start
        self.j = self.cols = 0
        self.rest = self.largest = 0.0

    def grow(self, accuracy: float) -> bool:
        """Until the top triplet is accurate enough; False when the room is used up."""
        U, V, B = self.U, self.V, self.B
        looks: list[tuple[int, float]] = []
        next_look = self.j + 3
        while self.j < len(U):
            beat()
            j = self.j
            u = _beyond(self.A @ V[j], U[:j])
            B[j, j] = np.linalg.norm(u)
            self.cols = j + 1
            if B[j, j] <= 1e-14 * self.largest:  # A maps all of V into U: there is no more to be found
                self.rest = 0.0
                return True
            U[j] = u / B[j, j]
            v = _beyond(self.At @ U[j], V[: j + 1])
            self.rest, self.j = float(np.linalg.norm(v)), j + 1
            self.largest = max(self.largest, B[j, j], self.rest)
            if self.rest <= 1e-14 * self.largest:
                return True
            if self.j == U.shape[1]:  # U is a basis of the whole space: with this last vector nothing is left over
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
                if sure and still_to_come(looks) <= max(accuracy, ACCURACY * value):
                    return True
            B[j, j + 1] = self.rest
            V[j + 1] = v / self.rest
        return False

    def value(self) -> tuple[float, float]:
        """The largest singular value of B, and the share of its left vector that the residual has."""
        left, sigma, _ = np.linalg.svd(self.B[: self.j, : self.cols], full_matrices=False)
        return float(sigma[0]), abs(float(left[-1, 0]))

    def triplets(self) -> Triplets:
        j = self.j
        if j == 0:
            return Triplets(np.eye(self.U.shape[1], 1), np.zeros(1), self.V[:1].T, 0.0)
        left, sigma, right = np.linalg.svd(self.B[:j, : self.cols], full_matrices=False)
        residual = self.rest * abs(float(left[-1, 0]))
        return Triplets(
            (left[:, :WIDE].T @ self.U[:j]).T, sigma[:WIDE], (right[:WIDE] @ self.V[: self.cols]).T, residual
        )

    def restart(self) -> None:
        """Keep the best of what is known, and go on from there (Baglama and Reichel 2005)."""
        j, kept = self.j, min(self.kept, self.j - 1)
        left, sigma, right = np.linalg.svd(self.B[:j, :j])
        self.U[:kept], self.V[:kept] = left[:, :kept].T @ self.U[:j], right[:kept] @ self.V[:j]
        self.V[kept] = self.V[j]
        self.B[:] = 0.0
        self.B[:kept, :kept], self.B[:kept, kept] = np.diag(sigma[:kept]), self.rest * left[-1, :kept]
        self.j = kept


def still_to_come(looks: list[tuple[int, float]]) -> float:
    """What a value that grows ever more slowly with the number of steps has yet to grow, from its last three looks.

    The larger of two guesses: its growth is a geometric series, as it is where the spectrum has a gap; or what is missing falls
    with the square of the steps, as it does where there is none.
    """
    if len(looks) < 3:
        return np.inf
    (_, first), (earlier, second), (steps, third) = looks[-3:]
    before, now = second - first, third - second
    rate = min(max(now / before, 0.2), 0.9) if before > 0 else 0.9
    return now * max(rate / (1 - rate), 1 / ((steps / earlier) ** 2 - 1))


def leaning(block: np.ndarray, near: np.ndarray | None) -> np.ndarray:
    """A random block with more of what it has in the span of ``near`` (orthonormal), whichever basis that is given in."""
    lean = block[:, :0] if near is None else near @ (near.T @ block)
    return block * LEAN + lean / np.linalg.norm(lean, axis=0) if lean.any() else block


def _beyond(vector: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """What is orthogonal to the rows of the basis; rounding makes the second pass necessary, and it is enough."""
    vector = vector - (basis @ vector) @ basis
    return vector - (basis @ vector) @ basis


def spanned(block: np.ndarray, fresh: Callable[[int], np.ndarray]) -> np.ndarray:
    """An orthonormal basis of the block's columns. Where they depend on each other, what is left of one is rounding and points
    anywhere: fresh ones take its place."""
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
    """How many of the values that a set keeps are not rounding."""
    return int(np.count_nonzero(kept > NOTHING * kept.max(initial=0.0)))


def spare_columns(values: np.ndarray, k: int, spare: int) -> np.ndarray:
    """The numbers of the first k Ritz vectors, and of the ``spare`` ones after them those whose values are not rounding: the
    others point anywhere."""
    known = np.abs(values[: k + spare]) > NOTHING * np.abs(values).max(initial=0.0)
    known[:k] = True
    return np.flatnonzero(known)


Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


def singular_ritz(A: Any, W: np.ndarray, AW: np.ndarray | None = None) -> Triple:
    """One pass of subspace iteration: left vectors, values (falling) and right vectors of A as seen from the block W."""
    if W.shape[1] == min(A.shape):  # all there is: columns that depend on others would count as if they saw something
        W, AW = np.linalg.qr(W)[0], None
    Q = spanned(A @ W if AW is None else AW, lambda missing: A @ random_block(len(W), missing, FILL + W.shape[1]))
    right, R = qr(A.T @ Q)
    P, values, Ot = np.linalg.svd(R.T)
    return Q @ P, values, right @ Ot.T


def eigen_ritz(A: Any, W: np.ndarray, AW: np.ndarray | None = None) -> Triple:
    """The same for the symmetric part of A, by its largest eigenvalues: left and right vectors are one."""
    AW = symmetric_times(A, W) if AW is None else AW
    both = np.column_stack([W, AW / (np.abs(AW).max(initial=0.0) or 1.0)])
    Q = spanned(both, lambda missing: random_block(len(W), missing, FILL + W.shape[1]))
    values, E = np.linalg.eigh(Q.T @ symmetric_times(A, Q))
    vectors = Q @ E[:, ::-1][:, : W.shape[1]]
    return vectors, values[::-1][: W.shape[1]], vectors


def lowest_eigen(A: Any, k: int, near: np.ndarray | None, accuracy: float, seed: int = 0) -> Lowest:
    """The k lowest eigenvectors of the symmetric part of A (and others that were seen on the way), and their values.

    The block Lanczos method with full reorthogonalisation, from k columns as in top_singular; k of them see an eigenvalue k
    times. It ends when the residuals are below ``accuracy``, or when the sum of the k values falls no more by that much.
    """
    for room in (1, MORE):
        basis = _Eigenbasis(A, k, leaning(random_block(A.shape[0], k, seed), near), room)
        accurate, found = _grown(basis, accuracy), basis.lowest()
        if accurate:
            return found
        near = found.vectors
    return found._replace(accurate=False)


class _Eigenbasis:
    """Orthonormal rows Q, what A makes of them, and ``next``: the part of it that they do not span, which comes next."""

    def __init__(self, A: Any, k: int, start: np.ndarray, room: int):
        n, self.kept = len(start), room * max(KEPT, 2 * k)
        rows = min(n, room * max(STEPS, 5 * k)) + k
        self.A, self.k, self.j = A, k, 0
        self.Q, self.AQ, self.T = np.zeros((rows, n)), np.zeros((rows, n)), np.zeros((rows, rows))
        self.next = _orthonormal(start.T, self.Q[:0], 0.0)
        self.values, self.E = np.zeros(0), np.zeros((0, 0))
        self.residual, self.size = np.inf, 0.0

    def grow(self, accuracy: float) -> bool:
        """Until the k lowest are accurate enough; False when the room is used up."""
        looks: list[tuple[int, float]] = []
        blocks, next_look = max(self.j // self.k, 1), max(self.j // self.k, 1) + 3
        while self.j + len(self.next) <= len(self.Q):
            beat()
            old, self.j = self.j, self.j + len(self.next)
            new, j = slice(old, self.j), self.j
            self.Q[new] = self.next
            self.AQ[new] = symmetric_times(self.A, self.next.T).T
            self.T[:j, new] = self.Q[:j] @ self.AQ[new].T
            self.T[new, :j] = self.T[:j, new].T
            self.size = max(self.size, float(np.linalg.norm(self.AQ[new], axis=1).max()))
            self.next, blocks = _orthonormal(self.AQ[new], self.Q[:j], 1e-14 * self.size), blocks + 1
            if not len(self.next):  # A maps the rows to themselves: there is no more to be found
                self.look()
                return True
            if blocks >= next_look or j + len(self.next) > len(self.Q):
                next_look = blocks + max(3, blocks // 4)
                looks.append((blocks, -self.look()))
                if self.residual <= max(accuracy, RESIDUAL * self.size):
                    return True
                sure = accuracy > 0 or self.residual <= SURE * self.size
                if sure and still_to_come(looks) <= max(accuracy, self.k * ACCURACY * self.size):
                    return True
        return False

    def look(self) -> float:
        """The sum of the k lowest values; beside it, the sum of their residuals' lengths."""
        self.values, self.E = np.linalg.eigh(self.T[: self.j, : self.j])
        low = self.E[:, : self.k]
        beyond = low.T @ self.AQ[: self.j] - self.values[: self.k, None] * (low.T @ self.Q[: self.j])
        self.residual = float(np.linalg.norm(beyond, axis=1).sum())
        return float(self.values[: self.k].sum())

    def lowest(self) -> Lowest:
        wide = max(WIDE, self.k + SPARE)
        return Lowest((self.E[:, :wide].T @ self.Q[: self.j]).T, self.values[:wide], self.residual)

    def restart(self) -> None:
        """Keep the best of what is known, and go on from there (Wu and Simon 2000)."""
        kept = min(self.kept, self.j - 1)
        E = self.E[:, :kept].T
        self.Q[:kept], self.AQ[:kept] = E @ self.Q[: self.j], E @ self.AQ[: self.j]
        self.T[:kept, :kept] = np.diag(self.values[:kept])
        self.j = kept


def _orthonormal(rows: np.ndarray, basis: np.ndarray, least: float) -> np.ndarray:
    """What the rows have beyond the basis, as orthonormal rows; those of at most the length ``least`` are nothing."""
    rows = rows - (rows @ basis.T) @ basis
    _, lengths, rows = np.linalg.svd(rows, full_matrices=False)
    rows = rows[lengths > least]
    return np.linalg.qr((rows - (rows @ basis.T) @ basis).T)[0].T


def symmetric_times(A: Any, W: np.ndarray) -> np.ndarray:
    """The symmetric part of A times a block."""
    return (A @ W + A.T @ W) / 2


RITZ = {"singular": singular_ritz, "eigen": eigen_ritz}
TIMES: dict[str, Callable[[Any, np.ndarray], np.ndarray]] = {"singular": matmul, "eigen": symmetric_times}


def wider(block: np.ndarray, least: int, most: int) -> np.ndarray:
    """SPARE more than ``least`` columns, or more; at most ``most``."""
    missing = min(least + SPARE, most) - block.shape[1]
    if missing > 0:
        block = np.column_stack([block, random_block(len(block), missing, FILL + least)])
    return block[:, :most]
