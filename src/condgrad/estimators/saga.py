"""The SAGA estimator (Defazio, Bach and Lacoste-Julien 2014), with two independent batches as in Reddi et al. (2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from condgrad.protocols import Batch, Point
from condgrad.storage.stored import check_array, stored


def _validate(table: Table) -> None:
    check_array(table.rows, (len(table.terms), *table.rows.shape[1:]), "rows", "iuf")


@stored(validate=_validate)
class Table(NamedTuple):
    """State between two steps:

    the table, which has the last computed gradient of each term as a row, and the mean of the rows.
    """

    terms: Batch
    """The terms that have a row: all terms of a finite sum, or a sample of an expectation."""
    rows: np.ndarray
    mean: Point


@dataclass(frozen=True)
class SAGA:
    """v = mean_I (grad f_i(x) - table_i) + mean(table), with two random batches I and J of terms.

    The table has the last computed gradient of each term. After each estimate, the gradients at x of the terms in J replace their
    rows of the table.

    Parameters
    ----------
    batch : int
        Size of each of the batches I and J.
    sample : int, default None
        Number of samples in the table, if F is an expectation. None: the table has all terms of a finite sum.
    replace : bool, default True
        Draw the batches with replacement.
    seed : int, default 0
        Seed for drawing the samples in the table.
    """

    batch: int
    sample: int | None = None
    replace: bool = True
    seed: int = 0

    def init(self, objective: Any, x: Point) -> Table:
        """Return the table of gradients at x."""
        if self.sample is None:
            terms = np.arange(objective.n_terms)
        else:
            terms = objective.draw(self.sample, np.random.default_rng((self.seed, 0, 4)))
        rows = objective.term_rows(x, terms)
        return Table(terms, rows, objective.assemble(rows, terms))

    def estimate(
        self, objective: Any, x: Point, memory: Table, k: int, rng: np.random.Generator
    ) -> tuple[Point, Table]:
        """Return the estimate at x and the updated table."""
        terms, rows, mean = memory
        I, J = self.pick(len(terms), rng), np.unique(self.pick(len(terms), rng))
        v = objective.assemble(objective.term_rows(x, terms[I]) - rows[I], terms[I]) + mean
        new_rows = objective.term_rows(x, terms[J])
        mean = mean + (len(J) / len(terms)) * objective.assemble(new_rows - rows[J], terms[J])
        rows = rows.copy()
        rows[J] = new_rows
        return v, Table(terms, rows, mean)

    def pick(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the indices of a batch from n terms."""
        return rng.integers(n, size=self.batch) if self.replace else rng.permutation(n)[: self.batch]
