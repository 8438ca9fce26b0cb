"""The point of a hull nearest to z, by trying the affine hull of every subset of the atoms: a reference for few atoms."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def nearest_in_hull(P, z):
    """The distance from z to the hull of the rows of P."""
    best = np.inf
    for size in range(1, len(P) + 1):
        for chosen in combinations(range(len(P)), size):
            base, edges = P[chosen[0]], P[list(chosen[1:])] - P[chosen[0]]
            steps = np.linalg.lstsq(edges.T, z - base, rcond=None)[0] if size > 1 else np.zeros(0)
            if steps.min(initial=0.0) >= -1e-9 and steps.sum() <= 1 + 1e-9:
                best = min(best, np.linalg.norm(base + steps @ edges - z))
    return best
