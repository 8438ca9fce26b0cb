"""Starting coefficients for robust regression: several candidates, compared by a scale with a breakdown point of one half.

A fit with a redescending loss has many local minima, and ends in one near its start. Least squares, Huber's loss and least
absolute deviations are all sensitive to wrong *features*. Therefore there are several candidates: a fit by least absolute
deviations, the same fit to the rows with ordinary features only, and exact fits to small random subsets of rows. Every candidate
is refined towards an S-estimate (Rousseeuw and Yohai 1984), by the iterations of Salibian-Barrera and Yohai (2006). The refined
candidate with the smallest scale is returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import issparse
from scipy.stats import chi2

from condgrad.learn.completion.robust_scale import quantization_step
from condgrad.learn.sample_weights import weighted_median


@dataclass(frozen=True)
class Settings:
    """Constants of the search for a start."""

    rows_per_column: int = 4
    """Minimum number of rows per coefficient. With fewer rows, a wrong candidate too can fit half of the rows nearly exactly."""
    max_rows: int = 5000
    """Maximum number of rows that are used. More rows would take more time, and would hardly change which candidate is the
    best."""
    max_columns: int = 500
    """Maximum number of coefficients: dense normal equations are solved in every iteration."""
    subsets: int = 200
    """Number of random subsets with as many rows as coefficients. With 5 coefficients and 40 % outliers, 8 % of the subsets have
    no outlier."""
    max_subset: int = 20
    """Maximum number of coefficients for which subsets are drawn: larger subsets nearly always have outliers."""
    refined: int = 5
    """Number of subsets whose fits are refined: the subsets with the smallest median error."""
    iterations: int = 30
    """Maximum number of iterations of each refinement; the scale rarely changes after a dozen."""
    ordinary: float = 0.99
    """A row is a leverage point if its distance is above this quantile of the distances that normally distributed features with
    the same median distance would have."""


SETTINGS = Settings()
BISQUARE = 1.547
"""With this constant in Tukey's bisquare, the M-scale has a breakdown point of 1/2 and is the standard deviation of normal
errors."""
CLIP_SCALES, CLIPPED_DEVIATION = 2.5, 0.9546
"""Errors above CLIP_SCALES times the scale are excluded from a clipped standard deviation, which is CLIPPED_DEVIATION for
standard normal errors."""
MIN_CLIPPED_SHARE = 0.4
"""Lower bound on the clipped scale, relative to the median-based scale. If 45 % of the errors are gross, the median-based
scale is 2.5 times the standard deviation of the others."""


def supports_robust_start(rows: int, columns: int) -> bool:
    """Whether there are enough rows, and few enough coefficients, to compare candidates by the scale of training errors."""
    return rows >= SETTINGS.rows_per_column * columns and columns <= SETTINGS.max_columns


def dense(A: Any) -> np.ndarray:
    """The features, an ndarray or a sparse array, as an ndarray."""
    sparse: bool = issparse(A)
    return np.asarray(A.toarray() if sparse else A, dtype=float)


def leverage_points(A: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mask of the rows whose features are far outside the bulk of the rows.

    Distances are measured along the eigenvectors of the spatial sign covariance matrix, in units of the median absolute deviation
    along each eigenvector. This matrix and the deviations have a breakdown point of one half.
    """
    X = A - weighted_median(A, weights)
    length = np.linalg.norm(X, axis=1)
    signs = X / np.where(length > 0, length, 1.0)[:, None]
    X = X @ np.linalg.eigh(signs.T @ (weights[:, None] * signs))[1]
    scale = 1.4826 * weighted_median(np.abs(X), weights)
    # the median is 0 if most values are equal, as in 0/1 features; then the mean absolute deviation replaces it
    scale = np.where(scale > 0, scale, 1.2533 * np.average(np.abs(X), axis=0, weights=weights))
    used = scale > 1e-12 * scale.max(initial=0.0)
    squared = np.sum((X[:, used] / scale[used]) ** 2, axis=1)
    middle, freedom = _median(squared, weights), max(int(used.sum()), 1)
    return squared > middle * chi2.ppf(SETTINGS.ordinary, freedom) / chi2.ppf(0.5, freedom)


