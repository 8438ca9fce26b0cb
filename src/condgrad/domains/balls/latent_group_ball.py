"""The ball of the latent group norm, for groups that overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Ball, Shape, is_safe
from condgrad.domains.entry import DomainEntry, Examples, sparse_normal
from condgrad.linalg.selection import finite_size, largest_size
from condgrad.points.sparse_array import SparseArray

ROUNDS, STEPS = 30, 200
"""Cheap fixed-point steps before Newton's method is tried, and the most steps of Newton's method."""
ROUNDING = 1e-14
"""Relative growth of a value that may be rounding: near the minimum a step is better by less than that."""
ACCURACY = 1e-13
"""Relative distance of the bounds of a norm at which they count as equal."""


@final
@dataclass(frozen=True, eq=False)
class LatentGroupBall(Ball):
    """conv of the union over the groups g of {x : x is 0 outside of g, |x|_2 <= r / w_g}

    Points whose support is a union of few groups, which may share entries: the ball of the latent group lasso (group lasso with
    overlap). The norm is itself the minimum of a convex problem with one unknown for each group, so ``contains`` brackets it
    from both sides until it can decide; there is no projection.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    groups : sequence of sequences of int
        The flat indices in each group; together they must have every index.
    radius : float, default 1.0
        The radius r.
    weights : array_like of float, default None
        The weights w of the groups, all positive. None: 1 for each.

    References
    ----------
    L. Jacob, G. Obozinski and J.-P. Vert, "Group lasso with overlap and graph lasso", ICML 2009.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> ball = cg.LatentGroupBall(3, [[0, 1], [1, 2]], 5.0)
    >>> ball.lmo(np.array([3.0, 4.0, 1.0]))
    array([-3., -4.,  0.])
    >>> round(ball.norm(np.array([1.0, 0.0, 1.0])), 9), round(ball.norm(np.array([1.0, 2.0, 1.0])), 9)
    (2.0, 2.828427125)
    """

    shape: Shape
    groups: Any
    radius: float = 1.0
    weights: Any = None
    _numbers: np.ndarray = field(init=False, repr=False)
    _indices: np.ndarray = field(init=False, repr=False)
    _runs: np.ndarray = field(init=False, repr=False)
    """The first index of each run of neighbours that are in the same groups."""
    _members: Any = field(init=False, repr=False)
    """Sparse matrix with a row for each group and a column for each run: (min w / w)^2 for the runs of the group."""

    def __post_init__(self) -> None:
        import scipy.sparse as sp

        self._settle()
        size = math.prod(self.shape)
        groups = tuple(_group(group, number, size) for number, group in enumerate(self.groups))
        lacking = np.setdiff1d(np.arange(size), np.concatenate([*groups, np.empty(0, int)]))
        if len(lacking):
            raise ValueError(
                f"Index {lacking[0]} is in no group of LatentGroupBall: add it to one, or a group of its own."
            )
        weights = np.ones(len(groups)) if self.weights is None else self.weights
        weights = checks.finite_array(weights, "The list of weights of LatentGroupBall")
        checks.same_shape(weights.shape, (len(groups),), "The list of weights of LatentGroupBall (one for each group)")
        if np.any(weights <= 0):
            worst = float(weights.min())
            raise ValueError(
                f"The weights of LatentGroupBall must be positive, but one is {worst:g}: give larger ones."
            )
        numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        checks.settle(self, groups=groups, weights=weights)
        indices = np.concatenate(groups)
        apart = np.flatnonzero((np.diff(indices) != 1) | (np.diff(numbers) > 0))  # before a gap, or the end of a group
        begins = np.zeros(size + 1, bool)
        begins[0], begins[indices[apart] + 1], begins[indices[apart + 1]], begins[indices[-1] + 1] = (True,) * 4
        runs = np.flatnonzero(begins[:-1])
        first = begins[indices]  # of the indices of a group, those that begin a run
        entries = (
            ((weights.min() / weights) ** 2)[numbers[first]],
            (numbers[first], np.searchsorted(runs, indices[first])),
        )
        checks.settle(self, _runs=runs, _members=sp.csr_array(entries, shape=(len(groups), len(runs))))
        checks.settle(self, _numbers=checks.read_only(numbers), _indices=checks.read_only(indices))

    def _squares(self, z: np.ndarray) -> np.ndarray:
        """(|z_g|_2 min w / w_g)^2 for each group; z is flat. A run is summed once, for all of its groups."""
        if self._equal_runs:
            rows = z.reshape(len(self._runs), -1)
            sums = np.einsum("ij,ij->i", rows, rows)
        else:
            sums = np.add.reduceat(np.square(z), self._runs)
        return self._members @ sums

    @cached_property
    def _equal_runs(self) -> bool:
        """Whether all runs have the same length."""
        return bool(np.all(np.diff(np.append(self._runs, math.prod(self.shape))) == self._runs[1:2].sum()))

    def _dual(self, z: np.ndarray) -> np.ndarray:
        """|z_g|_2 / w_g for each group; z is flat."""
        return np.sqrt(self._squares(z)) / self.weights.min()

    def norm(self, x: np.ndarray) -> float:
        """An upper bound of the norm, which is exact to about 1e-12."""
        return self._bounds(self._point(x))[1]

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        limit = self.radius * (1 + tolerance)
        return bool(self._bounds(self._point(x), limit)[1] <= limit)

    def _bounds(self, x: np.ndarray, limit: float = math.nan) -> tuple[float, float]:
        """Bounds of the norm, equal to rounding, or one of them on its side of the limit.

        The square of the norm is the minimum of sum x_i^2 / s_i over eta in the simplex, with s_i = sum of eta_g / w_g^2 over the
        groups of i. Any eta gives an upper bound, and a = x / s a lower one: <x, a> over the dual norm of a.
        """
        top = largest_size(x)
        if not 0 < top < math.inf:
            return top, top
        z, eta = x.reshape(-1) / top, np.full(len(self.groups), 1 / len(self.groups))
        low, high, width = 0.0, math.inf, math.inf
        for step in range(ROUNDS + STEPS):
            s = self._spread(eta)
            a = np.divide(z, s, out=np.zeros_like(z), where=z != 0)
            value, dual = float(z @ a), self._dual(a)
            low, high = max(low, value / float(dual.max())), min(high, math.sqrt(value))
            if high * top <= limit or low * top > limit or high <= low * (1 + ACCURACY):
                break
            if step > ROUNDS and step % 5 == 0:
                if high - low > width / 2:  # rounding allows no more
                    break
                width = high - low
            following = eta * dual / float(eta @ dual) if step < ROUNDS else self._newton(z, eta, s, dual)
            if following is None:
                break
            eta = following
        return low * top, high * top

    def _spread(self, eta: np.ndarray) -> np.ndarray:
        return np.bincount(self._indices, (eta / self.weights**2)[self._numbers], math.prod(self.shape))

    def _newton(self, z: np.ndarray, eta: np.ndarray, s: np.ndarray, dual: np.ndarray) -> np.ndarray | None:
        """A step to the minimum of the quadratic model over the simplex, halved until the value falls; None: it never does."""
        from scipy.sparse import csr_array

        from condgrad.linalg.simplex_qp import nearest_weights

        used = z != 0
        curvature = np.divide(z**2, s**3, out=np.zeros_like(z), where=used)
        B = csr_array(((1 / self.weights**2)[self._numbers], (self._numbers, self._indices)), shape=(len(eta), len(z)))
        H = 2 * (B * curvature @ B.T).toarray()
        target, _ = nearest_weights(H, H @ eta + dual**2, eta)
        value, t = float(np.sum(z[used] ** 2 / s[used])), 1.0
        while t > 1e-12:
            tried = (1 - t) * eta + t * target
            spread = self._spread(tried)[used]
            if spread.min() > 0 and float(np.sum(z[used] ** 2 / spread)) <= value * (1 + ROUNDING):
                return tried
            t /= 2
        return None

    @property
    def max_norm(self) -> float:
        return self.radius / float(self.weights.min())

    def atom(self, direction: np.ndarray) -> SparseArray:
        flat = self._point(direction).reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self._squares(flat)
        if not is_safe(squares.max()):  # as it is with NaN and Inf
            top = finite_size(flat)
            flat = flat / top if top > 0 else np.ones(flat.size)
            squares = self._squares(flat)
        best = int(np.argmax(squares))
        group = self.groups[best]
        kept = flat[group]
        return SparseArray(group, -self.radius / (self.weights[best] * float(np.linalg.norm(kept))) * kept, self.shape)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return self.atom(direction).to_dense()


def _group(group: Any, number: int, size: int) -> np.ndarray:
    """The indices of a group, increasing."""
    indices = np.asarray(group)
    if indices.ndim != 1 or not indices.size or indices.dtype.kind not in "iu":
        raise ValueError(f"Group {number} of LatentGroupBall must be a list of at least one index, but got {group!r}.")
    indices = np.unique(indices.astype(np.int64))
    if not 0 <= indices[0] <= indices[-1] < size:
        outside = indices[0] if indices[0] < 0 else indices[-1]
        raise ValueError(
            f"Group {number} of LatentGroupBall has the index {outside}, but indices go from 0 to {size - 1}: correct it."
        )
    return checks.read_only(indices)


def _latent_group_balls() -> Examples:
    return {
        "": LatentGroupBall(5, [[0, 1, 2], [2, 3], [3, 4], [4]], 2.0),
        "with weights": LatentGroupBall(4, [[0, 1], [1, 2], [2, 3], [0, 1, 2, 3]], 0.5, [1.0, 0.7, 1.0, 1.3]),
        "of matrices": LatentGroupBall((2, 2), [[0, 1], [2, 3], [0, 2], [1, 3]]),
        "without overlap": LatentGroupBall(3, [[0, 2], [1]], 3.0, [1.0, 2.0]),
    }


def _in_latent_group_ball(ball: LatentGroupBall, rng: np.random.Generator) -> np.ndarray:
    x, shares = np.zeros(math.prod(ball.shape)), rng.dirichlet(np.full(len(ball.groups), 0.5))
    for group, w, share in zip(ball.groups, ball.weights, shares, strict=True):
        part = sparse_normal((len(group),), rng)
        x[group] += share * ball.radius / w * part / (np.linalg.norm(part) or 1.0)
    return x.reshape(ball.shape)


def _latent_group_minimum(ball: LatentGroupBall, g: np.ndarray) -> float:
    return -ball.radius * max(np.linalg.norm(g.ravel()[i]) / w for i, w in zip(ball.groups, ball.weights, strict=True))


ENTRY = DomainEntry(
    "latent-group-ball", LatentGroupBall, "conv {x : x is 0 outside of a group g, |x|_2 <= r / w_g}",
    "the group with the largest |direction_g| / w_g, reversed and scaled to its sphere",
    _latent_group_balls, _in_latent_group_ball, _latent_group_minimum,
)  # fmt: skip
