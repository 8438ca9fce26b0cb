r"""NCGS, option I (Algorithm 1 of Qu, Li and Xu).

    theta_md = (1 - alpha_k) theta_ag + alpha_k theta
    theta    = condg(grad F(theta_md), theta, lambda_k, eta_k)
    theta_ag = theta_md - beta_k (theta_{k-1} - theta_k) / lambda_k

alpha_k = 2/(k+1), beta_k = 1/(2L), lambda_k in [beta_k, (1 + alpha_k/4) beta_k]. Theorem 1, with eta_k = 1/N:
min_k |g(theta_{k-1}, grad F(theta_md_k), lambda_k)|^2 <= (12 L (F(theta_0) - F*) + 16 L) / N.

Of L the proof uses F(theta_k) <= F(theta_md) + <grad, theta_k - theta_md> + (L/2) |theta_k - theta_md|^2 in each step k, and
no more. ``adaptive`` takes the smallest L_k <= L tried for which this holds. Steps are much longer if the curvature of F along
the steps is below its maximum. In problem (5) it is, by a factor of the share of observed entries. Where a step changes F by no
more than the noise of its values, the curvature along the step is computed from gradients.

``polish`` is for steps between which F is decreased by other means (solvers/polish.py). A step far from the tolerance then does
without the upper bound of its gap. In its place it must satisfy what descent needs of the gap, <grad, d> <= -(1 - c)
|d|^2/lambda_k with d = theta_k - theta, of which only two inner products are computed. The gap is bounded at steps with growing
distance, and in a step with 1/(2L) once the length of a step says that the tolerance may be reached.

``momentum`` (adaptive, and an inner solver that projects) is for runs of many steps. From step MOMENTUM_FROM on the gradient is
taken at theta_md = project(theta + w (theta - theta_{k-1})), with w = n/(n+3) in the n-th step since the last restart. If
F(theta_k) would be above F(theta), the step is repeated from theta, and n starts at 0 again: F decreases in every step,
up to the relative error of 1e-12 that is assumed of its values.

``step_scale`` multiplies beta_k, for experiments: above 1 Theorem 1 does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from condgrad.certificate import Certificate
from condgrad.inner import Exact, with_gap
from condgrad.points import Structured, inner, norm2
from condgrad.protocols import Inner, Point, Problem, Prox
from condgrad.solvers.evaluation import (
    Evaluation,
    cached,
    grad_at,
    same_point,
    value_and_grad_at,
    value_at,
)
from condgrad.solvers.polish import polishes
from condgrad.solvers.schedules import Schedule, Setup, practical
from condgrad.solvers.smoothness import curvature_along, curvature_of_gradients, gradient_noise, smoothness
from condgrad.solvers.states import Descent, State
from condgrad.storage.stored import stored


@stored
@dataclass(frozen=True, kw_only=True)
class NCGSState(State):
    """State of :class:`NCGS`."""

    theta_ag: Point
    memory: Any
    local: float
    """Initial L_k of the next step."""
    demand: float = 1.0
    """Once the squared mapping with step size 1/(2 L_k) is below eps / demand, a step with 1/(2L) follows, which certifies it."""
    due: bool = False
    """Whether the next step is the certifying one."""
    next_proof: int = 0
    """With ``polish``: the first step that bounds its gap in any case."""
    previous: Point | None = None
    """With ``momentum``: the point before x; None: momentum has not begun."""
    since_restart: int = 0
    """With ``momentum``: number of steps since its last restart."""
    on_face: bool = False
    """Whether x is the point of a face phase that followed the step (solvers/face.py)."""
    factored: bool = False
    """Whether x is the point of a factored phase that followed the step (solvers/polish.py)."""

    @property
    def phase(self) -> str:
        """The phase in the trace: "face" or "factored" if such a phase followed the step, "momentum" once momentum has begun."""
        if self.on_face:
            return "face"
        if self.factored:
            return "factored"
        return "main" if self.previous is None else "momentum"


@dataclass(frozen=True)
class NCGS:
    """NCGS, option I. It reports theta_k, which is always in the set.

    ``stretch`` in [0, 1] sets lambda_k in the interval of the proof: lambda_k = (1 + stretch alpha_k/4) beta_k. At 0, the
    theorem's choice, theta_ag = theta_md = theta for every k: projected gradient with an inexact prox. Above 0 the steps have no
    certificates: the gradient is evaluated at theta_md, which may lie outside the set.

    With ``certify``, one more linear oracle call measures the gap of a prox point that the inner solver has not measured.

    With ``polish`` (adaptive, and an inner solver that has ``estimate``) the gap is bounded when it is due, not in every step.

    With ``momentum`` (adaptive, on a set that projects) steps extrapolate from step MOMENTUM_FROM on.
    """

    schedule: Schedule
    inner: Inner
    stretch: float = 0.0
    adaptive: bool = False
    certify: bool = True
    step_scale: float = 1.0
    polish: bool = False
    momentum: bool = False

    def __post_init__(self) -> None:
        check_step_scale(self.step_scale)
        if self.step_scale != 1 and (self.stretch > 0 or self.adaptive):
            raise ValueError("step_scale is for the fixed step: leave stretch and adaptive out, or step_scale.")
        if not 0 <= self.stretch <= 1:
            raise ValueError(
                f"stretch is {self.stretch}, but the proof covers 0 to 1 (lambda_k from beta_k to (1 + alpha_k/4) beta_k)."
            )
        if self.stretch > 0 and self.adaptive:
            raise ValueError("stretch and adaptive exclude each other: give one of them.")

    def init(self, problem: Problem, x0: Point) -> NCGSState:
        """Return the initial state at x0."""
        _, fun, grad = (value_at if self.adaptive else self.ahead)(problem.objective, x0)
        L, memory = smoothness(problem, x0, grad), self.inner.init(problem.domain, x0)
        first = FIRST_PROOF if self.polish else 0
        return NCGSState(
            x=x0, theta_ag=x0, L=L, memory=memory, local=FIRST_L_SHARE * L, fun=fun, grad=grad, next_proof=first
        )

    def ahead(self, objective: Any, x: Point) -> Evaluation:
        """Return F(x) and the gradient if one call computes both and the next step uses them (theta_md = theta)."""
        return value_and_grad_at(objective, x) if self.stretch == 0 else Evaluation(x)

    def step(self, problem: Problem, state: NCGSState) -> NCGSState:
        """Return the state after one step."""
        return self.adaptive_step(problem, state) if self.adaptive else self.fixed_step(problem, state)

    def fixed_step(self, problem: Problem, state: NCGSState) -> NCGSState:
        """Return the state after a step with beta_k = step_scale/(2L)."""
        k, L, theta = state.k + 1, state.L, state.x
        alpha, beta = 2 / (k + 1), 1 / (2 * L)
        certified, beta = beta, self.step_scale * beta
        lam = (1 + self.stretch * alpha / 4) * beta

        theta_md = theta if self.stretch == 0 else (1 - alpha) * state.theta_ag + alpha * theta
        objective = cached(problem.objective, state.known)
        _, fun_md, grad = grad_at(objective, theta_md)
        accuracy = self.schedule.accuracy(gamma=lam, share=1.0)
        prox = self.inner.solve(problem.domain, grad, theta, lam, accuracy, state.memory)
        if self.certify and self.stretch == 0:
            prox = with_gap(prox, problem.domain, grad, theta, lam)
        theta_k, gap, memory = prox
        theta_ag = theta_k if self.stretch == 0 else theta_md - (beta / lam) * (theta - theta_k)
        _, fun, grad_k = self.ahead(objective, theta_k)

        long = lam if self.step_scale > 1 else None
        return NCGSState(
            k=k,
            x=theta_k,
            L=L,
            theta_ag=theta_ag,
            memory=memory,
            local=state.local,
            certificate=Certificate(theta, theta_k, certified, gap, step=long) if self.stretch == 0 else None,
            descent=Descent(theta_md, grad, theta_k),
            fun=fun,
            grad=grad_k,
            descent_fun=fun_md,
        )

    def adaptive_step(self, problem: Problem, state: NCGSState) -> NCGSState:
        """Return the state after theta = condg(grad F(theta), theta, 1/(2 L_k), eta_k); L_k is raised until the inequality holds.

        The next L_k starts at the curvature along this step, but not below L_k / 2. With momentum, theta is theta_md.
        """
        L, memory = state.L, state.memory
        theta, objective = theta_md(problem.domain, state), cached(problem.objective, state.known)
        grad, before = grad_at(objective, theta).grad, objective.value(theta)
        mine = (
            objective is not problem.objective
        )  # the cache of a wrapper keeps refused points: the step may be repeated
        L_k = L if state.due else min(max(state.local, MIN_L_SHARE * L), L)
        proves = not self.polish or state.due or state.k + 1 >= state.next_proof
        refused: Any = theta
        gradients_decide = getattr(self.inner, "estimate", None) is None  # not measured yet for the spectral solver
        while True:
            beta = 1 / (2 * L_k)
            accuracy = self.schedule.accuracy(gamma=beta / state.demand, share=1.0)  # or no step would meet the demand
            prox = None if proves else self.estimate(problem.domain, grad, theta, beta, memory)
            if prox is None:
                prox = self.inner.solve(problem.domain, grad, theta, beta, accuracy, memory)
            theta_k, memory = prox.point, prox.memory
            descent, grad_k = Descent(theta, grad, theta_k), None
            if mine and not same_point(refused, theta) and not same_point(refused, theta_k):
                objective.forget(refused)
            _, fun, grad_k = value_at(objective, theta_k)
            rho, noise = curvature_along(descent, before, fun)
            if gradients_decide and L_k < L and noise > L_k > gradient_noise(objective, descent, grad):
                # values of F tell nothing about so short a step
                grad_k = grad_at(objective, theta_k).grad
                rho, noise = curvature_of_gradients(objective, descent, grad_k)
            if L_k >= L or rho <= L_k + noise:
                break
            L_k = min(max(2 * L_k, rho), L)
            if mine and isinstance(theta_k, Structured) and theta_k is not theta:
                objective.forget(
                    theta_k
                )  # frees its gradient, which may be as large as the data, before the next attempt
                del prox, descent, theta_k, grad_k
            else:
                refused = theta_k
        if theta is not state.x and fun > objective.value(state.x):
            return self.adaptive_step(problem, replace(state, since_restart=0))

        begun = self.momentum and state.k + 1 >= MOMENTUM_FROM
        if self.certify and not self.polish:
            prox = with_gap(prox, problem.domain, grad, theta, beta)
        proven = isfinite(prox.gap)
        certificate = Certificate(theta, theta_k, 1 / (2 * L), prox.gap, step=beta if L_k < L else None)
        eps = self.schedule.eps if isinstance(self.schedule, practical) else 0.0
        # with polish: an estimate, as the gap may be unknown, and a large gap calls for other vectors, not for a shorter step
        length = certificate.norm**2 if self.polish else (certificate.norm + certificate.error) ** 2
        return NCGSState(
            k=state.k + 1,
            x=theta_k,
            L=L,
            theta_ag=theta_k,
            memory=memory,
            local=state.local if state.due else max(min(max(rho, L_k / 2), L_k), MIN_L_SHARE * L),
            demand=max(state.demand, 2 * length / eps) if state.due and eps else state.demand,
            due=(L_k < L or not proven) and length * state.demand <= eps,
            next_proof=later_proof(state.k + 1) if proven and self.polish else state.next_proof,
            previous=state.x if begun else None,
            since_restart=state.since_restart + 1 if begun else 0,
            certificate=certificate,
            descent=descent,
            fun=fun,
            grad=grad_k,
            descent_fun=before,
        )

    def estimate(self, domain: Any, grad: Point, theta: Point, beta: float, memory: Any) -> Prox | None:
        """Return a prox point without its gap, or None if it does not decrease the prox model as descent needs it."""
        prox = self.inner.estimate(domain, grad, theta, beta, memory)  # type: ignore[attr-defined]
        d = prox.point - theta
        c = self.schedule.c if isinstance(self.schedule, practical) else 0.0
        return prox if inner(grad, d) <= -(1 - c) * norm2(d) / beta else None


MOMENTUM_FROM = 30
"""With ``momentum``: the step after which it begins. Shorter runs are as fast without it, and its steps project twice."""


def theta_md(domain: Any, state: NCGSState) -> Point:
    """Return the point at which an adaptive step takes its gradient: x, or with momentum a point of the set beyond it."""
    if state.previous is None or state.since_restart == 0 or state.due:
        return state.x
    weight = state.since_restart / (state.since_restart + 3)
    return domain.project(state.x + weight * (state.x - state.previous))


FIRST_PROOF = 8
"""With ``polish``: the first step that bounds its gap though its length does not say that the tolerance may be reached."""


def later_proof(k: int) -> int:
    """Return the number of the step with the next proof after that of step k, at growing distance."""
    return k + max(FIRST_PROOF, k // 4)


FIRST_L_SHARE, MIN_L_SHARE = 1e-3, 1e-4
"""Initial L_1 and minimum L_k as shares of L. With a small L_1 the first prox point has low rank."""


def ncgs(
    problem: Problem,
    setup: Setup,
    stretch: float = 0.0,
    adaptive: bool | None = None,
    step_scale: float | None = None,
    momentum: bool | None = None,
) -> NCGS:
    """Build the method from the options of the registry.

    By default it is adaptive if the schedule is practical and neither stretch nor step_scale is given, and has momentum if it is
    adaptive and the set projects. Adaptive steps depend on
    their certificates, so these are computed even if nothing else uses them: measuring a run does not change it.
    """
    if adaptive is None:
        adaptive = isinstance(setup.schedule, practical) and stretch == 0.0 and step_scale is None
    scale = 1.0 if step_scale is None else step_scale
    certify = setup.certify or adaptive
    practically = adaptive and isinstance(setup.schedule, practical)
    polish = polishes(problem, setup.polish, practically, setup.inner)
    possible = practically and isinstance(setup.inner, Exact)
    if momentum and not possible:
        raise TypeError(
            "momentum=True needs adaptive steps with the practical schedule and a set that projects (inner='exact'): leave it out"
        )
    momentum = possible if momentum is None else momentum
    return NCGS(
        setup.schedule,
        setup.inner,
        stretch,
        adaptive,
        certify=certify,
        step_scale=scale,
        polish=polish,
        momentum=momentum,
    )


def check_step_scale(step_scale: float) -> None:
    """Raise ValueError if the multiple of the theorem's step is below 1."""
    if not step_scale >= 1:
        raise ValueError(f"step_scale is {step_scale}, but it multiplies the theorem's step: give 1 or more.")
