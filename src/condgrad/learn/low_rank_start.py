"""Robust start for a low-rank fit of a matrix with many wrong entries: factors, column means and the scale of the errors.

A fit with a redescending loss has many local minima, and ends in one near its start. If all errors have the same sign, means and
medians are a poor start. A better start is principal component pursuit (Candes, Li, Ma and Wright 2011): minimise |L|_* + lambda
|S|_1 subject to L + S = X. This convex problem tolerates such errors in up to about 30 % of the entries. The problem is solved
twice for a sample of rows and columns: first for all entries of the sample, then only for the entries near the shortest interval
that contains half of the entries of their column. Entries near this interval are mostly right if less than half of the column is
wrong.

From this start, a matrix of rank k and column means are fitted by alternating weighted least squares with Welsch's loss. The
width of the loss decreases with the scale of the errors (graduated non-convexity; Blake and Zisserman 1987). The rank is chosen
on held-out entries of the sample. Then all other rows, and after them all other columns, are regressed robustly on the factors of
the sample, and the fit is repeated on all entries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from condgrad.learn.completion.robust_scale import quantization_step
from condgrad.learn.robust_start import CLIP_SCALES, CLIPPED_DEVIATION, MIN_CLIPPED_SHARE


@dataclass(frozen=True)
class Settings:
    """Constants of the search for a start."""

    max_side: int = 300
    """Maximum number of rows and of columns of the sample. Every iteration of the convex fit takes a singular value decomposition
    of the sample, about 20 milliseconds for 300 x 300 entries."""
    held_out: float = 0.1
    """Share of the entries of the sample that is held out to choose the rank."""
    convex_iterations: int = 60
    """Maximum number of iterations of the convex fit."""
    convex_growth: float = 1.5
    """Factor by which the penalty of the convex fit grows in each iteration."""
    convex_tolerance: float = 1e-3
    """The convex fit ends when |X - L - S| is at most this share of |X|. A start need not be more accurate."""
    shrink: float = 0.85
    """Minimum ratio of the width of the loss to the width in the previous iteration."""
    iterations: int = 60
    """Maximum number of iterations of the last fit."""
    trial_iterations: int = 25
    """Maximum number of iterations of a fit to the sample, which is only used to compare ranks."""
    settled: float = 1e-3
    """A fit ends when the scale changes by less than this share."""
    deviation_iterations: int = 40
    """Number of reweighted least-squares iterations of a regression by least absolute deviations."""
    deviation_floor: float = 0.1
    """In least absolute deviations, all errors below this share of the median error of their row have the same weight."""
    lost: float = 3.0
    """A row or column is lost (not fitted) if its median error is more than this multiple of the scale."""
    ridge: float = 1e-6
    """Ridge penalty of a regression, relative to the mean weight of a row. It keeps factors of rows with few entries finite."""
    clear: float = 2.0
    """A higher rank is chosen only if it decreases the held-out loss by more than this number of standard errors."""
    gap_floor: float = 0.03
    """In ratios of singular values, this share of the largest singular value is added to the divisor."""
    rank_growth: float = 1.5
    """Above the first rank, the next rank is tried. Then each rank that is tried is larger than the previous one by about this
    factor."""
    similar_scale: float = 1.1
    """First the ranks are searched from the first convex start. The second start is then tried at the chosen rank. The ranks are
    searched from the second start only if its held-out scale is less than this factor times the scale of the first."""
    same_scale: float = 1.03
    """Two fits are equally good if the ratio of their held-out scales is at most this number. The fit with the smaller rank is
    then chosen, because an additional component may only fit a block of errors."""
    patience: int = 2
    """The search for the rank ends after this number of ranks without an improvement."""
    least_scale: float = 1e-3
    """Lower bound on the scale of the errors, relative to the scale of the data."""
    max_errors: int = 300_000
    """Approximate maximum number of errors from which a scale is computed."""
    huge: float = 1e6
    """Entries above this multiple of the scale of the data are ignored."""


SETTINGS = Settings()
WELSCH_WIDTH = 2.985
"""Width of Welsch's loss, in units of the scale of the errors, for an efficiency of 95 % under normal errors."""


class LowRankStart(NamedTuple):
    """The start: a matrix 1 mean' + left right', and the scale of its errors."""

    left: np.ndarray
    right: np.ndarray
    mean: np.ndarray
    sigma: float
    trials: list[tuple[float, float, int]]
    """Nuclear norm, scale of the held-out errors, and rank of each fit to the sample."""


class Factors(NamedTuple):
    """Factors and column means of a fit, and the scale of its errors."""

    left: np.ndarray
    right: np.ndarray
    mean: np.ndarray
    sigma: float

    def errors(self, X: np.ndarray) -> np.ndarray:
        return X - self.mean - self.left @ self.right.T


