"""The minibatch estimator: the mean gradient of a new random batch in each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.protocols import Batch, Point


def growing(k: int) -> int:
    """Return k, the batch size of step k (m_k in the paper)."""
    return k


@dataclass(frozen=True)
class Minibatch:
    """Mean of the gradients of ``size(k)`` random samples in step k.

    Parameters
    ----------
    size : callable
        Maps the number k of a step, from 1, to the batch size of the step.
    replace : bool, default True
        Draw batches with replacement. False: draw different terms, for finite sums only.
    """

    size: Callable[[int], int]
    replace: bool = True

    def init(self, objective: Any, x: Point) -> None:
        """Return None: the estimator has no state."""
        return None

    def estimate(self, objective: Any, x: Point, memory: None, k: int, rng: np.random.Generator) -> tuple[Point, None]:
        """Return the estimate at x in step k, and None."""
        return objective.grad_terms(x, draw(objective, self.size(k), rng, self.replace)), memory


def draw(objective: Any, size: int, rng: np.random.Generator, replace: bool) -> Batch:
    """Draw a batch. With replacement, the objective draws it. Without, it has ``size`` different terms of a finite sum."""
    return objective.draw(size, rng) if replace else rng.permutation(objective.n_terms)[:size]


def difference(objective: Any, x: Point, y: Point, batch: Batch) -> Point:
    """Return the mean of grad f_i(x) - grad f_i(y) over the terms i of a batch."""
    if getattr(objective, "mean_grad", None) is not None:  # avoids an array of term gradients
        return objective.grad_terms(x, batch) - objective.grad_terms(y, batch)
    return objective.assemble(objective.term_rows(x, batch) - objective.term_rows(y, batch), batch)
