"""Momentum SFW, one-sample SFW and momentum NCGS: v is a moving average of sample gradients, or STORM's recursion.

All of step k's randomness comes from default_rng((seed, k)). Returns x_0 .. x_N.
"""

import numpy as np


def run(draw, sample_grads, move, x0, r, b, first, N, seed, recursive):
    x = [np.array(x0, dtype=float)]
    for k in range(1, N + 1):
        batch = draw(first if k == 1 else b, np.random.default_rng((seed, k)))
        g = np.mean(sample_grads(x[k - 1], batch), axis=0)
        if k == 1:
            v = g
        elif recursive:
            v = g + (1 - r(k)) * (v - np.mean(sample_grads(x[k - 2], batch), axis=0))
        else:
            v = (1 - r(k)) * v + r(k) * g
        x.append(move(x[k - 1], v, k))
    return x
