"""A multiple of a set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import L2Ball
from condgrad.domains.combinators._combination import (
    Combination,
    as_answer,
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
from condgrad.domains.simplices import Simplex
from condgrad.domains.spectral import Spectrahedron
from condgrad.protocols import Point, has, vertex_oracle


@final
@dataclass(frozen=True)
class Scaled(Combination):
    """{c x : x in S}

    One linear minimisation over S, of the direction or of its negative. The diameter, the largest norm and the projection are
    those of S, scaled: exact where these are.

    Parameters
    ----------
    domain : Domain
        The set S.
    factor : float
        The number c, above or below 0.

    Raises
    ------
    ValueError
        If the factor is 0.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> S = cg.Scaled(cg.Simplex(3), -2.0)
    >>> S.lmo(np.array([1.0, 3.0, 2.0])), S.diameter.__round__(3)
    (array([ 0., -2.,  0.]), 2.828)
    """

    domain: Any
    factor: float

    def __post_init__(self) -> None:
        check_set(self.domain, "Scaled")
        factor = checks.real(self.factor, "The factor of Scaled")
        if factor == 0:
            raise ValueError("The factor of Scaled is 0, which leaves one point only: give a number above or below 0.")
        checks.settle(self, factor=factor)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return checks.as_shape(self.domain.shape, "Scaled")

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.domain,)

    @property
    def diameter(self) -> float:
        return abs(self.factor) * diameter_of(self.domain)

    @property
    def max_norm(self) -> float:
        return abs(self.factor) * max_norm_of(self.domain)

    def lmo(self, direction: Point) -> Point:
        direction = self._passed_on(direction)
        return as_answer(self.factor * vertex_oracle(self.domain)(direction if self.factor > 0 else -1.0 * direction))

    @only_if(lambda scaled: has(scaled.domain, "atom"))
    def atom(self, direction: Point) -> Point:
        """c times the structured answer of S."""
        direction = self._passed_on(direction)
        return self.factor * self.domain.atom(direction if self.factor > 0 else -1.0 * direction)

    @only_if(parts_project)
    def project(self, x: Point) -> Point:
        """c times the projection of x / c onto S."""
        return self.factor * self.domain.project(self._point(x) / self.factor)

    def start(self) -> Point:
        """c times the start of S."""
        return self.factor * start_of(self.domain)

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        """Whether S contains x / c, up to its tolerance."""
        return contained(self.domain, self._point(x) / self.factor, tolerance)


def _scaled() -> Examples:
    return {
        "": Scaled(Simplex(4), -2.5),
        "of a ball": Scaled(L2Ball((2, 2)), 0.1),
        "of matrices": Scaled(Spectrahedron(3), 3.0),
    }


def _in_scaled(domain: Scaled, rng: np.random.Generator) -> np.ndarray:
    return domain.factor * a_point_of(domain.domain, rng)


def _scaled_minimum(domain: Scaled, g: np.ndarray) -> float:
    return known_minimum(domain.domain, domain.factor * g)


ENTRY = DomainEntry(
    "scaled", Scaled, "{c x : x in S}", "c times the answer of S",
    _scaled, _in_scaled, _scaled_minimum, sets=("domain",),
)  # fmt: skip
