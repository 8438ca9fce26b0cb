"""Readers that turn lines of a text file into the entries of a matrix.

There are two ways to read a line. The slow way (`LineReader._with_care`) reads lines one by one and finds their
faults. What it reads is correct by definition. The fast way (module `columns`) parses many lines together. It is used for plain
lines only, which both ways read alike.
"""

from __future__ import annotations

import codecs
import csv
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.checks import counted
from condgrad.data import columns
from condgrad.data.diagnostics import Limits, Notes, Unusable, shortly
from condgrad.data.labels import Collected, Index
from condgrad.data.observations import Observations, Side, observations

BLANKS = " "
"""The blank as a delimiter. It stands for any run of blanks and tabs."""
NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
"""A decimal number. A cell may have a mebibyte of digits, so the quantifiers are possessive: the time of a match is then linear
in the length of the cell."""
NOT_GIVEN = {"", "na", "n/a", "nan", "null", "none", "-", "?"}
"""Texts that mean a missing value, in lower case."""
INFINITE = {"inf", "infinity"}
"""Texts that mean infinity, in lower case and without a sign."""
NEWLINE, QUOTE = b'\n"'
MAX_SHORT_LINE_BYTES = 8
"""If the lines of a piece of text have at most this number of bytes on average, blank lines are removed before parsing."""

Entries = tuple[Side, Side, np.ndarray | None, np.ndarray]
"""Rows, columns and values of the entries, and the numbers of their lines. The values are None for pairs (row, column)."""


@dataclass(frozen=True)
class Layout:
    """Layout of a line: the number of fields (``width``), and the places of the row, the column and the value among them.

    ``value`` is None if there is no value.
    """

    delimiter: str
    width: int
    row: int = 0
    col: int = 0
    value: int | None = None
    comment: str = "#"


def fields_of(line: str, delimiter: str) -> list[str]:
    """Split one line into its cells.

    Parameters
    ----------
    line : str
    delimiter : str
        One character; a blank stands for any run of blanks and tabs.

    Returns
    -------
    cells : list of str
        The cells, without the quotes and the blanks around a cell.

    Raises
    ------
    csv.Error
        If a quote is not closed, or if the line has quotes and a cell of more than 128 KiB.

    Examples
    --------
    >>> fields_of('ann, "Alien, part 2",5', ",")
    ['ann', 'Alien, part 2', '5']
    """
    if delimiter == BLANKS:
        line = line.replace("\t", " ").strip(" ")
    if '"' not in line:
        found = line.split(delimiter)
        if delimiter == BLANKS:
            return [cell for cell in found if cell]
        return [cell.strip(" \t") for cell in found] if " " in line or "\t" in line else found
    row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True))
    return [cell.strip(" \t") for cell in row]


def number_of(text: str) -> float:
    """The finite number in a cell. Raises Unusable if the cell is not a finite number."""
    if not NUMBER.fullmatch(text):
        word = text.lower()
        if word in NOT_GIVEN:
            raise Unusable("missing value", f"the value is {shortly(text)}", "a number was expected")
        if word.lstrip("+-") in INFINITE:
            raise Unusable("not finite", f"the value is {shortly(text)}", "a finite number was expected")
        raise Unusable("not a number", f"the value is {shortly(text)}", "a number was expected")
    if not np.isfinite(value := float(text)):
        raise Unusable("not finite", f"the value {shortly(text)} is too large", "a finite number was expected")
    return value


