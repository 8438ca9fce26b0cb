r"""Stochastic Frank-Wolfe with implicit gradient transport (Jang and Lee 2026, arXiv 2605.05577): one gradient a step.

    y = x_previous + (x - x_previous)/r
    v = (1 - r) v_previous + r g(y),  s = lmo(v),  x = x + t (s - x)

g is the gradient of a new sample (or the mean over a batch). y is a point of the set, since t <= r. With sigma^2 the variance of
a sample, h_0 >= F(x_0) - F*, D the diameter, tau = min(1, sqrt(h_0/(L D^2))), a Hessian of F that is M-Lipschitz, x_a a random
iterate of T, r = T^(-4/7) and t = tau T^(-5/7), for non-convex F:

    E gap(x_a) <= (h_0/tau + 2 D sigma + M D^3 tau^2/2 + L D^2 tau/2) T^(-2/7),

so 1/eps^(7/2) samples, where momentum-sfw has 1/eps^4. docs/methods/momentum.md has the derivation. The practical schedule has
k + 8 in place of T.
"""

from __future__ import annotations

from condgrad.estimators import Transport
from condgrad.protocols import Problem
from condgrad.solvers.momentum_sfw import SHIFT, decay
from condgrad.solvers.schedules import Setup
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe


def igt_sfw(
    problem: Problem, setup: Setup, batch: int = 1, initial_gap: float | None = None, replace: bool = True
) -> StochasticFrankWolfe:
    """Build the method."""
    estimator = Transport(decay(setup.schedule, 4 / 7, SHIFT), batch, replace)
    return StochasticFrankWolfe(
        estimator, setup.schedule, initial_gap, setup.seed, power=5 / 7, shift=SHIFT, max_scale=1.0
    )
