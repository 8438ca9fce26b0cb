"""Checks of a problem before a run: whether the objective fits the set, the start is in the set, and L is usable.

Optional members that a user's objective or set does not have are added.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite, sqrt
from typing import Any

import numpy as np

from condgrad.checks import (
    NonFinite,
    NotGiven,
    as_shape,
    finite_array,
    not_negative,
    pair,
    positive,
    real,
    real_array,
    same_shape,
    whole,
)
from condgrad.domains import user_set
from condgrad.inner import Corrective
from condgrad.points import Blocks, inner, norm2
from condgrad.points.rounding import precision_of
from condgrad.protocols import (
    ORACLES,
    Domain,
    Expectation,
    FiniteSum,
    Objective,
    Point,
    Problem,
    fits,
    has,
    members,
    missing,
)
from condgrad.solvers import Method

INSIDE = 1e-6
"""Maximum distance from the set, relative to the diameter, at which a point is still accepted as a point of the set. It allows
for rounding errors, also in the user's data."""
DIGITS = 1e-12
"""Distance, relative to the norm of a vertex, that is added to the distance INSIDE. It allows for rounding errors of points in a
small set far from 0, where the norm of a point is much larger than the diameter."""
FUNCTIONS: tuple[str, ...] = ("draw", "assemble", "mean_grad", "grad_scale", "remembered", "remember")
FUNCTIONS += ("start", "contains", "low_rank_start", "shrink", "factored")
"""Members of an objective or a set that are functions, but not oracles."""
NUMBERS: dict[str, Callable[[Any, str], Any]] = {
    "smoothness": not_negative,
    "term_smoothness": not_negative,
    "mean_square_smoothness": not_negative,
    "lower_smoothness": real,
    "lower_bound": real,
    "diameter": not_negative,
    "max_norm": not_negative,
    "precision": not_negative,
    "n_terms": whole,
}
"""Members of an objective or a set that are numbers, and the function that checks each."""
COARSE = 2.0
"""A user's set may answer in a coarse type such as float32. The maximum distance is then COARSE times the machine epsilon of the
coarsest type of its answers, if this is larger than INSIDE."""
ENTRY_CALLS = 10
"""Maximum number of linear oracle calls to prove that a start is outside of a set that has no ``contains``. The calls are not
counted. Two or three calls are enough for a start that is far outside. A start that is slightly outside may be accepted."""


def check_problem(problem: Problem) -> Problem:
    """Check a problem, and add its optional members (:func:`completed`). Raises TypeError or ValueError if it is not valid."""
    objective, domain = problem.objective, problem.domain
    for role, given in (("objective", objective), ("domain", domain)):
        if isinstance(given, type):
            raise TypeError(
                f"The {role} is the class {given.__name__}, an instance was expected: {given.__name__}(...)."
            )
    if lacking := missing(domain, Domain):
        raise TypeError(
            f"The domain is {_named(domain)}, which has no {' and no '.join(lacking)}: a set has at least "
            f"{' and '.join(members(Domain))}; see condgrad.domains, or user_set(lmo, shape)."
        )
    if lacking := missing(objective, Objective, Expectation):
        raise TypeError(
            f"The objective is {_named(objective)}, which has no {' and no '.join(lacking)}: an objective has at least "
            f"{' and '.join(members(Objective))}; for your own function use Function(value, grad)."
        )
    check_members(objective)
    check_members(domain)
    problem = completed(problem)
    objective, domain = problem.objective, problem.domain
    if objective.shape is not None and objective.shape != domain.shape:
        raise ValueError(
            f"The objective's points have shape {objective.shape}, the set's have shape {domain.shape}: give both the same."
        )
    return problem


def check_members(part: Any) -> None:
    """Raise an error if a member of a user's objective or set should be a function or a number, but is not."""
    owner = type(unwrapped(part))
    if owner.__module__.startswith("condgrad."):
        return
    for name in (*ORACLES, *FUNCTIONS):
        member = getattr(part, name, None)
        if member is not None and not callable(member):
            raise TypeError(
                f"{owner.__name__} has {name} = {member!r}, but a function was expected: define {name}(...)."
            )
    for name, check in NUMBERS.items():
        try:
            number = getattr(part, name, None)
        except NotGiven:
            continue
        if number is not None:
            check(number, f"The {name} of {owner.__name__}")


def _named(thing: Any) -> str:
    return "a plain function" if callable(thing) and not isinstance(thing, type) else f"of type {type(thing).__name__}"


def completed(problem: Problem) -> Problem:
    """Add the optional members (protocols.EXTRAS) that a user's objective or set does not have, with default values.

    An objective or a set that has all members is not changed.
    """
    return Problem(_completed_objective(problem.objective), _completed_set(problem.domain))


