"""Conditional gradient sliding for convex F (Lan and Zhou 2016), and its restarts for strongly convex F.

prox(l, u, lam, eta) -> point stands for condg(l, u, lam, eta). Index k of a list is the value after k steps.
"""

import math

import numpy as np


def cgs(grad, prox, x0, L, D, N):
    """CGS (Lan and Zhou 2016): g_k = 3/(k+2), b_k = 3L/(k+1), e_k = L D^2/(k(k+1)).

    z = (1 - g_k) y + g_k x;  x = condg(grad F(z), x, 1/b_k, e_k);  y = (1 - g_k) y + g_k x
    """
    x = [np.array(x0, dtype=float)]
    y = [np.array(x0, dtype=float)]
    z = [None]
    for k in range(1, N + 1):
        g_k = 3 / (k + 2)
        b_k = 3 * L / (k + 1)
        e_k = L * D**2 / (k * (k + 1))
        z_k = (1 - g_k) * y[k - 1] + g_k * x[k - 1]
        x_k = prox(grad(z_k), x[k - 1], 1 / b_k, e_k)
        y_k = (1 - g_k) * y[k - 1] + g_k * x_k
        z.append(z_k)
        x.append(x_k)
        y.append(y_k)
    return {"x": x, "y": y, "z": z}


def cgs_restarted(grad, prox, x0, L, mu, delta0, phases):
    """CGS in phases (Lan and Zhou 2016), F mu-strongly convex, delta0 >= F(x0) - F*.

    Phase s = 1, 2, .. runs N = ceil(2 sqrt(6 L / mu)) steps with g_k = 2/(k+1), b_k = 2L/k and
    e_{s,k} = 8 L delta0 2^-s / (mu N k); x and y both start at the last phase's y. The lists run through all phases, so
    phase s holds entries (s - 1) N + 1 to s N; the restart itself (x moved to y) has no entry.
    """
    x = [np.array(x0, dtype=float)]
    y = [np.array(x0, dtype=float)]
    z = [None]
    N = math.ceil(2 * math.sqrt(6 * L / mu))
    for s in range(1, phases + 1):
        x_k = y[-1]
        y_k = y[-1]
        for k in range(1, N + 1):
            g_k = 2 / (k + 1)
            b_k = 2 * L / k
            e_k = 8 * L * delta0 * 2**-s / (mu * N * k)
            z_k = (1 - g_k) * y_k + g_k * x_k
            x_k = prox(grad(z_k), x_k, 1 / b_k, e_k)
            y_k = (1 - g_k) * y_k + g_k * x_k
            z.append(z_k)
            x.append(x_k)
            y.append(y_k)
    return {"x": x, "y": y, "z": z}
