r"""NCGS-VR (Algorithm 4 of Qu, Li and Xu), for F = (1/n) sum_i f_i.

    every m steps:  snapshot = theta,  g = grad F(snapshot)
    v     = mean over a batch of b terms of (grad f_i(theta) - grad f_i(snapshot)) + g
    theta = condg(v, theta, lambda, eta)

Output: a uniformly random one of the iterates theta_0 .. theta_{T-1}. Theorem 3, with L the smoothness of each term,
b = n^(2/3), m = n^(1/3), lambda = 1/(3L), eta = 1/T:  E |g(theta_a, grad F(theta_a), lambda)|^2 <= 18 L (F(theta_0) - F* + 1)/T.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np

from condgrad.estimators import SVRG
from condgrad.protocols import Inner, Point, Problem
from condgrad.solvers.schedules import Schedule, Setup, theory
from condgrad.solvers.states import State


@dataclass(frozen=True, kw_only=True)
class NCGSVRState(State):
    snapshot: Any
    memory: Any


@dataclass(frozen=True)
class NCGSVR:
    """Step ``lam``; batch and epoch are the estimator's."""

    schedule: Schedule
    inner: Inner
    estimator: SVRG
    lam: float
    seed: int = 0

    def init(self, problem: Problem, x0: Point) -> NCGSVRState:
        memory = self.inner.init(problem.domain, x0)
        snapshot = self.estimator.init(problem.objective, x0)
        return NCGSVRState(x=x0, L=problem.objective.smoothness, snapshot=snapshot, memory=memory)

    def step(self, problem: Problem, state: NCGSVRState) -> NCGSVRState:
        k, theta = state.k + 1, state.x
        rng = np.random.default_rng((self.seed, k))

        v, snapshot = self.estimator.estimate(problem.objective, theta, state.snapshot, k, rng)
        accuracy = self.schedule.accuracy(gamma=self.lam, share=2 / 9)
        theta, _, memory = self.inner.solve(problem.domain, v, theta, self.lam, accuracy, state.memory)
        return NCGSVRState(k=k, x=theta, L=state.L, snapshot=snapshot, memory=memory)


def ncgs_vr(
    problem: Problem,
    setup: Setup,
    epoch: int | None = None,
    batch: int | None = None,
    lam: float | None = None,
    store: bool = False,
    replace: bool = True,
) -> NCGSVR:
    """The theorem's epoch, batch and step where they are not given."""
    m, b = epoch_and_batch(problem.objective.n_terms)
    m, b = epoch or m, batch or b
    lam = lam or step_size(problem.objective, setup.schedule, m, b)
    return NCGSVR(setup.schedule, setup.inner, SVRG(m, b, store=store, replace=replace), lam, setup.seed)


def epoch_and_batch(n: int) -> tuple[int, int]:
    """m = n^(1/3), b = n^(2/3), in whole numbers that keep m^2 <= b, which is what the theorem uses."""
    m = max(1, int(n ** (1 / 3) + 1e-9))
    return m, max(m * m, min(n, ceil(n ** (2 / 3) - 1e-9)))


def step_size(objective: Any, schedule: Schedule, epoch: int, batch: int) -> float:
    """The theorem's 1/(3 L) with L of each term; in practice, the largest step that the proof allows.

    The proof uses the terms' smoothness only through their mean-square smoothness K, and F's own L in the descent:
    lambda <= 1/(3 L) and (4 K^2 m^2/b) lambda^2 + L lambda <= 7/9 (which leaves 2/9 for the relative inner error).
    With K = L and m^2 = b both say 1/(3 L). K can be far below every term's own L.
    """
    if isinstance(schedule, theory):
        if objective.term_smoothness is None:
            raise ValueError("Theorem 3 needs a smoothness of every term: give term_smoothness= to the objective.")
        return 1 / (3 * objective.term_smoothness)
    L, K = objective.smoothness, objective.mean_square_smoothness or objective.term_smoothness
    a = 4 * K**2 * epoch**2 / batch
    return min(1 / (3 * L), (sqrt(L**2 + 28 / 9 * a) - L) / (2 * a))
