"""Fractional knapsacks: capacities that are filled one after the other until a budget is used up."""

from __future__ import annotations

import numpy as np


def filled_in_order(capacities: np.ndarray, budget: float) -> np.ndarray:
    """Fill capacities in their order until the budget is used up, and return how far each is filled.

    Examples
    --------
    >>> import numpy as np
    >>> filled_in_order(np.array([1.0, 2.0, 3.0]), 2.5)
    array([1. , 1.5, 0. ])
    """
    before = np.concatenate([[0.0], np.cumsum(capacities)[:-1]])
    return np.minimum(capacities, np.maximum(budget - before, 0.0))


def largest_square(capacities: np.ndarray, budget: float) -> float:
    """Return the largest sum of squares of numbers from 0 to the capacities that sum to at most the budget.

    The largest sum is that of filling the largest capacities first, because this choice majorises every other one.

    Examples
    --------
    >>> import numpy as np
    >>> largest_square(np.array([1.0, 3.0, 2.0]), 4.0)
    10.0
    """
    return float(np.sum(filled_in_order(np.sort(capacities, axis=None)[::-1], budget) ** 2))
