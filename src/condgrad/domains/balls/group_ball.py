"""The ball of the group (l1/l2) norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape, is_safe
from condgrad.domains.balls._groups import group_numbers, members, rows_are_groups
from condgrad.domains.entry import DomainEntry, Examples, in_ball, sparse_normal
from condgrad.linalg.selection import finite_size, largest_size
from condgrad.linalg.simplex_projection import onto_simplex
from condgrad.points.sparse_array import SparseArray


@final
@dataclass(frozen=True, eq=False)
class GroupBall(Ball):
    """{x : sum over the groups g of |x_g|_2 <= r}: few groups are not zero, within a group all may be.

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
    M. Yuan and Y. Lin, "Model selection and estimation in regression with grouped variables", Journal of the Royal Statistical
    Society B 68 (2006).

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.GroupBall(3, 5.0, groups=["a", "a", "b"]).lmo(np.array([3.0, -4.0, 4.5]))
    array([-3.,  4.,  0.])
    """

    shape: Shape
    radius: float = 1.0
    groups: Any = None
    _by_row: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._settle()
        groups = group_numbers(self.groups, self.shape, "GroupBall")
        checks.settle(self, groups=groups, _by_row=rows_are_groups(groups))

    def _norms(self, x: np.ndarray) -> np.ndarray:
        """|x_g| for each group, scaled so that no square overflows or vanishes."""
        top = largest_size(x)
        if not 0 < top < np.inf:
            return np.full(self.groups.max() + 1, top)
        return top * np.sqrt(self._squares(x / top))

    def _squares(self, x: np.ndarray) -> np.ndarray:
        """|x_g|^2 for each group."""
        if self._by_row:
            rows = x.reshape(len(x), -1)
            return np.einsum("ij,ij->i", rows, rows)
        return np.bincount(self.groups.ravel(), np.square(x).ravel())

    def norm(self, x: np.ndarray) -> float:
        return float(self._norms(x).sum())

    @property
    def max_norm(self) -> float:
        return self.radius

    def atom(self, direction: np.ndarray) -> SparseArray:
        direction = self._point(direction)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self._squares(direction)
        largest = int(np.argmax(squares))
        if not is_safe(squares[largest]):  # as it is with NaN and Inf
            top = finite_size(direction)
            direction = direction / top if top > 0 else np.ones(self.shape)
            squares = self._squares(direction)
            largest = int(np.argmax(squares))
        chosen = members(self.groups, largest, self._by_row)
        values = -self.radius / math.sqrt(squares[largest]) * direction.reshape(-1)[chosen]
        return SparseArray(chosen, values, self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()

    def project(self, x: np.ndarray) -> np.ndarray:
        x = checks.finite(self._point(x), type(self).__name__, self.max_norm)
        norms = self._norms(x)
        if norms.sum() <= self.radius:
            return x
        kept = onto_simplex(norms, self.radius) / np.where(norms > 0, norms, 1.0)
        return kept[self.groups] * x


def _group_balls() -> Examples:
    return {
        "": GroupBall((4, 3), 2.0),
        "with labels": GroupBall(6, 0.5, groups=["a", "b", "a", "c", "b", "a"]),
        "of rows together": GroupBall((3, 2), 3.0, groups=[1, 0, 1]),
        "of one": GroupBall(1, 7.0),
        "of one group": GroupBall(3, groups=[5, 5, 5]),
    }


def _group_norms(ball: GroupBall, x: np.ndarray) -> np.ndarray:
    return np.array([np.linalg.norm(x[ball.groups == label]) for label in np.unique(ball.groups)])


def _in_group_ball(ball: GroupBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(ball.shape, rng)
    return in_ball(ball, x, _group_norms(ball, x).sum(), rng)


def _group_minimum(ball: GroupBall, g: np.ndarray) -> float:
    return -ball.radius * float(_group_norms(ball, g).max())


ENTRY = DomainEntry(
    "group-ball", GroupBall, "{x : sum over groups g of |x_g|_2 <= r}",
    "the group with the largest norm, reversed and scaled to the sphere",
    _group_balls, _in_group_ball, _group_minimum,
)  # fmt: skip
