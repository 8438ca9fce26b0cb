r"""Stochastic NCGS (Algorithm 3 of Qu, Li and Xu).

Option II with the mean gradient G_k of m_k = k samples in place of grad F(theta_md_k), run for R of N steps with
Prob{R = k} = k(k+1) / sum_j j(j+1); the output is theta_md_R. Theorem 2, with eta_k = chi_k = 1/N:

E |g(theta_md_R, G_R, beta_R)|^2
    <= 192 L (4 L |theta_0 - theta*|^2 / (N^2 (N+1)) + l (|theta*|^2 + 2 M^2)/N + 1/N + 3 sigma^2 / (2 L N)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.estimators import Minibatch, growing
from condgrad.protocols import Estimator, Inner, Point, Problem
from condgrad.solvers.ncgs_ii import two_steps
from condgrad.solvers.schedules import Schedule, Setup
from condgrad.solvers.sfw import other_estimator
from condgrad.solvers.states import State
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class StochasticNCGSState(State):
    """State of :class:`StochasticNCGS`; ``memory`` has the states of the inner solver for theta and for theta_ag."""

    theta: Point
    theta_ag: Point
    memory: tuple[Any, Any]
    estimate: Any = None
    """State of the estimator."""


@dataclass(frozen=True)
class StochasticNCGS:
    """Stochastic NCGS. It reports theta_md."""

    schedule: Schedule
    inner: Inner
    estimator: Estimator
    seed: int = 0

    def init(self, problem: Problem, x0: Point) -> StochasticNCGSState:
        """Return the initial state at x0."""
        memory = self.inner.init(problem.domain, x0)
        L = problem.objective.smoothness
        estimate = self.estimator.init(problem.objective, x0)
        return StochasticNCGSState(x=x0, theta=x0, theta_ag=x0, L=L, memory=(memory, memory), estimate=estimate)

    def step(self, problem: Problem, state: StochasticNCGSState) -> StochasticNCGSState:
        """Return the state after one step."""
        k, L = state.k + 1, state.L
        alpha, beta = 2 / (k + 1), 1 / (2 * L)
        rng = np.random.default_rng((self.seed, k))

        theta_md = (1 - alpha) * state.theta_ag + alpha * state.theta
        G, estimate = self.estimator.estimate(problem.objective, theta_md, state.estimate, k, rng)
        theta, theta_ag, memory = two_steps(self, problem, k, G, state.theta, theta_md, beta, state.memory)
        return StochasticNCGSState(
            k=k, x=theta_md, L=L, theta=theta.point, theta_ag=theta_ag.point, memory=memory, estimate=estimate
        )


def stochastic_ncgs(
    problem: Problem,
    setup: Setup,
    batch: int | Callable[[int], int] = growing,
    replace: bool = True,
    estimator: str | Estimator | None = None,
) -> StochasticNCGS:
    """Build the method with ``batch`` samples in each step, or ``batch(k)`` in step k; by default the theorem's m_k = k.

    ``estimator`` replaces the batches: a name of :data:`condgrad.estimators.ESTIMATORS` or an estimator.
    """
    if estimator is not None:
        chosen = other_estimator(problem, setup, "stochastic-ncgs", estimator, batch is growing and replace)
        return StochasticNCGS(setup.schedule, setup.inner, chosen, setup.seed)
    size = batch if callable(batch) else lambda k: batch
    return StochasticNCGS(setup.schedule, setup.inner, Minibatch(size, replace), setup.seed)


def stopping_index(steps: int, rng: np.random.Generator) -> int:
    """Return a random R in 1..N with probabilities proportional to k(k+1) = 2/Gamma_k."""
    k = np.arange(1, steps + 1)
    weights = k * (k + 1.0)
    return int(rng.choice(k, p=weights / weights.sum()))