def _completed_objective(objective: Any) -> Any:
    added: dict[str, Any] = {} if has(objective, "smoothness") else {"smoothness": None}
    if fits(objective, FiniteSum):
        constants = ("term_smoothness", "mean_square_smoothness")
        added |= {name: None for name in constants if not has(objective, name)}
    shape = getattr(objective, "shape", None)
    size = None if shape is None else as_shape(shape, type(objective).__name__)
    if not has(objective, "shape") or size != shape:
        added["shape"] = size
    return _wrapped(objective, **added) if added else objective


def _completed_set(domain: Any) -> Any:
    name, size = type(domain).__name__, as_shape(domain.shape, type(domain).__name__)
    added: dict[str, Any] = {} if domain.shape == size else {"shape": size}
    if not has(domain, "start"):
        added["start"] = lambda: domain.lmo(np.ones(size))
    if not has(domain, "contains"):
        added["contains"] = user_set(domain.lmo, size, diameter(domain), getattr(domain, "project", None)).contains
    absent = {} if has(domain, "diameter") else {"diameter": property(_no_diameter)}
    if not added and not absent:
        return domain
    return type(name, (_Wrapped,), absent)(domain, **added)


def _no_diameter(wrapped: Any) -> float:
    raise NotGiven(
        f"The diameter of {type(wrapped).__name__} is needed, but the set does not state it: define the member diameter."
    )


def check_start(problem: Problem, x0: Point | None) -> Point:
    """The starting point: x0 after checks, or the default start of the set."""
    domain = problem.domain
    if x0 is None:
        low_rank = getattr(problem.objective, "low_rank", False) and has(domain, "low_rank_start")
        if low_rank:
            return domain.low_rank_start()
        x0 = domain.start()
        owner = type(domain).__name__
        check_point(x0, f"The start of {owner}, domain.start() or, without a start, lmo(ones),")
        same_shape(tuple(x0.shape), tuple(domain.shape), f"The start of {owner}")
        return x0
    if not hasattr(x0, "inner"):  # not a structured point
        x0 = finite_array(x0, "x0")
    elif not isfinite(norm2(x0)):
        raise NonFinite("x0 holds NaN or Inf, or entries that are too large to square: replace them.")
    same_shape(tuple(x0.shape), tuple(domain.shape), "x0")
    try:
        inside = domain.contains(x0, counts_as_inside(domain))
    except NotGiven:
        inside = not proven_outside(domain, x0)
    if not inside:
        raise ValueError("x0 lies outside the set: give a point of it, or leave x0 out to start at domain.start().")
    return uncached(x0)


def uncached(x0: Point) -> Point:
    """Copy of x0 with which a run starts. A run may change how a structured point is stored, but not the user's x0."""
    return x0.uncached() if hasattr(x0, "uncached") else x0


def check_point(answer: Any, what: str, shape: tuple[int, ...] | None = None) -> None:
    """Raise an error if an answer is neither an array of numbers nor a structured point, or does not have the ``shape``."""
    found = f"of type {type(answer).__name__}"
    if isinstance(answer, np.ndarray) and answer.dtype.kind not in "biufc":
        found = f"an array of {answer.dtype}"
    elif isinstance(answer, np.ndarray) or hasattr(answer, "inner"):
        if shape is not None:
            same_shape(tuple(answer.shape), tuple(shape), what)
        return
    raise TypeError(f"{what} is {found}, but an array was expected: return numpy.array(..., dtype=float).")


def counts_as_inside(domain: Any) -> float:
    """Maximum distance from this set, relative to the diameter, at which a point is accepted as a point of the set."""
    return max(INSIDE, COARSE * getattr(domain, "precision", 0.0))


def proven_outside(domain: Any, x: Point, calls: int = ENTRY_CALLS) -> bool:
    """Whether at most ``calls`` linear minimisations find a hyperplane that separates x from the set.

    Let p be the point nearest to x in the convex hull of the known vertices, d = p - x and v = lmo(d). Every point y of the set
    satisfies <d, y - x> >= <d, v - x>. If <d, v - x> is positive, the distance from x to the set is at least <d, v - x> / |d|.

    The result is False if x is a structured point and the linear oracle accepts arrays only.
    """
    try:
        return _separated(domain, x, calls)
    except TypeError:
        if isinstance(x, np.ndarray):
            raise
        return False


