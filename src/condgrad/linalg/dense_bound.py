"""Upper bounds on the singular values or eigenvalues of a small array on the orthogonal complement of known vectors.

If t I - S has a Cholesky factorisation, no eigenvalue of the symmetric matrix S is above t. The factorisation takes n^3/3
operations, far fewer than an eigenvalue decomposition. The resulting bound is certain. In contrast, the bound of
linalg/eigenvalue_bound.py is wrong with a small probability. For singular values of A, S is A'A or A A', whichever is smaller.
First, A is projected onto the orthogonal complement of the known vectors. If there is no factorisation, an eigenvalue
decomposition gives the bound.

Rounding: if the factorisation of an n x n matrix M does not break down, M + (n + 2) u trace(M) I is positive definite, where u is
the unit roundoff (Rump 2006). The rounding errors of an inner product of m numbers partly cancel: the error is at most
2 sqrt(m) u times the inner product of the absolute values (Higham and Mary 2019). Therefore the error of A'A has a norm of at
most 2 sqrt(m) u |A|^2.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from scipy.linalg.lapack import dpotrf

from condgrad.linalg.eigenvalue_bound import MAX_VECTORS, EigenvalueBound

UNIT_ROUNDOFF = 2.0**-53


def dense_singular_bound(
    A: np.ndarray, left: np.ndarray, right: np.ndarray, target: float, noise: float
) -> EigenvalueBound:
    """Upper bound on the singular values of A on the orthogonal complement of the columns of ``left`` and ``right``.

    Parameters
    ----------
    A : ndarray of shape (m, n)
        The matrix. Its entries are neither so large nor so small that squares overflow or underflow.
    left : ndarray of shape (m, k)
        Orthonormal columns.
    right : ndarray of shape (n, k)
        Orthonormal columns.
    target : float
        A number that may be a bound. If this is proven, ``target`` is returned as the bound.
    noise : float
        Bound on the rounding error of a product of A with a unit vector.

    Returns
    -------
    EigenvalueBound
        The bound. If it is above the target, ``vectors`` has right singular vectors, largest value first.
    """
    none = right[:, :0]
    if right.shape[1] == A.shape[1]:
        return EigenvalueBound(0.0, none)
    B = A - left @ (left.T @ A)
    B -= (B @ right) @ right.T
    tall = len(B) >= B.shape[1]
    gram = B.T @ B if tall else B @ B.T
    square = float(gram.trace())
    error = 2 * sqrt(max(B.shape)) * UNIT_ROUNDOFF * square
    # if ``most`` is a bound, a larger target is a bound too, but the square of the target may overflow
    most = 2 * square + 1.0
    if target > noise and is_bound(gram, min(target - noise, most) ** 2 - error):
        return EigenvalueBound(target, none)
    value, vectors = largest(gram)
    return EigenvalueBound(sqrt(max(value, 0.0) + error) + noise, vectors if tall else np.linalg.qr(B.T @ vectors)[0])


def dense_eigenvalue_bound(S: np.ndarray, known: np.ndarray, target: float, noise: float) -> EigenvalueBound:
    """Upper bound on the eigenvalues of the symmetric array S on the orthogonal complement of the columns of ``known``.

    See ``dense_singular_bound`` for the parameters and the result. ``vectors`` has eigenvectors.
    """
    n, k = known.shape
    if k == n:
        return EigenvalueBound(-inf, known[:, :0])
    outside = S - known @ (known.T @ S)
    outside -= (outside @ known) @ known.T
    outside = (outside + outside.T) / 2
    size = 2 * float(np.linalg.norm(outside)) + 1.0
    outside -= size * (known @ known.T)  # the eigenvalues of the known vectors become the smallest eigenvalues
    if target - noise > -size and is_bound(outside, min(target - noise, size)):
        return EigenvalueBound(target, known[:, :0])
    value, vectors = largest(outside, n - k)
    return EigenvalueBound(value + noise, vectors)


def is_bound(S: np.ndarray, t: float) -> bool:
    """Whether a Cholesky factorisation proves that no eigenvalue of S is above t."""
    M = -S
    M.flat[:: len(S) + 1] += t
    M.flat[:: len(S) + 1] -= (len(S) + 2) * UNIT_ROUNDOFF * max(float(M.trace()), 0.0)
    return bool(dpotrf(M, overwrite_a=True, clean=False)[1] == 0)


def largest(S: np.ndarray, most: int = MAX_VECTORS) -> tuple[float, np.ndarray]:
    """Return an upper bound on the largest eigenvalue of S, and the eigenvectors of up to MAX_VECTORS largest eigenvalues."""
    values, vectors = np.linalg.eigh(S)  # for small arrays this is as fast as computing only some eigenvectors
    error = len(S) * UNIT_ROUNDOFF * float(np.abs(values).max())
    return float(values[-1]) + error, np.ascontiguousarray(vectors[:, : -min(MAX_VECTORS, most) - 1 : -1])
