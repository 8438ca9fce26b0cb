"""Plain methods that the defaults are compared with, each written flat from its paper, and the settings that each chooses from.

Every method is tuned on held-out data of the same training set, by the mean absolute error: the same care for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Fill = Callable[[np.ndarray, float], np.ndarray]
"""A method that completes a matrix, in which NaN is missing, with one setting."""


def soft_impute(X: np.ndarray, threshold: float, start: np.ndarray | None = None, iterations: int = 100) -> np.ndarray:
    """Soft-thresholded SVDs of the completed matrix (Mazumder, Hastie and Tibshirani 2010); the threshold is absolute."""
    known = ~np.isnan(X)
    L = np.zeros_like(X) if start is None else start
    for _ in range(iterations):
        U, s, V = np.linalg.svd(np.where(known, X, L), full_matrices=False)
        s = np.maximum(s - threshold, 0.0)
        before, L = L, (U * s) @ V
        if np.linalg.norm(L - before) <= 1e-4 * max(np.linalg.norm(before), 1e-300):
            break
    return L


def iterative_svd(X: np.ndarray, rank: int, iterations: int = 100) -> np.ndarray:
    """Truncated SVDs of the completed matrix (Troyanskaya et al. 2001), which starts with the means of the columns."""
    known = ~np.isnan(X)
    L = np.zeros_like(X)
    for _ in range(iterations):
        U, s, V = np.linalg.svd(np.where(known, X, L), full_matrices=False)
        before, L = L, (U[:, :rank] * s[:rank]) @ V[:rank]
        if np.linalg.norm(L - before) <= 1e-4 * max(np.linalg.norm(before), 1e-300):
            break
    return L


def principal_component_pursuit(X: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """L of min |L|_* + lambda |S|_1 with L + S = X where known, lambda = factor / sqrt(max(m, n)).

    Inexact augmented Lagrangian (Lin, Chen and Ma 2010).
    """
    known = ~np.isnan(X)
    X = np.where(known, X, 0.0)
    weight, norm = factor / math.sqrt(max(X.shape)), float(np.linalg.norm(X, 2))
    Y, S, L, penalty = X / max(norm, np.abs(X).max() / weight), np.zeros_like(X), X, 1.25 / norm
    for _ in range(100):
        U, s, V = np.linalg.svd(X - S + Y / penalty, full_matrices=False)
        L = (U * np.maximum(s - 1 / penalty, 0.0)) @ V
        rest = X - L + Y / penalty
        S = np.where(known, np.sign(rest) * np.maximum(np.abs(rest) - weight / penalty, 0.0), rest)
        violation = X - L - S
        if np.linalg.norm(violation) <= 1e-6 * np.linalg.norm(X):
            break
        Y, penalty = Y + penalty * violation, 1.5 * penalty
    return L


def tuned_fill(X: np.ndarray, fill: Callable[[np.ndarray, Any], np.ndarray], settings: Iterable[Any]) -> np.ndarray:
    """The completion with the setting that has the smallest mean absolute error on a tenth of the known entries."""
    held_out = ~np.isnan(X) & (np.random.default_rng(99).random(X.shape) < 0.1)
    train = np.where(held_out, np.nan, X)
    errors = {setting: np.abs(fill(train, setting) - X)[held_out].mean() for setting in settings}
    return fill(X, min(errors, key=lambda setting: errors[setting]))


def centred(fill: Callable[[np.ndarray, Any], np.ndarray]) -> Callable[[np.ndarray, Any], np.ndarray]:
    """The same method after the means of the columns are taken away."""

    def filled(X: np.ndarray, setting: Any) -> np.ndarray:
        known = ~np.isnan(X)
        counts = known.sum(axis=0)
        overall = np.nanmean(X)
        means = np.where(counts > 0, np.where(known, X, 0.0).sum(axis=0) / np.maximum(counts, 1), overall)
        return means + fill(X - means, setting)

    return filled


def _soft_path(X: np.ndarray, share: float) -> np.ndarray:
    """SoftImpute with a threshold relative to the largest singular value, reached along a path of three thresholds."""
    top, L = float(np.linalg.norm(np.nan_to_num(X), 2)), None
    for step in (0.6, max(share, 0.2), share):
        L = soft_impute(X, step * top, L)
    return L if L is not None else np.zeros_like(X)


def completions(X: np.ndarray) -> dict[str, np.ndarray]:
    """Both completions, tuned."""
    return {
        "SoftImpute": tuned_fill(X, centred(_soft_path), (0.3, 0.15, 0.08, 0.04, 0.02, 0.01)),
        "iterative SVD": tuned_fill(X, centred(iterative_svd), (1, 2, 3, 5, 8, 12)),
    }


def decompositions(X: np.ndarray) -> dict[str, np.ndarray]:
    """Low-rank parts of a full matrix: principal component pursuit as in its paper and tuned, and tuned truncated SVD."""
    return {
        "PCP": principal_component_pursuit(X),
        "PCP, tuned": tuned_fill(X, principal_component_pursuit, (0.6, 1.0, 1.5)),
        "truncated SVD": tuned_fill(X, centred(iterative_svd), (1, 2, 3, 5, 10, 15)),
    }


def despeckled(channel: np.ndarray) -> np.ndarray:
    """The channel without known pixels that differ from the median of their 5 x 5 window by more than a quarter of the range."""
    height, width = channel.shape
    padded = np.pad(channel, 2, constant_values=np.nan)
    around = np.stack([padded[i : i + height, j : j + width] for i in range(5) for j in range(5)])
    medians = np.nanmedian(np.where(np.isnan(around).all(axis=0), 0.0, around), axis=0)
    return np.where(np.abs(channel - medians) > 0.25 * np.nanmax(channel), np.nan, channel)


def regressions(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Fitted linear regressions: least absolute deviations, Huber and ridge, with penalties chosen on a fifth of the rows."""
    from sklearn.base import clone
    from sklearn.linear_model import HuberRegressor, QuantileRegressor, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    wide = X.shape[1] > len(X)
    candidates: dict[str, list[Any]] = {
        "LAD": [QuantileRegressor(alpha=a) for a in ((3e-3, 1e-2, 3e-2, 1e-1) if wide else (0.0, 1e-3, 1e-2))],
        "Huber": [
            HuberRegressor(epsilon=e, alpha=a, max_iter=500)
            for e in (1.1, 1.35, 2.0)
            for a in ((10.0, 100.0) if wide else (1e-4, 1.0))
        ],
        "ridge": [Ridge(alpha=a) for a in (1e-3, 1e-1, 1.0, 10.0, 100.0)],
    }
    order = np.random.default_rng(99).permutation(len(y))
    held_out, train = order[: len(y) // 5], order[len(y) // 5 :]
    found = {}
    for name, settings in candidates.items():
        models = [make_pipeline(StandardScaler(), setting) for setting in settings]

        def error(model: Any) -> float:
            predicted = clone(model).fit(X[train], y[train]).predict(X[held_out])
            return float(np.abs(predicted - y[held_out]).mean())

        found[name] = min(models, key=error).fit(X, y)
    return found


def classifications(X: Any, y: np.ndarray) -> dict[str, Any]:
    """Fitted linear classifiers: logistic regression and a linear support vector machine, with penalties chosen by 5 folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler
    from sklearn.svm import LinearSVC

    penalties = [1e-3, 1e-2, 1e-1, 1.0, 10.0]
    return {
        "logistic": GridSearchCV(
            make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=1000)),
            {"logisticregression__C": [10 * c for c in penalties]},
        ).fit(X, y),
        "linear SVM": GridSearchCV(
            make_pipeline(MaxAbsScaler(), LinearSVC(max_iter=5000)), {"linearsvc__C": penalties}
        ).fit(X, y),
    }
