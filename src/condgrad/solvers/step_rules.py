r"""Step rules of the Frank-Wolfe methods: how far to go along a direction.

    short           min(1, gap / (L |d|^2))
    bounded         min(1, gap / C), C = L diam^2 (Lacoste-Julien 2016)
    adaptive        short steps with a local L, found by backtracking (Pedregosa, Negiar, Askari and Jaggi 2020)
    open-loop       l/(k + l), l = 2
    inverse-sqrt    1/sqrt(k + 1) (Reddi, Sra, Poczos and Smola 2016, for non-convex F)
    monotone        the open-loop step, halved until F does not increase (after Carderera, Besancon and Pokutta 2021)
    line-search     the best t in [0, 1], by Brent's method
    golden-section  the best t in [0, 1], by golden-section search
    secant          a zero of the slope of F along d, by the secant method

A rule is a name of this table, a value such as ``OpenLoop(4)``, or a user's function, which maps a :class:`Direction` to t.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, sqrt
from typing import Any, ClassVar, final

import numpy as np

from condgrad.checks import BadOracle, choice, real, whole
from condgrad.points import SparseArray, inner
from condgrad.protocols import Point, Problem
from condgrad.solvers.evaluation import Evaluation, grad_at, value_at
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

    def not_above(self, t: float) -> bool:
        """Return whether F(x + t d) <= F(x), up to the noise of F's values."""
        before, after = self.value(0.0), self.value(t)
        return after <= before + VALUE_NOISE * (abs(before) + abs(after))

    def slope(self, t: float) -> float:
        """Return the derivative <grad F(x + t d), d>, computed at most once for each t."""
        if t == 0.0:
            return -self.gap
        known = self.evaluations.get(t)
        if known is None or known.grad is None:
            x = self.at(t) if known is None else known.x
            found = grad_at(self.problem.objective, x)
            self.evaluations[t] = found if known is None else Evaluation(x, known.fun, found.grad)
        return inner(self.evaluations[t].grad, self.d)


Chosen = tuple[float, float]
"""A step t, and the curvature estimate for the next step of the adaptive rule."""


class StepRule(ABC):
    """Abstract: a step rule as a value. Its parameters are frozen."""

    needs_value: ClassVar[bool] = False
    """It asks for F at the start of the direction."""
    uses_smoothness: ClassVar[bool] = False
    """Its step is computed from L."""
    minimises: ClassVar[bool] = False
    """It minimises F, or an upper bound of F, along the direction: what methods with an active set need."""

    @abstractmethod
    def choose(self, along: Direction) -> Chosen:
        """Return the step t in [0, 1], and the curvature estimate for the next step."""


Rule = StepRule | Callable[[Direction], Any]


@final
@dataclass(frozen=True)
class Short(StepRule):
    """Minimise the quadratic upper bound with constant L along d."""

    uses_smoothness = True
    minimises = True

    def choose(self, along: Direction) -> Chosen:
        """Return min(1, gap / (L |d|^2))."""
        return min(1.0, along.gap / (along.L * along.length2)), along.curvature


@final
@dataclass(frozen=True)
class Bounded(StepRule):
    """Minimise the quadratic upper bound with constant L, with the diameter in place of |d|."""

    uses_smoothness = True

    def choose(self, along: Direction) -> Chosen:
        """Return min(1, gap / (L diam^2))."""
        return min(1.0, along.gap / (along.L * along.problem.domain.diameter**2)), along.curvature


@final
@dataclass(frozen=True)
class OpenLoop(StepRule):
    """The step l/(k + l), which does not depend on F.

    Parameters
    ----------
    ell : int, default 2
        The l of the formula, at least 1. On strongly convex sets and with growth conditions, larger ones give faster rates
        (Wirth, Kerdreux and Pokutta 2023).
    """

    ell: int = 2

    def __post_init__(self) -> None:
        whole(self.ell, "The ell of OpenLoop")

    def choose(self, along: Direction) -> Chosen:
        """Return l/(k + l)."""
        return self.ell / (along.k + self.ell), along.curvature


@final
@dataclass(frozen=True)
class InverseSqrt(StepRule):
    """The step 1/sqrt(k + 1), for non-convex F whose L is not known."""

    def choose(self, along: Direction) -> Chosen:
        """Return 1/sqrt(k + 1)."""
        return 1 / sqrt(along.k + 1), along.curvature


@final
@dataclass(frozen=True)
class Adaptive(StepRule):
    """Short steps with a local constant M, doubled until F decreases as the quadratic upper bound predicts."""

    needs_value = True
    minimises = True

    def choose(self, along: Direction) -> Chosen:
        """Return min(1, gap / (M |d|^2)), and M."""
        gap, length2, M = along.gap, along.length2, 0.9 * along.curvature
        before = along.value(0.0)
        while True:
            t = min(1.0, gap / (M * length2))
            after = along.value(t)
            if after <= before - t * gap + t**2 * M / 2 * length2 + VALUE_NOISE * (abs(before) + abs(after)):
                return t, M
            M = 2 * M


@final
@dataclass(frozen=True)
class Monotone(StepRule):
    """The step of another rule, halved until F does not increase.

    Parameters
    ----------
    rule : str or StepRule, default OpenLoop(2)
        The rule that proposes a step.
    """

    rule: str | StepRule = OpenLoop()

    needs_value = True

    def __post_init__(self) -> None:
        if not isinstance(self.rule, StepRule):
            choice(self.rule, RULES, "rule of Monotone")

    @property
    def uses_smoothness(self) -> bool:  # type: ignore[override]
        """Whether the step is computed from L."""
        return rule_of(self.rule).uses_smoothness

    def choose(self, along: Direction) -> Chosen:
        """Return t / 2^j for the smallest j that does not raise F. It ends at t = 0 at the latest."""
        t, curvature = rule_of(self.rule).choose(along)
        while not along.not_above(t):
            t = t / 2
        return t, curvature


