"""Base class of polytopes whose vertices have entries 0 and 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from condgrad import checks
from condgrad.domains.polytopes._direction import scaled
from condgrad.points import SparseArray


class ZeroOnePolytope(ABC):
    """A polytope that is the convex hull of some arrays of zeros and ones."""

    shape: Any

    @abstractmethod
    def _chosen(self, direction: np.ndarray) -> np.ndarray:
        """Flat indices of the ones of a vertex that minimises <direction, x>; the direction is scaled."""

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """A vertex that minimises <direction, x>."""
        ones = self._ones(
            direction
        )  # before memory is taken: with it the assignment problem of 400 rows is 20 % slower
        vertex = np.zeros(self.shape)
        vertex.reshape(-1)[ones] = 1.0
        return vertex

    def atom(self, direction: np.ndarray) -> SparseArray:
        """The answer of ``lmo`` as the indices of its ones."""
        return SparseArray(self._ones(direction), 1.0, self.shape)

    def _ones(self, direction: np.ndarray) -> np.ndarray:
        """The same indices for a direction that is neither checked nor scaled."""
        return self._chosen(scaled(direction, self.shape, type(self).__name__))

    def _point(self, x: Any) -> np.ndarray:
        """x as an array of the shape of the set."""
        return checks.point(x, self.shape, type(self).__name__)


def between_0_and_1(x: np.ndarray, slack: float) -> bool:
    """Whether all entries are between 0 and 1; NaN is not."""
    return bool(np.all((x >= -slack) & (x <= 1 + slack)))
