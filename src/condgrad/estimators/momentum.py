"""Estimators with momentum: the averaged gradient of Mokhtari et al. (2020), and the recursive estimator STORM."""

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
    """State between two steps: the last point x, and the estimate v at x."""

    x: Point
    v: Point


@dataclass(frozen=True)
class Momentum:
    """A moving average of batch gradients g(x); with ``recursive=True``, the STORM estimate (Cutkosky and Orabona 2019).

    With r = ``weight(k)`` in step k::

        v = (1 - r) v_previous + r g(x)                           averaged
        v = g(x) + (1 - r) (v_previous - g(x_previous))           recursive; both gradients are of the same batch

    A step evaluates ``batch`` gradients, and a recursive step evaluates 2 ``batch``. The first step evaluates ``first``.

    Parameters
    ----------
    weight : callable
        Maps the number k of a step, from 1, to r in (0, 1].
    batch : int, default 1
        Batch size.
    first : int, default None
        Batch size of the first estimate; by default ``batch``.
    recursive : bool, default False
        Whether to correct the previous estimate by the gradients of the batch at the previous point.
    replace : bool, default True
        Draw batches with replacement. False: draw different terms, for finite sums only.
    """

    weight: Callable[[int], float]
    batch: int = 1
    first: int | None = None
    recursive: bool = False
    replace: bool = True

    def init(self, objective: Any, x: Point) -> Average | None:
        """Return None: there is no state before the first estimate, which is a batch gradient."""
        return None

    def estimate(
        self, objective: Any, x: Point, memory: Average | None, k: int, rng: np.random.Generator
    ) -> tuple[Point, Average]:
        """Return the estimate at x in step k, and the state for the next step."""
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
