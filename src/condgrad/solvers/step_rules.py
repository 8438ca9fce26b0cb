r"""Step rules of the Frank-Wolfe methods: how far to go along a direction.

``short`` min(1, gap / (L |d|^2)); ``bounded`` min(1, gap / C) with C = L diam^2; ``adaptive`` short steps with a local L found
by backtracking (Pedregosa, Negiar, Askari and Jaggi 2020); ``open-loop`` 2/(k + 2); ``line-search`` the best t in [0, 1]; or a
user's function, which maps a :class:`Direction` to t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from condgrad.checks import BadOracle, choice, real
from condgrad.points import SparseArray
from condgrad.protocols import Point, Problem
from condgrad.solvers.evaluation import Evaluation, value_at
from condgrad.solvers.smoothness import VALUE_NOISE


@dataclass(frozen=True, kw_only=True)
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
        The direction: s - x with s the answer of the linear oracle to the gradient, or as the method says.
    gap : float
        -<grad, d>, at least 0. For d = s - x it is the Frank-Wolfe gap.
    length2 : float
        |d|^2, above 0.
    L : float
        The smoothness constant of the objective, or an estimate if the objective has none.
    """

    problem: Problem
    k: int
    x: Point
    grad: Point
    own: float
    """The coefficient of x in d = own x + sum_i c_i p_i."""
    parts: tuple[tuple[float, Point], ...]
    """The c_i and p_i."""
    gap: float
    length2: float
    L: float
    curvature: float
    """Curvature estimate of the adaptive rule after the last step."""
    evaluations: dict[float, Evaluation] = field(default_factory=dict)
    """Evaluations of F at x + t d, by t."""

    @cached_property
    def d(self) -> Point:
        (c, first), *rest = self.parts
        total = first if c == 1.0 else c * first
        if self.own:
            total = total - self.x if self.own == -1.0 else total + self.own * self.x
        for c, p in rest:
            total = total + c * p
        return total

    def at(self, t: float) -> Point:
        """Return x + t d: of an array and sparse points by one pass over the array."""
        if not isinstance(self.x, np.ndarray) or not all(isinstance(p, SparseArray) for _, p in self.parts):
            return self.x + t * self.d
        moved = (1 + t * self.own) * self.x
        for c, p in self.parts:
            moved.reshape(-1)[p.indices] += t * c * p.values
        return moved

    def value(self, t: float) -> float:
        """Return F(x + t d), computed at most once for each t."""
        return self.evaluate(t).fun

    def evaluate(self, t: float) -> Evaluation:
        """Return the evaluation of F at x + t d, computed at most once for each t."""
        if t not in self.evaluations:
            self.evaluations[t] = value_at(self.problem.objective, self.at(t))
        return self.evaluations[t]


Rule = Callable[[Direction], Any]


def choose(rule: str | Rule, direction: Direction) -> tuple[float, float]:
    """Return the step t by a rule, and the curvature estimate for the next step of the adaptive rule."""
    if isinstance(rule, str):
        return RULES[rule](direction)
    answer = rule(direction)
    try:
        t = real(answer, "the step")
    except ValueError:
        t = -1.0
    if not 0 <= t <= 1:
        raise BadOracle(f"The rule returned {answer!r} for the step from x to x + t d: return a number t from 0 to 1.")
    return t, direction.curvature


def needs_value(rule: str | Rule) -> bool:
    """Return whether the rule asks for F at the start of the direction."""
    return callable(rule) or rule in ("adaptive", "line-search")


def check_rule(rule: Any) -> None:
    """Raise ValueError if ``rule`` is neither a function nor a name from ``RULES``."""
    if not callable(rule):
        choice(rule, RULES, "Frank-Wolfe rule")


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
