"""Stochastic Frank-Wolfe with implicit gradient transport. All of step k's randomness comes from default_rng((seed, k))."""

from math import sqrt

import numpy as np


def run(draw, sample_grads, lmo, x0, t, r, b, N, seed):
    x, points = [np.array(x0, dtype=float)], [np.array(x0, dtype=float)]
    for k in range(1, N + 1):
        batch = draw(b, np.random.default_rng((seed, k)))
        if k == 1:
            v = np.mean(sample_grads(x[0], batch), axis=0)
        else:
            y = x[k - 2] + (x[k - 1] - x[k - 2]) / r(k)
            points.append(y)
            v = (1 - r(k)) * v + r(k) * np.mean(sample_grads(y, batch), axis=0)
        x.append(x[k - 1] + t(k) * (lmo(v) - x[k - 1]))
    return x, points


def parts(example, steps, theory, initial_gap):
    """draw, sample_grads, t and r."""
    f, D = example.objective, example.domain.diameter
    draw, sample_grads = f.draw, example.sample_grads
    if sample_grads is None:
        draw = lambda size, rng: rng.integers(f.n_terms, size=size)  # noqa: E731
        sample_grads = lambda x, I: np.array([example.term_grad(x, i) for i in I])  # noqa: E731
    tau = min(1.0, sqrt(initial_gap / (f.smoothness * D**2)))
    T = (lambda k: steps) if theory else (lambda k: k + 8)
    return draw, sample_grads, lambda k: tau * T(k) ** (-5 / 7), lambda k: T(k) ** (-4 / 7)


def walk(example, steps, seed, theory, batch=1, initial_gap=None):
    draw, sample_grads, t, r = parts(example, steps, theory, initial_gap)
    return {"x": run(draw, sample_grads, example.domain.lmo, example.x0, t, r, batch, steps, seed)[0]}


WALKS = {"igt-sfw": (walk, [{"initial_gap": 2.0}, {"batch": 5, "initial_gap": 300.0}])}
