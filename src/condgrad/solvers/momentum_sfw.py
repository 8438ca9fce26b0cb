r"""Stochastic Frank-Wolfe with momentum, for expectations: one sample a step.

    v = (1 - r) v_previous + r g(x)                       momentum-sfw (Mokhtari, Hassani and Karbasi 2020)
    v = g(x) + (1 - r) (v_previous - g(x_previous))       one-sample-sfw (Zhang, Shen, Mokhtari, Hassani and Karbasi 2020)

g is the gradient of a new sample (or the mean over a batch); the second form takes it at both points. With sigma^2 the variance
of a sample, h_0 >= F(x_0) - F*, D the diameter and x_a a random iterate of T, for non-convex F:

    momentum-sfw:    r = T^(-1/2), t = sqrt(h_0/(L D^2)) T^(-3/4):
                     E gap(x_a) <= D (3/2 sqrt(L h_0) + sqrt(2 sigma^2 + L h_0)) T^(-1/4)
    one-sample-sfw:  r = T^(-2/3), t = sqrt(h_0/(L D^2)) T^(-2/3), T^(1/3) samples in the first step, each sample L-smooth:
                     E gap(x_a) <= D (3/2 sqrt(L h_0) + sqrt(3 sigma^2 + 2 L h_0)) T^(-1/3)

docs/methods/momentum.md has the derivation. The practical schedule has k + 8 in place of T, with the 8 of Mokhtari et
al.: the first samples are too few for long steps.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from condgrad.estimators import Momentum
from condgrad.protocols import Problem
from condgrad.solvers.schedules import Schedule, Setup, theory
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe, smoothness_of_terms

SHIFT = 8


def momentum_sfw(
    problem: Problem, setup: Setup, batch: int = 1, initial_gap: float | None = None, replace: bool = True
) -> StochasticFrankWolfe:
    """Build momentum-sfw."""
    estimator = Momentum(decay(setup.schedule, 1 / 2, SHIFT), batch, replace=replace)
    return StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed, power=3 / 4, shift=SHIFT)


def one_sample_sfw(
    problem: Problem,
    setup: Setup,
    batch: int = 1,
    sample: int | None = None,
    initial_gap: float | None = None,
    replace: bool = True,
) -> StochasticFrankWolfe:
    """Build one-sample-sfw; ``sample`` is the size of the first batch, by default T^(1/3)."""
    first = max(batch, sample or first_batch(setup.steps))
    estimator = Momentum(decay(setup.schedule, 2 / 3, SHIFT), batch, first, recursive=True, replace=replace)
    L = smoothness_of_terms(problem.objective, setup.schedule)
    return StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed, L, 2 / 3, SHIFT)


def decay(schedule: Schedule, power: float, shift: int = 0) -> Callable[[int], float]:
    """Return the weight r of step k: T^(-power) in theory, (k + shift)^(-power) in practice."""
    return lambda k: float(schedule.steps if isinstance(schedule, theory) else k + shift) ** -power


def first_batch(steps: int) -> int:
    """Return T^(1/3), rounded up: with a smaller first batch the error of the first estimate would decide the bound."""
    return ceil(steps ** (1 / 3) - 1e-9)
