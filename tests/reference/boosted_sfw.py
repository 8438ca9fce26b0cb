"""Boosted stochastic Frank-Wolfe with batches of b samples. Step k draws from default_rng((seed, k)); x_0 .. x_N."""

from math import sqrt

import numpy as np
from tests.reference.boosted import direction, inner


def run(draw, sample_grads, lmo, x0, t, L, b, K, delta, N, seed):
    x = [np.array(x0, dtype=float)]
    for k in range(1, N + 1):
        v = np.mean(sample_grads(x[-1], draw(b(k), np.random.default_rng((seed, k)))), axis=0)
        model = lambda g, v=v, k=k: t(k) * inner(v, g) + t(k) ** 2 * L / 2 * inner(g, g)  # noqa: E731
        towards, boosted = lmo(v) - x[-1], direction(v, lmo, x[-1], K, delta)
        x.append(x[-1] + t(k) * (boosted if boosted.any() and model(boosted) <= model(towards) else towards))
    return x


def walk(example, steps, seed, theory, batch=None, rounds=10, delta=1e-3, initial_gap=2.0):
    f, D, n = example.objective, example.domain.diameter, getattr(example.objective, "n_terms", None)
    draw, grads = f.draw, example.sample_grads
    if n:
        draw = lambda size, rng: rng.integers(n, size=size)  # noqa: E731
        grads = lambda x, I: np.array([example.term_grad(x, i) for i in I])  # noqa: E731
    b = lambda k: batch or (steps if theory else k)  # noqa: E731
    t = lambda k: min(1.0, sqrt(initial_gap / (f.smoothness * D**2 * (steps if theory else k))))  # noqa: E731
    return {"x": run(draw, grads, example.domain.lmo, example.x0, t, f.smoothness, b, rounds, delta, steps, seed)}


WALKS = {
    "boosted-sfw": (walk, [{"initial_gap": 2.0}, {"batch": 5, "rounds": 3, "delta": 0.02, "initial_gap": 300.0}]),
}
