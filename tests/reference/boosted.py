"""Boosted Frank-Wolfe (Combettes and Pokutta 2020, Algorithm 2), with short steps; x_0 .. x_N."""

import numpy as np


def inner(x, y):
    return float(np.sum(x * y))


def align(d, e):
    return -1.0 if not e.any() else inner(d, e) / np.sqrt(inner(d, d) * inner(e, e))


def direction(grad, lmo, x, K, delta):
    """g of one step."""
    down, d, Lambda = -grad, np.zeros_like(x), 0.0
    for _ in range(K):
        r = down - d
        v = lmo(-r)
        u = v - x
        if d.any() and inner(r, -d) / np.sqrt(inner(d, d)) > inner(r, u):
            u = -d / np.sqrt(inner(d, d))  # alignment stays as it is, so this ends the rounds
        if inner(u, u) == 0 or inner(r, u) <= 0:
            break
        lam = inner(r, u) / inner(u, u)
        if align(down, d + lam * u) - align(down, d) < delta:
            break
        d, Lambda = d + lam * u, Lambda + lam
    return d / Lambda if Lambda > 0 else d


def promise(grad, g, L):
    t = (
        min(1.0, -inner(grad, g) / (L * inner(g, g))) if inner(grad, g) < 0 else 0.0
    )  # at a vertex rounding decides its sign
    return -t * inner(grad, g) - L / 2 * t**2 * inner(g, g), t


def run(grad, lmo, x0, N, L, K, delta):
    x = [np.array(x0, dtype=float)]
    for _ in range(N):
        x_k = x[-1]
        g_k = grad(x_k)
        towards, boosted = lmo(g_k) - x_k, direction(g_k, lmo, x_k, K, delta)
        g = boosted if promise(g_k, boosted, L)[0] >= promise(g_k, towards, L)[0] else towards
        x.append(x_k + promise(g_k, g, L)[1] * g)
    return x


def walk(example, steps, seed, rounds=10, delta=1e-3):
    f = example.objective
    return {"x": run(f.grad, example.domain.lmo, example.x0, steps, f.smoothness, rounds, delta)}


WALKS = {"boosted-frank-wolfe": (walk, [{}, {"rounds": 2}, {"rounds": 3, "delta": 0.05}])}
