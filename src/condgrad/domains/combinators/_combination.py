"""Common code of the sets that are made from other sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from math import inf, sqrt
from types import MethodType
from typing import Any

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import is_safe
from condgrad.domains.user import ProjectableUserSet, UserSet
from condgrad.linalg.lbfgs import Iterate, lbfgs
from condgrad.linalg.selection import largest_size
from condgrad.points import SparseArray, norm2
from condgrad.points.base import Structured
from condgrad.protocols import Domain, Point, Projectable, fits, has, missing
from condgrad.runtime.signals import heartbeat

MEMBERSHIP_CALLS, CALLS_PER_ENTRY = 500, 80
"""Maximum number of linear oracle calls by which a set that has nothing else finds out whether it contains a point, and how many
more are allowed for each entry of the point, up to MAX_MATRIX of them. A search may exceed this by its own calls."""
SEARCH_PERIOD = 20
"""Calls from one search of a separating direction to the next: on a small polytope all vertices are found before the first."""
MAX_MATRIX = 200
"""For points of more entries a search keeps FEW_PAIRS of its steps only."""
SEARCH_PAIRS, FEW_PAIRS = 400, 40
"""Steps that the search of a separating direction keeps: with all of them it converges where the sets have edges."""
MAX_BATCHES, SMALL_SHARE = 2, 1e-3
"""A search ends after this number of batches of steps, or when one has improved its direction by less than this share of the
tolerated distance."""
SUM_FACTOR = 1e3
"""Factor of the equations for the sums of weights, where there are several."""
NNLS_STEPS = 30
"""Steps of the active set method for each vertex: 10 times as many as scipy allows by itself, since vertices may be close."""
MAX_IDLE_CALLS = 4
"""A membership test ends after this number of vertices in a row that bring the hull no nearer: what remains is rounding. One or
two such vertices may come before others that do."""
SMALLEST, LARGEST = 1e-100, 1e100
"""Directions with a largest entry outside of these are scaled before they are combined with others."""
DIGITS = 1e-14
"""Rounding error of a sum of points, relative to their size."""


class Combination(ABC):
    """Abstract base class of sets that are made from other sets: their ``parts``."""

    shape: tuple[int, ...]

    @property
    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """The sets that this one is made from."""

    @property
    def precision(self) -> float:
        """The largest relative distance of two numbers of a type in which a user's set among the parts has answered; else 0."""
        return max((getattr(part, "precision", 0.0) for part in self.parts), default=0.0)

    def _point(self, x: Any) -> Point:
        """x after a check of its shape: a structured point unchanged, anything else as an array."""
        owner = type(self).__name__
        if isinstance(x, Structured):
            checks.same_shape(tuple(x.shape), self.shape, f"The point given to {owner}")
            return x
        return checks.point(x, self.shape, owner)

    def _direction(self, direction: Any) -> Point:
        """The same for a direction; one with NaN or Inf is refused, and a huge or tiny one scaled. One pass over its entries."""
        if isinstance(direction, Structured):
            return self._point(direction)
        direction, square = checks.direction_and_square(direction, self.shape, type(self).__name__)
        return direction if is_safe(square) else in_range(direction)

    def _passed_on(self, direction: Any) -> Point:
        """The direction that the parts are asked, without a pass over it if each of them does these checks itself."""
        if isinstance(direction, Structured) or not all(map(checks_directions, self.parts)):
            return self._direction(direction)
        return checks.entries(direction, self.shape, type(self).__name__)


class only_if:  # noqa: N801 - read as a decorator
    """Decorate a method that a set has only where its parts allow it: elsewhere ``hasattr`` says that it has none."""

    def __init__(self, condition: Callable[[Any], bool]):
        self.condition = condition

    def __call__(self, method: Callable[..., Any]) -> Any:
        self.method, self.__doc__ = method, method.__doc__
        return self

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.method
        if not self.condition(instance):
            raise AttributeError(
                f"This {owner.__name__} has no {self.method.__name__}: a set that it is made from has none."
            )
        return MethodType(self.method, instance)


def parts_project(domain: Combination) -> bool:
    """Whether all sets that the domain is made from have a projection."""
    return all(fits(part, Projectable) for part in domain.parts)


