"""The recursive estimator ZeroSARAH (Li, Hanzely and Richtarik 2021), with a table of gradients instead of restarts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from condgrad.estimators.minibatch import draw
from condgrad.protocols import Point
from condgrad.storage.stored import check_array, stored


def _validate(memory: TableRecursion) -> None:
    check_array(memory.rows, memory.rows.shape, "rows", "iuf")


@stored(validate=_validate)
class TableRecursion(NamedTuple):
    """State between two steps:

    the last point x, the estimate v at x, the table with a gradient of each term as a row, its mean.
    """

    x: Point
    v: Point
    rows: np.ndarray
    mean: Point


@dataclass(frozen=True)
class ZeroSARAH:
    """A recursive estimate in which the previous estimate is mixed with a SAGA estimate. No full gradient is ever evaluated.

    Let I be a batch of random terms, c = ``weight``, and y the table of the last computed gradient of each term (0 for a term
    that was not drawn yet)::

        v = mean_I (grad f_i(x) - grad f_i(x_previous)) + (1 - c) v_previous
            + c (mean_I (grad f_i(x_previous) - y_i) + mean(y))
        y_i = grad f_i(x) for i in I

    The first estimate is the mean of grad f_i(x) over I. The first step evaluates ``batch`` term gradients, and every other step
    evaluates 2 ``batch``.

    Parameters
    ----------
    batch : int
        Number of different terms in I.
    weight : float
        The share c of the SAGA estimate, in (0, 1].
    """

    batch: int
    weight: float

    def init(self, objective: Any, x: Point) -> TableRecursion | None:
        """Return None: there is no state before the first estimate, which makes the table."""
        return None

    def estimate(
        self, objective: Any, x: Point, memory: TableRecursion | None, k: int, rng: np.random.Generator
    ) -> tuple[Point, TableRecursion]:
        """Return the estimate at x, and the state for the next step with the updated table."""
        batch = draw(objective, self.batch, rng, replace=False)
        new, n = objective.term_rows(x, batch), objective.n_terms
        if memory is None:
            v = objective.assemble(new, batch)
            rows = np.zeros((n, *new.shape[1:]), new.dtype)
            rows[batch] = new
            return v, TableRecursion(x, v, rows, (len(batch) / n) * v)
        if len(memory.rows) != n:
            raise ValueError(
                f"The table has the gradients of {len(memory.rows)} terms, but the objective has {n} terms: it is not of "
                "this run, so start the run again."
            )
        previous, table = objective.term_rows(memory.x, batch), memory.rows[batch]
        v = objective.assemble(new - previous, batch) + (1 - self.weight) * memory.v
        v = v + self.weight * (objective.assemble(previous - table, batch) + memory.mean)
        mean = memory.mean + (len(batch) / n) * objective.assemble(new - table, batch)
        rows = memory.rows.copy()
        rows[batch] = new
        return v, TableRecursion(x, v, rows, mean)
