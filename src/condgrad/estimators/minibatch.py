"""The mean gradient of a fresh batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.protocols import Batch, Point


def growing(k: int) -> int:
    """k samples in step k, the paper's m_k."""
    return k


@dataclass(frozen=True)
class Minibatch:
    """mean of ``size(k)`` samples' gradients in step k; ``replace=False`` draws the terms of a finite sum without repeats."""

    size: Callable[[int], int]
    replace: bool = True

    def init(self, objective: Any, x: Point) -> None:
        return None

    def estimate(self, objective: Any, x: Point, memory: None, k: int, rng: np.random.Generator) -> tuple[Point, None]:
        return objective.grad_terms(x, draw(objective, self.size(k), rng, self.replace)), memory


def draw(objective: Any, size: int, rng: np.random.Generator, replace: bool) -> Batch:
    """A batch: with replacement as the objective draws it, or ``size`` different terms of a finite sum."""
    return objective.draw(size, rng) if replace else rng.permutation(objective.n_terms)[:size]