def check_set(thing: Any, owner: str) -> Any:
    """Return ``thing``, a set; raise TypeError if it is none."""
    if isinstance(thing, type) or missing(thing, Domain):
        raise TypeError(f"{owner} is made from sets, but got {thing!r:.60}: give sets such as Simplex(3).")
    return thing


def check_sets(sets: tuple[Any, ...], owner: str) -> tuple[Any, ...]:
    """Return the sets, at least one and all of the same shape."""
    if not sets:
        raise ValueError(f"{owner} is made from sets, but got none: give at least one.")
    shapes = [checks.as_shape(check_set(one, owner).shape, owner) for one in sets]
    for shape in shapes:
        checks.same_shape(shape, shapes[0], f"A set given to {owner}")
    return tuple(sets)


def checks_directions(domain: Any) -> bool:
    """Whether the oracle of a set refuses NaN and Inf and takes directions of any size: all sets of this package do, except for
    those of a user's functions."""
    return type(domain).__module__.startswith("condgrad.domains.") and not isinstance(
        domain, UserSet | ProjectableUserSet
    )


def start_of(domain: Any) -> Point:
    """A point of the set: its start, or where it has none the oracle's answer to a direction of ones."""
    return domain.start() if has(domain, "start") else domain.lmo(np.ones(domain.shape))


def diameter_of(domain: Any) -> float:
    """The set's diameter; raise NotGiven if it has none."""
    if not has(domain, "diameter"):
        raise checks.NotGiven(
            f"The diameter of {type(domain).__name__} is needed, which has none: give it a member diameter."
        )
    return float(domain.diameter)


def max_norm_of(domain: Any) -> float:
    """The largest norm of a point, or a bound on it: the set lies within one diameter of its start."""
    return float(domain.max_norm) if has(domain, "max_norm") else sqrt(norm2(start_of(domain))) + diameter_of(domain)


def contained(domain: Any, x: Point, tolerance: float) -> bool:
    """Whether the set contains x: by its ``contains``, or where it has none by its linear oracle."""
    if has(domain, "contains"):
        return bool(domain.contains(x, tolerance))
    try:
        size = max_norm_of(domain)
    except checks.NotGiven:  # as large as the vertices in two opposite directions
        size = sqrt(max(norm2(domain.lmo(sign * np.asarray(x))) for sign in (1.0, -1.0)))
    return reached((domain,), x, tolerance * size)


def fresh(x: Any) -> bool:
    """Whether an answer of a set of this package is an array that it does not keep: those that are kept are read-only."""
    return isinstance(x, np.ndarray) and x.flags.owndata and x.flags.writeable


def as_answer(vertex: Any) -> Point:
    """A sparse vertex as an array, which ``lmo`` answers with, anything else as it is."""
    return vertex.to_dense() if isinstance(vertex, SparseArray) else vertex


def in_range(direction: Point) -> Point:
    """The direction, divided by its largest entry where that is huge or tiny: its products with other numbers stay finite."""
    if not isinstance(direction, np.ndarray):
        return direction
    top = largest_size(direction)
    return direction if SMALLEST < top < LARGEST or top == 0.0 else direction / top


