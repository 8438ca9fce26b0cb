"""Wide tables in text: a line for each row of the matrix, which has the row's name and then a cell for each column."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from condgrad.checks import counted
from condgrad.data import arrow_columns
from condgrad.data.diagnostics import Limits, Notes, Unusable, shortly
from condgrad.data.labels import INTEGER, Collected, Names
from condgrad.data.lines import (
    BLANKS,
    INFINITE,
    NOT_GIVEN,
    NUMBER,
    Converted,
    Layout,
    TableReader,
    fields_of,
    number_of,
)
from condgrad.data.observations import Observations, observations

DELIMITERS = (",", ";", "\t", "|")
BAD_CELL = "no number in a cell"


def looks_wide(split: Sequence[list[str]]) -> bool:
    """Whether these lines, of which the first is a header, can only be a wide table.

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
    """Reason why lines without a header may be a wide table, because as a list of entries they have numbers as ids; or None."""
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


class WideReader(TableReader):
    """Reads the cells of a wide table below its header.

    Parameters
    ----------
    header : list of str
        Title of the names, then the name of each column.
    delimiter : str
    notes : Notes
    limits : Limits
        Empty cells count as entries: they take memory too.
    line : int
        Number of the header's line.
    """

    missing = tuple(spelling for word in NOT_GIVEN for spelling in {word, word.upper(), word.capitalize()} | {"NaN"})

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
        super().__init__(Layout(delimiter, len(header)), notes, limits)
        self.wanted = range(len(header))
        self.header, self.names, self.lines = header, Names("row", notes, limits), Collected()
        self.values: list[np.ndarray] = []

    @property
    def count(self) -> int:
        return self.lines.size * (len(self.header) - 1)

    def close(self) -> Observations:
        """The cells that have a number. Rows and columns keep the order of the file, also those without a number."""
        lines, (places, ids, size) = self.lines.close(), self.names.close()
        table = np.concatenate([*self.values, np.empty((0, len(self.header) - 1))])
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

    def _cells(self, lines: np.ndarray, columns: dict[int, Any]) -> Converted:
        ok = columns[0].is_valid().to_numpy(zero_copy_only=False)
        names, good = self.names.parse(columns.pop(0).fill_null(""))
        ok &= good
        cells = arrow_columns.joined(columns.values())  # at once: there may be 50,000 columns
        numbers, good = arrow_columns.decimals(cells)
        good |= cells.is_null().to_numpy(zero_copy_only=False)
        table = numbers.reshape(len(columns), len(lines)).T
        ok &= good.reshape(len(columns), len(lines)).all(axis=0)

        def add() -> None:
            self.names.take(arrow_columns.chosen(names, ok))
            self.lines.extend(lines[ok])
            self.values.append(table[ok])

        return ok, add

    def _add(self, line: int, text: str) -> None:
        name, *cells = self._fields(text)
        self.names.add(self.names.check(name))
        self.lines.add(line)
        self.values.append(np.array([list(self._numbers(line, cells))]))

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
