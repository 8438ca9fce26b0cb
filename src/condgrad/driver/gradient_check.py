"""Does a gradient match its function? By differences of values, inside the set."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from condgrad.checks import NonFinite, whole
from condgrad.driver.resolve import check_problem, check_start, checked_answers
from condgrad.points import inner, norm2
from condgrad.protocols import FiniteSum, Objective, Point, Problem, fits

LENGTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
"""Of the differences, relative to the way across the set: the best of them counts. Long ones are wrong by F's curvature, short
ones by rounding."""
SINGLE_LENGTHS = (1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
"""The same for values with the digits of float32, as JAX and PyTorch have them by default."""
SINGLE_NOISE = 1e-10
"""Values that scatter by more than this, relative to themselves, were not computed in float64."""
SCATTERED = 4
"""The noise of F's values, in multiples of the scatter that a few of them show."""


class Precision(NamedTuple):
    """What differences of values can tell."""

    rtol: float
    """The relative error that is granted to a slope."""
    rounding: float
    """Of a value of F, relative to itself, and of the slope, relative to the gradient."""
    clear: float
    """An estimate can tell where its doubt is at most this share of the error that is granted."""


DOUBLE = Precision(rtol=1e-4, rounding=1e-14, clear=1 / 10)
SINGLE = Precision(rtol=5e-3, rounding=5e-7, clear=1 / 4)
"""An error of 1 % is found."""


class GradientCheck(NamedTuple):
    """Comparison of the slope <grad F(x), d> with a difference of F's values along d, for the d where they agree the least."""

    error: float
    """Relative error of the slope; 0 if slope and difference are both rounding."""
    slope: float
    """<grad F(x), d>."""
    difference: float
    """Difference quotient of F's values along d."""
    where: str
    """What was compared."""
    rtol: float = DOUBLE.rtol
    """The relative error that is granted: 1e-4, and 5e-3 where F's values have the digits of float32."""
    sure: bool = True
    """False where no difference was sure enough to tell: the error is then only what noise and curvature do not explain."""

    @property
    def matches(self) -> bool:
        """Whether the relative error is at most ``rtol``."""
        return self.error <= self.rtol

    def __str__(self) -> str:
        if self.matches and not self.sure:
            return (
                "The gradient is not contradicted by the function, but F's values have too few digits to confirm it: they "
                "change too little across the set."
            )
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
    gradients is compared too. The precision of the values is seen from their digits, and from their scatter over short
    distances: where they are computed in float32, distances are longer and an error of 0.5 % is granted in place of 0.01 %.

    Parameters
    ----------
    objective : Objective
        F, with ``value`` and ``grad``.
    domain : Domain
        The set.
    x : Point, default None
        Point from which differences are taken; None: ``domain.start()``.
    directions : int, default 5
        Number of random vertices.
    seed : int, default 0
        Seed of the random vertices.

    Returns
    -------
    GradientCheck
        Of the direction along which the two agreed the least; ``matches`` says whether that is enough.

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
            f"A gradient is compared with values, {type(objective).__name__} has none: leave the check out."
        )
    x, rng = check_start(problem, x), np.random.default_rng((seed, 0, 5))
    objective = checked_answers(objective)
    return max(
        (compared(objective, x, domain.lmo(rng.standard_normal(domain.shape)), i) for i in range(1, directions + 1)),
        key=lambda check: (check.error / check.rtol, check.sure),
    )


