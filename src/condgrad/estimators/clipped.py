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
"""Number of sample gradients at the start. If no level is given, the level is estimated from the lengths of these gradients."""


@stored
class ClippedAverage(NamedTuple):
    """State between two steps: the last estimate ``v`` (None before the first estimate), and the level."""

    v: Point | None
    level: float


@dataclass(frozen=True)
class Clipped:
    """A moving average of clipped batch gradients.

    With r = ``weight(k)`` and lambda = ``level * growth(k)`` in step k, and g(x) the mean gradient of a batch at x::

        v = (1 - r) v_previous + r g(x) min(1, lambda/|g(x)|)

    Parameters
    ----------
    weight : callable
        Maps the number k of a step, from 1, to r in (0, 1].
    growth : callable
        Maps the number k of a step, from 1, to the factor by which ``level`` is multiplied.
    batch : int, default 1
        Batch size: number of sample gradients in a step.
    level : float, default None
        Maximum length of a gradient, before it is multiplied by ``growth(k)``. Infinity means no clipping. None: the level is
        twice the median length of 16 sample gradients at the start. These gradients are included in the counts of the run.
    seed : int, default 0
        Seed of the 16 samples.
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
        """Return the state before the first step, which has the level and no estimate."""
        if self.level is not None:
            return ClippedAverage(None, float(self.level))
        batch = objective.draw(LEVEL_SAMPLES, np.random.default_rng((self.seed, 0, 3)))
        lengths = [sqrt(norm2(objective.grad_terms(x, batch[i : i + 1]))) for i in range(LEVEL_SAMPLES)]
        return ClippedAverage(None, 2 * float(np.median(lengths)) or inf)

    def estimate(
        self, objective: Any, x: Point, memory: ClippedAverage, k: int, rng: np.random.Generator
    ) -> tuple[Point, ClippedAverage]:
        """Return the estimate at x in step k, and the state for the next step."""
        g = clip(objective.grad_terms(x, draw(objective, self.batch, rng, self.replace)), memory.level * self.growth(k))
        r = self.weight(k)
        v = g if memory.v is None else (1 - r) * memory.v + r * g
        return v, ClippedAverage(v, memory.level)


def clip(g: Point, level: float) -> Point:
    """Return g. If g is longer than ``level``, return the vector of length ``level`` in the direction of g."""
    length = sqrt(norm2(g))
    return g if length <= level else (level / length) * g
