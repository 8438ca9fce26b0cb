"""Implicit gradient transport (Arnold et al. 2019): momentum without its bias on quadratics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.estimators.minibatch import draw
from condgrad.estimators.momentum import Average
from condgrad.protocols import Point


@dataclass(frozen=True)
class Transport:
    """A moving average of batch gradients, each taken at a point beyond x, to make up for the gradients of earlier points.

    With r = ``weight(k)`` in step k::

        y = x + (1 - r)/r (x - x_previous)
        v = (1 - r) v_previous + r g(y)

    If F is quadratic, v is the average of the noise alone: E v = grad F(x). A step from x_previous by at most the share r of a
    segment of the set keeps y in the set.

    Parameters
    ----------
    weight : callable
        Maps the number k of a step, from 1, to r in (0, 1].
    batch : int, default 1
        Batch size: gradients of a step.
    replace : bool, default True
        Draw batches with replacement. False: draw different terms, for finite sums only.
    """

    weight: Callable[[int], float]
    batch: int = 1
    replace: bool = True

    def init(self, objective: Any, x: Point) -> Average | None:
        """Return None: the first estimate is a batch gradient."""
        return None

    def estimate(
        self, objective: Any, x: Point, memory: Average | None, k: int, rng: np.random.Generator
    ) -> tuple[Point, Average]:
        """Return the estimate at x in step k, and what the next one needs."""
        batch = draw(objective, self.batch, rng, self.replace)
        if memory is None:
            v = objective.grad_terms(x, batch)
            return v, Average(x, v)
        r = self.weight(k)
        y = x + (1 - r) / r * (x - memory.x)
        v = (1 - r) * memory.v + r * objective.grad_terms(y, batch)
        return v, Average(x, v)
