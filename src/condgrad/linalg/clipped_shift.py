"""Projection onto the intersection of a box with a hyperplane sum x_i = total."""

from __future__ import annotations

from typing import Any

import numpy as np

STEPS = 600
"""Maximum number of steps of Newton's method with bisection. About ten steps are usually enough."""


def clipped_shift(x: np.ndarray, low: Any, high: Any, total: float) -> np.ndarray:
    """Return the point nearest to x with entries from ``low`` to ``high`` and the sum ``total``.

    This point is clip(x - theta, low, high) for a number theta, which Newton's method finds. The sum of the entries decreases
    with theta, and is linear between the values of theta at which an entry reaches a bound. Newton's method therefore ends after
    finitely many steps. Every third step bisects the interval that contains theta.

    Parameters
    ----------
    x : ndarray of float
        The point, of any shape.
    low, high : float or ndarray of float
        Bounds of the entries; ``high`` may be Inf.
    total : float
        The required sum of the entries: at least the sum of ``low``, and at most the sum of ``high``.

    Returns
    -------
    ndarray of float

    Examples
    --------
    >>> import numpy as np
    >>> clipped_shift(np.array([3.0, 1.0, 0.5]), 0.0, 1.0, 1.5)
    array([1. , 0.5, 0. ])
    """
    x = x - x.max()  # avoids large numbers in the sums below; changes theta but not the result
    low = np.broadcast_to(np.asarray(low, dtype=float), x.shape)
    high = np.minimum(high, low + max(total - float(low.sum()), 0.0))
    x = x - _shift(x, low, high, total)
    # x is near the result now, so that the next sum has small terms: the second shift corrects the rounding error of the first
    return np.clip(x - _shift(x, low, high, total), low, high)


def _shift(x: np.ndarray, low: np.ndarray, high: np.ndarray, total: float) -> float:
    """Return the number theta for which the entries of clip(x - theta, low, high) sum to ``total``."""
    left, right = float((x - high).min()), float((x - low).max())
    theta = left
    for step in range(STEPS):
        shifted = x - theta
        excess = float(np.clip(shifted, low, high).sum()) - total
        if excess > 0:
            left = theta
        else:
            right = theta
        free = int(np.count_nonzero((shifted > low) & (shifted < high)))
        following = theta + excess / free if free else (left + right) / 2
        if following == theta:
            break
        if step % 3 == 2 or not left < following < right:
            following = (left + right) / 2
        if following == theta or not left <= following <= right:
            break
        theta = following
    return theta