class LineReader(ABC):
    """Abstract base class of readers of text files. A file is read in pieces of whole lines."""

    def __init__(self, layout: Layout, notes: Notes, limits: Limits):
        self.layout, self.notes, self.limits = layout, notes, limits

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of entries read so far."""

    @abstractmethod
    def _by_library(self, lines: np.ndarray, data: np.ndarray, quotes: bool) -> np.ndarray:
        """Parse many lines at once by `columns`, and add the valid lines. Returns the mask of the added lines.

        ``quotes`` tells whether cells may be quoted.
        """

    @abstractmethod
    def _add(self, line: int, text: str) -> None:
        """Parse one line and add it. Raises Unusable if the line has a fault."""

    def _drop(self, line: int) -> None:  # noqa: B027 - most readers do nothing here
        """Handle a line that was not added because it has a fault."""

    def read(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Read a file.

        Parameters
        ----------
        pieces : iterable of (first, text)
            ``text`` has whole lines in UTF-8, each with a newline at its end. ``first`` is the number of its first line,
            counted from 1.
        """
        for first, text in pieces:
            lines, text, blank = _without_blank_lines(first, text)
            data = np.frombuffer(text, dtype=np.uint8)
            done = self._add_plain_lines(lines, text, data)
            self.notes.blank += blank
            self.notes.lines += int(np.count_nonzero(done))
            if not done.all():
                self._with_care(lines, data, np.flatnonzero(~done))
            if self.count > self.limits.entries:
                self.notes.refuse(
                    f"there are more than {self.limits.entries} entries, but no more are allowed",
                    "split the file, or raise Limits(entries=...)",
                )

    def _add_plain_lines(self, lines: np.ndarray, text: bytes, data: np.ndarray) -> np.ndarray:
        """Add all plain lines of a text together; ``data`` has the bytes of the text. Returns the mask of the added lines."""
        done = ~self._not_plain(text, data, len(lines))
        quotes = self.layout.delimiter != BLANKS and b'"' in text
        if done.all():
            return self._by_library(lines, data, quotes) if len(lines) else done
        if done.any():
            data = data[np.repeat(done, np.diff(_ends(data), prepend=-1))]
            done[done] = self._by_library(lines[done], data, quotes)
        return done

    def _not_plain(self, text: bytes, data: np.ndarray, lines: int) -> np.ndarray:
        """Mask of the lines that are not plain: long lines, and lines with a comment, a NUL byte or unusual quotes."""
        odd = np.zeros(lines, dtype=bool)
        comment, half = self.layout.comment, self.limits.line // 2
        if any(text.find(b"\n", k, k + half) < 0 for k in range(0, len(text) - half + 1, max(half, 1))):
            odd |= np.diff(_ends(data), prepend=-1) - 1 > self.limits.line
        odd[:1] |= text.startswith(codecs.BOM_UTF8)  # pyarrow would remove the byte order mark
        for byte in (b"\0", comment.encode(), b'"'):
            if byte not in text:
                continue
            ends, at = _ends(data), np.flatnonzero(data == ord(byte))
            if byte == b'"' and self.layout.delimiter != BLANKS and columns.quotes_are_read():
                odd[_badly_quoted(data, ends, at, self.layout.delimiter)] = True
                continue
            if byte == comment.encode():  # a comment begins after a blank or a newline; elsewhere the character is text
                at = at[(at == 0) | np.isin(data[at - 1], [*b"\n \t"])]
            odd[np.searchsorted(ends, at)] = True
        return odd

    def _with_care(self, numbers: np.ndarray, data: np.ndarray, which: np.ndarray) -> None:
        """Read the lines with the indices ``which`` one by one, and record their faults."""
        for number, line, size in self._texts(numbers, data, which):
            try:
                if size > self.limits.line:
                    raise Unusable("long line", f"{size} bytes", f"at most {self.limits.line} are allowed")
                if "\0" in line:
                    raise Unusable("NUL byte", "the line holds a NUL byte", "text was expected")
                self._add(number, line)
            except Unusable as error:
                self.notes.fault(error.args[0], number, *error.args[1:])
                self._drop(number)

    def _texts(self, numbers: np.ndarray, data: np.ndarray, which: np.ndarray) -> Iterator[tuple[int, str, int]]:
        """Yield (number, text, length in bytes) of each line that has data. Blank lines and comments are only counted."""
        ends = _ends(data)
        starts = np.concatenate([[0], ends[:-1] + 1])
        for number, start, end in zip(*(side[which].tolist() for side in (numbers, starts, ends)), strict=True):
            line = data[start : min(end, start + self.limits.line)].tobytes().decode(errors="ignore")
            if not line.strip():
                self.notes.blank += 1
            elif line.lstrip(" \t").startswith(self.layout.comment):
                self.notes.comments += 1
            else:
                self.notes.lines += 1
                yield number, line, end - start

    def _fields(self, line: str) -> list[str]:
        """The cells of a line. Raises Unusable if the number of cells or the quotes are wrong."""
        try:
            found = fields_of(line, self.layout.delimiter)
        except csv.Error as error:
            raise Unusable("open quote", f"the quotes are wrong ({error})", "quotes in pairs were expected") from None
        if len(found) != self.layout.width:
            given = f"{counted(len(found), 'field')} in {shortly(line)}"
            raise Unusable("wrong number of fields", given, f"{self.layout.width} were expected")
        return found


class TableReader(LineReader):
    """Abstract base class of readers of lines that all have the same number of fields."""

    wanted: Sequence[int]
    """Numbers of the columns to read."""

    @abstractmethod
    def _cells(self, lines: np.ndarray, cells: dict[int, Any]) -> np.ndarray:
        """Add the lines whose cells are all valid. Returns the mask of the added lines."""

    def _by_library(self, lines: np.ndarray, data: np.ndarray, quotes: bool) -> np.ndarray:
        layout = self.layout
        data = single_blanks(data) if layout.delimiter == BLANKS else data
        cells, done = columns.parse(data, layout.delimiter, layout.width, self.wanted, quotes, number=layout.value)
        if done.all():
            return self._cells(lines, cells)
        done[done] = self._cells(lines[done], cells)
        return done