def robust_start(A: Any, Y: np.ndarray, seed: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Coefficients with a small robust scale of the errors, for each task.

    Parameters
    ----------
    A : ndarray or sparse array of shape (rows, columns)
        The features, and a column of ones where there is an intercept.
    Y : ndarray of shape (rows, tasks)
    seed : int
        Decides which rows and subsets are drawn.
    weights : ndarray of shape (rows,), default None
        Weights of the rows; None: all are equal.

    Returns
    -------
    ndarray of shape (columns, tasks)
    """
    rng = np.random.default_rng((seed, 24))
    weights = np.ones(len(Y)) if weights is None else weights
    if len(Y) > SETTINGS.max_rows:
        some = rng.choice(len(Y), SETTINGS.max_rows, replace=False)
        A, Y, weights = A[some], Y[some], weights[some]
    A = dense(A)
    ordinary = ~leverage_points(A, weights)
    return np.column_stack([_start_for_one_task(A, y, weights, ordinary, rng) for y in Y.T])


def _start_for_one_task(
    A: np.ndarray, y: np.ndarray, weights: np.ndarray, ordinary: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Refine all candidates, and return the one with the smallest scale."""
    candidates = [least_absolute_deviations(A, y, weights)]
    if len(A) > ordinary.sum() > A.shape[1]:
        candidates.append(least_absolute_deviations(A[ordinary], y[ordinary], weights[ordinary]))
    if A.shape[1] <= SETTINGS.max_subset:
        candidates += _from_subsets(A, y, weights, rng)
    floor = quantization_step(y) / 2
    refined = [_refine_to_s_estimate(A, y, weights, w, floor) for w in candidates]
    return min(refined, key=lambda found: found[1])[0]


def contradicted_leverage(
    A: np.ndarray, Y: np.ndarray, W: np.ndarray, sigma: float, weights: np.ndarray | None
) -> tuple[np.ndarray, int]:
    """Mask of the leverage points, and the number of them that W fits although the other rows contradict them.

    The other rows are fitted separately, and this fit predicts y at the leverage points that W fits. If the median error of these
    predictions is more than three of their standard errors, the other rows contradict these points. A leverage point that is not
    in the span of the other rows can't be contradicted, and is excluded.
    """
    weights = np.ones(len(Y)) if weights is None else weights
    leverage = leverage_points(A, weights)
    others = ~leverage
    if sigma == 0 or not supports_robust_start(others.sum(), A.shape[1]):
        return (
            leverage,
            0,
        )  # nothing to compare with: W fits without errors, or the other rows are too few for a separate fit
    for y, w in zip(Y.T, W.T, strict=True):
        followed = np.flatnonzero(leverage & (np.abs(A @ w - y) <= 3 * sigma))
        if not len(followed):
            continue
        ordinary = A[others], y[others], weights[others]
        start, _ = _refine_to_s_estimate(*ordinary, least_absolute_deviations(*ordinary))
        inliers = others & (np.abs(A @ start - y) <= 3 * sigma)
        if inliers.sum() <= A.shape[1]:
            continue
        values, vectors = np.linalg.eigh(A[inliers].T @ (weights[inliers, None] * A[inliers]))
        known = values > 1e-10 * values[-1]
        along = A[followed] @ vectors
        seen = np.linalg.norm(along[:, ~known], axis=1) <= 1e-6 * np.linalg.norm(along, axis=1)
        followed, along = followed[seen], along[seen][:, known]
        if not len(followed):
            continue
        moment = vectors[:, known].T @ (A[inliers].T @ (weights[inliers] * y[inliers]))
        predicted = along @ (moment / values[known])
        deviation = sigma * np.sqrt(1 + np.sum(along**2 / values[known], axis=1))
        if np.median(np.abs(predicted - y[followed]) / deviation) > 3:
            return leverage, len(followed)
    return leverage, 0


def _from_subsets(A: np.ndarray, y: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Exact fits of random subsets with as many rows as coefficients: those with the smallest median absolute error."""
    subsets = [rng.choice(len(A), A.shape[1], replace=False) for _ in range(SETTINGS.subsets)]
    W = np.array([np.linalg.lstsq(A[subset], y[subset], rcond=None)[0] for subset in subsets]).T
    order = np.argsort(weighted_median(np.abs(A @ W - y[:, None]), weights))
    return list(W[:, order[: SETTINGS.refined]].T)


def least_absolute_deviations(A: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients that minimise the sum of absolute errors, by iteratively reweighted least squares."""
    w = _weighted_least_squares(A, y, weights)
    for _ in range(SETTINGS.iterations):
        errors = np.abs(A @ w - y)
        smallest = 1e-3 * _median(errors, weights)
        if smallest == 0:
            break
        w = _weighted_least_squares(A, y, weights / np.maximum(errors, smallest))
    return w


def _refine_to_s_estimate(
    A: np.ndarray, y: np.ndarray, weights: np.ndarray, w: np.ndarray, floor: float = 0.0
) -> tuple[np.ndarray, float]:
    """Reduce the M-scale of the errors A w - y by iterations that start from ``w``. Returns the best w and its scale.

    ``floor`` is half of the quantization step of y. Scales below ``floor`` are not compared. In place of such a scale, the number
    2 floor mean(rho(error / floor)) is returned, with Tukey's bisquare rho. This number equals ``floor`` if the scale equals
    ``floor``.
    """
    best, scale, criterion = w, *_criterion(A @ w - y, weights, floor, None)
    for _ in range(SETTINGS.iterations):
        if scale == 0:
            break
        share = (A @ best - y) / (BISQUARE * scale)
        w = _weighted_least_squares(A, y, weights * np.maximum(1 - share**2, 0.0) ** 2)
        after, criterion_after = _criterion(A @ w - y, weights, floor, scale)
        if not criterion_after < (1 - 1e-4) * criterion:
            break
        best, scale, criterion = w, after, criterion_after
    return best, criterion


def _criterion(errors: np.ndarray, weights: np.ndarray, floor: float, start: float | None) -> tuple[float, float]:
    """The scale of the errors, at least the floor, and the criterion that is minimised (see ``_refine_to_s_estimate``)."""
    scale = m_scale(errors, weights, start)
    if scale >= floor:
        return scale, scale
    square = np.minimum((errors / (BISQUARE * floor)) ** 2, 1.0)
    return floor, 2 * floor * float(np.average(square * (3 + square * (square - 3)), weights=weights))


def _weighted_least_squares(A: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted least squares by the normal equations; the solution of minimum norm if these are singular."""
    weighted = (weights / weights.max())[:, None] * A
    try:
        factor = cho_factor(weighted.T @ A, check_finite=False)
        if np.abs(np.diag(factor[0])).min() > 1e-6 * np.abs(np.diag(factor[0])).max():
            return cho_solve(factor, weighted.T @ y, check_finite=False)
    except LinAlgError:
        pass
    root = np.sqrt(weights / weights.max())
    return np.linalg.lstsq(root[:, None] * A, root * y, rcond=None)[0]


def _median(values: np.ndarray, weights: np.ndarray) -> float:
    """Weighted median of a vector."""
    return float(weighted_median(values[:, None], weights)[0])


def m_scale(errors: np.ndarray, weights: np.ndarray, start: float | None = None) -> float:
    """M-scale of the errors with Tukey's bisquare and a breakdown point of 1/2; 0 if half of the errors are 0.

    It is the root in s of mean(rho(error / s)) = 1/2, found by Newton's method for log s from ``start`` (default: the
    median-based scale).
    """
    errors = np.abs(errors)
    weights = weights / weights.sum()
    median_scale = 1.4826 * _median(errors, weights)
    if median_scale == 0:
        return 0.0
    scale = median_scale if start is None else start
    for _ in range(20):
        square = np.minimum((errors / (BISQUARE * scale)) ** 2, 1.0)
        excess = weights @ (square * (3 + square * (square - 3))) - 0.5
        slope = 6 * (weights @ (square * (1 - square) ** 2))
        step = float(np.clip(excess / slope, -1, 1)) if slope > 0 else float(np.sign(excess))
        scale *= float(np.exp(step))
        if abs(step) < 1e-6:
            break
    return scale


def clipped_scale(errors: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Standard deviation of the inliers among the errors; up to 45 % of the errors may be outliers.

    The median-based scale grows with the share of outliers. Therefore errors above 2.5 times the scale are excluded. The standard
    deviation of the other errors, corrected for this truncation, is the next scale. This is repeated until the scale hardly
    changes.

    Parameters
    ----------
    errors : ndarray of shape (rows, tasks)
    weights : ndarray of shape (rows,), default None
        Weights of the rows; None: all are equal.
    """
    weights = np.ones(len(errors)) if weights is None else weights
    weights = np.repeat(weights, errors.shape[1])
    errors = np.abs(errors).ravel()
    scale = 1.4826 * _median(errors, weights)
    least = MIN_CLIPPED_SHARE * scale
    for _ in range(50):
        inliers = errors <= CLIP_SCALES * scale
        deviation = float(np.sqrt(np.average(errors[inliers] ** 2, weights=weights[inliers])))
        before, scale = scale, max(deviation / CLIPPED_DEVIATION, least)
        if abs(scale - before) <= 1e-3 * before:
            break
    return scale
