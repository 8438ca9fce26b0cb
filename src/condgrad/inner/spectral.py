"""The spectral inner solver: on a spectral set the prox subproblem is one partial SVD."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from condgrad.checks import whole
from condgrad.inner.condg import EPS
from condgrad.points import LowRank, inner, norm2
from condgrad.points.krylov import RITZ, SPARE, outer, random_block, rank_of, wider, with_spare
from condgrad.protocols import InnerStop, Point, Prox

TRUST = 1 / 8
"""The share of the allowed gap that the linear oracle may be wrong by; it is added to the gap."""


@dataclass(frozen=True)
class Spectral:
    """The projection of z = u - gamma g, from one or a few passes of subspace iteration.

    The block begins as the singular vectors of the last prox point and a few more; a pass multiplies it with z and z'; the set
    shrinks the values that it sees. One linear oracle call at the point that this gives certifies the gap. Where it is
    too large, what the oracle saw is what was missing, and joins the block.
    """

    max_calls: int | None = None
    growth: float | None = None
    """The block may get this many times as wide in one prox (but from 8 columns on): far from a solution, where the prox point
    has nearly full rank, the step is taken with the rank that there is, and the gap says so."""

    def __post_init__(self) -> None:
        if self.max_calls is not None:
            whole(self.max_calls, "max_calls")
        if self.growth is not None and self.growth <= 1:
            raise ValueError(f"The growth of Spectral must be above 1, but got {self.growth!r}.")

    def init(self, domain: Any, x: Point) -> np.ndarray:
        """The block: the right singular vectors of x."""
        if isinstance(x, LowRank):
            return x.svd()[2]
        _, sigma, right = np.linalg.svd(x, full_matrices=False)
        return right[: int(np.sum(sigma > 1e-15 * max(x.shape) * sigma[0]))].T

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: np.ndarray) -> Prox:
        z = u - gamma * g
        most, block, calls = min(z.shape), memory, 0
        spare, last = SPARE, inf
        rank = memory.shape[1] - SPARE  # and not u's own, which an array does not know
        widest = most if self.growth is None else min(most, int(self.growth * max(8, rank)) + SPARE)
        while True:
            block = wider(block, domain.narrowest, widest)
            left, values, right = RITZ[domain.spectrum](z, block)
            kept = domain.shrink(values)
            k = rank_of(kept)
            u_t = outer(left[:, :k] * kept[:k], right[:, :k], z)
            direction = (1 / gamma) * (u_t - z)
            allowed = stop(norm2(u_t - u) / gamma)
            v_t, seen = domain.lmo_near(direction, right[:, :k], max(TRUST * allowed, 0.0))
            calls += 1
            V = inner(direction, u_t - v_t) + max(TRUST * allowed, 0.0)
            if allowed >= V or len(values) == most:
                break
            noise = 8 * EPS * (sqrt(norm2(u_t)) + sqrt(norm2(z))) / gamma * sqrt(norm2(u_t - v_t))
            if noise >= V:
                break
            narrow = k > len(values) - SPARE  # all that it saw was needed
            spent = self.max_calls is not None and calls >= self.max_calls
            stuck, last = last <= V, V
            if spent or (len(values) == widest and (narrow or stuck)):
                if norm2(direction) <= norm2(g):  # nearer to z than u is: F goes down with it
                    break
                widest = min(most, 2 * widest)
            if stuck:  # in a subspace that is too small; where a large one does not help, by rounding
                if spare > most:
                    break
                spare *= 2
            block = np.column_stack([with_spare(right, values, k, spare), seen])
            if narrow:
                block = np.column_stack([block, random_block(len(right), k // 2 + SPARE)])
        return Prox(u_t, max(V, 0.0), with_spare(right, values, k, SPARE))
