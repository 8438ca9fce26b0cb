"""Polytopes as inequalities, by brute force: their linear minima by HiGHS, their projections by non-negative least squares.

Nothing here shares a formula with the sets of the library: a norm is a maximum over sign vectors, permutations or choices of
entries, each of which is a row.
"""

from __future__ import annotations

from itertools import permutations, product
from math import prod

import numpy as np
from scipy.optimize import linprog, nnls


def signs(n):
    return np.array(list(product([-1.0, 1.0], repeat=n)))


def at_most(G, h):
    return np.asarray(G, dtype=float), np.broadcast_to(np.asarray(h, dtype=float), len(G))


def equal(G, h):
    G = np.asarray(G, dtype=float)
    return at_most(np.vstack([G, -G]), np.concatenate([np.full(len(G), h), np.full(len(G), -h)]))


def both(*parts):
    return np.vstack([G for G, _ in parts]), np.concatenate([h for _, h in parts])


def between(low, high):
    one, finite = np.eye(len(low)), np.isfinite(high)
    return both(at_most(-one, -low), at_most(one[finite], high[finite]))


def box(s, n, low, high):
    return between(np.broadcast_to(low, s.shape).ravel(), np.broadcast_to(high, s.shape).ravel())


def sums_along_an_axis(s, n):
    numbers = np.moveaxis(np.arange(n).reshape(s.shape), s.axis, -1).reshape(-1, s.shape[s.axis])
    return both(box(s, n, 0.0, np.inf), equal([np.isin(np.arange(n), row) for row in numbers], s.radius))


def monotone(s, n):
    steps = np.eye(n)[:-1] - np.eye(n)[1:]
    return both(box(s, n, s.lower, s.upper), at_most(steps.reshape(-1, n), 0.0))


def ordered(s, n):
    return at_most([s.weights[list(p)] * sign for p in permutations(range(n)) for sign in signs(n)], s.radius)


def one_of_each_group(s, n):
    groups = [np.flatnonzero(s.groups.ravel() == label) for label in np.unique(s.groups)]
    rows = []
    for chosen in product(*groups):
        for sign in signs(len(chosen)):
            row = np.zeros(n)
            row[list(chosen)] = sign
            rows.append(row)
    return at_most(rows, s.radius)


INEQUALITIES = {
    "Simplex": lambda s, n: both(box(s, n, 0.0, np.inf), equal(np.ones((1, n)), s.radius)),
    "UnitSimplex": lambda s, n: both(box(s, n, 0.0, np.inf), at_most(np.ones((1, n)), s.radius)),
    "Hypersimplex": lambda s, n: both(box(s, n, 0.0, s.radius), equal(np.ones((1, n)), s.k * s.radius)),
    "CappedSimplex": lambda s, n: both(box(s, n, 0.0, s.upper), equal(np.ones((1, n)), s.radius)),
    "SimplexProduct": sums_along_an_axis,
    "MonotoneBox": monotone,
    "L1Ball": lambda s, n: at_most(signs(n), s.radius),
    "LinfBall": lambda s, n: box(s, n, -s.radius, s.radius),
    "WeightedL1Ball": lambda s, n: at_most(signs(n) * s.weights.ravel(), s.radius),
    "L1BallInBox": lambda s, n: both(box(s, n, s.lower, s.upper), at_most(signs(n), s.radius)),
    "KSparsePolytope": lambda s, n: both(box(s, n, -s.radius, s.radius), at_most(signs(n), s.k * s.radius)),
    "OWLBall": ordered,
    "GroupLinfBall": one_of_each_group,
    "Box": lambda s, n: box(s, n, s.lower, s.upper),
}
"""By the name of the class: (G, h), with which the set is {x : G x <= h} for flat points of n entries."""


def inequalities(domain):
    return INEQUALITIES[type(domain).__name__](domain, prod(domain.shape))


def minimum(domain, g):
    """min <g, x> over the set, by an LP solver."""
    G, h = inequalities(domain)
    found = linprog(g.ravel(), A_ub=G, b_ub=h, bounds=(None, None), method="highs")
    assert found.status == 0, found.message
    return found.fun


def projection(domain, x):
    """The nearest point, by the least distance programme of Lawson and Hanson (Solving Least Squares Problems, chapter 23)."""
    G, h = inequalities(domain)
    flat = x.ravel()
    rows = np.vstack([-G.T, G @ flat - h])
    target = np.eye(len(rows))[-1]
    u, _ = nnls(rows, target, maxiter=100 * len(G))
    residual = rows @ u - target
    return (flat - residual[:-1] / residual[-1]).reshape(x.shape)
