r"""Frank-Wolfe for smooth, possibly non-convex F (Lacoste-Julien 2016).

    s = lmo(grad F(x)),  gap = <grad F(x), x - s>,  x = x + t (s - x)

Rules for t: ``short`` min(1, gap / (L |s - x|^2)); ``bounded`` min(1, gap / C) with C = L diam^2, for which the best gap so
far is at most max(2 h_0, C) / sqrt(k + 1); ``adaptive`` short steps with a local L found by backtracking (Pedregosa,
Negiar, Askari and Jaggi 2020); ``open-loop`` 2/(k + 2); ``line-search`` the best t in [0, 1]; or a function of your own,
which gets a :class:`Direction` and answers t. ``step_scale`` multiplies the gap in ``short`` and ``bounded``: an experimenter's
setting, outside of the theorem where it is above 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from condgrad.certificate import Certificate
from condgrad.checks import BadOracle, choice, real
from condgrad.points import inner, norm2
from condgrad.points.rounding import gap_rounding
from condgrad.protocols import Point, Problem
from condgrad.solvers.evaluation import Evaluation, Remembering, both_at, grad_at, value_at
from condgrad.solvers.ncgs import check_step_scale
from condgrad.solvers.schedules import Setup
from condgrad.solvers.smoothness import NOISE, smoothness
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored


@dataclass(frozen=True)
class Direction:
    """What a rule for the step t in [0, 1] sees: the step is x + t d.

    Attributes
    ----------
    problem : Problem
        The objective and the set; what is asked of them is counted.
    k : int
        Number of steps done.
    x : Point
        The iterate.
    grad : Point
        The gradient at ``x``.
    d : Point
        s - x, with s the linear oracle's answer to the gradient.
    gap : float
        The Frank-Wolfe gap <grad, x - s>, at least 0.
    length2 : float
        |d|^2, above 0.
    L : float
        The smoothness: the objective's own, or a first guess where it has none.
    """

    problem: Problem
    k: int
    x: Point
    grad: Point
    d: Point
    gap: float
    length2: float
    L: float
    curvature: float
    """The adaptive rule's estimate, from the last step."""
    seen: dict[float, Evaluation] = field(default_factory=dict)
    """What has been computed of F along the direction, by t."""

    def value(self, t: float) -> float:
        """F(x + t d), computed at most once for each t."""
        if t not in self.seen:
            self.seen[t] = value_at(self.problem.objective, self.x + t * self.d)
        return self.seen[t].fun


Rule = Callable[[Direction], Any]


@stored
@dataclass(frozen=True, kw_only=True)
class FrankWolfeState(State):
    curvature: float
    """The adaptive rule's estimate of the curvature where it is."""


@dataclass(frozen=True)
class FrankWolfe:
    """Its certificate is the Frank-Wolfe gap at the iterate before the step, for the mapping with gamma = 1/(2L).

    Parameters
    ----------
    rule : str or callable, default "open-loop"
        A name from ``RULES``, or a function ``rule(direction) -> t`` of a :class:`Direction`, whose answer must be a number
        from 0 to 1.
    step_scale : float, default 1.0
        Multiplies the gap in the rules ``short`` and ``bounded``; 1 or more.
    """

    rule: str | Rule = "open-loop"
    step_scale: float = 1.0

    def __post_init__(self) -> None:
        check_rule(self.rule)
        check_step_scale(self.step_scale)
        if self.step_scale != 1 and self.rule not in USE_L:
            raise ValueError(
                f"step_scale is for the rules {' and '.join(USE_L)}, {self.rule!r} has no step to multiply: leave it out."
            )

    @property
    def relies_on_smoothness(self) -> bool:
        """The step is only right with a right L."""
        return self.rule in USE_L

    def init(self, problem: Problem, x0: Point) -> FrankWolfeState:
        asks = callable(self.rule) or self.rule in ("adaptive", "line-search")
        _, fun, grad = (value_at if asks else both_at)(problem.objective, x0)
        L = smoothness(problem, x0, grad)
        return FrankWolfeState(x=x0, L=L, curvature=L, fun=fun, grad=grad)

    def step(self, problem: Problem, state: FrankWolfeState) -> FrankWolfeState:
        x, L = state.x, state.L
        objective = Remembering(problem.objective, state.known)
        _, fun, grad = grad_at(objective, x)
        s = problem.domain.lmo(grad)
        d = s - x
        gap, length2 = max(-inner(grad, d), 0.0), norm2(d)

        seen = {} if state.fun is None else {0.0: state.known}
        scaled = self.step_scale * gap
        direction = Direction(problem, state.k, x, grad, d, scaled, length2, L, state.curvature, seen)
        t, curvature = (0.0, state.curvature) if length2 == 0 else self.choose(direction)
        x_next = x + t * d
        _, fun_next, grad_next = direction.seen.get(t) or both_at(objective, x_next)

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

    def choose(self, direction: Direction) -> tuple[float, float]:
        """The step, and the curvature with which the adaptive rule begins the next one."""
        if isinstance(self.rule, str):
            return RULES[self.rule](direction)
        answer = self.rule(direction)
        try:
            t = real(answer, "the step")
        except ValueError:
            t = -1.0
        if not 0 <= t <= 1:
            raise BadOracle(
                f"The rule answered {answer!r} for the step from x to x + t d, a number from 0 to 1 was expected."
            )
        return t, direction.curvature


def check_rule(rule: Any) -> None:
    if not callable(rule):
        choice(rule, RULES, "Frank-Wolfe rule")


def frank_wolfe(
    problem: Problem, setup: Setup, rule: str | Rule = "open-loop", step_scale: float | None = None
) -> FrankWolfe:
    return FrankWolfe(rule, 1.0 if step_scale is None else step_scale)


def short(along: Direction) -> tuple[float, float]:
    return min(1.0, along.gap / (along.L * along.length2)), along.curvature


def bounded(along: Direction) -> tuple[float, float]:
    return min(1.0, along.gap / (along.L * along.problem.domain.diameter**2)), along.curvature


def open_loop(along: Direction) -> tuple[float, float]:
    return 2 / (along.k + 2), along.curvature


def adaptive(along: Direction) -> tuple[float, float]:
    gap, length2, M = along.gap, along.length2, 0.9 * along.curvature
    before = along.value(0.0)
    while True:
        t = min(1.0, gap / (M * length2))
        after = along.value(t)
        if after <= before - t * gap + t**2 * M / 2 * length2 + NOISE * (abs(before) + abs(after)):
            return t, M
        M = 2 * M


def line_search(along: Direction) -> tuple[float, float]:
    from scipy.optimize import minimize_scalar  # takes longer to import than all of condgrad

    found = minimize_scalar(along.value, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-8})
    return min((float(found.x), 1.0, 0.0), key=along.value), along.curvature


RULES: dict[str, Callable[[Direction], tuple[float, float]]] = {
    "short": short,
    "bounded": bounded,
    "adaptive": adaptive,
    "open-loop": open_loop,
    "line-search": line_search,
}
USE_L = ("short", "bounded")
"""The rules whose step follows from L."""
