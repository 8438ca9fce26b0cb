r"""L-BFGS: minimises a smooth function of a vector, using values and gradients. The caller takes the iterates one by one.

The direction is -H g, where g is the gradient and H approximates the inverse Hessian. H is defined by the last pairs (s, y): s is
the difference of two successive points, y is the difference of their gradients (Nocedal 1980). The step size satisfies the weak
Wolfe conditions and is found by bracketing (Lewis and Overton 2013): it is doubled while the slope is too steep, and reduced to
the minimum of a parabola if the value is too high. If the value changes only by about its rounding error, a condition on the
slope replaces the condition on the value (Hager and Zhang 2005).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

ARMIJO, CURVATURE = 1e-4, 0.9
"""Constants of the Wolfe conditions. A step must achieve at least the share ARMIJO of the decrease that the slope predicts, and
must reduce the slope to at most the share CURVATURE of it."""
MAX_TRIALS = 25
"""Maximum number of step sizes tried in one iteration."""
FIRST_MOVE = 1e-2
"""Maximum length of the first trial step if there are no pairs yet, relative to the norm of the point."""
VALUE_ROUNDING = 1e-14
"""Assumed rounding error of a function value, relative to the value."""

Value = Callable[[np.ndarray], float]
Slope = Callable[[np.ndarray], np.ndarray]


class Iterate(NamedTuple):
    """A point with its value and its gradient."""

    w: np.ndarray
    fun: float
    grad: np.ndarray


def lbfgs(value: Value, grad: Slope, start: Iterate, pairs: int = 20, dtype: Any = float) -> Iterator[Iterate]:
    """Yield the iterates after ``start``, until no step size is acceptable. Near a solution this happens because of rounding.

    Parameters
    ----------
    value : callable
        ``value(w)``, a float.
    grad : callable
        ``grad(w)``, an array. It is called only at the point w of the last call of ``value``.
    start : Iterate
        The first point, with its value and gradient.
    pairs : int, default 20
        Maximum number of pairs (s, y) kept. They take the memory of 2 * pairs vectors.
    dtype : {float64, float32}, default float64
        Type of the pairs. With float32 they take half of the memory, but directions have rounding errors of float32. Points,
        values and gradients are always float64.

    Yields
    ------
    Iterate
        From one iterate to the next, the value never increases by more than its rounding error.

    Examples
    --------
    >>> first = Iterate(np.array([3.0, 1.0]), 7.0, np.array([3.0, 5.0]))
    >>> last = list(lbfgs(lambda w: w[0] ** 2 / 2 + 5 * w[1] ** 2 / 2, lambda w: w * [1.0, 5.0], first))[-1]
    >>> bool(last.fun < 1e-20)
    True
    """
    now, known = start, Pairs(pairs, start.w.size, dtype)
    del start  # so that the arrays of the start are freed when the next iterate is found
    while True:
        found = _next_iterate(value, grad, now, known)
        if found is None:
            if not known.count:
                return
            known.clear()
            continue
        known.add(now, found)
        now = found
        yield now


def _next_iterate(value: Value, grad: Slope, now: Iterate, known: Pairs) -> Iterate | None:
    """Search along -H g. Returns the next iterate; None if F does not decrease along -H g or no step size is acceptable."""
    direction = -known.times_inverse_hessian(now.grad)
    slope = float(direction @ now.grad)
    if not slope < 0:
        return None
    size = float(np.linalg.norm(direction))
    first = 1.0 if known.count else min(1.0, FIRST_MOVE * (float(np.linalg.norm(now.w)) or 1.0) / size)
    return wolfe_step(value, grad, now, direction, slope, first)


class Pairs:
    """The last pairs (s, y), and products with the approximate inverse Hessian H that the pairs define.

    H is used in its compact form (Byrd, Nocedal and Schnabel 1994). Let S and Y be the matrices with the vectors s and y. A
    product H g takes one product with each of S, Y, S' and Y'. A new y is the difference of two gradients. Its inner products
    with S and Y are therefore differences of inner products that are already known.

    Parameters
    ----------
    most : int
        Maximum number of pairs kept.
    size : int
        Length of the vectors.
    dtype : {float64, float32}, default float64
        Type of the stored vectors.
    """

    def __init__(self, most: int, size: int, dtype: Any = float):
        self.S, self.Y = np.empty((2, most, size), dtype)
        self.SY, self.YY = np.zeros((2, most, most))
        self.Sg, self.Yg = np.zeros((2, most))
        """Inner products of the vectors s, and of the vectors y, with the gradient ``at``."""
        self.at: np.ndarray | None = None
        self.count = self.next = 0

    def clear(self) -> None:
        """Drop all pairs."""
        self.count, self.next, self.at = 0, 0, None

    def look_at(self, g: np.ndarray) -> None:
        """Compute the inner products of all pairs with g, if they are not known yet."""
        if self.at is not g:
            n, self.at = self.count, g
            g = g.astype(self.S.dtype, copy=False)  # else numpy would convert all pairs
            self.Sg[:n], self.Yg[:n] = self.S[:n] @ g, self.Y[:n] @ g

    def add(self, old: Iterate, new: Iterate) -> None:
        """Add the pair of two iterates if its curvature s'y is positive. The oldest pair is dropped if there are too many."""
        s, y = new.w - old.w, new.grad - old.grad
        curvature, square = float(s @ y), float(y @ y)
        if curvature <= 1e-12 * sqrt(float(s @ s) * square):
            return
        self.look_at(old.grad)
        Sg, Yg = self.Sg.copy(), self.Yg.copy()
        self.look_at(new.grad)
        i, n = self.next, self.count
        self.SY[:n, i] = self.Sg[:n] - Sg[:n]
        self.YY[:n, i] = self.YY[i, :n] = self.Yg[:n] - Yg[:n]
        self.S[i], self.Y[i], self.SY[i, i], self.YY[i, i] = s, y, curvature, square
        self.Sg[i], self.Yg[i] = s @ new.grad, y @ new.grad
        self.count, self.next = min(n + 1, len(self.S)), (i + 1) % len(self.S)

    def times_inverse_hessian(self, g: np.ndarray) -> np.ndarray:
        """Return H g. The initial matrix of the L-BFGS update is the identity times s'y / y'y of the last pair."""
        if not self.count:
            return g.copy()
        self.look_at(g)
        n = self.count
        order = (np.arange(n) + self.next - n) % len(self.S)  # the oldest first
        R, YY = self.SY[order][:, order], self.YY[order][:, order]  # of R only the upper triangle is used
        scale = R[-1, -1] / YY[-1, -1]
        of_Y, of_S = np.empty((2, n))
        of_Y[order] = inverse = dtrtrs(R, self.Sg[order])[0]
        right = R.diagonal() * inverse + scale * (YY @ inverse - self.Yg[order])
        of_S[order] = dtrtrs(R, right, trans=1)[0]
        of_S, of_Y = of_S.astype(self.S.dtype, copy=False), (scale * of_Y).astype(self.S.dtype, copy=False)
        product = (of_S @ self.S[:n] - of_Y @ self.Y[:n]).astype(float, copy=False)
        product += scale * g
        return product


def wolfe_step(
    value: Value, grad: Slope, now: Iterate, direction: np.ndarray, slope: float, first: float
) -> Iterate | None:
    """Return the iterate at a step size that satisfies the weak Wolfe conditions.

    If none of MAX_TRIALS step sizes satisfies these conditions, return the last trial that decreased the value sufficiently. If
    there is no such trial, return None.
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
        if isfinite(
            fun
        ):  # the minimum of the parabola through both values and the slope, but not too near to an end point
            bend = fun - now.fun - t * slope
            guess = -slope * t**2 / (2 * bend) if bend > 0 else low
            t = min(max(guess, low + 0.1 * (high - low)), low + 0.5 * (high - low))
        else:
            t = (low + high) / 2
        if t * float(np.abs(direction).max()) <= 1e-16 * float(np.abs(now.w).max()):
            break
    return best
