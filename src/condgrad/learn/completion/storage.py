"""The methods `save` and `load` of RobustCompletion: which attributes are stored in the file, and how they are validated."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.checks import whole
from condgrad.learn.completion.entries import named
from condgrad.learn.completion.table_labels import named_by, pack, unpack
from condgrad.learn.completion.validation import Averaging, Candidate, Radius, TensorView
from condgrad.learn.storage import Storable
from condgrad.objectives import Completion
from condgrad.objectives.losses import check_loss
from condgrad.storage.snapshot import PLAIN, check_type
from condgrad.storage.stored import check_array

NUMBERS = dict.fromkeys(("mean_", "radius_", "sigma_", "multiplier_"), float) | {"n_features_in_": int}
ARRAYS = dict.fromkeys(("row_biases_", "col_biases_", "row_factors_", "components_", "singular_values_"), np.ndarray)
FITTED: dict[str, Any] = {
    **NUMBERS,
    **ARRAYS,
    "row_ids_": np.ndarray | None,
    "col_ids_": np.ndarray | None,
    "path_": list[Radius],
    "best_index_": int | None,
    "n_validation_": int,
    "losses_": list[float],
    "loss_": str,
    "candidates_": list[Candidate],
    "averaging_": Averaging | None,
    "n_outliers_": int,
    "view_": TensorView | None,
    "range_": tuple[float, float],
    "_rank": int | None,
    "_loss": Any,
}
"""Attributes that are stored as they are, with their types."""
FIELDS = ("row", "column", "value", "predicted", "score")


class StoredCompletion(Storable):
    """Abstract base class of RobustCompletion with ``save`` and ``load``. Everything except ``result_`` is stored.

    The observed entries are stored too, but not if they are on the workers of a cluster. The client is not stored.
    """

    result_: Any
    _seen: Completion | None

    def _fitted(self: Any) -> dict[str, Any]:
        ids, found, seen = (self.row_ids_, self.col_ids_), self.outliers_, self._seen
        places = (
            at
            if names is None
            else np.searchsorted(names, found[field])  # the positions of outliers change when rows are folded in
            for at, names, field in zip(self._outlier_places, ids, FIELDS[:2], strict=True)
        )
        return {
            **{name: getattr(self, name) for name in FITTED},
            "labels": (pack(self.index_), pack(self.columns_)),
            "outliers": (*places, *(np.ascontiguousarray(found[field]) for field in FIELDS[2:])),
            "entries": None if seen is None else (seen.pattern.rows, seen.pattern.cols, seen.values),
            "feature_names": getattr(self, "feature_names_in_", None),
        }

    def _set_fitted(self: Any, fitted: dict[str, Any]) -> None:
        self._check_parameters()
        for name, kind in FITTED.items():
            check_type(fitted[name], kind, name)
            setattr(self, name, fitted[name])
        for name, shape in self._shapes().items():
            check_array(fitted[name], shape, name, "iuf")
        m, n = len(self.row_biases_), len(self.col_biases_)
        self._check_numbers()
        _check_ids(self.row_ids_, m)
        _check_ids(self.col_ids_, n)
        self.index_, self.columns_ = (unpack(data, size) for data, size in zip(fitted["labels"], (m, n), strict=True))
        if (self.row_ids_ is None) != (self.col_ids_ is None) or (self.index_ is None) != (self.columns_ is None):
            raise ValueError("rows and columns must both have names, or neither")
        for field, part in zip(FIELDS, fitted["outliers"], strict=True):
            check_array(part, fitted["outliers"][0].shape[:1], field, "iuf")
        rows, cols, *numbers = fitted["outliers"]
        names = named_by(self.row_ids_, self.index_), named_by(self.col_ids_, self.columns_)
        if ((rows < 0) | (rows >= m) | (cols < 0) | (cols >= n)).any():
            raise ValueError("an outlier lies outside of the matrix")
        self.outliers_ = records(named(rows, names[0]), named(cols, names[1]), *numbers)
        self._outlier_places = rows, cols
        self._seen = None
        if fitted["entries"] is not None:
            rows, cols, values = fitted["entries"]
            self._seen = Completion(rows, cols, values, (m, n), self._loss)
        self.result_ = None
        if fitted["feature_names"] is not None:
            self.feature_names_in_ = fitted["feature_names"]

    def _shapes(self: Any) -> dict[str, tuple[int, ...]]:
        m, n, r = len(self.row_biases_), len(self.col_biases_), len(self.singular_values_)
        return dict.fromkeys(NUMBERS, ()) | dict(zip(ARRAYS, ((m,), (n,), (m, r), (r, n), (r,)), strict=True))

    def _check_parameters(self: Any) -> None:
        parameters = self.get_params(deep=False)
        if not isinstance(loss := parameters.pop("loss"), str):
            check_loss(loss, np.empty(0))
        if not all(type(value) in PLAIN or isinstance(value, np.generic) for value in parameters.values()):
            raise TypeError("a parameter is neither a number nor a string")

    def _check_numbers(self: Any) -> None:
        whole(self.n_features_in_, "n_features_in_")
        whole(self.n_validation_, "n_validation_", least=0)
        whole(self._rank or 0, "rank", least=0)
        if self.best_index_ is not None and not 0 <= self.best_index_ < len(self.path_):
            raise ValueError(f"best_index_ is {self.best_index_}, the path has {len(self.path_)} fits")
        if not self.range_[0] <= self.range_[1]:
            raise ValueError("range_ is no range")


def _check_ids(ids: np.ndarray | None, size: int) -> None:
    """Raise ValueError unless there is one name or number for each row, in increasing order (they are looked up by bisection)."""
    if ids is not None and (ids.shape != (size,) or not (ids[:-1] < ids[1:]).all()):
        raise ValueError("names are not sorted, or not one for each row or column")


def records(*parts: np.ndarray) -> np.recarray:
    """Make a record array with one record for each outlier. Rows and columns are names or positions."""
    kinds = [np.int64 if part.dtype.kind == "i" else part.dtype for part in parts]
    return np.rec.fromarrays(parts, dtype=np.dtype(list(zip(FIELDS, kinds, strict=True))))
