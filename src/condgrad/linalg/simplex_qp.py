"""The small quadratic programme of the corrective inner solver: min w' gram w / 2 - pull' w over the simplex."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dpotrs, dtpqrt, dtrtrs

from condgrad.storage.stored import check_array, stored

INDEPENDENT = 1e-13
"""The square of the distance of an atom from the affine hull of the others, relative to its own square, below which it depends on
them as far as rounding can tell."""
RIDGE = 1e-10
"""Added to the diagonal for atoms that depend on each other, relative to the mean square of the atoms. A step with the factor is
then shorter than the best one, the value still falls along it, and steps are repeated until it does not."""
LARGER = 1e3
"""For an atom whose square is larger than the shift by this factor, the shift is chosen again."""
BLOCK = 8
"""Block size of the QR factorisation by which an atom leaves a factor."""
EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)


def _validate(factor: Factor) -> None:
    n = len(factor.index)
    check_array(factor.index, (n,), "index", "i")
    check_array(factor.R, (n, n), "R")
    check_array([factor.shift, factor.ridge], (2,), "shift and ridge")
    if np.min(factor.index, initial=0) < 0 or len(np.unique(factor.index)) < n:
        raise ValueError("the number of an atom is negative, or there twice")


@stored(validate=_validate)
@dataclass(frozen=True)
class Factor:
    """R'R = gram + shift + ridge I over the atoms ``index``, in this order.

    Where weights sum to 1, adding the same number to every entry of the Gram matrix changes nothing; and it makes the matrix
    positive definite for atoms that are affinely independent. For others there is a ridge.
    """

    index: np.ndarray
    R: np.ndarray
    shift: float
    ridge: float = 0.0

    def with_atom(self, gram: np.ndarray, new: int) -> Factor:
        """With one more atom, in the square of their number."""
        k = len(self.index)
        if gram[new, new] > LARGER * self.shift:
            return factored(gram, np.append(self.index, new))
        above = dtrtrs(self.R, gram[self.index, new] + self.shift, trans=1)[0]
        own = gram[new, new] + self.shift
        corner = own + self.ridge - above @ above
        if corner <= INDEPENDENT * own:
            return ridged(gram, np.append(self.index, new))
        R = np.zeros((k + 1, k + 1), order="F")
        R[:k, :k], R[:k, k], R[k, k] = self.R, above, np.sqrt(corner)
        return Factor(np.append(self.index, new), R, self.shift, self.ridge)

    def without(self, j: int) -> Factor:
        """Without the atom at place j of ``index``, in the square of their number."""
        k = len(self.index)
        R = np.zeros((k - 1, k - 1), order="F")
        R[:j, :j], R[:j, j:] = self.R[:j, :j], self.R[:j, j + 1 :]
        if j < k - 1:
            R[j:, j:] = dtpqrt(0, min(BLOCK, k - 1 - j), self.R[j + 1 :, j + 1 :], self.R[j : j + 1, j + 1 :])[0]
        return Factor(np.delete(self.index, j), R, self.shift, self.ridge)

    def direction(self, slope: np.ndarray) -> np.ndarray:
        """min d' gram d / 2 + slope' d subject to sum d = 0."""
        sides = np.ones((len(slope), 2), order="F")
        sides[:, 0] = slope
        solved = dpotrs(self.R, sides)[0]
        free, constant = solved[:, 0], solved[:, 1]
        return (free.sum() / constant.sum()) * constant - free


def factored(gram: np.ndarray, index: np.ndarray) -> Factor:
    """The factor of the atoms ``index``."""
    inside = gram[np.ix_(index, index)]
    shift = mean_square(inside)
    try:
        R = cholesky(inside + shift, check_finite=False)
        if np.all(np.diag(R) ** 2 > INDEPENDENT * (np.diag(inside) + shift)):
            return Factor(index, np.asfortranarray(R), shift)
    except LinAlgError:
        pass
    return ridged(gram, index)


def mean_square(gram: np.ndarray) -> float:
    """The mean of the squares of the atoms, above 0."""
    return max(float(np.trace(gram)) / len(gram), TINY)


def ridged(gram: np.ndarray, index: np.ndarray) -> Factor:
    """The factor of the atoms ``index``, which depend on each other."""
    inside = gram[np.ix_(index, index)]
    shift = mean_square(inside)
    ridge = RIDGE * shift * len(index)
    inside = inside + shift
    inside[np.diag_indices_from(inside)] += ridge
    return Factor(index, np.asfortranarray(cholesky(inside, check_finite=False)), shift, ridge)


def nearest_weights(
    gram: np.ndarray, pull: np.ndarray, weights: np.ndarray, known: Factor | None = None
) -> tuple[np.ndarray, Factor]:
    """The minimiser, by an active-set method from the given weights (Wolfe 1976), and the factor of the atoms that it uses.

    First the minimiser over the atoms in use. Then the atom with the steepest descent is taken up and the minimiser over the
    affine hull of the atoms in use is found by a linear system; a weight that is negative in it is walked to and dropped; until
    no atom descends. ``known`` is a factor from before: where it is that of the atoms in use, it is not computed again.
    """
    used = np.flatnonzero(weights > 0)
    if known is None or not np.array_equal(np.sort(known.index), used):
        known = factored(gram, used)
    noise = 64 * EPS * max(float(np.abs(gram).max()), float(np.abs(pull).max()), TINY)
    w, known = walked(gram, pull, weights, known)
    last = np.inf
    while True:
        slope = gram @ w - pull
        level = float(slope @ w)
        value = (level - float(pull @ w)) / 2
        steepest = int(np.argmin(slope))
        if slope[steepest] >= level - noise or value >= last:  # what still seems to descend is rounding
            return w, known
        last = value
        if w[steepest] == 0:
            known = known.with_atom(gram, steepest)
        w, known = walked(gram, pull, w, known)


def walked(gram: np.ndarray, pull: np.ndarray, w: np.ndarray, known: Factor) -> tuple[np.ndarray, Factor]:
    """From w to the minimiser over the atoms of the factor; those whose weight falls to 0 on the way are dropped.

    The step is computed from the slopes at w, of which only the differences count: so rounding in the factor changes its length
    a little and not where the walk ends.
    """
    w = w.copy()
    while len(known.index) > 1:
        index = known.index
        slope = (gram @ w - pull)[index]
        d = known.direction(slope - float(slope @ w[index]))
        falling = np.flatnonzero(d < 0)
        shares = w[index[falling]] / -d[falling]
        share = float(shares.min(initial=1.0))
        w[index] = np.maximum(w[index] + share * d, 0.0)
        if share >= 1.0:
            break
        w[index[falling[np.argmin(shares)]]] = 0.0
        for j in np.flatnonzero(w[index] == 0)[::-1]:
            known = known.without(int(j))
    used = known.index
    if not w[used].all():  # an atom whose weight is rounded to 0
        for j in np.flatnonzero(w[used] == 0)[::-1]:
            known = known.without(int(j))
    return w / w.sum(), known


def renumbered(factor: Factor, used: np.ndarray) -> Factor | None:
    """The factor with the places in ``used``, which increase, for the numbers of its atoms; None if it has other atoms."""
    if not np.array_equal(np.sort(factor.index), used):
        return None
    return replace(factor, index=np.searchsorted(used, factor.index))
