"""mean + row_i + column_j, fitted to what the rest of the model leaves over, as far as the loss believes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condgrad import kernels
from condgrad.objectives.losses import Loss, value_and_deriv
from condgrad.points import Pattern

ROWS, COLUMNS = 3.0, 1.5
"""A row's bias is drawn to 0 as if it had so many more entries that say 0; a column's likewise, where rows have one too."""
TINY = 1e-150


def belief(loss: Loss, t: np.ndarray) -> np.ndarray:
    """phi'(t)/t, relative to its value at 0: 1 for what is believed, 0 for what is not. Weighted so, squares pull as phi does."""
    moved = np.where(np.abs(t) < TINY, TINY, t)
    weights = value_and_deriv(loss, moved, np.zeros(len(t)), np.empty(0))[1]
    weights /= moved
    weights /= loss.smoothness
    return np.clip(weights, 0.0, 1.0, out=weights)


def beliefs(loss: Loss, pattern: Pattern, left: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """The loss of residuals at the entries of a pattern, the belief in each, and of each row its sum, also times residual."""
    value, slopes = value_and_deriv(loss, left, np.zeros(len(left)), np.empty(0))
    return value, *kernels.inlier_weights(pattern.indptr, left, slopes, loss.smoothness)


@dataclass(frozen=True, eq=False)
class Biases:
    """mean + row_i + column_j"""

    mean: float
    rows: np.ndarray
    cols: np.ndarray

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """U and V of rank 2 with U V' the biases: what samples a matrix of low rank samples them as well."""
        U, V = np.ones((len(self.rows), 2)), np.ones((len(self.cols), 2))
        U[:, 0], V[:, 1] = self.rows + self.mean, self.cols
        return U, V


def refitted(
    biases: Biases, pattern: Pattern, left: np.ndarray, loss: Loss, which: str, turns: int = 1
) -> tuple[Biases, float]:
    """The biases again, from ``left``: what values, the model without them and they leave over; and the loss of that.

    Weighted by belief, by turns. ``which`` is "both" or "columns": then rows have none, and columns are not drawn to 0.
    """
    with_rows, ridge = which == "both", COLUMNS if which == "both" else 0.0
    value, weights, row_weight, row_pull = beliefs(loss, pattern, left)
    mean, rows, cols = biases.mean, biases.rows, biases.cols
    by_row, by_col = np.zeros(len(rows)), np.zeros(len(cols))  # how far they have moved
    for turn in range(turns):
        if turn:
            row_pull = (
                kernels.row_weighted_sums(pattern.indptr, pattern.indices, weights, left, by_col) - by_row * row_weight
            )
        shift = row_pull.sum() / max(row_weight.sum(), TINY)
        mean, by_row = mean + shift, by_row + shift
        if with_rows:
            step = (row_pull - shift * row_weight - ROWS * rows) / (row_weight + ROWS)
            rows, by_row = rows + step, by_row + step
        col_weight, col_pull = kernels.column_weighted_sums(
            pattern.cuts, pattern.indices, weights, left, by_row, pattern.shape[1], pattern.width
        )
        step = (col_pull - by_col * col_weight - ridge * cols) / np.maximum(col_weight + ridge, TINY)
        cols, by_col = cols + step, by_col + step
    return Biases(mean, rows, cols), value
