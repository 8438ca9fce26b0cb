"""Estimates of the smoothness constant L: an initial estimate, backtracking for deterministic methods, and observed curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from condgrad.checks import BadOracle
from condgrad.points import distance2, inner, norm2
from condgrad.points.rounding import FLOAT64_PRECISION, precision, stated_rounding, terms_rounding
from condgrad.protocols import Point, Problem, Solver
from condgrad.solvers.evaluation import CachedObjective
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored

VALUE_NOISE = 1e-12
"""Assumed relative error of a value of F; smaller differences carry no information about the curvature."""

GRAD_NOISE = 1e-14
"""Assumed relative error of a gradient in float64."""

MIN_L = 1e-100
"""Least estimate of L: the square of the step size 1/(2L) can be computed."""

MAX_DOUBLINGS = 40
"""Maximum number of doublings of L in one step; if more are needed, value and gradient do not match."""


def smoothness(problem: Problem, x: Point, grad: Point | None = None) -> float:
    """Return the objective's L, or an estimate: the curvature between x and a point towards the linear oracle's answer.

    Parameters
    ----------
    problem : Problem
    x : Point
        A point of the set.
    grad : Point, default None
        The gradient at x; None: computed if needed.

    Returns
    -------
    float
        A positive number.
    """
    if problem.objective.smoothness:  # a linear F has L = 0, for which any positive L is valid
        return problem.objective.smoothness
    return local_smoothness(problem, x, grad)


def local_smoothness(problem: Problem, x: Point, grad: Point | None = None) -> float:
    """Return the curvature between x and a point towards the linear oracle's answer, a positive number; arguments as above."""
    grad = problem.objective.grad(x) if grad is None else grad
    d = 1e-3 * (problem.domain.lmo(grad) - x)
    length = sqrt(norm2(d))
    if length == 0.0:
        return 1.0
    curvature = sqrt(norm2(problem.objective.grad(x + d) - grad)) / length
    # With a step 1/(2L) much longer than the set, the gradient mapping would be small everywhere: bound L below.
    found = max(curvature, 1e-3 * sqrt(norm2(grad)) / length)
    return max(found, MIN_L) if found > 0 else 1.0  # F is constant there, for which any positive L is valid


@dataclass(frozen=True)
class Backtracking:
    """Run ``solver`` with an estimated L: repeat a step with 2 L until the descent inequality that it relies on holds.

    The proofs use L only through this inequality (for NCGS without a stretch), so the theorems hold with the largest L that was
    accepted.

    Parameters
    ----------
    solver : Solver
        A deterministic method whose steps use ``state.L``.
    """

    solver: Solver

    def init(self, problem: Problem, x0: Point) -> State:
        """Return the solver's initial state, with F(x0) if the first step needs it."""
        state = self.solver.init(problem, x0)
        if state.fun is None and getattr(self.solver, "relies_on_smoothness", True):
            return replace(state, fun=problem.objective.value(state.x))
        return state

    def step(self, problem: Problem, state: State) -> State:
        """Return the state after one step, with the smallest L tried for which the descent inequality holds."""
        objective = CachedObjective(problem.objective, state.known)  # a repeated step evaluates F at the same points
        problem = Problem(objective, problem.domain)
        new = self.solver.step(problem, state)
        if new.descent is None or state.L is None:
            lacks = "a descent" if new.descent is None else "an L, such as smoothness(problem, x0)"
            raise TypeError(
                f"L is not known, and for backtracking the state of {type(self.solver).__name__} must have {lacks}: add it, or "
                "give smoothness= to minimize."
            )
        if new.descent.y is None:  # the step does not rely on L
            return new
        before = objective.value(new.descent.x)
        for _ in range(MAX_DOUBLINGS):
            after = objective.value(new.descent.y)
            if descent_holds(new.descent, before, after, state.L):
                fun = after if new.descent.y is new.x else new.fun
                known = new.fun == fun and new.descent_fun == before
                return new if known else replace(new, fun=fun, descent_fun=before)
            state = replace(state, L=2 * state.L)
            new = self.solver.step(problem, state)
        length = sqrt(norm2(new.descent.y - new.descent.x))
        raise BadOracle(
            f"F increases along a descent direction of its gradient, even for a step of {length:.2g}: the gradient does not "
            "match the function, or F is not smooth there (compare grad with differences of value)."
        )


PROBED = 16
"""Number of samples in a batch whose gradients at two points show the curvature of F."""


