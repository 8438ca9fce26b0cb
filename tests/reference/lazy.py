"""Lazy Frank-Wolfe (Braun, Pokutta and Zink 2017), with short steps. Returns x_0 .. x_N and how many vertices were asked for."""

import numpy as np


def run(grad, lmo, x0, N, L, K=2.0, limit=100):
    x, V, Phi, calls = [np.array(x0, dtype=float)], [], None, 0
    for k in range(N):
        x_k = x[k]
        g = grad(x_k)
        gap = lambda v, g=g, x_k=x_k: float(np.sum(g * (x_k - v)))  # noqa: E731
        s = max(V, key=gap) if V else None
        if s is None or gap(s) <= 0 or gap(s) < Phi / K:
            known, s = s, lmo(g)
            calls += 1
            if known is None or gap(s) > gap(known):
                V = [*V, s][-limit:]
            if Phi is None:
                Phi = gap(s)
            elif gap(s) < Phi / K:
                Phi = min(Phi / 2, max(gap(s), 0.0))
        d2 = np.sum((s - x_k) ** 2)
        t = min(1.0, max(gap(s), 0.0) / (L * d2)) if d2 > 0 else 0.0
        x.append(x_k + t * (s - x_k))
    return x, calls


def walk(example, steps, seed, factor=2.0, cache=100):
    f = example.objective
    return {"x": run(f.grad, example.domain.lmo, example.x0, steps, f.smoothness, factor, cache)[0]}


WALKS = {"lazy-frank-wolfe": (walk, [{}, {"factor": 1.2, "cache": 2}])}
