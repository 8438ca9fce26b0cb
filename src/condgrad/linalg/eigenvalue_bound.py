"""An upper bound on the largest eigenvalue of a symmetric operator, computed from products with the operator only.

The Ritz values of the block Lanczos method are lower bounds on the largest eigenvalue. An upper bound is found as follows. Let T
be the block tridiagonal matrix of the operator in the Lanczos basis. Assume that there is an eigenvalue x larger than all Ritz
values. Let v be a unit eigenvector for x, and y_1, y_2, ... the components of v in the blocks of the basis. The recurrence of T
gives y_2, y_3, ... from y_1, and their norms grow from block to block. Since |v| = 1, large growth means that y_1 is small, which
is improbable for a random first block. The required growth depends on the number of columns of a block and on the accepted
probability of failure. If the growth is larger than required, there is no eigenvalue x, except with the accepted probability.

For blocks of one column, these are the bounds of van Dorsselaer, Hochstenbach and van der Vorst (2000). With more columns, a step
takes little more time, and far fewer steps are needed, because v is rarely nearly orthogonal to all columns of the first block.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from condgrad.linalg.qr import qr
from condgrad.runtime.signals import heartbeat

FAILURE_PROBABILITY = 1e-8
"""Accepted probability that a bound is wrong. The random first block is the only source of randomness."""
COLUMNS = 8
"""Number of columns of a block."""
SEED = 2**33
"""Prefix of the caller's seed, so that the random first block is independent of data drawn with the same seed."""
MIN_BLOCKS, MAX_BLOCKS = 3, 60
"""Minimum and maximum number of blocks. With fewer blocks than MIN_BLOCKS, the Ritz vectors are too inaccurate."""
TINY = 1e-300
"""Lower limit of a divisor, to avoid a division by 0."""
MAX_VECTORS = 16
"""Maximum number of Ritz vectors returned."""
FALLBACK_BOUNDS = np.geomspace(0.01, 100, 20)
"""Candidates for the bound if the target can't be proven. Each candidate is the largest Ritz value plus one of these numbers
times the range of the Ritz values."""


class EigenvalueBound(NamedTuple):
    """Upper bound on the eigenvalues. If the bound is above the target, ``vectors`` has Ritz vectors, largest value first."""

    bound: float
    vectors: np.ndarray


Times = Callable[[np.ndarray], np.ndarray]
Noise = Callable[[float], float]


def eigenvalue_bound(times: Times, known: np.ndarray, target: float, noise: Noise, seed: int) -> EigenvalueBound:
    """Upper bound on the largest eigenvalue on the orthogonal complement of the (orthonormal) columns of ``known``.

    ``times`` multiplies the operator with a block. ``noise`` returns the rounding error of a product with a given norm. The
    iteration stops when ``target`` is proven to be a bound, or when a Ritz value is above ``target``.
    """
    basis, growth = _Basis(known, seed), _Growth(target)
    if not basis.next.size:
        return EigenvalueBound(-inf, basis.next)
    for step in range(1, MAX_BLOCKS + 1):
        heartbeat()
        more = basis.grow(times, noise)
        growth.add_block(basis.squares[-1], basis.links[step - 2] if step > 1 else None)
        if growth.proves(basis.required_growth):
            return EigenvalueBound(target, known[:, :0])
        if not more or (growth.ended and step >= MIN_BLOCKS and not basis.shrinks):
            break
    values, vectors = basis.ritz()
    if more:
        return EigenvalueBound(basis.bound(values[0], values[0] - values[-1]), vectors)
    return EigenvalueBound(values[0] + basis.noise * sqrt(max(basis.required_growth, 1.0)), vectors)


