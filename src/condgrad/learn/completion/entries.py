"""Converts any accepted input of a completion (sparse matrix, array with NaN, table, three arrays) to the class `Entries`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from condgrad.checks import NonFinite, counted
from condgrad.data import Observations
from condgrad.data.delimited import role
from condgrad.data.labels import INTEGER

MAX_MAGNITUDE, MIN_MAGNITUDE = 1e100, 1e-100
"""Bounds on the largest absolute value of a matrix, so that products of three values neither overflow nor underflow."""
MAX_FLOAT32_MAGNITUDE, MIN_FLOAT32_MAGNITUDE = 1e12, 1e-12
"""If the largest absolute value of a float32 matrix is outside of these bounds, the matrix is converted to float64."""
MAX_ID_PER_ENTRY = 4
"""If all ids are whole numbers from 0 to this multiple of the number of entries, distinct ids are found by a mask. This is faster
than sorting."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Observed entries of a matrix: values at positions (row, column).

    ``row_ids`` and ``col_ids`` are the sorted names of rows and columns; None if they have no names. float32 values stay float32,
    unless products of three values could overflow or underflow.
    """

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    row_ids: np.ndarray | None = None
    col_ids: np.ndarray | None = None
    index: Any = None
    """Row labels of a wide DataFrame, in the order of the matrix."""
    columns: Any = None
    """Column labels of a wide DataFrame."""
    in_order: bool = False
    """Whether the file already had the columns in the order of their sorted names."""

    def __post_init__(self) -> None:
        bad = ~np.isfinite(self.values)
        if bad.any():
            raise NonFinite(
                f"{bad.sum()} of {counted(len(bad), 'value')} are NaN or infinity: leave out what is not known."
            )
        check_magnitudes(self.values, self.name)
        if self.values.dtype == np.float32 and not MIN_FLOAT32_MAGNITUDE <= self.magnitude <= MAX_FLOAT32_MAGNITUDE:
            object.__setattr__(self, "values", self.values.astype(float))

    @property
    def magnitude(self) -> float:
        """The largest absolute value; 0 if there is no entry."""
        return float(np.abs(self.values).max(initial=0.0))

    def name(self, k: int) -> tuple[Any, Any]:
        """Row and column of entry k, by name if they have names, else by position."""
        return named(self.rows[k], self.row_ids).item(), named(self.cols[k], self.col_ids).item()

    def without_entries(self) -> Self:
        """The names and the shape only."""
        none = np.empty(0, np.int64)
        return replace(self, rows=none, cols=none, values=np.empty(0))

    def require_nonempty(self) -> Self:
        """Raise ValueError if there is no entry."""
        if not len(self.values):
            raise ValueError(
                "Found no observed entry (0 sample(s)), at least one was expected: NaN marks a missing entry."
            )
        return self

    def require_magnitude(self) -> Self:
        """Raise ValueError if values are so small that products of three values underflow. A matrix of zeros is accepted."""
        if 0 < self.magnitude < MIN_MAGNITUDE:
            k = np.flatnonzero(self.values)[0]
            raise ValueError(
                f"Entry {self.name(k)} is {self.values[k]:g}, and all others are below {MIN_MAGNITUDE:g} too, but larger values "
                "were expected: multiply all values by the same number, as a change of units does."
            )
        return self

    def require_unique(self) -> Self:
        """Raise ValueError if an entry is given more than once."""
        order = np.lexsort((self.cols, self.rows))
        rows, cols = self.rows[order], self.cols[order]
        same = (np.diff(rows) == 0) & (np.diff(cols) == 0)
        if same.any():
            i, j = rows[np.argmax(same)], cols[np.argmax(same)]
            times = np.sum((rows == i) & (cols == j))
            raise ValueError(
                f"Entry {self.name(order[np.argmax(same)])} is observed {times} times: keep one observation of it, or their mean."
            )
        return self


def check_magnitudes(values: np.ndarray, name: Callable[[int], Any]) -> None:
    """Raise ValueError if a value is too large to compute with. ``name(k)`` returns the name of entry k for the message."""
    if len(large := np.flatnonzero(np.abs(values) > np.float64(MAX_MAGNITUDE))):
        raise ValueError(
            f"Entry {name(large[0])} is {values[large[0]]:g}, but sizes up to {MAX_MAGNITUDE:g} were expected: divide all values "
            "by the same number, as a change of units does, or leave this entry out if it is wrong."
        )


def named(places: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
    """Names of rows or columns at these positions; the positions themselves if ``ids`` is None."""
    return places if ids is None else ids[places]


def is_entry_list(X: Any, y: Any) -> bool:
    """Whether the input is a list of entries and not a matrix. Lists are tables, three arrays, or pairs X with values y."""
    if isinstance(X, tuple | Observations):
        return True
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    width = shape[1] if len(shape) == 2 and not sp.issparse(X) else 0
    if width > 2 and hasattr(X, "columns"):
        if y is None:
            return _columns_by_role(X.columns, 3) is not None or (width == 3 and not _has_row_labels(X))
        # names of one or two letters are ignored: X may be a matrix with columns called a, b, ..., i, j
        chosen = _columns_by_role(X.columns, 2)
        return chosen is not None and all(len(str(X.columns[place])) > 2 for place in chosen)
    return width == 2 and y is not None


def _has_row_labels(X: Any) -> bool:
    """Whether a DataFrame of numbers has names or times as row labels. It is then a matrix, because lists have no such labels."""
    labels = getattr(X, "index", None)
    numbers = all(getattr(dtype, "kind", "O") in "biuf" for dtype in getattr(X, "dtypes", ["O"]))
    return labels is not None and getattr(labels, "dtype", np.dtype(int)).kind not in "iufb" and numbers


def from_list(X: Any, y: Any = None) -> Entries:
    """Make Entries from a tuple (rows, columns, values), a table with these columns, or pairs X with values y."""
    if isinstance(X, Observations):
        return _from_observations(X)
    if isinstance(X, tuple):
        if len(X) != 3:
            raise ValueError(f"A tuple of {len(X)} was given: (rows, columns, values) was expected.")
        parts = list(X)
    else:
        parts = table_columns(X, 3) if y is None else [*table_columns(X, 2), y]
    rows, cols, values = (np.asarray(part) for part in parts)
    if not rows.shape == cols.shape == values.shape or rows.ndim != 1:
        raise ValueError(
            f"Rows, columns and values have shapes {rows.shape}, {cols.shape} and {values.shape}: give lists of the same length."
        )
    row_ids, rows = _unique_ids(rows, "row")
    col_ids, cols = _unique_ids(cols, "column")
    # arrays with a y are not checked, because scikit-learn's estimator checks pass fractions as ids in such arrays
    if y is None or hasattr(X, "columns"):
        _check_whole(row_ids, "row")
        _check_whole(col_ids, "column")
    return Entries(rows, cols, _as_numbers(values), (len(row_ids), len(col_ids)), row_ids, col_ids)


def positions_as_matrix(X: Any) -> Any:
    """Convert Observations without names to a matrix. If most rows and columns are empty, name them by position instead."""
    if isinstance(X, Observations) and X.row_ids is None:
        return X.compact() if X.mostly_empty else X.matrix()
    return X


def _from_observations(X: Observations) -> Entries:
    """Make Entries from Observations with names."""
    if X.values is None or X.row_ids is None or X.col_ids is None:
        raise ValueError(
            "Observations with values and names were expected: load the file with values=True and ids=True."
        )
    names = X.col_ids
    # the names in the header of a table are text
    if all(isinstance(name, str) and INTEGER.fullmatch(name) for name in names.tolist()):
        names = names.astype(np.int64)
    (row_ids, rows), (col_ids, cols) = _unique_ids(X.row_ids, "row"), _unique_ids(names, "column")
    in_order = bool((np.diff(cols) > 0).all())
    return Entries(rows[X.rows], cols[X.cols], X.values, X.shape, row_ids, col_ids, in_order=in_order)


def from_matrix(X: Any) -> Entries:
    """Make Entries from a sparse matrix, whose stored entries are observed, or from an array in which NaN means missing."""
    if not sp.issparse(X):
        rows, cols = np.nonzero(~np.isnan(X))
        return Entries(rows, cols, X[rows, cols], X.shape)
    given: Any = X
    ordered = sp.csr_array(given)
    if not ordered.has_canonical_format:
        ordered = ordered.copy()
        ordered.sum_duplicates()
    if ordered.nnz < given.nnz:
        coo = given.tocoo()
        Entries(coo.row, coo.col, coo.data, coo.shape).require_unique()
    X = ordered
    rows = np.repeat(np.arange(X.shape[0], dtype=X.indices.dtype), np.diff(X.indptr))
    return Entries(rows, X.indices, X.data, X.shape)


def table_columns(X: Any, needed: int) -> list[np.ndarray]:
    """The columns of a table or an array in the order row, column, value.

    If a table has more columns than ``needed``, the columns with known names are used.
    """
    if hasattr(X, "columns"):
        chosen = _columns_by_role(X.columns, needed) if X.shape[1] > needed else None
        take = range(X.shape[1]) if chosen is None else chosen
        whole = None if hasattr(X, "iloc") else np.asarray(X)
        found = [X.iloc[:, j].to_numpy() if whole is None else whole[:, j] for j in take]
        return _ordered_columns(found, X.columns) if chosen is None else found
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"Expected a 2D array of pairs (row, column), got shape {X.shape}. Reshape your data.")
    return list(X.T)


def _columns_by_role(header: Any, needed: int) -> list[int] | None:
    """Positions of the row, column and value columns, if exactly one column has a known name for each; else None."""
    roles = [role(str(name)) for name in header]
    wanted = range(needed)
    return [roles.index(part) for part in wanted] if all(roles.count(part) == 1 for part in wanted) else None


def _ordered_columns(found: list[np.ndarray], header: Any) -> list[np.ndarray]:
    """Order the columns by known names, else by position.

    Raise ValueError in three cases:

    - A column has a known name, but the position of another role.
    - A row or column id would be a fraction, while the values have no fractions.
    - Three columns of numbers have no known names, so that they may be a matrix. They are accepted if only the last column has
      fractions.
    """
    roles = [role(str(name)) for name in header]
    if sorted(roles, key=str) == list(range(len(found))):
        return [found[roles.index(place)] for place in range(len(found))]
    swapped = any(known not in (None, place) for place, known in enumerate(roles))
    kinds = "".join(column.dtype.kind for column in found)
    fractions_first = len(kinds) == 3 and "f" in kinds[:2] and kinds[2] != "f"
    ids_and_values = set(kinds[:2]) <= set("iu") and kinds[2:] == "f"
    matrix = len(kinds) == 3 and set(kinds) <= set("biuf") and not ids_and_values and set(roles) == {None}
    if swapped or fractions_first or matrix:
        raise ValueError(
            f"It is not clear which of the columns {', '.join(map(str, header))} are row, column and value: name them so"
            f"{', or give a matrix of three columns as an array, by to_numpy()' if matrix else ''}."
        )
    return found


def id_pairs(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Row and column ids from an array or a table of two columns. A table with known names may have more columns."""
    found = table_columns(X, 2)
    if len(found) != 2:
        raise ValueError(f"Pairs (row, column) were expected, but got {counted(len(found), 'column')}: give two.")
    return found[0], found[1]


