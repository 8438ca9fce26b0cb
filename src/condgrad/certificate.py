"""Certificates: how far a point is from being stationary, in a form that anyone can check.

Let psi be the exact prox point of x. The gradient mapping at x is g = (x - psi)/gamma. For *any* point p of the set, let
V = max_v <grad F(x) + (p - x)/gamma, p - v>. Lemma 1 of Qu, Li and Xu (arXiv 1708.04783) says: |(x - p)/gamma - g|^2 <= V/gamma.
So p is a witness for a bound on |g|, and one gradient and one linear oracle call are enough to verify the bound:

    | |g| - |x - p|/gamma | <= sqrt(V/gamma).

With p = x, V is the Frank-Wolfe gap, and this is the bound |g|^2 <= gap/gamma.

V and the mapping are computed with rounding errors. Bounds on these errors (see points/rounding.py) are added to the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from math import inf, nan, sqrt
from typing import Any

from condgrad.checks import BadOracle, not_negative, positive
from condgrad.points import SparseArray, distance2, norm2
from condgrad.points.base import same
from condgrad.points.rounding import difference, gap_rounding, grad_scale, mapping_rounding, pairwise_inner, precision
from condgrad.points.sparse_array import sparse_form
from condgrad.protocols import Point, Problem
from condgrad.runtime.signals import receiving, worst
from condgrad.storage.stored import stored


def _validate(certificate: Certificate) -> None:
    positive(certificate.gamma, "gamma")
    positive(certificate.gamma if certificate.step is None else certificate.step, "step")
    for name in ("noise", "rounding"):
        not_negative(getattr(certificate, name), name)
    not_negative(vars(certificate).get("norm", 0.0), "norm")


@stored(validate=_validate)
@dataclass(frozen=True)
class Certificate:
    """Proof that the squared gradient mapping at x, with step size gamma, lies in [lower, upper]. The witness is ``prox``."""

    x: Point
    prox: Point
    gamma: float
    gap: float
    """Upper bound on the gap of ``prox`` in the prox subproblem; or the squared norm of that gap's direction times the step size,
    if it is smaller: the norm of the mapping differs from its measured value by at most the norm of the direction."""
    on: str = "F"
    """Name of the function whose gradient mapping is bounded: F, or a validation batch."""
    step: float | None = None
    """The step size of the prox point if it is larger than gamma. As the step size grows, the norm of the mapping decreases, and
    the norm times the step size increases. So the norm for ``step`` bounds the norm for gamma from both sides."""
    noise: float = 0.0
    """The part of ``gap`` that allows for rounding errors; 0 if it is not known."""
    rounding: float = 0.0
    """Bound on the rounding error of the norm of the mapping, in addition to ``noise``."""

    @property
    def stretch(self) -> float:
        """step / gamma, at least 1."""
        return 1.0 if self.step is None else self.step / self.gamma

    @property
    def error(self) -> float:
        """Upper bound on the difference of |x - prox|/step and the norm of the mapping with the step size of the prox point."""
        return sqrt(max(self.gap, 0.0) / (self.step or self.gamma)) + self.rounding

    @cached_property
    def norm(self) -> float:
        return sqrt(distance2(self.x, self.prox)) / (self.step or self.gamma)

    @property
    def upper(self) -> float:
        bound = (self.stretch * (self.norm + self.error)) ** 2
        return bound if bound == bound else inf

    @property
    def lower(self) -> float:
        return max(self.norm - self.error, 0.0) ** 2

    @property
    def floor(self) -> float:
        """The upper bound that would remain because of rounding alone if prox were x and the computed gap were 0."""
        return (self.stretch * (sqrt(self.noise / (self.stretch * self.gamma)) + self.rounding)) ** 2

    def exhausted(self, eps: float) -> bool:
        """Whether float64 is too coarse to decide whether the squared mapping is at most eps.

        This is so if rounding alone exceeds eps, and the measured numbers are no larger than rounding errors.
        """
        close = self.stretch * self.norm <= max(sqrt(eps), self.stretch * self.rounding)
        return self.floor > eps and close and self.gap <= 3 * self.noise

    @property
    def wolfe_gap(self) -> float:
        """The Frank-Wolfe gap at x if the witness is x itself, else NaN."""
        return self.gap if self.prox is self.x else nan

    def verify(self, problem: Problem) -> Certificate:
        """The certificate with the same witness, computed again from one gradient and one linear oracle call."""
        return witness(problem, self.x, self.prox, self.gamma, self.on, self.step)

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal. Points are compared entry by entry; the ``__eq__`` of a dataclass would fail on
        arrays."""
        if not isinstance(other, Certificate):
            return NotImplemented
        return all(same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))


def witness(
    problem: Problem, x: Point, prox: Point, gamma: float, on: str = "F", step: float | None = None
) -> Certificate:
    """The certificate for x with the witness ``prox``, a point of the set. Takes one gradient and one linear oracle call."""
    grad, taken = problem.objective.grad(x), step or gamma
    direction = grad if prox is x else grad + (1 / taken) * difference(prox, x)
    gap, noise = linear_gap(problem.domain, direction, prox)
    if (
        prox is not x
    ):  # prox is the exact prox point for grad - direction, and the mapping is 1-Lipschitz in the gradient
        least = taken * norm2(direction)
        gap, noise = min(gap, least), min(noise, least)
    error = mapping_rounding(
        grad, x, prox, min(gamma, taken), precision(problem.objective, grad), grad_scale(problem.objective, x)
    )
    return Certificate(x, prox, gamma, gap, on=on, step=step, noise=noise, rounding=error)


def linear_gap(domain: Any, direction: Point, point: Point) -> tuple[float, float]:
    """An upper bound on max_v <direction, point - v> over the set, from one linear oracle call, and its part for rounding errors.

    The bound includes the rounding errors and the error that the oracle reports.

    If the computed gap is below 0 by more than rounding errors, then the point lies outside of the set, or the oracle is not
    exact. This error is at least -gap minus the rounding error, and replaces the negative gap.
    """
    with receiving() as reports:
        vertex = domain.lmo(direction)
    if isinstance(point, SparseArray):
        vertex = sparse_form(vertex)  # so that ``point - vertex`` is sparse too
    gap, rounding = pairwise_inner(direction, point - vertex), gap_rounding(direction, point, vertex)
    length, reach = sqrt(norm2(direction)), sqrt(norm2(point)) + sqrt(norm2(vertex))
    if gap < -(1e-6 * length * (reach + 1.0) + rounding + 2 * worst(reports)):
        raise BadOracle(
            f"The linear oracle's answer is worse than the point by {-gap:.3g}: lmo does not minimise <direction, .>, or the "
            "point lies outside of the set."
        )
    return max(gap, -gap - rounding, 0.0) + rounding + worst(reports), rounding
