"""The small quadratic programme of the corrective inner solver: min w' gram w / 2 - pull' w over the simplex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from condgrad.storage.stored import check_array, stored


def _validate(factor: Factor) -> None:
    n = len(factor.index)
    check_array(factor.index, (n,), "index", "i")
    check_array(factor.R, (n, n), "R")
    check_array(factor.shift, (), "shift")
    if np.min(factor.index, initial=0) < 0:
        raise ValueError("the number of an atom is negative")


@stored(validate=_validate)
@dataclass(frozen=True)
class Factor:
    """R'R = gram + shift over the atoms ``index``.

    Where weights sum to 1, adding the same number to every entry of the Gram matrix changes nothing; and it makes the matrix
    positive definite for atoms that are affinely independent.
    """

    index: np.ndarray
    R: np.ndarray
    shift: float

    def with_atom(self, gram: np.ndarray, new: int) -> Factor:
        """With one more atom, in the square of their number."""
        k = len(self.index)
        above = solve_triangular(self.R, gram[self.index, new] + self.shift, trans="T", check_finite=False)
        corner = gram[new, new] + self.shift - above @ above
        if corner <= 1e-13 * (gram[new, new] + self.shift):
            raise LinAlgError("the atom depends on the others")
        R = np.zeros((k + 1, k + 1))
        R[:k, :k], R[:k, k], R[k, k] = self.R, above, np.sqrt(corner)
        return Factor(np.append(self.index, new), R, self.shift)

    def minimiser(self, pull: np.ndarray) -> np.ndarray:
        """min w' gram w / 2 - pull' w subject to sum w = 1, of any sign."""
        sides = np.column_stack([pull, np.ones_like(pull)])
        halfway = solve_triangular(self.R, sides, trans="T", check_finite=False)
        return combined(solve_triangular(self.R, halfway, check_finite=False))


def factored(gram: np.ndarray, index: np.ndarray) -> Factor:
    inside = gram[np.ix_(index, index)]
    shift = max(float(np.trace(inside)) / len(index), np.finfo(float).tiny)
    return Factor(index, cholesky(inside + shift, check_finite=False), shift)


def combined(solved: np.ndarray) -> np.ndarray:
    """From the solutions for the right-hand sides (pull, 1): the combination that sums to 1."""
    free, constant = solved.T
    return free + (1 - free.sum()) / constant.sum() * constant


def nearest_weights(
    gram: np.ndarray, pull: np.ndarray, weights: np.ndarray, known: Factor | None = None
) -> tuple[np.ndarray, Factor | None]:
    """The minimiser, by an active-set method from the given weights (Wolfe 1976), and the factor of the atoms that it uses.

    The atom with the steepest descent is taken up; the minimiser over the affine hull of the atoms in use is a linear
    system; a weight that is negative in it is walked to and dropped; until no atom descends. ``known`` is a factor from
    before: for the same atoms and for one more it saves another factorisation.
    """
    w, last = weights, np.inf
    noise = 64 * np.finfo(float).eps * max(float(np.abs(gram).max()), float(np.abs(pull).max()), np.finfo(float).tiny)
    while True:
        slope = gram @ w - pull
        value = (slope @ w - pull @ w) / 2
        steepest = int(np.argmin(slope))
        used = w > 0
        if slope[steepest] < slope @ w - noise:
            used[steepest] = True
        elif last < np.inf:
            return w, known
        if value >= last:  # what still seems to descend is rounding
            return w, known
        last = value
        w, known = walked(gram, pull, w, np.flatnonzero(used), known)


def walked(
    gram: np.ndarray, pull: np.ndarray, w: np.ndarray, index: np.ndarray, known: Factor | None
) -> tuple[np.ndarray, Factor | None]:
    """From w to the minimiser over the atoms ``index``; those whose weight falls to 0 on the way are dropped."""
    w = w.copy()
    while True:
        target, known = affine_minimiser(gram, pull, index, known)
        falling = target < 0
        if not falling.any():
            w[index] = target
            return w / w.sum(), known
        shares = w[index[falling]] / (w[index[falling]] - target[falling])
        share = float(shares.min())
        w[index] = np.maximum((1 - share) * w[index] + share * target, 0.0)
        w[index[falling][np.argmin(shares)]] = 0.0
        index = index[w[index] > 0]


def affine_minimiser(
    gram: np.ndarray, pull: np.ndarray, index: np.ndarray, known: Factor | None
) -> tuple[np.ndarray, Factor | None]:
    """The minimiser over the atoms ``index`` with weights of any sign, and their factor if they have one.

    Where weights sum to 1, only the differences in ``pull`` count; the weights of atoms that are a rounding apart would be
    too large to be summed with more.
    """
    pull = pull[index] - pull[index[0]]
    try:
        if known is not None and np.array_equal(index[:-1], known.index):
            known = known.with_atom(gram, index[-1])
        elif known is None or not np.array_equal(index, known.index):
            known = factored(gram, index)
        return known.minimiser(pull), known
    except LinAlgError:  # atoms that depend on each other: any of the minimisers will do
        sides = np.column_stack([pull, np.ones(len(index))])
        return combined(np.linalg.lstsq(gram[np.ix_(index, index)] + 1.0, sides, rcond=None)[0]), None
