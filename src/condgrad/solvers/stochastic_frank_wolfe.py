r"""Stochastic Frank-Wolfe with a gradient estimator, as in Reddi, Sra, Poczos and Smola (2016).

    v = an estimate of grad F(x),  s = lmo(v),  x = x + t (s - x)

The methods differ in the estimate: see sfw.py, svfw.py, sagafw.py, spider_fw.py, momentum_sfw.py, igt_sfw.py and clipped_sfw.py.
Their theorems use the constant step t = sqrt(h_0 / (T L D^2)) with h_0 >= F(x_0) - F* and D the diameter, and output a uniformly
random iterate. L is the smoothness of F in the theorem of SFW, and that of every term (or sample) in those of the variance
reduced methods. With momentum the step falls by another power of T.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from condgrad.points import inner
from condgrad.protocols import Estimator, Objective, Point, Problem, fits, has
from condgrad.solvers.schedules import Schedule, theory
from condgrad.solvers.states import State
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class StochasticFrankWolfeState(State):
    """State of :class:`StochasticFrankWolfe`."""

    memory: Any
    """State of the estimator."""
    scale: float
    """sqrt(h_0 / (L D^2)); the step is scale / T^power."""


@dataclass(frozen=True)
class StochasticFrankWolfe:
    """Stochastic Frank-Wolfe with a gradient estimator.

    The step is t = scale/T^``power`` in all T steps with the schedule ``theory``, and scale/(k + ``shift``)^``power`` in step k
    with ``practical``, for runs of no fixed length; scale is at most ``max_scale``. ``smoothness`` is the L of the step, by
    default that of F. ``initial_gap`` is h_0, by default F(x_0) minus the objective's lower bound or, if it has none,
    max_x <grad F(x_0), x_0 - x> + L D^2/2, an upper bound by smoothness.
    """

    estimator: Estimator
    schedule: Schedule
    initial_gap: float | None = None
    seed: int = 0
    smoothness: float | None = None
    power: float = 1 / 2
    shift: int = 0
    max_scale: float = inf

    def init(self, problem: Problem, x0: Point) -> StochasticFrankWolfeState:
        """Return the initial state at x0."""
        L, D = self.smoothness or problem.objective.smoothness, problem.domain.diameter
        h0 = self.initial_gap if self.initial_gap is not None else initial_gap(problem, x0, self.seed)
        scale = sqrt(h0 / (L * D**2)) if h0 > 0 and D > 0 else 0.0
        memory, scale = self.estimator.init(problem.objective, x0), min(scale, self.max_scale)
        return StochasticFrankWolfeState(x=x0, L=problem.objective.smoothness, memory=memory, scale=scale)

    def step(self, problem: Problem, state: StochasticFrankWolfeState) -> StochasticFrankWolfeState:
        """Return the state after one step."""
        k, x = state.k + 1, state.x
        rng = np.random.default_rng((self.seed, k))

        v, memory = self.estimator.estimate(problem.objective, x, state.memory, k, rng)
        s = problem.domain.lmo(v)
        t = self.step_size(state.scale, k)
        return StochasticFrankWolfeState(k=k, x=x + t * (s - x), L=state.L, memory=memory, scale=state.scale)

    def step_size(self, scale: float, k: int) -> float:
        """Return the t of step k."""
        T = self.schedule.steps if isinstance(self.schedule, theory) else k + self.shift
        return min(1.0, scale / T**self.power)


def initial_gap(problem: Problem, x0: Point, seed: int) -> float:
    """Return an upper bound on F(x_0) - F*."""
    objective, domain = problem.objective, problem.domain
    lower_bound = getattr(objective, "lower_bound", None)
    if lower_bound is not None and has(objective, "value"):
        return objective.value(x0) - lower_bound
    if fits(objective, Objective):
        grad = objective.grad(x0)
    else:
        grad = objective.grad_terms(x0, objective.draw(1000, np.random.default_rng((seed, 0, 2))))
    return inner(grad, x0 - domain.lmo(grad)) + objective.smoothness * domain.diameter**2 / 2


def smoothness_of_terms(objective: Any, schedule: Schedule) -> float | None:
    """Return the L of the theorems of SVFW and SAGAFW, a smoothness of every term; None (F's own) with the practical schedule.

    An expectation has one ``smoothness``; the theorems of SVFW-S and SAGAFW-S hold if every sample has it.
    """
    if not isinstance(schedule, theory) or not hasattr(objective, "term_smoothness"):
        return None
    if objective.term_smoothness is None:
        raise ValueError(
            f"schedule='theory' needs a smoothness of every term, and {type(objective).__name__} has none: give it "
            "term_smoothness=, or use schedule='practical'."
        )
    return float(objective.term_smoothness)


def random_iterate(steps: int, rng: np.random.Generator) -> int:
    """Return the index of a uniformly random one of the iterates x_0 .. x_{T-1}."""
    return int(rng.integers(steps))
