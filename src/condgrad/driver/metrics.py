"""Functions that measure a point: its value, Frank-Wolfe gap and gradient mapping.

A run does not count the oracle calls and the time of these measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from condgrad.certificate import Certificate, linear_gap
from condgrad.inner import Corrective, Spectral, relative, with_gap
from condgrad.points import Blocks
from condgrad.points.rounding import grad_scale, mapping_rounding, precision
from condgrad.protocols import Batch, Inner, Point, Problem, Projectable, SpectralSet, fits
from condgrad.runtime.signals import receiving, worst

MAX_DENSE_ENTRIES = 512 * 512
"""Maximum number of entries of a low-rank matrix that is converted to an array for an exact measurement."""
MAX_MEASURING_CALLS = 1000
"""Maximum number of linear oracle calls of one measurement on a set without a projection. The measured interval is valid after
any number of calls; more calls would make it narrower."""


def value(problem: Problem, x: Point) -> float:
    """Value F(x)."""
    return float(problem.objective.value(x))


def wolfe_gap(problem: Problem, x: Point) -> float:
    """Upper bound on the Frank-Wolfe gap max_v <grad F(x), x - v>. The bound allows for rounding errors."""
    return linear_gap(problem.domain, problem.objective.grad(x), x)[0]


def mapping(problem: Problem, x: Point, gamma: float, eps: float | None = None, exact: bool = False) -> Certificate:
    """Gradient mapping at x with step size gamma.

    The norm of the mapping is exact if x is an array and the set has a projection. Otherwise Lemma 1 (see certificate.py) gives
    an interval for the norm. The prox subproblem is then solved until the error of the norm is at most a tenth of the norm or at
    most sqrt(eps)/10, or until ``MAX_MEASURING_CALLS`` linear oracle calls are used up.

    Parameters
    ----------
    problem : Problem
    x : Point
    gamma : float
        Step size of the mapping.
    eps : float, optional
        Tolerance on the squared norm of the mapping. With a tolerance, the interval is computed only as accurately as the
        tolerance requires.
    exact : bool, default False
        Whether a low-rank matrix of at most ``MAX_DENSE_ENTRIES`` entries is converted to an array, so that the norm is exact.
        Far from a solution, the conversion is cheaper than the computation of an interval.

    Returns
    -------
    Certificate
    """
    dense = is_dense(x)
    small = exact and not dense and prod(x.shape) <= MAX_DENSE_ENTRIES
    grad, gap = problem.objective.grad(x), 0.0
    if (small or dense) and fits(problem.domain, Projectable):
        z = x - gamma * grad
        prox = problem.domain.project(np.asarray(z) if small else z)
    else:
        solver: Inner = (Spectral if fits(problem.domain, SpectralSet) else Corrective)(max_calls=MAX_MEASURING_CALLS)
        accuracy = relative(0.01, gamma * (eps or 0.0) / 100)
        with receiving() as reports:
            found = solver.solve(problem.domain, grad, x, gamma, accuracy, solver.init(problem.domain, x))
            prox, gap, _ = with_gap(found, problem.domain, grad, x, gamma)
        gap += worst(reports)
    relative_precision = precision(problem.objective, grad)
    rounding = mapping_rounding(grad, x, prox, gamma, relative_precision, grad_scale(problem.objective, x))
    return Certificate(x, prox, gamma, gap, on=function_name(problem), rounding=rounding)


def is_dense(x: Point) -> bool:
    """Whether x is an array, or consists of blocks that are all arrays."""
    return all(map(is_dense, x.blocks)) if isinstance(x, Blocks) else isinstance(x, np.ndarray)


def function_name(problem: Problem) -> str:
    """Name of the measured function in messages: F, or the validation batch that replaces an expectation."""
    return getattr(problem.objective, "on", "F")


@dataclass(frozen=True)
class Validation:
    """Objective whose gradient is the mean gradient of one fixed batch of samples of an expectation."""

    expectation: Any
    batch: Batch

    @property
    def precision(self) -> float | None:
        return getattr(self.expectation, "precision", None)

    @property
    def on(self) -> str:
        return f"a validation batch of {len(self.batch)} samples"

    def grad(self, x: Point) -> Point:
        return self.expectation.grad_terms(x, self.batch)


def validation(problem: Problem, size: int, seed: int) -> Problem:
    """Problem with its expectation replaced by a fixed batch of ``size`` samples, drawn with ``seed``."""
    batch = problem.objective.draw(size, np.random.default_rng((seed, 0, 3)))
    return Problem(Validation(problem.objective, batch), problem.domain)
