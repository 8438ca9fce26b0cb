"""`check_gradient`: compares a user's gradient with difference quotients of the function values, at points of the set."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from condgrad.checks import NonFinite, whole
from condgrad.driver.resolve import check_problem, check_start, checked_answers
from condgrad.points import inner, norm2
from condgrad.protocols import FiniteSum, Objective, Point, Problem, fits

RELATIVE_LENGTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
"""Step lengths h of the difference quotients, relative to half the distance from x to the vertex. The curvature of F makes
quotients with a large h inaccurate, and rounding makes quotients with a small h inaccurate. The gradient is therefore compared
with the quotient that agrees best."""
RELATIVE_LENGTHS_SINGLE = (1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
"""Step lengths if the values of F are computed in float32, the default of JAX and PyTorch."""
MIN_SINGLE_NOISE = 1e-10
"""If the relative noise of the values of F is larger than this number, the check assumes that they were computed in float32."""
NOISE_FACTOR = 4
"""The noise of the values of F is assumed to be at most this factor times the scatter observed in a few of them."""


class Precision(NamedTuple):
    """Accuracy of a comparison of slopes."""

    rtol: float
    """Tolerated relative error of a slope."""
    rounding: float
    """Relative rounding error of a value of F. The rounding error of a slope <g, d> is this number times |g| |d|."""
    max_uncertainty: float
    """Maximum uncertainty of a conclusive estimate, as a share of the tolerated error."""


DOUBLE = Precision(rtol=1e-4, rounding=1e-14, max_uncertainty=1 / 10)
SINGLE = Precision(rtol=5e-3, rounding=5e-7, max_uncertainty=1 / 4)
"""``DOUBLE`` is used if the values of F were computed in float64, ``SINGLE`` if they were computed in float32. In float32, an
error of 1 % is detected."""


class GradientCheck(NamedTuple):
    """Result of a gradient check, for the direction d along which the gradient and the difference quotient agree least."""

    error: float
    """Relative difference between slope and difference quotient; 0 if both are as small as rounding errors."""
    slope: float
    """Slope <grad F(x), d>, computed from the gradient."""
    difference: float
    """Difference quotient along d, computed from values of F."""
    where: str
    """Text for messages. It names the random direction, and the gradient: ``grad``, or the mean of the terms' gradients."""
    rtol: float = DOUBLE.rtol
    """Tolerated relative error: 1e-4, and 5e-3 if the values of F were computed in float32."""
    sure: bool = True
    """False if no difference quotient is accurate enough to decide. ``error`` is then the part of the difference that noise and
    curvature can't explain."""

    @property
    def matches(self) -> bool:
        """Whether the relative error is at most ``rtol``."""
        return self.error <= self.rtol

    def __str__(self) -> str:
        if self.matches and not self.sure:
            return (
                "The function values do not contradict the gradient, but they change too little over the set, relative to their "
                "precision, to confirm it."
            )
        if self.matches:
            return f"The gradient matches the function: the relative error is at most {self.error:.2g}."
        return (
            f"The gradient does not match the function: {self.where} gives the slope {self.slope:.6g}, differences of values "
            f"give {self.difference:.6g} (relative error {self.error:.2g})."
        )


def check_gradient(
    objective: Any, domain: Any, x: Point | None = None, directions: int = 5, seed: int = 0
) -> GradientCheck:
    """Compare a gradient with difference quotients of function values, on segments from x to random vertices of the set.

    F is evaluated at points of the set only, since F may be undefined elsewhere. For a finite sum, the mean of the gradients of
    the terms is checked too.

    The tolerated relative error is 0.01 %. If the values of F are computed in float32, the differences are taken over longer
    distances, and the tolerated relative error is 0.5 %. The check assumes float32 if float32 represents all values exactly, or
    if the noise of the values is larger than the rounding errors of float64.

    Parameters
    ----------
    objective : Objective
        F, with ``value`` and ``grad``.
    domain : Domain
        The set.
    x : Point, default None
        Start of the segments. By default ``domain.start()``.
    directions : int, default 5
        Number of random vertices, at least 1.
    seed : int, default 0
        Seed of the random vertices.

    Returns
    -------
    GradientCheck
        Result for the direction along which gradient and difference quotient agree least. ``matches`` is True if the error is
        tolerated.

    Raises
    ------
    TypeError
        If the objective has no values.
    NonFinite
        If a value is NaN or infinite.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> wrong = cg.Function(lambda x: float(x @ x), lambda x: x, (3,))
    >>> print(cg.check_gradient(wrong, cg.L2Ball(3)))
    The gradient does not match the function: ... (relative error 0.5).
    """
    whole(directions, "The number of directions")
    whole(seed, "The seed", least=0)
    problem = check_problem(Problem(objective, domain))
    domain = problem.domain
    if not fits(objective, Objective):
        raise TypeError(
            f"A gradient is checked against values, but {type(objective).__name__} has none: leave the check out."
        )
    x, rng = check_start(problem, x), np.random.default_rng((seed, 0, 5))
    objective = checked_answers(objective)
    return max(
        (
            check_direction(objective, x, domain.lmo(rng.standard_normal(domain.shape)), i)
            for i in range(1, directions + 1)
        ),
        key=lambda check: (check.error / check.rtol, check.sure),
    )


