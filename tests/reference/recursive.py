"""SPIDER-FW, SARAH-FW, ZeroSARAH-FW and NCGS-SPIDER: one loop, with the estimate and the move written out.

All of step k's randomness comes from default_rng((seed, k)). Each returns x_0 .. x_N.
"""

from math import ceil, sqrt

import numpy as np


def spider(term_grad, n, move, x0, m, b, N, seed, random=False):
    """v = mean over I of (grad f_i(x) - grad f_i(x_previous)) + v; a restart at grad F every m steps, or by chance 1/m."""
    x = [np.array(x0, dtype=float)]
    for k in range(1, N + 1):
        rng = np.random.default_rng((seed, k))
        restart = rng.random() < 1 / m if random else (k - 1) % m == 0
        if k == 1 or restart:
            v = sum(term_grad(x[k - 1], i) for i in range(n)) / n
        else:
            I_k = rng.integers(n, size=b)
            v = v + sum(term_grad(x[k - 1], i) - term_grad(x[k - 2], i) for i in I_k) / b
        x.append(move(x[k - 1], v, k))
    return x


def zero_sarah(term_grad, n, move, x0, b, N, seed):
    """ZeroSARAH with lambda = b/(2n), 1 in the first step; x_{-1} = x_0, v_{-1} = 0 and y = 0."""
    x = [np.array(x0, dtype=float)]
    v, y = np.zeros_like(x[0]), [np.zeros_like(x[0]) for _ in range(n)]
    for k in range(1, N + 1):
        lam = 1.0 if k == 1 else b / (2 * n)
        new, old = x[k - 1], x[max(k - 2, 0)]
        I_k = np.random.default_rng((seed, k)).permutation(n)[:b]
        change = sum(term_grad(new, i) - term_grad(old, i) for i in I_k) / b
        saga = sum(term_grad(old, i) - y[i] for i in I_k) / b + sum(y) / n
        v = change + (1 - lam) * v + lam * saga
        for i in I_k:
            y[i] = term_grad(new, i)
        x.append(move(new, v, k))
    return x


def towards_vertex(example, steps, theory, initial_gap, factor):
    """x + t (lmo(v) - x) with t = sqrt(h_0/(C D^2 T)), C = factor K + L/2; in practice C = L and k for T."""
    f, D = example.objective, example.domain.diameter
    h0 = initial_gap
    if h0 is None and f.lower_bound is not None:
        h0 = f.value(example.x0) - f.lower_bound
    elif h0 is None:
        g = f.grad(example.x0)
        h0 = np.sum(g * (example.x0 - example.domain.lmo(g))) + f.smoothness * D**2 / 2
    C = factor * (f.mean_square_smoothness or f.term_smoothness) + f.smoothness / 2 if theory else f.smoothness

    def move(x, v, k):
        t = min(1.0, sqrt(h0 / (C * D**2)) / sqrt(steps if theory else k))
        return x + t * (example.domain.lmo(v) - x)

    return move


def walk_spider(example, steps, seed, theory, epoch=None, batch=None, initial_gap=None):
    n = example.objective.n_terms
    root = ceil(sqrt(n) - 1e-9)
    move = towards_vertex(example, steps, theory, initial_gap, 1.0)
    return {"x": spider(example.term_grad, n, move, example.x0, epoch or root, batch or root, steps, seed)}


def walk_sarah(example, steps, seed, theory, epoch=None, batch=None, initial_gap=None):
    n = example.objective.n_terms
    b = batch or ceil(sqrt(n) - 1e-9)
    move = towards_vertex(example, steps, theory, initial_gap, 1.0)
    return {"x": spider(example.term_grad, n, move, example.x0, epoch or b + 1, b, steps, seed, random=True)}


def walk_zero_sarah(example, steps, seed, theory, batch=None, initial_gap=None):
    n = example.objective.n_terms
    move = towards_vertex(example, steps, theory, initial_gap, sqrt(24))
    return {"x": zero_sarah(example.term_grad, n, move, example.x0, batch or ceil(sqrt(n) - 1e-9), steps, seed)}


SIZES = [{}, {"epoch": 4, "batch": 3, "initial_gap": 2.0}]
WALKS = {
    "spider-fw": (walk_spider, SIZES),
    "sarah-fw": (walk_sarah, SIZES),
    "zero-sarah-fw": (walk_zero_sarah, [{}, {"batch": 5, "initial_gap": 2.0}]),
}
