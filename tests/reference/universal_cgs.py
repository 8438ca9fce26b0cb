"""Universal conditional gradient sliding. prox(l, u, lam, eta) stands for condg; index k of a list is the value after k steps."""

import math

import numpy as np


def run(f, grad, lmo, prox, x0, M, eta, N):
    x, y, z, lower = [np.array(x0, dtype=float)], [np.array(x0, dtype=float)], [None], [-math.inf]
    weights, minorants = [], []
    for _ in range(N):
        A = sum(weights)
        while True:
            a = max(np.roots([2 * M, -1.0, -A]))
            g = a / (A + a)
            z_k = (1 - g) * y[-1] + g * x[-1]
            g_k = grad(z_k)
            x_k = prox(g_k, x[-1], a, eta)
            y_k = (1 - g) * y[-1] + g * x_k
            d = y_k - z_k
            rises = f(y_k) - f(z_k) - np.sum(g_k * d)
            if rises <= M / 2 * np.sum(d**2) + 1e-12 * (abs(f(y_k)) + abs(f(z_k))):
                break
            M = 2 * M
        weights.append(a)
        minorants.append((f(z_k) - np.sum(g_k * z_k), g_k))
        offset = sum(w * m[0] for w, m in zip(weights, minorants, strict=True))
        slope = sum(w * m[1] for w, m in zip(weights, minorants, strict=True))
        x, y, z = [*x, x_k], [*y, y_k], [*z, z_k]
        lower.append(max(lower[-1], (offset + np.sum(slope * lmo(slope))) / sum(weights)))
        noise = 1e-12 * (abs(f(y_k)) + abs(f(z_k)) + abs(np.sum(g_k * d)))
        if 0 < 2 * (rises + noise) <= M / 4 * np.sum(d**2):
            M = M / 2
    return {"x": x, "y": y, "z": z, "lower": lower}


def first_curvature(grad, lmo, x0):
    """The curvature between x_0 and a point near it, and at least a thousandth of |grad F(x_0)| over their distance."""
    g = grad(x0)
    d = 1e-3 * (lmo(g) - x0)
    return max(np.linalg.norm(grad(x0 + d) - g), 1e-3 * np.linalg.norm(g)) / np.linalg.norm(d)
