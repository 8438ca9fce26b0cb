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
from condgrad.domains.combinators import (
    BoxCut,
    Cached,
    HalfSpaceCut,
    HullOfUnion,
    LinearImage,
    MinkowskiSum,
    Product,
    Saved,
    Scaled,
    Shifted,
)
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
from condgrad.domains.simplices import (
    CappedSimplex,
    Hypersimplex,
    MonotoneBox,
    Simplex,
    SimplexProduct,
    UnitSimplex,
)
from condgrad.domains.spectral import (
    Elliptope,
    Fantope,
    HermitianNuclearBall,
    KyFanBall,
    NuclearBall,
    SchattenBall,
    Spectrahedron,
    SpectralBall,
    SymmetricNuclearBall,
    UnfoldingBall,
)
from condgrad.domains.user import ProjectableUserSet, UserSet, user_set

__all__ = [
    "DOMAINS",
    "BipartiteMatchingPolytope",
    "Birkhoff",
    "Box",
    "BoxCut",
    "Cached",
    "CappedSimplex",
    "ConvexHull",
    "DomainEntry",
    "Ellipsoid",
    "Elliptope",
    "Fantope",
    "FlowPolytope",
    "GraphTotalVariationBall",
    "GroupBall",
    "GroupLinfBall",
    "HalfSpaceCut",
    "HermitianNuclearBall",
    "HullOfUnion",
    "Hypersimplex",
    "KSparsePolytope",
    "KSupportBall",
    "KyFanBall",
    "L1Ball",
    "L1BallInBox",
    "L2Ball",
    "LatentGroupBall",
    "LinearImage",
    "LinfBall",
    "LpBall",
    "MatchingPolytope",
    "MatroidBasePolytope",
    "MinkowskiSum",
    "MonotoneBox",
    "NuclearBall",
    "OWLBall",
    "PartialAssignment",
    "PathPolytope",
    "Permutahedron",
    "Polytope",
    "Product",
    "ProjectableUserSet",
    "Saved",
    "Scaled",
    "SchattenBall",
    "Shifted",
    "Simplex",
    "SimplexProduct",
    "SpanningTreePolytope",
    "Spectrahedron",
    "SpectralBall",
    "SubmodularBasePolytope",
    "SymmetricNuclearBall",
    "TotalVariationBall",
    "TransportPolytope",
    "UnfoldingBall",
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
