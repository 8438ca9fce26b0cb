"""BFGS over the simplex, flat: the model is minimised by trying all supports, and B is updated by its formula."""

from __future__ import annotations

from itertools import combinations
from math import inf

import numpy as np


def model_minimiser(g, B, w):
    """The weights v that minimise <g, v - w> + (v - w)'B (v - w)/2: the best stationary point of all supports."""
    n, best, lowest = len(w), w, 0.0
    for size in range(1, n + 1):
        for some in map(list, combinations(range(n), size)):
            # B v = B w - g + level on the support, and the sum of v is 1
            K = np.block([[B[np.ix_(some, some)], np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            found = np.linalg.lstsq(K, np.append((B @ w - g)[some], 1.0), rcond=None)[0][:-1]
            v = np.zeros(n)
            v[some] = found
            fall = g @ (v - w) + (v - w) @ B @ (v - w) / 2
            if v.min() >= -1e-12 and fall < lowest:
                best, lowest = v, fall
    return best


def iterates(F, gradient, w, B, steps):
    """The weights after each step."""
    for _ in range(steps):
        g = gradient(w)
        to = model_minimiser(g, B, w)
        slope, t = g @ (to - w), 1.0
        while F(w + t * (to - w)) > F(w) + 1e-4 * t * slope:
            bend = F(w + t * (to - w)) - F(w) - t * slope
            t = min(max(-slope * t**2 / (2 * bend) if bend < inf else t / 2, 0.1 * t), 0.5 * t)
        new = w + t * (to - w)
        s, y = new - w, gradient(new) - g
        if s @ y > 1e-8 * (s @ B @ s):
            B = B + np.outer(y, y) / (s @ y) - np.outer(B @ s, B @ s) / (s @ B @ s)
        w = new
        yield w
