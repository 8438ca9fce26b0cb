"""Certificates: how far a point is from being stationary, in a form that anyone can check.

With psi the exact prox point of x, g = (x - psi)/gamma is the gradient mapping at x. For *any* point p of the set, let
V = max_v <grad F(x) + (p - x)/gamma, p - v>. Lemma 1 of the paper: |(x - p)/gamma - g|^2 <= V/gamma. So p is a
witness, and one gradient and one linear oracle call are enough to verify it:

    | |g| - |x - p|/gamma | <= sqrt(V/gamma).

With p = x this is the Frank-Wolfe gap's own bound |g|^2 <= gap/gamma.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from math import inf, nan, sqrt

import numpy as np

from condgrad.checks import BadOracle
from condgrad.points import inner, norm2
from condgrad.points.arithmetic import same
from condgrad.points.aside import listening, worst
from condgrad.protocols import Point, Problem


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

    @property
    def stretch(self) -> float:
        """step / gamma, at least 1."""
        return 1.0 if self.step is None else self.step / self.gamma

    @property
    def error(self) -> float:
        return sqrt(max(self.gap, 0.0) / (self.stretch * self.gamma))

    @cached_property
    def norm(self) -> float:
        return sqrt(norm2(self.x - self.prox)) / (self.stretch * self.gamma)

    @property
    def upper(self) -> float:
        bound = (self.stretch * (self.norm + self.error)) ** 2
        return bound if bound == bound else inf

    @property
    def lower(self) -> float:
        return max(self.norm - self.error, 0.0) ** 2

    @property
    def wolfe_gap(self) -> float:
        """The Frank-Wolfe gap at x, where the witness is x itself."""
        return self.gap if self.prox is self.x else nan

    def verify(self, problem: Problem) -> Certificate:
        """The same witness, with everything computed anew from one gradient and one linear oracle call."""
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
    direction = grad + (1 / taken) * (prox - x)
    with listening() as heard:
        vertex = problem.domain.lmo(direction)
    gap = inner(direction, prox - vertex)
    length, reach = sqrt(norm2(direction)), sqrt(norm2(prox)) + sqrt(norm2(vertex))
    size = sqrt(norm2(grad)) + (sqrt(norm2(x)) + sqrt(norm2(prox))) / taken
    rounding = 4 * np.finfo(float).eps * (size * sqrt(norm2(prox - vertex)) + length * reach)
    if gap < -(1e-6 * length * (reach + 1.0) + rounding):
        raise BadOracle(
            f"The linear oracle's answer is worse than the point by {-gap:.3g}: lmo does not minimise <direction, .>, or the "
            "point lies outside of the set."
        )
    return Certificate(x, prox, gamma, (gap if gap > rounding else 0.0) + worst(heard), on=on, step=step)
