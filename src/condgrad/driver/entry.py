"""What the front door lets in: a problem whose parts fit, a start inside the set, a smoothness that means something."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import Any

from condgrad.checks import NonFinite, NotGiven, choice, finite_array, positive, same_shape
from condgrad.inner import Corrective, absolute
from condgrad.points import norm2
from condgrad.protocols import Domain, Point, Problem, SpectralSet, fits
from condgrad.solvers import Method

INSIDE = 1e-6
"""How far outside, relative to the set, still counts as inside: rounding, the user's included."""


def check_problem(problem: Problem) -> None:
    objective, domain = problem.objective, problem.domain
    for role, given in (("objective", objective), ("domain", domain)):
        if isinstance(given, type):
            raise TypeError(
                f"The {role} is the class {given.__name__}, an instance was expected: {given.__name__}(...)."
            )
    if not fits(domain, Domain):
        raise TypeError(
            f"The domain is {_named(domain)}, a set with lmo, shape, diameter was expected: see condgrad.domains, or user_set."
        )
    if not hasattr(objective, "smoothness"):
        raise TypeError(
            f"The objective is {_named(objective)}, an Objective was expected: for your own function use Function(value, grad)."
        )
    if objective.shape is not None and tuple(objective.shape) != tuple(domain.shape):
        raise ValueError(
            f"The objective's points have shape {tuple(objective.shape)}, the set's have shape {tuple(domain.shape)}: "
            "give both the same."
        )


def _named(thing: Any) -> str:
    return "a plain function" if callable(thing) and not isinstance(thing, type) else f"of type {type(thing).__name__}"


def check_start(problem: Problem, x0: Point | None) -> Point:
    domain = problem.domain
    if x0 is None:
        low_rank = getattr(problem.objective, "low_rank", False) and fits(domain, SpectralSet)
        return domain.low_rank_start() if low_rank else domain.start()
    if not hasattr(x0, "inner"):  # a structured point brings its own
        x0 = finite_array(x0, "x0")
    elif not isfinite(norm2(x0)):
        raise NonFinite("x0 holds NaN or Inf, or what is too large to square: remove or replace it.")
    same_shape(tuple(x0.shape), tuple(domain.shape), "x0")
    try:
        inside = domain.contains(x0, INSIDE)
    except NotGiven:
        inside = not proven_outside(domain, x0)
    if not inside:
        raise ValueError("x0 lies outside the set: give a point of it, or leave x0 out to start at domain.start().")
    return x0


def proven_outside(domain: Any, x: Point, calls: int = 1000) -> bool:
    """Of a set that only has a linear oracle: is x at a distance from it that its nearest point's certificate proves?"""
    vertex = domain.lmo(-1.0 * x)
    solver = Corrective(max_calls=calls)
    nearest, gap, _ = solver.solve(domain, vertex - x, vertex, 1.0, absolute(1e-16), solver.init(domain, vertex))
    return sqrt(norm2(nearest - x)) - sqrt(gap) > INSIDE * max(1.0, sqrt(norm2(vertex)))


class _WithSmoothness:
    """The objective, with the smoothness that the user gave in place of its own."""

    def __init__(self, objective: Any, smoothness: float | None, **of_terms: float):
        self._objective = objective
        self.smoothness = smoothness
        vars(self).update(of_terms)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)


def with_smoothness(objective: Any, smoothness: float | None, **of_terms: float) -> Any:
    """The objective with this smoothness (and the constants of its terms), under its own class's name, which messages show."""
    return type(type(objective).__name__, (_WithSmoothness,), {})(objective, smoothness, **of_terms)


def unwrapped(objective: Any) -> Any:
    """The objective that the user gave."""
    while isinstance(objective, _WithSmoothness):
        objective = objective._objective
    return objective


def diameter(domain: Any) -> float | None:
    """The set's diameter, None where a user's set does not say."""
    try:
        return domain.diameter
    except NotGiven:
        return None


def not_vacuous(objective: Any, domain: Any, entry: Method, tol: float) -> Any:
    """Where L is so small that every point of the set is within the tolerance, have a larger one estimated.

    The mapping is |x - psi|/gamma with gamma = 1/(2L), so at most 2 L D. Any larger L is a smoothness too.
    """
    L, D = objective.smoothness, diameter(domain)
    if not L or not D:
        return objective
    largest = 2 * L * D
    if largest > sqrt(tol):
        return objective
    if not entry.deterministic:
        raise ValueError(
            f"With L = {L:.3g} and a set of diameter {D:.3g} every point has a squared mapping of at most {largest**2:.3g}, "
            f"below tol = {tol:.3g}: give a smaller tol, or a larger smoothness=."
        )
    return with_smoothness(objective, None)


def given_smoothness(smoothness: float | str) -> float | None:
    if isinstance(smoothness, str):
        choice(smoothness, ("estimate",), "smoothness")
        return None
    return positive(smoothness, "smoothness")
