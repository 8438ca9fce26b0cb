r"""SAGAFW and SAGAFW-S (Reddi et al. 2016): Frank-Wolfe with a table of the last gradient of each term.

    v = mean over a batch I of (grad f_i(x) - table_i) + mean(table)
    table_j = grad f_j(x) for j in a second, independent batch J

SAGAFW-S has a table for a large sample of the expectation, drawn once.
"""

from __future__ import annotations

from math import ceil

from condgrad.estimators import SAGA
from condgrad.protocols import Problem
from condgrad.solvers.schedules import Setup
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe, smoothness_of_terms


def sagafw(
    problem: Problem,
    setup: Setup,
    batch: int | None = None,
    initial_gap: float | None = None,
    replace: bool = True,
) -> StochasticFrankWolfe:
    """Build SAGAFW; by default b = n^(1/3). The bound n^(1/3)/eps^2 is disputed (Beznosikov, Dobre and Gidel 2023)."""
    estimator = SAGA(batch or cube_root(problem.objective.n_terms), replace=replace, seed=setup.seed)
    L = smoothness_of_terms(problem.objective, setup.schedule)
    return StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed, L)


def sagafw_s(
    problem: Problem,
    setup: Setup,
    batch: int | None = None,
    sample: int | None = None,
    initial_gap: float | None = None,
) -> StochasticFrankWolfe:
    """Build SAGAFW-S; by default, with eps = 1/sqrt(T), a sample of n = eps^(-2) = T and b = n^(1/3)."""
    n = sample or setup.steps
    estimator = SAGA(batch or cube_root(n), n, seed=setup.seed)
    L = smoothness_of_terms(problem.objective, setup.schedule)
    return StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed, L)


def cube_root(n: int) -> int:
    """Return n^(1/3), rounded up."""
    return ceil(n ** (1 / 3) - 1e-9)