@final
@dataclass(frozen=True)
class LineSearch(StepRule):
    """Minimise F along d by bounded scalar minimisation."""

    needs_value = True
    minimises = True

    def choose(self, along: Direction) -> Chosen:
        """Return the best of the t that was found, 1 and 0."""
        from scipy.optimize import minimize_scalar  # imported here: it takes longer to import than the rest of condgrad

        found = minimize_scalar(along.value, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-8})
        return min((float(found.x), 1.0, 0.0), key=along.value), along.curvature


@final
@dataclass(frozen=True)
class GoldenSection(StepRule):
    """Minimise F along d by golden-section search: one value of F shortens the interval of t by the factor 0.618.

    Parameters
    ----------
    width : float, default 1e-7
        Length of the interval at which the search ends. Values of F do not tell points apart that are closer than the square
        root of their rounding.
    """

    width: float = 1e-7

    needs_value = True
    minimises = True

    def __post_init__(self) -> None:
        if not 0 < real(self.width, "The width of GoldenSection") < 1:
            raise ValueError(f"The width of GoldenSection is {self.width}, a number between 0 and 1 was expected.")

    def choose(self, along: Direction) -> Chosen:
        """Return the best of the last two t, 1 and 0."""
        ratio = (sqrt(5) - 1) / 2
        low, high = 0.0, 1.0
        a, b = high - ratio, low + ratio
        while high - low > self.width:
            if along.value(a) <= along.value(b):
                high, b = b, a
                a = high - ratio * (high - low)
            else:
                low, a = a, b
                b = low + ratio * (high - low)
        return min((a, b, 1.0, 0.0), key=along.value), along.curvature


@final
@dataclass(frozen=True)
class Secant(StepRule):
    """Find a zero of the slope of F along d by the secant method: one gradient and one value of F for each t that is tried.

    The search keeps an interval whose left end descends and is not above F(x), and whose right end ascends or is above F(x):
    between them is a local minimum that is not above F(x), also of a non-convex F. A secant that leaves the interval is replaced
    by its middle. On a quadratic the first secant is exact.

    Parameters
    ----------
    tolerance : float, default 1e-6
        The search ends where the slope is at most this share of the slope at x.
    max_trials : int, default 40
        Maximum number of t that are tried; then the step is the left end of the interval.
    """

    tolerance: float = 1e-6
    max_trials: int = 40

    needs_value = True
    minimises = True

    def __post_init__(self) -> None:
        whole(self.max_trials, "The max_trials of Secant")
        if not 0 < real(self.tolerance, "The tolerance of Secant") < 1:
            raise ValueError(f"The tolerance of Secant is {self.tolerance}, a number between 0 and 1 was expected.")

    def choose(self, along: Direction) -> Chosen:
        """Return the zero, or 1 if F descends along all of d."""
        low, high, t, last = 0.0, 1.0, 1.0, 0.0
        for _ in range(self.max_trials):
            lower, slope = along.not_above(t), along.slope(t)
            if lower and (abs(slope) <= self.tolerance * along.gap or (t == 1.0 and slope < 0)):
                return t, along.curvature
            low, high = (t, high) if lower and slope < 0 else (low, t)
            secant = t - slope * (t - last) / rise if (rise := slope - along.slope(last)) else high
            last, t = t, secant if isfinite(secant) and low < secant < high else (low + high) / 2
        return low, along.curvature


RULES: dict[str, StepRule] = {
    "short": Short(),
    "bounded": Bounded(),
    "adaptive": Adaptive(),
    "open-loop": OpenLoop(),
    "inverse-sqrt": InverseSqrt(),
    "monotone": Monotone(),
    "line-search": LineSearch(),
    "golden-section": GoldenSection(),
    "secant": Secant(),
}
"""The rules by name."""


@final
@dataclass(frozen=True)
class Own(StepRule):
    """A user's function as a rule; its answer is checked."""

    function: Callable[[Direction], Any]

    needs_value = True
    minimises = True

    def choose(self, along: Direction) -> Chosen:
        """Return what the function answers."""
        answer = self.function(along)
        try:
            t = real(answer, "the step")
        except ValueError:
            t = -1.0
        if not 0 <= t <= 1:
            raise BadOracle(
                f"The rule returned {answer!r} for the step from x to x + t d: return a number t from 0 to 1."
            )
        return t, along.curvature


def rule_of(rule: str | Rule) -> StepRule:
    """Return the rule that a name, a value or a user's function stands for."""
    if isinstance(rule, str):
        return RULES[rule]
    return rule if isinstance(rule, StepRule) else Own(rule)


def check_rule(rule: Any, what: str = "Frank-Wolfe rule") -> None:
    """Raise ValueError if ``rule`` is neither a name from ``RULES`` nor a rule as a value nor a function."""
    if not isinstance(rule, StepRule) and not callable(rule):
        choice(rule, RULES, what)


def check_minimising_rule(rule: Any, what: str) -> None:
    """Raise ValueError if ``rule`` is no rule, or one that does not minimise along a direction."""
    known = [name for name, value in RULES.items() if value.minimises]
    if isinstance(rule, StepRule):
        if not rule.minimises:
            names = ", ".join(known)
            raise ValueError(f"{rule!r} does not minimise F along a direction, as a {what} must: use one of {names}.")
    elif not callable(rule):
        choice(rule, known, what)