def reached(parts: tuple[Any, ...], x: Point, room: float) -> bool:
    """Whether x is at most ``room`` away from the sum of some sets that are known by their linear oracles only.

    With p the point nearest to x in the sum of the hulls of the vertices seen, d = p - x and v the sum of the answers to a
    direction u, the distance of x to the set is at most |d| and at least <u, v - x> / |u|. Vertices in the directions d are added
    until one of the two bounds decides. Near the boundary of a curved set that alone takes about 30 vertices for each entry of x.
    So every SEARCH_PERIOD calls the direction that separates x best is searched by a quasi-Newton method, whose vertices
    surround such a point. After MEMBERSHIP_CALLS and CALLS_PER_ENTRY for each entry, or where only rounding
    is left, x counts as outside.
    """
    x = np.asarray(x, dtype=float)
    if not np.isfinite(norm2(x)):
        return False
    calls, most, separated = 0, MEMBERSHIP_CALLS + CALLS_PER_ENTRY * min(x.size, MAX_MATRIX), False
    unit = max(float(np.abs(y).max()) for y in (x, *(np.asarray(part.lmo(-x)) for part in parts))) or 1.0
    room = room / unit

    def vertices(direction: np.ndarray) -> np.ndarray:
        """The answers of the parts to a direction as columns, from which x is subtracted in equal shares; divided by ``unit``."""
        nonlocal calls, separated
        heartbeat()
        calls += 1
        direction = in_range(direction)
        answers = [(np.asarray(part.lmo(direction.reshape(x.shape))) - x / len(parts)) / unit for part in parts]
        columns = np.column_stack([answer.ravel() for answer in answers])
        separated |= float(direction @ columns.sum(axis=1)) > room * float(np.linalg.norm(direction))
        return columns

    nearest, idle, due = inf, 0, SEARCH_PERIOD
    atoms, owners = np.zeros((x.size, 0)), np.arange(0)
    search: Iterator[np.ndarray] = iter(())
    new = vertices(-x.ravel())
    while calls < most and not separated:
        atoms = np.column_stack([atoms, new])
        owners = np.append(owners, np.resize(np.arange(len(parts)), new.shape[1]))
        atoms, owners, d = _nearest_to_zero(atoms, owners)
        distance = float(np.linalg.norm(d))
        if distance <= room:
            return True
        idle = 0 if distance < nearest else idle + 1
        nearest = min(nearest, distance)
        if (found := next(search, None)) is not None:
            new, due, idle = found, calls + SEARCH_PERIOD, 0
        elif idle > MAX_IDLE_CALLS:
            return False
        elif calls >= due or idle == MAX_IDLE_CALLS // 2:
            search, new, due = _best_separating(vertices, d / distance, room), atoms[:, :0], calls + SEARCH_PERIOD
        else:
            new = vertices(d)
    return False


def _best_separating(
    vertices: Callable[[np.ndarray], np.ndarray], first: np.ndarray, room: float
) -> Iterator[np.ndarray]:
    """Yield batches of vertices, ever closer to those in the direction u that separates 0 best from a convex set.

    u minimises the convex function -<u, v(u)>, where v(u) is the sum of the vertices in the direction u, among all u with the
    inner product 1 with the unit vector ``first``. It has kinks where a part has edges: there quasi-Newton steps with the weak
    Wolfe conditions still converge (Lewis and Overton 2013), and the vertices of their trial steps lie on all sides.
    """
    n = first.size
    batch, seen = 4 * n + SEARCH_PERIOD, list[np.ndarray]()

    def value(u: np.ndarray) -> float:
        seen.append(vertices(u))
        return -float(u @ seen[-1].sum(axis=1))

    def slope(_: np.ndarray) -> np.ndarray:
        v = seen[-1].sum(axis=1)
        return (v @ first) * first - v

    last, end, best = Iterate(first, value(first), slope(first)), batch, inf
    for now in lbfgs(value, slope, last, SEARCH_PAIRS if n <= MAX_MATRIX else FEW_PAIRS):
        last = now
        if len(seen) >= end:
            if len(seen) >= MAX_BATCHES * batch or not last.fun < best - SMALL_SHARE * room:
                break
            yield np.column_stack(seen[-batch:])
            end, best = len(seen) + batch, last.fun
    yield np.column_stack(seen[-batch:])


def _nearest_to_zero(atoms: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns that the point nearest to 0 in the sum of their hulls needs, their owners, and this point.

    The columns of one owner are the vertices of one hull. The weights are those of the least squares problem with weights >= 0
    in which the sum of those of each owner, near 1, is one more row; then they are scaled to the sum 1. For one owner that is
    exact, for more the rows are given a factor, so that nearly nothing is left to scale. From the columns themselves, not from
    their inner products: small distances keep their digits.
    """
    from scipy.optimize import nnls

    hulls = owners == np.arange(owners.max() + 1)[:, None]
    factor = 1.0 if len(hulls) == 1 else SUM_FACTOR
    rows = np.vstack([atoms, factor * hulls])
    target = np.append(np.zeros(len(atoms)), np.full(len(hulls), factor))
    weights, _ = nnls(rows, target, maxiter=NNLS_STEPS * len(owners))
    weights = weights / (hulls @ weights)[owners]
    used = weights > 0
    return atoms[:, used], owners[used], atoms @ weights
