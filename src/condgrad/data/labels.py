"""Numbering of rows and columns while a file is read: the row of each entry becomes a position 0, 1, 2, ..., as does the column.

`Names` is used if the file gives rows or columns by name, `Positions` if it gives them by position.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

import numpy as np

from condgrad.data import arrow_columns
from condgrad.data.diagnostics import Limits, Notes, Unusable, shortly

INTEGER = re.compile(r"-?[1-9][0-9]{0,17}|0")
"""Integers as Python writes them. 007 and +7 do not match, because they are other names than 7."""
MAX_RANGE_FACTOR = 4
"""Distinct integers are found by a lookup table if their range is at most this factor times their count, else by sorting."""

MAX_PENDING_BYTES = 64 * 2**20
"""Names are collected up to this number of bytes and then numbered together, which is faster than numbering small pieces."""


class Collected:
    """Growing array: numbers are appended one by one or in arrays, and their order is kept.

    Parameters
    ----------
    dtype : type, default int
        Type of the numbers.
    """

    def __init__(self, dtype: type = int):
        self.dtype = dtype
        self.size = 0
        self._parts: list[np.ndarray] = []
        self._single: list[Any] = []

    def add(self, number: Any) -> None:
        self._single.append(number)
        self.size += 1

    def extend(self, numbers: np.ndarray) -> None:
        self._parts += [np.array(self._single, dtype=self.dtype), numbers]
        self._single = []
        self.size += len(numbers)

    def close(self) -> np.ndarray:
        """All numbers in one array."""
        return np.concatenate([*self._parts, np.array(self._single, dtype=self.dtype)])


class Index(Protocol):
    """Interface of `Names` and `Positions`, which collect the row (or the column) of each entry that is read.

    Cells are added in two ways: many cells at once by `parse` and `take`, or one cell by `check` and `add`.
    """

    def parse(self, column: Any) -> tuple[Any, np.ndarray]:
        """Convert a column of cells to the form that `take` accepts. Returns the converted cells and the mask of the valid ones.

        Cells that are not valid here are then read one by one.
        """

    def take(self, cells: Any) -> None:
        """Add converted cells. All of them must be valid according to `parse`, or be integers that `fits` accepts."""

    def fits(self, numbers: np.ndarray) -> bool:
        """Whether `take` accepts these integers."""

    def check(self, text: str) -> Any:
        """Convert one cell to the form that `add` accepts. Raises Unusable if the cell is not valid."""

    def add(self, checked: Any) -> None:
        """Add one cell that `check` converted."""

    def close(self) -> tuple[np.ndarray, np.ndarray | None, int]:
        """Return the position of each added cell, the name of each position (or None), and the number of positions."""


class Names:
    """Collector of rows or columns that have names. The position of a name is its place among the sorted names.

    The names become integers if all of them are integers, else strings.

    Parameters
    ----------
    what : str
        "row" or "column", for messages.
    notes : Notes
    limits : Limits
        ``limits.side`` is the maximum number of different names.
    """

    def __init__(self, what: str, notes: Notes, limits: Limits):
        self.what, self.notes, self.limits = what, notes, limits
        self._parts: list[
            tuple[np.ndarray, Any]
        ] = []  # (integers, None), or (codes, the names that the codes refer to)
        self._texts: list[Any] = []  # pyarrow columns that are not numbered yet
        self._codes: dict[str, int] = {}
        self._single: list[int] = []

    def parse(self, column: Any) -> tuple[Any, np.ndarray]:
        if isinstance(column, list):
            return column, np.fromiter(map(bool, column), dtype=bool, count=len(column))
        numbers = arrow_columns.integers(column)
        if numbers is not None:
            return numbers, np.ones(len(numbers), dtype=bool)
        ok = arrow_columns.filled(column)
        if not ok.all():  # for example, a cell begins with a blank
            column = arrow_columns.trimmed(column)
            ok = arrow_columns.filled(column)
        return column, ok

    def take(self, cells: Any) -> None:
        if isinstance(cells, list):
            for name in dict.fromkeys(cells):
                self._codes.setdefault(name, len(self._codes))
            self._single += map(self._codes.__getitem__, cells)
            self._check_size(len(self._codes))
            return
        self._flush()
        if isinstance(cells, np.ndarray):
            self._encode()
            self._parts.append((cells, None))
        elif len(cells):
            self._texts.append(cells)
            if sum(column.nbytes for column in self._texts) > MAX_PENDING_BYTES:
                self._encode()

    def fits(self, numbers: np.ndarray) -> bool:
        return True

    def check(self, text: str) -> str:
        if not text:
            raise Unusable("missing id", f"the {self.what} is empty", "a name or a number was expected")
        return text

    def add(self, checked: str) -> None:
        self._single.append(self._codes.setdefault(checked, len(self._codes)))
        self._check_size(len(self._codes))

    def _flush(self) -> None:
        if self._single:
            self._encode()
            self._parts.append((np.array(self._single), self._codes))
            self._single = []

    def _encode(self) -> None:
        if self._texts:
            self._parts.append(arrow_columns.encode(self._texts))
            self._texts = []

    def close(self) -> tuple[np.ndarray, np.ndarray, int]:
        self._flush()
        self._encode()
        listed = list(self._codes)
        if all(map(INTEGER.fullmatch, listed)):
            numbers = np.array(listed, dtype=np.int64)
            self._parts = [
                (numbers[codes], None) if names is self._codes else (codes, names) for codes, names in self._parts
            ]
        if all(names is None for _, names in self._parts):
            positions, ids = unique_integers(
                np.concatenate([*(codes for codes, _ in self._parts), np.empty(0, np.int64)])
            )
        elif all(names is self._codes for _, names in self._parts):
            positions, ids = _sorted(np.concatenate([codes for codes, _ in self._parts]), listed)
        else:
            parts = [
                unique_integers(codes) if names is None else (codes, listed if names is self._codes else names)
                for codes, names in self._parts
            ]
            positions, ids = arrow_columns.merge(parts)
            if all(map(INTEGER.fullmatch, ids)):
                positions, ids = _sorted(positions, ids.astype(np.int64))
        self._check_size(len(ids))
        return positions, ids, len(ids)

    def _check_size(self, size: int) -> None:
        if size > self.limits.side:
            self.notes.refuse(
                f"there are more than {self.limits.side} {self.what}s, but no more are allowed",
                "check the columns, or raise Limits(side=...)",
            )


def unique_integers(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the position of each number among the distinct numbers, and the distinct numbers in increasing order."""
    if not len(numbers):
        return numbers, numbers
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > MAX_RANGE_FACTOR * len(numbers):
        ids, positions = np.unique(numbers, return_inverse=True)
        return positions, ids
    shifted = numbers - low if low else numbers
    seen = np.zeros(high - low + 1, dtype=bool)
    seen[shifted] = True
    return shifted if seen.all() else (np.cumsum(seen) - 1)[shifted], np.flatnonzero(seen) + low


