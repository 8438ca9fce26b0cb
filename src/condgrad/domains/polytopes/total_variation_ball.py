"""The ball of the total variation of a sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples, sparse_normal
from condgrad.domains.polytopes._direction import moderate
from condgrad.linalg.selection import index_of_largest_size


@final
@dataclass(frozen=True)
class TotalVariationBall:
    """{x : sum_i |x_{i+1} - x_i| <= r, mean x = mean}; the mean is fixed, since otherwise the set would not be bounded.

    The vertices are steps: 2 (n - 1) sequences of mean ``mean`` with one jump, of r or -r. The linear oracle finds the jump by
    one cumulative sum, exactly in O(n).

    Parameters
    ----------
    shape : int
        Length n of the sequences, at least 2.
    radius : float, default 1.0
        r.
    mean : float, default 0.0
        The mean of the entries.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> cg.TotalVariationBall(4, radius=2.0).lmo(np.array([1.0, 2.0, -1.0, 0.0]))
    array([-1., -1.,  1.,  1.])

    References
    ----------
    L. I. Rudin, S. Osher, E. Fatemi, Nonlinear total variation based noise removal algorithms, Physica D 60 (1992).
    """

    shape: Shape
    radius: float = 1.0
    mean: float = 0.0

    def __post_init__(self) -> None:
        shape = checks.as_shape(self.shape, "TotalVariationBall")
        if len(shape) != 1 or shape[0] < 2:
            raise ValueError(
                f"TotalVariationBall is a set of sequences of at least 2 entries, but got shape {shape}: for other shapes use "
                "GraphTotalVariationBall."
            )
        radius = checks.positive(self.radius, "The radius of TotalVariationBall")
        checks.settle(self, shape=shape, radius=radius, mean=checks.real(self.mean, "The mean of TotalVariationBall"))

    @property
    def _reach(self) -> float:
        """The largest distance from the constant sequence: a jump in the middle."""
        n = self.shape[0]
        return self.radius * math.sqrt((n // 2) * (n - n // 2) / n)

    @property
    def diameter(self) -> float:
        """Exact: between the two jumps in the middle."""
        return 2 * self._reach

    @property
    def max_norm(self) -> float:
        """Exact: that of a jump in the middle."""
        return math.hypot(math.sqrt(self.shape[0]) * self.mean, self._reach)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """The sequence with one jump, behind the entry with the largest absolute sum of the centred direction before it."""
        g, n = moderate(direction, self.shape, "TotalVariationBall"), self.shape[0]
        centred = g - g.mean()
        sums = np.cumsum(centred, out=centred)[:-1]
        last = index_of_largest_size(sums)
        jump = math.copysign(self.radius, sums[last])
        vertex = centred  # whose memory is not needed any more
        vertex[: last + 1] = self.mean - jump * (n - 1 - last) / n
        vertex[last + 1 :] = self.mean + jump * (last + 1) / n
        return vertex

    def start(self) -> np.ndarray:
        """The constant sequence."""
        return np.full(self.shape, self.mean)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether the variation and the mean are as required, up to ``tolerance`` times r, and rounding."""
        x = checks.point(x, self.shape, "TotalVariationBall")
        slack = tolerance * self.radius + 8 * np.finfo(float).eps * len(x) * (abs(self.mean) + self.radius)
        return bool(np.abs(np.diff(x)).sum() <= self.radius + slack and abs(x.mean() - self.mean) <= slack)


def _total_variation_balls() -> Examples:
    return {
        "": TotalVariationBall(5, 2.0),
        "with a mean": TotalVariationBall(4, 0.5, mean=3.0),
        "of two": TotalVariationBall(2),
    }


def _in_total_variation_ball(domain: TotalVariationBall, rng: np.random.Generator) -> np.ndarray:
    x = np.cumsum(sparse_normal(domain.shape, rng))
    variation = np.abs(np.diff(x)).sum() or 1.0
    return domain.mean + domain.radius * rng.choice([1.0, rng.random()]) * (x - x.mean()) / variation


def _total_variation_minimum(domain: TotalVariationBall, g: np.ndarray) -> float:
    n = domain.shape[0]
    jumps = [np.where(np.arange(n) < k, 0.0, 1.0) - (n - k) / n for k in range(1, n)]
    return float(domain.mean * g.sum() - domain.radius * max(abs(float(g @ jump)) for jump in jumps))


ENTRY = DomainEntry(
    "total-variation-ball", TotalVariationBall, "{x : sum |x_{i+1} - x_i| <= r, mean x = c}", "one jump, by a cumulative sum",
    _total_variation_balls, _in_total_variation_ball, _total_variation_minimum,
)  # fmt: skip
