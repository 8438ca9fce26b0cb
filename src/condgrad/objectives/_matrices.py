"""Data matrices, dense or sparse, and safe bounds on their spectra."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import ArpackError, eigsh, svds

from condgrad import checks

Matrix = Any
"""A dense array or a csr_array."""

_SMALL = 500
"""Up to this size dense eigenvalues are cheap."""
_ACCURACY = 1e-8
_SAFE = 1 + 1e-6
"""Lanczos comes from inside the spectrum, by less than its accuracy: this factor makes its answer a bound."""


def as_matrix(values: Any, what: str) -> Matrix:
    """A finite matrix of our own: a read-only array, or a csr_array where any scipy-sparse one was given."""
    matrix: Matrix = values if _is_sparse(values) else checks.finite_array(values, what)
    if matrix.ndim != 2:
        raise ValueError(f"{what} must be a matrix, but has shape {matrix.shape}: reshape it to (rows, columns).")
    if not _is_sparse(matrix):
        return matrix
    stored = csr_array(matrix, copy=True)
    stored.sum_duplicates()
    data = checks.finite_array(stored.data, f"{what} (the list of its stored entries)")
    return csr_array((data, stored.indices, stored.indptr), shape=stored.shape)


def spectral_norm(matrix: Matrix) -> float:
    """The largest singular value, or a little more."""
    scale = abs(matrix).max()
    if scale == 0:
        return 0.0
    matrix = matrix / scale
    n, d = matrix.shape
    if min(n, d) <= _SMALL:
        gram = matrix @ matrix.T if n <= d else matrix.T @ matrix
        return float(scale * math.sqrt(np.linalg.eigvalsh(_dense(gram))[-1]))
    try:
        top = svds(matrix, k=1, v0=_start(min(n, d)), tol=_ACCURACY, return_singular_vectors=False)[0]
        return float(scale * top * _SAFE)
    except ArpackError:
        return float(scale * math.sqrt(abs(matrix).sum(axis=0).max() * abs(matrix).sum(axis=1).max()))


def curvature(symmetric: Matrix) -> tuple[float, float]:
    """(L, l) of x'Qx/2: the largest |eigenvalue|, and how far the smallest lies below 0; or a little more."""
    n = symmetric.shape[0]
    if n <= _SMALL or not _is_sparse(symmetric):
        eigenvalues = np.linalg.eigvalsh(_dense(symmetric))
        lowest, highest = eigenvalues[0], eigenvalues[-1]
    else:
        centre = symmetric.diagonal()
        reach = abs(symmetric).sum(axis=1) - abs(centre)
        lowest, highest = np.min(centre - reach), np.max(centre + reach)  # Gershgorin: safe, and often enough
        try:
            highest = min(highest, _SAFE * _extreme(symmetric, "LA"))
            lowest = max(lowest, _SAFE * min(_extreme(symmetric, "SA"), 0.0))
        except ArpackError:
            pass
    largest = max(abs(lowest), abs(highest))
    # an eigenvalue that is negative by rounding alone would make a convex function look non-convex
    return float(largest), float(-lowest) if -lowest > _ACCURACY * largest else 0.0


def _extreme(symmetric: Matrix, which: Literal["LA", "SA"]) -> float:
    start = _start(symmetric.shape[0])
    return float(eigsh(symmetric, k=1, which=which, v0=start, tol=_ACCURACY, return_eigenvectors=False)[0])


def _start(size: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(size)


def _dense(matrix: Matrix) -> np.ndarray:
    return matrix.toarray() if _is_sparse(matrix) else matrix


def _is_sparse(matrix: Any) -> bool:
    """issparse, without its type guard: that narrows to a base class with hardly any members."""
    return issparse(matrix)
