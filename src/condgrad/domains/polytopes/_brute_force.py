"""All vertices of a small polytope, by trying every choice of active constraints: what oracles are compared with."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np


def vertices_of(A: Any, b: Any, C: Any, d: Any, lower: Any, upper: Any) -> np.ndarray:
    """The vertices of {x : A x <= b, C x = d, lower <= x <= upper}, one a row; A and C may have no rows."""
    lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    n = len(lower)
    A, C = np.reshape(A, (-1, n)), np.reshape(C, (-1, n))
    low, high = np.isfinite(lower), np.isfinite(upper)
    G = np.concatenate([A, -np.eye(n)[low], np.eye(n)[high]])
    h = np.concatenate([np.ravel(b), -lower[low], upper[high]])
    lengths = np.linalg.norm(G, axis=1)
    G, h = G / lengths[:, None], h / lengths
    size = np.abs(np.concatenate([h, np.ravel(d)])).max() or 1.0
    found: dict[tuple[float, ...], np.ndarray] = {}
    for active in combinations(range(len(G)), n - int(np.linalg.matrix_rank(C) if len(C) else 0)):
        rows = np.concatenate([C, G[list(active)]])
        x, _, rank, _ = np.linalg.lstsq(rows, np.concatenate([np.ravel(d), h[list(active)]]))
        inside = np.all(G @ x <= h + 1e-9 * size) and np.all(np.abs(C @ x - np.ravel(d)) <= 1e-9 * size)
        if rank == n and inside:
            found.setdefault(tuple(np.round(x / size, 8) + 0.0), x)
    return np.array(list(found.values()))


def mixture(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random convex combination of the points: of some of them, half of the time."""
    weights = rng.dirichlet(np.full(len(points), rng.choice([0.2, 1.0])))
    return np.tensordot(weights, points, axes=1)
