"""Algorithm 4, variance reduced non-convex conditional gradient sliding (NCGS-VR), for the finite sum (4)."""

import numpy as np


def run(term_grad, n, prox, theta0, lam, m, b, T, seed):
    """Algorithm 4 for T inner steps in all; returns theta_0 .. theta_T.

    Step k = s m + t + 1 makes theta_{t+1}^{s+1} out of theta_t^{s+1}; t = 0 begins an epoch. I_t comes from
    default_rng((seed, k)), with replacement. prox(l, u, lam, k) stands for condg(l, u, lam, eta_k).
    """
    theta = [np.array(theta0, dtype=float)]
    for k in range(1, T + 1):
        theta_t = theta[k - 1]
        if (k - 1) % m == 0:
            snapshot = theta_t
            g = sum(term_grad(snapshot, i) for i in range(n)) / n
        I_t = np.random.default_rng((seed, k)).integers(n, size=b)
        v_t = sum(term_grad(theta_t, i) - term_grad(snapshot, i) for i in I_t) / b + g
        theta.append(prox(v_t, theta_t, lam, k))
    return theta
