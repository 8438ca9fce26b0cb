"""Sparse matrices that a set keeps."""

from __future__ import annotations

from typing import Any

from condgrad import checks


def kept_rows(matrix: Any, what: str) -> Any:
    """A read-only copy of a scipy sparse matrix by rows, with sorted indices; NaN and Inf are refused."""
    import scipy.sparse as sp

    rows: Any = sp.csr_array(matrix)
    rows = rows.astype(float, copy=True)
    rows.sum_duplicates()
    checks.finite_array(rows.data, what)
    for part in (rows.data, rows.indices, rows.indptr):
        part.setflags(write=False)
    return rows
