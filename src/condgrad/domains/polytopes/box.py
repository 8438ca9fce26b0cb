"""The box."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.linalg.selection import by_sign


@final
@dataclass(frozen=True, eq=False)
class Box:
    """{x : lower <= x <= upper}; a number stands for a bound that is the same everywhere."""

    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        advice = "a box needs finite bounds to be compact"
        lower = checks.finite_array(self.lower, "The lower bound of Box", advice)
        upper = checks.finite_array(self.upper, "The upper bound of Box", advice)
        if lower.ndim and upper.ndim:
            checks.same_shape(upper.shape, lower.shape, "The upper bound of Box")
        lower, upper = np.broadcast_arrays(lower, upper)
        checks.as_shape(lower.shape, "Box")
        if np.any(crossed := lower > upper):
            i = tuple(int(k) for k in np.argwhere(crossed)[0])
            raise ValueError(
                f"Box is an empty set: lower {lower[i]} is above upper {upper[i]} at index {i}; correct them."
            )
        checks.settle(self, lower=lower, upper=upper)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lower.shape

    @property
    def diameter(self) -> float:
        return float(np.linalg.norm(self.upper - self.lower))

    @property
    def max_norm(self) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper))))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        return by_sign(checks.direction(direction, self.shape, "Box"), self.lower, self.upper)

    def project(self, x: np.ndarray) -> np.ndarray:
        return np.clip(checks.finite_point(x, self.shape, "Box"), self.lower, self.upper)

    def start(self) -> np.ndarray:
        return self.lower / 2 + self.upper / 2

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        # relative to the width, with room for the rounding of a narrow box that lies far from 0
        slack = tolerance * (self.diameter or self.max_norm) + 4 * np.finfo(float).eps * self.max_norm
        x = checks.point(x, self.shape, "Box")
        return bool(np.all((x >= self.lower - slack) & (x <= self.upper + slack)))


def _boxes() -> Examples:
    return {
        "": Box([-1.0, 0.0, 2.0], [1.0, 0.0, 5.0]),
        "far away": Box(np.full(3, 1e6), 1e6 + np.array([1e-3, 1.0, 2.0])),
        "of matrices": Box(-1.0, np.ones((2, 3))),
    }


def _in_box(box: Box, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(box.lower, box.upper)


def _box_vertices(box: Box) -> np.ndarray:
    ends = zip(box.lower.ravel(), box.upper.ravel(), strict=True)
    return np.array(list(itertools.product(*ends))).reshape(-1, *box.shape)


ENTRY = DomainEntry(
    "box", Box, "{x : lower <= x <= upper}", "each entry at its lower or upper bound, by the sign of the direction",
    _boxes, _in_box, vertices=_box_vertices, arrays=("lower", "upper"),
)  # fmt: skip