class EntryReader(TableReader):
    """Reads lines that have one entry each: a row, a column and a value.

    Parameters
    ----------
    layout : Layout
    rows, cols : Index
        Collectors of the rows and of the columns, for names or for positions.
    notes : Notes
    limits : Limits
    """

    def __init__(self, layout: Layout, rows: Index, cols: Index, notes: Notes, limits: Limits):
        super().__init__(layout, notes, limits)
        self.wanted = [c for c in (layout.row, layout.col, layout.value) if c is not None]
        self.rows, self.cols, self.lines, self.values = rows, cols, Collected(), Collected(float)

    @property
    def count(self) -> int:
        return self.lines.size

    def close(self) -> Observations:
        """The observations in the whole file."""
        return observations(*self.entries(), self.notes, self.limits)

    def entries(self) -> Entries:
        """The entries that were read: rows, columns, values and line numbers."""
        values = None if self.layout.value is None else self.values.close()
        return self.rows.close(), self.cols.close(), values, self.lines.close()

    def _cells(self, lines: np.ndarray, cells: dict[int, Any]) -> np.ndarray:
        layout = self.layout
        rows, ok = self.rows.parse(cells[layout.row])
        cols, good = self.cols.parse(cells[layout.col])
        ok &= good
        values = None
        if layout.value is not None:
            values, good = columns.decimals(cells[layout.value])
            ok &= good
        if not ok.all():
            rows, cols, lines = (columns.chosen(side, ok) for side in (rows, cols, lines))
            values = None if values is None else values[ok]
        self.rows.take(rows)
        self.cols.take(cols)
        self.lines.extend(lines)
        if values is not None:
            self.values.extend(values)
        return ok

    def _add(self, line: int, text: str) -> None:
        found = self._fields(text)
        row, col = self.rows.check(found[self.layout.row]), self.cols.check(found[self.layout.col])
        if self.layout.value is not None:
            self.values.add(number_of(found[self.layout.value]))
        self.rows.add(row)
        self.cols.add(col)
        self.lines.add(line)


def _ends(data: np.ndarray) -> np.ndarray:
    return np.flatnonzero(data == NEWLINE)


def _without_blank_lines(first: int, piece: bytes) -> tuple[np.ndarray, bytes, int]:
    """Remove the blank lines of a piece of text if there are many, because a small gzip file may hold millions of them.

    If lines are long on average, there are few blank lines. They are then kept here, and `LineReader._with_care` skips them.

    Returns the numbers of the remaining lines, the remaining text, and the number of removed lines.
    """
    data = np.frombuffer(piece, dtype=np.uint8)
    newline = data == NEWLINE
    lines = int(np.count_nonzero(newline))
    if MAX_SHORT_LINE_BYTES * lines < len(data) or not piece:
        return np.arange(first, first + lines), piece, 0
    ends = np.flatnonzero(newline)
    full = np.logical_or.reduceat(~np.isin(data, [*b" \t\n\r\f\v"]), np.concatenate([[0], ends[:-1] + 1]))
    numbers = first + np.flatnonzero(full)
    return numbers, data[np.repeat(full, np.diff(ends, prepend=-1))].tobytes(), lines - len(numbers)


def single_blanks(data: np.ndarray) -> np.ndarray:
    """Reduce the blanks and tabs between two fields to one blank, and remove them at the beginning and the end of each line."""
    text = data.tobytes().replace(b"\t", b" ")
    while b"  " in text:  # each pass halves the runs of blanks
        text = text.replace(b"  ", b" ")
    text = text.replace(b"\n ", b"\n").replace(b" \n", b"\n").removeprefix(b" ")
    return np.frombuffer(text, dtype=np.uint8)


def _badly_quoted(data: np.ndarray, ends: np.ndarray, quotes: np.ndarray, delimiter: str) -> np.ndarray:
    """Indices of the lines in which a quote is not closed, or is neither the first nor the last character of a field."""
    line = np.searchsorted(ends, quotes)
    begins = np.flatnonzero(np.diff(line, prepend=-1))
    turn = (np.arange(len(quotes)) - np.repeat(begins, np.diff(begins, append=len(quotes)))) % 2
    beside = np.where(turn == 0, data[quotes - 1], data[np.minimum(quotes + 1, len(data) - 1)])
    beside[(turn == 0) & (quotes == 0)] = NEWLINE
    last = np.append(begins[1:], len(quotes)) - 1
    wrong = (beside != NEWLINE) & (beside != ord(delimiter))
    return np.concatenate([line[wrong], line[last[turn[last] == 0]]])
