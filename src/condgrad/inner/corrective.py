"""The corrective inner solver: the best point in the hull of the atoms seen, re-solved each time an atom is added."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import sqrt
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from condgrad.checks import whole
from condgrad.inner.condg import EPS
from condgrad.points import inner, norm2
from condgrad.protocols import InnerStop, Point, Prox


@dataclass(frozen=True)
class Hull:
    """A point as a convex combination of atoms, with their Gram matrix: what is kept between outer steps.

    Atoms are kept as seen from ``origin``, a point of the set: far from 0 their Gram matrix would lose its digits.
    """

    origin: Point
    atoms: tuple[Point, ...]
    gram: np.ndarray
    weights: np.ndarray

    def point(self) -> Point:
        total = self.origin
        for i in np.flatnonzero(self.weights):
            total = total + float(self.weights[i]) * self.atoms[i]
        return total

    def with_atom(self, atom: Point) -> Hull:
        """One more candidate, with weight 0."""
        atom = atom - self.origin
        row = np.array([inner(a, atom) for a in self.atoms])
        gram = np.block([[self.gram, row[:, None]], [row[None, :], np.full((1, 1), norm2(atom))]])
        return Hull(self.origin, (*self.atoms, atom), gram, np.append(self.weights, 0.0))

    def nearest(self, z: Point) -> Hull:
        """The point of the hull that is nearest to z; atoms that it does not need are dropped."""
        from_origin = z - self.origin
        pull = np.array([inner(a, from_origin) for a in self.atoms])
        weights = nearest_weights(self.gram, pull, self.weights)
        used = np.flatnonzero(weights)
        atoms = tuple(self.atoms[i] for i in used)
        return Hull(self.origin, atoms, self.gram[np.ix_(used, used)], weights[used])


@dataclass(frozen=True)
class Corrective:
    """The prox subproblem as a min-norm-point problem: the point of the atoms' hull that is nearest to z = u - gamma g.

    Each linear oracle call adds one atom, then a small quadratic programme over the simplex of weights is solved exactly.
    The atoms in use are kept between outer steps, so near a solution a call or two are enough; on a polytope the
    whole is finite. The centre u is itself offered as an atom: no step is worse than condg's.
    """

    max_calls: int | None = None

    def __post_init__(self) -> None:
        if self.max_calls is not None:
            whole(self.max_calls, "max_calls")

    def init(self, domain: Any, x: Point) -> Hull:
        return Hull(x, (x - x,), np.zeros((1, 1)), np.ones(1))

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: Hull) -> Prox:
        z = u - gamma * g
        hull = memory.with_atom(u)
        for t in count(1):
            hull = hull.nearest(z)
            u_t = hull.point()
            direction = (1 / gamma) * (u_t - z)
            v_t = domain.lmo(direction)
            V = inner(direction, u_t - v_t)
            # the weights bring rounding of their own to the point, hence the 8
            noise = 8 * EPS * (sqrt(norm2(u_t)) + sqrt(norm2(z))) / gamma * sqrt(norm2(u_t - v_t))
            if stop(V, norm2(u_t - u) / gamma) or t == self.max_calls or noise >= V:
                break
            larger = hull.with_atom(v_t)
            distances2 = larger.gram[-1, -1] + np.diag(hull.gram) - 2 * larger.gram[-1, :-1]
            if distances2.min() <= 0.0:
                break  # the oracle has nothing new: what is left of the gap is the rounding of the weights
            hull = larger
        return Prox(u_t, max(V, 0.0), hull)


def nearest_weights(gram: np.ndarray, pull: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """min w' gram w / 2 - pull' w over the simplex, by an active-set method from the given weights (Wolfe 1976).

    The atom with the steepest descent is taken up; the minimiser over the affine hull of the atoms in use is a linear
    system; a weight that is negative in it is walked to and dropped; until no atom descends.
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
            return w
        if value >= last:  # what still seems to descend is rounding
            return w
        w, last = walked(gram, pull, w, np.flatnonzero(used)), value


def walked(gram: np.ndarray, pull: np.ndarray, w: np.ndarray, index: np.ndarray) -> np.ndarray:
    """From w to the minimiser over the atoms ``index``; those whose weight falls to 0 on the way are dropped."""
    w = w.copy()
    while True:
        target = affine_minimiser(gram[np.ix_(index, index)], pull[index])
        falling = target < 0
        if not falling.any():
            w[index] = target
            return w / w.sum()
        shares = w[index[falling]] / (w[index[falling]] - target[falling])
        share = float(shares.min())
        w[index] = np.maximum((1 - share) * w[index] + share * target, 0.0)
        w[index[falling][np.argmin(shares)]] = 0.0
        index = index[w[index] > 0]


def affine_minimiser(gram: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """min w' gram w / 2 - pull' w subject to sum w = 1, of any sign.

    Where the sum is 1, adding a multiple of 1 1' to the Gram matrix changes nothing, and makes it positive definite.
    """
    ones = np.ones_like(pull)
    sides = np.column_stack([pull, ones])
    try:
        factor = cholesky(gram + max(float(np.trace(gram)) / len(pull), np.finfo(float).tiny))
        free, constrained = solve_triangular(factor, solve_triangular(factor, sides, trans="T")).T
    except LinAlgError:  # atoms that depend on each other: any of the minimisers will do
        free, constrained = np.linalg.lstsq(gram + 1.0, sides, rcond=None)[0].T
    return free + (1 - free.sum()) / constrained.sum() * constrained
