"""Conversion between labels and positions, for models that were fitted to a wide DataFrame.

In a wide DataFrame, rows and columns are those of the matrix. A fit uses positions only. Therefore the labels of inputs are
converted to positions, and the positions of results to labels.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from condgrad.learn.completion.entries import id_pairs

TIMES = re.compile(r"(datetime64|timedelta64)\[(s|ms|us|ns)(, [\w/+:-]{1,60})?\]")
"""Names of dtypes of times. Labels of such a dtype are saved as integers, with the name of the dtype. Other labels that are not
numbers are saved as strings."""


def labels_of(X: Any) -> tuple[Any, Any] | tuple[None, None]:
    """Index and columns of a pandas DataFrame; (None, None) for other inputs."""
    wide = all(hasattr(X, name) for name in ("iloc", "index", "columns"))
    return (X.index, X.columns) if wide else (None, None)


def to_frame(values: np.ndarray, index: Any, columns: Any) -> Any:
    """Make a DataFrame with these labels. If ``index`` is None, the values are returned unchanged."""
    if index is None:
        return values
    from pandas import DataFrame

    return DataFrame(values, index=index, columns=columns)


def named_by(ids: np.ndarray | None, index: Any) -> np.ndarray | None:
    """Names of the rows (or columns): the labels of ``index``, or ``ids`` if ``index`` is None.

    If all labels are strings, the array has a string dtype.
    """
    if index is None:
        return ids
    found = np.asarray(index)
    strings = found.dtype.kind == "O" and all(isinstance(label, str) for label in found.tolist())
    return found.astype(np.str_) if strings else found


def label_positions(ids: Any, index: Any, what: str) -> np.ndarray:
    """Positions of labels in an index; -1 for labels that are not in the index.

    Strings are converted to the dtype of the index, for example to times. TypeError is raised for labels that can't be converted.
    It is also raised for numbers if the labels of the index are not numbers, because the numbers may be meant as positions.
    """
    from pandas import Index, MultiIndex

    if not index.is_unique:
        (twice, *_) = index[index.duplicated()].tolist()
        raise ValueError(
            f"The label {twice!r} stands for more than one {what} of the DataFrame: give labels that are "
            "unique, by reset_index(drop=True) for example."
        )
    labels, (known,) = label_array(ids), index[:1].tolist() or [None]
    wanted = Index(labels, tupleize_cols=False)
    given = labels.tolist()
    if wanted.dtype.kind in "iuf" and index.dtype.kind not in "iufb" and len(index):
        raise TypeError(
            f"The {what} {given[0]!r} is a number, but the DataFrame's {what}s have labels such as {known!r}: give labels."
        )
    if index.nlevels > 1:
        unlike = [label for label in given if not isinstance(label, tuple) or len(label) != index.nlevels]
    else:
        tuples = [label for label in given if isinstance(label, tuple)]
        unlike = [] if tuples and any(isinstance(label, tuple) for label in index) else tuples
    try:
        if not unlike:
            several = index.nlevels > 1 and given
            return index.get_indexer(MultiIndex.from_tuples(given) if several else wanted.astype(index.dtype))
    except (TypeError, ValueError):
        pass
    raise TypeError(
        f"The {what} {(unlike or given)[0]!r} can't be read as a label such as {known!r}: give labels of the DataFrame."
    )


def label_array(labels: Any) -> np.ndarray:
    """Convert labels to a one-dimensional array. A tuple is one label."""
    if not (isinstance(labels, list | tuple) and any(isinstance(label, tuple) for label in labels)):
        return np.atleast_1d(np.asarray(labels))
    found = np.empty(len(labels), dtype=object)
    for k, label in enumerate(labels):
        found[k] = label
    return found


def label_pairs(X: Any) -> tuple[Any, Any]:
    """Row labels and column labels of pairs. If a label is a tuple, a list is not converted to an array, because this would split
    the tuple."""
    listed = isinstance(X, list | tuple) and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in X)
    if listed and any(isinstance(label, tuple) for pair in X for label in pair):
        return [row for row, _ in X], [col for _, col in X]
    return id_pairs(X)


def append_labels(index: Any, other: Any) -> tuple[Any, np.ndarray]:
    """Append the labels of ``other`` that are not in ``index``. Returns the new index, and the positions of ``other`` in it."""
    found = label_positions(np.asarray(other), index, "row")
    new = found < 0
    if not other.is_unique:
        label_positions(np.asarray(other), other, "row")  # raises ValueError with the label that occurs twice
    found[new] = len(index) + np.arange(new.sum())
    return (index.append(other[new]) if new.any() else index), found


def match_labels(index: Any, known: Any, size: int) -> np.ndarray:
    """Positions of the rows (or columns) of a new matrix among the rows of a known matrix; -1 for new rows.

    The rows are matched by label if both matrices have labels and the labels ``known`` are unique, else by position.
    """
    if index is None or known is None or not known.is_unique:
        return np.arange(size)
    return known.get_indexer(index)


def renumber_new_rows(index: Any, X: Any) -> Any:
    """If the DataFrame X and ``index`` both have default labels (0, 1, 2, ...), number the rows of X after those of ``index``."""
    from pandas import RangeIndex

    def plain(labels: Any) -> bool:
        return isinstance(labels, RangeIndex) and labels.equals(RangeIndex(len(labels)))

    return X.set_axis(X.index + len(index), axis=0) if plain(index) and plain(X.index) else X


def names_of(model: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Row names and column names of a fitted model: its ids, or its labels as strings; None if there are no names."""
    if model.index_ is None:
        return model.row_ids_, model.col_ids_
    rows, cols = (np.array([str(label) for label in labels.tolist()]) for labels in (model.index_, model.columns_))
    return rows, cols


# ------------------------------------------------------------------------------------------------------------- on disk


def pack(index: Any) -> dict[str, Any] | None:
    """Convert an index to plain data for a file: its kind, its labels as numbers or texts, and its name. None stays None."""
    if index is None:
        return None
    labels, kind = np.asarray(index), str(index.dtype)
    if TIMES.fullmatch(kind):
        labels = index.asi8
    elif labels.dtype.kind in "iuf":
        kind = "number"
    else:
        kind, texts = "text", [str(label) for label in index.tolist()]
        labels = np.array(texts, object)
        if index.is_unique and len(set(texts)) < len(texts):
            again = next(text for text in texts if texts.count(text) > 1)
            raise ValueError(
                f"Two labels are both {again!r} as text (a number and a string, say) and would be equal in the file: rename one."
            )
    return {"kind": kind, "labels": labels, "name": None if index.name is None else str(index.name)}


def unpack(data: Any, size: int) -> Any:
    """Convert the data of ``pack`` back to an index. Raises TypeError if it does not have ``size`` labels."""
    if data is None:
        return None
    from pandas import DatetimeIndex, Index, TimedeltaIndex

    kind, labels, name = data["kind"], data["labels"], data["name"]
    if not isinstance(name, str | None) or labels.shape != (size,):
        raise TypeError(f"an index of {size} labels was expected")
    times = TIMES.fullmatch(kind)
    if kind in ("text", "number") and (labels.dtype.kind == "O") == (kind == "text"):
        return Index(labels, name=name)
    if times is None or labels.dtype != np.int64:
        raise ValueError("labels of an unknown kind")
    letter, made = ("M", DatetimeIndex) if times[1] == "datetime64" else ("m", TimedeltaIndex)
    index: Any = made(labels.view(f"{letter}8[{times[2]}]"), name=name)
    return index if times[3] is None else index.tz_localize("UTC").tz_convert(times[3][2:])
