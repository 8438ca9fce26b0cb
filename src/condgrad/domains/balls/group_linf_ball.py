"""The ball of the group l1/l-infinity norm."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape
from condgrad.domains.balls._groups import group_numbers, members, rows_are_groups
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.linalg.selection import SHORT, finite_size
from condgrad.points.sparse_array import SparseArray


@final
@dataclass(frozen=True, eq=False)
class GroupLinfBall(Ball):
    """{x : sum over the groups g of max |x_i|, i in g, <= r}: few groups are not zero, within a group sizes tend to be equal

    With the rows of a matrix as groups it selects variables for several tasks together. The projection is exact: a sort, and
    Newton's method on a convex, piecewise linear equation.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    radius : float, default 1.0
        The radius r.
    groups : sequence of int or str, default None
        A label for each index of the first axis; indices (of a matrix: whole rows) with the same label are a group. None: every
        index is one, of a matrix the rows.

    References
    ----------
    A. Quattoni, X. Carreras, M. Collins and T. Darrell, "An efficient projection for l1,infinity regularization", ICML 2009.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.GroupLinfBall(3, 5.0, groups=["a", "a", "b"]).lmo(np.array([3.0, -4.0, 4.5]))
    array([-5.,  5.,  0.])
    """

    shape: Shape
    radius: float = 1.0
    groups: Any = None
    _by_row: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._settle()
        groups = group_numbers(self.groups, self.shape, "GroupLinfBall")
        checks.settle(self, groups=groups, _by_row=rows_are_groups(groups))

    def norm(self, x: np.ndarray) -> float:
        size = np.abs(x).ravel()
        largest = np.zeros(self.groups.max() + 1)
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            np.maximum.at(largest, self.groups.ravel(), size)
        return float(largest.sum())

    @property
    def max_norm(self) -> float:
        return self.radius * math.sqrt(int(np.bincount(self.groups.ravel()).max()))

    def atom(self, direction: np.ndarray) -> SparseArray:
        direction = self._point(direction)
        with np.errstate(over="ignore"):
            sums = self._sums(direction)
        if not math.isfinite(sums.max()):
            sums = self._sums(direction / finite_size(direction))
        chosen = members(self.groups, int(np.argmax(sums)), self._by_row)
        return SparseArray(chosen, -np.copysign(self.radius, direction.reshape(-1)[chosen]), self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()

    def _sums(self, x: np.ndarray) -> np.ndarray:
        """|x_g|_1 for each group."""
        if not self._by_row:
            return np.bincount(self.groups.ravel(), np.abs(x).ravel())
        rows = x.reshape(len(x), -1)
        sums, ones = np.empty(len(rows)), np.ones(rows.shape[1])
        height = max(1, SHORT // rows.shape[1])
        for i in range(0, len(rows), height):
            np.dot(np.abs(rows[i : i + height]), ones, out=sums[i : i + height])
        return sums

    def project(self, x: np.ndarray) -> np.ndarray:
        """Entries are cut off at a height for each group, so that each group above height 0 loses theta in the l1 norm.

        The height is max_j (S_j - theta) / j, or 0, with the sum S_j of the j largest sizes: convex in theta, so that Newton's
        steps from 0 never go too far.
        """
        x = checks.finite(self._point(x), type(self).__name__, self.max_norm)
        if self.norm(x) <= self.radius:
            return x
        size, numbers = np.abs(x).ravel(), self.groups.ravel()
        order = np.lexsort((-size, numbers))
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        counts = np.diff(np.append(starts, len(order)))
        sums = np.cumsum(size[order])
        sums -= np.repeat(sums[starts] - size[order][starts], counts)
        rank = np.arange(1, len(order) + 1) - np.repeat(starts, counts)
        theta, before = 0.0, -1.0
        while theta > before:
            before = theta
            heights = (sums - theta) / rank
            best = np.maximum.reduceat(heights, starts)
            at = np.maximum.reduceat(np.where(heights == np.repeat(best, counts), rank, 0), starts)  # the flatter slope
            used = best > 0
            if not used.any():
                break
            theta += max((float(best[used].sum()) - self.radius) / float(np.sum(1 / at[used])), 0.0)
        heights = np.maximum(np.maximum.reduceat((sums - theta) / rank, starts), 0.0)
        return self._onto_boundary(np.copysign(np.minimum(np.abs(x), heights[self.groups]), x))


def _group_linf_balls() -> Examples:
    return {
        "": GroupLinfBall((3, 2), 2.0),
        "with labels": GroupLinfBall(6, 0.5, groups=["a", "b", "a", "c", "b", "a"]),
        "of one": GroupLinfBall(1, 7.0),
        "of one group": GroupLinfBall(3, groups=[5, 5, 5]),
    }


def _in_group_linf_ball(ball: GroupLinfBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    norm = sum(np.abs(x[ball.groups == label]).max() for label in np.unique(ball.groups))
    return in_ball(ball, x, norm, rng)


def _group_linf_vertices(ball: GroupLinfBall) -> np.ndarray:
    found = []
    for label in np.unique(ball.groups):
        inside = ball.groups == label
        for signs in itertools.product([-1.0, 1.0], repeat=int(inside.sum())):
            vertex = np.zeros(ball.shape)
            vertex[inside] = ball.radius * np.array(signs)
            found.append(vertex)
    return np.array(found)


ENTRY = DomainEntry(
    "group-linf-ball", GroupLinfBall, "{x : sum over groups g of |x_g|_inf <= r}",
    "r with the opposite signs in the group with the largest l1 norm",
    _group_linf_balls, _in_group_linf_ball, vertices=_group_linf_vertices,
)  # fmt: skip