def low_rank_start(X: np.ndarray, center: bool, seed: int, growth: float = SETTINGS.convex_growth) -> LowRankStart:
    """Compute robust low-rank factors, column means and the scale of the errors of a matrix.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        The matrix. NaN means missing.
    center : bool
        Whether column means are fitted.
    seed : int
        Seed that determines the rows and columns of the sample, and the held-out entries.
    growth : float, default 1.5
        Factor by which the penalty of the convex fit grows in each iteration.

    Returns
    -------
    LowRankStart
    """
    rng = np.random.default_rng((seed, 17))
    known = ~np.isnan(X)
    middle = _shortest_halves(X, known)[0] if center else np.zeros(X.shape[1])
    values = np.where(known, X - middle, 0).astype(X.dtype, copy=False)
    sizes = np.abs(values[values != 0].astype(float))
    unit = float(np.median(sizes)) if len(sizes) else 1.0
    known &= np.abs(values) <= SETTINGS.huge * unit
    values = np.where(known, values / X.dtype.type(unit), X.dtype.type(0))
    least = max(SETTINGS.least_scale, quantization_step(values[known].astype(float)) / 2)
    rows, cols = (_sample_indices(count, SETTINGS.max_side, rng) for count in X.shape)
    block = np.ix_(rows, cols)
    found, trials = _fit_sample(values[block].astype(float), known[block], center, least, rng, growth)
    if known[block].size < known.size:
        found = _extend(values, known, rows, cols, found, center)
    found = fit_narrowing_loss(values, known, found, center, least, SETTINGS.iterations)
    fitted = min(found.right.shape[1] * sum(X.shape) / np.count_nonzero(known), 0.5)
    sigma = found.sigma / math.sqrt(1 - fitted)  # the errors of a fit are smaller than the noise
    trials = [(norm * unit, scale * unit, rank) for norm, scale, rank in trials]
    return LowRankStart(found.left * unit, found.right, found.mean * unit + middle, sigma * unit, trials)


def _fit_sample(
    X: np.ndarray, known: np.ndarray, center: bool, least: float, rng: np.random.Generator, growth: float
) -> tuple[Factors, list[tuple[float, float, int]]]:
    """Fit the sample from both convex starts at several ranks. Returns the best fit, and a record of each fit."""
    held_out = known & (rng.random(X.shape) < SETTINGS.held_out)
    train = known & ~held_out
    if not held_out.any() or not train.any():
        held_out = train = known
    middle, length = _shortest_halves(X, train)
    first, second = (
        RankSearch(X, train, held_out, principal_component_pursuit(X, used, growth), center, least)
        for used in (train, train & (np.abs(X - middle) <= length))
    )
    first.follow()
    if second.fit(min(first.best(), second.most)) < SETTINGS.similar_scale * first.scale():
        second.follow()
    lowest = min(first.scale(), second.scale())
    best = min(
        (first, second),
        key=lambda search: (search.scale() > SETTINGS.same_scale * lowest, search.best(), search.scale()),
    )
    trials = [
        (nuclear_norm(fit), search.fit(k), k)
        for search in (first, second)
        for k, (fit, _) in sorted(search.fits.items())
    ]
    return best.fits[best.best()][0], trials


