"""Singular vectors and eigenvectors of a matrix that is known through its products: arrays and structured points alike.

ARPACK is not used: where singular values are equal it starts again from random numbers that no seed reaches, so the
answers to one and the same direction differ (scipy 1.17, identity matrix).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.checks import BadOracle
from condgrad.points.arithmetic import Structured
from condgrad.points.low_rank import LowRank

STEPS, KEPT = 100, 30
"""Lanczos vectors before a restart, and the best of them that it keeps."""
RESTARTS = 40
ACCURACY = 1e-13
"""Of the value, relative to itself, where no other is asked for."""
RESIDUAL = 1e-11
"""Of the residual, relative to the value: then the value is as good as it gets."""
ENOUGH = 1e-6
"""What must be reached at the least when the restarts are used up: beyond, the oracle says that it failed."""
WIDE = 16
"""So many singular triplets are answered with at the most."""
SPARE = 4
"""So many columns a block is wider than the rank that is looked for."""
LEAN = 0.5
"""The random part of the start where there is something to lean towards."""


class Triplets(NamedTuple):
    """A right_i = value_i left_i, values falling: the first is as accurate as was asked, the others as they happen to be."""

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray
    residual: float


def random_block(n: int, columns: int) -> np.ndarray:
    """The same every time."""
    return np.random.default_rng(0).standard_normal((n, columns)) / np.sqrt(n)


def top_singular(A: Any, near: np.ndarray | None = None, accuracy: float = 0.0) -> Triplets:
    """The top singular triplet, its value within ``accuracy`` of the largest, and others that were seen on the way.

    Golub-Kahan bidiagonalisation with full reorthogonalisation, from a vector that is random, the same every time, and leans
    towards the columns of ``near``. The random part makes sure that no singular vector is missed. An accuracy is reached when
    the residual is below it, or when the value's growth says so: it is geometric, and what is still to come is extrapolated.
    """
    start = random_block(A.shape[1], 1)[:, 0]
    if near is not None and (length := np.linalg.norm(lean := near.sum(axis=1))) > 0:
        start = start * LEAN + lean / length
    basis = _Bidiagonal(A, start / np.linalg.norm(start))
    for _ in range(RESTARTS):
        if basis.grow(accuracy):
            return basis.triplets()
        basis.restart()
    found = basis.triplets()
    if found.residual <= ENOUGH * found.values[0]:
        return found
    raise BadOracle(
        f"The largest singular value was not found in {RESTARTS} restarts: {found.values[0]:.6g} is known to "
        f"{found.residual:.1g}."
    )


class _Bidiagonal:
    """A V' = U' B with orthonormal rows of U and V; A'U' = V'B' but for a last vector of length ``rest``."""

    def __init__(self, A: Any, start: np.ndarray):
        (m, n), steps = A.shape, min(STEPS, *A.shape)
        self.A, self.At = A, A.T
        self.U, self.V, self.B = np.zeros((steps, m)), np.zeros((steps + 1, n)), np.zeros((steps, steps + 1))
        self.V[0] = start
        self.j = self.cols = 0
        self.rest = self.largest = 0.0

    def grow(self, accuracy: float) -> bool:
        """Until the top triplet is accurate enough; False when the room is used up."""
        U, V, B = self.U, self.V, self.B
        looks: list[float] = []
        next_look = self.j + 3
        while self.j < len(U):
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
            if self.j == next_look or self.j == len(U):
                next_look = self.j + max(3, self.j // 4)
                value, last = self.value()
                looks.append(value)
                if self.rest * last <= max(accuracy, RESIDUAL * value):
                    return True
                if still_to_come(looks) <= max(accuracy, ACCURACY * value):
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
        j, kept = self.j, min(KEPT, self.j - 1)
        left, sigma, right = np.linalg.svd(self.B[:j, :j])
        self.U[:kept], self.V[:kept] = left[:, :kept].T @ self.U[:j], right[:kept] @ self.V[:j]
        self.V[kept] = self.V[j]
        self.B[:] = 0.0
        self.B[:kept, :kept], self.B[:kept, kept] = np.diag(sigma[:kept]), self.rest * left[-1, :kept]
        self.j = kept


def still_to_come(looks: list[float]) -> float:
    """What a value that grows ever more slowly has yet to grow, from its last three: a geometric series."""
    if len(looks) < 3:
        return np.inf
    before, now = looks[-2] - looks[-3], looks[-1] - looks[-2]
    rate = min(max(now / before, 0.2), 0.9) if before > 0 else 0.9
    return now * rate / (1 - rate)


def _beyond(vector: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """What is orthogonal to the rows of the basis; rounding makes the second pass necessary, and it is enough."""
    vector = vector - (basis @ vector) @ basis
    return vector - (basis @ vector) @ basis


def singular_ritz(A: Any, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One pass of subspace iteration: left vectors, values (falling) and right vectors of A as seen from the block W."""
    Q, _ = np.linalg.qr(A @ W)
    right, R = np.linalg.qr(A.T @ Q)
    P, values, Ot = np.linalg.svd(R.T)
    return Q @ P, values, right @ Ot.T


def eigen_ritz(A: Any, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for the symmetric part of A, by its largest eigenvalues: left and right vectors are one."""
    Q, _ = np.linalg.qr(np.column_stack([W, symmetric_times(A, W)]))
    values, E = np.linalg.eigh(Q.T @ symmetric_times(A, Q))
    vectors = Q @ E[:, ::-1][:, : W.shape[1]]
    return vectors, values[::-1][: W.shape[1]], vectors


def lowest_eigen(A: Any, k: int, near: np.ndarray, accuracy: float) -> tuple[np.ndarray, np.ndarray]:
    """The k lowest eigenvectors of the symmetric part of A (and a few more), and their values.

    Subspace iteration from ``near`` and random columns, with the last two sets of Ritz vectors in the block, which makes it
    converge like conjugate gradients (Knyazev 2001); until the sum of the k values no longer falls by ``accuracy``.
    """
    n = A.shape[0]
    block, before = np.column_stack([near, random_block(n, k + SPARE)])[:, : max(n, 1)], np.zeros((n, 0))
    looks: list[float] = []
    for _ in range(STEPS * RESTARTS // 4):
        Q, _ = np.linalg.qr(np.column_stack([block, symmetric_times(A, block), before])[:, :n])
        values, E = np.linalg.eigh(Q.T @ symmetric_times(A, Q))
        before, block = block, Q @ E[:, : k + SPARE]
        looks.append(-float(values[:k].sum()))
        size = max(abs(float(values[0])), abs(float(values[-1])))
        if Q.shape[1] == n or still_to_come(looks) <= max(accuracy, k * ACCURACY * size):
            return block, values[: k + SPARE]
    raise BadOracle(f"The {k} lowest eigenvalues were not found in {STEPS * RESTARTS // 4} passes.")


def symmetric_times(A: Any, W: np.ndarray) -> np.ndarray:
    """The symmetric part of A times a block."""
    return (A @ W + A.T @ W) / 2


RITZ = {"singular": singular_ritz, "eigen": eigen_ritz}


def wider(block: np.ndarray, least: int, most: int) -> np.ndarray:
    """SPARE more than ``least`` columns, or more; at most ``most``."""
    missing = min(least + SPARE, most) - block.shape[1]
    if missing > 0:
        block = np.column_stack([block, random_block(len(block), missing)])
    return block[:, :most]


def outer(U: np.ndarray, V: np.ndarray, like: Any) -> Any:
    """U V', of low rank where the other is structured, an array where it is one."""
    return LowRank(U, V) if isinstance(like, Structured) else U @ V.T
