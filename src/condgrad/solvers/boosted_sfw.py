r"""Boosted stochastic Frank-Wolfe: the direction of boosted Frank-Wolfe for an estimate of the gradient (cf. arXiv 2605.25255).

    v = an estimate of grad F(x),  s = lmo(v)
    g = the boosted direction for v, which begins with s (see boosted_frank_wolfe.py)
    if t <v, g> + t^2 L/2 |g|^2 > t <v, s - x> + t^2 L/2 |s - x|^2:  g = s - x
    x = x + t g

The estimator may be any (``estimator``), by default the batches of sfw. With t = t_k of sfw every bound of the form

    E gap(x_a) <= h_0/(t T) + D mean E|v - grad F| + L t D^2/2

of stochastic Frank-Wolfe holds for the boosted method, with up to K linear minimisations a step: 1/eps^4 samples with sfw's
batches. docs/methods/boosted.md has the derivation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condgrad.points import distance2, inner
from condgrad.protocols import Estimator, Point, Problem
from condgrad.solvers.boosted_frank_wolfe import Aligned, BoostedFrankWolfe
from condgrad.solvers.schedules import Setup
from condgrad.solvers.sfw import sfw
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe, StochasticFrankWolfeState


@dataclass(frozen=True)
class BoostedStochasticFrankWolfe:
    """Boosted stochastic Frank-Wolfe. ``plain`` has the estimator and the steps, ``boost`` the rounds and their delta."""

    plain: StochasticFrankWolfe
    boost: BoostedFrankWolfe

    def init(self, problem: Problem, x0: Point) -> StochasticFrankWolfeState:
        """Return the initial state at x0."""
        return self.plain.init(problem, x0)

    def step(self, problem: Problem, state: StochasticFrankWolfeState) -> StochasticFrankWolfeState:
        """Return the state after one step."""
        k, x = state.k + 1, state.x
        rng = np.random.default_rng((self.plain.seed, k))

        v, memory = self.plain.estimator.estimate(problem.objective, x, state.memory, k, rng)
        s, t = problem.domain.lmo(v), self.plain.step_size(state.scale, k)
        towards = Aligned(((1.0, s),), inner(v, x - s), distance2(s, x))
        g = self.boost.aligned(problem, v, x, towards)
        if model_decrease(g, t, state.L) < model_decrease(towards, t, state.L):
            g = towards
        x_next: Any = (1 - t) * x
        for c, vertex in g.parts:
            x_next = x_next + (t * c) * vertex
        return replace(state, k=k, x=x_next, memory=memory)


def model_decrease(g: Aligned, t: float, L: float) -> float:
    """Return -t <v, g> - t^2 L/2 |g|^2."""
    return t * g.gap - t**2 * L / 2 * g.length2


def boosted_sfw(
    problem: Problem,
    setup: Setup,
    batch: int | None = None,
    rounds: int = 10,
    delta: float = 1e-3,
    initial_gap: float | None = None,
    replace: bool = True,
    estimator: str | Estimator | None = None,
) -> BoostedStochasticFrankWolfe:
    """Build the method from the options of the registry."""
    plain = sfw(problem, setup, batch, initial_gap, replace, estimator)
    return BoostedStochasticFrankWolfe(plain, BoostedFrankWolfe("short", rounds, delta))
