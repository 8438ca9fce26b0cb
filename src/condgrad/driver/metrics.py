"""What is measured of a point, on the uncounted problem, while the watch stands still."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from condgrad.certificate import Certificate, linear_gap
from condgrad.inner import Corrective, Spectral, relative, with_gap
from condgrad.points.rounding import grad_scale, mapping_rounding, precision
from condgrad.protocols import Batch, Inner, Point, Problem, Projectable, SpectralSet, fits
from condgrad.runtime.signals import listening, worst

SMALL = 512 * 512
"""Entries of a matrix that is written out for an exact measurement."""
MEASURING_CALLS = 1000
"""Linear oracle calls that one measurement may take on a set that does not project; its interval is certified all the same."""


def value(problem: Problem, x: Point) -> float:
    """F(x)."""
    return float(problem.objective.value(x))


def wolfe_gap(problem: Problem, x: Point) -> float:
    """max_v <grad F(x), x - v>, with what rounding can do to it added."""
    return linear_gap(problem.domain, problem.objective.grad(x), x)[0]


def mapping(problem: Problem, x: Point, gamma: float, eps: float | None = None, exact: bool = False) -> Certificate:
    """The gradient mapping at x with step size gamma: exact where the set projects arrays, else an interval from Lemma 1.

    There the prox subproblem is solved until the interval is a tenth of the norm or below eps/100, or the calls are used up.
    With ``exact`` a small matrix of low rank is written out and projected too: far from a solution that is also cheaper.
    """
    small = exact and not isinstance(x, np.ndarray) and prod(x.shape) <= SMALL
    grad, gap = problem.objective.grad(x), 0.0
    if (small or isinstance(x, np.ndarray)) and fits(problem.domain, Projectable):
        z = x - gamma * grad
        prox = problem.domain.project(np.asarray(z) if small else z)
    else:
        solver: Inner = (Spectral if fits(problem.domain, SpectralSet) else Corrective)(max_calls=MEASURING_CALLS)
        accuracy = relative(0.01, gamma * (eps or 0.0) / 100)
        with listening() as heard:
            found = solver.solve(problem.domain, grad, x, gamma, accuracy, solver.init(problem.domain, x))
            prox, gap, _ = with_gap(found, problem.domain, grad, x, gamma)
        gap += worst(heard)
    known = precision(problem.objective, grad)
    rounding = mapping_rounding(grad, x, prox, gamma, known, grad_scale(problem.objective, x))
    return Certificate(x, prox, gamma, gap, on=named(problem), rounding=rounding)


def named(problem: Problem) -> str:
    return getattr(problem.objective, "on", "F")


@dataclass(frozen=True)
class Validation:
    """An expectation, seen through one fixed batch: its gradient is the batch's mean gradient, and is called by that name."""

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
    """The problem with its expectation replaced by a batch of ``size`` samples, drawn from the seed."""
    batch = problem.objective.draw(size, np.random.default_rng((seed, 0, 3)))
    return Problem(Validation(problem.objective, batch), problem.domain)
