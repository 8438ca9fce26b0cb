"""The recursive estimator SPIDER (Fang, Li, Lin and Zhang 2018). With random restarts, SPIDER is loopless SARAH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from condgrad.estimators.minibatch import difference, draw
from condgrad.protocols import Point
from condgrad.storage.stored import stored


@stored
class Recursion(NamedTuple):
    """State between two steps: the last point x, the estimate v at x, and the point ``start`` of the last restart."""

    x: Point
    v: Point
    start: Point

    @property
    def start_grad(self) -> Point:
        """The gradient at ``start``, right after the restart."""
        return self.v


@dataclass(frozen=True)
class SPIDER:
    """v = mean_I (grad f_i(x) - grad f_i(x_previous)) + v_previous, with a new full gradient at each restart.

    A restart evaluates the gradients of all n terms, or of ``sample`` new samples if F is an expectation. Every other step
    evaluates 2 ``batch`` gradients.

    Parameters
    ----------
    epoch : int
        Number of steps between two restarts; with ``random``, the mean of this number.
    batch : int
        Batch size.
    sample : int, default None
        Number of samples at a restart, if F is an expectation. None: a restart takes the full gradient of a finite sum.
    replace : bool, default True
        Draw batches with replacement.
    random : bool, default False
        True: restart in each step with probability 1/``epoch``. False: restart every ``epoch`` steps.
    """

    epoch: int
    batch: int
    sample: int | None = None
    replace: bool = True
    random: bool = False

    def init(self, objective: Any, x: Point) -> Recursion | None:
        """Return None: there is no state before the first estimate, which is a restart."""
        return None

    def estimate(
        self, objective: Any, x: Point, memory: Recursion | None, k: int, rng: np.random.Generator
    ) -> tuple[Point, Recursion]:
        """Return the estimate at x in step k, and the state for the next step."""
        restart = rng.random() < 1 / self.epoch if self.random else (k - 1) % self.epoch == 0
        if memory is None or restart:
            v = objective.grad(x) if self.sample is None else objective.grad_terms(x, objective.draw(self.sample, rng))
            return v, Recursion(x, v, x)
        v = difference(objective, x, memory.x, draw(objective, self.batch, rng, self.replace)) + memory.v
        return v, Recursion(x, v, memory.start)
