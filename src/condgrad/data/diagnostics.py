"""Faults of data files: the kinds of faults, what is done about each kind, and the report (`Cleanup`) of the faults of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from condgrad.checks import BadData, counted
from condgrad.storage.files import Limits as Limits

MAX_EXAMPLES = 5
"""Maximum number of examples in the report for each kind of fault. Further faults of the kind are only counted."""

DROPPED, KEPT, MERGED, MIRRORED, MISSING = "dropped", "kept", "merged", "mirrored", "taken as missing"
"""The things that can be done with a line that has a fault."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault: what is done with its lines if ``strict`` is False, and advice for the owner of the file."""

    done: str
    advice: str


KINDS = {
    "wrong number of fields": Kind(DROPPED, "correct the line, its delimiters and its quotes"),
    "open quote": Kind(DROPPED, "close the quote on the line that opens it"),
    "missing id": Kind(DROPPED, "name the row and the column"),
    "missing value": Kind(DROPPED, "fill in the value or delete the line"),
    "not a number": Kind(DROPPED, "write a number with a decimal point"),
    "not finite": Kind(DROPPED, "write a finite number or delete the line"),
    "bad index": Kind(DROPPED, "correct the index, or say which base the file counts from"),
    "NUL byte": Kind(DROPPED, "export the file again as text"),
    "long line": Kind(DROPPED, "check the line's end, or raise Limits(line=...)"),
    "not UTF-8": Kind(KEPT, "save the file as UTF-8"),
    "repeated entry": Kind(MERGED, "delete one of the two"),
    "conflicting entry": Kind(MERGED, "delete the one that is wrong"),
    "above the diagonal": Kind(MIRRORED, "write each pair of places once, below the diagonal"),
    "on the diagonal": Kind(DROPPED, "delete the line, or correct the header"),
    "no number in a cell": Kind(MISSING, "write a number with a decimal point, or leave the cell empty"),
    "entries missing": Kind(KEPT, "copy or download the file again"),
}


class Unusable(Exception):
    """A line or a cell can't be read. The arguments are (kind, found, expected), where ``kind`` is one of :data:`KINDS`."""


@dataclass(frozen=True)
class Fault:
    """One kind of fault in a file.

    Parameters
    ----------
    kind : str
        Kind of the fault, such as "not a number"; a key of ``KINDS``.
    count : int
        Number of lines with this fault.
    done : str
        What was done with these lines: "dropped", "kept", "merged", "mirrored" or "taken as missing".
    examples : tuple of (int, str)
        For each of the first five of these lines: the number of the line, and what was found on the line.
    unit : str, default "line"
        Unit of ``count`` and of the numbers in ``examples``: "line", "row" of a Parquet file, or "element" of an array.
    """

    kind: str
    count: int
    done: str
    examples: tuple[tuple[int, str], ...]
    unit: str = "line"

    def __str__(self) -> str:
        shown = "; ".join(f"{self.unit} {line}: {found}" for line, found in self.examples)
        return f"{self.kind}: {self.count:,} {self.done} ({shown}{', ...' if self.count > len(self.examples) else ''})"


