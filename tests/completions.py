"""What the tests of RobustCompletion share: a matrix of low rank with holes, and its entries."""

from __future__ import annotations

import numpy as np


def problem(
    m: int = 60, n: int = 40, rank: int = 2, seed: int = 0, noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of low rank, and what is seen of it: holes, and nine entries that are far off."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    holes = np.where(rng.random((m, n)) < 0.6, truth + noise * rng.normal(size=(m, n)), np.nan)
    holes[:3, :3] = 50.0
    return truth, holes


def table(holes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, cols = np.nonzero(~np.isnan(holes))
    return rows, cols, holes[rows, cols]
