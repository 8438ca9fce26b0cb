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
from math import ceil, inf, sqrt
from typing import Any

import numpy as np

from condgrad.estimators import SPIDER, SVRG
from condgrad.points import norm2
from condgrad.protocols import Inner, Point, Problem
from condgrad.solvers.schedules import Schedule, Setup, theory
from condgrad.solvers.smoothness import quotient, smoothness
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class NCGSVRState(State):
    """State of :class:`NCGSVR`."""

    snapshot: Any
    memory: Any
    lam: float
    """The step size of the current epoch."""
    snapshot_fun: float = 0.0
    """F at the snapshot, if the step size is adaptive."""
    moved: float = 0.0
    """sum |theta_t - theta_{t-1}|^2 over the epoch so far."""
    first: Descent | None = None
    """If L is found: the last snapshot and the gradient there."""


@dataclass(frozen=True)
class NCGSVR:
    """NCGS-VR with step size ``lam``; the estimator, SVRG or SPIDER, has the batch and epoch lengths.

    ``share`` is the relative inner error that the method's proof allows.

    With ``adaptive`` the step size grows after each epoch that decreases F by a share of sum |step|^2 / lam, and an epoch with
    less decrease is undone. F does not increase from snapshot to snapshot, except at the step size ``lam``, for which the theorem
    holds.

    ``lam`` = 0 (adaptive) is for an objective without constants. The first step size is 1/(3L) with the curvature L near x_0, and
    there is no smallest one: F does not increase from snapshot to snapshot, without exception. L grows to the largest
    |grad F(x) - grad F(y)| / |x - y| of successive snapshots; it is the L of certificates only.
    """

    schedule: Schedule
    inner: Inner
    estimator: SVRG | SPIDER
    lam: float
    seed: int = 0
    adaptive: bool = False
    share: float = 2 / 9

    def init(self, problem: Problem, x0: Point) -> NCGSVRState:
        """Return the initial state at x0."""
        memory = self.inner.init(problem.domain, x0)
        snapshot = self.estimator.init(problem.objective, x0)
        L = smoothness(problem, x0)
        lam = max(self.lam, 1 / (3 * L)) if self.adaptive else self.lam
        return NCGSVRState(x=x0, L=L, snapshot=snapshot, memory=memory, lam=lam)

    def step(self, problem: Problem, state: NCGSVRState) -> NCGSVRState:
        """Return the state after one step."""
        if self.adaptive and state.k % self.estimator.epoch == 0:
            state = self.begin_epoch(problem, state)
        k, theta, lam = state.k + 1, state.x, state.lam
        rng = np.random.default_rng((self.seed, k))

        v, snapshot = self.estimator.estimate(problem.objective, theta, state.snapshot, k, rng)
        if not problem.objective.smoothness and state.k % self.estimator.epoch == 0:
            state = self.with_curvature(state, snapshot)
        accuracy = self.schedule.accuracy(gamma=lam, share=self.share)
        theta_k, _, memory = self.inner.solve(problem.domain, v, theta, lam, accuracy, state.memory)
        moved = state.moved + norm2(theta_k - theta) if self.adaptive else 0.0
        return changed(state, k=k, x=theta_k, snapshot=snapshot, memory=memory, moved=moved)

    def with_curvature(self, state: NCGSVRState, snapshot: Any) -> NCGSVRState:
        """Raise L to the quotient of the gradients at this snapshot and the one before."""
        grad, first, L = snapshot.start_grad, state.first, state.L
        if first is not None:
            L = max(L, quotient(first.grad, grad, first.x, snapshot.start))
        return changed(state, L=L, first=Descent(snapshot.start, grad))

    def begin_epoch(self, problem: Problem, state: NCGSVRState) -> NCGSVRState:
        """After a good epoch lengthen the step; after a bad one return to its snapshot with a shorter step."""
        fun = problem.objective.value(state.x)
        if state.snapshot is None:
            return changed(state, snapshot_fun=fun)
        if fun <= state.snapshot_fun - MIN_DECREASE * state.moved / state.lam:
            most = self.lam / MIN_STEP_RATIO if self.lam else inf
            return changed(state, snapshot_fun=fun, lam=min(STEP_GROWTH * state.lam, most), moved=0.0)
        if state.lam > self.lam:
            return changed(state, x=state.snapshot.start, lam=max(state.lam / 2, self.lam), moved=0.0)
        return changed(state, snapshot_fun=fun, moved=0.0)


