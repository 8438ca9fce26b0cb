"""A robust start for completions with many wrong entries: principal component pursuit of a sample of rows and columns.

If a third of the entries are wrong, or if all errors have the same sign, a path that starts at a model without a low-rank part
ends in a local minimum without structure, whatever the loss. The start of RobustPCA (low_rank_start.py) finds the structure in
these cases. This start takes a full singular value decomposition in each iteration. Therefore it is computed only for a sample:
the rows and columns with the most entries. All other rows and columns are then fitted to the sample by robust regressions.

A fit from this start (a pursued fit) can replace the best fit of the paths in two cases:

- Its median error on held-out entries is much smaller, and its mean absolute error is not larger. The median is used because
  nearly half of the held-out entries may be wrong. The mean is used too, because it increases if a narrow fit does not explain a
  heavy tail of real structure.
- Its errors are either small or gross, with few in between. In addition, it has clearly more inliers, or it predicts the inliers
  as well with a smaller rank. The smaller rank does not count if the best fit of the paths predicts held-out entries that are
  gross errors of the pursued fit. Gross errors can't be predicted. Such entries are therefore real structure, for example a group
  of rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from condgrad.learn.completion.biases import Biases
from condgrad.learn.completion.folding import fold_in_rows, prior_penalties
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.path import Fit
from condgrad.learn.completion.rescue import RIDGES
from condgrad.learn.completion.robust_scale import loss_for
from condgrad.learn.completion.validation import HeldOut, Validated
from condgrad.learn.low_rank_start import SETTINGS, LowRankStart, inlier_scale, low_rank_start
from condgrad.objectives import Completion
from condgrad.points import LowRank

LOSS = "welsch"
MAX_SIDE = 200
"""Maximum number of rows and of columns of the sample."""
MIN_ENTRIES, MIN_HELD_OUT = 12, 50
"""The pursuit is tried only if the rows and columns of the sample have at least MIN_ENTRIES entries on average, and if at least
MIN_HELD_OUT held-out entries are in the sample."""
GROWTH = 1.2
"""Factor by which the penalty grows in each iteration of the pursuit. With few entries, a faster growth gives a worse matrix."""
GAP, GAP_SHARE = (3.0, 6.0), 0.25
"""An error is small if it is at most GAP[0] times the scale, and gross if it is more than GAP[1] times the scale. There must be
fewer errors in between than GAP_SHARE times the number of gross errors. Data with a heavy tail, such as counts, have more errors
in between."""
MIN_PREDICTED, PREDICTED_SHARE = 10, 0.3
"""Gross errors of the pursued fit are structure if the best fit of the paths predicts at least MIN_PREDICTED of the held-out
entries with such errors, and at least the share PREDICTED_SHARE of them. (A component may fit the mean of the wrong values of a
block. If the wrong values are scattered about this mean, about 15 % of them are predicted by chance.)"""
CLEARLY_MORE = 3.0
"""A fit has clearly more inliers if the difference is above this number of standard errors."""
MUCH_SMALLER = 0.7
"""A median error is much smaller than another one if their ratio is below this number."""


def pursued_fit(
    fit: Fit, train: Completion, held_out: HeldOut, best: Validated, others: list[Validated]
) -> Validated | None:
    """Compute the robust start in a sample, and fit a model with Welsch's loss from this start.

    ``others`` are all fits of the paths, and ``best`` is the best of them. Returns None if there are too few entries for a
    sample, or if ``best`` predicts the held-out entries of the sample better than the start (:func:`preferred`).
    """
    rows, cols = dense_sample(train)
    X = np.full((len(rows), len(cols)), np.nan)
    at_row, at_col = _places(rows, train.pattern.shape[0]), _places(cols, train.pattern.shape[1])
    i, j = at_row[train.pattern.rows], at_col[train.pattern.cols]
    inside = (i >= 0) & (j >= 0)
    X[i[inside], j[inside]] = train.values[inside]
    tested = (at_row[held_out.rows] >= 0) & (at_col[held_out.cols] >= 0)
    if np.count_nonzero(inside) < MIN_ENTRIES * max(X.shape) or np.count_nonzero(tested) < MIN_HELD_OUT:
        return None
    if not np.isfinite(X).any(axis=0).all():
        return None
    start = low_rank_start(X, fit.biases is not None, int(fit.rng.integers(2**31)), GROWTH)
    x = start.mean + start.left @ start.right.T
    errors = held_out.values[tested] - x[at_row[held_out.rows[tested]], at_col[held_out.cols[tested]]]
    inner = [replace(other, residuals=other.residuals[tested]) for other in (best, *others)]
    if not start.left.any() or not preferred(errors, start.left.shape[1], inner[0], inner[1:]):
        return None
    fit.loss = LOSS
    first = held_out.validate(fit, _extend_to_all(fit, train, rows, cols, start))
    return fit.refit_unshrunk(train, held_out, first.model, first)


def preferred(errors: np.ndarray, rank: int, best: Validated, others: list[Validated]) -> bool:
    """Whether a pursued fit of this rank, with these held-out errors, is preferred to the best of the ``others``.

    The median error of the pursued fit is compared with the smallest median error of all others. This may be smaller than the
    median error of ``best``: a fit with a narrow loss may predict most entries best, but not be chosen because it does not
    explain the tail.
    """
    new, old = np.abs(errors), np.abs(best.residuals)
    least = min(float(np.median(np.abs(other.residuals))) for other in others)
    if np.median(new) < MUCH_SMALLER * least and new.mean() <= old.mean():
        return True
    limited = np.inf if best.model.rank is None else best.model.rank
    scale = inlier_scale(new)
    gross, inlying, inlying_before = new > GAP[1] * scale, new <= GAP[0] * scale, old <= GAP[0] * scale
    if rank > limited or np.count_nonzero(~inlying & ~gross) >= GAP_SHARE * np.count_nonzero(gross):
        return False
    predicted = np.count_nonzero(gross & inlying_before)
    structure = predicted >= max(MIN_PREDICTED, PREDICTED_SHARE * np.count_nonzero(gross))
    if rank < limited < np.inf and not structure and scale <= SETTINGS.same_scale * inlier_scale(old):
        return True
    gained, lost = np.count_nonzero(inlying & ~inlying_before), np.count_nonzero(inlying_before & ~inlying)
    return bool(gained - lost > CLEARLY_MORE * np.sqrt(gained + lost))


def dense_sample(entries: Completion) -> tuple[np.ndarray, np.ndarray]:
    """Choose at most MAX_SIDE columns and rows for the sample. The rows are those with most entries in the chosen columns."""
    m, n = entries.pattern.shape
    rows, cols = entries.pattern.rows, entries.pattern.cols
    chosen = _indices_of_most(np.bincount(rows, minlength=m))
    columns = _indices_of_most(np.bincount(cols, np.isin(np.arange(m), chosen)[rows], n))
    return _indices_of_most(np.bincount(rows, np.isin(np.arange(n), columns)[cols], m)), columns


def _indices_of_most(counts: np.ndarray) -> np.ndarray:
    """The MAX_SIDE indices with the largest counts, in increasing order. Indices with a count of 0 are left out."""
    most = np.argsort(-counts, kind="stable")[:MAX_SIDE]
    return np.sort(most[counts[most] > 0])


def _places(chosen: np.ndarray, size: int) -> np.ndarray:
    """For each index, its place in ``chosen``, or -1 if it is not chosen."""
    places = np.full(size, -1)
    places[chosen] = np.arange(len(chosen))
    return places


def _extend_to_all(fit: Fit, train: Completion, rows: np.ndarray, cols: np.ndarray, start: LowRankStart) -> Model:
    """Extend the start from the sample to all rows, and then to all columns, by robust regressions."""
    (m, n), pattern, loss = train.pattern.shape, train.pattern, loss_for(LOSS, start.sigma)
    P, values, Q = LowRank(start.left, start.right).svd()
    mean = float(start.mean.mean())
    row_bias, col_bias = np.zeros(m), np.zeros(n)
    U, V = np.zeros((m, len(values))), np.zeros((n, len(values)))
    U[rows], V[cols], col_bias[cols] = P * values, Q, start.mean - mean
    row_ridge, col_ridge = RIDGES[fit.biases]
    for axis, ridge in ((0, row_ridge), (1, col_ridge)):
        own, other = (pattern.rows, pattern.cols)[axis], (pattern.rows, pattern.cols)[1 - axis]
        known = np.zeros((m, n)[axis], dtype=bool)
        known[(rows, cols)[axis]] = True
        used = ~known[own] & (np.isin(other, cols) if axis == 0 else True)
        if not used.any():
            continue
        side, bias = (V, col_bias) if axis == 0 else (U / np.maximum(values, 1e-300), row_bias)
        targets = train.values[used] - mean - bias[other[used]]
        penalty = prior_penalties(loss, start.sigma, int(np.count_nonzero(known)), values)
        found, factors = fold_in_rows(side, values, (own[used], other[used], targets), len(known), loss, penalty, ridge)
        if axis == 0:
            U[~known], row_bias[~known] = factors[~known], found[~known]
        else:
            V[~known], col_bias[~known] = factors[~known] / np.maximum(values, 1e-300), found[~known]
    x, sigma = LowRank(U, V), start.sigma
    biases = Biases(mean, row_bias, col_bias)
    return replace(Model(x, biases, loss, sigma), radius=float(x.svd()[1].sum()), rank=len(values))
