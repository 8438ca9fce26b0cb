r"""Away-step Frank-Wolfe (Guelat and Marcotte 1986; Lacoste-Julien and Jaggi 2015, Algorithm 1).

    s_t = lmo(grad F(x_t)),  v_t = the atom of S_t with the largest <grad F(x_t), v>
    d_FW = s_t - x_t,  d_A = x_t - v_t
    if <-grad, d_FW> >= <-grad, d_A>:  d_t = d_FW, gamma_max = 1
    else:                              d_t = d_A,  gamma_max = alpha_v / (1 - alpha_v)
    x_{t+1} = x_t + gamma_t d_t,  gamma_t in [0, gamma_max] by the rule

For strongly convex F on a polytope it converges linearly: h_t <= (1 - rho)^(t/2) h_0 with rho = (mu/4L) (delta/M)^2, where mu is
the strong convexity, M the diameter and delta the pyramidal width of the set (Theorem 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from condgrad.protocols import Problem
from condgrad.solvers.active_steps import ActiveSetMethod, Move, View, away_from, towards
from condgrad.solvers.schedules import Setup
from condgrad.solvers.step_rules import Rule


@final
@dataclass(frozen=True)
class AwayStep(ActiveSetMethod):
    """Away-step Frank-Wolfe. The certificate of a step is the Frank-Wolfe gap at the iterate before it, for gamma = 1/(2L).

    Parameters
    ----------
    rule : str, StepRule or callable, default "short"
        "short", "adaptive", "line-search", "golden-section", "secant", or a function ``rule(direction) -> t`` of a
        :class:`condgrad.solvers.Direction`, with t = 1 for the longest step.
    """

    @staticmethod
    def chosen(view: View) -> Move:
        """Towards s or away from a, whichever falls more."""
        g_FW, g_A = view.level - view.slopes[view.s], view.slopes[view.a] - view.level
        alpha = float(view.hull.weights[view.a])
        return towards(view.s) if g_FW >= g_A or alpha >= 1.0 else away_from(view.a, alpha)


def away_step(problem: Problem, setup: Setup, rule: str | Rule = "short") -> AwayStep:
    """Build the method from the options of the registry."""
    return AwayStep(rule)