def check_direction(objective: Any, x: Point, vertex: Point, i: int) -> GradientCheck:
    """Check the gradient at the midpoint of x and a vertex, in the direction from x to the vertex."""
    middle, d = 0.5 * x + 0.5 * vertex, 0.5 * (vertex - x)
    gradients = {"grad": objective.grad(middle)}
    if fits(objective, FiniteSum):
        gradients["the mean of the terms' gradients"] = objective.grad_terms(middle, np.arange(objective.n_terms))
    differences = [difference(objective, middle, d, h) for h in RELATIVE_LENGTHS]
    scatter = max(short.h * abs(long.slope - short.slope) for long, short in pairwise(differences[-3:]))
    noisy = scatter > MIN_SINGLE_NOISE * (differences[0].size + abs(differences[0].slope))
    single = noisy or all(is_float32_exact(D.values) for D in differences)
    if single:
        differences = [difference(objective, middle, d, h) for h in RELATIVE_LENGTHS_SINGLE]
    precision = SINGLE if single else DOUBLE
    estimates = estimates_from(differences, precision.rounding, scatter)
    checks = []
    for name, grad in gradients.items():
        rounding = (SINGLE if single or is_float32_exact(grad) else DOUBLE).rounding
        rounding *= sqrt(norm2(grad)) * sqrt(norm2(d))
        check = compare_slope(inner(grad, d), rounding, estimates, precision)
        checks.append(check._replace(where=f"along random direction {i} {name}"))
    return max(checks, key=lambda check: (check.error, check.sure))


class Difference(NamedTuple):
    """Central difference: the values F(x + h d) and F(x - h d), and the slope (F(x + h d) - F(x - h d)) / (2 h)."""

    h: float
    slope: float
    values: np.ndarray

    @property
    def size(self) -> float:
        """Sum of the absolute values of F."""
        return float(np.abs(self.values).sum())


def difference(objective: Any, x: Point, d: Point, h: float) -> Difference:
    """Compute the central difference of F at x along d with the step length h. Raises NonFinite if a value is not finite."""
    ahead, behind = (float(objective.value(x + side * d)) for side in (h, -h))
    slope = (ahead - behind) / (2 * h)
    if not np.isfinite(slope):
        raise NonFinite(f"The value of {type(objective).__name__} is {ahead} and {behind} at two points of the set.")
    return Difference(h, slope, np.array([ahead, behind]))


def is_float32_exact(answer: Any) -> bool:
    """Whether float32 represents all entries of an array exactly. For a random float64, the probability is 2^-29."""
    if not isinstance(answer, np.ndarray):
        return False
    with np.errstate(over="ignore"):
        return bool(np.all(answer == answer.astype(np.float32)))


class Estimate(NamedTuple):
    """Estimate of the slope from values of F."""

    slope: float
    uncertainty: float
    """Estimated error of the slope, from the noise of the values and from the difference to quotients with a smaller h."""


def estimates_from(differences: list[Difference], rounding: float, scatter: float) -> list[Estimate]:
    """Estimate the slope by each difference quotient, and by the Richardson extrapolation of each pair of neighbours.

    The error of the quotient s_h with step length h is about c h^2. The extrapolation eliminates this error. The uncertainty of
    an estimate s is noise(s) + max(0, max_h (|s - s_h| - noise(s_h))), where h runs over the smaller step lengths.
    """
    noise = [max(rounding * D.size, NOISE_FACTOR * scatter) / D.h for D in differences]

    def contradiction(slope: float, at: int) -> float:
        return max([0.0, *(abs(slope - D.slope) - n for D, n in zip(differences[at:], noise[at:], strict=True))])

    estimates = [
        Estimate(D.slope, n + contradiction(D.slope, i + 1))
        for i, (D, n) in enumerate(zip(differences, noise, strict=True))
    ]
    for i, (D, shorter) in enumerate(pairwise(differences), start=1):
        ratio2 = (D.h / shorter.h) ** 2
        slope = (ratio2 * shorter.slope - D.slope) / (ratio2 - 1)
        estimates.append(Estimate(slope, (ratio2 * noise[i] + noise[i - 1]) / (ratio2 - 1) + contradiction(slope, i)))
    return estimates


def compare_slope(slope: float, rounding: float, estimates: list[Estimate], precision: Precision) -> GradientCheck:
    """Compare a slope with the estimate that agrees best, among the estimates that are accurate enough to decide.

    If no estimate is accurate enough, compare the slope with the most accurate estimate. The error is then the part of the
    difference that the uncertainty can't explain.
    """
    conclusive = []
    for estimate in estimates:
        size = max(abs(slope), abs(estimate.slope))
        if rounding + estimate.uncertainty < precision.max_uncertainty * precision.rtol * size:
            conclusive.append(
                GradientCheck(abs(slope - estimate.slope) / size, slope, estimate.slope, "", precision.rtol)
            )
    if conclusive:
        return min(conclusive)
    most_certain = min(estimates, key=lambda estimate: estimate.uncertainty)
    size = max(abs(slope), abs(most_certain.slope)) or 1.0
    error = max(abs(slope - most_certain.slope) - NOISE_FACTOR * (rounding + most_certain.uncertainty), 0.0) / size
    return GradientCheck(error, slope, most_certain.slope, "", precision.rtol, sure=False)
