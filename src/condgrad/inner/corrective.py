"""The corrective inner solver: the best point in the hull of the atoms seen, re-solved each time an atom is added."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from condgrad.points import inner, norm2
from condgrad.protocols import InnerStop, Point, Prox


@dataclass(frozen=True)
class Hull:
    """A point as a convex combination of atoms, with the atoms' Gram matrix: what is kept between outer steps."""

    atoms: tuple[Point, ...]
    gram: np.ndarray
    weights: np.ndarray

    def point(self) -> Point:
        used = np.flatnonzero(self.weights)
        total = float(self.weights[used[0]]) * self.atoms[used[0]]
        for i in used[1:]:
            total = total + float(self.weights[i]) * self.atoms[i]
        return total

    def with_atom(self, atom: Point) -> Hull:
        row = np.array([inner(a, atom) for a in self.atoms])
        gram = np.block([[self.gram, row[:, None]], [row[None, :], np.full((1, 1), norm2(atom))]])
        return Hull((*self.atoms, atom), gram, np.append(self.weights, 0.0))

    def pruned(self) -> Hull:
        used = np.flatnonzero(self.weights)
        return Hull(tuple(self.atoms[i] for i in used), self.gram[np.ix_(used, used)], self.weights[used])


@dataclass(frozen=True)
class Corrective:
    """The prox subproblem as a min-norm-point problem: the point of the atoms' hull that is nearest to z = u - gamma g.

    Each linear oracle call adds one atom, then a small quadratic programme over the simplex of weights is solved exactly.
    The atoms in use are kept between outer steps, so near a solution a call or two are enough; on a polytope the
    whole is finite. The centre u is itself offered as an atom: no step is worse than condg's.
    """

    max_calls: int | None = None

    def init(self, domain: Any, x: Point) -> Hull:
        return Hull((x,), np.full((1, 1), norm2(x)), np.ones(1))

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: Hull) -> Prox:
        z = u - gamma * g
        hull = memory.with_atom(u)
        pull = np.array([inner(a, z) for a in hull.atoms])
        for t in count(1):
            hull = Hull(hull.atoms, hull.gram, nearest_weights(hull.gram, pull, hull.weights))
            u_t = hull.point()
            direction = (1 / gamma) * (u_t - z)
            v_t = domain.lmo(direction)
            V = inner(direction, u_t - v_t)
            rounding = 4 * np.finfo(float).eps * (abs(inner(direction, u_t)) + abs(V))
            if stop(V, norm2(u_t - u) / gamma) or t == self.max_calls or rounding >= V:
                break
            if any(norm2(v_t - hull.atoms[i]) == 0.0 for i in np.flatnonzero(hull.weights)):
                break  # the oracle has nothing new: what is left of the gap is the rounding of the weights
            hull = hull.pruned().with_atom(v_t)
            pull = np.array([inner(a, z) for a in hull.atoms])
        return Prox(u_t, max(V, 0.0), hull.pruned())


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
