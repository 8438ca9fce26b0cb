"""The SVRG estimator (Johnson and Zhang 2013) of variance-reduced gradients, as in Algorithm 4 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from condgrad.checks import same_shape
from condgrad.estimators.minibatch import difference, draw
from condgrad.protocols import Batch, Point
from condgrad.storage.stored import check_array, stored


def _validate(snapshot: Snapshot) -> None:
    if snapshot.rows is not None:
        check_array(snapshot.rows, snapshot.rows.shape, "rows", "iuf")


@stored(validate=_validate)
class Snapshot(NamedTuple):
    """State between two steps: the snapshot point x, the gradient of F at x, and (if stored) the gradients of the terms at x."""

    x: Point
    grad: Point
    rows: np.ndarray | None
    """The gradient of every term at x, one row for each term; None if these gradients are not stored."""

    @property
    def start(self) -> Point:
        """The point where the epoch begins."""
        return self.x

    @property
    def start_grad(self) -> Point:
        """The gradient at the point where the epoch begins."""
        return self.grad

    def rows_of(self, batch: Batch, objective: Any) -> np.ndarray:
        """Return the stored rows of a batch. Raises ValueError if the objective has another number of terms."""
        assert self.rows is not None
        if len(self.rows) != objective.n_terms:
            raise ValueError(
                f"The snapshot has the gradients of {len(self.rows)} terms, but the objective has {objective.n_terms} terms: "
                "it is not of this run, so start the run again."
            )
        return self.rows[batch]


@dataclass(frozen=True)
class SVRG:
    """v = mean_I (grad f_i(x) - grad f_i(snapshot)) + g, with a new snapshot every ``epoch`` steps.

    g is the full gradient at the snapshot, or the mean gradient of ``sample`` new samples if F is an expectation. A step
    evaluates 2 ``batch`` term gradients. With ``store``, the term gradients at the snapshot are stored, and a step evaluates only
    ``batch`` term gradients.

    Parameters
    ----------
    epoch : int
        Number of steps between two snapshots.
    batch : int
        Batch size.
    sample : int, default None
        Number of samples at a snapshot, if F is an expectation. None: a snapshot has the full gradient of a finite sum.
    store : bool, default False
        Whether to store the term gradients at the snapshot.
    replace : bool, default True
        Draw batches with replacement.
    """

    epoch: int
    batch: int
    sample: int | None = None
    store: bool = False
    replace: bool = True

    def init(self, objective: Any, x: Point) -> Snapshot | None:
        """Return None: there is no state before the first estimate, which makes the first snapshot."""
        return None

    def estimate(
        self, objective: Any, x: Point, memory: Snapshot | None, k: int, rng: np.random.Generator
    ) -> tuple[Point, Snapshot]:
        """Return the estimate at x in step k, and the snapshot, which is the state for the next step."""
        if memory is None or (k - 1) % self.epoch == 0:
            memory = self.snapshot(objective, x, rng)
        batch = draw(objective, self.batch, rng, self.replace)
        if memory.rows is None:
            return difference(objective, x, memory.x, batch) + memory.grad, memory
        rows, at_snapshot = objective.term_rows(x, batch), memory.rows_of(batch, objective)
        same_shape(at_snapshot.shape, rows.shape, "The array of stored term gradients in the snapshot")
        return objective.assemble(rows - at_snapshot, batch) + memory.grad, memory

    def snapshot(self, objective: Any, x: Point, rng: np.random.Generator) -> Snapshot:
        """Return a snapshot at x."""
        if self.sample is not None:
            return Snapshot(x, objective.grad_terms(x, objective.draw(self.sample, rng)), None)
        if self.store:
            terms = np.arange(objective.n_terms)
            rows = objective.term_rows(x, terms)
            return Snapshot(x, objective.assemble(rows, terms), rows)
        return Snapshot(x, objective.grad(x), None)
