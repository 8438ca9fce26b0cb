"""Reader of wide tables in text files. Each line is a row of the matrix: the row's name, then a cell for each column."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from condgrad.checks import counted
from condgrad.data import columns
from condgrad.data.diagnostics import Limits, Notes, Unusable, shortly
from condgrad.data.labels import INTEGER, Collected, Names
from condgrad.data.lines import (
    BLANKS,
    INFINITE,
    NEWLINE,
    NOT_GIVEN,
    NUMBER,
    QUOTE,
    Layout,
    LineReader,
    fields_of,
    number_of,
    single_blanks,
)
from condgrad.data.observations import Observations, observations

DELIMITERS = (",", ";", "\t", "|")
"""Delimiters that are tried if the caller gives none."""
BAD_CELL = "no number in a cell"
"""Kind of fault (a key of ``diagnostics.KINDS``): a cell is neither a number nor missing."""
MISSING = tuple({spelling for word in NOT_GIVEN for spelling in (word, word.upper(), word.capitalize(), "NaN")})
"""Texts that mean a missing value, in lower case, in upper case and capitalised."""


def looks_wide(split: Sequence[list[str]]) -> bool:
    """Whether lines, of which the first is a header, can only be a wide table.

    The other possibility is a list of entries, with a row name, a column name and a value on each line. Names are assumed not to
    be fractions. Therefore a table with fractions in all columns except the first is not a list of entries. The lines are a wide
    table if all of these conditions hold:

    - Every column except the first has only numbers and missing values, and at least one of its numbers is a fraction.
    - The names in the first column are all different, and no name is a fraction.
    - The names of the other columns in the header are all words, or all whole numbers, such as years.
    - The names in the header are all different, the first is not a number, and no other name means a missing value.
    - All lines have the same number of cells, at least three.
    """
    head, *lines = split
    if len(head) < 3 or not lines or any(len(line) != len(head) for line in lines):
        return False
    if len(set(head)) < len(head) or NUMBER.fullmatch(head[0]) or any(name.lower() in NOT_GIVEN for name in head[1:]):
        return False
    whole = [bool(INTEGER.fullmatch(name)) for name in head[1:]]
    if any(map(NUMBER.fullmatch, head[1:])) and not all(whole):
        return False
    first = [line[0] for line in lines]
    if len(set(first)) < len(first) or any(map(_fraction, first)) or not all(first):
        return False
    cells = [None if cell.lower() in NOT_GIVEN else cell for line in lines for cell in line[1:]]
    numbers = columns.decimals(cells)[0].reshape(len(lines), -1)
    fractions = ~np.isnan(numbers) & (np.floor(numbers) != numbers)
    return bool((np.isnan(numbers).ravel() == columns.is_null(cells)).all() and fractions.any(axis=0).all())


def wide_by_ids(split: Sequence[list[str]], row: int, col: int) -> str | None:
    """Say why lines in which no header was found are probably a wide table. Returns None if there is no reason.

    One reason is a first line with an empty first cell and the numbers 0, 1, 2, ... in the other cells. Another reason is that
    rows or columns would have fractions as names if the lines were read as a list of entries.
    """
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
    """Find the delimiter that splits the header and most of the first lines into the same number of fields, at least two.

    The file is refused if no delimiter fits, or if more than one fits.
    """
    fitting = [delimiter for delimiter in (*DELIMITERS, BLANKS) if _fits(sample, delimiter)]
    if len(fitting) > 1 and BLANKS in fitting:
        fitting.remove(BLANKS)
    if len(fitting) != 1:
        found = " and ".join(map(repr, fitting)) if fitting else "none among , ; tab | and blanks"
        notes.refuse(
            f"each line of a wide table has as many fields as its header; delimiters for which that holds: {found}",
            "say which by delimiter=",
            sample[0][0],
        )
    return fitting[0]


def _fits(sample: list[tuple[int, str]], delimiter: str) -> bool:
    widths = [width_of(line, delimiter) for _, line in sample]
    return widths[0] > 1 and 2 * Counter(widths)[widths[0]] > len(widths)


def width_of(line: str, delimiter: str) -> int:
    """Number of cells of a line; 0 if the quotes of the line are wrong."""
    plain = '"' not in line and delimiter != BLANKS
    return line.count(delimiter) + 1 if plain else len(fields(line, delimiter))


def fields(line: str, delimiter: str) -> list[str]:
    """The cells of a line; an empty list if the quotes of the line are wrong."""
    try:
        return fields_of(line, delimiter)
    except csv.Error:
        return []


class WideReader(LineReader):
    """Reads the cells of a wide table below its header.

    Parameters
    ----------
    header : list of str
        The title of the first column, which has the names of the rows, and the names of all other columns.
    delimiter : str
    notes : Notes
    limits : Limits
        Limits on the size of the file. Empty cells are counted as entries, because they take memory too.
    line : int
        Number of the header's line.
    """

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
        self.header, self.names, self.lines = header, Names("row", notes, limits), Collected()
        self.values: list[np.ndarray] = []

    @property
    def count(self) -> int:
        return self.lines.size * (len(self.header) - 1)

    def close(self) -> Observations:
        """The entries: all cells that have a number. Rows and columns without a number are kept, in the order of the file."""
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
                f"{bad:,} cells hold no number and only {len(found):,} do; the first bad cell is on line {first[0]}: {first[1]}",
                "check that it is a wide table, and its delimiter",
            )
        return replace(found, title=self.header[0] or found.title)

    def _by_library(self, lines: np.ndarray, data: np.ndarray, quotes: bool) -> np.ndarray:
        delimiter, width = self.layout.delimiter, self.layout.width
        data = single_blanks(data) if delimiter == BLANKS else data
        names, cells, done = first_and_others(data, delimiter, width, quotes)
        if not done.any():
            return done
        listed, ok = self.names.parse(columns.parse(names, delimiter, 1, (0,), quotes)[0][0])
        column = columns.parse(cells, delimiter, 1, (0,), quotes, MISSING, number=0)[0][0]
        numbers, good = columns.decimals(column)
        good |= columns.is_null(column)
        ok &= good.reshape(len(ok), width - 1).all(axis=1)
        self.names.take(columns.chosen(listed, ok))
        self.values.append(numbers.reshape(len(ok), width - 1)[ok])
        done[done] = ok
        self.lines.extend(lines[done])
        return done

    def _add(self, line: int, text: str) -> None:
        name, *cells = self._fields(text)
        self.names.add(self.names.check(name))
        self.lines.add(line)
        self.values.append(np.array([list(self._numbers(line, cells))]))

    def _numbers(self, line: int, row: list[str]) -> Iterator[float]:
        """Yield the number in each cell, or NaN if the cell is missing or not a number. A cell that is not a number is a
        fault."""
        for name, cell in zip(self.header[1:], row, strict=True):
            try:
                yield np.nan if cell.lower() in NOT_GIVEN else number_of(cell)
            except Unusable:
                found = f"the cell of column {shortly(name)} is {shortly(cell)}"
                finite = " finite" if cell.lower().lstrip("+-") in INFINITE else ""
                self.notes.fault(BAD_CELL, line, found, f"a{finite} number or nothing was expected")
                yield np.nan


def first_and_others(
    data: np.ndarray, delimiter: str, width: int, quotes: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split each line into its first cell and its other cells.

    The other cells of all lines become one column, which is parsed much faster than a table with tens of thousands of columns.

    Parameters
    ----------
    data : ndarray of uint8
        The bytes of whole lines. No quoted cell may contain a newline.
    delimiter : str
        One character.
    width : int
        Number of cells in a line.
    quotes : bool
        Whether a delimiter between quotes belongs to the cell.

    Returns
    -------
    first, others : ndarray of uint8
        The first cells, and the other cells, of the lines that have ``width`` cells. The cells are in the order of the file, each
        with a newline at its end.
    fits : ndarray of bool, shape (lines,)
        Mask of the lines that have ``width`` cells.
    """
    ends, between = data == NEWLINE, data == ord(delimiter)
    if quotes:
        between &= ~np.logical_xor.accumulate(data == QUOTE)
    cells = np.flatnonzero(ends | between)
    fits = np.diff(np.flatnonzero(ends[cells]), prepend=-1) == width
    if not fits.all():
        kept = np.repeat(fits, np.diff(np.flatnonzero(ends), prepend=-1))
        data, between = data[kept], between[kept]
        cells = np.flatnonzero((data == NEWLINE) | between)
    sizes = np.diff(cells, prepend=-1).reshape(-1, width)
    is_first = np.repeat(
        np.tile([True, False], len(sizes)), np.column_stack([sizes[:, 0], sizes[:, 1:].sum(axis=1)]).ravel()
    )
    data = np.where(between, np.uint8(NEWLINE), data)
    return data[is_first], data[~is_first], fits


def in_order_of_first(places: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Renumber names in the order of their first occurrence in ``places``. Returns the new places and the names in this order."""
    known, first = np.unique(places, return_index=True)
    order = known[np.argsort(first, kind="stable")]
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[places], ids[order]
