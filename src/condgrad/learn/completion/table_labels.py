"""Row and column labels of a wide DataFrame, which has a column for each column of the matrix.

A fit uses positions only: labels of inputs are converted to positions, and positions of results to labels.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from condgrad.checks import whole
from condgrad.learn.completion.entries import id_pairs
from condgrad.learn.storage import named

TIMES = re.compile(r"(datetime64|timedelta64)\[(s|ms|us|ns)(, [\w/+:-]{1,60})?\]")
"""Types of labels that are saved as whole numbers and their type; others that are neither numbers nor strings become strings."""


def labels_of(X: Any) -> tuple[Any, Any] | tuple[None, None]:
    """Index and columns of a pandas DataFrame; (None, None) for other inputs."""
    wide = all(hasattr(X, name) for name in ("iloc", "index", "columns"))
    return (X.index, X.columns) if wide else (None, None)


def to_frame(values: np.ndarray, index: Any, columns: Any) -> Any:
    """The values as a DataFrame with these labels; the values unchanged if ``index`` is None."""
    if index is None:
        return values
    from pandas import DataFrame

    return DataFrame(values, index=index, columns=columns)


def named_by(ids: np.ndarray | None, index: Any) -> np.ndarray | None:
    """Array of the labels or names of rows (or columns); None if they have positions only. Labels that are all strings get a
    string dtype."""
    if index is None:
        return ids
    found = np.asarray(index)
    strings = found.dtype.kind == "O" and all(isinstance(label, str) for label in found.tolist())
    return found.astype(np.str_) if strings else found


def label_positions(ids: Any, index: Any, what: str) -> np.ndarray:
    """Positions of these labels in an index; -1 for labels that are not in it.

    Text is converted to the type of the index, such as times. Raises TypeError for labels that can't be converted, and for
    numbers if the labels are no numbers: these may be meant as positions.
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
            f"The {what} {given[0]!r} is a number, but the DataFrame's {what}s have labels such as {known!r}: give these."
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
    """Labels as a one-dimensional array, in which a tuple is one label."""
    if not (isinstance(labels, list | tuple) and any(isinstance(label, tuple) for label in labels)):
        return np.atleast_1d(np.asarray(labels))
    found = np.empty(len(labels), dtype=object)
    for k, label in enumerate(labels):
        found[k] = label
    return found


def label_pairs(X: Any) -> tuple[Any, Any]:
    """Row and column labels of pairs. In a list, a label may be a tuple, which conversion to an array would split."""
    listed = isinstance(X, list | tuple) and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in X)
    if listed and any(isinstance(label, tuple) for pair in X for label in pair):
        return [row for row, _ in X], [col for _, col in X]
    return id_pairs(X)


def append_labels(index: Any, other: Any) -> tuple[Any, np.ndarray]:
    """The index with the new labels of another appended, and the positions in it of all labels of the other."""
    found = label_positions(np.asarray(other), index, "row")
    new = found < 0
    if not other.is_unique:
        label_positions(np.asarray(other), other, "row")  # raises ValueError with the label that occurs twice
    found[new] = len(index) + np.arange(new.sum())
    return (index.append(other[new]) if new.any() else index), found


def match_labels(index: Any, known: Any, size: int) -> np.ndarray:
    """Positions of the rows (or columns) of one matrix among those of another; -1 for new ones.

    They are matched by label if both have labels and the known ones are unique, else by position.
    """
    if index is None or known is None or not known.is_unique:
        return np.arange(size)
    return known.get_indexer(index)


def renumber_new_rows(index: Any, X: Any) -> Any:
    """Number new rows after the known ones if both the DataFrame X and ``index`` have default row numbers from 0 on."""
    from pandas import RangeIndex

    def plain(labels: Any) -> bool:
        return isinstance(labels, RangeIndex) and labels.equals(RangeIndex(len(labels)))

    return X.set_axis(X.index + len(index), axis=0) if plain(index) and plain(X.index) else X


def names_of(model: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Names of rows and columns of a fitted model as in files: its names, or its labels as text; None for positions."""
    if model.index_ is None:
        return model.row_ids_, model.col_ids_
    rows, cols = (np.array([str(label) for label in labels.tolist()]) for labels in (model.index_, model.columns_))
    return rows, cols


# ------------------------------------------------------------------------------------------------------------- on disk


def pack(name: str, index: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any] | None:
    """An index as plain data, and an array of its numbers where it has numbers or times."""
    if index is None:
        return None
    found, kind = np.asarray(index), str(index.dtype)
    if TIMES.fullmatch(kind):
        arrays[name] = index.asi8
    elif found.dtype.kind in "iuf":
        kind, arrays[name] = "number", found
    else:
        kind = "text"
    texts = [str(label) for label in index.tolist()] if kind == "text" else None
    if texts is not None and index.is_unique and len(set(texts)) < len(texts):
        again = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(
            f"Two labels are both {again!r} as text, such as a number and a string, and would be one in the file: rename one."
        )
    return {"kind": kind, "texts": texts, "name": None if index.name is None else str(index.name)}


def unpack(name: str, data: Any, arrays: dict[str, np.ndarray], size: int) -> Any:
    """What ``pack`` was given."""
    if data is None:
        return None
    from pandas import DatetimeIndex, Index, TimedeltaIndex

    kind, title = data["kind"], data["name"]
    if title is not None and not isinstance(title, str):
        raise TypeError("an index whose name is no text")
    if kind == "text":
        index: Any = Index(named(data["texts"], "O"), name=title)
    elif kind == "number":
        index = Index(arrays[name], name=title)
    elif (times := TIMES.fullmatch(kind)) and arrays[name].dtype == np.int64:
        unit, zone = times[2], times[3]
        moments = arrays[name].view(f"{'M' if times[1] == 'datetime64' else 'm'}8[{unit}]")
        index = DatetimeIndex(moments, name=title) if times[1] == "datetime64" else TimedeltaIndex(moments, name=title)
        index = index if zone is None else index.tz_localize("UTC").tz_convert(zone[2:])
    else:
        raise ValueError("labels of an unknown kind")
    if whole(len(index), "labels", least=0) != size:
        raise ValueError("not one label for each")
    return index
