"""Projection on the simplex."""

from __future__ import annotations

import numpy as np


def onto_simplex(x: np.ndarray, radius: float) -> np.ndarray:
    """The nearest point with entries >= 0 that sum to ``radius``: max(x - theta, 0), theta found by sorting."""
    shifted = x - x.max()  # changes nothing but theta, and keeps the sums below at the size of the radius
    falling = np.sort(shifted, axis=None)[::-1]
    thetas = (np.cumsum(falling) - radius) / np.arange(1, x.size + 1)
    support = np.flatnonzero(falling > thetas)[-1]
    return np.maximum(shifted - thetas[support], 0.0)
