"""Points of the nuclear ball and of the spectrahedron as functions of factors, with their derivatives: dense and flat.

X = c U V' with s = (|U|^2 + |V|^2)/2, or X = c U U' with s = |U|^2; c = R/s, or min(1, R/s) where the interior belongs to it.
"""

from __future__ import annotations

import numpy as np


def scalar(s, R, inside):
    return 1.0 if inside and s <= R else R / s


def ball(U, V, R, inside):
    return scalar((np.sum(U**2) + np.sum(V**2)) / 2, R, inside) * U @ V.T


def ball_gradient(U, V, R, inside, G):
    """(dU, dV) of F(X) with the gradient G at X: by the product rule, entry by entry of c U V'."""
    s = (np.sum(U**2) + np.sum(V**2)) / 2
    c = scalar(s, R, inside)
    dc_ds = 0.0 if inside and s <= R else -R / s**2
    along_c = np.sum(G * (U @ V.T))  # the derivative of F by c
    return c * G @ V + along_c * dc_ds * U, c * G.T @ U + along_c * dc_ds * V


def spectrahedron(U, R, inside):
    return scalar(np.sum(U**2), R, inside) * U @ U.T


def spectrahedron_gradient(U, R, inside, G):
    s = np.sum(U**2)
    dc_ds = 0.0 if inside and s <= R else -R / s**2
    return scalar(s, R, inside) * (G + G.T) @ U + np.sum(G * (U @ U.T)) * dc_ds * 2 * U
