"""SFW (Reddi et al. 2016): Frank-Wolfe with the mean gradient of a fresh batch in each step, or with any other estimator."""

from __future__ import annotations

from condgrad.estimators import Minibatch, estimator_for, growing
from condgrad.protocols import Estimator, Problem
from condgrad.solvers.schedules import Setup, theory
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe


def sfw(
    problem: Problem,
    setup: Setup,
    batch: int | None = None,
    initial_gap: float | None = None,
    replace: bool = True,
    estimator: str | Estimator | None = None,
) -> StochasticFrankWolfe:
    """Build the method. The theorem's batch is b = T; the practical one is b_k = k, whose sum has the same order.

    ``estimator`` replaces the batches: a name of :data:`condgrad.estimators.ESTIMATORS` or an estimator. The steps stay those
    of SFW, t_k = sqrt(h_0/(k L D^2)); methods such as svfw and spider-fw have the steps of their own theorems.
    """
    if estimator is not None:
        chosen = other_estimator(problem, setup, "sfw", estimator, batch is None and replace)
        return StochasticFrankWolfe(chosen, setup.schedule, initial_gap, setup.seed)
    fixed = batch or (setup.schedule.steps if isinstance(setup.schedule, theory) else None)
    batches = Minibatch(growing if fixed is None else lambda k: fixed, replace)
    return StochasticFrankWolfe(batches, setup.schedule, initial_gap, setup.seed)


def other_estimator(
    problem: Problem, setup: Setup, method: str, estimator: str | Estimator, alone: bool = True
) -> Estimator:
    """Return the estimator that replaces a method's own; raises ValueError if ``alone`` is False or the schedule is theory."""
    if not alone:
        raise ValueError(
            "batch and replace are those of the estimator that is given: leave them out, or leave estimator out."
        )
    if isinstance(setup.schedule, theory):
        raise ValueError(
            f"schedule='theory' is the theorem of '{method}', which has its own estimator: use schedule='practical', or a method "
            "of its own such as svfw, sagafw, spider-fw, momentum-sfw, ncgs-vr, ncgs-spider or momentum-ncgs."
        )
    return estimator_for(problem.objective, estimator)
