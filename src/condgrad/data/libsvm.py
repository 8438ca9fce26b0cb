"""Reader of LIBSVM files. Each line has a label, and the nonzero features as pairs index:value. Indices are counted from 1.

``sklearn.datasets.load_svmlight_file`` is not used: it reads 1_0 as 10, drops ``qid``, and its messages have no line numbers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

from condgrad.checks import whole, yes_or_no
from condgrad.data import columns
from condgrad.data.diagnostics import Cleanup, Limits, Notes, Unusable, shortly
from condgrad.data.labels import Collected, Positions
from condgrad.data.lines import Layout, LineReader, number_of, single_blanks
from condgrad.data.observations import observations
from condgrad.data.text_stream import chunks


@dataclass(frozen=True)
class Labelled:
    """Features with labels, as `load_labelled` returns them.

    Parameters
    ----------
    X : scipy.sparse.csr_array of float64, shape (samples, features)
        The features.
    y : ndarray of float64, shape (samples,)
        Label of each row of ``X``.
    cleanup : Cleanup
        Faults of the file.
    """

    X: sparse.csr_array
    y: np.ndarray
    cleanup: Cleanup


def load_labelled(
    path: str | os.PathLike[str],
    features: int | None = None,
    base: int = 1,
    strict: bool = False,
    limits: Limits | None = None,
) -> Labelled:
    """Read labels and sparse features from a LIBSVM file, plain or gzipped.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    features : int, default None
        Number of columns of ``X``. By default the feature with the largest index in the file is the last column. For a test set,
        give the number of columns of the training set.
    base : int, default 1
        Index of the first feature. Some files count from 0.
    strict : bool, default False
        Whether the first fault raises BadData. By default, lines with faults are dropped and counted in ``cleanup``.
    limits : Limits, default None
        Limits on the size of the file. By default ``Limits()``.

    Returns
    -------
    data : Labelled

    Raises
    ------
    BadData
        If the file is damaged, exceeds the limits or is mostly unusable. With ``strict``, also if the file has a fault.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "letters.libsvm"
    ...     _ = path.write_text("+1 1:0.5 3:2\\n-1 2:1\\n")
    ...     data = load_labelled(path)
    >>> data.X.toarray(), data.y
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]]), array([ 1., -1.]))
    """
    limits = limits or Limits()
    size = None if features is None else whole(features, "features")
    index = Positions("index", limits, whole(base, "base", 0), size)
    path = Path(path)
    notes = Notes(path, yes_or_no(strict, "strict"))
    reader = _Reader(index, notes, limits)
    reader.read(chunks(path, limits, notes))
    return reader.close()


class _Reader(LineReader):
    def __init__(self, index: Positions, notes: Notes, limits: Limits):
        super().__init__(Layout(":", 2), notes, limits)
        self.index, self.values, self.lines = index, Collected(float), Collected()
        self.labels, self.label_lines = Collected(float), Collected()

    @property
    def count(self) -> int:
        return self.labels.size + self.values.size

    def _by_library(self, lines: np.ndarray, data: np.ndarray, quotes: bool) -> np.ndarray:
        """Parse many lines at once. For this, each label and each pair becomes a line of a table with two columns.

        The columns are the index and the value. For a label, the index is an empty cell.
        """
        text = single_blanks(data)
        ends = text[(text == ord(" ")) | (text == ord("\n"))] == ord("\n")
        line, label = np.cumsum(ends) - ends, np.append(True, ends[:-1])
        tokens = b":" + text[:-1].tobytes().replace(b"\n", b"\n:").replace(b" ", b"\n") + b"\n"
        cells, fits = columns.parse(np.frombuffer(tokens, dtype=np.uint8), ":", 2, (0, 1), quotes=False, number=1)
        done = np.ones(len(lines), dtype=bool)
        done[line[~fits]] = False
        line, label = line[fits], label[fits]
        positions, inside = self.index.parse(columns.chosen(cells[0], ~label))
        values, ok = columns.decimals(cells[1])
        ok[~label] &= inside
        done[line[~ok]] = False
        taken = done[line]
        self.labels.extend(values[taken & label])
        self.label_lines.extend(lines[done])
        self.index.take(positions[taken[~label]])
        self.values.extend(values[taken & ~label])
        self.lines.extend(lines[line[taken & ~label]])
        return done

    def _add(self, line: int, text: str) -> None:
        label, *pairs = text.partition("#")[0].split() or [""]
        read = [self._pair(pair) for pair in pairs]
        self.labels.add(number_of(label))
        self.label_lines.add(line)
        for position, value in read:
            self.index.add(position)
            self.values.add(value)
            self.lines.add(line)

    def _pair(self, pair: str) -> tuple[int, float]:
        index, colon, value = pair.partition(":")
        if not colon:
            expected = "a label and pairs index:value were expected"
            raise Unusable("wrong number of fields", f"{shortly(pair)} is no pair", expected)
        return self.index.check(index), number_of(value)

    def close(self) -> Labelled:
        lines, labels = self.label_lines.close(), self.labels.close()
        order = np.argsort(lines, kind="stable")
        lines, labels = lines[order], labels[order]
        positions, _, width = self.index.close()
        if not len(positions):  # a file with labels only: all features are 0
            return Labelled(sparse.csr_array((len(lines), width)), labels, self.notes.close(len(labels)))
        where = self.lines.close()
        rows = (np.searchsorted(lines, where), None, len(lines))
        entries = observations(rows, (positions, None, width), self.values.close(), where, self.notes, self.limits)
        X = entries.matrix()
        X.sort_indices()
        return Labelled(X, labels, replace(entries.cleanup, entries=X.nnz))
