r"""Frank-Wolfe for smooth, possibly non-convex F (Lacoste-Julien 2016).

    s = lmo(grad F(x)),  gap = <grad F(x), x - s>,  x = x + t (s - x)

The rules for t are in step_rules.py; with ``bounded`` the best gap so far is at most max(2 h_0, C) / sqrt(k + 1), C = L diam^2.
``step_scale`` multiplies the gap in ``short`` and ``bounded``, for experiments: above 1
the theorem does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condgrad.certificate import Certificate
from condgrad.points import SparseArray, distance2, inner
from condgrad.points.rounding import gap_rounding
from condgrad.protocols import Point, Problem, vertex_oracle
from condgrad.solvers.evaluation import Evaluation, cached, grad_at, value_and_grad_at, value_at
from condgrad.solvers.ncgs import check_step_scale
from condgrad.solvers.schedules import Setup
from condgrad.solvers.smoothness import smoothness
from condgrad.solvers.states import Descent, State
from condgrad.solvers.step_rules import RULES, Direction, Rule, check_rule, rule_of
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class FrankWolfeState(State):
    curvature: float
    """Local curvature estimate of the adaptive rule."""


@dataclass(frozen=True)
class FrankWolfe:
    """The Frank-Wolfe method for smooth, possibly non-convex F.

    The certificate of a step is the Frank-Wolfe gap at the iterate before it, for the mapping with gamma = 1/(2L).

    Parameters
    ----------
    rule : str, StepRule or callable, default "open-loop"
        A name from ``RULES``, a value such as ``OpenLoop(4)``, or a function ``rule(direction) -> t`` of a :class:`Direction`
        that returns a number from 0 to 1.
    step_scale : float, default 1.0
        Multiplies the gap in the rules ``short`` and ``bounded``; 1 or more.
    """

    rule: str | Rule = "open-loop"
    step_scale: float = 1.0

    def __post_init__(self) -> None:
        check_rule(self.rule)
        check_step_scale(self.step_scale)
        if self.step_scale != 1 and not self.relies_on_smoothness:
            those = " and ".join(name for name, rule in RULES.items() if rule.uses_smoothness)
            raise ValueError(
                f"step_scale is for the rules {those}, {self.rule!r} has no step to multiply: leave it out."
            )

    @property
    def relies_on_smoothness(self) -> bool:
        """Whether the length of a step is computed from L."""
        return rule_of(self.rule).uses_smoothness

    def init(self, problem: Problem, x0: Point) -> FrankWolfeState:
        """Return the initial state at x0."""
        _, fun, grad = (value_at if rule_of(self.rule).needs_value else value_and_grad_at)(problem.objective, x0)
        L = smoothness(problem, x0, grad)
        return FrankWolfeState(x=x0, L=L, curvature=L, fun=fun, grad=grad)

    def step(self, problem: Problem, state: FrankWolfeState) -> FrankWolfeState:
        """Return the state after one step."""
        x, L = state.x, state.L
        _, fun, grad = grad_at(cached(problem.objective, state.known), x)
        s = vertex_oracle(problem.domain)(grad)
        gap, length2 = max(slope(grad, x, s), 0.0), distance2(s, x)

        (x_next, fun_next, grad_next), curvature = advance(
            self.rule, problem, state, grad, own=-1.0, parts=((1.0, s),), gap=self.step_scale * gap, length2=length2
        )
        rounding = gap_rounding(grad, x, s)
        return FrankWolfeState(
            k=state.k + 1,
            x=x_next,
            L=L,
            curvature=curvature,
            certificate=Certificate(x, x, 1 / (2 * L), gap + rounding, noise=rounding),
            descent=Descent(x, grad, x_next if self.relies_on_smoothness else None),
            fun=fun_next,
            grad=grad_next,
            descent_fun=fun,
        )


def advance(
    rule: str | Rule,
    problem: Problem,
    state: FrankWolfeState,
    grad: Point,
    own: float,
    parts: tuple[tuple[float, Point], ...],
    gap: float,
    length2: float,
) -> tuple[Evaluation, float]:
    """Return what is known of F at x + t d, with t by the rule and d = own x + sum of c_i p_i, and the curvature estimate.

    ``gap`` is -<grad, d> and ``length2`` is |d|^2; where it is 0, x stays.
    """
    direction = Direction(
        problem=problem,
        k=state.k,
        x=state.x,
        grad=grad,
        own=own,
        parts=parts,
        gap=gap,
        length2=length2,
        L=state.L,
        curvature=state.curvature,
        evaluations={} if state.fun is None else {0.0: state.known},
    )
    t, curvature = (0.0, state.curvature) if length2 == 0 else rule_of(rule).choose(direction)
    known = direction.evaluations.get(t)
    objective = cached(problem.objective, state.known)
    return known or value_and_grad_at(objective, direction.at(t)), curvature


def slope(grad: Point, x: Point, s: Point) -> float:
    """Return <grad, x - s>, without the difference of an array and a sparse point."""
    if isinstance(x, np.ndarray) and isinstance(s, SparseArray):
        return inner(grad, x) - inner(grad, s)
    return inner(grad, x - s)


def frank_wolfe(
    problem: Problem, setup: Setup, rule: str | Rule = "open-loop", step_scale: float | None = None
) -> FrankWolfe:
    """Build the method from the options of the registry."""
    return FrankWolfe(rule, 1.0 if step_scale is None else step_scale)
