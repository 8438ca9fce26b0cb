"""mean + row_i + column_j, fitted to what the rest of the model leaves over, as far as the loss believes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condgrad.objectives.losses import Loss, value_and_deriv
from condgrad.points import Pattern

ROWS, COLUMNS = 3.0, 1.5
"""A row's bias is drawn to 0 as if it had so many more entries that say 0; a column's likewise."""
TINY = 1e-150


def belief(loss: Loss, t: np.ndarray) -> np.ndarray:
    """phi'(t)/t, relative to its value at 0: 1 for what is believed, 0 for what is not. Weighted so, squares pull as phi does."""
    moved = np.where(np.abs(t) < TINY, TINY, t)
    weights = value_and_deriv(loss, moved, np.zeros(len(t)), np.empty(0))[1]
    weights /= moved
    weights /= loss.smoothness
    return np.clip(weights, 0.0, 1.0, out=weights)


@dataclass(frozen=True, eq=False)
class Biases:
    """mean + row_i + column_j"""

    mean: float
    rows: np.ndarray
    cols: np.ndarray

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        found = self.rows[rows]
        found += self.cols[cols]
        found += self.mean
        return found


def refitted(biases: Biases, pattern: Pattern, left: np.ndarray, loss: Loss, turns: int = 1) -> Biases:
    """The biases again, from ``left``: what values, the model without them and they leave over. Weighted by belief, by turns."""
    weights = belief(loss, left)
    every_col, every_row = np.ones((pattern.shape[1], 1)), np.ones((pattern.shape[0], 1))
    row_weight = pattern.times(weights, every_col)[:, 0]
    col_weight = pattern.transposed_times(weights, every_row)[:, 0]
    pull = weights * left
    row_pull, col_pull = pattern.times(pull, every_col)[:, 0], pattern.transposed_times(pull, every_row)[:, 0]
    mean, rows, cols = biases.mean, biases.rows, biases.cols
    for _ in range(turns):
        shift = row_pull.sum() / max(row_weight.sum(), TINY)
        mean, row_pull, col_pull = mean + shift, row_pull - shift * row_weight, col_pull - shift * col_weight
        step = (row_pull - ROWS * rows) / (row_weight + ROWS)
        rows, row_pull = rows + step, row_pull - step * row_weight
        col_pull = col_pull - pattern.transposed_times(weights, step[:, None])[:, 0]
        step = (col_pull - COLUMNS * cols) / (col_weight + COLUMNS)
        cols, col_pull = cols + step, col_pull - step * col_weight
        row_pull = row_pull - pattern.times(weights, step[:, None])[:, 0]
    return Biases(mean, rows, cols)
