"""Wide tables in text: a line for each row of the matrix, its name first, then a cell for each column, which may be empty."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from condgrad.checks import counted
from condgrad.data.diagnostics import Limits, Notes, shortly
from condgrad.data.fields import LONGEST, QUOTE, cells, decimals, lines_with, split, trim
from condgrad.data.labels import INTEGER, Names, Unusable
from condgrad.data.lines import BLANKS, INFINITE, NOT_GIVEN, NUMBER, Chunks, Layout, fields_of, number_of, text_lines
from condgrad.data.observations import Observations, observations

DELIMITERS = (",", ";", "\t", "|")
AT_ONCE = 2**16
"""Cells that are read together."""
BAD_CELL = "no number in a cell"


def looks_wide(split: Sequence[list[str]]) -> bool:
    """Can these lines, a header first, be nothing but a wide table?

    They can't be a list of entries, which has two columns of names: no cell but the first is a name, since every other column has
    numbers alone and a fraction among them, which no name is. The first column names each row once, and not by fractions. Columns
    may have whole numbers for names, such as years, if all have: a line of values has fractions, or it stands below a header.
    """
    head, *lines = split
    if len(head) < 3 or not lines or any(len(line) != len(head) for line in lines):
        return False
    if len(set(head)) < len(head) or NUMBER.fullmatch(head[0]) or any(name.lower() in NOT_GIVEN for name in head[1:]):
        return False
    whole = [bool(INTEGER.fullmatch(name)) for name in head[1:]]
    if any(map(NUMBER.fullmatch, head[1:])) and not all(whole):
        return False
    first, *columns = zip(*lines, strict=True)
    named = len(set(first)) == len(first) and not any(map(_fraction, first)) and all(first)
    return named and all(any(map(_fraction, column)) and all(map(_number_or_missing, column)) for column in columns)


def wide_by_ids(split: Sequence[list[str]], row: int, col: int) -> str | None:
    """Why these lines without a header, if they are read as a list of entries, have ids that may be the cells of a wide table."""
    head, *lines = split
    if head[0] == "" and head[1:] == [str(k) for k in range(len(head) - 1)]:
        return f"the first line, {shortly(','.join(head))}, has no id and looks like the header of a wide table"
    width = len(head)
    for what, place in (("row", row), ("column", col)):
        ids = [line[place] for line in lines or split if len(line) == width]
        if all(map(_number_or_missing, ids)) and (found := next(filter(_fraction, ids), None)):
            return f"there is no header, and the {what}s would have fractions such as {found} for names"
    return None


def _fraction(cell: str) -> bool:
    return bool(NUMBER.fullmatch(cell)) and not float(cell).is_integer()


def _number_or_missing(cell: str) -> bool:
    return cell.lower() in NOT_GIVEN or bool(NUMBER.fullmatch(cell))


def delimiter_of(sample: list[tuple[int, str]], notes: Notes) -> str:
    """The one delimiter by which most of the first lines have as many fields as the header, two or more."""
    fitting = [delimiter for delimiter in (*DELIMITERS, BLANKS) if _fits(sample, delimiter)]
    if len(fitting) > 1 and BLANKS in fitting:
        fitting.remove(BLANKS)
    if len(fitting) != 1:
        found = " and ".join(map(repr, fitting)) if fitting else "none among , ; tab | and blanks"
        notes.refuse(
            f"a wide table has as many fields on each line as in its header, and of delimiters {found} would do",
            "say which by delimiter=",
            sample[0][0],
        )
    return fitting[0]


def _fits(sample: list[tuple[int, str]], delimiter: str) -> bool:
    widths = [len(fields(line, delimiter)) for _, line in sample]
    return widths[0] > 1 and 2 * Counter(widths)[widths[0]] > len(widths)


def fields(line: str, delimiter: str) -> list[str]:
    """The cells of a line; none where its quotes are wrong."""
    try:
        return fields_of(line, delimiter)
    except csv.Error:
        return []


class WideReader(Chunks):
    """Gathers the cells of a wide table, after its header."""

    def __init__(self, header: list[str], delimiter: str, notes: Notes, limits: Limits, line: int):
        if len(header) < 2:
            notes.refuse(
                f"the header has {counted(len(header), 'name')}, but a wide table has a column of names and at least one more",
                "give another delimiter=",
                line,
            )
        again = [name for name, times in Counter(header[1:]).items() if times > 1]
        if again:
            notes.refuse(
                f"the header has the column {shortly(again[0])} twice", "give each column a name of its own", line
            )
        if "" in header[1:]:
            notes.refuse(
                f"column {header.index('', 1)} has no name in the header", "name it, or delete the column", line
            )
        if len(header) - 1 > limits.side:
            notes.refuse(f"there are more than {limits.side} columns", "raise Limits(side=...)", line)
        self.layout = Layout(delimiter, len(header), 0, 0, None)
        self.header, self.notes, self.limits = header, notes, limits
        self.names = Names("row", notes, limits, numbers=False)
        self.lines: list[np.ndarray] = []
        self.values: list[np.ndarray] = []
        self.count = 0

    def close(self) -> Observations:
        """The cells that have a number; rows and columns stay in the order of the file, those without a number too."""
        lines = np.concatenate([*self.lines, np.empty(0, dtype=np.int64)])
        table = np.concatenate([*self.values, np.empty((0, len(self.header) - 1))])
        places, ids, size = self.names.close()
        order = np.argsort(lines, kind="stable")
        lines, table, places = lines[order], table[order], places[order]
        places, ids = in_order_of_first(places, ids)
        i, j = np.nonzero(~np.isnan(table))
        found = observations(
            (places[i], ids, size),
            (j, np.array(self.header[1:], dtype=object), len(self.header) - 1),
            table[i, j],
            lines[i],
            self.notes,
            self.limits,
        )
        bad = found.cleanup.count(BAD_CELL)
        if bad > len(found):
            first = next(fault for fault in found.cleanup.faults if fault.kind == BAD_CELL).examples[0]
            self.notes.refuse(
                f"{bad:,} cells hold no number and only {len(found):,} do, first on line {first[0]}: {first[1]}",
                "check that it is a wide table, and its delimiter",
            )
        return replace(found, title=self.header[0] or found.title)

    def _plain(self, lines: np.ndarray, data: np.ndarray) -> np.ndarray:
        layout = self.layout
        blanks = layout.delimiter == BLANKS
        found = split(data, b" \t" if blanks else layout.delimiter.encode(), collapse=blanks)
        good = (found.per_line() == layout.width) & (lines_with(data, 0) == 0) & (lines_with(data, QUOTE) == 0)
        chosen = good[found.line]
        start, end = (side[chosen].reshape(-1, layout.width) for side in (found.start, found.end))
        ok = np.ones(len(start), dtype=bool)
        table = np.full((len(start), layout.width - 1), np.nan)
        begin, stop, bare = trim(data, start[:, 0], end[:, 0])
        names = cells(data, begin, stop)
        ok &= bare & (names.length > 0) & (names.length <= LONGEST) & (data[begin] != ord(layout.comment))
        columns = max(
            1, AT_ONCE // max(1, len(start))
        )  # many short columns together: each step of numpy takes its time
        for c in range(1, layout.width, columns):
            some = (side[:, c : c + columns] for side in (start, end))
            begin, stop, bare = trim(data, *(side.reshape(-1) for side in some))
            block = cells(data, begin, stop)
            numbers, easy = decimals(block)
            shape = table[:, c - 1 : c - 1 + columns].shape
            table[:, c - 1 : c - 1 + columns] = np.where(easy, numbers, np.nan).reshape(shape)
            ok &= (bare & (easy | (block.length == 0))).reshape(shape).all(axis=1)
        self.names.take(names.take(ok))
        done = np.zeros(len(good), dtype=bool)
        done[np.flatnonzero(good)[ok]] = True
        self.lines.append(lines[done])
        self.values.append(table[ok])
        self.count += self.values[-1].size  # empty cells too: they take memory
        return done

    def _with_care(self, numbers: np.ndarray, data: np.ndarray, which: np.ndarray) -> None:
        lines, rows = [], []
        for number, line in text_lines(numbers, data, which, self.layout.comment, self.notes, self.limits):
            try:
                name, *cells_ = self._fields(line)
                self.names.add(self.names.check(name))
            except Unusable as error:
                self.notes.fault(error.args[0], number, *error.args[1:])
                continue
            rows.append(list(self._numbers(number, cells_)))
            lines.append(number)
        self.lines.append(np.array(lines, dtype=np.int64))
        self.values.append(np.array(rows, dtype=float).reshape(-1, len(self.header) - 1))
        self.count += self.values[-1].size

    def _fields(self, line: str) -> list[str]:
        try:
            found = fields_of(line, self.layout.delimiter)
        except csv.Error as error:
            raise Unusable("open quote", f"the quotes are wrong ({error})", "quotes in pairs were expected") from None
        if len(found) != self.layout.width:
            told = f"{counted(len(found), 'field')} in {shortly(line)}"
            raise Unusable("wrong number of fields", told, f"{self.layout.width} were expected")
        return found

    def _numbers(self, line: int, row: list[str]) -> Iterator[float]:
        """NaN for a cell without a number; one that has something else is a fault."""
        for name, cell in zip(self.header[1:], row, strict=True):
            try:
                yield np.nan if cell.lower() in NOT_GIVEN else number_of(cell)
            except Unusable:
                found = f"the cell of column {shortly(name)} is {shortly(cell)}"
                finite = " finite" if cell.lower().lstrip("+-") in INFINITE else ""
                self.notes.fault(BAD_CELL, line, found, f"a{finite} number or nothing was expected")
                yield np.nan


def in_order_of_first(places: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places among names in the order in which they first stand there, and the names in that order."""
    known, first = np.unique(places, return_index=True)
    order = known[np.argsort(first, kind="stable")]
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[places], ids[order]
