"""Where L is not known: a first guess, and backtracking around any deterministic method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from condgrad.points import inner, norm2
from condgrad.protocols import Point, Problem, Solver
from condgrad.solvers.states import Descent, State

NOISE = 1e-12
"""Relative error granted to a value of F: differences below it say nothing about curvature."""


def smoothness(problem: Problem, x: Point) -> float:
    """The objective's L, or a first guess from two gradients: the curvature from x towards the linear oracle's answer."""
    if problem.objective.smoothness:  # a linear F says 0: then any positive L is one
        return problem.objective.smoothness
    grad = problem.objective.grad(x)
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

    That inequality is all that the proofs use of L, so the theorems hold with the largest L that was accepted.
    """

    solver: Solver

    def init(self, problem: Problem, x0: Point) -> State:
        return self.solver.init(problem, x0)

    def step(self, problem: Problem, state: State) -> State:
        new = self.solver.step(problem, state)
        if new.descent is None:
            return new
        before = problem.objective.value(new.descent.x)
        while not holds(problem.objective, new.descent, before, state.L):
            state = replace(state, L=2 * state.L)
            new = self.solver.step(problem, state)
        return new


def holds(objective: Any, descent: Descent, before: float, L: float) -> bool:
    """F(y) <= F(x) + <grad, y - x> + L/2 |y - x|^2, up to the noise of F's values."""
    x, grad, y = descent
    d = y - x
    after = objective.value(y)
    linear, quadratic = inner(grad, d), L / 2 * norm2(d)
    noise = NOISE * (abs(before) + abs(after) + abs(linear))
    return quadratic <= 100 * noise or after <= before + linear + quadratic + noise


def excess(earlier: Descent, later: Descent) -> float:
    """|grad F(x) - grad F(y)| / |x - y| for two points that a run visited, 0 where they are too close to tell."""
    distance, change = norm2(later.x - earlier.x), norm2(later.grad - earlier.grad)
    if distance <= NOISE * norm2(later.x) or change <= NOISE * norm2(later.grad):
        return 0.0
    return sqrt(change / distance)
