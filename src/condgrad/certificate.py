"""Certificates: how far a point is from being stationary, in a form that anyone can check.

With psi the exact prox point of x, g = (x - psi)/gamma is the gradient mapping at x. For *any* point p of the set, let
V = max_v <grad F(x) + (p - x)/gamma, p - v>. Lemma 1 of the paper: |(x - p)/gamma - g|^2 <= V/gamma. So p is a
witness, and one gradient and one linear oracle call are enough to verify it:

    | |g| - |x - p|/gamma | <= sqrt(V/gamma).

With p = x this is the Frank-Wolfe gap's own bound |g|^2 <= gap/gamma.

Both V and the mapping are known up to rounding only, which is added: see points/rounding.py for what it can do.
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
    """|gradient mapping at x|^2 lies in [lower, upper], for the step size gamma."""

    x: Point
    prox: Point
    gamma: float
    gap: float
    on: str = "F"
    """Whose gradient it speaks of: F's, or that of a validation batch."""
    step: float | None = None
    """The step size of the prox point, where it is larger than gamma. The mapping's norm falls as the step size grows, and
    times the step size it rises: so the one bounds the other from both sides."""
    noise: float = 0.0
    """The part of ``gap`` that stands for rounding, where that is known."""
    rounding: float = 0.0
    """What rounding can do to the mapping's norm beside the gap."""

    @property
    def stretch(self) -> float:
        """step / gamma, at least 1."""
        return 1.0 if self.step is None else self.step / self.gamma

    @property
    def error(self) -> float:
        """How far |x - prox|/step can be from the norm of the mapping with the step size of the prox point."""
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
        """The upper bound that rounding alone would leave, if prox were x and the computed gap 0."""
        return (self.stretch * (sqrt(self.noise / (self.stretch * self.gamma)) + self.rounding)) ** 2

    def exhausted(self, eps: float) -> bool:
        """Is eps out of reach here for float64? Rounding alone exceeds it, and what was measured is no larger than rounding."""
        close = self.stretch * self.norm <= max(sqrt(eps), self.stretch * self.rounding)
        return self.floor > eps and close and self.gap <= 3 * self.noise

    @property
    def wolfe_gap(self) -> float:
        """The Frank-Wolfe gap at x, where the witness is x itself."""
        return self.gap if self.prox is self.x else nan

    def verify(self, problem: Problem) -> Certificate:
        """The same witness, with everything computed again, from one gradient and one linear oracle call."""
        return witness(problem, self.x, self.prox, self.gamma, self.on, self.step)

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal, points entry by entry: that of dataclasses fails on arrays."""
        if not isinstance(other, Certificate):
            return NotImplemented
        return all(same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))


def witness(
    problem: Problem, x: Point, prox: Point, gamma: float, on: str = "F", step: float | None = None
) -> Certificate:
    """The certificate that the point ``prox`` of the set gives for x."""
    grad, taken = problem.objective.grad(x), step or gamma
    direction = grad if prox is x else grad + (1 / taken) * difference(prox, x)
    gap, noise = linear_gap(problem.domain, direction, prox)
    error = mapping_rounding(
        grad, x, prox, min(gamma, taken), precision(problem.objective, grad), grad_scale(problem.objective, x)
    )
    return Certificate(x, prox, gamma, gap, on=on, step=step, noise=noise, rounding=error)


def linear_gap(domain: Any, direction: Point, point: Point) -> tuple[float, float]:
    """max_v <direction, point - v> over the set, rounded up by one linear oracle call; and how much of it stands for rounding.

    A gap below 0 by more than rounding shows that the point lies outside of the set, or that the oracle is not exact, by as much
    at the least: so it is added like an error.
    """
    with receiving() as reports:
        vertex = domain.lmo(direction)
    if isinstance(point, SparseArray):
        vertex = sparse_form(vertex)  # so that no difference of the size of a dense point is formed
    gap, rounding = pairwise_inner(direction, point - vertex), gap_rounding(direction, point, vertex)
    length, reach = sqrt(norm2(direction)), sqrt(norm2(point)) + sqrt(norm2(vertex))
    if gap < -(1e-6 * length * (reach + 1.0) + rounding + 2 * worst(reports)):
        raise BadOracle(
            f"The linear oracle's answer is worse than the point by {-gap:.3g}: lmo does not minimise <direction, .>, or the "
            "point lies outside of the set."
        )
    return max(gap, -gap - rounding, 0.0) + rounding + worst(reports), rounding
