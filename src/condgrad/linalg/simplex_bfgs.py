r"""BFGS over the simplex: minimisation of a smooth function of weights, one iteration at a time.

The weights w are not negative and have the sum 1. An iteration minimises the model <g, v - w> + (v - w)' B (v - w)/2 over all
weights v, by the active-set method of ``simplex_qp``, and moves from w towards the minimiser, at most as far as it. So each
iterate is in the simplex, and a weight may become 0 and positive again. B approximates the second derivatives. It is updated by
the differences of successive weights and gradients (the BFGS formula), so that the iterates converge superlinearly once the
weights that are 0 no longer change.
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
"""A pair changes B only if an entry of the gradient has changed by this share of its largest entry: less is mostly rounding."""
MAX_IDLE = 2
"""Number of iterations in a row without a lower value, beyond rounding, and without a smaller gap, after which it ends."""
MIN_CURVATURE = 1e-8
"""A pair whose curvature is at most this share of that of B does not change B: the function is not convex along the step."""


def simplex_bfgs(value: Value, grad: Slope, start: Iterate, B: np.ndarray) -> Iterator[tuple[Iterate, float]]:
    """Yield the iterates after ``start``. Ends when no step decreases the value. Near a solution, the reason is rounding.

    It also ends if B is not positive definite by rounding, as it can be if atoms nearly coincide.

    Parameters
    ----------
    value : callable
        ``value(w)``, a float.
    grad : callable
        ``grad(w)``, an array. It is called only at the point w of the last call of ``value``.
    start : Iterate
        The first weights, not negative and with the sum 1, with the value and the gradient.
    B : ndarray of shape (n, n)
        The first approximation of the second derivatives: symmetric, and not negative along differences of weights.

    Yields
    ------
    Iterate
        From one iterate to the next, the value never increases by more than its rounding error.
    float
        The fall along the step: minus the derivative of the value at the iterate before, along the way to the minimiser of the
        model. Near a solution it is once to twice the distance of that iterate's value from the minimum.

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
        except LinAlgError:  # by rounding, B is not positive definite along differences of atoms that nearly coincide
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
    """Return the minimiser of the model at ``now``, and the derivative of the value along the way to it.

    The active-set method starts at the minimiser ``last`` of the model before: a shorter step leaves weights that are 0 there
    positive, and to drop these atoms again, one by one, takes most of the time with hundreds of atoms. It starts at ``now.w`` if
    the value does not fall along the way found so, which is possible by rounding alone.
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
    """Return C with v'C v = (v - w)'B (v - w) for all v with the sum 1. Its entries are small where those of B nearly cancel."""
    Bw = B @ w
    return B - Bw - Bw[:, None] + float(Bw @ w)


def updated(B: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return B after the BFGS update with the pair (s, y); B itself if the curvature of the pair is not positive.

    Only the differences of entries of y count, because the entries of s have the sum 0.
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
    """Return an iterate between ``now`` and the weights ``to`` with a sufficiently lower value; None if there is none.

    ``slope`` is the derivative of the value along the way, ``lowest`` the lowest value so far.
    If the value changes only by about its rounding error, a condition on the slope replaces the condition on the value (Hager and
    Zhang 2005).
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