MIN_DECREASE, STEP_GROWTH, MIN_STEP_RATIO = 0.1, 1.5, 1e-4
"""Minimum decrease of F in an epoch as a share of sum |step|^2 / lam; growth factor of lam after such an epoch; smallest ratio of
the initial to the adapted step size."""


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
    """Build the method from the options of the registry.

    Epoch, batch and step are by default those of the theorem; with the practical schedule they are those below and the step is
    adaptive.
    """
    in_theory = isinstance(setup.schedule, theory)
    m, b = epoch_and_batch(problem.objective.n_terms) if in_theory else practical_epoch_and_batch(problem.objective)
    m, b = epoch or m, batch or b
    if adaptive is None:
        adaptive = lam is None and not in_theory
    check_found(problem.objective, adaptive, lam, "ncgs-vr")
    lam = lam or step_size(problem.objective, setup.schedule, m, b)
    return NCGSVR(setup.schedule, setup.inner, SVRG(m, b, store=store, replace=replace), lam, setup.seed, adaptive)


def check_found(objective: Any, adaptive: bool, lam: float | None, method: str) -> None:
    """Raise ValueError if the step is neither adaptive nor given, and the objective has no L from which it follows."""
    if not objective.smoothness and not adaptive and lam is None:
        raise ValueError(
            f"Method '{method}' with adaptive=False needs the smoothness L, which {type(objective).__name__} does not state: "
            "leave adaptive out, or give lam= or smoothness=."
        )


def epoch_and_batch(n: int) -> tuple[int, int]:
    """Return m = n^(1/3) and b = n^(2/3), rounded so that m^2 <= b, which the theorem uses."""
    m = max(1, int(n ** (1 / 3) + 1e-9))
    return m, max(m * m, min(n, ceil(n ** (2 / 3) - 1e-9)))


def practical_epoch_and_batch(objective: Any) -> tuple[int, int]:
    """Return the epoch and batch lengths of the practical schedule.

    The proof requires K^2 m^2 <= L^2 b. If the terms' mean-square smoothness K is above F's L, epochs are shorter by K/L and
    batches larger by (K/L)^2, with a minimum of 5 steps and a maximum of a quarter of all terms. If L is to be found, they are
    those of the theorem.
    """
    m, b = epoch_and_batch(objective.n_terms)
    if not objective.smoothness:
        return m, b
    K = objective.mean_square_smoothness or objective.term_smoothness
    excess = max(K / objective.smoothness, 1.0)
    return max(int(m / excess), min(m, 5)), max(b, min(int(b * excess**2), objective.n_terms // 4))


def step_size(objective: Any, schedule: Schedule, epoch: int, batch: int) -> float:
    """Return the theorem's step 1/(3 L) with L of each term; for the practical schedule, the largest step that the proof allows.

    The proof uses the terms' smoothness only through their mean-square smoothness K, and F's own L in the descent:
    lambda <= 1/(3 L) and (4 K^2 m^2/b) lambda^2 + L lambda <= 7/9 (the other 2/9 are for the relative inner error).
    With K = L and m^2 = b both give 1/(3 L). K can be far below the L of every term. If L is to be found: 0.
    """
    if isinstance(schedule, theory):
        if objective.term_smoothness is None:
            raise ValueError("Theorem 3 needs a smoothness of every term: give term_smoothness= to the objective.")
        return 1 / (3 * objective.term_smoothness)
    if not objective.smoothness:
        return 0.0
    L, K = objective.smoothness, objective.mean_square_smoothness or objective.term_smoothness
    a = 4 * K**2 * epoch**2 / batch
    return min(1 / (3 * L), (sqrt(L**2 + 28 / 9 * a) - L) / (2 * a))
