"""An upper bound on the largest eigenvalue of a symmetric operator that is known through its products.

The block Lanczos method finds lower bounds: its Ritz values. An eigenvector v whose eigenvalue x lies beyond them has parts
y_1, y_2, ... in the blocks of the basis, which follow from the first one by the recurrence of T and grow from block to block. But
|v| = 1, and y_1 is hardly ever small when the first block is random. So once the growth is larger than some number, which
depends on the columns and on the doubt that is left, there is no such x. For one column these are the bounds of van Dorsselaer,
Hochstenbach and van der Vorst (2000). More columns cost little and save most of the steps: that all miss v is unlikely.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from condgrad.linalg.qr import qr
from condgrad.runtime.signals import beat

DOUBT = 1e-8
"""The probability, over the random start, that a bound is wrong."""
COLUMNS = 8
SEED = 2**33
"""Goes before the caller's: no data is made from it."""
LEAST, MOST = 3, 60
"""Blocks: so many before what is found beyond the edge is worth having, and so many at the most."""
TINY = 1e-300
WIDE = 16
"""So many Ritz vectors are answered with at the most."""
FURTHER = np.geomspace(0.01, 100, 20)
"""Where a bound is looked for that has not been asked for, beyond the largest Ritz value, in units of what they span."""


class Edge(NamedTuple):
    """No eigenvalue is larger than ``bound``; where it is not the one that was needed, Ritz vectors, the largest values first."""

    bound: float
    vectors: np.ndarray


Times = Callable[[np.ndarray], np.ndarray]
Noise = Callable[[float], float]


def edge(times: Times, apart: np.ndarray, needed: float, noise: Noise, seed: int) -> Edge:
    """A bound on the largest eigenvalue outside of the (orthonormal) columns of ``apart``, from as few products as show that it
    is at most ``needed``, or that it is not; ``noise`` is what rounding can do to a product of a given size."""
    basis, growth = _Basis(apart, seed), _Growth(needed)
    if not basis.next.size:
        return Edge(-inf, basis.next)
    for step in range(1, MOST + 1):
        beat()
        more = basis.grow(times, noise)
        growth.go_on(basis.squares[-1], basis.links[step - 2] if step > 1 else None)
        if growth.shows(basis.luck):
            return Edge(needed, apart[:, :0])
        if not more or (growth.ended and step >= LEAST and not basis.shrinks):
            break
    values, vectors = basis.ritz()
    if more:
        return Edge(basis.bound(values[0], values[0] - values[-1]), vectors)
    return Edge(values[0] + basis.noise * sqrt(max(basis.luck, 1.0)), vectors)


class _Basis:
    """Orthonormal rows Q, after those set apart, in blocks; T = Q A Q' has ``squares`` on its diagonal and ``links`` below."""

    def __init__(self, apart: np.ndarray, seed: int):
        n, k = apart.shape
        p = min(COLUMNS, n - k)
        random = np.random.default_rng((SEED, seed)).standard_normal((n, p))
        self.Q = np.empty((k + 8 * p, n))
        self.Q[:k] = apart.T
        self.apart = self.used = k
        random -= apart @ (apart.T @ random)
        self.next = qr(random - apart @ (apart.T @ random))[0]
        self.noise = 0.0
        self.squares: list[np.ndarray] = []
        self.links: list[np.ndarray] = []
        self.luck = 1 / betaincinv(p / 2, (n - k - p) / 2, DOUBT) if n - k > p else 0.0
        """The part of a vector in the first block is smaller than one in so many, in squares, with the probability DOUBT."""

    @property
    def shrinks(self) -> bool:
        """There is hardly any more to see."""
        return len(self.links[-1]) < len(self.squares[0])

    def grow(self, times: Times, noise: Noise) -> bool:
        """One more block; False where the operator maps the rows to themselves, so that there is no more to see."""
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
        if np.abs(link.diagonal()).min() <= 1e6 * self.noise:  # columns may have come to depend on each other
            P, lengths, Ot = np.linalg.svd(link)
            kept = lengths > self.noise
            self.next, link = np.ascontiguousarray(self.next @ P[:, kept]), lengths[kept, None] * Ot[kept]
            again = self.next - rows.T @ (rows @ self.next)
            again -= rows.T @ (rows @ again)
            Z, cosines, Yt = np.linalg.svd(again, full_matrices=False)
            true = cosines > 0.5  # the others were rounding: they lie in the rows
            self.next, link = np.ascontiguousarray(Z[:, true]), (cosines[true, None] * Yt[true]) @ link
            self.next = self.next - rows.T @ (rows @ self.next)
        self.links.append(link)
        return len(link) > 0

    def ritz(self) -> tuple[np.ndarray, np.ndarray]:
        """The Ritz values, falling, and the vectors of the largest."""
        size = self.used - self.apart
        T, at = np.zeros((size, size)), 0
        for square, link in zip(self.squares, self.links, strict=True):
            p, q = len(square), len(link)
            T[at : at + p, at : at + p] = square
            if at + p < size:
                T[at + p : at + p + q, at : at + p] = link
            at += p
        values, E = np.linalg.eigh(T)  # reads what is below the diagonal
        return values[::-1], self.Q[self.apart : self.used].T @ E[:, : -WIDE - 1 : -1]

    def bound(self, largest: float, spread: float) -> float:
        """The first of some places beyond the largest Ritz value that is shown to be a bound."""
        for place in largest + FURTHER * max(spread, self.noise):
            growth = _Growth(place)
            for square, link in zip(self.squares, [None, *self.links], strict=False):
                growth.go_on(square, link)
            if growth.shows(self.luck):
                return float(place)
        return inf


class _Growth:
    """How much longer than its first part a vector is at the least, if its eigenvalue is x or beyond; in squares.

    By an elimination of x - T: its pivots D_j rise with x, and K_j = B_j D_j^-1 B_j' falls (B_j are the links). The parts have
    B_j' y_(j+1) = D_j y_j, so y_j' D_j y_j = y_(j+1)' K_j y_(j+1), which is at most mu y_(j+1)' D_(j+1) y_(j+1), and so on:
    with |y_m| <= 1, |y_1|^2 is at most the product of the mu, times |K_(m-1)|, over the least eigenvalue of D_1.
    """

    def __init__(self, x: float):
        self.x, self.ended = x, x == -inf
        """Ended where a pivot is not positive: there are Ritz values beyond x."""
        self.least, self.product, self.root = 0.0, 0.0, np.eye(0)

    def go_on(self, square: np.ndarray, link: np.ndarray | None) -> None:
        """With the next block of T."""
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

    def shows(self, luck: float) -> bool:
        """There is no eigenvalue beyond x."""
        return not self.ended and self.least >= luck


def _norm2(matrix: np.ndarray) -> float:
    """The square of the largest singular value."""
    return float(np.linalg.norm(matrix, 2)) ** 2
