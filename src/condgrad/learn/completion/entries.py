"""The observed entries of a matrix, whichever way they are given: a sparse matrix, an array with NaN, a table, three arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from condgrad.checks import NonFinite, counted
from condgrad.data import Observations
from condgrad.data.delimited import role

LARGEST, SMALLEST = 1e100, 1e-100
"""The largest entry of a matrix is within these: the engine multiplies three such numbers, and four are beyond floats."""
CROWDED = 4
"""Ids up to so many times the number of entries are ticked off rather than sorted, which takes longer than to read them."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Values at (row, column); where rows and columns have names, ``row_ids`` and ``col_ids`` tell them, sorted."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    row_ids: np.ndarray | None = None
    col_ids: np.ndarray | None = None
    index: Any = None
    """Labels of the rows, and below of the columns, of a wide DataFrame: in the order of the matrix, whatever they are."""
    columns: Any = None

    def __post_init__(self) -> None:
        bad = ~np.isfinite(self.values)
        if bad.any():
            raise NonFinite(
                f"{bad.sum()} of {counted(len(bad), 'value')} are NaN or infinity: leave out what is not known."
            )
        check_sizes(self.values, self.name)

    def name(self, k: int) -> tuple[Any, Any]:
        """The row and the column of entry k, by name where there are names."""
        return named(self.rows[k], self.row_ids).item(), named(self.cols[k], self.col_ids).item()

    def some(self) -> Self:
        """Refuses none at all, which nothing can be learned from."""
        if not len(self.values):
            raise ValueError(
                "Found no observed entry (0 sample(s)), at least one was expected: NaN stands for what is missing."
            )
        return self

    def visible(self) -> Self:
        """Refuses entries that are all next to nothing, unless they are 0: their squares would be."""
        if 0 < np.abs(self.values).max() < SMALLEST:
            k = np.flatnonzero(self.values)[0]
            raise ValueError(
                f"Entry {self.name(k)} is {self.values[k]:g} and no other has a size of {SMALLEST:g} or more, as was expected: "
                "multiply all values by the same number, as a change of units does."
            )
        return self

    def once(self) -> Self:
        """Refuses an entry that is given more than once, by its name."""
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


def check_sizes(values: np.ndarray, name: Callable[[int], Any]) -> None:
    """Refuses an entry that is too large to compute with, by its name."""
    if len(large := np.flatnonzero(np.abs(values) > LARGEST)):
        raise ValueError(
            f"Entry {name(large[0])} is {values[large[0]]:g}, but sizes up to {LARGEST:g} were expected: divide all values by "
            "the same number, as a change of units does, or leave it out if it is wrong."
        )


