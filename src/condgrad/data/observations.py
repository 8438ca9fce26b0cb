"""The class `Observations`, which every reader returns: observed entries of a matrix, or pairs (row, column) without values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from condgrad.data.diagnostics import Cleanup, Limits, Notes, shortly
from condgrad.data.labels import INTEGER

MAX_SIDES, MAX_SIDES_PER_ENTRY = 1_000_000, 20
"""Rows and columns without entries are left out of a model if the number of rows plus columns is larger than MAX_SIDES, and also
larger than MAX_SIDES_PER_ENTRY times the number of entries."""


@dataclass(frozen=True)
class Observations:
    """Observed entries of a matrix, as `load` returns them. Entry k is ``values[k]`` at ``(rows[k], cols[k])``.

    Parameters
    ----------
    rows, cols : ndarray of int64, shape (k,)
        Positions of the entries, counted from 0, in the order of the file.
    values : ndarray of float64 or float32, shape (k,), or None
        The values: float32 if an NPZ or Parquet file has float32, else float64. None for pairs (row, column) without values. If a
        pair occurs several times, each occurrence is kept.
    shape : tuple of two int
        Shape of the matrix.
    row_ids, col_ids : ndarray or None
        Names of the rows and of the columns: an array of int64 or of str objects. None if the file has positions.
    cleanup : Cleanup
        Faults of the file.
    title : str, default "row"
        Title of the column with the names of the rows, if the file is a wide table.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from condgrad.data import load
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "ratings.csv"
    ...     _ = path.write_text("ann,Alien,5\\nbob,Brazil,4\\n")
    ...     found = load(path)
    >>> len(found), found.shape, found.matrix().toarray().tolist()
    (2, (2, 2), [[5.0, 0.0], [0.0, 4.0]])
    """

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray | None
    shape: tuple[int, int]
    row_ids: np.ndarray | None
    col_ids: np.ndarray | None
    cleanup: Cleanup
    title: str = "row"

    def __len__(self) -> int:
        return len(self.rows)

    def matrix(self) -> sparse.csr_array:
        """The values as a sparse matrix of shape ``shape``. An observed zero is a stored entry of the matrix.

        Returns
        -------
        matrix : scipy.sparse.csr_array, of the type of the values
        """
        if self.values is None:
            raise ValueError("These are pairs without values, which make no matrix: load the file with its values.")
        return sparse.coo_array((self.values, (self.rows, self.cols)), shape=self.shape).tocsr()

    @property
    def mostly_empty(self) -> bool:
        """Whether rows and columns without entries should be left out of a model.

        True if rows and columns have no names, and the number of rows plus columns is larger than 1,000,000 and larger than 20
        times the number of entries.
        """
        return self.row_ids is None and sum(self.shape) > max(MAX_SIDES, MAX_SIDES_PER_ENTRY * len(self))

    def compact(self) -> Observations:
        """Remove the rows and columns that have no entry.

        Returns
        -------
        compact : Observations
            If rows or columns have no names, their former positions become their names.
        """
        row_ids, rows = np.unique(self.rows, return_inverse=True)
        col_ids, cols = np.unique(self.cols, return_inverse=True)
        return replace(
            self,
            rows=rows,
            cols=cols,
            shape=(len(row_ids), len(col_ids)),
            row_ids=row_ids if self.row_ids is None else self.row_ids[row_ids],
            col_ids=col_ids if self.col_ids is None else self.col_ids[col_ids],
        )

    def positions(self, row_ids: Any = None, col_ids: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Find the rows and columns of these entries among the rows and columns of another file.

        Parameters
        ----------
        row_ids, col_ids : array-like, default None
            Names in the other file; None if the other file has positions. The integer 7 and the text "7" are the same name.

        Returns
        -------
        rows, cols : ndarray of int64, shape (k,)
            Positions in the other file; -1 for names that the other file does not have.
        """
        return _among(self.rows, self.row_ids, row_ids), _among(self.cols, self.col_ids, col_ids)


def _among(positions: np.ndarray, own: np.ndarray | None, other: Any) -> np.ndarray:
    if own is None and other is None:
        return positions
    names, where = np.unique(positions, return_inverse=True) if own is None else (own, positions)
    texts = map(str, names.tolist())
    if other is None:
        found = [int(text) if INTEGER.fullmatch(text) and text[0] != "-" else -1 for text in texts]
    else:
        known = {str(name): i for i, name in enumerate(np.asarray(other, dtype=object).tolist())}
        found = [known.get(text, -1) for text in texts]
    return np.array(found, dtype=np.int64)[where]


