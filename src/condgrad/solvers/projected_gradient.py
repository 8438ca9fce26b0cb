r"""Projected gradient: x = project(x - gamma grad F(x)), gamma = 1/(2L), a baseline with projections."""

from __future__ import annotations

from dataclasses import dataclass

from condgrad.certificate import Certificate
from condgrad.protocols import Point, Problem
from condgrad.solvers.evaluation import cached, grad_at, value_and_grad_at
from condgrad.solvers.schedules import Setup
from condgrad.solvers.smoothness import smoothness
from condgrad.solvers.states import Descent, State


@dataclass(frozen=True)
class ProjectedGradient:
    """The projected gradient method: NCGS option I with an exact prox, and with its step size."""

    def init(self, problem: Problem, x0: Point) -> State:
        """Return the initial state at x0."""
        _, fun, grad = value_and_grad_at(problem.objective, x0)
        return State(x=x0, L=smoothness(problem, x0, grad), fun=fun, grad=grad)

    def step(self, problem: Problem, state: State) -> State:
        """Return the state after one step."""
        x, gamma = state.x, 1 / (2 * state.L)
        objective = cached(problem.objective, state.known)
        _, fun, grad = grad_at(objective, x)
        x_next = problem.domain.project(x - gamma * grad)
        _, fun_next, grad_next = value_and_grad_at(objective, x_next)
        return State(
            k=state.k + 1,
            x=x_next,
            L=state.L,
            certificate=Certificate(x, x_next, gamma, 0.0),
            descent=Descent(x, grad, x_next),
            fun=fun_next,
            grad=grad_next,
            descent_fun=fun,
        )


def projected_gradient(problem: Problem, setup: Setup) -> ProjectedGradient:
    """Build the method from the options of the registry."""
    return ProjectedGradient()
