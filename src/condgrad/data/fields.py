"""The fields of many lines at once, by numpy: where they stand, and what whole numbers and decimals they are.

Nothing is refused here. What is not of the plainest form comes back as not ok, and its line is read again with care.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

LONGEST = 64
"""Bytes of a field that is read here."""

FEW = 3
"""Blanks around a field that are cut off here."""

NEWLINE, QUOTE, MINUS, POINT, ZERO = b'\n"-.0'
DECIMAL = np.zeros(256, dtype=bool)
DECIMAL[[0, *b"0123456789+-.eE"]] = True
SPACE = np.zeros(256, dtype=bool)
SPACE[[*b" \t\n\r\f\v"]] = True
BLANK_LINE = re.compile(rb"\n[ \t\r\f\v]*\n")
TENS = 10.0 ** np.arange(20)


class Fields(NamedTuple):
    """Fields of some bytes: where each begins and ends, and on which line it is, counted from 0."""

    start: np.ndarray
    end: np.ndarray
    line: np.ndarray
    lines: int

    def per_line(self) -> np.ndarray:
        return np.bincount(self.line, minlength=self.lines)


def split(data: np.ndarray, separators: bytes, collapse: bool) -> Fields:
    """The fields between separators and newlines; with ``collapse`` a run of separators is one. The data end with a newline."""
    cuts = data == NEWLINE
    for byte in separators:
        cuts |= data == byte
    end = np.flatnonzero(cuts)
    start = np.concatenate([[0], end[:-1] + 1])
    ends_line = data[end] == NEWLINE
    line = np.cumsum(ends_line) - ends_line
    lines = int(line[-1]) + 1 if len(line) else 0
    if collapse:
        full = end > start
        start, end, line = start[full], end[full], line[full]
    return Fields(start, end, line, lines)


def without_blank(first: int, chunk: bytes) -> tuple[np.ndarray, np.ndarray]:
    """(the numbers of the lines that are not blank, their bytes): a file can be of blank lines for the most part."""
    data = np.frombuffer(chunk, dtype=np.uint8)
    if not (BLANK_LINE.search(chunk) or BLANK_LINE.match(b"\n" + chunk[:LONGEST])):
        return first + np.arange(chunk.count(b"\n")), data
    ends = np.flatnonzero(data == NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    full = np.logical_or.reduceat(~SPACE[data], starts)
    return first + np.flatnonzero(full), data[np.repeat(full, ends + 1 - starts)]


def lines_with(data: np.ndarray, byte: int) -> np.ndarray:
    """Of each line, how often it holds the byte."""
    newlines = np.flatnonzero(data == NEWLINE)
    return np.bincount(np.searchsorted(newlines, np.flatnonzero(data == byte)), minlength=len(newlines))


def trim(data: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Without a few blanks at either end; and which have no more of them."""
    start, end = start.copy(), end.copy()
    for _ in range(FEW):
        start += (start < end) & _blank(data[start])
        end -= (start < end) & _blank(data[end - 1])
    return start, end, (start == end) | ~(_blank(data[start]) | _blank(data[end - 1]))


def _blank(bytes_: np.ndarray) -> np.ndarray:
    return (bytes_ == 32) | (bytes_ == 9)


class Cells(NamedTuple):
    """One column: a row of bytes for each cell, zero beyond its length."""

    padded: np.ndarray
    length: np.ndarray

    def take(self, which: np.ndarray) -> Cells:
        return Cells(self.padded[which], self.length[which])

    def texts(self) -> list[bytes]:
        width = self.padded.shape[1]
        return np.ascontiguousarray(self.padded).view(f"S{width}")[:, 0].tolist() if width else [b""] * len(self.padded)


def cells(data: np.ndarray, start: np.ndarray, end: np.ndarray) -> Cells:
    """The bytes of fields that are at most LONGEST; of a longer one its beginning."""
    length = end - start
    width = int(min(length.max(initial=0), LONGEST))
    padded = np.empty((len(start), width), dtype=np.uint8, order="F")
    for j in range(width):
        padded[:, j] = data[np.minimum(start + j, len(data) - 1)] * (j < length)
    return Cells(padded, length)


def integers(column: Cells) -> tuple[np.ndarray, np.ndarray]:
    """(numbers, which are written the way that Python writes them and fit into 64 bits)."""
    bytes_, length = column
    if not bytes_.shape[1]:
        return np.zeros(len(length), dtype=np.int64), np.zeros(len(length), dtype=bool)
    minus = bytes_[:, 0] == MINUS
    digits = length - minus
    number, ok = _digits(bytes_, length, skip=minus)
    first = bytes_[np.arange(len(length)), np.minimum(minus, bytes_.shape[1] - 1)]
    ok &= (digits > 0) & (digits <= 18) & ((first != ZERO) | ((digits == 1) & ~minus))
    return np.where(minus, -number, number), ok


def decimals(column: Cells) -> tuple[np.ndarray, np.ndarray]:
    """(numbers, which are finite decimals). Up to 15 digits over a power of ten is right to the last bit; others are parsed."""
    bytes_, length = column
    if not bytes_.shape[1]:
        return np.zeros(len(length)), np.zeros(len(length), dtype=bool)
    minus = bytes_[:, 0] == MINUS
    point = bytes_ == POINT
    digits = length - minus - point.sum(axis=1)
    places = np.where(point.any(axis=1), length - 1 - point.argmax(axis=1), 0)
    number, ok = _digits(bytes_, length, skip=minus, also=point)
    ok &= (point.sum(axis=1) <= 1) & (digits > 0) & (digits <= 15)
    value = number / TENS[np.clip(places, 0, 19)]
    value[minus] *= -1
    hard = np.flatnonzero(~ok & DECIMAL[bytes_].all(axis=1) & (length > 0) & (length <= LONGEST))
    if len(hard):
        try:
            value[hard] = np.array(column.take(hard).texts()).astype(float)
            ok[hard] = np.isfinite(value[hard])
        except ValueError:  # one of them is such as 1-2: all are read again with care
            pass
    return value, ok


def _digits(
    bytes_: np.ndarray, length: np.ndarray, skip: np.ndarray, also: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The number that the digits make, and whether there is nothing else but a sign and what ``also`` marks."""
    number = np.zeros(len(length), dtype=np.int64)
    ok = np.ones(len(length), dtype=bool)
    for j in range(min(bytes_.shape[1], 20)):
        digit = bytes_[:, j].astype(np.int64) - ZERO
        inside = j < length
        if j == 0:
            inside &= ~skip
        if also is not None:
            inside &= ~also[:, j]
        valid = (digit >= 0) & (digit <= 9)
        ok &= valid | ~inside
        number = np.where(inside & valid, number * 10 + digit, number)
    return number, ok & (length <= 20)