def pair_positions(
    X: Any, known: tuple[np.ndarray | None, np.ndarray | None], shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the rows and columns of pairs among the ``known`` names; -1 for an unknown row or column."""
    if isinstance(X, Observations):
        rows, cols = X.positions(*known)
        return np.where(rows < shape[0], rows, -1), np.where(cols < shape[1], cols, -1)
    rows, cols = id_pairs(X)
    return positions(rows, known[0], shape[0]), positions(cols, known[1], shape[1])


def positions(ids: Any, known: np.ndarray | None, size: int) -> np.ndarray:
    """Position of each id among the ``known`` ids; -1 for an unknown id. If ``known`` is None, the ids are positions."""
    ids = np.atleast_1d(np.asarray(ids))
    if known is None:
        if ids.dtype.kind == "f" and (ids == np.floor(ids)).all():
            ids = ids.astype(np.int64)
        if ids.dtype.kind not in "iu":
            raise TypeError(
                f"The rows and columns of the model have no names, but got {ids.dtype}: give their positions."
            )
        return np.where((ids >= 0) & (ids < size), ids, -1)
    if known.dtype.kind == "U":
        ids = _as_strings(ids)
    elif ids.dtype.kind not in "biuf":
        try:
            ids = ids.astype(known.dtype)
        except (TypeError, ValueError):
            raise TypeError("The ids are not numbers, but those of the model are: give numbers.") from None
    if known.dtype.kind in "iuf" and _are_whole(known):
        _check_whole(ids, "row and column")
    found = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[found] == ids, found, -1)


def merge(old: Entries, new: Entries) -> Entries:
    """Join the entries of ``old`` and ``new``. If both have an entry, its value is taken from ``new``."""
    if old.row_ids is None:
        shape, row_ids, col_ids = (max(old.shape[0], new.shape[0]), old.shape[1]), None, None
        rows, cols = np.concatenate([new.rows, old.rows]), np.concatenate([new.cols, old.cols])
    else:
        row_ids, rows = _merge_ids(old.row_ids, new.row_ids, old.rows, new.rows)
        col_ids, cols = _merge_ids(old.col_ids, new.col_ids, old.cols, new.cols)
        shape = len(row_ids), len(col_ids)
    flat, first = np.unique(rows.astype(np.int64) * shape[1] + cols, return_index=True)
    values = np.concatenate([new.values, old.values])[first]
    return Entries(flat // shape[1], flat % shape[1], values, shape, row_ids, col_ids)


def _merge_ids(
    old: np.ndarray | None, new: np.ndarray | None, old_places: np.ndarray, new_places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Join the names of old and new entries. Returns the sorted names, and the positions of the new and then the old entries."""
    assert old is not None and new is not None
    if old.dtype.kind == "U":
        new = _as_strings(new)
    elif new.dtype.kind == "U":
        raise TypeError("The ids are strings, but those of the model are numbers: give numbers.")
    ids = np.union1d(old, new)
    return ids, np.concatenate([np.searchsorted(ids, new)[new_places], np.searchsorted(ids, old)[old_places]])


def _unique_ids(ids: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct ids, and the position of each id among them. Ids become strings unless all of them are numbers."""
    if ids.dtype.kind == "O":
        kinds = {type(i) for i in ids.tolist()}
        ids = ids.astype(np.int64) if kinds <= {int} else _as_strings(ids)
    elif ids.dtype.kind not in "biufU":
        ids = _as_strings(ids)
    if ids.dtype.kind == "f" and not np.isfinite(ids).all():
        raise NonFinite(f"A {what} id is NaN or infinity: leave out entries without a row or column.")
    if ids.dtype.kind == "i" and len(ids) and ids.min() >= 0 and ids.max() <= MAX_ID_PER_ENTRY * len(ids):
        used = np.zeros(int(ids.max()) + 1, dtype=bool)
        used[ids] = True
        known = np.flatnonzero(used).astype(ids.dtype)
        if len(known) == len(used) and ids.dtype.itemsize >= 4:
            return known, ids
        return known, (np.cumsum(used) - 1)[ids]
    return np.unique(ids, return_inverse=True)


def _check_whole(ids: np.ndarray, what: str) -> None:
    """Raise ValueError for ids with fractions, which are probably values."""
    if not _are_whole(ids):
        odd = ids[ids != np.floor(ids)][0].item()
        raise ValueError(
            f"A {what} id must be a whole number or a name, but got {odd!r}: is this the column of values?"
        )


def _are_whole(ids: np.ndarray) -> bool:
    return ids.dtype.kind != "f" or bool((ids == np.floor(ids)).all())


def _as_strings(ids: np.ndarray) -> np.ndarray:
    return np.array([str(i) for i in ids.tolist()], dtype=np.str_) if len(ids) else np.empty(0, "U1")


def _as_numbers(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: give real numbers.")
    try:
        return values if values.dtype == np.float32 else values.astype(float, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The values must be numbers, but {error}.") from None
