"""What a fitted RobustCompletion answers: predictions at pairs, the whole matrix, other rows, the best columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from condgrad import checks
from condgrad.data import Observations
from condgrad.learn.completion import entries
from condgrad.learn.completion.biases import ROWS, belief
from condgrad.learn.completion.entries import Entries
from condgrad.learn.completion.folding import folded
from condgrad.learn.completion.recommendation import best_columns
from condgrad.learn.completion.table_labels import (
    framed,
    label_array,
    label_pairs,
    label_places,
    labels_of,
    named_by,
    names_of,
)
from condgrad.objectives import Completion
from condgrad.objectives.losses import Loss

SPARSE = ["csr", "csc", "coo"]
"""Left as they are by scikit-learn, which would add up what a COO matrix holds more than once."""
KEEP = ("inliers", "observed", "nothing")


class Predicting:
    """Abstract: the answers of a fitted completion, whose parts have the names of RobustCompletion's attributes."""

    mean_: float
    row_biases_: np.ndarray
    col_biases_: np.ndarray
    row_factors_: np.ndarray
    components_: np.ndarray
    singular_values_: np.ndarray
    multiplier_: float
    range_: tuple[float, float]
    row_ids_: np.ndarray | None
    col_ids_: np.ndarray | None
    index_: Any
    columns_: Any
    clip: bool
    _seen: Completion
    _loss: Loss

    def _read(self, X: Any, y: Any, reset: bool) -> Entries:
        raise NotImplementedError

    def _biases(self) -> str | None:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Predict the values at pairs of a row and a column.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, 2), or Observations
            Rows and columns by name if the entries had names, by label if the model was fitted to a wide DataFrame, else by
            position; also the result of ``condgrad.data.load(..., values=False)``. An unknown row or column has bias 0 and no
            low-rank part: the prediction is then the mean plus the bias of the other.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        if self.index_ is None or isinstance(X, Observations):
            shape = len(self.row_biases_), len(self.col_biases_)
            return self._at(*entries.pair_places(X, names_of(self), shape))
        rows, cols = label_pairs(X)
        return self._at(label_places(rows, self.index_, "row"), label_places(cols, self.columns_, "column"))

    def _at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Predictions at positions; -1 for what is not known."""
        found = np.full(len(i), self.mean_)
        found += np.where(i >= 0, self.row_biases_[i], 0.0) + np.where(j >= 0, self.col_biases_[j], 0.0)
        known = (i >= 0) & (j >= 0)
        found[known] += np.einsum("ij,ij->i", self.row_factors_[i[known]], self.components_.T[j[known]])
        return self._clipped(found)

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the coefficient of determination R^2 of predictions.

        Parameters
        ----------
        X : as in ``fit``
            Pairs, or entries with their values.
        y : array-like of shape (n,), default None
            Values at the pairs.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        given, (m, n) = self._read(X, y, reset=False), (len(self.row_biases_), len(self.col_biases_))
        i, j = given.rows, given.cols
        if given.row_ids is not None and given.col_ids is not None:
            i, j = (
                entries.places(given.row_ids, self.row_ids_, m)[i],
                entries.places(given.col_ids, self.col_ids_, n)[j],
            )
        return float(r2_score(given.values, self._at(np.where(i < m, i, -1), np.where(j < n, j, -1))))

    def transform(self, X: Any) -> Any:
        """Complete the rows of a matrix, each folded in as a new one.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (k, n)
            With as many columns as the matrix that was fitted; NaN, or what a sparse matrix does not store, is missing.

        Returns
        -------
        ndarray or DataFrame of shape (k, n)
            X with predictions in place of what is missing and of outliers; of a DataFrame one with its index and columns.
        """
        check_is_fitted(self)
        index, columns = labels_of(X)
        X = validate_data(self, X, reset=False, accept_sparse=SPARSE, dtype=np.float64, ensure_all_finite="allow-nan")
        given = entries.from_matrix(X)
        biases, factors = self._folded(given.rows, given.cols, given.values, given.shape[0])
        found = self._clipped(factors @ self.components_ + biases[:, None] + self.col_biases_ + self.mean_)
        return framed(self._kept(found, given.rows, given.cols, given.values, "inliers"), index, columns)

    def fill(self, keep: str = "inliers") -> Any:
        """Complete the matrix that was fitted.

        Parameters
        ----------
        keep : {"inliers", "observed", "nothing"}, default "inliers"
            Which observed entries stay in their places: those with an inlier weight of at least one half, all, or none.
            Predictions are in all other places.

        Returns
        -------
        ndarray or DataFrame of shape (m, n)
            A DataFrame with index ``index_`` and columns ``columns_`` if the model was fitted to a wide DataFrame.
        """
        check_is_fitted(self)
        checks.choice(keep, KEEP, "choice of what to keep")
        found = self.row_factors_ @ self.components_
        found += self.row_biases_[:, None]
        found += self.col_biases_ + self.mean_
        pattern = self._seen.pattern
        found = self._kept(self._clipped(found), pattern.rows, pattern.cols, self._seen.values, keep)
        return framed(found, self.index_, self.columns_)

    def _kept(self, found: np.ndarray, rows: np.ndarray, cols: np.ndarray, values: np.ndarray, keep: str) -> np.ndarray:
        if keep == "nothing":
            return found
        trusted = (
            belief(self._loss, values - found[rows, cols]) >= 0.5 if keep == "inliers" else np.ones(len(rows), bool)
        )
        found[rows[trusted], cols[trusted]] = values[trusted]
        return found

    def _clipped(self, found: np.ndarray) -> np.ndarray:
        return np.clip(found, *self.range_, out=found) if self.clip else found

    def _folded(self, rows: np.ndarray, cols: np.ndarray, values: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Biases and factors of m rows with these entries."""
        left, ridge = values - self.mean_ - self.col_biases_[cols], ROWS if self._biases() == "both" else None
        columns, entries = self.components_.T, (rows, cols, left)
        return folded(columns, self.singular_values_, entries, m, self._loss, self.multiplier_, ridge)

    def recommend(self, rows: Any, k: int = 10, exclude_seen: bool = True) -> tuple[np.ma.MaskedArray, np.ndarray]:
        """Find the columns with the largest predictions for each row.

        Parameters
        ----------
        rows : array-like of shape (m,)
            Rows, as in ``predict``.
        k : int, default 10
            Maximum number of columns for each row.
        exclude_seen : bool, default True
            Leave out columns in which the row has an observed entry.

        Returns
        -------
        columns : MaskedArray of shape (m, l)
            Columns, best first, with l <= k the largest number that any of the rows has. A row with fewer ends with masked
            columns; ``columns[i].compressed()`` drops them.
        predictions : ndarray of shape (m, l)
            Their predictions, NaN where columns are masked.
        """
        check_is_fitted(self)
        if self.index_ is None:
            i = entries.places(rows, self.row_ids_, len(self.row_biases_))
        else:
            i = label_places(rows, self.index_, "row")
        if (i < 0).any():
            raise ValueError(
                f"Row {label_array(rows)[i < 0].tolist()[0]!r} is not known: fold it in first, or leave it out."
            )

        def predicted(rows: np.ndarray) -> np.ndarray:
            found = self.row_factors_[rows] @ self.components_
            found += self.col_biases_ + self.mean_ + self.row_biases_[rows, None]
            return found

        best, values = best_columns(i, predicted, self._seen.pattern, checks.whole(k, "k"), exclude_seen)
        columns, none = entries.named(best, named_by(self.col_ids_, self.columns_)), best < 0
        columns[none] = "" if columns.dtype.kind == "U" else np.array(-1).astype(columns.dtype)  # below the mask
        return np.ma.MaskedArray(columns, mask=none), self._clipped(values)
