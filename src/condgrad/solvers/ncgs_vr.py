r"""NCGS-VR (Algorithm 4 of Qu, Li and Xu), for F = (1/n) sum_i f_i.

    every m steps:  snapshot = theta,  g = grad F(snapshot)
    v     = mean over a batch of b terms of (grad f_i(theta) - grad f_i(snapshot)) + g
    theta = condg(v, theta, lambda, eta)

Output: a uniformly random one of the iterates theta_0 .. theta_{T-1}. Theorem 3, with L the smoothness of each term,
b = n^(2/3), m = n^(1/3), lambda = 1/(3L), eta = 1/T:  E |g(theta_a, grad F(theta_a), lambda)|^2 <= 18 L (F(theta_0) - F* + 1)/T.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as changed
from math import ceil, sqrt
from typing import Any

import numpy as np

from condgrad.estimators import SVRG
from condgrad.points import norm2
from condgrad.protocols import Inner, Point, Problem
from condgrad.solvers.schedules import Schedule, Setup, theory
from condgrad.solvers.states import State
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class NCGSVRState(State):
    snapshot: Any
    memory: Any
    lam: float
    """The step size of this epoch, where it adapts."""
    snapshot_fun: float = 0.0
    moved: float = 0.0
    """sum |theta_t - theta_{t-1}|^2 over the epoch so far."""


@dataclass(frozen=True)
class NCGSVR:
    """Step ``lam``; batch and epoch are the estimator's.

    With ``adaptive`` the step grows as long as each epoch brings F down by a share of what its steps were long, and an
    epoch that does not is taken back. F never rises from snapshot to snapshot but at ``lam`` itself, for which the theorem holds.
    """

    schedule: Schedule
    inner: Inner
    estimator: SVRG
    lam: float
    seed: int = 0
    adaptive: bool = False

    def init(self, problem: Problem, x0: Point) -> NCGSVRState:
        memory = self.inner.init(problem.domain, x0)
        snapshot = self.estimator.init(problem.objective, x0)
        lam = max(self.lam, 1 / (3 * problem.objective.smoothness)) if self.adaptive else self.lam
        return NCGSVRState(x=x0, L=problem.objective.smoothness, snapshot=snapshot, memory=memory, lam=lam)

    def step(self, problem: Problem, state: NCGSVRState) -> NCGSVRState:
        if self.adaptive and state.k % self.estimator.epoch == 0:
            state = self.begin_epoch(problem, state)
        k, theta, lam = state.k + 1, state.x, state.lam
        rng = np.random.default_rng((self.seed, k))

        v, snapshot = self.estimator.estimate(problem.objective, theta, state.snapshot, k, rng)
        accuracy = self.schedule.accuracy(gamma=lam, share=2 / 9)
        theta_k, _, memory = self.inner.solve(problem.domain, v, theta, lam, accuracy, state.memory)
        moved = state.moved + norm2(theta_k - theta) if self.adaptive else 0.0
        return changed(state, k=k, x=theta_k, snapshot=snapshot, memory=memory, moved=moved)

    def begin_epoch(self, problem: Problem, state: NCGSVRState) -> NCGSVRState:
        """Look at what the last epoch brought: a longer step, or back to its snapshot with a shorter one."""
        fun = problem.objective.value(state.x)
        if state.snapshot is None:
            return changed(state, snapshot_fun=fun)
        if fun <= state.snapshot_fun - SHARE * state.moved / state.lam:
            return changed(state, snapshot_fun=fun, lam=min(GROW * state.lam, self.lam / LEAST), moved=0.0)
        if state.lam > self.lam:
            return changed(state, x=state.snapshot.x, lam=max(state.lam / 2, self.lam), moved=0.0)
        return changed(state, snapshot_fun=fun, moved=0.0)


SHARE, GROW, LEAST = 0.1, 1.5, 1e-4
"""The share of sum |step|^2 / lam by which an epoch must bring F down; the growth of lam after one that does; its limit."""


def ncgs_vr(
    problem: Problem,
    setup: Setup,
    epoch: int | None = None,
    batch: int | None = None,
    lam: float | None = None,
    store: bool = False,
    replace: bool = True,
    adaptive: bool | None = None,
) -> NCGSVR:
    """The theorem's epoch, batch and step where they are not given; a step that adapts where the schedule is practical."""
    in_theory = isinstance(setup.schedule, theory)
    m, b = epoch_and_batch(problem.objective.n_terms) if in_theory else shorter_and_larger(problem.objective)
    m, b = epoch or m, batch or b
    if adaptive is None:
        adaptive = lam is None and not in_theory
    lam = lam or step_size(problem.objective, setup.schedule, m, b)
    return NCGSVR(setup.schedule, setup.inner, SVRG(m, b, store=store, replace=replace), lam, setup.seed, adaptive)


def epoch_and_batch(n: int) -> tuple[int, int]:
    """m = n^(1/3), b = n^(2/3), in whole numbers that keep m^2 <= b, which is what the theorem uses."""
    m = max(1, int(n ** (1 / 3) + 1e-9))
    return m, max(m * m, min(n, ceil(n ** (2 / 3) - 1e-9)))


def shorter_and_larger(objective: Any) -> tuple[int, int]:
    """Epoch and batch in practice.

    The proof asks for K^2 m^2 <= L^2 b. Where the terms' mean-square smoothness K is above F's L, epochs are
    shorter by K/L and batches larger by (K/L)^2: but not shorter than 5 steps, and not larger than a quarter of all terms.
    """
    m, b = epoch_and_batch(objective.n_terms)
    K = objective.mean_square_smoothness or objective.term_smoothness
    excess = max(K / objective.smoothness, 1.0)
    return max(int(m / excess), min(m, 5)), max(b, min(int(b * excess**2), objective.n_terms // 4))


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
