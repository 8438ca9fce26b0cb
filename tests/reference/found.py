"""Stochastic sliding without given constants: the epochs of NCGS-VR and NCGS-SPIDER, and the L of momentum NCGS."""

import numpy as np


def first_curvature(grad, lmo, x0):
    """|grad(x0 + d) - grad(x0)| / |d| for a short d towards a vertex, and not so small that a step is longer than the set."""
    g = grad(x0)
    d = 1e-3 * (lmo(g) - x0)
    length = np.linalg.norm(d)
    return max(np.linalg.norm(grad(x0 + d) - g), 1e-3 * np.linalg.norm(g)) / length


def epochs(value, term_grad, n, project, lmo, x0, m, b, T, seed, recursive):
    """x_0 .. x_T, the L and the step size of each step. After a good epoch the step grows by a half; a bad one is undone."""
    full = lambda x: sum(term_grad(x, i) for i in range(n)) / n  # noqa: E731
    x, Ls, lams = [np.array(x0, dtype=float)], [], []
    L = first_curvature(full, lmo, x[0])
    lam, start, way, last, g, v = 1 / (3 * L), None, 0.0, None, None, None
    for k in range(1, T + 1):
        now, rng = x[-1], np.random.default_rng((seed, k))
        begins = (k - 1) % m == 0
        if begins:
            before = start
            if start is not None and value(now) <= value(start) - 0.1 * way / lam:
                lam = 1.5 * lam
            elif start is not None:
                now, lam = start, lam / 2
            start, way, g = now, 0.0, full(now)
            if before is not None and np.any(before != start):
                L = max(L, np.linalg.norm(g - full(before)) / np.linalg.norm(start - before))
        if recursive and begins:
            v = g
        else:
            I = rng.integers(n, size=b)
            anchor, at_anchor = (last, v) if recursive else (start, g)
            v = sum(term_grad(now, i) - term_grad(anchor, i) for i in I) / b + at_anchor
        last = now
        x.append(project(now - lam * v))
        way += np.sum((x[-1] - now) ** 2)
        Ls.append(L)
        lams.append(lam)
    return x, Ls, lams


def probing(mean_grad, project, step, L, seed, samples, found):
    """move(x, v, k) with the step size step(k)/L; where k is probed, L grows until samples show no larger curvature."""
    found.append(L)

    def move(x, v, k):
        L = found[-1]
        batch = samples(16, np.random.default_rng((seed, k, 7)))
        while True:
            y = project(x - step(k) / L * v)
            seen = np.linalg.norm(mean_grad(y, batch) - mean_grad(x, batch)) / max(np.linalg.norm(y - x), 1e-300)
            if k % max(k // 8, 1) or seen <= L:
                found.append(L)
                return y
            L = max(2 * L, seen)

    return move
