r"""Frank-Wolfe for smooth, possibly non-convex F (Lacoste-Julien 2016).

    s = lmo(grad F(x)),  gap = <grad F(x), x - s>,  x = x + t (s - x)

Rules for t: ``short`` min(1, gap / (L |s - x|^2)); ``bounded`` min(1, gap / C) with C = L diam^2, for which the best gap so
far is at most max(2 h_0, C) / sqrt(k + 1); ``adaptive`` short steps with a local L found by backtracking (Pedregosa,
Negiar, Askari and Jaggi 2020); ``open-loop`` 2/(k + 2); ``line-search`` the best t in [0, 1]; or a user's function, which
maps a :class:`Direction` to t. ``step_scale`` multiplies the gap in ``short`` and ``bounded``, for experiments: above 1
the theorem does not apply.
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
from condgrad.solvers.evaluation import CachedObjective, Evaluation, grad_at, value_and_grad_at, value_at
from condgrad.solvers.ncgs import check_step_scale
from condgrad.solvers.schedules import Setup
from condgrad.solvers.smoothness import VALUE_NOISE, smoothness
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored


@dataclass(frozen=True)
class Direction:
    """Argument of a step rule, which chooses t in [0, 1] for the step x + t d.

    Attributes
    ----------
    problem : Problem
        The objective and the set; calls to their oracles are counted.
    k : int
        Number of completed steps.
    x : Point
        The iterate.
    grad : Point
        The gradient at ``x``.
    d : Point
        s - x, with s the answer of the linear oracle to the gradient.
    gap : float
        The Frank-Wolfe gap <grad, x - s>, at least 0.
    length2 : float
        |d|^2, above 0.
    L : float
        The smoothness constant of the objective, or an estimate if the objective has none.
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
    """Curvature estimate of the adaptive rule after the last step."""
    evaluations: dict[float, Evaluation] = field(default_factory=dict)
    """Evaluations of F at x + t d, by t."""

    def value(self, t: float) -> float:
        """Return F(x + t d), computed at most once for each t."""
        if t not in self.evaluations:
            self.evaluations[t] = value_at(self.problem.objective, self.x + t * self.d)
        return self.evaluations[t].fun


Rule = Callable[[Direction], Any]


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
    rule : str or callable, default "open-loop"
        A name from ``RULES``, or a function ``rule(direction) -> t`` of a :class:`Direction` that returns a number from 0 to 1.
    step_scale : float, default 1.0
        Multiplies the gap in the rules ``short`` and ``bounded``; 1 or more.
    """

    rule: str | Rule = "open-loop"
    step_scale: float = 1.0

    def __post_init__(self) -> None:
        check_rule(self.rule)
        check_step_scale(self.step_scale)
        if self.step_scale != 1 and self.rule not in RULES_USING_L:
            raise ValueError(
                f"step_scale is for the rules {' and '.join(RULES_USING_L)}, {self.rule!r} has no step to multiply: leave it out."
            )

    @property
    def relies_on_smoothness(self) -> bool:
        """Whether the length of a step is computed from L."""
        return self.rule in RULES_USING_L

    def init(self, problem: Problem, x0: Point) -> FrankWolfeState:
        """Return the initial state at x0."""
        needs_value = callable(self.rule) or self.rule in ("adaptive", "line-search")
        _, fun, grad = (value_at if needs_value else value_and_grad_at)(problem.objective, x0)
        L = smoothness(problem, x0, grad)
        return FrankWolfeState(x=x0, L=L, curvature=L, fun=fun, grad=grad)

    def step(self, problem: Problem, state: FrankWolfeState) -> FrankWolfeState:
        """Return the state after one step."""
        x, L = state.x, state.L
        objective = CachedObjective(problem.objective, state.known)
        _, fun, grad = grad_at(objective, x)
        s = problem.domain.lmo(grad)
        d = s - x
        gap, length2 = max(-inner(grad, d), 0.0), norm2(d)

        evaluations = {} if state.fun is None else {0.0: state.known}
        scaled = self.step_scale * gap
        direction = Direction(problem, state.k, x, grad, d, scaled, length2, L, state.curvature, evaluations)
        t, curvature = (0.0, state.curvature) if length2 == 0 else self.choose(direction)
        x_next = x + t * d
        _, fun_next, grad_next = direction.evaluations.get(t) or value_and_grad_at(objective, x_next)

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
        """Return the step t and the curvature estimate for the next step of the adaptive rule."""
        if isinstance(self.rule, str):
            return RULES[self.rule](direction)
        answer = self.rule(direction)
        try:
            t = real(answer, "the step")
        except ValueError:
            t = -1.0
        if not 0 <= t <= 1:
            raise BadOracle(
                f"The rule returned {answer!r} for the step from x to x + t d: return a number t from 0 to 1."
            )
        return t, direction.curvature


def check_rule(rule: Any) -> None:
    """Raise ValueError if ``rule`` is neither a function nor a name from ``RULES``."""
    if not callable(rule):
        choice(rule, RULES, "Frank-Wolfe rule")


def frank_wolfe(
    problem: Problem, setup: Setup, rule: str | Rule = "open-loop", step_scale: float | None = None
) -> FrankWolfe:
    """Build the method from the options of the registry."""
    return FrankWolfe(rule, 1.0 if step_scale is None else step_scale)


def short(along: Direction) -> tuple[float, float]:
    """Minimise the quadratic upper bound with constant L along d."""
    return min(1.0, along.gap / (along.L * along.length2)), along.curvature


def bounded(along: Direction) -> tuple[float, float]:
    """Minimise the quadratic upper bound with constant L, with the diameter in place of |d|."""
    return min(1.0, along.gap / (along.L * along.problem.domain.diameter**2)), along.curvature


def open_loop(along: Direction) -> tuple[float, float]:
    """Return the step 2/(k + 2), which does not depend on F."""
    return 2 / (along.k + 2), along.curvature


def adaptive(along: Direction) -> tuple[float, float]:
    """Make a short step with a local constant M, doubled until F decreases as the quadratic upper bound predicts."""
    gap, length2, M = along.gap, along.length2, 0.9 * along.curvature
    before = along.value(0.0)
    while True:
        t = min(1.0, gap / (M * length2))
        after = along.value(t)
        if after <= before - t * gap + t**2 * M / 2 * length2 + VALUE_NOISE * (abs(before) + abs(after)):
            return t, M
        M = 2 * M


def line_search(along: Direction) -> tuple[float, float]:
    """Minimise F along d by bounded scalar minimisation."""
    from scipy.optimize import minimize_scalar  # imported here: it takes longer to import than the rest of condgrad

    found = minimize_scalar(along.value, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-8})
    return min((float(found.x), 1.0, 0.0), key=along.value), along.curvature


RULES: dict[str, Callable[[Direction], tuple[float, float]]] = {
    "short": short,
    "bounded": bounded,
    "adaptive": adaptive,
    "open-loop": open_loop,
    "line-search": line_search,
}
RULES_USING_L = ("short", "bounded")
"""Rules whose step is computed from L."""
