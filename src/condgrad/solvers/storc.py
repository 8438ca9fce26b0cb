r"""STORC, stochastic variance-reduced conditional gradient sliding (Hazan and Luo 2016), for convex F = (1/n) sum_i f_i.

    phase t = 1, 2, .. of N_t steps:  w = y,  x = y,  grad F(w);  in its steps k = 1 .. N_t
        z = (1 - g_k) y + g_k x
        v = mean over m_{t,k} random terms of (grad f_i(z) - grad f_i(w)) + grad F(w)
        x = condg(v, x, 1/b_k, e_{t,k})
        y = (1 - g_k) y + g_k x

The first w is lmo(grad F(x_0)). With each term L-smooth, D the diameter, g_k = 2/(k+1), b_k = 3L/k, e_{t,k} = 2 L D_t^2/(N_t k),
after phase t  E F(y) - F* <= L D^2 / 2^(t+1), if

    |grad F| <= G:            D_t = D,                        N_t = ceil(2^(t/2+2)),
                              m_{t,k} = 700 N_t + 24 N_t G (k+1)/(L D)
    F alpha-strongly convex:  D_t^2 = D^2 (L/alpha)/2^(t-1),  N_t = ceil(sqrt(32 L/alpha)),  m_{t,k} = 5600 N_t L/alpha

So n log(1/eps) + 1/eps^(3/2) and (n + (L/alpha)^2) log(1/eps) term gradients. G = |grad F(x_0)| + L D. Where m_{t,k} >= n, the
full gradient is taken, which has no variance and costs less. docs/methods/storc.md has the proof. The practical schedule begins
at w = x_0, has m_{t,k} = N_t and F's own L, and solves its prox to a relative accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np

from condgrad.estimators.minibatch import difference, draw
from condgrad.estimators.svrg import Snapshot
from condgrad.points import norm2
from condgrad.protocols import Inner, Point, Problem
from condgrad.solvers.schedules import Schedule, Setup, theory
from condgrad.solvers.states import State
from condgrad.solvers.stochastic_frank_wolfe import smoothness_of_terms
from condgrad.storage.stored import stored

SHARE = 1 / 6
"""The relative inner error that the proof allows: twice what takes half of the (b_k - L g_k)/2 |x - x_previous|^2 of a step."""


@stored
@dataclass(frozen=True, kw_only=True)
class STORCState(State):
    """State of :class:`STORC`; ``x`` is the point y."""

    inner_x: Point
    memory: Any
    """State of the inner solver."""
    snapshot: Snapshot | None = None
    """w with the gradient there."""
    start: int = 0
    """Number of steps before the current phase."""
    restart: int = 0
    """Number t of the current phase."""
    slope: float = 0.0
    """G, an upper bound on |grad F|; 0 where it is not used."""


@dataclass(frozen=True)
class STORC:
    """STORC; it reports y. ``smoothness`` is the L of the theorem, by default F's. ``batch`` replaces m_{t,k}."""

    schedule: Schedule
    inner: Inner
    strong_convexity: float = 0.0
    batch: int | None = None
    replace: bool = True
    seed: int = 0
    smoothness: float | None = None

    def init(self, problem: Problem, x0: Point) -> STORCState:
        """Return the initial state at x0."""
        w, slope, L = x0, 0.0, problem.objective.smoothness
        if isinstance(self.schedule, theory):
            grad = problem.objective.grad(x0)
            w, slope = problem.domain.lmo(grad), sqrt(norm2(grad)) + L * problem.domain.diameter
        return STORCState(x=x0, inner_x=w, L=L, memory=self.inner.init(problem.domain, w), slope=slope)

    def step(self, problem: Problem, state: STORCState) -> STORCState:
        """Return the state after one step."""
        L, x, y = self.smoothness or state.L, state.inner_x, state.x
        t, start, w, n = state.restart, state.start, state.snapshot, problem.objective.n_terms
        if w is None or state.k - start == phase_length(t, L, self.strong_convexity):
            t, start, x = t + 1, state.k, x if w is None else y
            w = Snapshot(x, problem.objective.grad(x), None)
        k, N = state.k + 1 - start, phase_length(t, L, self.strong_convexity)
        g, b, m = 2 / (k + 1), 3 * L / k, self.batch_size(problem, t, k, N, L, state.slope)

        z = (1 - g) * y + g * x
        if m >= n:
            v = problem.objective.grad(z)
        else:
            batch = draw(problem.objective, m, np.random.default_rng((self.seed, state.k + 1)), self.replace)
            v = difference(problem.objective, z, w.x, batch) + w.grad
        accuracy = self.schedule.accuracy(gamma=1 / b, share=SHARE, eta=lambda: self.eta(problem, t, k, N, L))
        x, _, memory = self.inner.solve(problem.domain, v, x, 1 / b, accuracy, state.memory)
        return STORCState(
            k=state.k + 1,
            x=(1 - g) * y + g * x,
            L=state.L,
            inner_x=x,
            memory=memory,
            snapshot=w,
            start=start,
            restart=t,
            slope=state.slope,
        )

    def batch_size(self, problem: Problem, t: int, k: int, N: int, L: float, G: float) -> int:
        """Return m_{t,k}."""
        if self.batch is not None:
            return self.batch
        if not isinstance(self.schedule, theory):
            return N
        if self.strong_convexity:
            return ceil(5600 * N * L / self.strong_convexity)
        D = problem.domain.diameter
        return ceil(700 * N + 24 * N * G * (k + 1) / (L * D)) if D > 0 else N

    def eta(self, problem: Problem, t: int, k: int, N: int, L: float) -> float:
        """Return e_{t,k}, the theorem's accuracy of the prox."""
        D2 = problem.domain.diameter**2
        if self.strong_convexity:
            D2 *= L / self.strong_convexity / 2 ** (t - 1)
        return 2 * L * D2 / (N * k)


def phase_length(t: int, L: float, alpha: float) -> int:
    """Return N_t; ``alpha`` is 0 where F is not strongly convex."""
    return ceil(sqrt(32 * L / alpha)) if alpha else ceil(2 ** (t / 2 + 2) - 1e-9)


def phases(steps: int) -> int:
    """Return the number of phases of a run of T steps without strong convexity."""
    t, done = 0, 0
    while done < steps:
        t, done = t + 1, done + phase_length(t + 1, 1.0, 0.0)
    return t


def storc(
    problem: Problem,
    setup: Setup,
    strong_convexity: float = 0.0,
    batch: int | None = None,
    replace: bool = True,
) -> STORC:
    """Build the method; ``strong_convexity`` is alpha."""
    L = smoothness_of_terms(problem.objective, setup.schedule)
    return STORC(setup.schedule, setup.inner, strong_convexity, batch, replace, setup.seed, L)
