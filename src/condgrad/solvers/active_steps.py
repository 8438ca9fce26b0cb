"""What away-step, pairwise, blended pairwise and fully corrective Frank-Wolfe share: the state with its active set, and a step
along a direction.

A direction is own x + c s + ... with atoms of the active set, and the longest step along it is the one at which a weight falls to
0. The step rules choose t in [0, 1] of the longest step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from condgrad.certificate import Certificate
from condgrad.inner.condg import like
from condgrad.points import ActiveSet, distance2
from condgrad.points.rounding import gap_rounding
from condgrad.protocols import Point, Problem, vertex_oracle
from condgrad.solvers.evaluation import Evaluation, cached, grad_at, value_and_grad_at, value_at
from condgrad.solvers.frank_wolfe import slope
from condgrad.solvers.smoothness import smoothness
from condgrad.solvers.states import Descent, State
from condgrad.solvers.step_rules import Direction, Rule, check_minimising_rule, rule_of
from condgrad.storage.stored import stored

REFRESH = 64
"""Number of steps after which the iterate is computed again from its weights, so that rounding errors do not add up."""


@stored
@dataclass(frozen=True, kw_only=True)
class ActiveState(State):
    """State of a method with an active set."""

    hull: ActiveSet
    curvature: float
    """Local curvature estimate of the adaptive rule."""


class View(NamedTuple):
    """What a method sees before it chooses its direction."""

    hull: ActiveSet
    """The active set, with the answer s of the linear oracle as an atom, also if that has no weight."""
    s: int
    """The number of s."""
    a: int
    """The number of the away atom: of those with a weight the one with the largest <grad, a>."""
    slopes: np.ndarray
    """<grad, atom> of all atoms, up to a constant."""
    level: float
    """<grad, x>, up to the same constant."""


class Move(NamedTuple):
    """d = own x + sum of c_i times the atom i, and the longest step along it."""

    own: float
    parts: tuple[tuple[float, int], ...]
    longest: float


def towards(s: int) -> Move:
    """d = s - x."""
    return Move(-1.0, ((1.0, s),), 1.0)


def away_from(a: int, weight: float) -> Move:
    """d = x - a, for an atom with this weight."""
    return Move(1.0, ((-1.0, a),), weight / (1 - weight))


def exchange(s: int, a: int, weight: float) -> Move:
    """d = s - a, for an atom a with this weight."""
    return Move(0.0, ((1.0, s), (-1.0, a)), weight)


def check_active_rule(rule: Any, what: str = "rule") -> None:
    """Raise ValueError if ``rule`` does not minimise F or its upper bound along a direction, which linear convergence needs."""
    check_minimising_rule(rule, "rule of a method with an active set")


def first_state(problem: Problem, x0: Point, rule: str | Rule) -> ActiveState:
    """The state at x0, which is the only atom."""
    _, fun, grad = (value_at if rule_of(rule).needs_value else value_and_grad_at)(problem.objective, x0)
    L = smoothness(problem, x0, grad)
    hull = ActiveSet.at(x0, origin=getattr(problem.domain, "atom", None) is None)
    return ActiveState(x=x0, L=L, curvature=L, hull=hull, fun=fun, grad=grad)


def stepped(problem: Problem, state: ActiveState, rule: str | Rule, chosen: Any) -> ActiveState:
    """The state after one step along the direction ``chosen(view)``, a :class:`Move`."""
    known = grad_at(cached(problem.objective, state.known), state.x)
    s = vertex_oracle(problem.domain)(known.grad)
    view = seen(state.hull, known.grad, s)
    gap, rounding = max(slope(known.grad, state.x, s), 0.0), gap_rounding(known.grad, state.x, s)
    return moved_along(problem, state, rule, known, view, chosen(view), gap, rounding)


def moved_along(
    problem: Problem,
    state: ActiveState,
    rule: str | Rule,
    known: Evaluation,
    view: View,
    move: Move,
    gap: float,
    rounding: float,
) -> Any:
    """The state after one step along ``move``, of the type of ``state``.

    ``known`` has the gradient at x, ``gap`` is the Frank-Wolfe gap at x up to ``rounding``, infinite if it was not measured.
    """
    x, L, k, (own, parts, longest) = state.x, state.L, state.k + 1, move
    _, fun, grad = known
    objective = cached(problem.objective, state.known)
    points = tuple((longest * c, view.hull.atom(i)) for c, i in parts)
    falls = -longest * (own * view.level + sum(c * view.slopes[i] for c, i in parts))
    # of two atoms, or of x and an atom
    length2 = longest**2 * (distance2(points[0][1], points[1][1]) if len(points) > 1 else distance2(points[0][1], x))
    direction = Direction(
        problem=problem,
        k=state.k,
        x=x,
        grad=grad,
        own=longest * own,
        parts=points,
        gap=max(float(falls), 0.0),
        length2=length2,
        L=L,
        curvature=state.curvature,
        evaluations={} if state.fun is None else {0.0: state.known},
    )
    t, curvature = (0.0, state.curvature) if length2 == 0 else rule_of(rule).choose(direction)
    hull = view.hull.with_weights(moved(view.hull.weights, own, parts, longest, t))
    if k % REFRESH:
        x_next, fun_next, grad_next = direction.evaluations.get(t) or value_and_grad_at(objective, direction.at(t))
    else:
        x_next = like(x, hull.point())
        _, fun_next, grad_next = (value_at if rule_of(rule).needs_value else value_and_grad_at)(objective, x_next)

    return replace(
        state,
        k=k,
        x=x_next,
        L=L,
        curvature=curvature,
        hull=hull,
        certificate=Certificate(x, x, 1 / (2 * L), gap + rounding, noise=rounding),
        descent=Descent(x, grad, x_next if rule_of(rule).uses_smoothness else None),
        fun=fun_next,
        grad=grad_next,
        descent_fun=fun,
    )


def seen(hull: ActiveSet, grad: Point, s: Point) -> View:
    """The slopes of F towards the atoms and s."""
    number = hull.find(s)
    if number is None:
        hull, number = hull.with_atom(s), len(hull.atoms)
    slopes = hull.products(grad)
    a = int(np.argmax(np.where(hull.weights > 0, slopes, -np.inf)))
    return View(hull, number, a, slopes, float(hull.weights @ slopes))


def moved(
    weights: np.ndarray, own: float, parts: tuple[tuple[float, int], ...], longest: float, t: float
) -> np.ndarray:
    """The weights of x + t longest d."""
    gamma = t * longest
    new = (1 + gamma * own) * weights
    for c, i in parts:
        new[i] = 0.0 if c < 0 and t == 1.0 else new[i] + gamma * c
    new = np.maximum(new, 0.0)
    return new / new.sum()


@dataclass(frozen=True)
class ActiveSetMethod(ABC):
    """Abstract: a Frank-Wolfe method that keeps an active set. The certificate of a step is the Frank-Wolfe gap before it.

    Parameters
    ----------
    rule : str, StepRule or callable, default "short"
        "short", "adaptive", "line-search", "golden-section", "secant", or a function ``rule(direction) -> t`` of a
        :class:`condgrad.solvers.Direction`, with t = 1 for the longest step.
    """

    rule: str | Rule = "short"

    def __post_init__(self) -> None:
        check_active_rule(self.rule)

    @staticmethod
    @abstractmethod
    def chosen(view: View) -> Move:
        """The direction of a step."""

    @property
    def relies_on_smoothness(self) -> bool:
        """Whether the length of a step is computed from L."""
        return rule_of(self.rule).uses_smoothness

    def init(self, problem: Problem, x0: Point) -> ActiveState:
        """Return the initial state at x0."""
        return first_state(problem, x0, self.rule)

    def step(self, problem: Problem, state: ActiveState) -> ActiveState:
        """Return the state after one step."""
        return stepped(problem, state, self.rule, self.chosen)
