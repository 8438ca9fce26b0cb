"""Stochastic Frank-Wolfe with clipped momentum. All of step k's randomness comes from default_rng((seed, k)); x_0 .. x_N."""

from math import sqrt

import numpy as np
from tests.reference.transport import parts


def run(draw, sample_grads, lmo, x0, t, r, level, b, N, seed):
    x, v = [np.array(x0, dtype=float)], None
    for k in range(1, N + 1):
        g = np.mean(sample_grads(x[k - 1], draw(b, np.random.default_rng((seed, k)))), axis=0)
        g = g * min(1.0, level(k) / np.linalg.norm(g))
        v = g if k == 1 else (1 - r(k)) * v + r(k) * g
        x.append(x[k - 1] + t(k) * (lmo(v) - x[k - 1]))
    return x


def walk(example, steps, seed, theory, batch=1, level=None, tail=2.0, initial_gap=None):
    draw, sample_grads, _, _ = parts(example, steps, theory, initial_gap)
    scale = sqrt(initial_gap / (example.objective.smoothness * example.domain.diameter**2))
    T = (lambda k: steps) if theory else (lambda k: k + 8)
    if level is None:
        first = draw(16, np.random.default_rng((seed, 0, 3)))
        level = 2 * np.median([np.linalg.norm(g) for g in sample_grads(example.x0, first)])
    q = 1 / (3 * tail - 2)
    return {
        "x": run(
            draw,
            sample_grads,
            example.domain.lmo,
            example.x0,
            lambda k: min(1.0, scale * T(k) ** (-(2 * tail - 1) * q)),
            lambda k: T(k) ** (-tail * q),
            lambda k: level * T(k) ** q,
            batch,
            steps,
            seed,
        )
    }


WALKS = {
    "clipped-sfw": (
        walk,
        [{"initial_gap": 2.0}, {"batch": 5, "level": 0.1, "initial_gap": 2.0}, {"tail": 1.4, "initial_gap": 2.0}],
    )
}
