"""Polytopes."""

from condgrad.domains.polytopes import (
    bipartite_matching_polytope,
    birkhoff,
    box,
    convex_hull,
    flow_polytope,
    graph_total_variation_ball,
    matching_polytope,
    matroid_base_polytope,
    partial_assignment,
    path_polytope,
    permutahedron,
    polytope,
    spanning_tree_polytope,
    submodular_base_polytope,
    total_variation_ball,
    transport_polytope,
)
from condgrad.domains.polytopes.bipartite_matching_polytope import BipartiteMatchingPolytope
from condgrad.domains.polytopes.birkhoff import Birkhoff
from condgrad.domains.polytopes.box import Box
from condgrad.domains.polytopes.convex_hull import ConvexHull
from condgrad.domains.polytopes.flow_polytope import FlowPolytope
from condgrad.domains.polytopes.graph_total_variation_ball import GraphTotalVariationBall
from condgrad.domains.polytopes.matching_polytope import MatchingPolytope
from condgrad.domains.polytopes.matroid_base_polytope import MatroidBasePolytope
from condgrad.domains.polytopes.partial_assignment import PartialAssignment
from condgrad.domains.polytopes.path_polytope import PathPolytope
from condgrad.domains.polytopes.permutahedron import Permutahedron
from condgrad.domains.polytopes.polytope import Polytope
from condgrad.domains.polytopes.spanning_tree_polytope import SpanningTreePolytope
from condgrad.domains.polytopes.submodular_base_polytope import SubmodularBasePolytope
from condgrad.domains.polytopes.total_variation_ball import TotalVariationBall
from condgrad.domains.polytopes.transport_polytope import TransportPolytope

__all__ = [
    "ENTRIES",
    "BipartiteMatchingPolytope",
    "Birkhoff",
    "Box",
    "ConvexHull",
    "FlowPolytope",
    "GraphTotalVariationBall",
    "MatchingPolytope",
    "MatroidBasePolytope",
    "PartialAssignment",
    "PathPolytope",
    "Permutahedron",
    "Polytope",
    "SpanningTreePolytope",
    "SubmodularBasePolytope",
    "TotalVariationBall",
    "TransportPolytope",
]

ENTRIES = (
    box.ENTRY,
    birkhoff.ENTRY,
    partial_assignment.ENTRY,
    transport_polytope.ENTRY,
    permutahedron.ENTRY,
    path_polytope.ENTRY,
    flow_polytope.ENTRY,
    spanning_tree_polytope.ENTRY,
    bipartite_matching_polytope.ENTRY,
    matching_polytope.ENTRY,
    matroid_base_polytope.ENTRY,
    submodular_base_polytope.ENTRY,
    convex_hull.ENTRY,
    total_variation_ball.ENTRY,
    graph_total_variation_ball.ENTRY,
    polytope.ENTRY,
)