def _separated(domain: Any, x: Point, calls: int) -> bool:
    vertex, opposite, widest = domain.lmo(-1.0 * x), domain.lmo(x), diameter(domain) or 0.0
    width = sqrt(norm2(vertex - opposite))
    hull = Corrective().init(domain, vertex)
    for _ in range(calls - 2):
        hull = hull.nearest(x)
        d = hull.point() - x
        distance = sqrt(norm2(d))
        v = domain.lmo(d)
        width = max(width, sqrt(norm2(v - vertex)))  # a lower bound on the diameter, used if the set states none
        room = counts_as_inside(domain) * (widest or width) + DIGITS * sqrt(norm2(vertex))
        if distance <= room:
            return False
        if inner(d, v - x) > room * distance:
            return True
        hull = hull.with_atom(v)
    return False


class _Wrapped:
    """An objective or a set, with some of its attributes added or replaced."""

    def __init__(self, given: Any, **replaced: Any):
        self._given = given
        vars(self).update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)


def _wrapped(objective: Any, **replaced: Any) -> Any:
    """Wrap an objective, and replace some attributes. The wrapper has the class name of the objective, for messages."""
    return type(type(objective).__name__, (_Wrapped,), {})(objective, **replaced)


def with_smoothness(objective: Any, smoothness: float | None, **of_terms: float) -> Any:
    """Wrap the objective, so that it has the given smoothness constant and the given constants of its terms."""
    return _wrapped(objective, smoothness=smoothness, **of_terms)


def checked_answers(objective: Any) -> Any:
    """Wrap a user's objective, so that its values and gradients are checked and copied. The library's objectives are unchanged.

    NaN and Inf are checked in counting.py, where the message can name the step.
    """
    own = type(unwrapped(objective)).__module__
    if own.startswith("condgrad."):
        return objective
    checks = {"value": _value, "grad": _gradient, "grad_terms": _gradient, "value_and_grad": _value_and_gradient}
    wrapped = type(type(objective).__name__, (_Checked,), {})(objective)
    has = (name for name in checks if getattr(objective, name, None) is not None)
    vars(wrapped).update({name: partial(checks[name], objective, name, wrapped._seen) for name in has})
    return wrapped


class _Checked(_Wrapped):
    """Wrapper of a user's objective that returns checked float64 copies of the answers. It records the coarsest type of the
    answers."""

    def __init__(self, objective: Any):
        super().__init__(objective)
        self._seen = [0.0]

    @property
    def precision(self) -> float:
        """The larger of the machine epsilon of the coarsest type of the answers and the ``precision`` of the objective."""
        return max(self._seen[0], getattr(self._given, "precision", None) or 0.0)


def _value(objective: Any, name: str, seen: list[float], x: Point) -> float:
    return _checked_value(getattr(objective, name)(x), name)


def _gradient(objective: Any, name: str, seen: list[float], x: Point, *batch: Any) -> Point:
    return _checked_gradient(getattr(objective, name)(x, *batch), name, seen, x)


def _value_and_gradient(objective: Any, name: str, seen: list[float], x: Point) -> tuple[float, Point]:
    value, grad = pair(getattr(objective, name)(x))
    return _checked_value(value, name), _checked_gradient(grad, name, seen, x)


def _checked_value(answer: Any, name: str) -> float:
    array = real_array(answer, f"The answer of {name}")
    same_shape(array.shape, (), f"The answer of {name}")
    return float(array)


def _checked_gradient(answer: Any, name: str, seen: list[float], x: Point) -> Point:
    seen[0] = max(seen[0], precision_of(answer))
    if isinstance(x, Blocks):
        return x.like(answer, f"The answer of {name}")
    if hasattr(answer, "inner"):  # a structured point
        return answer
    array = real_array(answer, f"The answer of {name}")
    same_shape(array.shape, tuple(x.shape), f"The answer of {name}")
    return array


def unwrapped(part: Any) -> Any:
    """The objective or the set that the user gave, without wrappers."""
    while isinstance(part, _Wrapped):
        part = part._given
    return part


def diameter(domain: Any) -> float | None:
    """The set's diameter; None if a user's set does not state it."""
    try:
        return domain.diameter
    except (NotGiven, AttributeError):
        return None


def not_vacuous(objective: Any, domain: Any, entry: Method, tol: float) -> Any:
    """Remove L from the objective if L is so small that every point of the set would meet the tolerance. L is then estimated.

    The norm of the mapping is |x - psi|/gamma with the prox point psi and gamma = 1/(2L). It is therefore at most 2 L D, where D
    is the diameter. An estimate larger than L is valid, because any number above a smoothness constant is a smoothness constant.
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
    """Check the argument ``smoothness`` of a user. Returns None for "estimate"."""
    if isinstance(smoothness, str):
        if smoothness != "estimate":
            raise ValueError(f"smoothness is {smoothness!r}, but must be a number above 0 or 'estimate'.")
        return None
    return positive(smoothness, "smoothness")
