r"""Universal conditional gradient sliding for convex F: no L, no diameter, no number of steps, and a certified gap.

    a > 0 with 2 M a^2 = A + a,  g = a/(A + a)
    z = (1 - g) y + g x
    x' = condg(grad F(z), x, a, e)
    y' = (1 - g) y + g x'
    if F(y') > F(z) + <grad F(z), y' - z> + M/2 |y' - z|^2:  again with 2 M
    A = A + a;  M = M/2 if the curvature between z and y' was at most M/4

All linear minorants of F that were seen, weighted by a, are one linear function: its minimum over the set, one linear
minimisation, is a lower bound on F*. With M_0 <= 2L all M are at most 2L. With e at most max(e_0, |x' - x|^2/(4a)),

    F(y_N) - (lower bound) <= 8 L D^2/N^2 + e_0   and   F(y_N) - F* <= 8 L |x_0 - x*|^2/N^2 + e_0,

D the diameter, which the method does not use: 1/sqrt(eps) gradients, and log(1/eps)/eps linear minimisations with condg.
``theory`` has e = e_0 = gap(x_0)/N^2 and ``practical`` its floor. Derived in docs/methods/universal-cgs.md, in the family of
Ouyang and Squires 2021 (arXiv 2103.11026) and Takahashi 2026 (arXiv 2601.20443), whose abstracts have the same rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from condgrad.checks import BadOracle
from condgrad.points import inner
from condgrad.protocols import Inner, Point, Problem
from condgrad.solvers.evaluation import CachedObjective, grad_at
from condgrad.solvers.schedules import Schedule, Setup, theory
from condgrad.solvers.smoothness import MAX_DOUBLINGS, curvature_along, descent_holds, local_smoothness
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored

SHARE = 1 / 2
"""The relative inner error that the proof allows, |x' - x|^2/(4a): practical's c is 1/2."""


@stored
@dataclass(frozen=True, kw_only=True)
class UniversalCGSState(State):
    """State of :class:`UniversalCGS`; ``x`` is the point y."""

    inner_x: Point
    memory: Any
    M: float
    """Estimate of the curvature, with which the next step begins."""
    first_gap: float
    """The Frank-Wolfe gap at x_0."""
    A: float = 0.0
    """Sum of the weights a."""
    slope: Point | None = None
    """Sum of a grad F(z)."""
    offset: float = 0.0
    """Sum of a (F(z) - <grad F(z), z>)."""
    lower: float = -inf
    """Lower bound on the minimum of F over the set, for convex F."""

    @property
    def certified_gap(self) -> float:
        """Upper bound on F(x) - F* for convex F; infinite before the first step."""
        return inf if self.fun is None else self.fun - self.lower


@dataclass(frozen=True)
class UniversalCGS:
    """Universal conditional gradient sliding. It reports y.

    ``first`` is M_0. None: the curvature between x_0 and a point near it, which takes one gradient and one linear minimisation.
    """

    schedule: Schedule
    inner: Inner
    first: float | None = None

    relies_on_smoothness = False

    def init(self, problem: Problem, x0: Point) -> UniversalCGSState:
        """Return the initial state at x0."""
        _, fun, grad = grad_at(problem.objective, x0)
        fun = problem.objective.value(x0) if fun is None else fun
        estimate = local_smoothness(problem, x0, grad)
        gap = inner(grad, x0 - problem.domain.lmo(grad)) if isinstance(self.schedule, theory) else 0.0
        return UniversalCGSState(
            x=x0,
            inner_x=x0,
            L=problem.objective.smoothness or estimate,
            memory=self.inner.init(problem.domain, x0),
            M=self.first or estimate,
            first_gap=gap,
            fun=fun,
            grad=grad,
        )

    def step(self, problem: Problem, state: UniversalCGSState) -> UniversalCGSState:
        """Return the state after one step."""
        objective = CachedObjective(
            problem.objective, state.known
        )  # the first z is x_0, also where the step is repeated
        y, x, A, M = state.x, state.inner_x, state.A, state.M
        for _ in range(MAX_DOUBLINGS):
            a = (1 + sqrt(1 + 8 * M * A)) / (4 * M)
            g = a / (A + a)
            z = (1 - g) * y + g * x if A else x
            _, fun, grad = grad_at(objective, z)
            fun = objective.value(z) if fun is None else fun
            accuracy = self.schedule.accuracy(gamma=a, share=SHARE, eta=lambda: self.eta(state))
            x_next, _, memory = self.inner.solve(problem.domain, grad, x, a, accuracy, state.memory)
            y_next = (1 - g) * y + g * x_next
            fun_next, step = objective.value(y_next), Descent(z, grad, y_next)
            if descent_holds(step, fun, fun_next, M):
                break
            M = 2 * M
        else:
            raise BadOracle(
                "F rises by more than its gradient allows, however short the step: the gradient does not match the function, "
                "or F is not smooth there (compare grad with differences of value)."
            )
        rho, noise = curvature_along(step, fun, fun_next)  # both 0 where the point did not move
        slope = a * grad if state.slope is None else state.slope + a * grad
        offset = state.offset + a * (fun - inner(grad, z))
        lower = (offset + inner(slope, problem.domain.lmo(slope))) / (A + a)
        return UniversalCGSState(
            k=state.k + 1,
            x=y_next,
            L=state.L,
            inner_x=x_next,
            memory=memory,
            M=M / 2 if 0 < rho + noise <= M / 4 else M,
            first_gap=state.first_gap,
            A=A + a,
            slope=slope,
            offset=offset,
            lower=max(state.lower, lower),
            descent=Descent(z, grad),
            descent_fun=fun,
            fun=fun_next,
        )

    def eta(self, state: UniversalCGSState) -> float:
        """Return the theorem's accuracy of the prox."""
        return state.first_gap / self.schedule.steps**2 if isinstance(self.schedule, theory) else 0.0


def universal_cgs(problem: Problem, setup: Setup, first: float | None = None) -> UniversalCGS:
    """Build the method from the options of the registry."""
    return UniversalCGS(setup.schedule, setup.inner, first)
