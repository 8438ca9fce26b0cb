"""DCA-FW: phi(x) = F(x) + g(x) - <grad g(a), x> by Frank-Wolfe with short steps, until its gap is theta Phi; x_0 .. x_N."""

import numpy as np


def run(grad, grad_g, lmo, x0, N, L, theta):
    """``L`` is a smoothness of F + g."""
    x, a, Phi, moves = [np.array(x0, dtype=float)], None, 0.0, 0
    for k in range(N):
        x_k = x[k]
        if a is not None:
            G = grad(x_k) + grad_g(x_k) - grad_g(a)
            s = lmo(G)
        if a is None or np.sum(G * (x_k - s)) <= theta * Phi:
            a, G, moves = x_k, grad(x_k), moves + 1
            s = lmo(G)
            Phi = max(np.sum(G * (x_k - s)), 0.0)
        d = s - x_k
        t = min(1.0, max(-np.sum(G * d), 0.0) / (L * np.sum(d**2))) if d.any() else 0.0
        x.append(x_k + t * d)
    return x, moves


def walk(example, steps, seed, share=0.5):
    f = example.objective
    l = getattr(f, "lower_smoothness", None)
    l = f.smoothness if l is None else l
    return {"x": run(f.grad, lambda x: l * x, example.domain.lmo, example.x0, steps, f.smoothness + l, share)[0]}


WALKS = {"dca-frank-wolfe": (walk, [{}, {"share": 0.05}])}
