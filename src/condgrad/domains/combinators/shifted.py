"""A set that is moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import L1Ball, L2Ball
from condgrad.domains.combinators._combination import (
    DIGITS,
    Combination,
    check_set,
    contained,
    diameter_of,
    max_norm_of,
    only_if,
    parts_project,
    start_of,
)
from condgrad.domains.combinators._examples import a_point_of, known_minimum
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.spectral import NuclearBall
from condgrad.protocols import Point, vertex_oracle


@final
@dataclass(frozen=True, eq=False)
class Shifted(Combination):
    """{x + v : x in S}

    One linear minimisation over S; its answers plus a dense v are dense. The diameter and the projection are those of S: exact
    where these are. ``max_norm`` is an upper bound, the largest norm in S plus the norm of v.

    Parameters
    ----------
    domain : Domain
        The set S.
    by : array_like of float, of the shape of S
        The vector v.

    Examples
    --------
    A ball around a point:

    >>> import numpy as np, condgrad as cg
    >>> ball = cg.Shifted(cg.L2Ball(2, 0.5), [3.0, 4.0])
    >>> ball.lmo(np.array([1.0, 0.0])), ball.contains(np.array([3.0, 4.4]))
    (array([2.5, 4. ]), True)
    """

    domain: Any
    by: Any

    def __post_init__(self) -> None:
        shape = checks.as_shape(check_set(self.domain, "Shifted").shape, "Shifted")
        by = checks.finite_array(self.by, "The vector of Shifted")
        checks.same_shape(by.shape, shape, "The vector of Shifted")
        checks.settle(self, by=by)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.by.shape

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.domain,)

    @property
    def diameter(self) -> float:
        return diameter_of(self.domain)

    @property
    def max_norm(self) -> float:
        """An upper bound: the largest norm in S plus the norm of v."""
        return max_norm_of(self.domain) + float(np.linalg.norm(self.by))

    def lmo(self, direction: Point) -> Point:
        return vertex_oracle(self.domain)(self._passed_on(direction)) + self.by

    @only_if(parts_project)
    def project(self, x: Point) -> Point:
        """The projection of x - v onto S, plus v."""
        return self.domain.project(self._point(x) - self.by) + self.by

    def start(self) -> Point:
        """The start of S, plus v."""
        return start_of(self.domain) + self.by

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        """Whether S contains x - v, up to its tolerance and the last digits of v."""
        size = max_norm_of(self.domain)
        lost = DIGITS * float(np.linalg.norm(self.by)) / size if size > 0 else 0.0
        return contained(self.domain, self._point(x) - self.by, tolerance + lost)


def _shifted() -> Examples:
    return {
        "": Shifted(L1Ball(3, 2.0), [1.0, -4.0, 0.5]),
        "of a ball": Shifted(L2Ball((2, 2), 0.5), np.full((2, 2), 7.0)),
        "of matrices": Shifted(NuclearBall((3, 2)), np.arange(6.0).reshape(3, 2)),
    }


def _in_shifted(domain: Shifted, rng: np.random.Generator) -> np.ndarray:
    return a_point_of(domain.domain, rng) + domain.by


def _shifted_minimum(domain: Shifted, g: np.ndarray) -> float:
    return known_minimum(domain.domain, g) + float(np.vdot(g, domain.by))


ENTRY = DomainEntry(
    "shifted", Shifted, "{x + v : x in S}", "the answer of S, plus v",
    _shifted, _in_shifted, _shifted_minimum, arrays=("by",), sets=("domain",), bounds=("max_norm",),
)  # fmt: skip
