r"""Pairwise Frank-Wolfe (Lacoste-Julien and Jaggi 2015, Algorithm 2).

    s_t = lmo(grad F(x_t)),  v_t = the atom of S_t with the largest <grad F(x_t), v>
    x_{t+1} = x_t + gamma_t (s_t - v_t),  gamma_t in [0, alpha_v] by the rule

For strongly convex F on a polytope it converges linearly in its steps that are no swap steps, of which there are at least
t / (3 |A|! + 1) with A the vertices (Theorem 1); in practice swap steps are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from condgrad.protocols import Problem
from condgrad.solvers.active_steps import ActiveSetMethod, Move, View, exchange
from condgrad.solvers.schedules import Setup
from condgrad.solvers.step_rules import Rule


@final
@dataclass(frozen=True)
class Pairwise(ActiveSetMethod):
    """Pairwise Frank-Wolfe. The certificate of a step is the Frank-Wolfe gap at the iterate before it, for gamma = 1/(2L).

    Parameters
    ----------
    rule : str, StepRule or callable, default "short"
        "short", "adaptive", "line-search", "golden-section", "secant", or a function ``rule(direction) -> t`` of a
        :class:`condgrad.solvers.Direction`, with t = 1 for the longest step.
    """

    @staticmethod
    def chosen(view: View) -> Move:
        """Weight moves from the away atom to s."""
        return exchange(view.s, view.a, float(view.hull.weights[view.a]))


def pairwise(problem: Problem, setup: Setup, rule: str | Rule = "short") -> Pairwise:
    """Build the method from the options of the registry."""
    return Pairwise(rule)
