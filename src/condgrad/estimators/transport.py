"""Implicit gradient transport (Arnold et al. 2019): an estimator with momentum that has no bias if F is quadratic."""

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
    """A moving average of batch gradients g(y) at extrapolated points y.

    The average contains gradients of earlier points, which bias it. The extrapolation beyond x compensates this bias. With
    r = ``weight(k)`` in step k::

        y = x + (1 - r)/r (x - x_previous)
        v = (1 - r) v_previous + r g(y)

    If F is quadratic, E v = grad F(x), so that the error of v is only an average of noise. The point y equals
    x_previous + (x - x_previous)/r. So y is in the set if x = x_previous + s (p - x_previous), where p is a point of the set and
    s <= r.

    Parameters
    ----------
    weight : callable
        Maps the number k of a step, from 1, to r in (0, 1].
    batch : int, default 1
        Batch size: number of sample gradients in a step.
    replace : bool, default True
        Draw batches with replacement. False: draw different terms, for finite sums only.
    """

    weight: Callable[[int], float]
    batch: int = 1
    replace: bool = True

    def init(self, objective: Any, x: Point) -> Average | None:
        """Return None: there is no state before the first estimate, which is a batch gradient."""
        return None

    def estimate(
        self, objective: Any, x: Point, memory: Average | None, k: int, rng: np.random.Generator
    ) -> tuple[Point, Average]:
        """Return the estimate at x in step k, and the state for the next step."""
        batch = draw(objective, self.batch, rng, self.replace)
        if memory is None:
            v = objective.grad_terms(x, batch)
            return v, Average(x, v)
        r = self.weight(k)
        y = x + (1 - r) / r * (x - memory.x)
        v = (1 - r) * memory.v + r * objective.grad_terms(y, batch)
        return v, Average(x, v)
