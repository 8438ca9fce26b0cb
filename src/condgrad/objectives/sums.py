"""What everything seen through samples has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from condgrad.protocols import Batch, Point


class Sampled(ABC):
    """Abstract: the mean gradient of a batch is what its rows assemble to."""

    @abstractmethod
    def term_rows(self, x: Point, batch: Batch) -> np.ndarray: ...

    @abstractmethod
    def assemble(self, rows: np.ndarray, batch: Batch) -> Point: ...

    def grad_terms(self, x: Point, batch: Batch) -> Point:
        return self.assemble(self.term_rows(x, batch), batch)


class Sum(Sampled):
    """Abstract: (1/n) sum_i f_i, whose terms are drawn uniformly with replacement."""

    n_terms: int

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        return rng.integers(self.n_terms, size=size)
