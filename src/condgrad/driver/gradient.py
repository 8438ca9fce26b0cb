"""Does a gradient match its function? By differences of values, inside the set."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from condgrad.checks import NonFinite, whole
from condgrad.driver.entry import check_problem, check_start
from condgrad.points import inner, norm2
from condgrad.protocols import FiniteSum, Objective, Point, Problem, fits

RTOL = 1e-4
"""The relative error that is granted to a slope."""
LENGTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
"""Of the differences, relative to the way across the set: the best of them counts. Long ones are wrong by F's curvature, short
ones by rounding."""
ROUNDING = 1e-14
"""Of a value of F, relative to itself, and of the slope, relative to the gradient."""


class GradientCheck(NamedTuple):
    """The slope <grad F(x), d> against a difference of F's values along d, where the two agreed the least."""

    error: float
    """Relative; 0 where both are nothing but rounding."""
    slope: float
    difference: float
    where: str
    """What was compared."""

    @property
    def matches(self) -> bool:
        return self.error <= RTOL

    def __str__(self) -> str:
        if self.matches:
            return f"The gradient matches the function: the relative error is at most {self.error:.2g}."
        return (
            f"The gradient does not match the function: {self.where} makes a slope of {self.slope:.6g}, differences of values "
            f"make {self.difference:.6g} (relative error {self.error:.2g})."
        )


def check_gradient(
    objective: Any, domain: Any, x: Point | None = None, directions: int = 5, seed: int = 0
) -> GradientCheck:
    """Compare the gradient with differences of values between x (by default the set's start) and random vertices of the set.

    It asks for points of the set only, as F may be defined nowhere else. Of a finite sum, the mean of the terms'
    gradients is compared too.

    >>> import numpy as np, condgrad as cg
    >>> wrong = cg.Function(lambda x: float(x @ x), lambda x: x, (3,))
    >>> print(cg.check_gradient(wrong, cg.L2Ball(3)))
    The gradient does not match the function: ... (relative error 0.5).
    """
    whole(directions, "The number of directions")
    whole(seed, "The seed", least=0)
    problem = Problem(objective, domain)
    check_problem(problem)
    if not fits(objective, Objective):
        raise TypeError(
            f"A gradient is compared with values, {type(objective).__name__} has none: leave the check out."
        )
    x, rng = check_start(problem, x), np.random.default_rng((seed, 0, 5))
    return max(
        (compared(objective, x, domain.lmo(rng.standard_normal(domain.shape)), i) for i in range(1, directions + 1)),
        key=lambda check: check.error,
    )


def compared(objective: Any, x: Point, vertex: Point, i: int) -> GradientCheck:
    """Around the middle between x and a vertex, along the way from one to the other."""
    middle, d = 0.5 * x + 0.5 * vertex, 0.5 * (vertex - x)
    gradients = {"grad": objective.grad(middle)}
    if fits(objective, FiniteSum):
        gradients["the mean of the terms' gradients"] = objective.grad_terms(middle, np.arange(objective.n_terms))
    slopes = {name: inner(grad, d) for name, grad in gradients.items()}
    rounding = ROUNDING * max(sqrt(norm2(grad)) for grad in gradients.values()) * sqrt(norm2(d))
    seen: dict[str, list[GradientCheck]] = {name: [] for name in gradients}
    for h in LENGTHS:
        ahead, behind = (float(objective.value(middle + side * d)) for side in (h, -h))
        difference = (ahead - behind) / (2 * h)
        if not np.isfinite(difference):
            raise NonFinite(
                f"The value of {type(objective).__name__} is {ahead} and {behind} at two points of the set."
            )
        noise = rounding + ROUNDING * (abs(ahead) + abs(behind)) / h
        for name, slope in slopes.items():
            size = max(abs(slope), abs(difference))
            if noise < RTOL / 10 * size:  # else this length can't tell
                where = f"along random direction {i} {name}"
                seen[name].append(GradientCheck(abs(slope - difference) / size, slope, difference, where))
    nothing = GradientCheck(0.0, 0.0, 0.0, "")
    return max((min(checks, default=nothing) for checks in seen.values()), key=lambda check: check.error)
