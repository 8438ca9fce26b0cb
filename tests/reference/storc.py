"""STORC (Hazan and Luo 2016). prox(v, x, lam, eta) stands for condg. Step k draws from default_rng((seed, k))."""

import math

import numpy as np


def storc(term_grad, n, prox, w0, L, N_of, m_of, D2_of, T, seed):
    """N_of(t), m_of(t, k), D2_of(t) = D_t^2; index k of a list is the value after k steps in all."""
    grad = lambda x: sum(term_grad(x, i) for i in range(n)) / n  # noqa: E731
    w, t, ys, xs = np.array(w0, dtype=float), 0, [None], [None]
    while len(ys) <= T:
        t += 1
        x, y, at_w = w, w, grad(w)
        for k in range(1, N_of(t) + 1):
            g, b, m = 2 / (k + 1), 3 * L / k, m_of(t, k)
            z = (1 - g) * y + g * x
            if m >= n:
                v = grad(z)
            else:
                I = np.random.default_rng((seed, len(ys))).integers(n, size=m)
                v = sum(term_grad(z, i) - term_grad(w, i) for i in I) / m + at_w
            x = prox(v, x, 1 / b, 2 * L * D2_of(t) / (N_of(t) * k))
            y = (1 - g) * y + g * x
            xs.append(x)
            ys.append(y)
        w = y
    return {"x": xs, "y": ys}


def sizes(example, theory, L, alpha, batch):
    """w_0, N_t, m_{t,k} and D_t^2."""
    f, D, x0 = example.objective, example.domain.diameter, example.x0
    N = (lambda t: math.ceil(math.sqrt(32 * L / alpha))) if alpha else (lambda t: math.ceil(round(2 ** (t / 2 + 2), 9)))
    G = np.linalg.norm(f.grad(x0)) + f.smoothness * D
    if batch:
        m = lambda t, k: batch  # noqa: E731
    elif not theory:
        m = lambda t, k: N(t)  # noqa: E731
    elif alpha:
        m = lambda t, k: 5600 * N(t) * L / alpha  # noqa: E731
    else:
        m = lambda t, k: 700 * N(t) + 24 * N(t) * G * (k + 1) / (L * D)  # noqa: E731
    w0 = example.domain.lmo(f.grad(x0)) if theory else x0
    return w0, N, m, lambda t: D**2 * (L / alpha / 2 ** (t - 1) if alpha else 1.0)
