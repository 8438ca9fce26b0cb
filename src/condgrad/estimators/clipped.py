"""Momentum with clipped gradients, for samples with heavy tails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from condgrad.estimators.minibatch import draw
from condgrad.points import norm2
from condgrad.protocols import Point
from condgrad.storage.stored import stored

LEVEL_SAMPLES = 16
"""Number of sample gradients at x_0 from whose lengths the level is estimated if none is given."""


@stored
class ClippedAverage(NamedTuple):
    """The last estimate, None before the first, and the level."""

    v: Point | None
    level: float


@dataclass(frozen=True)
class Clipped:
    """A moving average of clipped batch gradients.

    With r = ``weight(k)`` and lambda = level ``growth(k)`` in step k::

        v = (1 - r) v_previous + r g(x) min(1, lambda/|g(x)|)

    Parameters
    ----------
    weight : callable
        Maps the number k of a step, from 1, to r in (0, 1].
    growth : callable
        Maps the number k of a step to the factor of the level.
    batch : int, default 1
        Batch size: gradients of a step.
    level : float, default None
        The level; infinity: no clipping. None: twice the median length of 16 sample gradients at the start, which are counted.
    seed : int, default 0
        Seed of these 16 samples.
    replace : bool, default True
        Draw batches with replacement. False: draw different terms, for finite sums only.
    """

    weight: Callable[[int], float]
    growth: Callable[[int], float]
    batch: int = 1
    level: float | None = None
    seed: int = 0
    replace: bool = True

    def init(self, objective: Any, x: Point) -> ClippedAverage:
        """Return the level; the first estimate is a clipped batch gradient."""
        if self.level is not None:
            return ClippedAverage(None, float(self.level))
        batch = objective.draw(LEVEL_SAMPLES, np.random.default_rng((self.seed, 0, 3)))
        lengths = [sqrt(norm2(objective.grad_terms(x, batch[i : i + 1]))) for i in range(LEVEL_SAMPLES)]
        return ClippedAverage(None, 2 * float(np.median(lengths)) or inf)

    def estimate(
        self, objective: Any, x: Point, memory: ClippedAverage, k: int, rng: np.random.Generator
    ) -> tuple[Point, ClippedAverage]:
        """Return the estimate at x in step k, and what the next one needs."""
        g = clip(objective.grad_terms(x, draw(objective, self.batch, rng, self.replace)), memory.level * self.growth(k))
        r = self.weight(k)
        v = g if memory.v is None else (1 - r) * memory.v + r * g
        return v, ClippedAverage(v, memory.level)


def clip(g: Point, level: float) -> Point:
    """Return g, or the vector of length ``level`` in its direction if g is longer."""
    length = sqrt(norm2(g))
    return g if length <= level else (level / length) * g