@dataclass(frozen=True)
class SampledSmoothness:
    """Run a stochastic ``solver`` with an L that is found from the gradients of samples.

    L begins with the curvature near the start. In the first 15 steps, and then about 8 times in each doubling of the number of
    steps, the mean gradients of a batch at x before and after the step are compared. If |g(x) - g(y)| > L |x - y|, the step is
    repeated with 2 L or this quotient, whichever is larger.

    If the terms have the smoothness L*, every quotient is at most L*: L stays below 2 L*, and at most 1 + log2(L*/L_0) steps are
    repeated. The theorem of the method holds with L = L*; of the L that is found it is not known, since only the steps that are
    compared have shown no larger curvature.

    Parameters
    ----------
    solver : Solver
        A stochastic method whose steps use ``state.L``.
    seed : int, default 0
        Seed of the batches.
    """

    solver: Solver
    seed: int = 0

    def init(self, problem: Problem, x0: Point) -> State:
        """Return the solver's initial state, with the curvature near x0 as L."""
        state: State = self.solver.init(problem, x0)
        batch = self.batch(problem, 0)
        mean = _MeanOf(problem.objective, batch)
        return replace(state, L=local_smoothness(Problem(mean, problem.domain), x0))

    def step(self, problem: Problem, state: State) -> State:
        """Return the state after one step."""
        k = state.k + 1
        new: State = self.solver.step(problem, state)
        if k % max(k // 8, 1):
            return new
        mean = _MeanOf(problem.objective, self.batch(problem, k))
        before = mean.grad(state.x)
        for _ in range(MAX_DOUBLINGS):
            seen = quotient(before, mean.grad(new.x), state.x, new.x)
            if seen <= state.L:
                return new
            state = replace(state, L=max(2 * state.L, seen))
            new = self.solver.step(problem, state)
        raise BadOracle(
            "The gradients of samples change without bound between points that come closer: F is not smooth there."
        )

    def batch(self, problem: Problem, k: int) -> Any:
        """The samples whose gradients are compared in step k."""
        return problem.objective.draw(PROBED, np.random.default_rng((self.seed, k, 7)))


class _MeanOf:
    """The mean gradient of a batch, as the gradient of an objective without a smoothness constant."""

    def __init__(self, objective: Any, batch: Any):
        self.objective, self.samples = objective, batch

    def grad(self, x: Point) -> Point:
        return self.objective.grad_terms(x, self.samples)


def quotient(grad_x: Point, grad_y: Point, x: Point, y: Point) -> float:
    """Return |grad_x - grad_y| / |x - y|, a lower bound on L; 0 if a difference is not above rounding."""
    distance, change = distance2(x, y), distance2(grad_x, grad_y)
    if distance <= VALUE_NOISE * norm2(x) or change <= VALUE_NOISE * norm2(grad_x):
        return 0.0
    return max(sqrt(change) - stated_rounding(grad_x) - stated_rounding(grad_y), 0.0) / sqrt(distance)


def estimates_smoothness(solver: Any) -> bool:
    """Return whether L is found by backtracking in this solver, or in one that it wraps."""
    while not isinstance(solver, Backtracking) and hasattr(solver, "solver"):
        solver = solver.solver
    return isinstance(solver, Backtracking)


def descent_holds(descent: Descent, before: float, after: float, L: float) -> bool:
    """Return whether F(y) <= F(x) + <grad, y - x> + L/2 |y - x|^2, up to the noise of F's values."""
    rho, noise = curvature_along(descent, before, after)
    return 100 * noise >= L or rho <= L + noise


def curvature_along(descent: Descent, before: float, after: float) -> tuple[float, float]:
    """Return the least L of the descent inequality along a step, and its uncertainty due to the noise of F's values.

    ``before`` is F(x), ``after`` is F(y).
    """
    x, grad, y = descent
    d = y - x
    length2 = norm2(d)
    if length2 == 0.0:
        return 0.0, 0.0
    linear = inner(grad, d)
    scale = 2 / length2
    noise = scale * VALUE_NOISE * (abs(before) + abs(after) + abs(linear)) + 2 * stated_rounding(grad) / sqrt(length2)
    return scale * (after - before - linear), noise


def curvature_of_gradients(objective: Any, descent: Descent, after: Point) -> tuple[float, float]:
    """Return <grad F(y) - grad F(x), y - x> / |y - x|^2 along a step, and its uncertainty. ``after`` is the gradient at y.

    For a quadratic F it equals the curvature of :func:`curvature_along`. It keeps its digits in steps that are so short that F
    changes by no more than the noise of its values.
    """
    x, grad, y = descent
    d = y - x
    length2 = norm2(d)
    if length2 == 0.0:
        return 0.0, 0.0
    return (inner(after, d) - inner(grad, d)) / length2, gradient_noise(objective, descent, after)


def gradient_noise(objective: Any, descent: Descent, after: Point) -> float:
    """The uncertainty of :func:`curvature_of_gradients`, with a gradient like ``after`` at y; inf for a step of length 0.

    It includes what the objective states about errors of its gradients, such as those of central differences (``grad_scale``).
    """
    length = sqrt(norm2(descent.y - descent.x))
    if not length:
        return inf
    noise = GRAD_NOISE * precision(objective, after) / FLOAT64_PRECISION
    errors = (
        noise * sqrt(norm2(grad)) + stated_rounding(grad) + terms_rounding(objective, x, grad)
        for x, grad in ((descent.x, descent.grad), (descent.y, after))
    )
    return sum(errors) / length


@stored
class Curvature(NamedTuple):
    """Lower bound on L from the gradients that a run has computed."""

    largest: float = 0.0
    """The largest |grad F(x) - grad F(y)| / |x - y| of two successive points whose differences are above rounding."""
    point: float = 0.0
    grad: float = 0.0
    """``point`` and ``grad`` are the largest |x|^2 and |grad F(x)|^2 so far: the scale of the rounding errors."""

    def after(self, earlier: Descent, later: Descent, objective: Any) -> Curvature:
        """Return the bound updated by the gradients of two successive steps.

        A quotient above the objective's L may come from errors of the gradients, such as those of central differences, if the
        points are close. What the objective states about them (``grad_scale``) is then subtracted.
        """
        point = max(self.point, norm2(later.x), norm2(earlier.x))
        grad = max(self.grad, norm2(later.grad), norm2(earlier.grad))
        distance, change = distance2(later.x, earlier.x), distance2(later.grad, earlier.grad)
        if distance <= VALUE_NOISE * point or change <= VALUE_NOISE * grad:
            return Curvature(self.largest, point, grad)
        # of gradients in float32, rounding may be a part of their difference
        rounding = stated_rounding(later.grad) + stated_rounding(earlier.grad)
        if sqrt(change) - rounding > (objective.smoothness or 0.0) * sqrt(distance):
            rounding += terms_rounding(objective, earlier.x, earlier.grad) + terms_rounding(
                objective, later.x, later.grad
            )
        return Curvature(max(self.largest, (sqrt(change) - rounding) / sqrt(distance)), point, grad)
