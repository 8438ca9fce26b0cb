"""The spectral inner solver without its proof: one pass of subspace iteration a prox."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from condgrad.linalg.lanczos import RITZ, SPARE, random_block, rank_of, wider
from condgrad.points import LowRank
from condgrad.points.low_rank import outer
from condgrad.protocols import InnerStop, Point, Prox

FRESH = 2
"""Random columns that join the block in each prox: what it misses is found within some steps."""


@dataclass(frozen=True)
class Subspace:
    """What the set makes of z = u - gamma g as the last prox's singular vectors see it, multiplied once with z and z'.

    Its gap is not known and said to be infinite: such a run certifies nothing on its way. It is for following a path of problems,
    where the next one makes up for what this one lacks, at a small part of the price: noise has many singular values that are
    nearly equal, and to prove that none was missed takes longer than to go on.

    Parameters
    ----------
    max_rank : int, default None
        Maximum rank of the prox point, which then need not be near the projection. None: no limit.
    """

    max_rank: int | None = None

    def init(self, domain: Any, x: LowRank) -> np.ndarray:
        """The block: the right singular vectors of x."""
        return x.svd()[2]

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: np.ndarray) -> Prox:
        """One pass for the prox subproblem at u with gradient g and step size gamma; ``stop`` is not used."""
        z = u - gamma * g
        block = np.c_[memory, random_block(len(memory), FRESH)]
        left, values, right = RITZ[domain.spectrum](z, wider(block, domain.narrowest, min(z.shape)), None)
        kept = domain.shrink(values)
        k = rank_of(kept) if self.max_rank is None else min(rank_of(kept), self.max_rank)
        return Prox(outer(left[:, :k] * kept[:k], right[:, :k], z), inf, right[:, : k + SPARE])
