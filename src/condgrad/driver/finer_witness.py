r"""A witness that keeps its digits: the prox point p = x + d of the nuclear ball, stored as x and the small difference d.

The direction of a certificate is D = grad F(x) + (p - x)/gamma. Factors of p have rounding errors of a few units of |p|, so that
D has errors of a few units of |p|/gamma, and the gap has the radius times as much. Near a solution of large norm this may exceed
the tolerance, although p - x is small. If p is stored as x and d, then D has only the rounding errors of d.

The d that is computed from the factors of p and x still has errors of a few units of |p|. They are removed by one step of
iterative refinement. Let L and R have the singular vectors of p. For the exact prox point, E = -L' D R is the identity times a
level. The step takes the mean of the diagonal of E as the level and adds gamma L (E - level I) R' to d. The trace of this change
is 0, so that it does not change the norm of p to first order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.domains import NuclearBall
from condgrad.points import LowRank
from condgrad.points.low_rank import wide


def finer_witness(domain: Any, grad: Any, x: Any, prox: Any, gamma: float) -> LowRank | None:
    """Return the prox point ``prox`` of x, refined; None if it is not a low-rank point of a nuclear ball.

    Parameters
    ----------
    domain : Domain
        The set.
    grad : Point
        The gradient at x.
    x, prox : Point
        A point and an approximation of its prox point, accurate up to rounding.
    gamma : float
        The step size of the prox point.
    """
    if not isinstance(domain, NuclearBall) or not isinstance(x, LowRank) or not isinstance(prox, LowRank):
        return None
    (U, V), (left, values, right) = map(wide, x.factors()), prox.svd()
    if not len(values) or not U.shape[1]:
        return None
    P = left * values
    T = np.linalg.lstsq(U, P, rcond=None)[0]  # P - U T and T R' - V' are small
    d = LowRank(np.column_stack([P - U @ T, U]), np.column_stack([right, right @ T.T - V]))
    E = -left.T @ ((grad + (1 / gamma) * d) @ right)
    rest = E - np.eye(len(E)) * (np.trace(E) / len(E))
    return x + (d + LowRank(gamma * (left @ rest), right)).compressed()
