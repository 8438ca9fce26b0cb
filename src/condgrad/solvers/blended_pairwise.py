r"""Blended pairwise conditional gradients (Tsuji, Tanaka and Pokutta 2022, Algorithm 1).

    a_t, s_t = the atoms of S_t with the largest and the smallest <grad F(x_t), v>,  w_t = lmo(grad F(x_t))
    if <grad, a_t - s_t> >= <grad, x_t - w_t>:  x_{t+1} = x_t - gamma_t (a_t - s_t), gamma_t in [0, alpha_a]
    else:                                       x_{t+1} = x_t - gamma_t (x_t - w_t), gamma_t in [0, 1]

Weight moves between atoms that are there, so there are no swap steps and the active set stays small. For strongly convex F on a
polytope it converges linearly: h_t <= exp(-c t) h_0 with c = min(1/2, mu delta^2 / (4 L M^2)) / 2, where mu is the strong
convexity, M the diameter and delta the pyramidal width of the set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from condgrad.protocols import Problem
from condgrad.solvers.active_steps import ActiveSetMethod, Move, View, exchange, towards
from condgrad.solvers.schedules import Setup
from condgrad.solvers.step_rules import Rule


@final
@dataclass(frozen=True)
class BlendedPairwise(ActiveSetMethod):
    """Blended pairwise conditional gradients. The certificate of a step is the Frank-Wolfe gap at the iterate before it.

    Parameters
    ----------
    rule : str, StepRule or callable, default "short"
        "short", "adaptive", "line-search", "golden-section", "secant", or a function ``rule(direction) -> t`` of a
        :class:`condgrad.solvers.Direction`, with t = 1 for the longest step.
    """

    @staticmethod
    def chosen(view: View) -> Move:
        """Between two atoms of the active set, where that falls more than a step towards w."""
        weights = view.hull.weights
        s = int(np.argmin(np.where(weights > 0, view.slopes, np.inf)))
        if view.slopes[view.a] - view.slopes[s] >= view.level - view.slopes[view.s]:
            return exchange(s, view.a, float(weights[view.a]))
        return towards(view.s)


def blended_pairwise(problem: Problem, setup: Setup, rule: str | Rule = "short") -> BlendedPairwise:
    """Build the method from the options of the registry."""
    return BlendedPairwise(rule)
