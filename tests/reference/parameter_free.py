"""Frank-Wolfe without L, line search or repeated steps; x_0 .. x_N, and the steps whose curvature was above 2 M."""

import numpy as np


def run(F, grad, lmo, x0, N, M=None):
    x, bad = [np.array(x0, dtype=float)], []
    if M is None:
        g = grad(x[0])
        d = 1e-3 * (lmo(g) - x[0])
        length = np.sqrt(np.sum(d**2))
        quotient = np.sqrt(np.sum((grad(x[0] + d) - g) ** 2)) / length if length else 1.0
        M = max(quotient, 1e-3 * np.sqrt(np.sum(g**2)) / length) if length else 1.0
    for k in range(N):
        x_k = x[k]
        g = grad(x_k)
        d = lmo(g) - x_k
        gap, d2 = max(-np.sum(g * d), 0.0), np.sum(d**2)
        if d2 == 0:
            x.append(x_k)
            continue
        t = min(1.0, gap / (2 * M * d2))
        x.append(x_k + t * d)
        before, after = F(x_k), F(x[k + 1])
        if 2 * (after - before + t * gap) > 2 * M * t**2 * d2 + 2e-12 * (abs(before) + abs(after) + t * gap):
            M = 2 * (after - before + t * gap) / (t**2 * d2)
            bad.append(k)
    return x, bad


def walk(example, steps, seed, first=None):
    f = example.objective
    return {"x": run(f.value, f.grad, example.domain.lmo, example.x0, steps, first)[0]}


WALKS = {"parameter-free-frank-wolfe": (walk, [{}, {"first": 1e-3}])}
