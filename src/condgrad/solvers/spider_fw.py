r"""SPIDER-FW, SARAH-FW and ZeroSARAH-FW: Frank-Wolfe with recursive gradient estimates, for F = (1/n) sum_i f_i.

    v = mean over a batch of b of (grad f_i(x) - grad f_i(x_previous)) + v_previous
    every m steps (SPIDER-FW), or in each step with probability 1/m (SARAH-FW):  v = grad F(x)

ZeroSARAH-FW has no such restarts: a table of the terms' last gradients corrects the estimate, see estimators/zero_sarah.py.

With K the mean-square smoothness of the terms, D the diameter, h_0 >= F(x_0) - F*, b = m = sqrt(n) and the constant step
t = sqrt(h_0 / (T C D^2)):  E gap(x_a) <= 2 D sqrt(C h_0 / T), with C = K + L/2 and x_a a random iterate; for ZeroSARAH-FW
C = sqrt(24) K + L/2, and 8 sqrt(n) D |first error| / T is added. docs/methods/recursive.md has the derivation.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any

from condgrad.estimators import SPIDER, ZeroSARAH
from condgrad.protocols import Problem
from condgrad.solvers.schedules import Schedule, Setup, theory
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe, smoothness_of_terms


def spider_fw(
    problem: Problem,
    setup: Setup,
    epoch: int | None = None,
    batch: int | None = None,
    initial_gap: float | None = None,
    replace: bool = True,
) -> StochasticFrankWolfe:
    """Build SPIDER-FW; by default m = b = sqrt(n)."""
    root = square_root(problem.objective.n_terms)
    return _frank_wolfe(problem, setup, SPIDER(epoch or root, batch or root, replace=replace), initial_gap)


def sarah_fw(
    problem: Problem,
    setup: Setup,
    epoch: int | None = None,
    batch: int | None = None,
    initial_gap: float | None = None,
    replace: bool = True,
) -> StochasticFrankWolfe:
    """Build SARAH-FW; by default b = sqrt(n), and restarts with probability 1/(b + 1), which the proof uses."""
    b = batch or square_root(problem.objective.n_terms)
    return _frank_wolfe(problem, setup, SPIDER(epoch or b + 1, b, replace=replace, random=True), initial_gap)


def zero_sarah_fw(
    problem: Problem, setup: Setup, batch: int | None = None, initial_gap: float | None = None
) -> StochasticFrankWolfe:
    """Build ZeroSARAH-FW; by default b = sqrt(n). The weight of the table is b/(2n)."""
    n = problem.objective.n_terms
    b = min(batch or square_root(n), n)
    return _frank_wolfe(problem, setup, ZeroSARAH(b, b / (2 * n)), initial_gap, sqrt(24))


def _frank_wolfe(
    problem: Problem, setup: Setup, estimator: Any, initial_gap: float | None, factor: float = 1.0
) -> StochasticFrankWolfe:
    constant = step_constant(problem.objective, setup.schedule, factor)
    return StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed, constant)


def step_constant(objective: Any, schedule: Schedule, factor: float) -> float | None:
    """Return the C of the theorem's step; None, F's own L, with the practical schedule."""
    if not isinstance(schedule, theory):
        return None
    K: Any = objective.mean_square_smoothness or smoothness_of_terms(objective, schedule)
    return factor * K + objective.smoothness / 2


def square_root(n: int) -> int:
    """Return sqrt(n), rounded up."""
    return ceil(sqrt(n) - 1e-9)
