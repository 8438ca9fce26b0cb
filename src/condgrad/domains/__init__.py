"""Convex, compact sets, one a file, each known through its linear minimisation oracle. Points are arrays of float64.

One entry in :data:`DOMAINS` gives a set the contract checks, a name in specs and listings.
"""

from __future__ import annotations

from itertools import chain

from condgrad.domains import balls, combinators, polytopes, simplices, spectral, user
from condgrad.domains.balls import GroupBall, L1Ball, L2Ball, LinfBall, LpBall
from condgrad.domains.entry import DomainEntry
from condgrad.domains.polytopes import (
    BipartiteMatchingPolytope,
    Birkhoff,
    Box,
    ConvexHull,
    FlowPolytope,
    GraphTotalVariationBall,
    MatchingPolytope,
    MatroidBasePolytope,
    PartialAssignment,
    PathPolytope,
    Permutahedron,
    Polytope,
    SpanningTreePolytope,
    SubmodularBasePolytope,
    TotalVariationBall,
    TransportPolytope,
)
from condgrad.domains.simplices import Simplex
from condgrad.domains.spectral import Fantope, KyFanBall, NuclearBall, Spectrahedron, SpectralBall
from condgrad.domains.user import ProjectableUserSet, UserSet, user_set

__all__ = [
    "DOMAINS",
    "BipartiteMatchingPolytope",
    "Birkhoff",
    "Box",
    "ConvexHull",
    "DomainEntry",
    "Fantope",
    "FlowPolytope",
    "GraphTotalVariationBall",
    "GroupBall",
    "KyFanBall",
    "L1Ball",
    "L2Ball",
    "LinfBall",
    "LpBall",
    "MatchingPolytope",
    "MatroidBasePolytope",
    "NuclearBall",
    "PartialAssignment",
    "PathPolytope",
    "Permutahedron",
    "Polytope",
    "ProjectableUserSet",
    "Simplex",
    "SpanningTreePolytope",
    "Spectrahedron",
    "SpectralBall",
    "SubmodularBasePolytope",
    "TotalVariationBall",
    "TransportPolytope",
    "UserSet",
    "user_set",
]

FAMILIES = (simplices, balls, polytopes, spectral, combinators)
"""Packages of sets; each lists its entries in ``ENTRIES``."""

DOMAINS: dict[str, DomainEntry] = {
    entry.name: entry for entry in (*chain.from_iterable(family.ENTRIES for family in FAMILIES), user.ENTRY)
}
"""Every set by its name."""
