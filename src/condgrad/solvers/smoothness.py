"""Where L is not known: a first guess, and backtracking around any deterministic method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

from condgrad.checks import BadOracle
from condgrad.points import distance2, inner, norm2
from condgrad.protocols import Point, Problem, Solver
from condgrad.solvers.evaluation import Remembering
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored

NOISE = 1e-12
"""Relative error granted to a value of F: differences below it say nothing about curvature."""


DOUBLINGS = 40
"""Backtracking that has to go further than this in one step is not about curvature."""


def smoothness(problem: Problem, x: Point, grad: Point | None = None) -> float:
    """The objective's L, or a first guess from two gradients: the curvature from x towards the linear oracle's answer.

    ``grad`` is the gradient at x, where it is known.
    """
    if problem.objective.smoothness:  # a linear F says 0: then any positive L is one
        return problem.objective.smoothness
    grad = problem.objective.grad(x) if grad is None else grad
    towards = 1e-3 * (problem.domain.lmo(grad) - x)
    length = sqrt(norm2(towards))
    if length == 0.0:
        return 1.0
    curvature = sqrt(norm2(problem.objective.grad(x + towards) - grad)) / length
    # An L so small that a step of 1/(2L) overshoots the whole set would make the mapping small everywhere.
    return max(curvature, 1e-3 * sqrt(norm2(grad)) / length, 1e-300)


@dataclass(frozen=True)
class Backtracking:
    """Runs ``solver`` with an L that is doubled, and the step taken anew, until smoothness holds where the step relied on it.

    That inequality is all that the proofs use of L (for NCGS without a stretch), so the theorems hold with the largest L that
    was accepted.
    """

    solver: Solver

    def init(self, problem: Problem, x0: Point) -> State:
        state = self.solver.init(problem, x0)
        if state.fun is None and getattr(self.solver, "relies_on_smoothness", True):  # the first step needs it
            return replace(state, fun=problem.objective.value(state.x))
        return state

    def step(self, problem: Problem, state: State) -> State:
        objective = Remembering(problem.objective, state.known)  # a step that is repeated asks at the same points
        problem = Problem(objective, problem.domain)
        new = self.solver.step(problem, state)
        if new.descent.y is None:  # the rule does without L
            return new
        before = objective.value(new.descent.x)
        for _ in range(DOUBLINGS):
            after = objective.value(new.descent.y)
            if holds(new.descent, before, after, state.L):
                return replace(new, fun=after if new.descent.y is new.x else new.fun, descent_fun=before)
            state = replace(state, L=2 * state.L)
            new = self.solver.step(problem, state)
        length = sqrt(norm2(new.descent.y - new.descent.x))
        raise BadOracle(
            f"F rises along a step that its gradient says falls, even for a step of {length:.2g}: the gradient does not "
            "match the function, or F is not smooth there (compare grad with differences of value)."
        )


def holds(descent: Descent, before: float, after: float, L: float) -> bool:
    """F(y) <= F(x) + <grad, y - x> + L/2 |y - x|^2, up to the noise of F's values."""
    rho, noise = curvature_along(descent, before, after)
    return 100 * noise >= L or rho <= L + noise


def curvature_along(descent: Descent, before: float, after: float) -> tuple[float, float]:
    """The least L for which the above holds, and how much of it may be the noise of F's values.

    ``before`` is F(x), ``after`` is F(y).
    """
    x, grad, y = descent
    d = y - x
    length2 = norm2(d)
    if length2 == 0.0:
        return 0.0, 0.0
    linear = inner(grad, d)
    scale = 2 / length2
    return scale * (after - before - linear), scale * NOISE * (abs(before) + abs(after) + abs(linear))


@stored
class Curvature(NamedTuple):
    """What the gradients that a run computes anyway tell of its L."""

    largest: float = 0.0
    """The largest |grad F(x) - grad F(y)| / |x - y| of two points in a row that are far enough apart to tell."""
    point: float = 0.0
    grad: float = 0.0
    """The largest |x|^2 and |grad F(x)|^2 so far, against which rounding is judged."""

    def after(self, earlier: Descent, later: Descent) -> Curvature:
        point = max(self.point, norm2(later.x), norm2(earlier.x))
        grad = max(self.grad, norm2(later.grad), norm2(earlier.grad))
        distance, change = distance2(later.x, earlier.x), distance2(later.grad, earlier.grad)
        if distance <= NOISE * point or change <= NOISE * grad:
            return Curvature(self.largest, point, grad)
        return Curvature(max(self.largest, sqrt(change) / sqrt(distance)), point, grad)