def _sorted(codes: np.ndarray, names: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the position of each code's name among the sorted names, and the sorted names."""
    names = np.array([*names, None], dtype=object)[:-1] if isinstance(names, list) else names
    order = np.argsort(names, kind="stable")
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return rank[codes], names[order]


class Positions:
    """Collector of rows or columns that the file gives as positions, counted from ``base``.

    Parameters
    ----------
    what : str
        "row" or "column", for messages.
    limits : Limits
        ``limits.side`` is the maximum number of positions if ``size`` is None.
    base : int, default 0
        First position in the file.
    size : int, default None
        Number of positions. By default the largest position in the file is the last one.
    """

    def __init__(self, what: str, limits: Limits, base: int = 0, size: int | None = None):
        self.what, self.base, self.size = what, base, size
        self.known = limits.side if size is None else size
        self._found = Collected()

    def parse(self, column: Any) -> tuple[Any, np.ndarray]:
        numbers: np.ndarray | None
        if isinstance(column, list):
            known = {name: self._number(name) for name in dict.fromkeys(column)}
            numbers = np.fromiter(map(known.__getitem__, column), dtype=np.int64, count=len(column))
        elif (numbers := arrow_columns.integers(column)) is None:
            codes, names = arrow_columns.encode([column])
            numbers = np.array([self._number(name) for name in names.to_pylist()], dtype=np.int64)[codes]
        return numbers, self._inside(numbers)

    def _number(self, text: str) -> int:
        """The integer in a cell. If the cell is not an integer: ``base - 1``, which is not a valid position."""
        return int(text) if INTEGER.fullmatch(text) else self.base - 1

    def take(self, cells: Any) -> None:
        self._found.extend(cells - self.base)

    def fits(self, numbers: np.ndarray) -> bool:
        return bool(self._inside(numbers).all())

    def _inside(self, numbers: np.ndarray) -> np.ndarray:
        return (numbers >= self.base) & (numbers < self.base + self.known)

    def check(self, text: str) -> int:
        last = self.base + self.known - 1
        expected = f"a whole number from {self.base} to {last} was expected"
        if not text:
            raise Unusable("missing id", f"the {self.what} is empty", expected)
        try:
            number = float(text)
        except ValueError:
            number = np.nan
        if number != np.floor(number) or not self.base <= number <= last or "_" in text:
            raise Unusable("bad index", f"the {self.what} is {shortly(text)}", expected)
        return int(number) - self.base

    def add(self, checked: int) -> None:
        self._found.add(checked)

    def close(self) -> tuple[np.ndarray, None, int]:
        positions = self._found.close()
        return positions, None, int(positions.max(initial=-1)) + 1 if self.size is None else self.size
