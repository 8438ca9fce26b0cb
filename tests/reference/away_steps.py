"""Frank-Wolfe with an active set, with short steps: away-step and pairwise (Lacoste-Julien and Jaggi 2015), and blended pairwise
(Tsuji, Tanaka and Pokutta 2022).

S is a list of pairs [weight, atom], which begins with x_0. Each function returns x_0 .. x_N.
"""

import numpy as np


def inner(x, y):
    return float(np.sum(x * y))


def put(S, s, weight):
    """Add weight to the atom s of S, which may be new."""
    for pair in S:
        if np.array_equal(pair[1], s):
            pair[0] += weight
            return
    S.append([weight, s])


def step_size(d, g, L, gamma_max):
    """min(gamma_max, <-g, d> / (L |d|^2))"""
    d2 = inner(d, d)
    return min(gamma_max, -inner(g, d) / (L * d2)) if d2 > 0 else 0.0


def run(name, grad, lmo, x0, N, L):
    x, S = [np.array(x0, dtype=float)], [[1.0, np.array(x0, dtype=float)]]
    for t in range(N):
        x_t, g = x[t], grad(x[t])
        s = lmo(g)
        v = max(S, key=lambda pair: inner(g, pair[1]))
        local = min(S, key=lambda pair: inner(g, pair[1]))[1]
        g_FW, g_A = inner(g, x_t - s), inner(g, v[1] - x_t)
        if name == "away-step":
            move = "towards" if g_FW >= g_A or v[0] >= 1 else "away"
        elif name == "pairwise":
            move = "exchange"
        else:
            s, move = (local, "exchange") if inner(g, v[1] - local) >= g_FW else (s, "towards")
        if move == "towards":
            d, gamma_max = s - x_t, 1.0
        elif move == "away":
            d, gamma_max = x_t - v[1], v[0] / (1 - v[0])
        else:
            d, gamma_max = s - v[1], v[0]
        gamma = step_size(d, g, L, gamma_max)
        for pair in S:
            pair[0] *= {"towards": 1 - gamma, "away": 1 + gamma, "exchange": 1.0}[move]
        if move != "towards":
            v[0] = 0.0 if gamma == gamma_max else v[0] - gamma
        if move != "away":
            put(S, s, gamma)
        S = [pair for pair in S if pair[0] > 0]
        x.append(x_t + gamma * d)
    return x


def walk_of(name):
    def walk(example, steps, seed):
        f, domain = example.objective, example.domain
        return {"x": run(name, f.grad, domain.lmo, example.x0, steps, f.smoothness)}

    return walk


WALKS = {name: (walk_of(name), [{}]) for name in ("away-step", "pairwise", "blended-pairwise")}
