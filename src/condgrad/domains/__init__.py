"""Convex, compact sets, one a file, each known through its linear minimisation oracle. Points are arrays of float64.

One line in :data:`DOMAINS` buys a set every contract test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.domains.box import Box
from condgrad.domains.fantope import Fantope
from condgrad.domains.group_ball import GroupBall
from condgrad.domains.ky_fan_ball import KyFanBall
from condgrad.domains.l1_ball import L1Ball
from condgrad.domains.l2_ball import L2Ball
from condgrad.domains.linf_ball import LinfBall
from condgrad.domains.lp_ball import LpBall
from condgrad.domains.nuclear_ball import NuclearBall
from condgrad.domains.simplex import Simplex
from condgrad.domains.spectrahedron import Spectrahedron
from condgrad.domains.spectral_ball import SpectralBall
from condgrad.domains.user import ProjectableUserSet, UserSet, user_set

__all__ = [
    "DOMAINS",
    "Box",
    "DomainEntry",
    "Fantope",
    "GroupBall",
    "KyFanBall",
    "L1Ball",
    "L2Ball",
    "LinfBall",
    "LpBall",
    "NuclearBall",
    "ProjectableUserSet",
    "Simplex",
    "Spectrahedron",
    "SpectralBall",
    "UserSet",
    "user_set",
]


@dataclass(frozen=True)
class DomainEntry:
    """A set as the documentation, the command line and the contract tests see it."""

    name: str
    factory: Callable[..., Any]
    notation: str
    parameters: tuple[str, ...]
    oracle: str
    projects: bool
    polytope: bool
    example: Callable[[], Any]


def _shifted_disc() -> Any:
    """A set that is not symmetric, with everything but a projection."""
    centre = np.array([1.0, -2.0, 0.5])
    return user_set(
        lmo=lambda g: centre - g / np.linalg.norm(g),
        shape=3,
        diameter=2.0,
        start=centre,
        contains=lambda x, tolerance: np.linalg.norm(x - centre) <= 1 + tolerance,
    )


_BALL = ("shape", "radius")
_ENTRIES = (
    DomainEntry(
        "simplex", Simplex, "{x : x >= 0, sum x = r}", _BALL,
        "the vertex at the smallest entry", True, True, lambda: Simplex(5, 2.0),
    ),
    DomainEntry(
        "l1-ball", L1Ball, "{x : |x|_1 <= r}", _BALL,
        "the vertex at the largest entry, with the opposite sign", True, True, lambda: L1Ball(5, 2.0),
    ),
    DomainEntry(
        "l2-ball", L2Ball, "{x : |x|_2 <= r}", _BALL,
        "the direction, reversed and scaled to the sphere", True, False, lambda: L2Ball((2, 3), 0.5),
    ),
    DomainEntry(
        "linf-ball", LinfBall, "{x : |x|_inf <= r}", _BALL,
        "r with the opposite sign of each entry", True, True, lambda: LinfBall(4, 1.5),
    ),
    DomainEntry(
        "lp-ball", LpBall, "{x : |x|_p <= r}", ("shape", "p", "radius"),
        "the case of equality in Hoelder's inequality", False, False, lambda: LpBall(5, 3.0, 2.0),
    ),
    DomainEntry(
        "group-ball", GroupBall, "{x : sum over groups g of |x_g|_2 <= r}", ("shape", "radius", "groups"),
        "the group with the largest norm, reversed and scaled to the sphere", True, False,
        lambda: GroupBall((4, 3), 2.0),
    ),
    DomainEntry(
        "box", Box, "{x : lower <= x <= upper}", ("lower", "upper"),
        "each entry at its lower or upper bound, by the sign of the direction", True, True,
        lambda: Box([-1.0, 0.0, 2.0], [1.0, 0.0, 5.0]),
    ),
    DomainEntry(
        "nuclear-ball", NuclearBall, "{X : |X|_* <= r}", _BALL,
        "the top pair of singular vectors, by Lanczos (small matrices: full SVD)", True, False,
        lambda: NuclearBall((5, 4), 3.0),
    ),
    DomainEntry(
        "spectral-ball", SpectralBall, "{X : sigma_1(X) <= r}", _BALL,
        "-r times the polar factor, by a full SVD", True, False, lambda: SpectralBall((4, 3), 1.5),
    ),
    DomainEntry(
        "ky-fan-ball", KyFanBall, "{X : sigma_1(X) + ... + sigma_k(X) <= r}", ("shape", "k", "radius"),
        "the better of the top pair and the polar factor / k, by a full SVD", True, False,
        lambda: KyFanBall((4, 5), 2, 3.0),
    ),
    DomainEntry(
        "spectrahedron", Spectrahedron, "{X = X' : X >= 0, trace X = r (or <= r)}", ("shape", "radius", "equal"),
        "the lowest eigenvector of the symmetric part", True, False, lambda: Spectrahedron(4, 2.0),
    ),
    DomainEntry(
        "fantope", Fantope, "{X = X' : 0 <= X <= I, trace X = k}", ("shape", "rank"),
        "the projector on the k lowest eigenvectors of the symmetric part", True, False, lambda: Fantope(5, 2),
    ),
    DomainEntry(
        "user", user_set, "{x : known through lmo(direction)}",
        ("lmo", "shape", "diameter", "project", "start", "contains"),
        "the function that was given", False, False, _shifted_disc,
    ),
)  # fmt: skip

DOMAINS: dict[str, DomainEntry] = {entry.name: entry for entry in _ENTRIES}
