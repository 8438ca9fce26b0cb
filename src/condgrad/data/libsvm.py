"""LIBSVM: each line a label and the features that are not zero, index:value, counted from 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

from condgrad.checks import whole
from condgrad.data.diagnostics import Cleanup, Limits, Notes, shortly
from condgrad.data.fields import cells, decimals, integers, lines_with, split
from condgrad.data.labels import Positions, Unusable
from condgrad.data.lines import Chunks, number_of, text_lines
from condgrad.data.observations import observations
from condgrad.data.text_stream import chunks

COLON = ord(":")


@dataclass(frozen=True)
class Labelled:
    """Row i of ``X`` has the label ``y[i]``."""

    X: sparse.csr_array
    y: np.ndarray
    cleanup: Cleanup


def load_labelled(
    path: str | Path,
    features: int | None = None,
    base: int = 1,
    strict: bool = False,
    limits: Limits | None = None,
) -> Labelled:
    """Labels and sparse features from a LIBSVM file, plain or gzipped.

    ``features`` is the number of columns, the largest index by default: give that of the training set for the test set.
    A line with a fault is dropped and told of; with ``strict`` the first fault is refused. Some files count from ``base`` = 0.
    """
    limits = limits or Limits()
    index = Positions(
        "index", limits, whole(base, "base", 0), None if features is None else whole(features, "features")
    )
    path = Path(path)
    notes = Notes(path, strict)
    reader = _Reader(index, notes, limits)
    for first, chunk in chunks(path, limits, notes):
        reader.read(first, chunk)
    return reader.close()


class _Reader(Chunks):
    def __init__(self, index: Positions, notes: Notes, limits: Limits):
        self.index, self.notes, self.limits = index, notes, limits
        self.labels: list[tuple[np.ndarray, np.ndarray]] = []  # (line, label)
        self.entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # (line, position, value)
        self.count = 0

    def _plain(self, lines: np.ndarray, data: np.ndarray) -> np.ndarray:
        fields = split(data, b" \t:", collapse=True)
        start, end, line, _ = fields
        count = fields.per_line()
        place = np.arange(len(line)) - (np.cumsum(count) - count)[line]
        is_index, is_value = place % 2 == 1, (place % 2 == 0) & (place > 0)
        numbers, ok = decimals(cells(data, start, end))
        positions, easy = integers(cells(data, start[is_index], end[is_index]))
        positions -= self.index.base
        ok[is_index] = easy & (positions >= 0) & (positions < self.index.known)
        ok &= (data[end] == COLON) == is_index
        ok[is_value] &= start[is_value] == end[np.flatnonzero(is_value) - 1] + 1
        done = (count % 2 == 1) & (np.bincount(line[~ok], minlength=fields.lines) == 0) & (lines_with(data, 0) == 0)
        taken = done[line]
        chosen = taken[is_index]
        self._keep(
            (lines[done], numbers[taken & (place == 0)]),
            (lines[line[is_index][chosen]], positions[chosen], numbers[taken & is_value]),
        )
        return done

    def _keep(self, labels: tuple[np.ndarray, np.ndarray], entries: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        self.labels.append(labels)
        self.entries.append(entries)
        self.count += len(labels[0]) + len(entries[0])

    def _with_care(self, numbers: np.ndarray, data: np.ndarray, which: np.ndarray) -> None:
        lines, labels, where, positions, values = [], [], [], [], []
        for number, line in text_lines(numbers, data, which, "#", self.notes, self.limits):
            try:
                label, *pairs = line.partition("#")[0].split() or [""]
                read = [self._pair(pair) for pair in pairs]
                labels.append(number_of(label))
            except Unusable as error:
                self.notes.fault(error.args[0], number, *error.args[1:])
                continue
            lines.append(number)
            where += [number] * len(read)
            positions += [position for position, _ in read]
            values += [value for _, value in read]
        self._keep(
            (np.array(lines, dtype=np.int64), np.array(labels, dtype=float)),
            (np.array(where, dtype=np.int64), np.array(positions, dtype=np.int64), np.array(values, dtype=float)),
        )

    def _pair(self, pair: str) -> tuple[int, float]:
        index, colon, value = pair.partition(":")
        if not colon:
            told = "a label and pairs index:value were expected"
            raise Unusable("wrong number of fields", f"{shortly(pair)} is no pair", told)
        return self.index.check(index), number_of(value)

    def close(self) -> Labelled:
        lines, labels = (np.concatenate(parts) for parts in zip(*(self.labels or [NO_LABELS]), strict=True))
        order = np.argsort(lines, kind="stable")
        lines, labels = lines[order], labels[order]
        where, positions, values = (
            np.concatenate(parts) for parts in zip(*(self.entries or [NO_ENTRIES]), strict=True)
        )
        size = self.index.size
        width = int(positions.max(initial=-1)) + 1 if size is None else size
        rows = (np.searchsorted(lines, where), None, len(lines))
        if not len(where):  # labels alone are a matrix of zeros
            return Labelled(sparse.csr_array((len(lines), width)), labels, self.notes.close(len(labels)))
        entries = observations(rows, (positions, None, width), values, where, self.notes, self.limits)
        X = entries.matrix()
        X.sort_indices()
        return Labelled(X, labels, replace(entries.cleanup, entries=X.nnz))


NO_LABELS = (np.empty(0, dtype=np.int64), np.empty(0))
NO_ENTRIES = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
