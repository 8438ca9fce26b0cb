"""SFW (Reddi et al. 2016): Frank-Wolfe with the mean gradient of a fresh batch in each step."""

from __future__ import annotations

from condgrad.estimators import Minibatch, growing
from condgrad.protocols import Problem
from condgrad.solvers.schedules import Setup, theory
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe


def sfw(
    problem: Problem,
    setup: Setup,
    batch: int | None = None,
    initial_gap: float | None = None,
    replace: bool = True,
) -> StochasticFrankWolfe:
    """Build the method. The theorem's batch is b = T; the practical one is b_k = k, whose sum has the same order."""
    fixed = batch or (setup.schedule.steps if isinstance(setup.schedule, theory) else None)
    estimator = Minibatch(growing if fixed is None else lambda k: fixed, replace)
    return StochasticFrankWolfe(estimator, setup.schedule, initial_gap, setup.seed)