@dataclass(frozen=True)
class Cleanup:
    """Report on a file: how much was read, and which lines were dropped, kept or merged because of a fault.

    Parameters
    ----------
    file : str
        Name of the file.
    encoding : str
        "utf-8", "utf-16", or "utf-8, in part latin-1".
    lines : int
        Number of lines with data. Blank lines, comments and the header are not counted.
    entries : int
        Number of entries in the result.
    blank, comments : int
        Numbers of blank lines and of comments, which were skipped.
    empty : tuple of two int
        Number of rows without an entry, and number of columns without an entry. Both are 0 if rows and columns have names.
    faults : tuple of Fault
        One element for each kind of fault, in the order in which the kinds were found.
    unit : str, default "line"
        Unit of ``lines``: "line", "row" of a Parquet file, or "element" of an array.
    headed : bool, default False
        Whether the text has a header.
    """

    file: str
    encoding: str
    lines: int
    entries: int
    blank: int
    comments: int
    empty: tuple[int, int]
    faults: tuple[Fault, ...]
    unit: str = "line"
    headed: bool = False

    @property
    def clean(self) -> bool:
        """Whether the file has no fault."""
        return not self.faults

    def count(self, kind: str) -> int:
        """Number of lines with this kind of fault."""
        return sum(fault.count for fault in self.faults if fault.kind == kind)

    @property
    def dropped(self) -> int:
        """Number of lines that were dropped."""
        return sum(fault.count for fault in self.faults if fault.done == DROPPED)

    def __str__(self) -> str:
        skipped = [f"{n:,} {what}" for n, what in ((self.blank, "blank"), (self.comments, "of comment")) if n]
        beside = f" (and {' and '.join(skipped)})" if skipped else ""
        remarks = "" if self.encoding == "utf-8" else f", {self.encoding}"
        empty = " and ".join(map(counted, self.empty, ("row", "column")))
        remarks += f", {empty} without entries" if any(self.empty) else ""
        head = f"{self.file}: {counted(self.entries, 'entry')} from {counted(self.lines, self.unit)}{beside}{remarks}"
        return "\n".join([head, *(f"  {fault}" for fault in self.faults)])

    def summary(self) -> dict[str, Any]:
        """The report as a dict of plain data, for JSON."""
        return asdict(self)


class Notes:
    """Collects the faults of a file while the file is read. With ``strict``, the first fault raises BadData."""

    def __init__(self, path: Path, strict: bool = False, unit: str = "line"):
        self.name, self.strict, self.unit = path.name, strict, unit
        self.encoding, self.headed = "utf-8", False
        self.lines = self.blank = self.comments = 0
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[tuple[int, str]]] = {}

    def fault(self, kind: str, line: int, found: str, expected: str) -> None:
        """Record a fault. ``found`` and ``expected`` are two parts of the message "<found>, but <expected>: <advice>"."""
        if self.strict:
            self.refuse(f"{found}, but {expected}", KINDS[kind].advice, line)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        examples = self._examples.setdefault(kind, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append((line, found))

    def faults(self, kind: str, lines: np.ndarray, found: Callable[[int], str], expected: str) -> None:
        """Record a fault of the same kind for each of many lines. ``found(i)`` says what was found on the line ``lines[i]``."""
        for i, line in enumerate(lines[:MAX_EXAMPLES].tolist()):
            self.fault(kind, line, found(i), expected)
        if len(lines) > MAX_EXAMPLES:
            self._counts[kind] += len(lines) - MAX_EXAMPLES

    def refuse(self, fault: str, advice: str, line: int | None = None) -> NoReturn:
        """Raise BadData, with a message that names the file and the line."""
        where = self.name if line is None else f"{self.name}, {self.unit} {line}"
        raise BadData(f"{where}: {fault}: {advice}.")

    def close(self, entries: int, empty: tuple[int, int] = (0, 0)) -> Cleanup:
        """Make the report. Raises BadData if there are no entries, or if more than half of the lines were dropped."""
        faults = tuple(
            Fault(kind, count, KINDS[kind].done, tuple(self._examples[kind]), self.unit)
            for kind, count in self._counts.items()
        )
        cleanup = Cleanup(
            self.name,
            self.encoding,
            self.lines,
            entries,
            self.blank,
            self.comments,
            empty,
            faults,
            self.unit,
            self.headed,
        )
        if not self.lines:
            self.refuse("there is no data, but at least one entry was expected", "give a file that has some")
        if 2 * cleanup.dropped > self.lines or not entries:
            dropped = [fault for fault in faults if fault.done == DROPPED]
            first = ("{} {}: {}".format(self.unit, *fault.examples[0]) for fault in dropped)
            listed = "; ".join(f"{f.count} x {f.kind}, first on {at}" for f, at in zip(dropped, first, strict=True))
            usable = f"only {self.lines - cleanup.dropped}" if cleanup.dropped else "none"
            self.refuse(
                f"{usable} of {counted(self.lines, self.unit)} can be used, but at least half are expected "
                f"({listed or 'no entries'})",
                "check the format, the delimiter and the columns",
            )
        return cleanup


def shortly(text: str, most: int = 60) -> str:
    """Quote a cell or a line for a message, shortened to ``most`` characters."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")
