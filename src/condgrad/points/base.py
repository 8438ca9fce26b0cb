"""Inner products and distances of points (arrays or structured points), and the base class `Structured` of structured points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np

PIECE = 2**16
"""``distance2`` subtracts large arrays in pieces of this number of entries."""


def inner(x: Any, y: Any) -> float:
    """Return the inner product <x, y>, the sum of the products of the entries.

    Parameters
    ----------
    x, y : ndarray or Structured
        Points of the same shape.

    Returns
    -------
    float
    """
    if isinstance(x, np.ndarray):
        return float(np.vdot(x, y)) if isinstance(y, np.ndarray) else float(y.inner(x))
    return float(x.inner(y))


def norm2(x: Any) -> float:
    """Return the squared Euclidean norm |x|^2 of a point."""
    return float(np.vdot(x, x)) if isinstance(x, np.ndarray) else float(x.inner(x))


def distance2(x: Any, y: Any) -> float:
    """Return |x - y|^2. A structured point may compute this number without forming x - y."""
    if not isinstance(x, np.ndarray) and isinstance(x, Structured):
        return x.distance2(y)
    if not isinstance(y, np.ndarray) and isinstance(y, Structured):
        return y.distance2(x)
    if x.size <= PIECE or x.shape != y.shape:
        return norm2(x - y)
    # in pieces that fit in the processor's cache, without an array of the size of x
    x, y = x.reshape(-1), y.reshape(-1)
    return sum(norm2(x[i : i + PIECE] - y[i : i + PIECE]) for i in range(0, x.size, PIECE))


class Structured(ABC):
    """Abstract base class of points that are stored in a compressed form, not as an array of all entries.

    A structured point is immutable. The sum of a structured point and an array is an array. A subclass defines ``shape`` and the
    four methods ``scaled``, ``plus``, ``inner`` and ``to_dense``. From these, the base class derives ``+`` and ``-``, and ``*``
    and ``/`` by numbers.

    Examples
    --------
    A vector with few nonzero entries:

    >>> import numpy as np, condgrad as cg
    >>> class Sparse(cg.Structured):
    ...     def __init__(self, entries, size):
    ...         self.entries, self.shape = entries, (size,)
    ...     def scaled(self, factor):
    ...         return Sparse({i: factor * v for i, v in self.entries.items()}, *self.shape)
    ...     def plus(self, other):
    ...         keys = self.entries | other.entries
    ...         return Sparse({i: self.entries.get(i, 0) + other.entries.get(i, 0) for i in keys}, *self.shape)
    ...     def inner(self, other):
    ...         if isinstance(other, Sparse):
    ...             return sum(v * other.entries.get(i, 0) for i, v in self.entries.items())
    ...         return sum(v * other[i] for i, v in self.entries.items())
    ...     def to_dense(self):
    ...         return np.array([float(self.entries.get(i, 0)) for i in range(*self.shape)])
    >>> class SparseSimplex:
    ...     shape = (4,)
    ...     def lmo(self, direction):
    ...         return Sparse({int(np.argmin(np.asarray(direction))): 1.0}, 4)
    >>> class Distance:
    ...     def value(self, x):
    ...         return float(np.sum((np.asarray(x) - [0.5, 0.7, 0, 0]) ** 2)) / 2
    ...     def grad(self, x):
    ...         return np.asarray(x) - [0.5, 0.7, 0, 0]
    >>> result = cg.minimize(Distance(), SparseSimplex(), method="frank-wolfe", rule="line-search", tol=1e-6)
    >>> type(result.x).__name__, np.asarray(result.x).round(3)
    ('Sparse', array([0.4, 0.6, 0. , 0. ]))
    """

    __array_ufunc__ = None  # so that array + structured calls __radd__ of this class
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @abstractmethod
    def scaled(self, factor: float) -> Any:
        """``factor`` times the point."""

    @abstractmethod
    def plus(self, other: Any) -> Any:
        """The sum with another structured point; NotImplemented if the two types can't be added."""

    @abstractmethod
    def inner(self, other: Any) -> float:
        """<self, other>, where ``other`` is an array or another structured point."""

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """The point as an array."""

    def low_rank_part(self) -> Any:
        """The part of a matrix that is stored as a LowRank. Only spectral sets use this method."""
        raise TypeError(f"A {type(self).__name__} has no part of low rank, which spectral sets need: use another set.")

    def distance2(self, other: Any) -> float:
        """Return |self - other|^2, where ``other`` is an array or another structured point."""
        return norm2(self - other)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            self.same_shape(other)
            return self.to_dense() + other
        return self.plus(other) if isinstance(other, Structured) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-1.0) * other

    def __rsub__(self, other: Any) -> Any:
        return self.scaled(-1.0) + other

    def __mul__(self, factor: Any) -> Any:
        return self.scaled(float(factor)) if isinstance(factor, Real | np.floating) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        return self * (1 / divisor)

    def __neg__(self) -> Any:
        return self.scaled(-1.0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.to_dense(), dtype=dtype)

    def same_shape(self, other: Any) -> None:
        """Raise ValueError if the shapes of ``other`` and this point differ."""
        if tuple(other.shape) != self.shape:
            raise ValueError(
                f"Got a point of shape {tuple(other.shape)} and one of shape {self.shape}: give both the same shape."
            )


def same(a: Any, b: Any) -> bool:
    """Whether two points, or two other values, are equal. Arrays are equal if all entries agree."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return a is b or bool(a == b)
