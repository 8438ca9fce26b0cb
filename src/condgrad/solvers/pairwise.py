r"""Pairwise Frank-Wolfe (Lacoste-Julien and Jaggi 2015, Algorithm 2).

    s_t = lmo(grad F(x_t)),  v_t = the atom of S_t with the largest <grad F(x_t), v>
    x_{t+1} = x_t + gamma_t (s_t - v_t),  gamma_t in [0, alpha_v] by the rule

For strongly convex F on a polytope it converges linearly in its steps that are no swap steps, of which there are at least
t / (3 |A|! + 1) with A the vertices (Theorem 1); in practice swap steps are few.
"""

from __future__ import annotations

from dataclasses import dataclass

from condgrad.protocols import Point, Problem
from condgrad.solvers.active_steps import ActiveState, Move, View, check_active_rule, exchange, first_state, stepped
from condgrad.solvers.schedules import Setup
from condgrad.solvers.step_rules import Rule


@dataclass(frozen=True)
class Pairwise:
    """Pairwise Frank-Wolfe. The certificate of a step is the Frank-Wolfe gap at the iterate before it, for gamma = 1/(2L).

    Parameters
    ----------
    rule : str or callable, default "short"
        "short", "adaptive", "line-search", or a function ``rule(direction) -> t`` of a :class:`condgrad.solvers.Direction`, with
        t = 1 for the longest step.
    """

    rule: str | Rule = "short"

    def __post_init__(self) -> None:
        check_active_rule(self.rule)

    @property
    def relies_on_smoothness(self) -> bool:
        """Whether the length of a step is computed from L."""
        return self.rule == "short"

    def init(self, problem: Problem, x0: Point) -> ActiveState:
        """Return the initial state at x0."""
        return first_state(problem, x0, self.rule)

    def step(self, problem: Problem, state: ActiveState) -> ActiveState:
        """Return the state after one step."""
        return stepped(problem, state, self.rule, chosen)


def chosen(view: View) -> Move:
    """Weight moves from the away atom to s."""
    return exchange(view.s, view.a, float(view.hull.weights[view.a]))


def pairwise(problem: Problem, setup: Setup, rule: str | Rule = "short") -> Pairwise:
    """Build the method from the options of the registry."""
    return Pairwise(rule)
