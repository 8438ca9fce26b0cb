"""Projection onto the simplex, of one vector or of all rows of an array along an axis."""

from __future__ import annotations

import numpy as np


def onto_simplex(x: np.ndarray, radius: float) -> np.ndarray:
    """Return the point nearest to x with entries >= 0 and the sum ``radius``: max(x - theta, 0), with theta found by sorting."""
    shifted = x - x.max()  # does not change the projection, and avoids large numbers in the sums below
    falling = np.sort(shifted, axis=None)[::-1]
    thetas = (np.cumsum(falling) - radius) / np.arange(1, x.size + 1)
    support = np.flatnonzero(falling > thetas)[-1]
    return np.maximum(shifted - thetas[support], 0.0)


def onto_simplices(x: np.ndarray, radius: float, axis: int) -> np.ndarray:
    """Apply :func:`onto_simplex` to each row of x along an axis."""
    x = np.moveaxis(x, axis, -1)
    shifted = x - x.max(axis=-1, keepdims=True)
    falling = -np.sort(-shifted, axis=-1)
    thetas = (np.cumsum(falling, axis=-1) - radius) / np.arange(1, x.shape[-1] + 1)  # the solution is the largest theta
    return np.moveaxis(np.maximum(shifted - thetas.max(axis=-1, keepdims=True), 0.0), -1, axis)
