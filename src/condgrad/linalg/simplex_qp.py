"""Active-set method for the quadratic programme min_w w' gram w / 2 - pull' w over the unit simplex.

The corrective inner solver uses it to find the point of a convex hull of atoms that is nearest to a point z. The entries of w are
the weights of the atoms, ``gram`` is the Gram matrix of the atoms, and ``pull`` has the inner products of the atoms with z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dtpqrt, dtrtrs

from condgrad.storage.stored import check_array, stored

INDEPENDENT = 1e-13
"""Atoms are treated as affinely dependent if R_ii^2 <= INDEPENDENT (R'R)_ii for a diagonal entry of the Cholesky factor R. Atom i
then lies nearly in the affine hull of the atoms before it."""
RIDGE = 1e-10
"""Ridge for affinely dependent atoms: the number that is added to the diagonal of their shifted Gram matrix, relative to the sum
of the squared norms of the atoms. With a ridge a step does not reach the minimum, but the value still decreases. Steps are
repeated until it stops decreasing."""
MAX_NORM_RATIO = 1e3
"""The shift of a Cholesky factor (:class:`Factor`) is too small for a new atom whose squared norm is more than MAX_NORM_RATIO
times the shift. The Cholesky factor is then computed again, with a new shift."""
MIN_GUESSED = 4
"""The value decreases along an atom if it decreases when the weights move towards weight 1 on this atom. If, after the first
optimisation of the weights, it decreases along at least MIN_GUESSED atoms with weight 0, :func:`guess_active` guesses which atoms
are active at the minimiser. Otherwise atoms become active one by one."""
MAX_ROUNDS = 8
"""Maximum number of rounds of a guess. Each round computes one Cholesky factor."""
BLOCK = 8
"""Block size of the LAPACK routine that removes an atom from a factor by a QR factorisation."""
EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)


def _validate(factor: Factor) -> None:
    n = len(factor.index)
    check_array(factor.index, (n,), "index", "i")
    check_array(factor.R, (n, n), "R")
    check_array(factor.ones, (n,), "ones")
    check_array([factor.shift, factor.ridge], (2,), "shift and ridge")
    if np.min(factor.index, initial=0) < 0 or len(np.unique(factor.index)) < n:
        raise ValueError("the index of an atom is negative, or occurs twice")


@stored(validate=_validate)
@dataclass(frozen=True)
class Factor:
    """Cholesky factor R'R = gram + shift + ridge I of the atoms with the indices ``index``, in this order.

    ``shift`` is added to every entry of the Gram matrix. The shift does not change the minimiser, because the weights sum to 1.
    If the atoms are affinely independent, the shifted matrix is positive definite. If the atoms are affinely dependent, ``ridge``
    is added to the diagonal. ``ones`` is the solution of R' ones = 1, computed by default.
    """

    index: np.ndarray
    R: np.ndarray
    shift: float
    ridge: float = 0.0
    ones: Any = None

    def __post_init__(self) -> None:
        if self.ones is None:
            object.__setattr__(self, "ones", dtrtrs(self.R, np.ones(len(self.index)), trans=1)[0])

    def with_atom(self, gram: np.ndarray, new: int) -> Factor:
        """Return the factor with the atom ``new`` added. The cost is quadratic in the number of atoms."""
        k = len(self.index)
        if gram[new, new] > MAX_NORM_RATIO * self.shift:
            return compute_factor(gram, np.append(self.index, new))
        above = dtrtrs(self.R, gram[self.index, new] + self.shift, trans=1)[0]
        own = gram[new, new] + self.shift
        corner = own + self.ridge - above @ above
        if corner <= INDEPENDENT * own:
            return compute_ridged_factor(gram, np.append(self.index, new))
        R = np.zeros((k + 1, k + 1), order="F")
        R[:k, :k], R[:k, k], R[k, k] = self.R, above, np.sqrt(corner)
        ones = np.append(self.ones, (1 - above @ self.ones) / R[k, k])
        return Factor(np.append(self.index, new), R, self.shift, self.ridge, ones)

    def without(self, j: int) -> Factor:
        """Return the factor without the atom ``index[j]``. The cost is quadratic in the number of atoms."""
        k = len(self.index)
        R = np.zeros((k - 1, k - 1), order="F")
        R[:j, :j], R[:j, j:] = self.R[:j, :j], self.R[:j, j + 1 :]
        if j < k - 1:
            R[j:, j:] = dtpqrt(0, min(BLOCK, k - 1 - j), self.R[j + 1 :, j + 1 :], self.R[j : j + 1, j + 1 :])[0]
        return Factor(np.delete(self.index, j), R, self.shift, self.ridge)

    def direction(self, slope: np.ndarray) -> np.ndarray:
        """Return the minimiser d of d' gram d / 2 + slope' d subject to sum d = 0."""
        y = dtrtrs(self.R, slope, trans=1)[0]
        return dtrtrs(self.R, (y @ self.ones) / (self.ones @ self.ones) * self.ones - y)[0]


def compute_factor(gram: np.ndarray, index: np.ndarray) -> Factor:
    """Compute the factor of the atoms ``index``. If the atoms are affinely dependent, the factor has a ridge."""
    inside = gram_of(gram, index)
    shift = mean_square(inside)
    try:
        R = cholesky(inside + shift, check_finite=False)
        if np.all(np.diag(R) ** 2 > INDEPENDENT * (np.diag(inside) + shift)):
            return Factor(index, np.asfortranarray(R), shift)
    except LinAlgError:
        pass
    return compute_ridged_factor(gram, index)


def gram_of(gram: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The Gram matrix of the atoms ``index``. This is several times as fast as an index of two arrays."""
    return gram.take(index, axis=0).take(index, axis=1)


def mean_square(gram: np.ndarray) -> float:
    """The mean squared norm of the atoms; TINY if the mean is 0."""
    return max(float(np.trace(gram)) / len(gram), TINY)


def compute_ridged_factor(gram: np.ndarray, index: np.ndarray) -> Factor:
    """Compute the factor of the atoms ``index`` with a ridge, for atoms that are affinely dependent."""
    inside = gram_of(gram, index)
    shift = mean_square(inside)
    ridge = RIDGE * shift * len(index)
    inside = inside + shift
    inside[np.diag_indices_from(inside)] += ridge
    return Factor(index, np.asfortranarray(cholesky(inside, check_finite=False)), shift, ridge)


def nearest_weights(
    gram: np.ndarray, pull: np.ndarray, weights: np.ndarray, known: Factor | None = None
) -> tuple[np.ndarray, Factor]:
    """Solve the quadratic programme by an active-set method that starts at the given weights (Wolfe 1976).

    An atom is active if its weight is positive. First the weights of the active atoms are optimised (:func:`optimise_weights`).
    Then the atom along which the value decreases fastest becomes active, and the weights are optimised again. The method ends
    when the value decreases along no atom. If the value at first decreases along several atoms, :func:`guess_active` guesses the
    active atoms.

    ``known`` is a factor from an earlier call. It is used if it is the factor of the active atoms.

    Returns the minimiser w, and the Cholesky factor of the atoms that are active in w.
    """
    if known is None or len(known.index) < np.count_nonzero(weights) or not weights[known.index].all():
        known = compute_factor(gram, np.flatnonzero(weights))
    # no entry of a Gram matrix is larger than the largest entry of its diagonal
    noise = 64 * EPS * max(float(gram.diagonal().max()), float(np.abs(pull).max()), TINY)
    w, slope, known = optimise_weights(gram, pull, weights, gram @ weights - pull, known)
    last = np.inf
    while True:
        level = float(slope @ w)
        value = (level - float(pull @ w)) / 2
        steepest = int(np.argmin(slope))
        if slope[steepest] >= level - noise or value >= last:  # a smaller decrease is a rounding error
            return w, known
        guess = None
        if last == np.inf and np.count_nonzero((slope < level - noise) & (w == 0)) >= MIN_GUESSED:
            guess = guess_active(gram, pull, np.flatnonzero((slope < level - noise) | (w > 0)), noise)
        last = value
        if guess is not None and float(guess[1] @ guess[0] - pull @ guess[0]) / 2 < value:
            w, slope, known = guess
            continue
        if w[steepest] == 0:
            known = known.with_atom(gram, steepest)
        w, slope, known = optimise_weights(gram, pull, w, slope, known)


def guess_active(
    gram: np.ndarray, pull: np.ndarray, active: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray, Factor] | None:
    """Guess the atoms that are active at the minimiser, starting with the atoms ``active``.

    Each round minimises the value over the affine hull of the active atoms. If some of the weights are negative, all atoms with a
    negative weight are dropped. If no weight is negative, all atoms along which the value decreases become active.

    Returns the weights, the slope at these weights and the factor; None if weights stay negative in all rounds. The guess can be
    wrong. The caller therefore uses it only if it decreases the value. In both cases, further atoms then become active one by
    one.
    """
    found = None
    for _ in range(MAX_ROUNDS):
        factor = compute_factor(gram, active)
        inside = gram_of(gram, active)
        start = np.full(len(active), 1 / len(active))
        weights = start + factor.direction(inside @ start - pull[active])
        if weights.min() <= 0:
            active = active[weights > 0]
            continue
        w = np.zeros(len(pull))
        w[active] = weights / weights.sum()
        slope = gram @ w - pull
        found = w, slope, factor
        entering = slope < float(slope @ w) - noise
        entering[active] = False
        if not entering.any():
            break
        active = np.flatnonzero(entering | (w > 0))
    return found


def optimise_weights(
    gram: np.ndarray, pull: np.ndarray, w: np.ndarray, slope: np.ndarray, known: Factor
) -> tuple[np.ndarray, np.ndarray, Factor]:
    """Optimise the weights of the atoms of the factor ``known``, starting at w. Atoms whose weight becomes 0 are dropped.

    Each step goes towards the minimiser over the affine hull of the atoms, which is the solution of a linear system. The step
    ends early if a weight becomes 0. The step is computed from the slope at w. Rounding errors of the factor therefore change a
    step a little, but not the point at which the steps end. ``slope`` is gram w - pull at the given w.

    Returns the weights, the slope at these weights, and the factor of the remaining atoms.
    """
    w = w.copy()
    while len(known.index) > 1:
        index = known.index
        d = known.direction(slope[index] - float(slope[index] @ w[index]))
        falling = np.flatnonzero(d < 0)
        shares = w[index[falling]] / -d[falling]
        share = float(shares.min(initial=1.0))
        w[index] = np.maximum(w[index] + share * d, 0.0)
        if share < 1.0:
            w[index[falling[np.argmin(shares)]]] = 0.0
        zeros = np.flatnonzero(w[index] == 0)
        for j in zeros[::-1]:
            known = known.without(int(j))
        if share >= 1.0:
            break
        slope = gram @ w - pull
    w /= w.sum()
    return w, gram @ w - pull, known


def renumbered(factor: Factor, used: np.ndarray) -> Factor | None:
    """Renumber the atoms ``used`` (increasing indices) of a factor from 0. None if ``used`` are not the factor's atoms."""
    if not np.array_equal(np.sort(factor.index), used):
        return None
    return replace(factor, index=np.searchsorted(used, factor.index))
