"""Data matrices, dense or sparse, in float64 or float32, their products, and safe bounds on their spectra.

A matrix of float32 is exact data in half of the memory. Everything that is computed from it is float64: products go through it
a few rows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, svds

from condgrad import checks

Matrix = Any
"""A dense array or a csr_array."""

SMALL = 500
"""Up to this size dense eigenvalues are cheap."""
_ACCURACY = 1e-8
_SAFE = 1 + 1e-6
"""Lanczos comes from inside the spectrum, by less than its accuracy: this factor makes its answer a bound."""
PIECE_ENTRIES = 2**20
"""Number of entries of a float32 matrix, about, that are converted to float64 at a time."""


def as_matrix(values: Any, what: str) -> Matrix:
    """A finite matrix of our own, float32 or float64: a read-only array, or a csr_array where any scipy-sparse one was given."""
    matrix: Matrix = values if is_sparse(values) else checks.finite_array(values, what, keep_float32=True)
    if matrix.ndim != 2:
        raise ValueError(f"{what} must be a matrix, but has shape {matrix.shape}: reshape it to (rows, columns).")
    if not is_sparse(matrix):
        return matrix
    stored = csr_array(matrix, copy=True)
    stored.sum_duplicates()
    data = checks.finite_array(stored.data, f"{what} (the list of its stored entries)", keep_float32=True)
    return csr_array((data, stored.indices, stored.indptr), shape=stored.shape)


def arrays_of(matrix: Matrix) -> tuple[np.ndarray, ...]:
    """The arrays that hold a matrix: the matrix itself, or those of a csr_array."""
    return (matrix.data, matrix.indices, matrix.indptr) if is_sparse(matrix) else (matrix,)


def is_single(matrix: Matrix) -> bool:
    """Whether a matrix is float32."""
    return bool(matrix.dtype == np.float32)


def pieces(matrix: Matrix) -> Iterator[tuple[slice, Matrix]]:
    """Groups of rows of a matrix, as float64: their numbers, and the rows."""
    n, d = matrix.shape
    step = max(PIECE_ENTRIES // max(d, 1), 1)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        yield rows, matrix[rows].astype(float)


def times(matrix: Matrix, x: np.ndarray) -> np.ndarray:
    """The product with a vector or block, in float64."""
    if not is_single(matrix):
        return matrix @ x
    return np.concatenate([rows @ x for _, rows in pieces(matrix)]) if matrix.shape[0] else np.zeros((0, *x.shape[1:]))


def transposed_times(matrix: Matrix, x: np.ndarray) -> np.ndarray:
    """The product of the transpose with a vector or block, in float64."""
    if not is_single(matrix):
        return matrix.T @ x
    total = np.zeros((matrix.shape[1], *x.shape[1:]))
    for numbers, rows in pieces(matrix):
        total += rows.T @ x[numbers]
    return total


def row_squares(matrix: Matrix) -> np.ndarray:
    """The squared norms of the rows, in float64."""
    if not is_single(matrix):
        return (matrix * matrix).sum(axis=1)
    return np.concatenate([np.zeros(0), *((rows * rows).sum(axis=1) for _, rows in pieces(matrix))])


def spectral_norm(matrix: Matrix, row_scales: np.ndarray | None = None) -> float:
    """The largest singular value, or a little more; of the matrix with each row times its scale, where these are given."""
    if is_single(matrix):
        return _spectral_norm_of_single(matrix, np.ones(matrix.shape[0]) if row_scales is None else row_scales)
    if row_scales is not None:
        matrix = diags_array(row_scales) @ matrix
    scale = abs(matrix).max()
    if scale == 0:
        return 0.0
    matrix = matrix / scale
    n, d = matrix.shape
    if min(n, d) <= SMALL:
        products = matrix @ matrix.T if n <= d else matrix.T @ matrix
        return float(scale * math.sqrt(np.linalg.eigvalsh(_dense(products))[-1]))
    try:
        top = svds(matrix, k=1, v0=_start(min(n, d)), tol=_ACCURACY, return_singular_vectors=False)[0]
        return float(scale * top * _SAFE)
    except ArpackError:
        return float(scale * math.sqrt(abs(matrix).sum(axis=0).max() * abs(matrix).sum(axis=1).max()))


def gram(matrix: Matrix, row_scales: np.ndarray) -> np.ndarray:
    """The product of the transpose with the matrix, each row times its scale, in float64; a few rows at a time."""
    total = np.zeros((matrix.shape[1], matrix.shape[1]))
    for i, rows in pieces(matrix):
        part = row_scales[i, None] * _dense(rows)
        total += part.T @ part
    return total


def largest_eigenvalue(product: Any, size: int) -> float:
    """The largest eigenvalue, or a little more, of a positive semidefinite matrix known by its products with vectors."""
    operator = LinearOperator((size, size), matvec=product, dtype=float)
    return _SAFE * float(eigsh(operator, k=1, which="LA", v0=_start(size), tol=_ACCURACY, return_eigenvectors=False)[0])


def _spectral_norm_of_single(matrix: Matrix, row_scales: np.ndarray) -> float:
    """The same for float32. Without a copy of the matrix: through its Gram matrix, or its products."""
    n, d = matrix.shape
    largest = max((float(abs(row_scales[i, None] * _dense(rows)).max()) for i, rows in pieces(matrix)), default=0.0)
    if largest == 0.0:
        return 0.0
    scales = row_scales / largest
    if d <= SMALL:
        return float(largest * math.sqrt(np.linalg.eigvalsh(gram(matrix, scales))[-1]))
    if n <= SMALL:
        products = np.column_stack([times(matrix, _dense(matrix[[i]]).astype(float).ravel()) for i in range(n)])
        return float(largest * math.sqrt(np.linalg.eigvalsh(scales[:, None] * products * scales)[-1]))
    product = LinearOperator(
        (n, d),
        matvec=lambda x: scales * times(matrix, x.ravel()),
        rmatvec=lambda x: transposed_times(matrix, scales * x.ravel()),
        dtype=float,
    )
    try:
        top = svds(product, k=1, v0=_start(min(n, d)), tol=_ACCURACY, return_singular_vectors=False)[0]
        return float(largest * top * _SAFE)
    except ArpackError:
        columns, most = np.zeros(d), 0.0
        for i, rows in pieces(matrix):
            part = abs(scales[i, None] * _dense(rows))
            columns, most = columns + part.sum(axis=0), max(most, float(part.sum(axis=1).max()))
        return float(largest * math.sqrt(columns.max() * most))


def curvature(symmetric: Matrix) -> tuple[float, float]:
    """(L, l) of x'Qx/2: the largest |eigenvalue|, and how far the smallest lies below 0; or a little more."""
    n, symmetric = symmetric.shape[0], symmetric.astype(float) if is_single(symmetric) else symmetric
    if n <= SMALL or not is_sparse(symmetric):
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
    return matrix.toarray() if is_sparse(matrix) else matrix


def is_sparse(matrix: Any) -> bool:
    """issparse, without its type guard: that narrows to a base class with hardly any members."""
    return issparse(matrix)
