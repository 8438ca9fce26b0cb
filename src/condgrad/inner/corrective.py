"""The corrective inner solver: the best point in the hull of the atoms seen, re-solved each time an atom is added."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import sqrt
from typing import Any

import numpy as np

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
            noise = EPS * (sqrt(norm2(u_t)) + sqrt(norm2(z))) / gamma * sqrt(norm2(u_t - v_t))
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

    The minimiser over the affine hull of the atoms in use is a linear system; a negative weight in it is walked to and
    dropped, the atom with the steepest descent is taken up, until there is none.
    """
    w = weights.copy()
    used = w > 0
    scale = np.finfo(float).eps * max(float(np.abs(gram).max()), float(np.abs(pull).max()), np.finfo(float).tiny)
    for _ in range(10 * len(w) + 10):
        index = np.flatnonzero(used)
        target = affine_minimiser(gram[np.ix_(index, index)], pull[index])
        if target.min() >= 0:
            w[:] = 0.0
            w[index] = target
            slope = gram @ w - pull
            steepest = int(np.argmin(slope))
            if used[steepest] or slope[steepest] >= slope[index] @ target - 64 * scale:
                break
            used[steepest] = True
        else:
            now, falling = w[index], target < 0
            share = float(np.min(now[falling] / (now[falling] - target[falling])))
            moved = (1 - share) * now + share * target
            moved[falling & (moved <= 1e-15)] = 0.0
            w[index] = np.maximum(moved, 0.0)
            still = w > 0
            if still[index].all():  # rounding left the blocking weight above zero
                still[index[np.argmin(np.where(falling, moved, np.inf))]] = False
                w[~still] = 0.0
            used = still
            w /= w.sum()
    return w / w.sum()


def affine_minimiser(gram: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """min w' gram w / 2 - pull' w subject to sum w = 1, of any sign."""
    n = len(pull)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = gram
    system[n, n] = 0.0
    try:
        return np.linalg.solve(system, np.append(pull, 1.0))[:n]
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(system, np.append(pull, 1.0), rcond=None)[0][:n]
