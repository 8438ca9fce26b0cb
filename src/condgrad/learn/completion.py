"""A matrix with holes and outliers, completed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from condgrad.learn import entries
from condgrad.learn.path import Fit, Model
from condgrad.learn.scale import belief
from condgrad.objectives import Completion


class RobustCompletion(TransformerMixin, BaseEstimator):
    """mean + row bias + column bias + a matrix of low rank, fitted so that outliers have no say."""

    def __init__(
        self,
        loss: Any = "welsch",
        sigma: float | str = "auto",
        radius: float | str = "auto",
        biases: bool = True,
        tol: float = 1e-3,
        max_steps: int = 40,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.loss = loss
        self.sigma = sigma
        self.radius = radius
        self.biases = biases
        self.tol = tol
        self.max_steps = max_steps
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        given = entries.read(X, y)
        self.row_ids_, self.col_ids_ = given.row_ids, given.col_ids
        everything = Completion(given.rows, given.cols, given.values, given.shape)
        fit = Fit(
            everything,
            self.loss,
            None if self.sigma == "auto" else self.sigma,
            self.biases,
            np.random.default_rng(0 if self.random_state is None else self.random_state),
        )
        best = fit.follow(np.inf if self.radius == "auto" else self.radius)
        radius = best.radius if self.radius == "auto" else self.radius
        self._settle(fit.finish(best, radius or fit.path[0].radius, self.max_steps, self.tol), fit)
        return self

    def _settle(self, model: Model, fit: Fit) -> None:
        self.model_ = model
        self.path_ = fit.path
        self.radius_, self.sigma_, self.result_ = model.radius, model.sigma, model.result
        left, values, right = model.x.svd()
        self.singular_values_, self.components_ = values, right.T
        self.row_factors_ = left * values
        self.row_biases_, self.col_biases_, self.mean_ = model.biases.rows, model.biases.cols, model.biases.mean
        pattern = fit.everything.pattern
        seen = fit.everything.values
        self.range_ = float(np.quantile(seen, 0.005)), float(np.quantile(seen, 0.995))
        score = 1 - belief(model.loss, seen - model.at(fit.rows, pattern.cols))
        self.outliers_ = np.flatnonzero(score > 0.5)

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        pairs = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
        rows = entries.places(pairs[:, 0], self.row_ids_, len(self.row_biases_))
        cols = entries.places(pairs[:, 1], self.col_ids_, len(self.col_biases_))
        known = (rows >= 0) & (cols >= 0)
        found = (
            self.mean_
            + np.where(rows >= 0, self.row_biases_[rows], 0.0)
            + np.where(cols >= 0, self.col_biases_[cols], 0.0)
        )
        found[known] = self.model_.at(rows[known], cols[known])
        return np.clip(found, *self.range_)
