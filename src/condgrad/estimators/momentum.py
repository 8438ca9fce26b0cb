"""Estimators with momentum: the averaged gradient of Mokhtari et al. (2020), and the recursive one, STORM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from condgrad.estimators.minibatch import draw
from condgrad.protocols import Point
from condgrad.storage.stored import stored


@stored
class Average(NamedTuple):
    """The last point with its estimate."""

    x: Point
    v: Point


@dataclass(frozen=True)
class Momentum:
    """A moving average of batch gradients g(x), or with ``recursive`` the estimate of STORM (Cutkosky and Orabona 2019).

    With r = ``weight(k)`` in step k::

        v = (1 - r) v_previous + r g(x)                           averaged
        v = g(x) + (1 - r) (v_previous - g(x_previous))           recursive; both gradients are of one batch

    A step evaluates ``batch`` gradients, a recursive one twice as many; the first one ``first``.

    Parameters
    ----------
    weight : callable
        Maps the number k of a step, from 1, to r in (0, 1].
    batch : int, default 1
        Batch size.
    first : int, default None
        Batch size of the first estimate, by default ``batch``.
    recursive : bool, default False
        Correct the previous estimate by the batch's gradients at the previous point.
    replace : bool, default True
        Draw batches with replacement. False: draw different terms, for finite sums only.
    """

    weight: Callable[[int], float]
    batch: int = 1
    first: int | None = None
    recursive: bool = False
    replace: bool = True

    def init(self, objective: Any, x: Point) -> Average | None:
        """Return None: the first estimate is a batch gradient."""
        return None

    def estimate(
        self, objective: Any, x: Point, memory: Average | None, k: int, rng: np.random.Generator
    ) -> tuple[Point, Average]:
        """Return the estimate at x in step k, and what the next one needs."""
        size = self.batch if memory is not None else self.first or self.batch
        batch = draw(objective, size, rng, self.replace)
        g = objective.grad_terms(x, batch)
        if memory is None:
            return g, Average(x, g)
        r = self.weight(k)
        if not self.recursive:
            v = (1 - r) * memory.v + r * g
            return v, Average(x, v)
        v = g + (1 - r) * (memory.v - objective.grad_terms(memory.x, batch))
        return v, Average(x, v)