def compared(objective: Any, x: Point, vertex: Point, i: int) -> GradientCheck:
    """Around the middle between x and a vertex, along the way from one to the other."""
    middle, d = 0.5 * x + 0.5 * vertex, 0.5 * (vertex - x)
    gradients = {"grad": objective.grad(middle)}
    if fits(objective, FiniteSum):
        gradients["the mean of the terms' gradients"] = objective.grad_terms(middle, np.arange(objective.n_terms))
    found = [difference(objective, middle, d, h) for h in LENGTHS]
    scatter = max(short.h * abs(long.slope - short.slope) for long, short in pairwise(found[-3:]))
    noisy = scatter > SINGLE_NOISE * (found[0].size + abs(found[0].slope))
    single = noisy or all(has_digits_of_float32(D.values) for D in found)
    if single:
        found = [difference(objective, middle, d, h) for h in SINGLE_LENGTHS]
    precision = SINGLE if single else DOUBLE
    estimates = estimates_from(found, precision.rounding, scatter)
    checks = []
    for name, grad in gradients.items():
        rounding = (SINGLE if single or has_digits_of_float32(grad) else DOUBLE).rounding
        rounding *= sqrt(norm2(grad)) * sqrt(norm2(d))
        check = agreement(inner(grad, d), rounding, estimates, precision)
        checks.append(check._replace(where=f"along random direction {i} {name}"))
    return max(checks, key=lambda check: (check.error, check.sure))


class Difference(NamedTuple):
    """Of F(x + h d) and F(x - h d): the two values, and (F(x + h d) - F(x - h d)) / (2 h)."""

    h: float
    slope: float
    values: np.ndarray

    @property
    def size(self) -> float:
        return float(np.abs(self.values).sum())


def difference(objective: Any, x: Point, d: Point, h: float) -> Difference:
    ahead, behind = (float(objective.value(x + side * d)) for side in (h, -h))
    slope = (ahead - behind) / (2 * h)
    if not np.isfinite(slope):
        raise NonFinite(f"The value of {type(objective).__name__} is {ahead} and {behind} at two points of the set.")
    return Difference(h, slope, np.array([ahead, behind]))


def has_digits_of_float32(answer: Any) -> bool:
    """Whether all numbers of an array are float32 numbers: in float64 they would be so by chance once in 2^29 times each."""
    if not isinstance(answer, np.ndarray):
        return False
    with np.errstate(over="ignore"):
        return bool(np.all(answer == answer.astype(np.float32)))


class Estimate(NamedTuple):
    """An estimate of the slope from values of F."""

    slope: float
    doubt: float
    """By how much it may be wrong: by the noise of F's values, and by F's third derivative, as two lengths tell."""


def estimates_from(found: list[Difference], rounding: float, scatter: float) -> list[Estimate]:
    """The differences, and what pairs of them extrapolate to: both are wrong by c h^2, so that c can be eliminated.

    An estimate is in doubt by the noise of the values that it is made of, and by as much as shorter differences deny it.
    """
    noise = [max(rounding * D.size, SCATTERED * scatter) / D.h for D in found]

    def denied(slope: float, at: int) -> float:
        return max([0.0, *(abs(slope - D.slope) - n for D, n in zip(found[at:], noise[at:], strict=True))])

    estimates = [
        Estimate(D.slope, n + denied(D.slope, i + 1)) for i, (D, n) in enumerate(zip(found, noise, strict=True))
    ]
    for i, (D, shorter) in enumerate(pairwise(found), start=1):
        ratio2 = (D.h / shorter.h) ** 2
        slope = (ratio2 * shorter.slope - D.slope) / (ratio2 - 1)
        estimates.append(Estimate(slope, (ratio2 * noise[i] + noise[i - 1]) / (ratio2 - 1) + denied(slope, i)))
    return estimates


def agreement(slope: float, rounding: float, estimates: list[Estimate], precision: Precision) -> GradientCheck:
    """The slope against the estimate with which it agrees best, of those that are sure enough to tell.

    Where there is none: against the surest, and only by what its doubt does not explain.
    """
    told = []
    for estimate in estimates:
        size = max(abs(slope), abs(estimate.slope))
        if rounding + estimate.doubt < precision.clear * precision.rtol * size:
            told.append(GradientCheck(abs(slope - estimate.slope) / size, slope, estimate.slope, "", precision.rtol))
    if told:
        return min(told)
    surest = min(estimates, key=lambda estimate: estimate.doubt)
    size = max(abs(slope), abs(surest.slope)) or 1.0
    error = max(abs(slope - surest.slope) - SCATTERED * (rounding + surest.doubt), 0.0) / size
    return GradientCheck(error, slope, surest.slope, "", precision.rtol, sure=False)
