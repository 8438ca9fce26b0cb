"""Reader of Matrix Market files.

The first line of a file is the header. The next line has the sizes: the numbers of rows, columns and entries. In the file of a
sparse matrix, each further line has one entry. In the file of a dense matrix, each further line has one number, and the columns
of the matrix follow each other.

``scipy.io.mmread`` is not used: it reads 5,5 as 5, 0x10 as 0 and 1_0 as 1, and ignores text after the value, all without an
error.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.checks import choice, counted
from condgrad.data import columns
from condgrad.data.diagnostics import Limits, Notes, shortly
from condgrad.data.labels import Collected, Positions
from condgrad.data.lines import BLANKS, Entries, EntryReader, Layout, TableReader, number_of
from condgrad.data.observations import Observations, bounded, empty_sides, observations
from condgrad.data.text_stream import chunks

MAGIC = b"%%MatrixMarket"
"""First bytes of every Matrix Market file."""
BLANK = re.compile(rb"\s*\n")
HEADER = "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric"
"""Description of a valid header, for messages."""


def read(path: Path, notes: Notes, limits: Limits, values: bool = True) -> Observations:
    """Read a Matrix Market file. For a symmetric matrix, the entries on both sides of the diagonal are returned."""
    pieces = chunks(path, limits, notes)
    number, lines = next(pieces, (1, b""))
    at = lines.find(b"\n") + 1
    layout, kind, symmetry = _header(lines[: max(at - 1, 0)].decode(), notes)
    if kind == "pattern" and values:
        notes.refuse("the matrix is a pattern, but values were expected", "give a file that has them", 1)
    number += 1
    while True:  # up to the line with the sizes
        if at == len(lines):
            number, lines = next(pieces, (number, b""))
            if not lines:
                notes.refuse("the file ends before its sizes", "copy or download it again")
            at = 0
        if blank := BLANK.match(lines, at):
            skipped = lines.count(b"\n", at, blank.end())
            notes.blank, number, at = notes.blank + skipped, number + skipped, blank.end()
            continue
        end = lines.index(b"\n", at)
        line, at = lines[at:end], end + 1
        number += 1
        if not line.lstrip().startswith(b"%"):
            break
        notes.comments += 1
    m, n, count = _sizes(line.decode(), layout, number - 1, notes)
    if symmetry != "general" and m != n:
        notes.refuse(f"the matrix is {symmetry} and {m} x {n}", "correct its header", 1)
    bounded((m, n), notes, limits)
    due = _expected(m, n, symmetry) if count is None else count
    if due > limits.entries:
        notes.refuse(
            f"{due} entries are announced, but {limits.entries} are allowed", "raise Limits(entries=...)", number - 1
        )
    reader: _Dense | _Coordinates = (
        _Dense(m, n, symmetry, notes, limits)
        if count is None
        else _Coordinates(m, n, kind, symmetry, values, notes, limits)
    )
    reader.read(chain([(number, lines[at:])], pieces))
    if (found := notes.lines) != due:
        follow = f"{counted(found, 'entry')} follow{'s' * (found == 1)}"
        notes.fault("entries missing", number - 1, follow, f"{due:,} were announced")
    return _mirrored(reader.close(), symmetry, values)


def _header(top: str, notes: Notes) -> tuple[str, str, str]:
    words = top.split()
    if len(words) != 5 or words[0] != MAGIC.decode():
        notes.refuse(f"the header is {shortly(top)}", f"Matrix Market begins with {HEADER}", 1)
    given = [word.lower() for word in words[1:]]
    known = (
        ("matrix",),
        ("coordinate", "array"),
        ("real", "integer", "pattern", "double"),
        ("general", "symmetric", "skew-symmetric"),
    )
    for word, possible in zip(given, known, strict=True):
        try:
            choice(word, possible, "word")
        except ValueError as error:
            notes.refuse(str(error).rstrip("."), "save it as a real matrix", 1)
    if given[1:3] == ["array", "pattern"]:
        notes.refuse("the header says array and pattern", "save it as coordinate", 1)
    return given[1], given[2], given[3]


def _sizes(line: str, layout: str, number: int, notes: Notes) -> tuple[int, int, int | None]:
    words = line.split()
    wanted = 3 if layout == "coordinate" else 2
    if len(words) != wanted or not all(w.isascii() and w.isdecimal() and len(w) < 20 for w in words):
        what = "rows, columns and entries" if wanted == 3 else "rows and columns"
        notes.refuse(f"the sizes are {shortly(line)}, but {wanted} whole numbers were expected", f"give {what}", number)
    m, n, *count = map(int, words)
    return m, n, count[0] if count else None


def _expected(m: int, n: int, symmetry: str) -> int:
    """Number of values in the file of a dense matrix. For a symmetric matrix, values above the diagonal are not in the file."""
    return m * n if symmetry == "general" else m * (m + 1) // 2 - (m if symmetry == "skew-symmetric" else 0)


class _Coordinates(EntryReader):
    """Reads lines that have one entry each: a row, a column and a value.

    The file of a symmetric matrix has only the entries on and below the diagonal, and the reader adds their mirror image. An
    entry above the diagonal is therefore a fault.
    """

    def __init__(self, m: int, n: int, kind: str, symmetry: str, values: bool, notes: Notes, limits: Limits):
        self.symmetry, width = symmetry, 2 if kind == "pattern" else 3
        layout = Layout(BLANKS, width, 0, 1, 2 if width == 3 and values else None, comment="%")
        super().__init__(layout, Positions("row", limits, 1, m), Positions("column", limits, 1, n), notes, limits)

    def entries(self) -> Entries:
        (i, _, m), (j, _, n), values, lines = super().entries()
        if self.symmetry == "general":
            return (i, None, m), (j, None, n), values, lines
        skew = self.symmetry == "skew-symmetric"
        above, stay = i < j, (i != j) if skew else np.ones(len(i), dtype=bool)
        self._record_faults("above the diagonal", above, i, j, lines, "only those below it were expected")
        self._record_faults("on the diagonal", ~stay, i, j, lines, "a skew-symmetric matrix has none there")
        if values is not None and skew:
            values = np.where(above, -values, values)
        i, j = np.maximum(i, j), np.minimum(i, j)
        return (i[stay], None, m), (j[stay], None, n), None if values is None else values[stay], lines[stay]

    def _record_faults(
        self, kind: str, wrong: np.ndarray, i: np.ndarray, j: np.ndarray, lines: np.ndarray, due: str
    ) -> None:
        where = np.flatnonzero(wrong)
        where = where[np.argsort(lines[where])]
        which = f"of a {self.symmetry} matrix is {kind}"
        self.notes.faults(kind, lines[where], lambda k: f"entry ({i[where[k]] + 1}, {j[where[k]] + 1}) {which}", due)


class _Dense(TableReader):
    """Reads the numbers of a dense matrix, one per line. If a line can't be used, its entry counts as not observed."""

    wanted = (0,)

    def __init__(self, m: int, n: int, symmetry: str, notes: Notes, limits: Limits):
        super().__init__(Layout(BLANKS, 1, value=0, comment="%"), notes, limits)
        self.m, self.n, self.symmetry = m, n, symmetry
        self.values, self.lines = Collected(float), Collected()

    @property
    def count(self) -> int:
        most = _expected(self.m, self.n, self.symmetry)
        if self.lines.size > most:
            self.notes.refuse(f"there are more numbers than the {most} of {self.m} x {self.n}", "correct the sizes")
        return self.lines.size

    def _cells(self, lines: np.ndarray, cells: dict[int, Any]) -> np.ndarray:
        values, ok = columns.decimals(cells[0])
        self.values.extend(values[ok])
        self.lines.extend(lines[ok])
        return ok

    def _add(self, line: int, text: str) -> None:
        self.values.add(number_of(text.strip()))
        self.lines.add(line)

    def _drop(self, line: int) -> None:
        self.values.add(np.nan)
        self.lines.add(line)

    def close(self) -> Observations:
        lines, values = self.lines.close(), self.values.close()
        order = np.argsort(lines, kind="stable")
        lines, values = lines[order], values[order]
        if self.symmetry == "general":
            k = np.arange(len(values))
            rows, cols = (k % self.m, k // self.m) if len(k) else (k, k)
        else:
            skew = int(self.symmetry == "skew-symmetric")
            k, begins = np.arange(len(values)), np.cumsum([0, *range(self.n - skew, 0, -1)])
            cols = np.searchsorted(begins, k, side="right") - 1
            rows = k - begins[cols] + cols + skew
        there = np.isfinite(values)
        sides = ((rows[there], None, self.m), (cols[there], None, self.n))
        return observations(*sides, values[there], lines[there], self.notes, self.limits)


def _mirrored(given: Observations, symmetry: str, values: bool) -> Observations:
    """Add the mirror image of the entries below the diagonal if the matrix is symmetric or skew-symmetric."""
    rows, cols, numbers = given.rows, given.cols, given.values if values else None
    if symmetry != "general":
        off = rows != cols
        if numbers is not None:
            numbers = np.concatenate([numbers, (-1.0 if symmetry == "skew-symmetric" else 1.0) * numbers[off]])
        rows, cols = np.concatenate([rows, cols[off]]), np.concatenate([cols, rows[off]])
    cleanup = replace(given.cleanup, entries=len(rows), empty=empty_sides(rows, cols, given.shape))
    return replace(given, rows=rows, cols=cols, values=numbers, cleanup=cleanup)
