r"""Conditional gradient sliding for convex F (Lan and Zhou 2016).

    z = (1 - g_k) y + g_k x
    x = condg(grad F(z), x, 1/b_k, e_k)
    y = (1 - g_k) y + g_k x

g_k = 3/(k+2), b_k = 3L/(k+1), e_k = L D^2/(k(k+1)):  F(y_k) - F* <= 15 L D^2 / (2 (k+1)(k+2)).

If F is mu-strongly convex, the method restarts from y every N = ceil(2 sqrt(6 L/mu)) steps, with g_k = 2/(k+1), b_k = 2L/k,
e_{s,k} = 8 L delta_0 2^(-s) / (mu N k) in phase s, delta_0 >= F(x_0) - F*:  F(y) - F* <= delta_0 2^(-s) after phase s.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

from condgrad.points import inner
from condgrad.protocols import Inner, Point, Problem
from condgrad.solvers.evaluation import grad_at
from condgrad.solvers.schedules import Schedule, Setup
from condgrad.solvers.smoothness import smoothness
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class CGSState(State):
    """State of :class:`CGS`."""

    inner_x: Point
    memory: Any
    start: int = 0
    """Number of steps before the current phase."""
    restart: int = 1
    """Number s of the current phase."""
    first_gap: float
    """delta_0"""


@dataclass(frozen=True)
class CGS:
    """Conditional gradient sliding. It reports y. ``strong_convexity`` is mu; 0: no restarts."""

    schedule: Schedule
    inner: Inner
    strong_convexity: float = 0.0
    initial_gap: float | None = None
    """delta_0, used with restarts only. None: the Frank-Wolfe gap at x_0, an upper bound for convex F."""

    def init(self, problem: Problem, x0: Point) -> CGSState:
        """Return the initial state at x0."""
        delta = self.initial_gap or 0.0
        if self.strong_convexity and self.initial_gap is None:
            grad = problem.objective.grad(x0)
            delta = inner(grad, x0 - problem.domain.lmo(grad))
        memory = self.inner.init(problem.domain, x0)
        return CGSState(x=x0, inner_x=x0, L=smoothness(problem, x0), memory=memory, first_gap=delta)

    def step(self, problem: Problem, state: CGSState) -> CGSState:
        """Return the state after one step."""
        L, mu, x, y = state.L, self.strong_convexity, state.inner_x, state.x
        start, phase, N = state.start, state.restart, ceil(2 * sqrt(6 * L / mu)) if mu else 0
        if mu and state.k - start >= N:
            start, phase, x = state.k, phase + 1, y
        k = state.k + 1 - start

        def e() -> float:
            if mu:
                return 8 * L * state.first_gap * 2.0**-phase / (mu * N * k)
            return L * problem.domain.diameter**2 / (k * (k + 1))

        g, b = (2 / (k + 1), 2 * L / k) if mu else (3 / (k + 2), 3 * L / (k + 1))
        z = (1 - g) * y + g * x
        _, fun, grad = grad_at(problem.objective, z)
        accuracy = self.schedule.accuracy(gamma=1 / b, share=1 / (k + 2), eta=e)
        x, _, memory = self.inner.solve(problem.domain, grad, x, 1 / b, accuracy, state.memory)
        y_next = (1 - g) * y + g * x

        return CGSState(
            k=state.k + 1,
            x=y_next,
            L=L,
            inner_x=x,
            memory=memory,
            start=start,
            restart=phase,
            first_gap=state.first_gap,
            descent=Descent(z, grad, y_next),
            descent_fun=fun,
        )


def cgs(problem: Problem, setup: Setup, strong_convexity: float = 0.0, initial_gap: float | None = None) -> CGS:
    """Build the method from the options of the registry."""
    return CGS(setup.schedule, setup.inner, strong_convexity, initial_gap)
