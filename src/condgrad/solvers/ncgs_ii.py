r"""NCGS, option II (Algorithm 1 of Qu, Li and Xu).

    theta_md = (1 - alpha_k) theta_ag + alpha_k theta
    theta    = condg(grad F(theta_md), theta,    lambda_k, eta_k)
    theta_ag = condg(grad F(theta_md), theta_md, beta_k,   chi_k)

alpha_k = 2/(k+1), beta_k = 1/(2L), lambda_k = k beta_k/2. Theorem 1, with eta_k = chi_k = 1/N, as its proof has it:
min_k |g(theta_md_k, grad F(theta_md_k), beta_k)|^2
    <= 48 L (4 L |theta_0 - theta*|^2 / (N^2 (N+1)) + l (|theta*|^2 + 2 M^2)/N + 2/N).

The better option if the non-convexity l is small compared with L. With ``monotone``, F(theta_ag) never increases, up to the error
that is assumed of values: a step that would raise it is repeated from theta = theta_ag with alpha_1 = 1, so that the momentum is
lost, and k in alpha_k and lambda_k counts from there. Such a step is a step of option I from theta_ag, which decreases F by at
least |theta_ag_k - theta_ag_{k-1}|^2 L/2 if its prox is exact. ``step_scale`` multiplies beta_k, and so lambda_k, for
experiments: above 1 the theorem does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from condgrad.certificate import Certificate
from condgrad.inner import with_gap
from condgrad.protocols import Inner, Point, Problem, Prox
from condgrad.solvers.evaluation import cached, grad_at
from condgrad.solvers.ncgs import check_step_scale
from condgrad.solvers.schedules import Schedule, Setup
from condgrad.solvers.smoothness import VALUE_NOISE, smoothness
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class NCGSIIState(State):
    """State of :class:`NCGSII`; ``memory`` has the states of the inner solver for theta and for theta_ag."""

    theta: Point
    memory: tuple[Any, Any]
    since_restart: int = 0
    """With ``monotone``: number of steps since the last restart, or since the start."""


@dataclass(frozen=True)
class NCGSII:
    """NCGS, option II. It reports theta_ag; its certificates are for theta_md, where the gradient is evaluated.

    With ``certify``, one more linear oracle call measures the gap of a theta_ag that the inner solver has not measured.
    """

    schedule: Schedule
    inner: Inner
    certify: bool = True
    step_scale: float = 1.0
    monotone: bool = False

    def __post_init__(self) -> None:
        check_step_scale(self.step_scale)

    def init(self, problem: Problem, x0: Point) -> NCGSIIState:
        """Return the initial state at x0."""
        memory = self.inner.init(problem.domain, x0)
        return NCGSIIState(x=x0, theta=x0, L=smoothness(problem, x0), memory=(memory, memory))

    def step(self, problem: Problem, state: NCGSIIState) -> NCGSIIState:
        """Return the state after one step."""
        k, L = (state.since_restart if self.monotone else state.k) + 1, state.L
        alpha, gamma = 2 / (k + 1), 1 / (2 * L)
        beta = self.step_scale * gamma

        objective = cached(problem.objective, state.known)
        theta_md = (1 - alpha) * state.x + alpha * state.theta
        _, fun, grad = grad_at(objective, theta_md)
        theta, theta_ag, memory = two_steps(self, problem, k, grad, state.theta, theta_md, beta, state.memory)
        fun_ag = None
        if self.monotone:
            before, fun_ag = objective.value(state.x), objective.value(theta_ag.point)
            if state.since_restart and fun_ag > before + VALUE_NOISE * abs(before):
                again = replace(state, theta=state.x, since_restart=0, fun=before)
                return self.step(Problem(objective, problem.domain), again)
        if self.certify:
            theta_ag = with_gap(theta_ag, problem.domain, grad, theta_md, beta)

        long = beta if self.step_scale > 1 else None
        return NCGSIIState(
            k=state.k + 1,
            x=theta_ag.point,
            L=L,
            theta=theta.point,
            memory=memory,
            certificate=Certificate(theta_md, theta_ag.point, gamma, theta_ag.gap, step=long),
            descent=Descent(theta_md, grad, theta_ag.point),
            descent_fun=fun,
            fun=fun_ag,
            since_restart=state.since_restart + 1 if self.monotone else 0,
        )


def two_steps(
    method: Any, problem: Problem, k: int, grad: Point, theta: Point, theta_md: Point, beta: float, memory: Any
) -> tuple[Prox, Prox, tuple[Any, Any]]:
    """Return theta_k and theta_ag_k, the two prox steps of option II and of Algorithm 3, with lambda_k = k beta_k/2.

    The proof allows a relative inner error of 1/(2(k+1)) in the first and of less than 1/4 in the second.
    """
    lam = k * beta / 2
    eta, chi = method.schedule.accuracy(lam, share=1 / (k + 1)), method.schedule.accuracy(beta, share=1 / 4)
    theta_k = method.inner.solve(problem.domain, grad, theta, lam, eta, memory[0])
    theta_ag = method.inner.solve(problem.domain, grad, theta_md, beta, chi, memory[1])
    return theta_k, theta_ag, (theta_k.memory, theta_ag.memory)


def ncgs_ii(problem: Problem, setup: Setup, step_scale: float | None = None, monotone: bool | None = None) -> NCGSII:
    """Build the method from the options of the registry; by default it is not monotone."""
    scale = 1.0 if step_scale is None else step_scale
    return NCGSII(setup.schedule, setup.inner, setup.certify, scale, bool(monotone))
