"""Acc-SZOFW and Acc-SZOFW* (Huang, Tao and Chen 2020), from t = 0; z_0 .. z_T. Step t draws from default_rng((seed, t + 1))."""

from math import ceil, sqrt

import numpy as np


def run(estimate, lmo, x0, eta, T):
    x, y, z = np.array(x0, dtype=float), np.array(x0, dtype=float), [np.array(x0, dtype=float)]
    for t in range(T):
        w = lmo(estimate(z, t))
        gamma = (1 + 1 / ((t + 1) * (t + 2))) * eta(t)
        x = x + gamma * (w - x)
        y = z[-1] + eta(t) * (w - z[-1])
        alpha = 1 / (t + 2)  # alpha_{t+1} = 1/(t + 2)
        z.append((1 - alpha) * y + alpha * x)
    return z


def spider(term_grad, n, q, b, seed):
    last = {}

    def estimate(z, t):
        if t % q == 0:
            last["v"] = sum(term_grad(z[-1], i) for i in range(n)) / n
        else:
            I = np.random.default_rng((seed, t + 1)).integers(n, size=b)
            last["v"] = last["v"] + sum(term_grad(z[-1], i) - term_grad(z[-2], i) for i in I) / b
        return last["v"]

    return estimate


def storm(draw, sample_grads, rho, b, first, seed):
    last = {}

    def estimate(z, t):
        batch = draw(first if t == 0 else b, np.random.default_rng((seed, t + 1)))
        g = np.mean(sample_grads(z[-1], batch), axis=0)
        old = 0 if t == 0 else (1 - rho(t)) * (last["v"] - np.mean(sample_grads(z[-2], batch), axis=0))
        last["v"] = g + old
        return last["v"]

    return estimate


def walk_spider(example, steps, seed, theory, epoch=None, batch=None, initial_gap=2.0):
    f, D, n = example.objective, example.domain.diameter, example.objective.n_terms
    root = ceil(sqrt(n) - 1e-9)
    C = 1.35 * (f.mean_square_smoothness or f.term_smoothness) + 0.92 * f.smoothness if theory else f.smoothness
    eta = lambda t: min(2 / 3, sqrt(initial_gap / (C * D**2 * (steps if theory else t + 1))))  # noqa: E731
    estimate = spider(example.term_grad, n, epoch or root, batch or root, seed)
    return {"x": run(estimate, example.domain.lmo, example.x0, eta, steps)}


def walk_storm(example, steps, seed, theory, batch=1, sample=None, initial_gap=2.0):
    f, D, n = example.objective, example.domain.diameter, getattr(example.objective, "n_terms", None)
    draw, grads = f.draw, example.sample_grads
    if n:
        draw = lambda size, rng: rng.integers(n, size=size)  # noqa: E731
        grads = lambda x, I: np.array([example.term_grad(x, i) for i in I])  # noqa: E731
    L = f.term_smoothness if theory and n else f.smoothness
    T = lambda t: steps if theory else t + 9  # noqa: E731
    eta = lambda t: min(2 / 3, sqrt(initial_gap / (L * D**2)) * T(t) ** (-2 / 3))  # noqa: E731
    first = max(batch, sample or ceil(steps ** (1 / 3)))
    estimate = storm(draw, grads, lambda t: T(t) ** (-2 / 3), batch, first, seed)
    return {"x": run(estimate, example.domain.lmo, example.x0, eta, steps)}


WALKS = {
    "acc-szofw": (walk_spider, [{"initial_gap": 2.0}, {"epoch": 4, "batch": 3, "initial_gap": 300.0}]),
    "acc-szofw-star": (walk_storm, [{"initial_gap": 2.0}, {"batch": 3, "sample": 20, "initial_gap": 300.0}]),
}
