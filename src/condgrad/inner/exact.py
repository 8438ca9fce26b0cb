"""The exact inner solver, for sets with a projection: the prox subproblem is one projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from condgrad.protocols import InnerStop, Point, Prox


@dataclass(frozen=True)
class Exact:
    """Solve the prox subproblem by project(u - gamma g). The gap is 0 up to rounding, also if the caller allows a larger gap."""

    def init(self, domain: Any, x: Point) -> None:
        """No state is kept between prox subproblems."""
        return None

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: None) -> Prox:
        """Project u - gamma g; ``stop`` is not used."""
        return Prox(domain.project(u - gamma * g), 0.0, memory)
