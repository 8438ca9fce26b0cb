r"""Momentum NCGS: conditional gradient sliding with the recursive momentum of STORM, for expectations: one sample a step.

    v     = g(theta) + (1 - r) (v_previous - g(theta_previous))      g: the gradient of one new sample, at both points
    theta = condg(v, theta, lambda, eta)

Output: a uniformly random one of the iterates theta_0 .. theta_{T-1}. With each sample L-smooth and of variance sigma^2,
r = T^(-2/3), lambda = sqrt(r)/(4L), eta = 1/T and T^(1/3) samples in the first step:

    E |g(theta_a, grad F(theta_a), lambda)|^2 <= (43.2 L (F(theta_0) - F*) + 55.2 L + 25.2 sigma^2) T^(-2/3),

so 1/eps^(3/2) samples in place of the 1/eps^2 of stochastic NCGS. docs/methods/momentum.md has the derivation. The practical
schedule has k in place of T.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from condgrad.estimators import Momentum
from condgrad.protocols import Inner, Point, Problem
from condgrad.solvers.momentum_sfw import decay, first_batch
from condgrad.solvers.schedules import Schedule, Setup
from condgrad.solvers.states import State
from condgrad.solvers.stochastic_frank_wolfe import smoothness_of_terms
from condgrad.storage.stored import stored

SHARE = 5 / 16
"""The relative inner error that the proof allows, twice what leaves half of the descent: practical's c is 1/2."""


@stored
@dataclass(frozen=True, kw_only=True)
class MomentumNCGSState(State):
    """State of :class:`MomentumNCGS`."""

    average: Any
    """State of the estimator."""
    memory: Any
    """State of the inner solver."""


@dataclass(frozen=True)
class MomentumNCGS:
    """Momentum NCGS; the estimator has the weights r and the batch sizes. ``smoothness`` is the L of the step, by default F's."""

    schedule: Schedule
    inner: Inner
    estimator: Momentum
    seed: int = 0
    smoothness: float | None = None

    def init(self, problem: Problem, x0: Point) -> MomentumNCGSState:
        """Return the initial state at x0."""
        average = self.estimator.init(problem.objective, x0)
        memory = self.inner.init(problem.domain, x0)
        return MomentumNCGSState(x=x0, L=problem.objective.smoothness, average=average, memory=memory)

    def step(self, problem: Problem, state: MomentumNCGSState) -> MomentumNCGSState:
        """Return the state after one step."""
        k, theta = state.k + 1, state.x
        lam = sqrt(self.estimator.weight(k)) / (4 * (self.smoothness or state.L))
        rng = np.random.default_rng((self.seed, k))

        v, average = self.estimator.estimate(problem.objective, theta, state.average, k, rng)
        accuracy = self.schedule.accuracy(gamma=lam, share=SHARE)
        theta_k, _, memory = self.inner.solve(problem.domain, v, theta, lam, accuracy, state.memory)
        return MomentumNCGSState(k=k, x=theta_k, L=state.L, average=average, memory=memory)


def momentum_ncgs(
    problem: Problem, setup: Setup, batch: int = 1, sample: int | None = None, replace: bool = True
) -> MomentumNCGS:
    """Build the method; ``sample`` is the size of the first batch, by default T^(1/3)."""
    first = max(batch, sample or first_batch(setup.steps))
    L = smoothness_of_terms(problem.objective, setup.schedule)
    estimator = Momentum(decay(setup.schedule, 2 / 3), batch, first, recursive=True, replace=replace)
    return MomentumNCGS(setup.schedule, setup.inner, estimator, setup.seed, L)
