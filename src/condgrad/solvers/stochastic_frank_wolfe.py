r"""The step that SFW, SVFW, SAGAFW and their stochastic forms share (Reddi, Sra, Poczos and Smola 2016).

    v = an estimate of grad F(x),  s = lmo(v),  x = x + t (s - x)

They differ in the estimate: see sfw.py, svfw.py and sagafw.py. Their theorems take the constant step
t = sqrt(h_0 / (T L D^2)) with h_0 >= F(x_0) - F* and D the diameter, and output a uniformly random iterate. L is F's in the
theorem of SFW, and a smoothness of every term (or sample) in those of the variance reduced methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from condgrad.points import inner
from condgrad.protocols import Estimator, Objective, Point, Problem, fits
from condgrad.solvers.schedules import Schedule, theory
from condgrad.solvers.states import State
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class StochasticFrankWolfeState(State):
    memory: Any
    scale: float
    """sqrt(h_0 / (L D^2)): the step is this over sqrt(T)."""


@dataclass(frozen=True)
class StochasticFrankWolfe:
    """Theory: t = scale/sqrt(T) for all T steps. Practical: scale/sqrt(k) in step k, for runs of no fixed length.

    ``smoothness`` is the L of the step, by default F's own.
    ``initial_gap`` is h_0; where it is not given, it is F(x_0) minus the objective's lower bound, or else
    max_x <grad F(x_0), x_0 - x> + L D^2/2, which smoothness makes an upper bound.
    """

    estimator: Estimator
    schedule: Schedule
    initial_gap: float | None = None
    seed: int = 0
    smoothness: float | None = None

    def init(self, problem: Problem, x0: Point) -> StochasticFrankWolfeState:
        L, D = self.smoothness or problem.objective.smoothness, problem.domain.diameter
        h0 = self.initial_gap if self.initial_gap is not None else initial_gap(problem, x0, self.seed)
        scale = sqrt(h0 / (L * D**2)) if h0 > 0 and D > 0 else 0.0
        memory = self.estimator.init(problem.objective, x0)
        return StochasticFrankWolfeState(x=x0, L=problem.objective.smoothness, memory=memory, scale=scale)

    def step(self, problem: Problem, state: StochasticFrankWolfeState) -> StochasticFrankWolfeState:
        k, x = state.k + 1, state.x
        rng = np.random.default_rng((self.seed, k))

        v, memory = self.estimator.estimate(problem.objective, x, state.memory, k, rng)
        s = problem.domain.lmo(v)
        t = min(1.0, state.scale / sqrt(self.schedule.steps if isinstance(self.schedule, theory) else k))
        return StochasticFrankWolfeState(k=k, x=x + t * (s - x), L=state.L, memory=memory, scale=state.scale)


def initial_gap(problem: Problem, x0: Point, seed: int) -> float:
    """An upper bound on F(x_0) - F*."""
    objective, domain = problem.objective, problem.domain
    lower_bound = getattr(objective, "lower_bound", None)
    if fits(objective, Objective) and lower_bound is not None:
        return objective.value(x0) - lower_bound
    if fits(objective, Objective):
        grad = objective.grad(x0)
    else:
        grad = objective.grad_terms(x0, objective.draw(1000, np.random.default_rng((seed, 0, 2))))
    return inner(grad, x0 - domain.lmo(grad)) + objective.smoothness * domain.diameter**2 / 2


def smoothness_of_terms(objective: Any, schedule: Schedule) -> float | None:
    """The L of the theorems of SVFW and SAGAFW, which assume it of every term; None, F's own, in practice.

    An expectation has one ``smoothness``: the theorems of SVFW-S and SAGAFW-S hold where every sample has it.
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
    """How many of T steps lead to a uniformly random one of x_0 .. x_{T-1}."""
    return int(rng.integers(steps))
