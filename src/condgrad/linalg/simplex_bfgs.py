r"""BFGS over the simplex: minimises a smooth function of weights w >= 0 with the sum 1.

Each iteration minimises the model <g, v - w> + (v - w)' B (v - w)/2 over all weights v, by the active-set method of
``simplex_qp``. The next iterate lies on the segment from w to the minimiser of the model. Therefore each iterate is in the
simplex, and a weight can become 0 and later positive again. B approximates the Hessian. The BFGS formula updates B from the
differences of successive weights and gradients. Once the set of zero weights no longer changes, the iterates converge
superlinearly.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np
from scipy.linalg import LinAlgError

from condgrad.linalg.lbfgs import ARMIJO, Iterate, Slope, Value
from condgrad.linalg.simplex_qp import nearest_weights

MAX_TRIALS = 8
"""Maximum number of step sizes tried in one iteration."""
NOISE = 1e-12
"""Assumed rounding error of a function value, relative to the value."""
MIN_CHANGE = 1e-9
"""B is updated only if an entry of the gradient has changed by this share of the largest entry. A smaller change is mostly
rounding."""
MAX_IDLE = 2
"""The iteration ends after this number of iterations in a row that reduced neither the value (beyond rounding) nor the gap."""
MIN_CURVATURE = 1e-8
"""B is updated only if the curvature s'y of a step s is more than this share of s'B s. If the curvature is smaller, the function
is hardly convex along the step."""


def simplex_bfgs(value: Value, grad: Slope, start: Iterate, B: np.ndarray) -> Iterator[tuple[Iterate, float]]:
    """Yield the iterates after ``start``, until no step decreases the value. Near a solution this happens because of rounding.

    The iteration also ends if rounding errors make B indefinite, which can happen if atoms nearly coincide.

    Parameters
    ----------
    value : callable
        ``value(w)``, a float.
    grad : callable
        ``grad(w)``, an array. It is called only at the point w of the last call of ``value``.
    start : Iterate
        The first weights, not negative and with the sum 1, with the value and the gradient.
    B : ndarray of shape (n, n)
        The first approximation of the Hessian: symmetric, with d'B d >= 0 for all differences d of weights.

    Yields
    ------
    Iterate
        From one iterate to the next, the value never increases by more than its rounding error.
    float
        Minus the derivative of the value at the previous iterate, in the direction of the minimiser of the model. Near a
        solution, this is between one and two times the difference of the previous value and the minimum.

    Examples
    --------
    >>> c = np.array([0.9, 0.6, -3.0])
    >>> first = Iterate(np.ones(3) / 3, 5.0, np.ones(3) / 3 - c)
    >>> last = list(simplex_bfgs(lambda w: float((w - c) @ (w - c)) / 2, lambda w: w - c, first, 2 * np.eye(3)))[-1][0]
    >>> last.w.round(6)
    array([0.65, 0.35, 0.  ])
    """
    now, lowest, smallest, idle, to = start, start.fun, gap_of(start), 0, start.w
    while idle < MAX_IDLE:
        try:
            to, slope = towards(B, now, to)
        except LinAlgError:  # rounding errors have made B indefinite along differences of atoms that nearly coincide
            return
        found = feasible_step(value, grad, now, to, slope, lowest) if slope < 0 else None
        if found is None:
            return
        y = found.grad - now.grad
        if np.abs(y).max() > MIN_CHANGE * np.abs(found.grad).max():
            B = updated(B, found.w - now.w, y)
        now, gap = found, gap_of(found)
        idle = 0 if now.fun < lowest - NOISE * abs(lowest) or gap < smallest else idle + 1
        lowest, smallest = min(lowest, now.fun), min(smallest, gap)
        yield now, -slope


def towards(B: np.ndarray, now: Iterate, last: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the minimiser of the model at ``now``, and the derivative of the value in the direction of this minimiser.

    The active-set method starts at ``last``, the minimiser of the previous model, and not at ``now.w``. If the previous step was
    short, atoms that have weight 0 in ``last`` have a positive weight in ``now.w``. To drop hundreds of such atoms one by one
    would take most of the time. If, because of rounding errors, the value does not decrease in the resulting direction, the
    method starts again at ``now.w``.
    """
    level = float(now.grad @ now.w)
    C, slopes = centred(B, now.w), now.grad - level
    to = nearest_weights(C, -slopes, last)[0]
    slope = float(slopes @ (to - now.w))
    if slope >= 0 and not np.array_equal(last, now.w):
        to = nearest_weights(C, -slopes, now.w)[0]
        slope = float(slopes @ (to - now.w))
    return to, slope


def gap_of(now: Iterate) -> float:
    """Return the Frank-Wolfe gap over the simplex."""
    return float(now.grad @ now.w - now.grad.min())


def centred(B: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return C with v'C v = (v - w)'B (v - w) for all v with the sum 1. If the right side is expanded, its terms can nearly
    cancel."""
    Bw = B @ w
    return B - Bw - Bw[:, None] + float(Bw @ w)


def updated(B: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return B after the BFGS update with the pair (s, y). If the curvature of the pair is not positive, B is not changed.

    The mean of y is subtracted, which does not change the curvature because the entries of s have the sum 0.
    """
    y, Bs = y - y.mean(), B @ s
    Bs -= Bs.mean()
    curvature, known = float(s @ y), float(s @ Bs)
    if known <= 0 or curvature <= MIN_CURVATURE * known:
        return B
    return B + np.outer(y / curvature, y) - np.outer(Bs / known, Bs)


def feasible_step(
    value: Value, grad: Slope, now: Iterate, to: np.ndarray, slope: float, lowest: float
) -> Iterate | None:
    """Return an iterate between ``now`` and the weights ``to`` with a sufficiently lower value; None if none is found.

    ``slope`` is the derivative of the value from ``now`` towards ``to``, and ``lowest`` is the lowest value so far. If the value
    changes only by about its rounding error, a condition on the slope replaces the condition on the value (Hager and Zhang 2005).
    """
    t, noise = 1.0, NOISE * abs(now.fun)
    for _ in range(MAX_TRIALS):
        w = to if t == 1.0 else (1 - t) * now.w + t * to
        fun = value(w)
        if isfinite(fun) and fun <= min(now.fun + max(ARMIJO * t * slope, -noise), lowest) + noise:
            g = grad(w)
            if fun <= now.fun + ARMIJO * t * slope or abs(float(g @ (to - now.w))) <= (1 - 2 * ARMIJO) * -slope:
                return Iterate(w, fun, g)
        bend = fun - now.fun - t * slope
        guess = -slope * t**2 / (2 * bend) if isfinite(fun) and bend > 0 else 0.5 * t
        t = min(max(guess, 0.1 * t), 0.5 * t)
    return None
