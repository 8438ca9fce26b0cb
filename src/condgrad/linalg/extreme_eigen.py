"""A few eigenpairs of a symmetric or Hermitian array, by LAPACK. All of them are computed from one reduction to tridiagonal
form."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import eigh_tridiagonal, lapack

BLOCK = 32
"""Number of columns that LAPACK's reduction processes together. It determines the size of LAPACK's workspace."""


class Tridiagonal:
    """Reduction A = Q T Q* with T real and tridiagonal.

    The reduction takes most of the time. Eigenpairs of A are then cheap, because they are computed from eigenpairs of T.

    Parameters
    ----------
    A : ndarray of float or complex, shape (n, n)
        A symmetric or Hermitian matrix with finite entries of moderate size, n >= 1. Only one triangle of the matrix is read.

    Examples
    --------
    >>> import numpy as np
    >>> reduced = Tridiagonal(np.diag([3.0, 1.0, 2.0]))
    >>> values, vectors = reduced.eigenpairs(0, 1)
    >>> values, np.abs(vectors[:, 0])
    (array([1., 2.]), array([0., 1., 0.]))
    """

    def __init__(self, A: np.ndarray):
        self.n = len(A)
        if self.n == 1:
            self.diagonal, self.beside = A.real[0].copy(), np.zeros(0)
            return
        reduce, self._turn = (lapack.zhetrd, lapack.zunmqr) if np.iscomplexobj(A) else (lapack.dsytrd, lapack.dormqr)
        # LAPACK expects arrays in column order. The transpose of a C-ordered array is in column order, without a copy. The
        # transpose of a symmetric matrix is the same matrix; the transpose of a Hermitian matrix is its conjugate
        self._conjugate = np.iscomplexobj(A) and A.flags.c_contiguous
        columns = A.T if A.flags.c_contiguous else A
        lower, self.diagonal, self.beside, self._tau, info = reduce(columns, lower=1, lwork=BLOCK * self.n)
        if info:
            raise np.linalg.LinAlgError(f"LAPACK refused argument {-info} of a reduction to tridiagonal form.")
        self._reflectors = lower[1:, :-1]

    def eigenvalues(self, first: int, last: int) -> np.ndarray:
        """Return the eigenvalues from number ``first`` to number ``last`` (included), counted from 0 in increasing order."""
        if self.n == 1:
            return self.diagonal.copy()
        return eigh_tridiagonal(
            self.diagonal, self.beside, True, select="i", select_range=(first, last), check_finite=False
        )

    def eigenpairs(
        self, first: int, last: int, driver: Literal["stebz", "stemr"] = "stebz"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvalues from number ``first`` to number ``last``, and their orthonormal eigenvectors as columns.

        ``driver`` is the LAPACK routine: "stebz" (bisection), or "stemr", which takes two thirds of its time.
        """
        if self.n == 1:
            return self.diagonal.copy(), np.ones((1, 1))
        values, inner = eigh_tridiagonal(
            self.diagonal, self.beside, select="i", select_range=(first, last), check_finite=False, lapack_driver=driver
        )
        rest = inner[1:].astype(self._reflectors.dtype)
        # a product with one vector is faster without blocks
        workspace = 1 if rest.shape[1] == 1 else BLOCK * max(rest.shape)
        turned, _, info = self._turn("L", "N", self._reflectors, self._tau, rest, workspace)
        if info:
            raise np.linalg.LinAlgError(f"LAPACK refused argument {-info} of a product with reflections.")
        vectors = np.vstack([inner[:1], turned])
        return values, vectors.conj() if self._conjugate else vectors
