"""The class `Blocks`: points of a product of sets. Each block is an array or a structured point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from condgrad.checks import read_only, real_array, same_shape
from condgrad.points.base import Structured, inner
from condgrad.storage.stored import check_array, stored


def _validate(x: Blocks) -> None:
    for at, block in enumerate(x.blocks):
        if not isinstance(block, Structured):
            check_array(block, block.shape, f"block {at}")
    if x.shape != _flat_shape(x.blocks):
        raise ValueError(f"the shape is {x.shape}, but the blocks together have the shape {_flat_shape(x.blocks)}")
    if x.names is not None and (len(x.names) != len(x.blocks) or len({*x.names}) != len(x.names)):
        raise ValueError("a different name for each block was expected")


@stored(fields=("blocks", "names", "shape"), validate=_validate)
class Blocks(Structured):
    """A point made of blocks, such as a matrix and a vector. Each block keeps its own structure.

    Points of a :class:`condgrad.Product` are of this class. Sums, multiples and inner products are computed block by block.
    Conversion to an array gives the vector of all entries, one block after the other. The sum of a ``Blocks`` and such a vector
    is a ``Blocks``.

    Parameters
    ----------
    *blocks : array_like or Structured
        The blocks, by position.
    **named : array_like or Structured
        The blocks, by name. Give all blocks by position or all blocks by name.

    Attributes
    ----------
    blocks : tuple of Points
        The blocks in order. ``x[0]`` is the first block, and ``x["name"]`` is the block with this name.
    names : tuple of str or None
        Names of the blocks; None if the blocks were given by position.
    shape : tuple of int
        ``(N,)``, the number of entries of all blocks together.

    Raises
    ------
    ValueError
        If there is no block, or if both positions and names are given.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> x = cg.Blocks(matrix=np.eye(2), vector=np.array([3.0, 4.0]))
    >>> y = 2 * x - x
    >>> y["vector"], y.inner(x), np.asarray(y)
    (array([3., 4.]), 27.0, array([1., 0., 0., 1., 3., 4.]))
    >>> matrix, vector = y
    """

    def __init__(self, *blocks: Any, **named: Any):
        if bool(blocks) == bool(named):
            raise ValueError("Blocks takes at least one block: give all blocks by position, or all by name, not both.")
        given = blocks or tuple(named.values())
        self._set(tuple(map(_as_block, given)), tuple(named) if named else None)

    def _set(self, blocks: tuple[Any, ...], names: tuple[str, ...] | None) -> None:
        self.blocks, self.names, self.shape = blocks, names, _flat_shape(blocks)

    @classmethod
    def of(cls, blocks: tuple[Any, ...], names: tuple[str, ...] | None = None) -> Blocks:
        """Make a point of blocks (arrays or structured points), which are neither checked nor copied."""
        made = cls.__new__(cls)
        made._set(blocks, names)
        return made

    def __getitem__(self, key: int | str) -> Any:
        if not isinstance(key, str):
            return self.blocks[key]
        if self.names is None or key not in self.names:
            known = f"{len(self.blocks)} blocks without names" if self.names is None else ", ".join(self.names)
            raise KeyError(f"There is no block {key!r}: there are {known}.")
        return self.blocks[self.names.index(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def dtype(self) -> np.dtype:
        """The type of the block with the lowest precision. A structured block without a dtype counts as float64."""
        types = [np.dtype(getattr(block, "dtype", float)) for block in self.blocks]
        return max(types, key=lambda one: float(np.finfo(one).eps))

    def map(self, function: Callable[[Any], Any]) -> Blocks:
        """Apply a function to each block. The results are the blocks of the new point."""
        return Blocks.of(tuple(map(function, self.blocks)), self.names)

    def like(self, given: Any, what: str = "The point") -> Blocks:
        """Copy numbers into a new point, with blocks of the same names and shapes as this point.

        Parameters
        ----------
        given : Blocks, sequence of blocks, mapping from names to blocks, or array of shape (N,)
            The numbers. Given blocks must have the same shapes as the blocks of this point.
        what : str, default "The point"
            Name of the given numbers in messages.

        Returns
        -------
        Blocks

        Raises
        ------
        ValueError
            If the given blocks differ from the blocks of this point in their names, number or shapes.
        """
        if isinstance(given, Mapping):
            if self.names is None or {*given} != {*self.names}:
                raise ValueError(
                    f"{what} has the blocks {', '.join(map(str, given))}, but "
                    f"{', '.join(self.names) if self.names else f'{len(self.blocks)} blocks without names'} were expected."
                )
            given = [given[name] for name in self.names]
        if isinstance(given, Blocks | tuple | list):
            pieces = tuple(_as_block(np.array(b) if isinstance(b, np.ndarray) else b) for b in given)  # copies
            if len(pieces) != len(self.blocks):
                raise ValueError(f"{what} has {len(pieces)} blocks, but {len(self.blocks)} were expected.")
            for at, (piece, block) in enumerate(zip(pieces, self.blocks, strict=True)):
                name = at if self.names is None else self.names[at]
                same_shape(tuple(piece.shape), tuple(block.shape), f"Block {name} of {what[0].lower()}{what[1:]}")
        else:
            if isinstance(given, Structured):
                raise TypeError(
                    f"{what} is a {type(given).__name__}, but blocks or a vector of all entries were expected."
                )
            flat = real_array(given, what)
            same_shape(flat.shape, self.shape, what)
            pieces = self.split(flat)
        filled = (b.like(p, what) if isinstance(b, Blocks) else p for b, p in zip(self.blocks, pieces, strict=True))
        return Blocks.of(tuple(filled), self.names)

    def split(self, flat: np.ndarray) -> tuple[np.ndarray, ...]:
        """Split a vector of all entries into views with the shapes of the blocks."""
        return split(flat, [tuple(block.shape) for block in self.blocks])

    def uncached(self) -> Blocks:
        """Copy of the point for a run, which may merge the terms of low-rank blocks in place. Only low-rank blocks are copied."""
        return self.map(lambda block: block.uncached() if hasattr(block, "uncached") else block)

    def scaled(self, factor: float) -> Blocks:
        return self.map(lambda block: factor * block)

    def plus(self, other: Any) -> Any:
        if not isinstance(other, Blocks):
            return NotImplemented
        self._same_layout(other)
        sums = tuple(a + b for a, b in zip(self.blocks, other.blocks, strict=True))
        return Blocks.of(sums, self.names)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            self.same_shape(other)
            other = Blocks.of(self.split(other), self.names)
        return self.plus(other) if isinstance(other, Structured) else NotImplemented

    __radd__ = __add__

    def inner(self, other: Any) -> float:
        self.same_shape(other)
        if isinstance(other, np.ndarray):
            others: tuple[Any, ...] = self.split(other)
        elif isinstance(other, Blocks):
            self._same_layout(other)
            others = other.blocks
        else:
            return inner(other, self.to_dense())
        return sum((inner(a, b) for a, b in zip(self.blocks, others, strict=True)), 0.0)

    def to_dense(self) -> np.ndarray:
        return np.concatenate([np.asarray(block, dtype=float).ravel() for block in self.blocks])

    def __matmul__(self, other: Any) -> Any:
        raise TypeError(
            "A Blocks is no matrix: take its blocks, x[0] or x['name'], or np.asarray(x), which is a vector."
        )

    __rmatmul__ = __matmul__

    def _same_layout(self, other: Blocks) -> None:
        mine, others = ([tuple(block.shape) for block in x.blocks] for x in (self, other))
        if mine != others:
            raise ValueError(f"Got blocks of shapes {others} and of shapes {mine}: give both the same shapes.")

    def __repr__(self) -> str:
        names = self.names or [str(at) for at in range(len(self.blocks))]
        shown = (f"{name}: {_shown(block)}" for name, block in zip(names, self.blocks, strict=True))
        return f"Blocks({', '.join(shown)})"


def split(flat: np.ndarray, shapes: list[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
    """Split a vector into consecutive views with these shapes."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return tuple(part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True))


def _flat_shape(blocks: tuple[Any, ...]) -> tuple[int, ...]:
    return (sum(math.prod(block.shape) for block in blocks),)


def _as_block(block: Any) -> Any:
    """Return a structured point unchanged. Convert anything else to a read-only array of floats with at least one axis."""
    if isinstance(block, Structured):
        return block
    array = np.asarray(block)
    if array.dtype.kind != "f":
        array = real_array(block, "A block")
    return read_only(np.atleast_1d(array))


def _shown(block: Any) -> str:
    return repr(block) if isinstance(block, Structured) else f"array of shape {block.shape}"
