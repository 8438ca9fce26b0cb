"""Two fractional knapsack problems, solved by filling capacities one after the other until a budget is used up."""

from __future__ import annotations

import numpy as np


def filled_in_order(capacities: np.ndarray, budget: float) -> np.ndarray:
    """Fill capacities in the given order until the budget is used up, and return the amount in each capacity.

    Examples
    --------
    >>> import numpy as np
    >>> filled_in_order(np.array([1.0, 2.0, 3.0]), 2.5)
    array([1. , 1.5, 0. ])
    """
    before = np.concatenate([[0.0], np.cumsum(capacities)[:-1]])
    return np.minimum(capacities, np.maximum(budget - before, 0.0))


def largest_square(capacities: np.ndarray, budget: float) -> float:
    """Return the maximum of sum x_i^2 subject to 0 <= x_i <= capacities_i and sum x_i <= budget.

    The maximum is reached by filling the largest capacities first, because this x majorises every other feasible x.

    Examples
    --------
    >>> import numpy as np
    >>> largest_square(np.array([1.0, 3.0, 2.0]), 4.0)
    10.0
    """
    return float(np.sum(filled_in_order(np.sort(capacities, axis=None)[::-1], budget) ** 2))
