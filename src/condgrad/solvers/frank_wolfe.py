r"""Frank-Wolfe for smooth, possibly non-convex F (Lacoste-Julien 2016).

    s = lmo(grad F(x)),  gap = <grad F(x), x - s>,  x = x + t (s - x)

Rules for t: ``short`` min(1, gap / (L |s - x|^2)); ``bounded`` min(1, gap / C) with C = L diam^2, for which the best gap so
far is at most max(2 h_0, C) / sqrt(k + 1); ``adaptive`` short steps with a local L found by backtracking (Pedregosa,
Negiar, Askari and Jaggi 2020); ``open-loop`` 2/(k + 2); ``line-search`` the best t in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from condgrad.certificate import Certificate
from condgrad.checks import choice
from condgrad.points import inner, norm2
from condgrad.points.rounding import gap_rounding
from condgrad.protocols import Point, Problem
from condgrad.solvers.schedules import Setup
from condgrad.solvers.smoothness import NOISE, smoothness
from condgrad.solvers.states import Descent, State


@dataclass(frozen=True, kw_only=True)
class FrankWolfeState(State):
    curvature: float
    """The adaptive rule's estimate of the curvature where it is."""


@dataclass(frozen=True)
class FrankWolfe:
    """Its certificate is the Frank-Wolfe gap at the iterate before the step, for the mapping with gamma = 1/(2L)."""

    rule: str = "open-loop"

    def __post_init__(self) -> None:
        choice(self.rule, RULES, "Frank-Wolfe rule")

    def init(self, problem: Problem, x0: Point) -> FrankWolfeState:
        L = smoothness(problem, x0)
        return FrankWolfeState(x=x0, L=L, curvature=L)

    def step(self, problem: Problem, state: FrankWolfeState) -> FrankWolfeState:
        x, L = state.x, state.L
        grad = problem.objective.grad(x)
        s = problem.domain.lmo(grad)
        d = s - x
        gap, length2 = max(-inner(grad, d), 0.0), norm2(d)

        t, curvature = (0.0, state.curvature) if length2 == 0 else RULES[self.rule](problem, state, d, gap, length2)
        x_next = x + t * d

        relied_on_L = self.rule in ("short", "bounded")
        return FrankWolfeState(
            k=state.k + 1,
            x=x_next,
            L=L,
            curvature=curvature,
            certificate=Certificate(x, x, 1 / (2 * L), gap + gap_rounding(grad, x, s)),
            descent=Descent(x, grad, x_next if relied_on_L else None),
        )


def frank_wolfe(problem: Problem, setup: Setup, rule: str = "open-loop") -> FrankWolfe:
    return FrankWolfe(rule)


def short(problem: Problem, state: Any, d: Point, gap: float, length2: float) -> tuple[float, float]:
    return min(1.0, gap / (state.L * length2)), state.curvature


def bounded(problem: Problem, state: Any, d: Point, gap: float, length2: float) -> tuple[float, float]:
    return min(1.0, gap / (state.L * problem.domain.diameter**2)), state.curvature


def open_loop(problem: Problem, state: Any, d: Point, gap: float, length2: float) -> tuple[float, float]:
    return 2 / (state.k + 2), state.curvature


def adaptive(problem: Problem, state: Any, d: Point, gap: float, length2: float) -> tuple[float, float]:
    F, x, M = problem.objective.value, state.x, 0.9 * state.curvature
    before = F(x)
    while True:
        t = min(1.0, gap / (M * length2))
        after = F(x + t * d)
        if after <= before - t * gap + t**2 * M / 2 * length2 + NOISE * (abs(before) + abs(after)):
            return t, M
        M = 2 * M


def line_search(problem: Problem, state: Any, d: Point, gap: float, length2: float) -> tuple[float, float]:
    from scipy.optimize import minimize_scalar  # takes longer to import than all of condgrad

    def along(t: float) -> float:
        return problem.objective.value(state.x + t * d)

    found = minimize_scalar(along, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-8})
    return min((float(found.x), 1.0, 0.0), key=along), state.curvature


RULES = {"short": short, "bounded": bounded, "adaptive": adaptive, "open-loop": open_loop, "line-search": line_search}
