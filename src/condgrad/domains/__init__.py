"""Convex, compact sets, one a file, each known through its linear minimisation oracle. Points are arrays of float64.

One entry in :data:`DOMAINS` gives a set the contract checks, a name in specs and listings.
"""

from __future__ import annotations

from itertools import chain

from condgrad.domains import balls, combinators, polytopes, simplices, spectral, user
from condgrad.domains.balls import (
    Ellipsoid,
    GroupBall,
    GroupLinfBall,
    KSparsePolytope,
    KSupportBall,
    L1Ball,
    L1BallInBox,
    L2Ball,
    LatentGroupBall,
    LinfBall,
    LpBall,
    OWLBall,
    WeightedL1Ball,
)
from condgrad.domains.entry import DomainEntry
from condgrad.domains.polytopes import Box
from condgrad.domains.simplices import CappedSimplex, Hypersimplex, MonotoneBox, Simplex, SimplexProduct, UnitSimplex
from condgrad.domains.spectral import Fantope, KyFanBall, NuclearBall, Spectrahedron, SpectralBall
from condgrad.domains.user import ProjectableUserSet, UserSet, user_set

__all__ = [
    "DOMAINS",
    "Box",
    "CappedSimplex",
    "DomainEntry",
    "Ellipsoid",
    "Fantope",
    "GroupBall",
    "GroupLinfBall",
    "Hypersimplex",
    "KSparsePolytope",
    "KSupportBall",
    "KyFanBall",
    "L1Ball",
    "L1BallInBox",
    "L2Ball",
    "LatentGroupBall",
    "LinfBall",
    "LpBall",
    "MonotoneBox",
    "NuclearBall",
    "OWLBall",
    "ProjectableUserSet",
    "Simplex",
    "SimplexProduct",
    "Spectrahedron",
    "SpectralBall",
    "UnitSimplex",
    "UserSet",
    "WeightedL1Ball",
    "user_set",
]

FAMILIES = (simplices, balls, polytopes, spectral, combinators)
"""Packages of sets; each lists its entries in ``ENTRIES``."""

DOMAINS: dict[str, DomainEntry] = {
    entry.name: entry for entry in (*chain.from_iterable(family.ENTRIES for family in FAMILIES), user.ENTRY)
}
"""Every set by its name."""
