"""Fully corrective Frank-Wolfe with approximate corrections by steps between two atoms, and short steps. Returns x_0 .. x_N.

S is a list of pairs [weight, atom], which begins with x_0.
"""

import numpy as np
from tests.reference.away_steps import inner, put, step_size


def run(grad, lmo, x0, N, L, theta):
    x, S, Phi, calls = [np.array(x0, dtype=float)], [[1.0, np.array(x0, dtype=float)]], 0.0, 0
    for t in range(N):
        x_t, g = x[t], grad(x[t])
        a = max(S, key=lambda pair: inner(g, pair[1]))
        b = min(S, key=lambda pair: inner(g, pair[1]))
        if inner(g, a[1]) - inner(g, b[1]) > theta * Phi:
            d, most = b[1] - a[1], a[0]
            gamma = step_size(d, g, L, most)
            a[0], b[0] = 0.0 if gamma == most else a[0] - gamma, b[0] + gamma
        else:
            s, calls = lmo(g), calls + 1
            d, Phi = s - x_t, max(inner(g, x_t - s), 0.0)
            gamma = step_size(d, g, L, 1.0)
            for pair in S:
                pair[0] *= 1 - gamma
            put(S, s, gamma)
        S = [pair for pair in S if pair[0] > 0]
        x.append(x_t + gamma * d)
    return x, calls


def walk(example, steps, seed, share=0.5):
    f = example.objective
    return {"x": run(f.grad, example.domain.lmo, example.x0, steps, f.smoothness, share)[0]}


WALKS = {"fully-corrective": (walk, [{}, {"share": 0.1}])}
