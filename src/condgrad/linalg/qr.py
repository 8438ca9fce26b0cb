"""QR factorisation, fast for arrays with many more rows than columns."""

from __future__ import annotations

import numpy as np

SMALL = 2**14
"""Blocks with fewer entries than this are factorised by numpy's QR, which is as fast for small blocks."""


def qr(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q with orthonormal columns and R with block = Q R.

    The factors are computed by two rounds of Cholesky QR, which is several times as fast as Householder reflections if the block
    has many more rows than columns. If the columns are nearly dependent or the block is small, Householder reflections are used.
    """
    found = by_cholesky(block)
    return np.linalg.qr(block) if found is None else found


def by_cholesky(block: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return Q and R by two rounds of Cholesky QR; None if columns are nearly dependent or the block is small."""
    Q, R = block, np.eye(block.shape[1])
    if Q.size < SMALL:
        return None
    try:
        for last in (False, True):
            gram = Q.T @ Q
            if last and not np.abs(gram - np.eye(len(gram))).max(initial=0.0) < 0.1:
                return None
            root = np.linalg.cholesky(gram).T
            Q, R = Q @ np.linalg.inv(root), root @ R
    except np.linalg.LinAlgError:
        return None
    return Q, R
