r"""Frank-Wolfe without L, line search or repeated steps: the curvature that a step shows decides the length of the next one.

    s = lmo(grad F(x)),  d = s - x,  gap = <grad F(x), x - s>
    t = min(1, gap/(2 M |d|^2)),  x_next = x + t d
    rho = 2 (F(x_next) - F(x) + t gap)/(t^2 |d|^2),  if rho > 2 M:  M = rho

A step is never taken back: one gradient, one linear minimisation and one value of F. M begins with the curvature near x_0, and
never exceeds L if it begins below. With rho <= 2 M a step decreases F by at least t gap/2; a step with rho > 2 M may increase F,
but M at least doubles, so that there are at most B = log2(L/M_0) of these. With h_0 = F(x_0) - F*, D the diameter,
H = h_0 + B L D^2/2, and F not necessarily convex, a gap of at most eps is found within

    B + max(2 H/eps, 4 L D^2 H/eps^2) steps

(docs/methods/parameter-free.md has the derivation). With M_0 = L/2 it is Frank-Wolfe with short steps. It is in the family of the
adaptive Lipschitz-free methods of Yuan (2026, arXiv 2603.06369), whose formulas were not at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from condgrad.checks import positive
from condgrad.protocols import Point, Problem
from condgrad.solvers.frank_wolfe import FrankWolfe, FrankWolfeState
from condgrad.solvers.schedules import Setup
from condgrad.solvers.smoothness import VALUE_NOISE, local_smoothness
from condgrad.solvers.step_rules import Chosen, Direction, StepRule


@final
@dataclass(frozen=True)
class Observed(StepRule):
    """The short step with L = 2 M; M grows to the curvature of a step that exceeds 2 M."""

    needs_value = True
    minimises = True

    def choose(self, along: Direction) -> Chosen:
        """Return min(1, gap/(2 M |d|^2)), and M after the step."""
        gap, length2, M = along.gap, along.length2, along.curvature
        t = min(1.0, gap / (2 * M * length2))
        before, after, moved2 = along.value(0.0), along.value(t), t**2 * length2
        noise = VALUE_NOISE * (abs(before) + abs(after) + t * gap)
        rises = 2 * (after - before + t * gap)
        return t, rises / moved2 if rises > 2 * M * moved2 + 2 * noise else M


@final
@dataclass(frozen=True)
class ParameterFreeFrankWolfe:
    """Frank-Wolfe without L, line search or repeated steps.

    The certificate of a step is the Frank-Wolfe gap at the iterate before it.

    Parameters
    ----------
    first : float, default None
        M_0. None: the curvature between x_0 and a point near it, which takes one gradient and one linear minimisation.
    """

    first: float | None = None

    relies_on_smoothness = False

    def __post_init__(self) -> None:
        if self.first is not None:
            positive(self.first, "The first curvature of ParameterFreeFrankWolfe")

    def init(self, problem: Problem, x0: Point) -> FrankWolfeState:
        """Return the initial state at x0."""
        state = FrankWolfe(Observed()).init(problem, x0)
        if self.first is not None:
            return replace(state, curvature=self.first)
        if problem.objective.smoothness is None:  # then L is this estimate already
            return state
        grad = problem.objective.grad(x0) if state.grad is None else state.grad
        return replace(state, grad=grad, curvature=local_smoothness(problem, x0, grad))

    def step(self, problem: Problem, state: FrankWolfeState) -> FrankWolfeState:
        """Return the state after one step."""
        return FrankWolfe(Observed()).step(problem, state)


def parameter_free_frank_wolfe(problem: Problem, setup: Setup, first: float | None = None) -> ParameterFreeFrankWolfe:
    """Build the method from the options of the registry."""
    return ParameterFreeFrankWolfe(first)
