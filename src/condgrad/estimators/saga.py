"""SAGA (Defazio, Bach and Lacoste-Julien 2014), with two independent batches as Reddi et al. (2016) need."""

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
    terms: Batch
    """The terms that have a row: all of a finite sum, or a fresh sample of an expectation."""
    rows: np.ndarray
    mean: Point


@dataclass(frozen=True)
class SAGA:
    """v = mean_I (grad f_i(x) - table_i) + mean(table); then the rows of a second batch J are set to their gradient at x."""

    batch: int
    sample: int | None = None
    replace: bool = True
    seed: int = 0

    def init(self, objective: Any, x: Point) -> Table:
        if self.sample is None:
            terms = np.arange(objective.n_terms)
        else:
            terms = objective.draw(self.sample, np.random.default_rng((self.seed, 0, 4)))
        rows = objective.term_rows(x, terms)
        return Table(terms, rows, objective.assemble(rows, terms))

    def estimate(
        self, objective: Any, x: Point, memory: Table, k: int, rng: np.random.Generator
    ) -> tuple[Point, Table]:
        terms, rows, mean = memory
        I, J = self.pick(len(terms), rng), np.unique(self.pick(len(terms), rng))
        v = objective.assemble(objective.term_rows(x, terms[I]) - rows[I], terms[I]) + mean
        fresh = objective.term_rows(x, terms[J])
        mean = mean + (len(J) / len(terms)) * objective.assemble(fresh - rows[J], terms[J])
        rows = rows.copy()
        rows[J] = fresh
        return v, Table(terms, rows, mean)

    def pick(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(n, size=self.batch) if self.replace else rng.permutation(n)[: self.batch]