class _Basis:
    """Block Lanczos basis of the operator A. Q has orthonormal rows; its first rows are the columns of ``known``.

    On the remaining rows, T = Q A Q' is block tridiagonal, with the diagonal blocks ``squares`` and the blocks ``links`` below
    the diagonal.
    """

    def __init__(self, known: np.ndarray, seed: int):
        n, k = known.shape
        p = min(COLUMNS, n - k)
        random = np.random.default_rng((SEED, seed)).standard_normal((n, p))
        self.Q = np.empty((k + 8 * p, n))
        self.Q[:k] = known.T
        self.known = self.used = k
        random -= known @ (known.T @ random)
        self.next = qr(random - known @ (known.T @ random))[0]
        self.noise = 0.0
        self.squares: list[np.ndarray] = []
        self.links: list[np.ndarray] = []
        self.required_growth = 1 / betaincinv(p / 2, (n - k - p) / 2, FAILURE_PROBABILITY) if n - k > p else 0.0
        """Number g for which |y_1|^2 < 1/g has the probability FAILURE_PROBABILITY, where y_1 is the component of a fixed unit
        vector in the random first block."""

    @property
    def shrinks(self) -> bool:
        """Whether the last block has fewer columns than the first. The Krylov space is then nearly exhausted."""
        return len(self.links[-1]) < len(self.squares[0])

    def grow(self, times: Times, noise: Noise) -> bool:
        """Add a block. Returns whether there is a next block; there is none if the rows span an invariant subspace."""
        p = self.next.shape[1]
        if self.used + p > len(self.Q):
            self.Q = np.concatenate([self.Q, np.empty((8 * p, self.Q.shape[1]))])
        self.Q[self.used : self.used + p] = self.next.T
        self.used += p
        rows, new = self.Q[: self.used], times(self.next)
        inside = rows @ new
        new = new - rows.T @ inside
        new -= rows.T @ (rows @ new)
        self.squares.append((inside[-p:] + inside[-p:].T) / 2)
        self.noise = max(self.noise, noise(float(np.linalg.norm(inside))))
        self.next, link = qr(new)
        if np.abs(link.diagonal()).min() <= 1e6 * self.noise:  # columns may be linearly dependent
            P, lengths, Ot = np.linalg.svd(link)
            kept = lengths > self.noise
            self.next, link = np.ascontiguousarray(self.next @ P[:, kept]), lengths[kept, None] * Ot[kept]
            again = self.next - rows.T @ (rows @ self.next)
            again -= rows.T @ (rows @ again)
            Z, cosines, Yt = np.linalg.svd(again, full_matrices=False)
            true = cosines > 0.5  # the other directions are rounding errors: they lie in the span of the rows
            self.next, link = np.ascontiguousarray(Z[:, true]), (cosines[true, None] * Yt[true]) @ link
            self.next = self.next - rows.T @ (rows @ self.next)
        self.links.append(link)
        return len(link) > 0

    def ritz(self) -> tuple[np.ndarray, np.ndarray]:
        """All Ritz values in decreasing order, and the Ritz vectors of the MAX_VECTORS largest values."""
        size = self.used - self.known
        T, at = np.zeros((size, size)), 0
        for square, link in zip(self.squares, self.links, strict=True):
            p, q = len(square), len(link)
            T[at : at + p, at : at + p] = square
            if at + p < size:
                T[at + p : at + p + q, at : at + p] = link
            at += p
        values, E = np.linalg.eigh(T)  # reads the lower triangle only
        return values[::-1], self.Q[self.known : self.used].T @ E[:, : -MAX_VECTORS - 1 : -1]

    def bound(self, largest: float, spread: float) -> float:
        """The smallest candidate (FALLBACK_BOUNDS) that is proven to be a bound; infinite if no candidate is proven."""
        for candidate in largest + FALLBACK_BOUNDS * max(spread, self.noise):
            growth = _Growth(candidate)
            for square, link in zip(self.squares, [None, *self.links], strict=False):
                growth.add_block(square, link)
            if growth.proves(self.required_growth):
                return float(candidate)
        return inf


class _Growth:
    """Lower bound ``least`` on the growth |v|^2 / |y_1|^2 for an eigenvector v with an eigenvalue of at least x.

    The bound follows from block elimination of x - T. Let B_j be the links, D_j the pivots, and K_j = B_j D_j^-1 B_j'. As x
    grows, the D_j increase and the K_j decrease. The components y_j satisfy B_j' y_(j+1) = D_j y_j. Therefore
    y_j' D_j y_j = y_(j+1)' K_j y_(j+1) <= mu_j y_(j+1)' D_(j+1) y_(j+1) for some number mu_j. This inequality is applied for
    j = 1, 2, ... up to the last component y_m, for which |y_m| <= 1. Thus |y_1|^2 is at most the product of all mu_j, times
    |K_(m-1)|, divided by the least eigenvalue of D_1.
    """

    def __init__(self, x: float):
        self.x, self.ended = x, x == -inf
        """``ended`` is True after a pivot that is not positive definite. A Ritz value is then above x."""
        self.least, self.product, self.root = 0.0, 0.0, np.eye(0)

    def add_block(self, square: np.ndarray, link: np.ndarray | None) -> None:
        """Continue the elimination with the next block of T."""
        if self.ended:
            return
        pivot = -square
        pivot.flat[:: len(square) + 1] += self.x
        half = np.eye(0)
        if link is not None:
            half = np.linalg.solve(self.root, link.T)  # half' half = K
            pivot -= half.T @ half
            self.least = max(self.least, 1 / max(self.product * _norm2(half), TINY))
        try:
            self.root = np.linalg.cholesky(pivot)
        except np.linalg.LinAlgError:
            self.ended = True
            return
        if link is None:
            self.product = 1 / float(np.linalg.eigvalsh(pivot)[0])
        else:
            self.product *= _norm2(np.linalg.solve(self.root, half.T))

    def proves(self, required_growth: float) -> bool:
        """Whether the growth proves that no eigenvalue is larger than x, except with probability FAILURE_PROBABILITY."""
        return not self.ended and self.least >= required_growth


def _norm2(matrix: np.ndarray) -> float:
    """Square of the spectral norm."""
    return float(np.linalg.norm(matrix, 2)) ** 2
