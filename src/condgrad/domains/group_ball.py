"""The ball of the group (l1/l2) norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains._ball import Ball, Shape
from condgrad.linalg.simplex_projection import onto_simplex


@final
@dataclass(frozen=True, eq=False)
class GroupBall(Ball):
    """{x : sum over the groups g of |x_g|_2 <= r}: few groups are not zero, within a group all may be.

    ``groups`` has one label for each index of the first axis; indices (of a matrix: whole rows) with the same label are a
    group. Without it every index is one: of a matrix the rows.
    """

    shape: Shape
    radius: float = 1.0
    groups: Any = None

    def __post_init__(self) -> None:
        self._settle()
        labels = np.arange(self.shape[0]) if self.groups is None else np.asarray(self.groups)
        checks.same_shape(labels.shape, self.shape[:1], "The list of groups of GroupBall (a label for each index)")
        if labels.dtype.kind not in "biuUS":
            raise ValueError(f"The groups of GroupBall must be labels, whole numbers or names, but got {labels.dtype}.")
        _, numbers = np.unique(labels, return_inverse=True)
        width = math.prod(self.shape[1:])
        checks.settle(self, groups=checks.read_only(np.repeat(numbers, width).reshape(self.shape)))

    def _norms(self, x: np.ndarray) -> np.ndarray:
        """|x_g| for each group, scaled so that no square overflows or vanishes."""
        top = float(np.abs(x).max())
        if not 0 < top < np.inf:
            return np.full(self.groups.max() + 1, top)
        return top * np.sqrt(np.bincount(self.groups.ravel(), np.square(x / top).ravel()))

    def norm(self, x: np.ndarray) -> float:
        return float(self._norms(x).sum())

    @property
    def max_norm(self) -> float:
        return self.radius

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        direction = self._point(direction)
        top = np.abs(direction).max()
        steep = direction / top if top > 0 else np.ones(self.shape)
        norms = self._norms(steep)
        largest = np.argmax(norms)
        return np.where(self.groups == largest, -self.radius / norms[largest] * steep, 0.0)

    def project(self, x: np.ndarray) -> np.ndarray:
        x = self._point(x)
        norms = self._norms(x)
        if norms.sum() <= self.radius:
            return x
        kept = onto_simplex(norms, self.radius) / np.where(norms > 0, norms, 1.0)
        return kept[self.groups] * x
