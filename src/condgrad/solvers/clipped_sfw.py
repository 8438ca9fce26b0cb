r"""Stochastic Frank-Wolfe with clipped momentum, for samples with heavy tails (cf. arXiv 2506.04192).

    v = (1 - r) v_previous + r g(x) min(1, lambda/|g(x)|),  s = lmo(v),  x = x + t (s - x)

g is the gradient of a new sample (or the mean over a batch). For p in (1, 2] the p-th moment of |g - grad F| is at most sigma^p,
the variance may be infinite. With q = 1/(3p - 2), r = T^(-pq), t = sqrt(h_0/(L D^2)) T^(-(2p-1)q) and lambda = l T^q with a level
l >= sigma for which lambda >= 2 max |grad F|, h_0 >= F(x_0) - F*, D the diameter and x_a a random iterate of T, for non-convex F:

    E gap(x_a) <= D (5/2 sqrt(L h_0) + 4 l) T^(-(p-1)q)

docs/methods/momentum.md has the derivation. For p = 2 and l = infinity it is momentum-sfw. The practical schedule has k + 8 in
place of T.
"""

from __future__ import annotations

from math import inf
from typing import Any

from condgrad.checks import positive, real
from condgrad.estimators import Clipped
from condgrad.protocols import Problem
from condgrad.solvers.momentum_sfw import SHIFT, decay
from condgrad.solvers.schedules import Setup
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe


def clipped_sfw(
    problem: Problem,
    setup: Setup,
    batch: int = 1,
    level: float | None = None,
    tail: float = 2.0,
    initial_gap: float | None = None,
    replace: bool = True,
) -> StochasticFrankWolfe:
    """Build the method; ``tail`` is p, ``level`` is l, by default twice the median length of 16 sample gradients at x_0."""
    p, q = tail, 1 / (3 * tail - 2)
    weight, growth = decay(setup.schedule, p * q, SHIFT), decay(setup.schedule, -q, SHIFT)
    estimator = Clipped(weight, growth, batch, level, setup.seed, replace)
    return StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed, power=(2 * p - 1) * q, shift=SHIFT)


def check_level(level: Any, what: str) -> None:
    """Raise ValueError unless ``level`` is positive; it may be infinite."""
    if level != inf:
        positive(level, what)


def check_tail(tail: Any, what: str) -> None:
    """Raise ValueError unless ``tail`` is a number above 1 and at most 2."""
    if not 1 < real(tail, what) <= 2:
        raise ValueError(
            f"{what} is {tail}, a number above 1 and at most 2 was expected: the moment that is finite, 2 for the variance."
        )
