r"""Projected gradient: x = project(x - gamma grad F(x)), gamma = 1/(2L). A reference that projects."""

from __future__ import annotations

from dataclasses import dataclass

from condgrad.certificate import Certificate
from condgrad.protocols import Point, Problem
from condgrad.solvers.schedules import Setup
from condgrad.solvers.smoothness import smoothness
from condgrad.solvers.states import Descent, State


@dataclass(frozen=True)
class ProjectedGradient:
    """The step size is that of option I, which this is with an exact prox."""

    def init(self, problem: Problem, x0: Point) -> State:
        return State(x=x0, L=smoothness(problem, x0))

    def step(self, problem: Problem, state: State) -> State:
        x, gamma = state.x, 1 / (2 * state.L)
        grad = problem.objective.grad(x)
        x_next = problem.domain.project(x - gamma * grad)
        return State(
            k=state.k + 1,
            x=x_next,
            L=state.L,
            certificate=Certificate(x, x_next, gamma, 0.0),
            descent=Descent(x, grad, x_next),
        )


def projected_gradient(problem: Problem, setup: Setup) -> ProjectedGradient:
    return ProjectedGradient()
