"""The class `SparseArray`: an array with few nonzero entries, such as a vertex of a polytope, stored as indices and values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from condgrad.checks import read_only
from condgrad.points.base import Structured
from condgrad.storage.stored import check_array, stored

CANCELLATION_RATIO = 1e-6
"""If the difference of two squared norms is below this share of the larger norm, it has lost digits by cancellation. It is then
computed again without a subtraction."""

SPARSE_SHARE = 1 / 8
"""An array is stored as a SparseArray if at most this share of its entries is nonzero."""


def _validate(x: SparseArray) -> None:
    check_array(x.values, x.indices.shape, "values")
    if x.indices.ndim != 1 or x.indices.dtype != np.int64 or np.any(np.diff(x.indices) <= 0):
        raise ValueError("increasing indices of type int64 were expected")
    if x.indices.size and not 0 <= x.indices[0] <= x.indices[-1] < math.prod(x.shape):
        raise ValueError(f"an index lies outside of the shape {x.shape}")


@stored(fields=("indices", "values", "shape"), validate=_validate)
class SparseArray(Structured):
    """An array of any shape with few nonzero entries.

    Sums, multiples and inner products take time proportional to the number of stored entries. The sum with an
    ndarray is an ndarray.

    Parameters
    ----------
    indices : array_like of int, shape (k,)
        Flat (row-major) indices of the stored entries, in any order, without repeats.
    values : array_like of float, shape (k,) or scalar
        The entries, or one number if all entries are equal.
    shape : tuple of int
        Shape of the array.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> x = cg.SparseArray([3, 1], [2.0, -1.0], (5,))
    >>> x.inner(np.arange(5.0)), np.asarray(x - 0.5 * x)
    (5.0, array([ 0. , -0.5,  0. ,  1. ,  0. ]))
    """

    def __init__(self, indices: Any, values: Any, shape: tuple[int, ...]):
        indices = np.atleast_1d(np.asarray(indices, dtype=np.int64))
        given, values = values, np.empty(indices.shape)
        values[...] = given
        if indices.size > 1 and not (indices[1:] > indices[:-1]).all():
            order = np.argsort(indices)
            indices, values = indices[order], values[order]
            if np.any(np.diff(indices) == 0):
                raise ValueError("SparseArray got an index twice: add the values that belong to one index.")
        if indices.size and not 0 <= indices[0] <= indices[-1] < math.prod(shape):
            raise ValueError(f"SparseArray got indices from {indices[0]} to {indices[-1]} for the shape {shape}.")
        self.indices, self.values, self.shape = read_only(indices), read_only(values), tuple(shape)

    @classmethod
    def _of(cls, indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> SparseArray:
        """Make a SparseArray of increasing indices and values, without checking or copying them."""
        made = cls.__new__(cls)
        made.indices, made.values, made.shape = read_only(indices), read_only(values), shape
        return made

    @classmethod
    def of_entries(cls, indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> SparseArray:
        """Make a SparseArray of entries in any order. Values with the same index are added, and sums of 0 are left out."""
        order = np.argsort(indices, kind="stable")
        indices, values = indices[order], values[order]
        first = np.flatnonzero(np.concatenate([[True], indices[1:] != indices[:-1]])[: len(indices)])
        indices, values = indices[first], np.add.reduceat(values, first) if len(first) else values
        kept = values != 0
        return cls._of(indices[kept], values[kept], shape)

    def scaled(self, factor: float) -> SparseArray:
        return SparseArray._of(self.indices, factor * self.values, self.shape)

    def plus(self, other: Structured) -> Any:
        if not isinstance(other, SparseArray):
            return NotImplemented
        self.same_shape(other)
        if other.indices is self.indices:
            values = self.values + other.values
            if values.all():
                return SparseArray._of(self.indices, values, self.shape)
        indices = np.concatenate([self.indices, other.indices])
        return SparseArray.of_entries(indices, np.concatenate([self.values, other.values]), self.shape)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, np.ndarray):
            return super().__add__(other)
        self.same_shape(other)
        total = np.array(other, dtype=float)
        total.reshape(-1)[self.indices] += self.values
        return total

    __radd__ = __add__

    def inner(self, other: Any) -> float:
        self.same_shape(other)
        if isinstance(other, np.ndarray):
            return float(self.values @ other.reshape(-1)[self.indices])
        if not isinstance(other, SparseArray):
            return other.inner(self)
        if other.indices is self.indices:
            return float(self.values @ other.values)
        _, mine, others = np.intersect1d(self.indices, other.indices, assume_unique=True, return_indices=True)
        return float(self.values[mine] @ other.values[others])

    def distance2(self, other: Any) -> float:
        """Return |self - other|^2.

        If ``other`` is an ndarray, the sum of its squares at the indices that are not stored in ``self`` is needed. It is
        computed as |other|^2 minus the squares of ``other`` at the stored indices, without a copy of ``other``. If this
        difference loses digits, the squares are summed over a copy of ``other`` that is 0 at the stored indices.
        """
        if not isinstance(other, np.ndarray):
            return super().distance2(other)
        self.same_shape(other)
        flat = other.reshape(-1)
        here, whole = flat[self.indices], float(np.vdot(other, other))
        rest = whole - float(here @ here)
        if rest < CANCELLATION_RATIO * whole:
            away = np.array(flat)
            away[self.indices] = 0.0
            rest = float(away @ away)
        return rest + float(np.sum((here - self.values) ** 2))

    def to_dense(self) -> np.ndarray:
        dense = np.zeros(self.shape)  # fast: the operating system provides pages of zeros when they are used
        dense.reshape(-1)[self.indices] = self.values
        return dense

    def __repr__(self) -> str:
        return f"SparseArray({len(self.indices)} entries, shape {self.shape})"


def sparse_form(x: Any) -> Any:
    """Return an array with few nonzero entries as a SparseArray, and any other point unchanged."""
    if not isinstance(x, np.ndarray) or np.count_nonzero(x) > SPARSE_SHARE * x.size:
        return x
    flat = x.reshape(-1)
    indices = np.flatnonzero(flat)
    return SparseArray._of(indices, np.array(flat[indices], dtype=float), tuple(x.shape))