def named(places: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
    """What stands at these places, by name where there are names."""
    return places if ids is None else ids[places]


def is_listed(X: Any, y: Any) -> bool:
    """Are these entries one by one (a table, three arrays, pairs with their values), or a matrix?"""
    if isinstance(X, tuple | Observations):
        return True
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    width = shape[1] if len(shape) == 2 and not sp.issparse(X) else 0
    if width > 2 and hasattr(X, "columns"):
        if y is None:
            return _known(X.columns, 3) is not None or (width == 3 and not _has_row_labels(X))
        chosen = _known(X.columns, 2)  # a matrix may come with a y, which it ignores, and have columns a, b, ... i, j
        return chosen is not None and all(len(str(X.columns[place])) > 2 for place in chosen)
    return width == 2 and y is not None


def _has_row_labels(X: Any) -> bool:
    """A DataFrame of numbers whose rows have names or times is a matrix: a list of entries has no such labels."""
    labels = getattr(X, "index", None)
    numbers = all(getattr(dtype, "kind", "O") in "biuf" for dtype in getattr(X, "dtypes", ["O"]))
    return labels is not None and getattr(labels, "dtype", np.dtype(int)).kind not in "iufb" and numbers


def listed(X: Any, y: Any = None) -> Entries:
    """From (rows, columns, values), a table of these, or pairs and their values y."""
    if isinstance(X, Observations):
        return _loaded(X)
    if isinstance(X, tuple):
        if len(X) != 3:
            raise ValueError(f"A tuple of {len(X)} was given: (rows, columns, values) was expected.")
        parts = list(X)
    else:
        parts = columns(X, 3) if y is None else [*columns(X, 2), y]
    rows, cols, values = (np.asarray(part) for part in parts)
    if not rows.shape == cols.shape == values.shape or rows.ndim != 1:
        raise ValueError(
            f"Rows, columns and values have shapes {rows.shape}, {cols.shape} and {values.shape}: give lists of the same length."
        )
    row_ids, rows = _unique(rows, "row")
    col_ids, cols = _unique(cols, "column")
    if y is None or hasattr(X, "columns"):  # an array with y may be any numbers: so ask the checks of scikit-learn
        _whole(row_ids, "row")
        _whole(col_ids, "column")
    return Entries(rows, cols, _numbers(values), (len(row_ids), len(col_ids)), row_ids, col_ids)


def unnamed(X: Any) -> Any:
    """A file of positions is a matrix, as it has no names; one that is nearly empty is entries named by their positions."""
    if isinstance(X, Observations) and X.row_ids is None:
        return X.compact() if X.mostly_empty else X.matrix()
    return X


def _loaded(X: Observations) -> Entries:
    """Each name is looked at once, not once for each entry."""
    if X.values is None or X.row_ids is None or X.col_ids is None:
        raise ValueError(
            "Observations with values and names were expected: load the file with values=True and ids=True."
        )
    (row_ids, rows), (col_ids, cols) = _unique(X.row_ids, "row"), _unique(X.col_ids, "column")
    return Entries(rows[X.rows], cols[X.cols], X.values, X.shape, row_ids, col_ids)


def from_matrix(X: Any) -> Entries:
    """From a sparse matrix, whose stored entries are what is observed, or an array in which NaN is what is not."""
    if not sp.issparse(X):
        rows, cols = np.nonzero(~np.isnan(X))
        return Entries(rows, cols, X[rows, cols], X.shape)
    given: Any = X
    ordered = sp.csr_array(given)
    if not ordered.has_canonical_format:
        ordered = ordered.copy()
        ordered.sum_duplicates()
    if ordered.nnz < given.nnz:
        whole = given.tocoo()
        Entries(whole.row, whole.col, whole.data, whole.shape).once()
    X = ordered
    rows = np.repeat(np.arange(X.shape[0], dtype=X.indices.dtype), np.diff(X.indptr))
    return Entries(rows, X.indices, X.data, X.shape)


def columns(X: Any, needed: int) -> list[np.ndarray]:
    """The columns of a table, in the order of row, column and value, or of an array. Among more columns, known names tell."""
    if hasattr(X, "columns"):
        chosen = _known(X.columns, needed) if X.shape[1] > needed else None
        take = range(X.shape[1]) if chosen is None else chosen
        whole = None if hasattr(X, "iloc") else np.asarray(X)
        found = [X.iloc[:, j].to_numpy() if whole is None else whole[:, j] for j in take]
        return _in_order(found, X.columns) if chosen is None else found
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"Expected a 2D array of pairs (row, column), got shape {X.shape}. Reshape your data.")
    return list(X.T)


def _known(header: Any, needed: int) -> list[int] | None:
    """Where row, column and value stand, if one name each says so: tables of ratings have times and more besides."""
    roles = [role(str(name)) for name in header]
    wanted = range(needed)
    return [roles.index(part) for part in wanted] if all(roles.count(part) == 1 for part in wanted) else None


def _in_order(found: list[np.ndarray], header: Any) -> list[np.ndarray]:
    """By the names that files have too; by position where no name and no kind of number speaks against it.

    Three columns of numbers without such a name may be a matrix as well, unless only the last one has fractions.
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
            f"Which of the columns {', '.join(map(str, header))} are row, column and value is not clear: name them so"
            f"{', or give a matrix of three columns as an array, by to_numpy()' if matrix else ''}."
        )
    return found


def pairs(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The ids in an array or a table of two columns, or of more with known names."""
    found = columns(X, 2)
    if len(found) != 2:
        raise ValueError(f"Pairs (row, column) were expected, but got {counted(len(found), 'column')}: give two.")
    return found[0], found[1]


