"""The estimator ZeroSARAH (Li, Hanzely and Richtarik 2021): recursive, with a table of gradients in place of restarts."""

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
    """The last point with its estimate, the table of the terms' gradients (rows) and their mean."""

    x: Point
    v: Point
    rows: np.ndarray
    mean: Point


@dataclass(frozen=True)
class ZeroSARAH:
    """A recursive estimate that is drawn towards a SAGA estimate; it never evaluates a full gradient.

    With c = ``weight`` and a table y of the last gradient of each term (0 for a term not yet drawn)::

        v = mean_I (grad f_i(x) - grad f_i(x_previous)) + (1 - c) v_previous
            + c (mean_I (grad f_i(x_previous) - y_i) + mean(y))
        y_i = grad f_i(x) for i in I

    The first estimate is the mean over I alone. A step evaluates 2 ``batch`` term gradients, the first one ``batch``.

    Parameters
    ----------
    batch : int
        Number of different terms in I.
    weight : float
        The share c of the table's estimate, in (0, 1].
    """

    batch: int
    weight: float

    def init(self, objective: Any, x: Point) -> TableRecursion | None:
        """Return None: the first estimate makes the table."""
        return None

    def estimate(
        self, objective: Any, x: Point, memory: TableRecursion | None, k: int, rng: np.random.Generator
    ) -> tuple[Point, TableRecursion]:
        """Return the estimate at x and the updated table."""
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
