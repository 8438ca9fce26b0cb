r"""SVFW and SVFW-S (Reddi et al. 2016): Frank-Wolfe with variance reduced gradients.

every m steps:  snapshot = x,  g = grad F(snapshot)          (SVFW-S: the mean over a large new sample)
v = mean over a batch of b of (grad f_i(x) - grad f_i(snapshot)) + g
"""

from __future__ import annotations

from condgrad.estimators import SVRG
from condgrad.protocols import Problem
from condgrad.solvers.ncgs_vr import epoch_and_batch
from condgrad.solvers.schedules import Setup
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe, smoothness_of_terms


def svfw(
    problem: Problem,
    setup: Setup,
    epoch: int | None = None,
    batch: int | None = None,
    store: bool = False,
    initial_gap: float | None = None,
    replace: bool = True,
) -> StochasticFrankWolfe:
    """Build SVFW; by default m = n^(1/3) and b = n^(2/3)."""
    m, b = epoch_and_batch(problem.objective.n_terms)
    estimator = SVRG(epoch or m, batch or b, store=store, replace=replace)
    L = smoothness_of_terms(problem.objective, setup.schedule)
    return StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed, L)


def svfw_s(
    problem: Problem,
    setup: Setup,
    epoch: int | None = None,
    batch: int | None = None,
    sample: int | None = None,
    initial_gap: float | None = None,
) -> StochasticFrankWolfe:
    """Build SVFW-S.

    By default, with eps = 1/sqrt(T): m = eps^(-2/3) = T^(1/3), b = eps^(-4/3) = T^(2/3), eps^(-2) = T samples at a snapshot.
    """
    m, b = epoch_and_batch(setup.steps)
    estimator = SVRG(epoch or m, batch or b, sample or setup.steps)
    L = smoothness_of_terms(problem.objective, setup.schedule)
    return StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed, L)
