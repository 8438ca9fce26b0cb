"""The top pair of singular vectors of a dense matrix, the same for the same matrix.

ARPACK is not used: where singular values are equal it starts again from random numbers that no seed reaches, so the
answers to one and the same direction differ (scipy 1.17, identity matrix).
"""

from __future__ import annotations

import numpy as np

_SMALL = 64
"""Up to this many rows or columns the full SVD is as fast."""
_STEPS = 300
"""When these do not reach the accuracy, the full SVD does."""
_ACCURACY = 1e-12


def top_pair(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors (u, v) with u'Mv = |M|_2."""
    scaled = matrix / (np.abs(matrix).max() or 1.0)  # squares of the entries neither overflow nor vanish
    if min(matrix.shape) > _SMALL and scaled.any():
        pair = _lanczos(scaled, min(_STEPS, min(matrix.shape)))
        if pair is not None:
            return pair
    left, _, right = np.linalg.svd(scaled, full_matrices=False)
    return left[:, 0], right[0]


def _lanczos(matrix: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Golub-Kahan: M V' = U' B with orthonormal rows of U, V and bidiagonal B, until B's top pair is one of M."""
    m, n = matrix.shape
    U, V, B = np.zeros((steps, m)), np.zeros((steps + 1, n)), np.zeros((steps, steps + 1))
    start = np.random.default_rng(0).standard_normal(n)
    V[0] = start / np.linalg.norm(start)

    def pair(rows: int, cols: int) -> tuple[np.ndarray, np.ndarray, float]:
        left, sigma, right = np.linalg.svd(B[:rows, :cols], full_matrices=False)
        return left[:, 0] @ U[:rows], right[0] @ V[:cols], abs(left[-1, 0]) / sigma[0]

    nothing = 0.0
    for j in range(steps):
        u = _beyond(matrix @ V[j], U[:j])
        B[j, j] = np.linalg.norm(u)
        if B[j, j] <= nothing:  # M maps all of V into U: there is no more to be found
            return pair(j, j + 1)[:2]
        U[j] = u / B[j, j]
        nothing = max(nothing, 1e-14 * B[j, j])
        v = _beyond(U[j] @ matrix, V[: j + 1])
        rest = float(np.linalg.norm(v))
        if rest <= nothing or j % 10 == 9:
            top_u, top_v, weight = pair(j + 1, j + 1)
            if rest * weight <= _ACCURACY:  # the residual of the pair, relative to its singular value
                return top_u, top_v
        B[j, j + 1] = rest
        V[j + 1] = v / rest
        nothing = max(nothing, 1e-14 * rest)
    return None


def _beyond(vector: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """What is orthogonal to the rows of the basis; rounding makes the second pass necessary, and it is enough."""
    vector = vector - (basis @ vector) @ basis
    return vector - (basis @ vector) @ basis
