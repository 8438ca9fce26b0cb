r"""Completes a table as a tensor of rows x periods x times, such as sensors x days x times of a day (the tensor view).

.. math:: \min_Z \sum_{k=1}^{3} \tfrac13 \|Z_{(k)}\|_{*, r_k} + \tfrac{\mu}{2} \sum_{i, t} (Z_{i, t+1} - Z_{i, t})^2
          \quad \text{subject to } Z_{it} = Y_{it} \text{ at the inliers}

The unfolding Z_(1) has a row for each sensor, Z_(2) a row for each day, and Z_(3) a row for each time of a day. The truncated
nuclear norm is the sum of all singular values except the r_k largest, which are therefore not shrunk. The second term is temporal
smoothness. The problem is solved by the alternating direction method of multipliers with an increasing penalty (Chen, Yang and
Sun 2020). If the inlier weight of an observed entry falls below one half, the entry is an outlier. It is then treated as missing,
until a later iterate predicts it again.

The ranks, the smoothness and the scale of the loss are chosen on held-out entries. The mean of completions with several ranks is
used unless held-out entries speak against it. The tensor view is used only if it predicts held-out entries better than the
low-rank matrix.

References
----------
X. Chen, J. Yang, L. Sun. A nonconvex low-rank tensor completion model for spatiotemporal traffic data imputation.
Transportation Research Part C 117, 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.fft import dct, idct

from condgrad.checks import counted
from condgrad.learn.completion.biases import inlier_weights
from condgrad.learn.completion.entries import Entries
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.robust_scale import CONVEX_LOSSES, loss_for
from condgrad.learn.completion.validation import HeldOut, TensorView, Validated
from condgrad.objectives import Completion
from condgrad.points import LowRank
from condgrad.runtime.signals import heartbeat

if TYPE_CHECKING:
    from condgrad.learn.completion.path import Fit

MAX_TABLE = 5_000_000
"""Maximum number of rows times columns. About ten arrays of this size are needed."""


@dataclass(frozen=True)
class Settings:
    """Constants of the method. All were chosen on two tables, road traffic and metro passengers."""

    penalty: float = 1e-3
    """First penalty of the difference between the tensor and its parts, in units of the root mean square of the values."""
    growth: float = 1.05
    """Factor by which the penalty grows in each iteration, as in the paper."""
    iterations: int = 100
    """Maximum number of iterations."""
    tolerance: float = 3e-4
    """The iteration ends when the tensor changes by less than this share."""
    first_check: int = 5
    """Outliers are not determined again before this iteration."""
    check_every: int = 3
    """Number of iterations from one determination of outliers to the next."""
    truncations: tuple[float, ...] = (0.05, 0.1, 0.2)
    """Candidates for the share of the singular values of an unfolding that are not shrunk. The mean of the completions with all
    of them is a candidate too: if singular values decay slowly, its error is smaller than that of each completion."""
    smoothness: tuple[float, ...] = (3e-3, 3e-2)
    """Candidates for mu, in addition to 0."""
    widths: tuple[float, ...] = (8.0, 4.0, 2.0, 1.0)
    """Candidates for the scale of the loss, in units of the scale of the low-rank matrix. A fit without outliers is tried too."""


SETTINGS = Settings()
MEAN_EVIDENCE = -2.0
"""The mean of the completions is used unless there is this much evidence against it. The held-out errors of the best completion
are too small, because it was chosen by them."""
HELD_OUT_SHARE = 0.1
"""Share of the entries that is held out."""


def truncated_shrink(matrix: np.ndarray, size: float, rank: int) -> np.ndarray:
    """Reduce all singular values except the ``rank`` largest by ``size``, but not below 0.

    The matrix is transposed if it has more rows than columns. Its left singular vectors are then eigenvectors of a small matrix.
    """
    if matrix.shape[0] > matrix.shape[1]:
        return truncated_shrink(matrix.T, size, rank).T
    squares, vectors = np.linalg.eigh(matrix @ matrix.T)
    values = np.sqrt(np.maximum(squares, 0.0))
    kept = np.maximum(values - size, 0.0) / np.maximum(values, 1e-300)
    kept[len(kept) - rank :] = 1.0
    return (vectors * kept) @ (vectors.T @ matrix)


def unfold(tensor: np.ndarray, mode: int) -> np.ndarray:
    """The matrix with a row for each index along the axis ``mode`` (unfolding)."""
    return np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1)


def fold(matrix: np.ndarray, shape: tuple[int, ...], mode: int) -> np.ndarray:
    """The tensor of this shape that has this unfolding."""
    others = (size for axis, size in enumerate(shape) if axis != mode)
    return np.moveaxis(matrix.reshape(shape[mode], *others), 0, mode)


def smoothed(tensor: np.ndarray, weight: float) -> np.ndarray:
    """Minimise |x - z|^2 / 2 + weight / 2 * sum_t (x_{t+1} - x_t)^2 over x for each row z of the table, by a cosine transform."""
    table = tensor.reshape(len(tensor), -1)
    count = table.shape[1]
    squares = 2.0 - 2.0 * np.cos(np.pi * np.arange(count) / count)
    return idct(dct(table, norm="ortho", axis=1) / (1.0 + weight * squares), norm="ortho", axis=1).reshape(tensor.shape)


def complete_tensor(
    values: np.ndarray,
    observed: np.ndarray,
    inliers: np.ndarray,
    truncation: float,
    smoothness: float,
    is_inlier: Callable[[np.ndarray], np.ndarray] | None,
    settings: Settings = SETTINGS,
) -> np.ndarray:
    """Complete a tensor.

    The method has a copy of the tensor (a part) for each unfolding, and another part for the smoothness. The parts agree in the
    limit. The result is their mean.

    Parameters
    ----------
    values : ndarray of shape (rows, periods, times)
        The observed values, of magnitude about 1. Entries that are not observed may have any value.
    observed, inliers : ndarray of bool, of the same shape
        Masks of the observed entries, and of the entries that are inliers at the start.
    truncation : float
        Share of the singular values of each unfolding that is not shrunk.
    smoothness : float
        The number mu.
    is_inlier : callable or None
        ``is_inlier(errors)`` returns the mask of the inliers. None: all entries are inliers.
    settings : Settings
        The constants.
    """
    shape, rho = values.shape, settings.penalty
    ranks = [int(np.ceil(truncation * size)) for size in shape]
    count = 4 if smoothness > 0 else 3
    parts, multipliers = np.zeros((count, *shape)), np.zeros((count, *shape))
    inliers = observed & inliers
    Z = np.where(inliers, values, 0.0)
    mean, norm = Z, max(float(np.linalg.norm(Z)), 1e-300)
    for iteration in range(settings.iterations):
        heartbeat()
        rho *= settings.growth
        for mode in range(3):
            shifted = unfold(Z - multipliers[mode] / rho, mode)
            parts[mode] = fold(truncated_shrink(shifted, 1 / (3 * rho), ranks[mode]), shape, mode)
        if smoothness > 0:
            parts[3] = smoothed(Z - multipliers[3] / rho, smoothness / rho)
        before, mean = mean, parts.mean(axis=0)
        if is_inlier is not None and iteration >= settings.first_check and iteration % settings.check_every == 0:
            inliers = observed & is_inlier(values - mean)
        Z = np.where(inliers, values, mean + multipliers.mean(axis=0) / rho)
        multipliers += rho * (parts - Z)
        if np.linalg.norm(mean - before) < settings.tolerance * norm:
            break
    return mean


# ---------------------------------------------------------------------------------------------------------- the estimator


def require_periods(period: int, given: Entries) -> None:
    """Raise ValueError if the columns are not times in order, not a multiple of the period, or too many for a dense array."""
    (m, n), names = given.shape, given.col_ids
    whole = names is not None and names.dtype.kind in "iu" and int(names[-1]) - int(names[0]) == n - 1
    if names is not None and not whole and not given.in_order:
        raise ValueError(
            f"period={period} was given for columns such as {names[:1].tolist()[0]!r}, whose names do not tell the times between "
            "them: give a table with a column for each time, in order, whose names are sorted (t01, t02, ...), or whole numbers "
            "without gaps."
        )
    if n % period or n < 2 * period:
        raise ValueError(
            f"period={period} was given for {counted(n, 'column')}, but a multiple of the period, at least {2 * period}, was "
            "expected: give a row for each sensor and a column for each time, in order, with NaN where a day is not complete."
        )
    if m * n > MAX_TABLE:
        raise ValueError(
            f"period={period} was given for a table of {m} x {n}, but at most {MAX_TABLE:,} places were expected, as the tensor "
            "is a dense array: complete some rows or some days at a time, or leave period out."
        )


def fit_view(objective: Completion, plain: Model, view: TensorView) -> Model:
    """Fit a tensor view to the entries of an objective. The first outliers are those of the model ``plain``."""
    pattern, shape = objective.pattern, objective.pattern.shape
    rows, cols = pattern.rows, pattern.cols
    predicted = pattern.sample(*plain.factors())
    unit = float(np.sqrt(np.mean(np.square(predicted, dtype=float)))) or 1.0
    tensor = (shape[0], shape[1] // view.period, view.period)
    loss = loss_for(view.loss, view.sigma)

    def is_inlier(errors: np.ndarray) -> np.ndarray:
        return (inlier_weights(loss, unit * errors.ravel()) >= 0.5).reshape(errors.shape)

    table, observed, inliers = np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool)
    table[rows, cols], observed[rows, cols] = objective.values / unit, True
    inliers[rows, cols] = view.loss == "squared" or is_inlier((objective.values - predicted) / unit)
    given = table.reshape(tensor), observed.reshape(tensor), inliers.reshape(tensor)
    judge = None if view.loss == "squared" else is_inlier
    found = np.mean([complete_tensor(*given, share, view.smoothness, judge) for share in view.truncations], axis=0)
    low_rank = unit * found.reshape(shape) - plain.biases.mean - plain.biases.rows[:, None] - plain.biases.cols
    low_rank[~observed.any(axis=1)] = 0.0  # a row without observed entries is predicted by the biases
    left, values, right = np.linalg.svd(low_rank, full_matrices=False)
    kept = values > 1e-12 * values.max(initial=0.0)
    x = LowRank(left[:, kept] * values[kept], np.ascontiguousarray(right[kept].T))
    return replace(plain, x=x, loss=loss, sigma=view.sigma, radius=float(values.sum()), state=None)


def split_like_holes(fit: Fit, period: int) -> tuple[Completion, HeldOut]:
    """Hold out a tenth of the entries: some of them one by one, others as whole periods of a row.

    The share in whole periods is the same as among missing entries. If whole days of a sensor are missing, a choice by single
    held-out entries would be too smooth, because such entries have observed neighbours and the missing days do not.
    """
    pattern, values = fit.all_entries.pattern, fit.all_entries.values
    (m, n), rows, cols = pattern.shape, pattern.rows, pattern.cols
    if len(rows) == 1:
        return fit.split()
    blocks = rows * (n // period) + cols // period
    sizes = np.bincount(blocks, minlength=m * n // period)
    missing = m * n - len(rows)
    in_blocks = period * np.count_nonzero(sizes == 0) / missing if missing else 0.0
    wanted = HELD_OUT_SHARE * len(rows)
    order = fit.rng.permutation(np.flatnonzero(sizes))
    whole = order[np.cumsum(sizes[order]) <= in_blocks * wanted]
    out = np.isin(blocks, whole)
    single = np.flatnonzero(~out)
    remaining = max(int(wanted) - int(np.count_nonzero(out)), 1)
    out[fit.rng.choice(single, remaining, replace=False)] = True
    held_out = HeldOut(rows[out], cols[out], values[out])
    return Completion(rows[~out], cols[~out], values[~out], (m, n)), held_out


def search_views(
    fit: Fit,
    train: Completion,
    held_out: HeldOut,
    plain: Model,
    auto: bool,
    evidence: Callable[[Validated, Validated], float],
    narrower_evidence: float,
) -> tuple[TensorView, Validated]:
    """Find the best tensor view on held-out entries. The scale of the loss is chosen first, then the ranks, then the smoothness,
    and last whether the completions with all candidates of the ranks are averaged.

    ``evidence(new, old)`` is the evidence that ``new`` is better. If the best view so far ignores no outliers, a view that
    ignores outliers needs more evidence than ``narrower_evidence`` to replace it.
    """
    assert fit.period is not None and isinstance(fit.loss, str)
    robust = "welsch" if auto and fit.loss in CONVEX_LOSSES else fit.loss
    first = TensorView(fit.period, fit.loss, plain.sigma, SETTINGS.truncations[:1], 0.0, plain.radius)

    def tried(view: TensorView) -> tuple[TensorView, Validated]:
        fit.report(f"tensor view: {view.loss} loss, {shares_of(view)} unshrunk, smoothness {view.smoothness:g}", 4)
        return view, held_out.validate(fit, fit_view(train, plain, view))

    widths: tuple[float, ...] = () if robust == "squared" else (1.0,) if fit.sigma is not None else SETTINGS.widths
    views = [first._replace(loss=robust, sigma=width * plain.sigma) for width in widths]
    if auto or robust == "squared":
        views.insert(0, first._replace(loss="squared"))
    best = tried(views[0])
    for view in views[1:]:
        now = tried(view)
        if evidence(now[1], best[1]) > (narrower_evidence if best[0].loss == "squared" else 0.0):
            best = now
    changes: list[dict[str, Any]] = [{"truncations": (share,)} for share in SETTINGS.truncations[1:]]
    changes += [{"smoothness": size} for size in SETTINGS.smoothness]
    for change in changes:
        now = tried(best[0]._replace(**change))
        if evidence(now[1], best[1]) > 0.0:
            best = now
    mean = tried(best[0]._replace(truncations=SETTINGS.truncations))
    return mean if evidence(mean[1], best[1]) > MEAN_EVIDENCE else best


def shares_of(view: TensorView) -> str:
    """The shares of the singular values that are not shrunk, such as "5%, 10% and 20%"."""
    *first, last = (f"{share:.0%}" for share in view.truncations)
    return f"{', '.join(first)} and {last}" if first else last