Side = tuple[np.ndarray, np.ndarray | None, int]
"""The rows (or the columns) of the entries: position of each entry, names of the positions or None, and number of positions."""


def observations(
    rows: Side, cols: Side, values: np.ndarray | None, lines: np.ndarray, notes: Notes, limits: Limits
) -> Observations:
    """Make the Observations, with the entries in the order of their lines.

    If several entries have the same row and column, the last one is kept. Pairs without values are all kept.
    """
    (i, row_ids, m), (j, col_ids, n) = rows, cols
    bounded((m, n), notes, limits)
    if (lines[1:] < lines[:-1]).any():
        order = np.argsort(lines, kind="stable")
        i, j, lines = i[order], j[order], lines[order]
        values = None if values is None else values[order]
    if values is not None and len(i):
        stay = _last_of_each(i, j, n, values, lines, notes, row_ids, col_ids)
        i, j, values = i[stay], j[stay], values[stay]
    empty = (0, 0) if row_ids is not None else empty_sides(i, j, (m, n))
    return Observations(i, j, values, (m, n), row_ids, col_ids, notes.close(len(i), empty))


def empty_sides(i: np.ndarray, j: np.ndarray, shape: tuple[int, int]) -> tuple[int, int]:
    """Return the number of rows and the number of columns without entries."""
    return shape[0] - len(np.unique(i)), shape[1] - len(np.unique(j))


def bounded(shape: tuple[int, int], notes: Notes, limits: Limits) -> None:
    """Refuse a shape that exceeds the limits, before memory is allocated."""
    if max(shape) > limits.side or min(shape) < 0:
        notes.refuse(
            f"the shape is {shape[0]} x {shape[1]}, but at most {limits.side} rows and columns are allowed",
            "check where the file comes from, or raise Limits(side=...)",
        )


def _repeated(i: np.ndarray, j: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Find entries with the same row and column. Returns arrays (earlier, later) of indices.

    Entry ``later[k]`` is the next entry in the row and column of entry ``earlier[k]``.
    """
    places = int(i.max() + 1) * max(n, 1)
    if places < 2**63:  # row and column fit in one integer, and integers are sorted fastest
        place: np.ndarray = i.astype(np.int32 if places < 2**31 else np.int64)
        place *= n
        np.add(place, j, out=place, casting="same_kind")
        place.sort()
        if not (place[1:] == place[:-1]).any():
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    order = np.lexsort((j, i))
    again = np.flatnonzero((np.diff(i[order]) == 0) & (np.diff(j[order]) == 0))
    return order[again], order[again + 1]


def _last_of_each(
    i: np.ndarray,
    j: np.ndarray,
    n: int,
    values: np.ndarray,
    lines: np.ndarray,
    notes: Notes,
    row_ids: np.ndarray | None,
    col_ids: np.ndarray | None,
) -> Any:
    """Mask of the entries to keep: of the entries with the same row and column, the last one. Record the others as faults.

    A later line is assumed to correct an earlier one. (The mean of both would be a value that was not observed.)
    """
    earlier, later = _repeated(i, j, n)
    if not len(earlier):
        return slice(None)
    differ = values[earlier] != values[later]

    def place(k: int) -> str:
        row = i[k] if row_ids is None else row_ids[i[k]]
        col = j[k] if col_ids is None else col_ids[j[k]]
        return f"({shortly(str(row))}, {shortly(str(col))})"

    def repeated(k: int) -> str:
        return f"{place(same[k])} stands on {notes.unit} {lines[same[k]]} already"

    def conflicting(k: int) -> str:
        a, b = other[k], new[k]
        return f"{place(a)} is {values[b]:g} here and {values[a]:g} on {notes.unit} {lines[a]}"

    in_order = np.argsort(lines[later], kind="stable")
    earlier, later, differ = earlier[in_order], later[in_order], differ[in_order]
    same, other, new = earlier[~differ], earlier[differ], later[differ]
    expected = "each entry was expected once"
    groups = [("repeated entry", lines[later[~differ]], repeated), ("conflicting entry", lines[new], conflicting)]
    for kind, where, found in sorted(groups, key=lambda group: group[1][0] if len(group[1]) else np.inf):
        notes.faults(kind, where, found, expected)
    stay = np.ones(len(i), dtype=bool)
    stay[earlier] = False
    return stay
