"""A set given by plain functions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls._ball import Shape
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.points.rounding import TracksPrecision

DIGITS = 1e-12
"""The last digits of a point, relative to it: so far off, a point of a set that is far smaller still counts as inside."""
SMALLEST, LARGEST = 1e-100, 1e100
"""Directions with a largest entry outside of these are scaled before a user's function sees them."""
Oracle = Callable[[np.ndarray], Any]
Membership = Callable[[np.ndarray, float], Any]


def user_set(
    lmo: Oracle,
    shape: Shape,
    diameter: float | None = None,
    project: Oracle | None = None,
    start: Any = None,
    contains: Membership | None = None,
) -> UserSet | ProjectableUserSet:
    """The set whose linear oracle is ``lmo(direction)``; every answer of a function given here is checked.

    ``diameter`` (an upper bound will do) is needed only by methods whose steps depend on it, ``contains(x, tolerance)``
    only where membership is asked for. Without ``start``, the oracle's answer to a fixed direction is the start.
    """
    size = checks.as_shape(shape, "user_set")
    if diameter is not None:
        diameter = checks.not_negative(diameter, "The diameter of user_set")
    if start is not None:
        start = checks.finite_array(start, "The start of user_set")
        checks.same_shape(start.shape, size, "The start of user_set")
    for name, given in (("lmo", lmo), ("project", project), ("contains", contains)):
        if name == "lmo" or given is not None:
            checks.function(given, f"The {name} of user_set")
    if project is None:
        return UserSet(size, lmo, diameter, start, contains)
    return ProjectableUserSet(size, lmo, diameter, start, contains, project)


@dataclass(frozen=True, eq=False)
class _Given(TracksPrecision, ABC):
    shape: tuple[int, ...]
    given_lmo: Oracle
    given_diameter: float | None
    given_start: np.ndarray | None
    given_contains: Membership | None

    @property
    def diameter(self) -> float:
        if self.given_diameter is None:
            raise checks.NotGiven("The diameter of the set is needed, and user_set was given none: pass diameter=.")
        return self.given_diameter

    @property
    def max_norm(self) -> float:
        """An upper bound: the set lies within one diameter of its start."""
        return float(np.linalg.norm(self.start())) + self.diameter

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        direction = checks.point(direction, self.shape, "the user's set")
        if not direction.any():  # every point is a minimiser; a function that normalises its input would divide by 0
            direction = np.ones(self.shape)
        top = float(np.abs(direction).max())
        if isfinite(top) and not SMALLEST < top < LARGEST:  # the square of its norm would overflow, or be 0
            direction = direction / top
        return checks.answer(self._record_precision(self.given_lmo(direction)), self.shape, "lmo")

    def start(self) -> np.ndarray:
        return self.lmo(np.zeros(self.shape)) if self.given_start is None else self.given_start

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        x = checks.point(x, self.shape, "the user's set")
        if not np.isfinite(x).all():  # a projection of Inf may be Inf, and as near as a point of the set
            return False
        return bool(self.given_contains(x, tolerance) if self.given_contains else self._find_out(x, tolerance))

    @abstractmethod
    def _find_out(self, x: np.ndarray, tolerance: float) -> bool:
        """Whether x is in the set, when nobody says it."""


@final
@dataclass(frozen=True, eq=False)
class UserSet(_Given):
    """{x : known through lmo(direction)}"""

    def _find_out(self, x: np.ndarray, tolerance: float) -> bool:
        raise checks.NotGiven("A linear oracle cannot tell if a point is in its set: pass contains= or project=.")


@final
@dataclass(frozen=True, eq=False)
class ProjectableUserSet(_Given):
    """{x : known through lmo(direction) and project(x)}"""

    given_project: Oracle

    @cached_property
    def _width(self) -> float:
        """The diameter, or where it was not given the width in a random direction, by two calls of the linear oracle."""
        if self.given_diameter is not None:
            return self.given_diameter
        direction = np.random.default_rng((0, 0, 11)).standard_normal(self.shape)
        return float(np.linalg.norm(self.lmo(direction) - self.lmo(-direction)))

    def project(self, x: np.ndarray) -> np.ndarray:
        answer = self._record_precision(self.given_project(checks.point(x, self.shape, "the user's set")))
        return checks.answer(answer, self.shape, "project")

    def _find_out(self, x: np.ndarray, tolerance: float) -> bool:
        room = tolerance * self._width + min(tolerance, DIGITS) * np.linalg.norm(x)
        return bool(np.linalg.norm(self.project(x) - x) <= room)


def _user_sets() -> Examples:
    """A disc that is not symmetric, with everything but a projection; and a box with a projection and no membership."""
    centre = np.array([1.0, -2.0, 0.5])
    disc = user_set(
        lmo=lambda g: centre - g / np.linalg.norm(g),
        shape=3,
        diameter=2.0,
        start=centre,
        contains=lambda x, tolerance: np.linalg.norm(x - centre) <= 1 + tolerance,
    )
    box = user_set(lambda g: -np.sign(g), 3, diameter=2 * math.sqrt(3), project=lambda x: x.clip(-1, 1))
    return {"": disc, "with project": box}


ENTRY = DomainEntry(
    "user", user_set, "{x : known through lmo(direction)}", "the function that was given",
    _user_sets, in_specs=False,
)  # fmt: skip
