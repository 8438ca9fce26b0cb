"""The polytope of the matchings of any graph."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture
from condgrad.domains.polytopes._graph import edge_list
from condgrad.domains.polytopes._membership import is_within
from condgrad.domains.polytopes._zero_one import ZeroOnePolytope, between_0_and_1
from condgrad.runtime.extras import needed_for

DIGITS = 50
"""Costs are rounded to as many binary digits: then networkx, which adds up to four of them, is exact."""


@final
@dataclass(frozen=True, eq=False)
class MatchingPolytope(ZeroOnePolytope):
    """{x : x >= 0, x(edges at v) <= 1 for all nodes v, x(E[S]) <= (|S| - 1)/2 for all odd node sets S}, the hull of matchings.

    E[S] are the edges within S. The linear oracle is a matching of maximum weight, by Edmonds' blossom algorithm in networkx
    (``pip install 'condgrad[graph]'``), O(n^3) in Python. For bipartite graphs :class:`BipartiteMatchingPolytope` is far faster.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Edges of a graph without directions; nodes are numbered from 0. No two edges connect the same nodes.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> matchings = cg.MatchingPolytope([(0, 1), (1, 2), (0, 2), (2, 3)])
    >>> matchings.lmo(np.array([-2.0, -3.0, -1.0, -2.0]))
    array([1., 0., 0., 1.])

    References
    ----------
    J. Edmonds, Maximum matching and a polyhedron with 0,1-vertices, Journal of Research of the National Bureau of Standards 69B
    (1965).
    """

    edges: Any

    def __post_init__(self) -> None:
        edges = edge_list(self.edges, "MatchingPolytope")
        if len(np.unique(np.sort(edges, axis=1), axis=0)) < len(edges):
            raise ValueError("The edges of MatchingPolytope connect two nodes twice: keep one of these edges.")
        checks.settle(self, edges=edges)
        _networkx()

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.edges),)

    @cached_property
    def _numbers(self) -> dict[tuple[int, int], int]:
        """The number of the edge between two nodes, in both orders."""
        pairs = self.edges.tolist()
        return {pair: i for i, (u, v) in enumerate(pairs) for pair in ((u, v), (v, u))}

    @cached_property
    def _most(self) -> int:
        """Edges of a largest matching."""
        return len(self._chosen(-np.ones(self.shape)))

    @property
    def diameter(self) -> float:
        """An upper bound: two largest matchings that share no edge."""
        return math.sqrt(min(2 * self._most, len(self.edges)))

    @property
    def max_norm(self) -> float:
        """Exact: that of a largest matching."""
        return math.sqrt(self._most)

    def _chosen(self, direction: np.ndarray) -> np.ndarray:
        networkx = _networkx()
        graph = networkx.Graph()
        weights = np.rint(np.ldexp(-direction, DIGITS))
        gains = weights > 0
        graph.add_weighted_edges_from(
            (u, v, weight) for (u, v), weight in zip(self.edges[gains].tolist(), weights[gains].tolist(), strict=True)
        )
        pairs = networkx.max_weight_matching(graph)
        return np.array([self._numbers[pair] for pair in pairs], dtype=np.int64)

    def start(self) -> np.ndarray:
        """1 / (1 + d) on an edge, where d is the larger number of edges at one of its ends: this is inside, for all odd sets."""
        degrees = np.bincount(self.edges.ravel())
        return 1 / (1 + np.maximum(*degrees[self.edges].T))

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether x is within ``tolerance`` times the diameter, by up to m calls of the linear oracle."""
        x, room = self._point(x), tolerance * self.diameter
        if not between_0_and_1(x, room):
            return False
        sums = np.bincount(self.edges.ravel(), np.repeat(x, 2))
        return bool(np.all(sums <= 1 + room * math.sqrt(len(x)))) and is_within(self.lmo, x, room)


def _networkx() -> Any:
    with needed_for("Matchings of general graphs"):
        import networkx
    return networkx


def _matching_polytopes() -> Examples:
    return {
        "": MatchingPolytope([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]),
        "of a complete graph": MatchingPolytope([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
    }


def matchings_of(edges: np.ndarray) -> np.ndarray:
    """All matchings of a small graph, one a row."""
    found = []
    for chosen in itertools.product([0.0, 1.0], repeat=len(edges)):
        if np.bincount(edges.ravel(), np.repeat(chosen, 2)).max() <= 1:
            found.append(chosen)
    return np.array(found)


@lru_cache(maxsize=4)
def _all_matchings(domain: MatchingPolytope) -> np.ndarray:
    return matchings_of(domain.edges)


def _in_matching_polytope(domain: MatchingPolytope, rng: np.random.Generator) -> np.ndarray:
    return mixture(_all_matchings(domain), rng)


ENTRY = DomainEntry(
    "matching-polytope", MatchingPolytope, "{x >= 0 : x(edges at v) <= 1, x(E[S]) <= (|S| - 1)/2 for odd S}",
    "a matching of maximum weight (networkx)",
    _matching_polytopes, _in_matching_polytope, vertices=_all_matchings, arrays=("edges",), bounds=("diameter",),
)  # fmt: skip