def pair_places(
    X: Any, known: tuple[np.ndarray | None, np.ndarray | None], shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Where the rows and the columns of pairs stand among the known ones; -1 for those that are new."""
    if isinstance(X, Observations):
        rows, cols = X.positions(*known)
        return np.where(rows < shape[0], rows, -1), np.where(cols < shape[1], cols, -1)
    rows, cols = pairs(X)
    return places(rows, known[0], shape[0]), places(cols, known[1], shape[1])


def places(ids: Any, known: np.ndarray | None, size: int) -> np.ndarray:
    """Where each id stands among the known ones; -1 for those that are new."""
    ids = np.atleast_1d(np.asarray(ids))
    if known is None:
        if ids.dtype.kind == "f" and (ids == np.floor(ids)).all():
            ids = ids.astype(np.int64)
        if ids.dtype.kind not in "iu":
            raise TypeError(f"Rows and columns are known by their numbers, but got {ids.dtype}: give whole numbers.")
        return np.where((ids >= 0) & (ids < size), ids, -1)
    if known.dtype.kind == "U":
        ids = _strings(ids)
    elif ids.dtype.kind not in "biuf":
        try:
            ids = ids.astype(known.dtype)
        except (TypeError, ValueError):
            raise TypeError("The ids are not numbers, but the model was fitted with numbers: give these.") from None
    if known.dtype.kind in "iuf" and _are_whole(known):
        _whole(ids, "row and column")
    found = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[found] == ids, found, -1)


def merged(old: Entries, new: Entries) -> Entries:
    """The entries of both, under the names of both; where both have one, the new one."""
    if old.row_ids is None:
        shape, row_ids, col_ids = (max(old.shape[0], new.shape[0]), old.shape[1]), None, None
        rows, cols = np.concatenate([new.rows, old.rows]), np.concatenate([new.cols, old.cols])
    else:
        row_ids, rows = _united(old.row_ids, new.row_ids, old.rows, new.rows)
        col_ids, cols = _united(old.col_ids, new.col_ids, old.cols, new.cols)
        shape = len(row_ids), len(col_ids)
    flat, first = np.unique(rows.astype(np.int64) * shape[1] + cols, return_index=True)
    values = np.concatenate([new.values, old.values])[first]
    return Entries(flat // shape[1], flat % shape[1], values, shape, row_ids, col_ids)


def _united(
    old: np.ndarray | None, new: np.ndarray | None, old_places: np.ndarray, new_places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The names of both, and where the entries, new ones first, stand among these."""
    assert old is not None and new is not None
    if old.dtype.kind == "U":
        new = _strings(new)
    elif new.dtype.kind == "U":
        raise TypeError("The ids are strings, but the model was fitted with numbers: give these.")
    ids = np.union1d(old, new)
    return ids, np.concatenate([np.searchsorted(ids, new)[new_places], np.searchsorted(ids, old)[old_places]])


def _unique(ids: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """The sorted ids and the place of each among them: strings, unless all are numbers."""
    if ids.dtype.kind == "O":
        kinds = {type(i) for i in ids.tolist()}
        ids = ids.astype(np.int64) if kinds <= {int} else _strings(ids)
    elif ids.dtype.kind not in "biufU":
        ids = _strings(ids)
    if ids.dtype.kind == "f" and not np.isfinite(ids).all():
        raise NonFinite(f"A {what} id is NaN or infinity: leave out entries whose place is not known.")
    if ids.dtype.kind == "i" and len(ids) and ids.min() >= 0 and ids.max() <= CROWDED * len(ids):
        there = np.zeros(int(ids.max()) + 1, dtype=bool)
        there[ids] = True
        known = np.flatnonzero(there).astype(ids.dtype)
        if len(known) == len(there) and ids.dtype.itemsize >= 4:
            return known, ids
        return known, (np.cumsum(there) - 1)[ids]
    return np.unique(ids, return_inverse=True)


def _whole(ids: np.ndarray, what: str) -> None:
    """Refuses what was meant as values."""
    if not _are_whole(ids):
        odd = ids[ids != np.floor(ids)][0].item()
        raise ValueError(
            f"A {what} id must be a whole number or a name, but got {odd!r}: is this the column of values?"
        )


def _are_whole(ids: np.ndarray) -> bool:
    return ids.dtype.kind != "f" or bool((ids == np.floor(ids)).all())


def _strings(ids: np.ndarray) -> np.ndarray:
    return np.array([str(i) for i in ids.tolist()], dtype=np.str_) if len(ids) else np.empty(0, "U1")


def _numbers(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: give real numbers.")
    try:
        return values.astype(float, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The values must be numbers, but {error}.") from None
