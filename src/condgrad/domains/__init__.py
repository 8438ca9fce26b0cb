"""Convex, compact sets, one a file, each known through its linear minimisation oracle. Points are arrays of float64.

One entry in :data:`DOMAINS` gives a set the contract checks, a name in specs and listings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.domains import _examples as of
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
from condgrad.protocols import Projectable, fits

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
    """A set as the documentation, the command line, specs and the contract checks see it.

    Parameters
    ----------
    name : str
        Its name in specs and listings.
    factory : callable
        Builds the set; its parameters are the keys of ``[set]`` in a spec.
    notation : str
        The set in set notation.
    oracle : str
        What its linear minimisation oracle answers.
    examples : callable
        ``examples() -> {label: set}``, the instances that are checked; the first one has the label "".
    sample : callable, default None
        ``sample(domain, rng)``, a random point of the set, made without its oracle. None: combinations of the oracle's answers.
    least : callable, default None
        ``least(domain, g)``, the minimum of <g, x> over the set in closed form.
    vertices : callable, default None
        ``vertices(domain)``, all vertices of a polytope; the oracle must answer with one of them.
    arrays : tuple of str, default ()
        Parameters that a spec gives as an array, as the name of a file, or as one number for all entries.
    in_specs : bool, default True
        Whether a spec may name it: not where a parameter is a function.
    """

    name: str
    factory: Callable[..., Any]
    notation: str
    oracle: str
    examples: Callable[[], dict[str, Any]]
    sample: Callable[[Any, np.random.Generator], Any] | None = None
    least: Callable[[Any, np.ndarray], float] | None = None
    vertices: Callable[[Any], np.ndarray] | None = None
    arrays: tuple[str, ...] = ()
    in_specs: bool = True

    def example(self) -> Any:
        """The first of the examples."""
        return next(iter(self.examples().values()))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the factory."""
        return tuple(inspect.signature(self.factory).parameters)

    @property
    def projects(self) -> bool:
        """Whether the first example has a projection."""
        return fits(self.example(), Projectable)

    @property
    def polytope(self) -> bool:
        """Whether it has finitely many vertices, which are known."""
        return self.vertices is not None


_ENTRIES = (
    DomainEntry(
        "simplex", Simplex, "{x : x >= 0, sum x = r}", "the vertex at the smallest entry",
        of.simplexes, of.in_simplex, vertices=of.simplex_vertices,
    ),
    DomainEntry(
        "l1-ball", L1Ball, "{x : |x|_1 <= r}", "the vertex at the largest entry, with the opposite sign",
        of.l1_balls, of.in_l1_ball, vertices=of.l1_vertices,
    ),
    DomainEntry(
        "l2-ball", L2Ball, "{x : |x|_2 <= r}", "the direction, reversed and scaled to the sphere",
        of.l2_balls, of.in_l2_ball, of.l2_minimum,
    ),
    DomainEntry(
        "linf-ball", LinfBall, "{x : |x|_inf <= r}", "r with the opposite sign of each entry",
        of.linf_balls, of.in_linf_ball, vertices=of.linf_vertices,
    ),
    DomainEntry(
        "lp-ball", LpBall, "{x : |x|_p <= r}", "the case of equality in Hoelder's inequality",
        of.lp_balls, of.in_lp_ball, of.lp_minimum,
    ),
    DomainEntry(
        "group-ball", GroupBall, "{x : sum over groups g of |x_g|_2 <= r}",
        "the group with the largest norm, reversed and scaled to the sphere",
        of.group_balls, of.in_group_ball, of.group_minimum,
    ),
    DomainEntry(
        "box", Box, "{x : lower <= x <= upper}", "each entry at its lower or upper bound, by the sign of the direction",
        of.boxes, of.in_box, vertices=of.box_vertices, arrays=("lower", "upper"),
    ),
    DomainEntry(
        "nuclear-ball", NuclearBall, "{X : |X|_* <= r}",
        "the top pair of singular vectors, by Lanczos (small matrices: full SVD)",
        of.nuclear_balls, of.in_nuclear_ball, of.nuclear_minimum,
    ),
    DomainEntry(
        "spectral-ball", SpectralBall, "{X : sigma_1(X) <= r}", "-r times the polar factor, by a full SVD",
        of.spectral_balls, of.in_spectral_ball, of.spectral_minimum,
    ),
    DomainEntry(
        "ky-fan-ball", KyFanBall, "{X : sigma_1(X) + ... + sigma_k(X) <= r}",
        "the better of the top pair and the polar factor / k, by a full SVD",
        of.ky_fan_balls, of.in_ky_fan_ball, of.ky_fan_minimum,
    ),
    DomainEntry(
        "spectrahedron", Spectrahedron, "{X = X' : X >= 0, trace X = r (or <= r)}",
        "the lowest eigenvector of the symmetric part",
        of.spectrahedra, of.in_spectrahedron, of.spectrahedron_minimum,
    ),
    DomainEntry(
        "fantope", Fantope, "{X = X' : 0 <= X <= I, trace X = k}",
        "the projector on the k lowest eigenvectors of the symmetric part",
        of.fantopes, of.in_fantope, of.fantope_minimum,
    ),
    DomainEntry(
        "user", user_set, "{x : known through lmo(direction)}", "the function that was given",
        of.user_sets, in_specs=False,
    ),
)  # fmt: skip

DOMAINS: dict[str, DomainEntry] = {entry.name: entry for entry in _ENTRIES}
