"""The prox step of the paper: Algorithm 2 (condg), and the exact one, psi."""

import numpy as np


def condg(lmo, l, u, lam, accurate, max_calls=None):
    """Algorithm 2, u+ = condg(l, u, lambda, eta): Frank-Wolfe on <l, x> + |x - u|^2 / (2 lambda), started at u.

    V(u_t) = max_x <l + (u_t - u)/lambda, u_t - x>. It ends when accurate(V(u_t), |u_t - u|^2 / lambda) is true (line 3:
    V(u_t) <= eta), or after max_calls (at least one) oracle calls and as many steps, where V(u_t) is not known. Returns
    (u_t, V(u_t) or None, calls).
    """
    u_t = u
    t = 1
    while True:
        direction = l + (u_t - u) / lam
        v_t = lmo(direction)
        V = np.sum(direction * (u_t - v_t))
        if accurate(V, np.sum((u_t - u) ** 2) / lam):
            return u_t, V, t
        length = np.sum((v_t - u_t) ** 2)
        # v_t = u_t means V(u_t) = 0: line 4 would be 0/0, and every xi_t leaves u_t where it is.
        xi_t = min(1.0, lam * V / length) if length > 0 else 0.0
        u_t = (1 - xi_t) * u_t + xi_t * v_t
        if t == max_calls:
            return u_t, None, t
        t = t + 1


def wolfe_gap(lmo, l, u, lam, p):
    """V(p) = max_x <l + (p - u)/lambda, p - x>, of the prox subproblem with centre u."""
    direction = l + (p - u) / lam
    return np.sum(direction * (p - lmo(direction)))
