"""One side of the entries: names that become positions in order, or positions as the file has them."""

from __future__ import annotations

import re
from typing import Any, Protocol

import numpy as np

from condgrad.data.diagnostics import Limits, Notes, shortly
from condgrad.data.fields import LONGEST, Cells, integers

INTEGER = re.compile(r"-?[1-9][0-9]{0,17}|0")
"""As Python writes them: 007 and +7 are names, since 7 would not lead back to them."""


class Unusable(Exception):
    """(kind, what was found, what was expected): a cell that can't be read."""


class Index(Protocol):
    """The rows or the columns, as they are read."""

    def easy(self, column: Cells) -> np.ndarray:
        """Which cells can be taken as they are."""

    def take(self, column: Cells) -> None:
        """Cells that are all easy."""

    def fits(self, numbers: np.ndarray) -> bool:
        """Can these integers be taken as they are?"""

    def take_numbers(self, numbers: np.ndarray) -> None:
        """Integers that fit."""

    def check(self, text: str) -> Any:
        """What one cell says, for ``add``; Unusable where it says nothing."""

    def add(self, read: Any) -> None:
        """What ``check`` returned of one cell."""

    def close(self) -> tuple[np.ndarray, np.ndarray | None, int]:
        """(positions, the name of each position or None, how many there are)."""


class _Codes(dict[bytes, int]):
    """Gives each new name the next number."""

    def __missing__(self, name: bytes) -> int:
        return self.setdefault(name, len(self))


class Names:
    """Names: integers where all are such, else strings. Sorted, they get positions."""

    def __init__(self, what: str, notes: Notes, limits: Limits, numbers: bool = True):
        self.what, self.notes, self.limits = what, notes, limits
        self.codes: _Codes | None = None if numbers else _Codes()
        self.parts: list[np.ndarray] = []
        self.loose: list[int] = []

    def easy(self, column: Cells) -> np.ndarray:
        if self.codes is None:
            return integers(column)[1]
        return (column.length > 0) & (column.length <= LONGEST)

    def take(self, column: Cells) -> None:
        self._settle()
        if self.codes is None:
            self.parts.append(integers(column)[0])
        else:
            self.parts.append(np.array([self.codes[text] for text in column.texts()], dtype=np.int64))
            self._bounded(len(self.codes))

    def fits(self, numbers: np.ndarray) -> bool:
        return self.codes is None

    def take_numbers(self, numbers: np.ndarray) -> None:
        self._settle()
        self.parts.append(numbers)

    def check(self, text: str) -> str:
        if not text:
            raise Unusable("missing id", f"the {self.what} is empty", "a name or a number was expected")
        return text

    def add(self, read: str) -> None:
        if self.codes is None and INTEGER.fullmatch(read):
            self.loose.append(int(read))
            return
        if self.codes is None:
            self._settle()
            self._rename()
        assert self.codes is not None
        self.loose.append(self.codes[read.encode()])

    def close(self) -> tuple[np.ndarray, np.ndarray, int]:
        self._settle()
        given = np.concatenate([*self.parts, np.empty(0, dtype=np.int64)])
        if self.codes is None:
            ids, positions = np.unique(given, return_inverse=True)
            self._bounded(len(ids))
            return positions, ids, len(ids)
        self._bounded(len(self.codes))
        ids = np.array([name.decode() for name in self.codes], dtype=object)
        if all(map(INTEGER.fullmatch, ids)):
            ids = ids.astype(np.int64)
        order = np.argsort(ids, kind="stable")
        rank = np.empty(len(ids), dtype=np.int64)
        rank[order] = np.arange(len(ids))
        return rank[given], ids[order], len(ids)

    def _settle(self) -> None:
        if self.loose:
            self.parts.append(np.array(self.loose, dtype=np.int64))
            self.loose = []

    def _rename(self) -> None:
        """A name that is no integer has come: those before it were strings all along."""
        codes = self.codes = _Codes()
        for i, part in enumerate(self.parts):
            numbers, where = np.unique(part, return_inverse=True)
            self.parts[i] = np.array([codes[b"%d" % n] for n in numbers], dtype=np.int64)[where]

    def _bounded(self, size: int) -> None:
        if size > self.limits.side:
            self.notes.refuse(
                f"there are more than {self.limits.side} {self.what}s, but no more are allowed",
                "check the columns, or raise Limits(side=...)",
            )


class Positions:
    """Positions that count from ``base``; ``size`` is how many there are, None to take the largest."""

    def __init__(self, what: str, limits: Limits, base: int = 0, size: int | None = None):
        self.what, self.base, self.size = what, base, size
        self.known = limits.side if size is None else size
        self.parts: list[np.ndarray] = []
        self.loose: list[int] = []

    def easy(self, column: Cells) -> np.ndarray:
        number, ok = integers(column)
        return ok & self._inside(number)

    def take(self, column: Cells) -> None:
        self.take_numbers(integers(column)[0])

    def fits(self, numbers: np.ndarray) -> bool:
        return bool(self._inside(numbers).all())

    def take_numbers(self, numbers: np.ndarray) -> None:
        self.parts += [np.array(self.loose, dtype=np.int64), numbers - self.base]
        self.loose = []

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

    def add(self, read: int) -> None:
        self.loose.append(read)

    def close(self) -> tuple[np.ndarray, None, int]:
        positions = np.concatenate([*self.parts, np.array(self.loose, dtype=np.int64)])
        return positions, None, int(positions.max(initial=-1)) + 1 if self.size is None else self.size