class RankSearch:
    """Fits of the sample at several ranks, all from the same convex fit. The ranks are compared on held-out entries."""

    def __init__(
        self, X: np.ndarray, train: np.ndarray, held_out: np.ndarray, convex: np.ndarray, center: bool, least: float
    ):
        self.X, self.train, self.held_out, self.center, self.least = X, train, held_out, center, least
        self.mean = convex.mean(axis=0) if center else np.zeros(X.shape[1])
        left, self.values, right = np.linalg.svd(convex - self.mean, full_matrices=False)
        self.left, self.right = left * self.values, right.T
        self.most = max(min(int(np.count_nonzero(self.values > 1e-9 * self.values[0])), min(X.shape) // 2), 1)
        self.fits: dict[int, tuple[Factors, np.ndarray]] = {}

    def fit(self, k: int) -> float:
        """Fit rank k, unless it was fitted before. Returns the scale of the held-out errors."""
        if k not in self.fits:
            start = Factors(self.left[:, :k], self.right[:, :k], self.mean, 0.0)
            found = fit_narrowing_loss(self.X, self.train, start, self.center, self.least, SETTINGS.trial_iterations)
            self.fits[k] = found, np.abs(found.errors(self.X)[self.held_out])
        return inlier_scale(self.fits[k][1])

    def best(self) -> int:
        """The smallest rank whose held-out loss is not clearly larger than the smallest held-out loss."""
        width = WELSCH_WIDTH * min(max(inlier_scale(errors), self.least) for _, errors in self.fits.values())
        losses = {k: -np.expm1(-((errors / width) ** 2)) for k, (_, errors) in sorted(self.fits.items())}
        lowest = min(losses, key=lambda k: losses[k].mean())
        for k in losses:
            excess = losses[k] - losses[lowest]
            if excess.mean() <= SETTINGS.clear * excess.std() / math.sqrt(len(excess)):
                return k
        return lowest

    def scale(self) -> float:
        """Scale of the held-out errors of the best rank."""
        return self.fit(self.best())

    def follow(self) -> None:
        """Search the ranks, beginning at the largest gap of the convex fit's singular values. Higher and lower ranks follow."""
        ratios = self.values[:-1] / (self.values[1:] + SETTINGS.gap_floor * self.values[0] + np.finfo(float).tiny)
        first = min(int(np.argmax(ratios)) + 1 if len(ratios) else 1, self.most)
        self.fit(first)
        above, since = first, 0
        while above < self.most and since < SETTINGS.patience:
            above = min(max(above + 1, int(SETTINGS.rank_growth * above) if above > first else 0), self.most)
            self.fit(above)
            since = 0 if self.best() == above else since + 1
        below = first
        while below > 1 and self.best() <= below:
            below = below - 1
            self.fit(below)
        while gaps := self._gaps():
            for k in gaps:
                self.fit(k)

    def _gaps(self) -> list[int]:
        """Ranks half way between the best rank and the next lower and higher ranks that were fitted."""
        ranks, best = sorted(self.fits), self.best()
        at = ranks.index(best)
        return [(best + k) // 2 for k in (*ranks[max(at - 1, 0) : at], *ranks[at + 1 : at + 2]) if abs(k - best) > 1]


def inlier_scale(errors: np.ndarray) -> float:
    """Scale of the errors of inliers, as ``clipped_scale`` in robust_start, but for errors of equal weight.

    If there are more than ``max_errors`` errors, a sample of them is used.
    """
    sizes = np.abs(errors[:: max(len(errors) // SETTINGS.max_errors, 1)], dtype=float)
    scale = 1.4826 * float(np.median(sizes))
    least = MIN_CLIPPED_SHARE * scale
    for _ in range(50):
        inliers = sizes[sizes <= CLIP_SCALES * scale]
        before, scale = scale, max(math.sqrt(inliers @ inliers / len(inliers)) / CLIPPED_DEVIATION, least)
        if abs(scale - before) <= 1e-3 * before:
            break
    return scale


def fit_narrowing_loss(
    X: np.ndarray, known: np.ndarray, start: Factors, center: bool, least: float, iterations: int
) -> Factors:
    """Fit by alternating weighted least squares with Welsch's loss. The width of the loss decreases with the scale of the errors.

    When the scale no longer changes, rows and columns with mostly outliers are regressed again, and the fit continues.
    """
    left, right, mean, _ = start
    errors = np.where(known, start.errors(X), 0)
    sigma, rescued = max(inlier_scale(errors[known]), least), False
    for _ in range(iterations):
        weights = np.exp(-((errors / (WELSCH_WIDTH * sigma)) ** 2)) * known
        left = _regress(weights, X - mean, right)
        columns = np.column_stack([np.full(len(X), float(center)), left])
        both = _regress(weights.T, X.T, columns)
        mean, right = both[:, 0] * center, both[:, 1:]
        left, right = _balance(left, right)
        errors = np.where(known, X - mean - left @ right.T, 0)
        before, sigma = sigma, max(inlier_scale(errors[known]), SETTINGS.shrink * sigma, least)
        if abs(sigma - before) <= SETTINGS.settled * before:
            if rescued:
                break
            rescued = True
            lost = _row_medians(np.abs(errors), known)[:, 0] > SETTINGS.lost * sigma
            left[lost] = _least_absolute_deviations(known[lost], X[lost] - mean, right)
            lost_columns = _row_medians(np.abs(errors.T), known.T)[:, 0] > SETTINGS.lost * sigma
            columns = np.column_stack([np.full(len(X), float(center)), left])
            both = _least_absolute_deviations(known.T[lost_columns], X.T[lost_columns], columns)
            mean[lost_columns], right[lost_columns] = both[:, 0] * center, both[:, 1:]
            errors = np.where(known, X - mean - left @ right.T, 0)
            if not lost.any() and not lost_columns.any():
                break
    return Factors(left, right, mean, sigma)


def nuclear_norm(factors: Factors) -> float:
    """Nuclear norm of the product of the factors. The columns of ``right`` are orthonormal."""
    return float(np.linalg.svd(factors.left, compute_uv=False).sum())


def _balance(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors with the same product, in which the columns of ``right`` are orthonormal."""
    Q, R = np.linalg.qr(right)
    return left @ R.T, Q


def _regress(weights: np.ndarray, targets: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Regress each row of the targets on the columns, by weighted least squares (normal equations)."""
    k = columns.shape[1]
    pairs = (columns[:, :, None] * columns[:, None, :]).reshape(len(columns), k * k)
    normal = (weights @ pairs.astype(weights.dtype)).astype(float).reshape(-1, k, k)
    ridge = SETTINGS.ridge * np.trace(normal, axis1=1, axis2=2).sum() / max(normal.size / k, 1) + np.finfo(float).tiny
    moments = (weights * targets) @ columns.astype(weights.dtype)
    return np.linalg.solve(normal + ridge * np.eye(k), moments.astype(float)[:, :, None])[:, :, 0]


def _least_absolute_deviations(known: np.ndarray, targets: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Regress the known entries of each row of the targets on the columns, by least absolute deviations."""
    weights = known.astype(float)
    found = _regress(weights, targets, columns)
    for _ in range(SETTINGS.deviation_iterations):
        sizes = np.abs(targets - found @ columns.T)
        floor = SETTINGS.deviation_floor * _row_medians(sizes, known)
        weights = np.where(known, floor / np.maximum(sizes, floor), 0.0)
        found = _regress(weights, targets, columns)
    return found


def _row_medians(sizes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Median of the known sizes of each row, as a column. It is at least a tiny number, to avoid a division by 0."""
    ordered = np.sort(np.where(known, sizes, np.inf), axis=1)
    middle = np.maximum(known.sum(axis=1) - 1, 0) // 2
    medians = np.take_along_axis(ordered, middle[:, None], axis=1)
    return np.where(np.isfinite(medians), np.maximum(medians, 1e-12), 1.0)


def _extend(
    X: np.ndarray, known: np.ndarray, rows: np.ndarray, cols: np.ndarray, sample: Factors, center: bool
) -> Factors:
    """Extend the factors and means from the sample to the whole matrix, by regressions on the fixed factors of the sample."""
    left = np.zeros((len(X), sample.left.shape[1]))
    left[rows] = sample.left
    others = np.setdiff1d(np.arange(len(X)), rows)
    block = np.ix_(others, cols)
    left[others] = _least_absolute_deviations(known[block], X[block] - sample.mean, sample.right)
    columns = np.column_stack([np.full(len(rows), float(center)), sample.left])
    both = np.zeros((X.shape[1], columns.shape[1]))
    both[cols] = np.column_stack([sample.mean, sample.right])
    others = np.setdiff1d(np.arange(X.shape[1]), cols)
    block = np.ix_(rows, others)
    both[others] = _least_absolute_deviations(known[block].T, X[block].T, columns)
    return Factors(left, both[:, 1:], both[:, 0] * center, 0.0)


def principal_component_pursuit(X: np.ndarray, known: np.ndarray, growth: float) -> np.ndarray:
    """Minimise |L|_* + lambda |S|_1 with L + S = X on the known entries, by an inexact augmented Lagrangian method. Returns L.

    lambda = 1 / sqrt(max(m, n)) divided by the root of the share of known entries, as in the paper (Candes et al. 2011). The
    iterations are those of Lin, Chen and Ma (2010).
    """
    X = np.where(known, X, 0.0)
    norm = float(np.linalg.norm(X, 2))
    if norm == 0:
        return X
    weight = 1 / math.sqrt(max(X.shape) * max(known.mean(), 1e-3))
    dual = X / max(norm, np.abs(X).max() / weight)
    penalty, S, L = 1.25 / norm, np.zeros_like(X), X
    for _ in range(SETTINGS.convex_iterations):
        left, values, right = np.linalg.svd(X - S + dual / penalty, full_matrices=False)
        kept = int(np.sum(values > 1 / penalty))
        L = (left[:, :kept] * (values[:kept] - 1 / penalty)) @ right[:kept]
        rest = X - L + dual / penalty
        S = np.where(known, np.sign(rest) * np.maximum(np.abs(rest) - weight / penalty, 0.0), rest)
        violation = X - L - S
        if np.linalg.norm(violation) <= SETTINGS.convex_tolerance * np.linalg.norm(X):
            break
        dual, penalty = dual + penalty * violation, growth * penalty
    return L


def _shortest_halves(X: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each column, the midpoint and the length of the shortest interval that contains half of the known entries."""
    middle, length = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        values = np.sort(X[known[:, j], j].astype(float))
        half = (len(values) + 1) // 2
        if half:
            lengths = values[half - 1 :] - values[: len(values) - half + 1]
            at = int(np.argmin(lengths))
            middle[j], length[j] = (values[at] + values[at + half - 1]) / 2, lengths[at]
    return middle, length


def _sample_indices(count: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """At most ``most`` random indices from 0 to count - 1, in increasing order."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))
