r"""NCGS-SPIDER: conditional gradient sliding with the recursive estimator, for F = (1/n) sum_i f_i.

    every m steps:  v = grad F(theta)
    else            v = mean over a batch of b terms of (grad f_i(theta) - grad f_i(theta_previous)) + v_previous
    theta = condg(v, theta, lambda, eta)

Output: a uniformly random one of the iterates theta_0 .. theta_{T-1}. With K >= L the mean-square smoothness of the terms,
m = b = sqrt(n), lambda = 1/(3K), eta = 1/T:  E |g(theta_a, grad F(theta_a), lambda)|^2 <= 9 K (4 (F(theta_0) - F*) + 5)/T.
So 3 sqrt(n) T term gradients, n + sqrt(n)/eps, in place of the n^(2/3)/eps of NCGS-VR. Derived in docs/methods/recursive.md.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from condgrad.estimators import SPIDER
from condgrad.protocols import Problem
from condgrad.solvers.ncgs_vr import NCGSVR, check_found
from condgrad.solvers.schedules import Schedule, Setup, theory
from condgrad.solvers.spider_fw import square_root

SHARE = 5 / 18
"""The relative inner error that the proof allows, twice what leaves half of the descent: practical's c is 1/2."""


def ncgs_spider(
    problem: Problem,
    setup: Setup,
    epoch: int | None = None,
    batch: int | None = None,
    lam: float | None = None,
    replace: bool = True,
    adaptive: bool | None = None,
) -> NCGSVR:
    """Build the method. By default m = b = sqrt(n), and the step is the theorem's; with the practical schedule it is adaptive."""
    root = square_root(problem.objective.n_terms)
    m, b = epoch or root, batch or root
    if adaptive is None:
        adaptive = lam is None and not isinstance(setup.schedule, theory)
    check_found(problem.objective, adaptive, lam, "ncgs-spider")
    lam = lam or step_size(problem.objective, setup.schedule, m, b)
    return NCGSVR(setup.schedule, setup.inner, SPIDER(m, b, replace=replace), lam, setup.seed, adaptive, SHARE)


def step_size(objective: Any, schedule: Schedule, epoch: int, batch: int) -> float:
    """Return the theorem's step 1/(3K); for the practical schedule, the largest with L lambda + K^2 m/b lambda^2 <= 4/9.

    With K = L and m = b that is 1/(3K) too. If L is to be found: 0.
    """
    if not objective.smoothness:
        return 0.0
    K, L = objective.mean_square_smoothness or objective.term_smoothness, objective.smoothness
    if isinstance(schedule, theory):
        return 1 / (3 * max(K, L))
    a = K**2 * epoch / batch
    return (sqrt(L**2 + 16 / 9 * a) - L) / (2 * a)
