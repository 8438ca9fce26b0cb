"""The ball of the k-support norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.entry import DomainEntry, Examples, sparse_normal
from condgrad.linalg.selection import finite_size, indices_of_smallest, largest_size
from condgrad.points.sparse_array import SparseArray

STEPS = 200
"""Of the search for a root, each of which at least halves an interval every second time."""


@final
@dataclass(frozen=True)
class KSupportBall(Ball):
    """{x : |x|_k^sp <= r}, the convex hull of the vectors with at most k entries that are not 0 and with |x|_2 <= r

    Sparse as the l1 ball (k = 1), and with correlated entries kept together as in the l2 ball (k = all). The projection solves
    two nested equations of one unknown each, to rounding.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    k : int
        Number of entries of an atom that are not 0.
    radius : float, default 1.0
        The radius r.

    References
    ----------
    A. Argyriou, R. Foygel and N. Srebro, "Sparse prediction with the k-support norm", NIPS 2012.
    A. M. McDonald, M. Pontil and D. Stamos, "New perspectives on k-support and cluster norms", JMLR 17 (2016): the projection.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.KSupportBall(4, 2, 5.0).lmo(np.array([1.0, -3.0, 4.0, 0.0]))
    array([ 0.,  3., -4.,  0.])
    """

    shape: Shape
    k: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        self._settle()
        checks.settle(self, k=checks.entry_count(self.k, self.shape, "KSupportBall"))

    def norm(self, x: np.ndarray) -> float:
        """sqrt(sum of the squares of the k - l - 1 largest entries + (sum of the others)^2 / (l + 1)), with the right l."""
        top = largest_size(x)
        if not 0 < top < math.inf:
            return top
        z = np.sort(np.abs(x) / top, axis=None)[::-1]
        rest = np.cumsum(z[::-1])[::-1][: self.k][::-1]  # rest[l]: the sum from entry k - l on, counted from 1
        before = np.append(z[: self.k - 1][::-1], np.inf)  # before[l]: entry k - l - 1
        ell = int(np.argmax(before > rest / np.arange(1, self.k + 1)))
        return top * math.sqrt(float(np.sum(z[: self.k - ell - 1] ** 2)) + float(rest[ell]) ** 2 / (ell + 1))

    @property
    def max_norm(self) -> float:
        return self.radius

    def atom(self, direction: np.ndarray) -> SparseArray:
        direction = self._point(direction)
        largest = indices_of_smallest(direction, self.k, sizes=True)
        kept = direction.reshape(-1)[largest]
        top = finite_size(kept)
        kept = kept / top if top > 0 else np.ones(self.k)
        return SparseArray(largest, -self.radius / np.linalg.norm(kept) * kept, self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()

    def project(self, x: np.ndarray) -> np.ndarray:
        """x theta / (theta + mu) with 0 <= theta <= 1 and sum theta = k: the norm is the least of sqrt(sum x_i^2 / theta_i)."""
        from scipy.optimize import brentq

        x = checks.finite(self._point(x), type(self).__name__, self.max_norm)
        top = largest_size(x)
        if self.norm(x) <= self.radius * (1 + 4 * np.finfo(float).eps):
            return x
        size, r = np.abs(x) / top, self.radius / top
        used = size > 0
        z = size[used]
        if len(z) <= self.k:  # theta is 1
            return x * (self.radius / (top * np.linalg.norm(z)))

        def excess(log_mu: float) -> float:
            mu = math.exp(log_mu)
            theta = _shares(z, self.k, mu)
            return math.log(float(np.sum(theta * (z / (theta + mu)) ** 2))) / 2 - math.log(r)

        low, high = math.log(1e-17), 0.0  # at the low end nothing moves but the last digit
        while excess(high) > 0:
            low, high = high, high + 2.0
        mu = math.exp(brentq(excess, low, high, xtol=1e-15) if excess(low) > 0 else low)
        theta = _shares(z, self.k, mu)
        factors = np.zeros(self.shape)
        factors[used] = theta / (theta + mu)
        return self._onto_boundary(x * factors)


def _shares(z: np.ndarray, k: int, mu: float) -> np.ndarray:
    """clip(t z - mu, 0, 1), with the t for which they sum to k; of more than k positive z.

    With p the k-th largest z, the share of p is positive, and t can be chosen so that s = t p - mu is at most 1. In terms of s,
    the others are s z / p + mu (z - p) / p, which keep their digits for large mu.
    """
    p = np.partition(z, -k)[-k]
    slopes, rest = z / p, mu * ((z - p) / p)
    low, high, s = 0.0, 1.0, 1.0
    for step in range(STEPS):
        shares = s * slopes + rest
        free = (shares > 0) & (shares < 1)
        excess = float(np.clip(shares, 0.0, 1.0).sum()) - k
        low, high = (low, s) if excess > 0 else (s, high)
        slope = float(slopes[free].sum())
        following = s - excess / slope if slope > 0 else (low + high) / 2
        if following == s:
            break
        if step % 3 == 2 or not low < following < high:
            following = (low + high) / 2
        if following in (s, low, high):
            break
        s = following
    return np.clip(s * slopes + rest, 0.0, 1.0)


def _k_support_balls() -> Examples:
    return {
        "": KSupportBall(5, 2, 1.5),
        "of matrices": KSupportBall((2, 3), 3, 0.1),
        "with one": KSupportBall(4, 1, 2.0),
        "with all": KSupportBall(3, 3),
        "of one": KSupportBall(1, 1, 7.0),
    }


def _in_k_support_ball(ball: KSupportBall, rng: np.random.Generator) -> np.ndarray:
    """A convex combination of vectors of k entries in the l2 ball."""
    total, weights = np.zeros(math.prod(ball.shape)), rng.dirichlet(np.ones(3))
    for weight in weights:
        places = rng.choice(total.size, ball.k, replace=False)
        part = sparse_normal((ball.k,), rng)
        total[places] += weight * ball.radius * part / (np.linalg.norm(part) or 1.0)
    return total.reshape(ball.shape)


def _k_support_minimum(ball: KSupportBall, g: np.ndarray) -> float:
    return -ball.radius * float(np.linalg.norm(np.sort(np.abs(g), axis=None)[-ball.k :]))


ENTRY = DomainEntry(
    "k-support-ball", KSupportBall, "conv {x : |x|_0 <= k, |x|_2 <= r}",
    "the k largest entries, reversed and scaled to the sphere",
    _k_support_balls, _in_k_support_ball, _k_support_minimum,
)  # fmt: skip
