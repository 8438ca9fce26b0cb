"""Folds in new rows: finds their biases and factors by one regression for each row, while the columns of the model stay fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.learn.completion.biases import inlier_weights
from condgrad.objectives.losses import Loss

CONVEX_ITERATIONS, MAX_ITERATIONS = 10, 40
"""If the loss is not convex, the first CONVEX_ITERATIONS iterations of reweighted least squares use Huber's loss.
MAX_ITERATIONS is the maximum number of iterations in total."""
MAX_DOUBLINGS = 60
"""Maximum number of times the width of a loss is doubled."""
MIN_PENALTY = 1e-12
"""Additional ridge penalty, relative to the size of the factors, which makes the solution unique."""
MIN_SINGULAR_VALUE = 1e-100
"""Lower limit of a singular value in a divisor."""
MAX_BLOCK_ELEMENTS = 2**21
"""Approximate number of elements of the regression matrices that are in memory at the same time."""


def prior_penalties(loss: Loss, sigma: float, count: int, singular: np.ndarray) -> np.ndarray:
    """For each component, the ridge penalty that corresponds to a normal prior of the factors.

    The variance of the prior is the mean square of the factors of the present ``count`` rows. ``sigma`` is the scale of the
    errors, and ``singular`` has the singular values.
    """
    return loss.smoothness * sigma**2 * count / np.maximum(singular, MIN_SINGULAR_VALUE)


def fold_in_rows(
    columns: np.ndarray,
    singular: np.ndarray,
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    m: int,
    loss: Loss,
    penalty: Any,
    ridge: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the biases and factors of m new rows by reweighted least squares.

    ``entries`` are the entries of the new rows: row, column, and value minus mean minus column bias.

    At a solution P S Q' over a nuclear ball with multiplier ``penalty``, each row u of U = P S^(1/2) minimises
    sum_j phi(b + <u, v_j>, t_j) + penalty |u|^2 / 2, where v_j are the rows of Q S^(1/2). The same problem is solved for each new
    row. Therefore, if a row of the fitted matrix is folded in again, its factors do not change. ``penalty`` is a number, or an
    array with one number for each component. ``ridge`` is the ridge penalty of the bias b, in units of one entry; None if the
    model has no row biases.
    """
    rows, cols, targets = entries
    order = np.argsort(rows, kind="stable")
    cols, targets = cols[order], targets[order]
    ends = np.searchsorted(rows[order], np.arange(m + 1))
    root = np.sqrt(singular)
    V = np.column_stack([np.full(len(columns), float(ridge is not None)), columns * root])
    penalties = np.append(loss.smoothness * (ridge or 0.0), np.full(len(root), penalty))
    penalties += loss.smoothness * np.append(MIN_PENALTY, MIN_PENALTY * singular)
    solutions, counts = np.zeros((m, V.shape[1])), np.diff(ends)
    by_size, at = np.argsort(counts, kind="stable"), m  # rows with similar numbers of entries are solved together
    while at:
        longest = max(counts[by_size[at - 1]], 1)
        part = by_size[max(at - max(MAX_BLOCK_ELEMENTS // (longest * V.shape[1]), 1), 0) : at]
        A, T = np.zeros((len(part), longest, V.shape[1])), np.zeros((len(part), longest))
        for a, row in enumerate(part):
            its = slice(ends[row], ends[row + 1])
            A[a, : counts[row]], T[a, : counts[row]] = V[cols[its]], targets[its]
        solutions[part] = _robust_regressions(A, T, counts[part], loss, penalties)
        at -= len(part)
    return solutions[:, 0], solutions[:, 1:] * root


def _robust_regressions(
    A: np.ndarray, T: np.ndarray, counts: np.ndarray, loss: Loss, penalties: np.ndarray
) -> np.ndarray:
    """Minimise sum phi(A_i u, T_i) + <u, penalties u> / 2 over u, for each i. Only ``counts[i]`` rows of A_i are nonzero.

    If the loss is not convex, the result depends on the start. A least-squares start would be determined by outliers. Therefore
    the iterations start from the solution with Huber's loss, whose width is the median error of the row. If the median error is
    large, the loss is widened, so that at least half of the entries of the row have an inlier weight of 1/2 or more.
    """
    solutions, weights, width = np.zeros((len(A), A.shape[2])), np.ones_like(T), np.ones(len(A))
    first = 0 if loss.lower_smoothness == 0 else CONVEX_ITERATIONS
    active = np.arange(len(A))
    for iteration in range(MAX_ITERATIONS):
        A_, T_ = A[active], T[active]
        weighted = loss.smoothness * (A_ * weights[:, :, None]).transpose(0, 2, 1)
        before, u = solutions[active], np.linalg.solve(weighted @ A_ + np.diag(penalties), weighted @ T_[:, :, None])
        solutions[active], residuals = u[:, :, 0], T_ - (A_ @ u)[:, :, 0]
        if iteration < first:
            size = np.maximum(_row_medians(np.abs(residuals), counts), 1e-300)
            weights = size[:, None] / np.maximum(np.abs(residuals), size[:, None])
            if iteration == first - 1:
                width = _loss_widths(loss, size)
            continue
        moving = np.abs(solutions[active] - before).max(axis=1) > 1e-6 * np.abs(solutions[active]).max(axis=1)
        if iteration == first:
            moving[:] = True
        active, residuals, width, counts = active[moving], residuals[moving], width[moving], counts[moving]
        if not len(active):
            break
        weights = inlier_weights(loss, (residuals / width[:, None]).ravel()).reshape(residuals.shape)
    return solutions


def _row_medians(sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Median of the first ``counts[i]`` numbers of each row i; 0 if ``counts[i]`` is 0."""
    sizes = np.sort(np.where(np.arange(sizes.shape[1]) < counts[:, None], sizes, np.inf), axis=1)
    return np.where(counts > 0, sizes[np.arange(len(sizes)), np.maximum(counts - 1, 0) // 2], 0.0)


def _loss_widths(loss: Loss, sizes: np.ndarray) -> np.ndarray:
    """For each size, the smallest power of 2 by which the loss must be widened so that errors of this size have weight >= 1/2."""
    width = np.ones(len(sizes))
    for _ in range(MAX_DOUBLINGS):
        width[inlier_weights(loss, sizes / width) < 0.5] *= 2
    return width
