r"""NCGS, option I (Algorithm 1 of Qu, Li and Xu).

    theta_md = (1 - alpha_k) theta_ag + alpha_k theta
    theta    = condg(grad F(theta_md), theta, lambda_k, eta_k)
    theta_ag = theta_md - beta_k (theta_{k-1} - theta_k) / lambda_k

alpha_k = 2/(k+1), beta_k = 1/(2L), lambda_k in [beta_k, (1 + alpha_k/4) beta_k]. Theorem 1, with eta_k = 1/N:
min_k |g(theta_{k-1}, grad F(theta_md_k), lambda_k)|^2 <= (12 L (F(theta_0) - F*) + 16 L) / N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from condgrad.certificate import Certificate
from condgrad.protocols import Inner, Point, Problem
from condgrad.solvers.schedules import Schedule, Setup
from condgrad.solvers.smoothness import smoothness
from condgrad.solvers.states import Descent, State


@dataclass(frozen=True, kw_only=True)
class NCGSState(State):
    theta_ag: Point
    memory: Any


@dataclass(frozen=True)
class NCGS:
    """``stretch`` in [0, 1] places lambda_k in the proof's interval: lambda_k = (1 + stretch alpha_k/4) beta_k.

    At 0, the theorem's choice, theta_ag = theta_md = theta for every k: projected gradient with an inexact prox.
    Reports theta_k, which never leaves the set. Above 0 it certifies nothing on its way: the gradient is taken at theta_md,
    which may lie outside the set.
    """

    schedule: Schedule
    inner: Inner
    stretch: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.stretch <= 1:
            raise ValueError(
                f"stretch is {self.stretch}, but the proof covers 0 to 1 (lambda_k from beta_k to (1 + alpha_k/4) beta_k)."
            )

    def init(self, problem: Problem, x0: Point) -> NCGSState:
        return NCGSState(x=x0, theta_ag=x0, L=smoothness(problem, x0), memory=self.inner.init(problem.domain, x0))

    def step(self, problem: Problem, state: NCGSState) -> NCGSState:
        k, L, theta = state.k + 1, state.L, state.x
        alpha, beta = 2 / (k + 1), 1 / (2 * L)
        lam = (1 + self.stretch * alpha / 4) * beta

        theta_md = theta if self.stretch == 0 else (1 - alpha) * state.theta_ag + alpha * theta
        grad = problem.objective.grad(theta_md)
        accuracy = self.schedule.accuracy(gamma=lam, share=1.0)
        theta_k, gap, memory = self.inner.solve(problem.domain, grad, theta, lam, accuracy, state.memory)
        theta_ag = theta_k if self.stretch == 0 else theta_md - (beta / lam) * (theta - theta_k)

        return NCGSState(
            k=k,
            x=theta_k,
            L=L,
            theta_ag=theta_ag,
            memory=memory,
            certificate=Certificate(theta, theta_k, lam, gap) if self.stretch == 0 else None,
            descent=Descent(theta_md, grad, theta_k),
        )


def ncgs(problem: Problem, setup: Setup, stretch: float = 0.0) -> NCGS:
    return NCGS(setup.schedule, setup.inner, stretch)
