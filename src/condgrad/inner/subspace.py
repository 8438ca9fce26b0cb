"""An inner solver for spectral sets that makes one pass of subspace iteration in each prox and does not certify a gap."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from condgrad.linalg.lanczos import RITZ, SPARE, random_block, rank_of, wider
from condgrad.points import LowRank
from condgrad.points.low_rank import outer
from condgrad.protocols import InnerStop, Point, Prox

RANDOM_COLUMNS = 2
"""Number of random columns added to the block in each prox, so that a missing singular vector is found within a few steps."""


@dataclass(frozen=True)
class Subspace:
    """Approximate projection of z = u - gamma g by one pass of subspace iteration from the singular vectors of the last prox.

    The gap is not known and is reported as infinite, so the steps of a run with this solver have no certificates. The solver is
    meant for a path of problems, in which the next problem corrects the errors of the current one. A pass takes a small part of
    the time of ``Spectral``: noisy data has many nearly equal singular values, and a proof that none was missed takes longer than
    the next pass.

    Parameters
    ----------
    max_rank : int, default None
        Maximum rank of the prox point; None: no limit. With a limit, the prox point may be far from the projection.
    """

    max_rank: int | None = None

    def init(self, domain: Any, x: LowRank) -> np.ndarray:
        """Return the initial block: the right singular vectors of x."""
        return x.svd()[2]

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: np.ndarray) -> Prox:
        """Make one pass for the prox subproblem at u with gradient g and step size gamma; ``stop`` is not used."""
        z = u - gamma * g
        block = np.c_[memory, random_block(len(memory), RANDOM_COLUMNS)]
        left, values, right = RITZ[domain.spectrum](z, wider(block, domain.narrowest, min(z.shape)), None)
        shrunk = domain.shrink(values)
        k = rank_of(shrunk) if self.max_rank is None else min(rank_of(shrunk), self.max_rank)
        return Prox(outer(left[:, :k] * shrunk[:k], right[:, :k], z), inf, right[:, : k + SPARE])
