r"""The accelerated gradient method for non-convex F (Ghadimi and Lan 2016), a baseline with projections.

    x_md = (1 - alpha_k) x_ag + alpha_k x
    x    = project(x    - lambda_k grad F(x_md))
    x_ag = project(x_md - beta_k   grad F(x_md))

alpha_k = 2/(k+1), beta_k = 1/(2L), lambda_k = k beta_k/2.
"""

from __future__ import annotations

from dataclasses import dataclass

from condgrad.certificate import Certificate
from condgrad.protocols import Point, Problem
from condgrad.solvers.evaluation import grad_at
from condgrad.solvers.schedules import Setup
from condgrad.solvers.smoothness import smoothness
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class AcceleratedGradientState(State):
    """State of :class:`AcceleratedGradient`."""

    slow: Point
    """The sequence x, whose steps are lambda_k."""


@dataclass(frozen=True)
class AcceleratedGradient:
    """The accelerated gradient method. It reports x_ag; the field ``slow`` of the state is x."""

    def init(self, problem: Problem, x0: Point) -> AcceleratedGradientState:
        """Return the initial state at x0."""
        return AcceleratedGradientState(x=x0, slow=x0, L=smoothness(problem, x0))

    def step(self, problem: Problem, state: AcceleratedGradientState) -> AcceleratedGradientState:
        """Return the state after one step."""
        k, L, project = state.k + 1, state.L, problem.domain.project
        alpha, beta = 2 / (k + 1), 1 / (2 * L)
        lam = k * beta / 2

        x_md = (1 - alpha) * state.x + alpha * state.slow
        _, fun, grad = grad_at(problem.objective, x_md)
        x = project(state.slow - lam * grad)
        x_ag = project(x_md - beta * grad)
        return AcceleratedGradientState(
            k=k,
            x=x_ag,
            L=L,
            slow=x,
            certificate=Certificate(x_md, x_ag, beta, 0.0),
            descent=Descent(x_md, grad, x_ag),
            descent_fun=fun,
        )


def accelerated_gradient(problem: Problem, setup: Setup) -> AcceleratedGradient:
    """Build the method from the options of the registry."""
    return AcceleratedGradient()
