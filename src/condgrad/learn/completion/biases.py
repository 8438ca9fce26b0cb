"""Fits the biases mean + row_i + column_j of a completion to the residuals of the model, by reweighted least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad import kernels
from condgrad.objectives.completion import Biases
from condgrad.objectives.losses import Loss, value_and_deriv
from condgrad.points import Pattern

ROW_RIDGE, COLUMN_RIDGE = 3.0, 1.5
"""Ridge penalties of row and column biases. A penalty of 1 has the same effect as one more entry, of weight 1, that a bias of 0
fits exactly. If the model has no row biases, column biases have no penalty."""
TINY = 1e-150
"""Lower limit of divisors (residuals and sums of weights), to avoid a division by 0."""


def inlier_weights(loss: Loss, residuals: np.ndarray) -> np.ndarray:
    """Inlier weight phi'(t)/(t phi''(0)) of each residual t, from 0 (ignored) to 1.

    With these weights, the weighted squares have the same gradient as the loss.
    """
    nonzero = np.where(np.abs(residuals) < TINY, TINY, residuals)
    weights = value_and_deriv(loss, nonzero, np.zeros(len(residuals)), np.empty(0))[1]
    weights /= nonzero
    weights /= loss.smoothness
    return np.clip(weights, 0.0, 1.0, out=weights)


def loss_and_inlier_weights(
    loss: Loss, pattern: Pattern, residuals: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Compute the loss of residuals and their inlier weights.

    Returns the loss, the weights, and for each row the sum of the weights and the sum of weight times residual.
    """
    value, slopes = value_and_deriv(loss, residuals, np.zeros_like(residuals), np.empty(0, residuals.dtype))
    return value, *kernels.inlier_weights(pattern.indptr, residuals, slopes, loss.smoothness)


class ReweightedEntries:
    """Residuals of the entries with their inlier weights, and the weighted sums over rows and columns that a fit of biases needs.

    Parameters
    ----------
    pattern : Pattern
        Positions of the entries.
    residuals : ndarray
        Residuals of the whole model at the entries.
    loss : Loss
        The loss, which determines the weights.
    """

    def __init__(self, pattern: Pattern, residuals: np.ndarray, loss: Loss):
        self.pattern, self.residuals = pattern, residuals
        self.value, self.weights, self.row_weight, self.row_sum = loss_and_inlier_weights(loss, pattern, residuals)

    def row_sums(self, col_change: np.ndarray) -> np.ndarray:
        """For each row, the sum of weight times residual, after the column biases have changed by ``col_change``."""
        pattern = self.pattern
        return kernels.row_weighted_sums(pattern.indptr, pattern.indices, self.weights, self.residuals, col_change)

    def column_sums(self, row_change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each column, the sum of the weights, and the sum of weight times residual after the row biases have changed."""
        pattern = self.pattern
        return kernels.column_weighted_sums(
            pattern.cuts, pattern.indices, self.weights, self.residuals, row_change, pattern.shape[1], pattern.width
        )


def refit_biases(biases: Biases, entries: Any, which: str, iterations: int = 1) -> Biases:
    """Update the biases by weighted least squares with inlier weights: the mean, the rows and the columns in turn.

    ``entries`` has the residuals of the whole model with the given biases: ReweightedEntries, or ReweightedShards if the entries
    are on a cluster. ``which`` is "both", or "columns" for a model without row biases, whose column biases have no ridge penalty.
    """
    with_rows, ridge = which == "both", COLUMN_RIDGE if which == "both" else 0.0
    row_weight, row_sum = entries.row_weight, entries.row_sum
    mean, rows, cols = biases.mean, biases.rows, biases.cols
    row_change, col_change = np.zeros(len(rows)), np.zeros(len(cols))
    for iteration in range(iterations):
        if iteration:
            row_sum = entries.row_sums(col_change) - row_change * row_weight
        shift = row_sum.sum() / max(row_weight.sum(), TINY)
        mean, row_change = mean + shift, row_change + shift
        if with_rows:
            step = (row_sum - shift * row_weight - ROW_RIDGE * rows) / (row_weight + ROW_RIDGE)
            rows, row_change = rows + step, row_change + step
        col_weight, col_sum = entries.column_sums(row_change)
        step = (col_sum - col_change * col_weight - ridge * cols) / np.maximum(col_weight + ridge, TINY)
        cols, col_change = cols + step, col_change + step
    return Biases(mean, rows, cols)
