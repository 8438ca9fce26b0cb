"""Lines of (row, column, value): all plain ones of a chunk at once, each other one with care."""

from __future__ import annotations

import csv
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from condgrad.checks import counted
from condgrad.data.diagnostics import Limits, Notes, shortly
from condgrad.data.fields import QUOTE, cells, decimals, lines_with, split, trim, without_blank
from condgrad.data.labels import Index, Unusable
from condgrad.data.observations import Observations, Side, observations

BLANKS = " "
"""As a delimiter: any run of blanks and tabs."""

NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
"""Possessive, so that no digit is looked at twice: a cell may be a mebibyte of them."""
NOT_GIVEN = {"", "na", "n/a", "nan", "null", "none", "-", "?"}
INFINITE = {"inf", "infinity"}

Entries = tuple[Side, Side, np.ndarray | None, np.ndarray]
"""(rows, columns, values, lines)."""


@dataclass(frozen=True)
class Layout:
    """Layout of a line: the number of fields, and which of them are the row, the column and the value (None: no value)."""

    delimiter: str
    width: int
    row: int
    col: int
    value: int | None
    comment: str = "#"


def fields_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line; csv.Error where a quote is not closed or a cell is absurdly long."""
    if delimiter == BLANKS:
        line = line.replace("\t", " ").strip(" ")
    if '"' not in line:
        found = (cell.strip(" \t") for cell in line.split(delimiter))
        return [cell for cell in found if cell] if delimiter == BLANKS else list(found)
    row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True))
    return [cell.strip(" \t") for cell in row]


def number_of(text: str) -> float:
    """The value in a cell; Unusable where it has none."""
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


class Chunks(ABC):
    """Abstract: reads a file chunk by chunk, and ``count``s what it has found."""

    notes: Notes
    limits: Limits
    count: int

    def read(self, first: int, chunk: bytes) -> None:
        """Lines, of which the first one has this number."""
        numbers, data = without_blank(first, chunk)
        self.notes.blank += chunk.count(b"\n") - len(numbers)
        done = self._plain(numbers, data)
        self.notes.lines += int(done.sum())
        self._with_care(numbers, data, np.flatnonzero(~done))
        if self.count > self.limits.entries:
            self.notes.refuse(
                f"there are more than {self.limits.entries} entries, but no more are allowed",
                "split the file, or raise Limits(entries=...)",
            )

    @abstractmethod
    def _plain(self, lines: np.ndarray, data: np.ndarray) -> np.ndarray:
        """Takes all lines that are as they should be; tells which they were."""

    @abstractmethod
    def _with_care(self, numbers: np.ndarray, data: np.ndarray, which: np.ndarray) -> None:
        """Takes these lines one by one, or says what is wrong with them."""


class Reader(Chunks):
    """Gathers the entries of a file."""

    def __init__(self, layout: Layout, rows: Index, cols: Index, notes: Notes, limits: Limits):
        self.layout, self.rows, self.cols, self.notes, self.limits = layout, rows, cols, notes, limits
        self.lines: list[np.ndarray] = []
        self.values: list[np.ndarray] = []
        self.count = 0

    def close(self) -> Observations:
        return observations(*self.entries(), self.notes, self.limits)

    def entries(self) -> Entries:
        """All that was gathered."""
        lines = np.concatenate([*self.lines, np.empty(0, dtype=np.int64)])
        values = None if self.layout.value is None else np.concatenate([*self.values, np.empty(0)])
        return self.rows.close(), self.cols.close(), values, lines

    def _plain(self, lines: np.ndarray, data: np.ndarray) -> np.ndarray:
        layout = self.layout
        blanks = layout.delimiter == BLANKS
        fields = split(data, b" \t" if blanks else layout.delimiter.encode(), collapse=blanks)
        good = fields.per_line() == layout.width
        good &= lines_with(data, 0) == 0
        chosen = good[fields.line]
        start, end = (side[chosen].reshape(-1, layout.width) for side in (fields.start, fields.end))
        if (quotes := lines_with(data, QUOTE)).any():
            opens, closes = data[start] == QUOTE, data[np.maximum(end - 1, 0)] == QUOTE
            ok = (opens == closes).all(axis=1) & (quotes[good] == 2 * opens.sum(axis=1))
            start, end = start + (opens & ok[:, None]), end - (opens & ok[:, None])
        else:
            ok = np.ones(len(start), dtype=bool)
        columns = [c for c in (layout.row, layout.col, layout.value) if c is not None]
        for c in {0, *columns}:
            start[:, c], end[:, c], bare = trim(data, start[:, c], end[:, c])
            ok &= bare
        ok &= data[start[:, 0]] != ord(layout.comment)
        rows, cols, *value = (cells(data, start[:, c], end[:, c]) for c in columns)
        ok &= self.rows.easy(rows) & self.cols.easy(cols)
        if value:
            numbers, easy = decimals(value[0])
            ok &= easy
            self.values.append(numbers[ok])
        self.rows.take(rows.take(ok))
        self.cols.take(cols.take(ok))
        done = np.zeros(len(good), dtype=bool)
        done[np.flatnonzero(good)[ok]] = True
        self.lines.append(lines[done])
        self.count += int(ok.sum())
        return done

    def _with_care(self, numbers: np.ndarray, data: np.ndarray, which: np.ndarray) -> None:
        lines, values = [], []
        for number, line in text_lines(numbers, data, which, self.layout.comment, self.notes, self.limits):
            try:
                row, col, value = self._entry(line)
            except Unusable as error:
                self.notes.fault(error.args[0], number, *error.args[1:])
                continue
            self.rows.add(row)
            self.cols.add(col)
            lines.append(number)
            values.append(value)
        self.lines.append(np.array(lines, dtype=np.int64))
        self.values.append(np.array(values, dtype=float))
        self.count += len(lines)

    def _entry(self, line: str) -> tuple[object, object, float]:
        layout = self.layout
        try:
            found = fields_of(line, layout.delimiter)
        except csv.Error as error:
            raise Unusable("open quote", f"the quotes are wrong ({error})", "quotes in pairs were expected") from None
        if len(found) != layout.width:
            fields = counted(len(found), "field")
            told = f"{fields} in {shortly(line)}"
            raise Unusable("wrong number of fields", told, f"{layout.width} were expected")
        row, col = self.rows.check(found[layout.row]), self.cols.check(found[layout.col])
        return row, col, 0.0 if layout.value is None else number_of(found[layout.value])


def text_lines(
    numbers: np.ndarray, data: np.ndarray, which: np.ndarray, comment: str, notes: Notes, limits: Limits
) -> Iterator[tuple[int, str]]:
    """(number, line) of those of these lines that have data; the others are counted. ``numbers`` are those of all lines."""
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    for number, start, end in zip(*(side[which].tolist() for side in (numbers, starts, ends)), strict=True):
        line = data[start : min(end, start + limits.line)].tobytes().decode(errors="ignore")
        if not line.strip():
            notes.blank += 1
            continue
        if line.lstrip(" \t").startswith(comment):
            notes.comments += 1
            continue
        notes.lines += 1
        if end - start > limits.line:
            notes.fault("long line", number, f"{end - start} bytes", f"at most {limits.line} are allowed")
        elif "\0" in line:
            notes.fault("NUL byte", number, "the line holds a NUL byte", "text was expected")
        else:
            yield number, line
