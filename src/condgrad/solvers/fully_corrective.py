r"""Fully corrective Frank-Wolfe, with approximate corrections (Lacoste-Julien and Jaggi 2015, Algorithms 3 and 4).

    a_t, b_t = the atoms of S_t with the largest and the smallest <grad F(x_t), v>
    if <grad F(x_t), a_t - b_t> > theta Phi:  x_{t+1} = x_t + gamma_t (b_t - a_t), gamma_t in [0, alpha_a]     (a correction)
    else:  s_t = lmo(grad F(x_t)),  Phi = <grad F(x_t), x_t - s_t>,  x_{t+1} = x_t + gamma_t (s_t - x_t), gamma_t in [0, 1]

F is minimised over the hull of the atoms, by steps between two of them, until its gap there is the share theta of the last
Frank-Wolfe gap Phi; only then the linear oracle is called again. Each correction is a step with one gradient and no linear
minimisation. With short steps, h_0 = F(x_0) - F*, C = L diam^2, and F not necessarily convex, a gap of at most eps is found
within

    N = max(2 h_0/eps, 2 C h_0/eps^2) + 1 linear minimisations and 2 N + 2 C h_0/(theta eps)^2 + 1 steps

(docs/methods/fully-corrective.md has the derivation).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import final

import numpy as np

from condgrad.checks import positive
from condgrad.points.rounding import gap_rounding
from condgrad.protocols import Point, Problem, vertex_oracle
from condgrad.solvers.active_steps import (
    ActiveState,
    View,
    check_active_rule,
    exchange,
    first_state,
    moved_along,
    seen,
    towards,
)
from condgrad.solvers.evaluation import cached, grad_at
from condgrad.solvers.frank_wolfe import slope
from condgrad.solvers.schedules import Setup
from condgrad.solvers.step_rules import Rule, rule_of
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class CorrectiveState(ActiveState):
    """State of :class:`FullyCorrective`."""

    Phi: float = 0.0
    """The Frank-Wolfe gap that the last linear minimisation found; 0 before the first."""


@final
@dataclass(frozen=True)
class FullyCorrective:
    """Fully corrective Frank-Wolfe: F is nearly minimised over the hull of the atoms before the linear oracle is called again.

    The certificate of a step with a linear minimisation is the Frank-Wolfe gap at the iterate before it; the one of a correction
    has an open gap.

    Parameters
    ----------
    rule : str, StepRule or callable, default "short"
        "short", "adaptive", "line-search", "golden-section", "secant", or a function ``rule(direction) -> t`` of a
        :class:`condgrad.solvers.Direction`, with t = 1 for the longest step.
    share : float, default 0.5
        theta: corrections end when the gap over the hull of the atoms is at most this share of the last Frank-Wolfe gap. With a
        huge one the method is Frank-Wolfe.
    """

    rule: str | Rule = "short"
    share: float = 0.5

    def __post_init__(self) -> None:
        check_active_rule(self.rule)
        positive(self.share, "The share of FullyCorrective")

    @property
    def relies_on_smoothness(self) -> bool:
        """Whether the length of a step is computed from L."""
        return rule_of(self.rule).uses_smoothness

    def init(self, problem: Problem, x0: Point) -> CorrectiveState:
        """Return the initial state at x0."""
        first = first_state(problem, x0, self.rule)
        return CorrectiveState(**vars(first))

    def step(self, problem: Problem, state: CorrectiveState) -> CorrectiveState:
        """Return the state after one step."""
        x, hull = state.x, state.hull
        known = grad_at(cached(problem.objective, state.known), x)
        slopes = hull.products(known.grad)
        a, b = int(np.argmax(slopes)), int(np.argmin(slopes))
        if slopes[a] - slopes[b] > self.share * state.Phi:
            view = View(hull, b, a, slopes, float(hull.weights @ slopes))
            correction = exchange(b, a, float(hull.weights[a]))
            return moved_along(problem, state, self.rule, known, view, correction, inf, 0.0)
        s = vertex_oracle(problem.domain)(known.grad)
        view = seen(hull, known.grad, s)
        gap, rounding = max(slope(known.grad, x, s), 0.0), gap_rounding(known.grad, x, s)
        return replace(moved_along(problem, state, self.rule, known, view, towards(view.s), gap, rounding), Phi=gap)


def fully_corrective(
    problem: Problem, setup: Setup, rule: str | Rule = "short", share: float | None = None
) -> FullyCorrective:
    """Build the method from the options of the registry."""
    return FullyCorrective(rule, 0.5 if share is None else share)
