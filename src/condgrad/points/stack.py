"""The class `Stack`: points stored together, so that their inner products with another point are one matrix product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from condgrad.checks import read_only
from condgrad.points.base import inner
from condgrad.points.sparse_array import SparseArray
from condgrad.protocols import Point
from condgrad.storage.stored import check_array, stored

ROW_LIMIT = 4096
"""Arrays with at most this number of entries are stored as rows of one matrix. Larger arrays are stored one by one, because the
matrix is copied whenever a row is added, and because a Python call takes little time compared with a long inner product."""
DENSE_SHARE = 1 / 4
"""The method ``combined`` returns a sum of sparse points as an array if their stored entries are more than this share of the size
of a point."""
SPREAD_SHARE = 1 / 32
"""The method ``products(z)`` converts a sparse z to an array if the sparse entries of the stack are more than this share of the
size of z. Entries of an array are found faster than entries of a sparse z. With many entries, this saves more time than the
conversion takes."""
ROW, SPARSE, OTHER = 0, 1, 2
"""Kinds of points: rows of the matrix, sparse points, and points stored one by one."""


def _validate(stack: Stack) -> None:
    n, stored_entries = len(stack.kinds), len(stack.indices)
    if stack.kinds.dtype != np.uint8 or stack.kinds.shape != (n,) or np.max(stack.kinds, initial=0) > OTHER:
        raise ValueError("a point has an unknown kind")
    check_array(stack.rows, (int(np.sum(stack.kinds == ROW)), prod(stack.shape)), "rows")
    check_array(stack.values, (stored_entries,), "values")
    for numbers in (stack.owners, stack.indices):
        check_array(numbers, (stored_entries,), "the place of an entry", "i")
    if len(stack.others) != np.sum(stack.kinds == OTHER):
        raise ValueError("the points and their kinds do not match")
    for numbers, limit in ((stack.owners, int(np.sum(stack.kinds == SPARSE))), (stack.indices, prod(stack.shape))):
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < limit:
            raise ValueError("an entry lies outside of the stack")
    steps = np.diff(stack.owners)
    if np.any(steps < 0) or np.any((steps == 0) & (np.diff(stack.indices) <= 0)):
        raise ValueError("the entries are not in order")
    if any(tuple(other.shape) != stack.shape for other in stack.others):
        raise ValueError("the points have different shapes")


@stored(validate=_validate)
@dataclass(frozen=True, eq=False)
class Stack(Sequence[Any]):
    """A sequence of points of one shape.

    Small arrays are rows of one matrix. The entries of all sparse points are in three common arrays. Other points are stored one
    by one. A stack is immutable: methods that add or drop points return a new stack. Build a stack with :meth:`of`.

    Attributes
    ----------
    shape : tuple of int
        Shape of the points.
    kinds : ndarray of uint8, shape (n,)
        Kind of each point: ROW, SPARSE or OTHER. Points of the same kind are stored in the order of the sequence.
    rows : ndarray of shape (n_rows, size)
        Arrays of at most ``ROW_LIMIT`` entries.
    owners, indices, values : ndarrays of shape (n_entries,)
        One element per stored entry of a sparse point. ``owners`` has the number of the sparse point to which the entry belongs,
        counted from 0 among sparse points. ``indices`` has the flat index of the entry, and ``values`` has its value.
    others : tuple of Points
        Larger arrays and other structured points.
    """

    shape: tuple[int, ...]
    kinds: np.ndarray
    rows: np.ndarray
    owners: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    others: tuple[Point, ...] = ()

    @classmethod
    def of(cls, x: Any) -> Stack:
        """Make a stack with x as its only point."""
        shape, none = tuple(x.shape), np.zeros(0, dtype=np.int64)
        empty = cls(shape, np.zeros(0, dtype=np.uint8), np.zeros((0, prod(shape))), none, none, np.zeros(0))
        return empty.with_points([x])

    @classmethod
    def of_single_entries(cls, indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> Stack:
        """Make a stack of sparse points with one entry each: point i has the entry ``values[i]`` at index ``indices[i]``."""
        n = len(indices)
        return cls(shape, np.full(n, SPARSE, dtype=np.uint8), np.zeros((0, prod(shape))), np.arange(n), indices, values)

    def __len__(self) -> int:
        return len(self.kinds)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: Any) -> Any:
        kind = self.kinds[i]
        number = int(np.sum(self.kinds[: range(len(self))[i]] == kind))
        if kind == ROW:
            return read_only(self.rows[number].reshape(self.shape))
        if kind == OTHER:
            return self.others[number]
        first, last = np.searchsorted(self.owners, (number, number + 1))
        return SparseArray._of(self.indices[first:last], self.values[first:last], self.shape)

    @property
    def all_sparse(self) -> bool:
        """Whether every point is a SparseArray."""
        return bool((self.kinds == SPARSE).all())

    def with_points(self, points: Sequence[Any]) -> Stack:
        """Append points."""
        if isinstance(points, Stack):
            return self._joined(points)
        kinds = [_kind(x) for x in points]
        rows = [x.reshape(1, -1) for x, kind in zip(points, kinds, strict=True) if kind == ROW]
        sparse = [x for x, kind in zip(points, kinds, strict=True) if kind == SPARSE]
        others = (*self.others, *(x for x, kind in zip(points, kinds, strict=True) if kind == OTHER))
        owners, indices, values = self.owners, self.indices, self.values
        if sparse:
            first = len(self) - len(self.rows) - len(self.others)
            sizes = [len(x.indices) for x in sparse]
            owners = np.concatenate([owners, np.repeat(np.arange(first, first + len(sparse)), sizes)])
            indices = np.concatenate([indices, *(x.indices for x in sparse)])
            values = np.concatenate([values, *(x.values for x in sparse)])
        all_rows = np.concatenate([self.rows, *rows]) if rows else self.rows
        all_kinds = np.append(self.kinds, np.array(kinds, dtype=np.uint8))
        return Stack(self.shape, all_kinds, all_rows, owners, indices, values, others)

    def _joined(self, other: Stack) -> Stack:
        """Append the points of another stack."""
        n_sparse = len(self) - len(self.rows) - len(self.others)
        kinds, rows, indices, values = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("kinds", "rows", "indices", "values")
        )
        owners = np.concatenate([self.owners, other.owners + n_sparse])
        return Stack(self.shape, kinds, rows, owners, indices, values, self.others + other.others)

    def products_with(self, other: Stack) -> np.ndarray:
        """Matrix of the inner products of the points of this stack (rows) with the points of another stack (columns)."""
        if not (self.all_sparse and other.all_sparse):
            return np.array([other.products(x) for x in self]).reshape(len(self), len(other))
        used = np.unique(self.indices)
        at = np.minimum(np.searchsorted(used, other.indices), max(len(used) - 1, 0))
        common = np.flatnonzero(used[at] == other.indices) if len(used) else np.zeros(0, dtype=int)
        mine = csr_array((self.values, (self.owners, np.searchsorted(used, self.indices))), (len(self), len(used)))
        others = csr_array((other.values[common], (at[common], other.owners[common])), (len(used), len(other)))
        return (mine @ others).toarray()

    def kept(self, used: np.ndarray) -> Stack:
        """Select the points with the indices ``used``, which are in increasing order."""
        if len(used) == len(self):
            return self
        keep = np.zeros(len(self), dtype=bool)
        keep[used] = True
        of_kind = [keep[self.kinds == kind] for kind in (ROW, SPARSE, OTHER)]
        entries = of_kind[SPARSE][self.owners]
        owners = (np.cumsum(of_kind[SPARSE]) - 1)[self.owners[entries]]
        others = tuple(x for x, kept in zip(self.others, of_kind[OTHER], strict=True) if kept)
        rows = self.rows if of_kind[ROW].all() else self.rows[of_kind[ROW]]
        return Stack(self.shape, self.kinds[used], rows, owners, self.indices[entries], self.values[entries], others)

    def products(self, z: Any) -> np.ndarray:
        """The inner products <x_i, z> of all points with z, an array or a structured point."""
        found = np.empty(len(self))
        if len(self.rows):
            found[self.kinds == ROW] = self._of_rows(z)
        if n_sparse := len(self) - len(self.rows) - len(self.others):
            found[self.kinds == SPARSE] = self._of_sparse(z, n_sparse)
        if self.others:
            found[self.kinds == OTHER] = [inner(x, z) for x in self.others]
        return found

    def _of_rows(self, z: Any) -> Any:
        if isinstance(z, np.ndarray):
            return self.rows @ z.reshape(-1)
        if isinstance(z, SparseArray):
            return self.rows[:, z.indices] @ z.values
        return [inner(row.reshape(self.shape), z) for row in self.rows]

    def _of_sparse(self, z: Any, n_sparse: int) -> Any:
        if isinstance(z, np.ndarray):
            terms = self.values * z.reshape(-1).take(self.indices)
        elif isinstance(z, SparseArray):
            if not len(z.indices):
                return 0.0
            if len(self.indices) > SPREAD_SHARE * prod(self.shape):
                return self._of_sparse(z.to_dense(), n_sparse)
            at = np.searchsorted(z.indices, self.indices)
            at[at == len(z.indices)] = 0
            terms = self.values * z.values[at] * (z.indices[at] == self.indices)
        else:
            return [inner(x, z) for x in self if isinstance(x, SparseArray)]
        return self._summed(terms, n_sparse)

    def _summed(self, terms: np.ndarray, n_sparse: int) -> np.ndarray:
        """The sum of the terms of each sparse point, given one term for each stored entry."""
        if (self._sizes == 0).any():  # reduceat has no empty sums
            return np.bincount(self.owners, terms, n_sparse)
        return np.add.reduceat(terms, self._ends - self._sizes)

    @cached_property
    def _ends(self) -> np.ndarray:
        """For each sparse point, the number of stored entries up to its last one."""
        n_sparse = len(self) - len(self.rows) - len(self.others)
        return np.searchsorted(self.owners, np.arange(n_sparse), side="right")

    @cached_property
    def _sizes(self) -> np.ndarray:
        """Number of stored entries of each sparse point."""
        return np.diff(self._ends, prepend=0)

    def combined(self, weights: np.ndarray) -> Any:
        """The sum of weights_i x_i. It is a SparseArray if all points are sparse and have few entries."""
        total: Any = None
        sparse = weights[self.kinds == SPARSE]
        if sparse.any():
            terms = np.repeat(sparse, self._sizes) * self.values
            size = prod(self.shape)
            dense = len(self.rows) or isinstance(next(iter(self.others), None), np.ndarray)
            if dense or len(terms) > DENSE_SHARE * size:
                total = np.bincount(self.indices, terms, size).reshape(self.shape)
            else:
                total = SparseArray.of_entries(self.indices, terms, self.shape)
        of_rows = weights[self.kinds == ROW]
        if of_rows.any():
            part = (of_rows @ self.rows).reshape(self.shape)
            total = part if total is None else total + part
        for weight, other in zip(weights[self.kinds == OTHER], self.others, strict=True):
            if weight:
                total = float(weight) * other if total is None else total + float(weight) * other
        return 0.0 * self[0] if total is None else total


def _kind(x: Any) -> int:
    """The kind of a point: ROW, SPARSE or OTHER."""
    if isinstance(x, SparseArray):
        return SPARSE
    return ROW if isinstance(x, np.ndarray) and x.size <= ROW_LIMIT else OTHER


def key(x: Any) -> bytes | None:
    """Hash of the nonzero entries of an array or a SparseArray; None for other points. Equal entries have equal hashes."""
    if isinstance(x, np.ndarray):
        flat = x.reshape(-1)
        indices = np.flatnonzero(flat)
        values = flat[indices]
    elif isinstance(x, SparseArray):
        indices, values = x.indices, x.values
        if not values.all():
            indices, values = indices[values != 0], values[values != 0]
    else:
        return None
    digest = blake2b(np.asarray(indices, dtype=np.int64).tobytes(), digest_size=16)
    digest.update(np.asarray(values, dtype=float).tobytes())
    return digest.digest()
