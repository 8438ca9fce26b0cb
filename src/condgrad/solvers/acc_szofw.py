r"""Acc-SZOFW and Acc-SZOFW* (Huang, Tao and Chen 2020): accelerated stochastic Frank-Wolfe, also for functions known by values.

    v = an estimate of grad F(z),  w = lmo(v)
    x = x + (1 + theta_k) eta (w - x)
    y = z + eta (w - z)
    z = (1 - alpha_k) y + alpha_k x            alpha_k = 1/(k + 1), theta_k = 1/(k (k + 1))

acc-szofw, for F = (1/n) sum_i f_i:  v is SPIDER's with b = m = sqrt(n);  acc-szofw-star, for expectations:  v is STORM's, as in
one-sample-sfw. With objectives that know values only, gradients are differences of values at the same samples. With K the
mean-square smoothness, D the diameter, h_0 >= F(x_0) - F*, |grad F| <= G, and z_a a random iterate of T:

    acc-szofw:       C = 1.35 K + 0.92 L, eta = sqrt(h_0/(C D^2 T)):     E gap(z_a) <= 2 D sqrt(C h_0/T) + 1.26 D G/T
    acc-szofw-star:  r = T^(-2/3), eta = sqrt(h_0/(L D^2)) T^(-2/3), T^(1/3) samples in the first step, each sample L-smooth:
                     E gap(z_a) <= D (1.92 sqrt(L h_0) + sqrt(3 sigma^2 + 3.7 L h_0)) T^(-1/3) + 1.26 D G/T

while eta <= 2/3, and with D times the bias of the differences added. docs/methods/zeroth-order.md has the derivation. The
practical schedule has k, or k + 8, in place of T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.estimators import SPIDER
from condgrad.protocols import Point, Problem
from condgrad.solvers.momentum_sfw import one_sample_sfw
from condgrad.solvers.schedules import Setup, theory
from condgrad.solvers.spider_fw import square_root
from condgrad.solvers.states import State
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe, smoothness_of_terms
from condgrad.storage.stored import stored

MAX_ETA = 2 / 3
"""The largest eta for which x stays in the set: (1 + theta_1) eta = 1."""


@stored
@dataclass(frozen=True, kw_only=True)
class AcceleratedState(State):
    """State of :class:`AcceleratedFrankWolfe`; ``x`` is the point z."""

    fast: Point
    """The paper's x."""
    memory: Any
    """State of the estimator."""
    scale: float
    """The step eta is scale / T^power."""


@dataclass(frozen=True)
class AcceleratedFrankWolfe:
    """Accelerated stochastic Frank-Wolfe. It reports z. ``plain`` has the estimator and the law of the step size eta."""

    plain: StochasticFrankWolfe

    def init(self, problem: Problem, x0: Point) -> AcceleratedState:
        """Return the initial state at x0."""
        state = self.plain.init(problem, x0)
        return AcceleratedState(x=x0, fast=x0, L=state.L, memory=state.memory, scale=state.scale)

    def step(self, problem: Problem, state: AcceleratedState) -> AcceleratedState:
        """Return the state after one step."""
        k, z, x = state.k + 1, state.x, state.fast
        rng = np.random.default_rng((self.plain.seed, k))

        v, memory = self.plain.estimator.estimate(problem.objective, z, state.memory, k, rng)
        w = problem.domain.lmo(v)
        eta, alpha, theta = min(MAX_ETA, self.plain.step_size(state.scale, k)), 1 / (k + 1), 1 / (k * (k + 1))
        x = x + (1 + theta) * eta * (w - x)
        y = z + eta * (w - z)
        z = (1 - alpha) * y + alpha * x
        return AcceleratedState(k=k, x=z, L=state.L, fast=x, memory=memory, scale=state.scale)


def acc_szofw(
    problem: Problem,
    setup: Setup,
    epoch: int | None = None,
    batch: int | None = None,
    initial_gap: float | None = None,
    replace: bool = True,
) -> AcceleratedFrankWolfe:
    """Build Acc-SZOFW; by default m = b = sqrt(n)."""
    objective, constant = problem.objective, None
    root = square_root(objective.n_terms)
    if isinstance(setup.schedule, theory):
        K: Any = objective.mean_square_smoothness or smoothness_of_terms(objective, setup.schedule)
        constant = 1.35 * K + 0.92 * objective.smoothness
    estimator = SPIDER(epoch or root, batch or root, replace=replace)
    return AcceleratedFrankWolfe(StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed, constant))


def acc_szofw_star(
    problem: Problem,
    setup: Setup,
    batch: int = 1,
    sample: int | None = None,
    initial_gap: float | None = None,
    replace: bool = True,
) -> AcceleratedFrankWolfe:
    """Build Acc-SZOFW*; ``sample`` is the size of the first batch, by default T^(1/3)."""
    return AcceleratedFrankWolfe(one_sample_sfw(problem, setup, batch, sample, initial_gap, replace))
