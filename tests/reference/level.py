"""Level conditional gradient, flat and dense: yields (x, l) after each step."""

import numpy as np


def run(f, grad_f, hs, grad_hs, lmo, x0, steps):
    x = np.array(x0, dtype=float)
    g = grad_f(x)
    l = f(x) - g @ (x - lmo(g))
    M = None
    out = [(x, l)]

    def P(y):
        return (max(f(y) - l, 0) ** 2 + sum(max(h(y), 0) ** 2 for h in hs)) / 2

    for _ in range(steps):
        a, c = max(f(x) - l, 0.0), [max(h(x), 0.0) for h in hs]
        g = a * grad_f(x) + sum(c_i * grad_h(x) for c_i, grad_h in zip(c, grad_hs, strict=True))
        s = lmo(g)
        gap = g @ (x - s)
        if a > 0 and gap <= P(x) / 2:
            l = l + (2 * P(x) - gap) / a
        else:
            d = s - x
            M = gap / (d @ d) if M is None else M
            while True:
                t = min(1.0, gap / (M * (d @ d)))
                if P(x + t * d) <= P(x) - t * gap + M / 2 * t**2 * (d @ d) + 2e-12 * P(x):
                    break
                M = 2 * M
            x, M = x + t * d, 0.9 * M
        out.append((x, l))
    return out
