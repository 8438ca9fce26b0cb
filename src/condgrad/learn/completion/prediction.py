"""The prediction methods of RobustCompletion: predict, score, transform, fill and recommend."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from condgrad import checks
from condgrad.data import Observations
from condgrad.learn.completion import entries
from condgrad.learn.completion.biases import ROW_RIDGE, inlier_weights
from condgrad.learn.completion.entries import Entries
from condgrad.learn.completion.folding import fold_in_rows, prior_penalties
from condgrad.learn.completion.recommendation import best_columns
from condgrad.learn.completion.table_labels import (
    label_array,
    label_pairs,
    label_positions,
    labels_of,
    named_by,
    names_of,
    to_frame,
)
from condgrad.learn.completion.validation import Averaging, TensorView
from condgrad.objectives import Completion
from condgrad.objectives.losses import Loss
from condgrad.points import Pattern

SPARSE_FORMATS = ["csr", "csc", "coo"]
"""Sparse formats that scikit-learn must not convert, because it would add up the duplicate entries of a COO matrix."""
FLOATS = [np.float64, np.float32]
"""Types of a matrix that are kept. All other types are converted to float64."""
KEEP_CHOICES = ("inliers", "observed", "nothing")
"""Names of the observed entries that ``fill`` can keep."""


class Predicting:
    """Abstract base class of RobustCompletion. Its methods make predictions from the fitted attributes."""

    mean_: float
    row_biases_: np.ndarray
    col_biases_: np.ndarray
    row_factors_: np.ndarray
    components_: np.ndarray
    singular_values_: np.ndarray
    multiplier_: Any
    sigma_: float
    averaging_: Averaging | None
    view_: TensorView | None
    range_: tuple[float, float]
    row_ids_: np.ndarray | None
    col_ids_: np.ndarray | None
    index_: Any
    columns_: Any
    clip: bool
    _seen: Completion | None
    _loss: Loss

    def _read(self, X: Any, y: Any, reset: bool) -> Entries:
        """Read the entries of X and y; ``reset`` is True at the beginning of a fit."""
        raise NotImplementedError

    def _biases(self) -> str | None:
        """Biases of the model: "both", "columns" or None."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Predict the values at pairs of a row and a column.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, 2), or Observations
            Pairs (row, column): by name if the entries had names, by label if the model was fitted to a wide DataFrame, else by
            position. The result of ``condgrad.data.load(..., values=False)`` is also accepted. If the row is unknown, the
            prediction is the mean plus the bias of the column. If the column is unknown, it is the mean plus the bias of the row.

        Returns
        -------
        ndarray of shape (n,)
            The predictions.
        """
        check_is_fitted(self)
        if isinstance(X, Observations):
            shape = len(self.row_biases_), len(self.col_biases_)
            return self._predict_at(*entries.pair_positions(X, names_of(self), shape))
        return self.predict_names(*(entries.id_pairs(X) if self.index_ is None else label_pairs(X)))

    def predict_names(self, rows: Any, cols: Any) -> np.ndarray:
        """Predict the values at pairs that are given by two arrays, which may have different types.

        Parameters
        ----------
        rows, cols : array-like of shape (n,)
            Rows and columns, as in ``predict``.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        if self.index_ is None:
            i = entries.positions(rows, self.row_ids_, len(self.row_biases_))
            j = entries.positions(cols, self.col_ids_, len(self.col_biases_))
        else:
            i, j = label_positions(rows, self.index_, "row"), label_positions(cols, self.columns_, "column")
        return self._predict_at(i, j)

    def _predict_at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Predictions at positions (i, j); -1 stands for an unknown row or column."""
        predictions = np.full(len(i), self.mean_)
        predictions += np.where(i >= 0, self.row_biases_[i], 0.0) + np.where(j >= 0, self.col_biases_[j], 0.0)
        known = (i >= 0) & (j >= 0)
        predictions[known] += np.einsum("ij,ij->i", self.row_factors_[i[known]], self.components_.T[j[known]])
        return self._clip(predictions)

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
                entries.positions(given.row_ids, self.row_ids_, m)[i],
                entries.positions(given.col_ids, self.col_ids_, n)[j],
            )
        return float(r2_score(given.values, self._predict_at(np.where(i < m, i, -1), np.where(j < n, j, -1))))

    def transform(self, X: Any) -> Any:
        """Complete the rows of a matrix. Each of them is folded in as a new row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (k, n)
            The rows, with as many columns as the fitted matrix. Missing entries are NaN, or not stored in a sparse matrix.

        Returns
        -------
        ndarray or DataFrame of shape (k, n)
            X with predictions in place of missing entries and outliers. If X is a DataFrame, the result is one too, with the same
            index and columns.
        """
        check_is_fitted(self)
        index, columns = labels_of(X)
        X = validate_data(
            self, X, reset=False, accept_sparse=SPARSE_FORMATS, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        given = entries.from_matrix(X)
        biases, factors = self._fold_in(given.rows, given.cols, given.values, given.shape[0])
        predictions = self._clip(factors @ self.components_ + biases[:, None] + self.col_biases_ + self.mean_)
        return to_frame(
            self._keep_observed(predictions, given.rows, given.cols, given.values, "inliers"), index, columns
        )

    @property
    def has_entries(self) -> bool:
        """Whether the model has the fitted entries. It does not have them if they were on a cluster."""
        return self._seen is not None

    def _observed(self, advice: str) -> Completion:
        """The fitted entries. Raises ValueError if they are on a cluster."""
        if self._seen is None:
            raise ValueError(f"The fitted entries are on a cluster, and not in the model: {advice}.")
        return self._seen

    def fill(self, keep: str = "inliers") -> Any:
        """Complete the fitted matrix.

        Parameters
        ----------
        keep : {"inliers", "observed", "nothing"}, default "inliers"
            Observed entries that keep their values. "inliers": entries with an inlier weight of at least one half. "observed":
            all observed entries. "nothing": none. All other entries are predictions.

        Returns
        -------
        ndarray or DataFrame of shape (m, n)
            A DataFrame with index ``index_`` and columns ``columns_`` if the model was fitted to a wide DataFrame.
        """
        check_is_fitted(self)
        checks.choice(keep, KEEP_CHOICES, "choice of what to keep")
        predictions = self.row_factors_ @ self.components_
        predictions += self.row_biases_[:, None]
        predictions += self.col_biases_ + self.mean_
        self._clip(predictions)
        if keep != "nothing":
            seen = self._observed("give keep='nothing'")
            self._keep_observed(predictions, seen.pattern.rows, seen.pattern.cols, seen.values, keep)
        return to_frame(predictions, self.index_, self.columns_)

    def _keep_observed(
        self, predictions: np.ndarray, rows: np.ndarray, cols: np.ndarray, values: np.ndarray, keep: str
    ) -> np.ndarray:
        """Replace predictions, in place, by the observed values that ``keep`` names."""
        if keep == "nothing":
            return predictions
        kept = (
            inlier_weights(self._loss, values - predictions[rows, cols]) >= 0.5
            if keep == "inliers"
            else np.ones(len(rows), bool)
        )
        predictions[rows[kept], cols[kept]] = values[kept]
        return predictions

    def _clip(self, predictions: np.ndarray) -> np.ndarray:
        """Clip predictions to ``range_`` in place, if ``clip`` is True."""
        return np.clip(predictions, *self.range_, out=predictions) if self.clip else predictions

    def _fold_in(self, rows: np.ndarray, cols: np.ndarray, values: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Compute the biases and factors of m new rows that have these entries."""
        residuals, ridge = values - self.mean_ - self.col_biases_[cols], ROW_RIDGE if self._biases() == "both" else None
        columns, entries, penalty = self.components_.T, (rows, cols, residuals), self.multiplier_
        if self.averaging_ is not None or self.view_ is not None:  # there is no multiplier, because there is no ball
            penalty = prior_penalties(self._loss, self.sigma_, len(self.row_biases_), self.singular_values_)
        return fold_in_rows(columns, self.singular_values_, entries, m, self._loss, penalty, ridge)

    def recommend(self, rows: Any, k: int = 10, exclude_seen: bool = True) -> tuple[np.ma.MaskedArray, np.ndarray]:
        """Find the columns with the largest predictions for each row.

        Parameters
        ----------
        rows : array-like of shape (m,)
            Rows, as in ``predict``.
        k : int, default 10
            Maximum number of columns for each row.
        exclude_seen : bool, default True
            Whether columns in which the row has an observed entry are left out.

        Returns
        -------
        columns : MaskedArray of shape (m, l)
            The columns with the largest predictions, largest first. l is the smaller of k and the largest number of columns that
            are available for a row. If fewer columns are available for row i, its last columns are masked, and
            ``columns[i].compressed()`` drops them.
        predictions : ndarray of shape (m, l)
            Predictions at these columns; NaN for masked columns.

        Raises
        ------
        ValueError
            If a row is unknown.
        """
        check_is_fitted(self)
        if self.index_ is None:
            i = entries.positions(rows, self.row_ids_, len(self.row_biases_))
        else:
            i = label_positions(rows, self.index_, "row")
        if (i < 0).any():
            raise ValueError(
                f"Row {label_array(rows)[i < 0].tolist()[0]!r} is not known: fold it in first, or leave it out."
            )

        def predicted(rows: np.ndarray) -> np.ndarray:
            predictions = self.row_factors_[rows] @ self.components_
            predictions += self.col_biases_ + self.mean_ + self.row_biases_[rows, None]
            return predictions

        none_seen = Pattern((), (), (len(self.row_biases_), len(self.col_biases_)))
        observed = self._observed("give exclude_seen=False").pattern if exclude_seen else none_seen
        best, values = best_columns(i, predicted, observed, checks.whole(k, "k"), exclude_seen)
        columns, none = entries.named(best, named_by(self.col_ids_, self.columns_)), best < 0
        columns[none] = "" if columns.dtype.kind == "U" else np.array(-1).astype(columns.dtype)  # values under the mask
        return np.ma.MaskedArray(columns, mask=none), self._clip(values)
