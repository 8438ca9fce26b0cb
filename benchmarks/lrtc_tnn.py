"""LRTC-TNN (Chen, Yang and Sun 2020), written flat from the paper, with its settings chosen on held-out entries.

Low-rank tensor completion with the truncated nuclear norm: for a tensor Y observed at Omega, minimise over X_1, X_2, X_3

    sum_k alpha_k |X_k(k)|_{r_k,*}  subject to  X_k = Z,  Z = Y at Omega,

by the alternating direction method of multipliers, with alpha_k = 1/3, r_k = ceil(theta times the length of axis k), a penalty
rho that grows by 1.05 in each iteration, and Z = 0 at first where nothing is observed. The rate theta and the first rho have the
smallest root mean squared error on a tenth of the observed entries, held out; then all observed entries are fitted.
"""

from __future__ import annotations

import numpy as np

RATES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""Candidates of theta, as in the paper."""
PENALTIES = (1e-5, 1e-4, 1e-3)
"""Candidates of the first rho, over the root mean square of the values: those of the paper are for values of one size."""
ITERATIONS, TOLERANCE = 200, 1e-4


def generalised_shrink(matrix: np.ndarray, tau: float, r: int) -> np.ndarray:
    """Reduce all singular values but the r largest by tau; for wide and tall matrices by the eigenvalues of the small side."""
    m, n = matrix.shape
    if m > n:
        return generalised_shrink(matrix.T, tau, r).T
    squares, u = np.linalg.eigh(matrix @ matrix.T)
    s = np.sqrt(np.maximum(squares, 0.0))
    factor = np.where(np.arange(m) >= m - r, 1.0, np.maximum(s - tau, 0.0) / np.maximum(s, 1e-300))
    return (u * factor) @ (u.T @ matrix)


def complete(Y: np.ndarray, seen: np.ndarray, rho: float, theta: float) -> np.ndarray:
    """The completed tensor, for values with root mean square 1."""
    X, T, Z = np.zeros((3, *Y.shape)), np.zeros((3, *Y.shape)), np.where(seen, Y, 0.0)
    last, norm = Z, np.linalg.norm(Z)
    for _ in range(ITERATIONS):
        rho = min(1.05 * rho, 1e5)
        for k in range(3):
            unfolded = np.moveaxis(Z - T[k] / rho, k, 0)
            r = int(np.ceil(theta * Y.shape[k]))
            small = generalised_shrink(unfolded.reshape(Y.shape[k], -1), 1 / 3 / rho, r)
            X[k] = np.moveaxis(small.reshape(unfolded.shape), 0, k)
        Z = np.where(seen, Y, (X + T / rho).mean(axis=0))
        T += rho * (X - Z)
        hat = X.mean(axis=0)
        if np.linalg.norm(hat - last) < TOLERANCE * norm:
            break
        last = hat
    return hat


def lrtc_tnn(X: np.ndarray, period: int, seed: int) -> np.ndarray:
    """The predictions for a table with a row for each time and a column for each sensor."""
    Y = X.T.reshape(X.shape[1], -1, period)
    seen = ~np.isnan(Y)
    held = seen & (np.random.default_rng((seed, 7)).random(Y.shape) < 0.1)
    unit = float(np.sqrt(np.mean(Y[seen] ** 2)))
    Y = Y / unit
    errors = {
        (rho, theta): float(np.mean((complete(Y, seen & ~held, rho, theta) - Y)[held] ** 2))
        for rho in PENALTIES
        for theta in RATES
    }
    rho, theta = min(errors, key=lambda setting: errors[setting])
    return unit * complete(Y, seen, rho, theta).reshape(X.shape[1], -1).T
