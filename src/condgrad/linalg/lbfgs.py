r"""L-BFGS: minimisation of a smooth function of a vector from its values and gradients, one iteration at a time.

The direction is -H g, where H is the inverse Hessian approximation of the last pairs (s, y) of differences of points and
gradients (Nocedal 1980). The step size satisfies the weak Wolfe conditions and is found by bracketing (Lewis and Overton 2013):
it is doubled while the slope is too steep, and reduced to the minimum of a parabola where the value is too high. If the decrease
of the value is of the size of its rounding error, the slope is compared in place of the value (Hager and Zhang 2005).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

ARMIJO, CURVATURE = 1e-4, 0.9
"""Constants of the Wolfe conditions: share of the expected decrease, and share of the slope that may remain."""
MAX_TRIALS = 25
"""Maximum number of step sizes tried in one iteration."""
FIRST_MOVE = 1e-2
"""Length of the first trial step, relative to the norm of the point."""
VALUE_ROUNDING = 1e-14
"""Assumed rounding error of a value, relative to its size."""

Value = Callable[[np.ndarray], float]
Slope = Callable[[np.ndarray], np.ndarray]


class Iterate(NamedTuple):
    """A point with its value and its gradient."""

    w: np.ndarray
    fun: float
    grad: np.ndarray


def lbfgs(value: Value, grad: Slope, start: Iterate, pairs: int = 20) -> Iterator[Iterate]:
    """Yield the iterates after ``start``. Ends if no step size is acceptable, which near a solution is due to rounding.

    Parameters
    ----------
    value : callable
        ``value(w)``, a float.
    grad : callable
        ``grad(w)``, an array; only called at the point of the last call of ``value``.
    start : Iterate
        The first point, with its value and gradient.
    pairs : int, default 20
        Number of pairs (s, y) kept; memory is 2 * pairs vectors.

    Yields
    ------
    Iterate
        The value never increases by more than its rounding error.

    Examples
    --------
    >>> first = Iterate(np.array([3.0, 1.0]), 7.0, np.array([3.0, 5.0]))
    >>> last = list(lbfgs(lambda w: w[0] ** 2 / 2 + 5 * w[1] ** 2 / 2, lambda w: w * [1.0, 5.0], first))[-1]
    >>> bool(last.fun < 1e-20)
    True
    """
    now, known = start, deque[tuple[np.ndarray, np.ndarray, float]](maxlen=pairs)
    while True:
        direction = -times_inverse_hessian(known, now.grad)
        slope = float(direction @ now.grad)
        if not slope < 0:
            if not known:
                return
            known.clear()
            continue
        size = float(np.linalg.norm(direction))
        first = 1.0 if known else min(1.0, FIRST_MOVE * (float(np.linalg.norm(now.w)) or 1.0) / size)
        found = wolfe_step(value, grad, now, direction, slope, first)
        if found is None:
            if not known:
                return
            known.clear()
            continue
        s, y = found.w - now.w, found.grad - now.grad
        curvature = float(s @ y)
        if curvature > 1e-12 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            known.append((s, y, curvature))
        now = found
        yield now


def times_inverse_hessian(known: deque[tuple[np.ndarray, np.ndarray, float]], g: np.ndarray) -> np.ndarray:
    """Return H g by the two-loop recursion."""
    g, shares = g.copy(), []
    for s, y, curvature in reversed(known):
        share = float(s @ g) / curvature
        g -= share * y
        shares.append(share)
    if known:
        _, y, curvature = known[-1]
        g *= curvature / float(y @ y)
    for (s, y, curvature), share in zip(known, reversed(shares), strict=True):
        g += (share - float(y @ g) / curvature) * s
    return g


def wolfe_step(
    value: Value, grad: Slope, now: Iterate, direction: np.ndarray, slope: float, first: float
) -> Iterate | None:
    """Return the iterate at a step size that satisfies the weak Wolfe conditions.

    If none of MAX_TRIALS step sizes does, return the last one that decreases the value sufficiently; None if there is none.
    """
    low, high, t, noise = 0.0, inf, first, VALUE_ROUNDING * abs(now.fun)
    best: Iterate | None = None
    for _ in range(MAX_TRIALS):
        w = now.w + t * direction
        fun = value(w)
        if isfinite(fun) and fun <= now.fun + max(ARMIJO * t * slope, -noise) + noise:
            g = grad(w)
            there = float(g @ direction)
            falls = fun <= now.fun + ARMIJO * t * slope
            if falls or there <= (2 * ARMIJO - 1) * slope:
                if there >= CURVATURE * slope:
                    return Iterate(w, fun, g)
                best, low = (Iterate(w, fun, g) if falls else best), t
                t = 2 * t if high == inf else (low + high) / 2
                continue
        high = t
        if isfinite(fun):  # minimum of the parabola through both values and the slope, not too near to the ends
            bend = fun - now.fun - t * slope
            guess = -slope * t**2 / (2 * bend) if bend > 0 else low
            t = min(max(guess, low + 0.1 * (high - low)), low + 0.5 * (high - low))
        else:
            t = (low + high) / 2
        if t * float(np.abs(direction).max()) <= 1e-16 * float(np.abs(now.w).max()):
            break
    return best
