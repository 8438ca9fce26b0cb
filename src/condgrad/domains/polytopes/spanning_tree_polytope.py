"""The polytope of the spanning trees of a graph."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from condgrad import checks, kernels
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture
from condgrad.domains.polytopes._graph import edge_list
from condgrad.domains.polytopes._membership import is_within
from condgrad.domains.polytopes._zero_one import ZeroOnePolytope, between_0_and_1
from condgrad.linalg.selection import increasing_order

COMPILED_FROM = 3_000
"""With fewer edges scipy's trees are used, which compile nothing."""


class _Pairs(NamedTuple):
    """The pairs of nodes that edges connect, in the order of a sparse matrix."""

    order: np.ndarray
    """The edges, by their pairs."""
    first: np.ndarray
    """Where the edges of each pair begin among them."""
    columns: np.ndarray
    begins: np.ndarray
    """Where the pairs of each row begin, and where the last ones end."""


@final
@dataclass(frozen=True, eq=False)
class SpanningTreePolytope(ZeroOnePolytope):
    """{x : x >= 0, x(E) = n - 1, x(E[S]) <= |S| - 1 for all node sets S}, the convex hull of the spanning trees of a graph.

    E[S] are the edges within S. The linear oracle is a minimum spanning tree, which depends on the order of the costs only, so
    that costs of any sign, zeros and ties are right. O(m log m): Kruskal's algorithm in a compiled loop, in small graphs scipy's,
    which gets the ranks of the costs.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Edges of a connected graph without directions; nodes are numbered from 0. Two edges may connect the same nodes.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> trees = cg.SpanningTreePolytope([(0, 1), (1, 2), (0, 2), (2, 3)])
    >>> trees.lmo(np.array([0.0, -2.0, 3.0, 1.0]))
    array([1., 1., 0., 1.])

    References
    ----------
    J. Edmonds, Matroids and the greedy algorithm, Mathematical Programming 1 (1971).
    """

    edges: Any
    _pairs: _Pairs = field(init=False, repr=False)

    def __post_init__(self) -> None:
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components

        edges = edge_list(self.edges, "SpanningTreePolytope")
        nodes, keys = int(edges.max()) + 1, np.sort(edges, axis=1) @ [int(edges.max()) + 1, 1]
        order = np.argsort(keys, kind="stable")
        _, first = np.unique(keys[order], return_index=True)
        low, high = np.divmod(keys[order][first], nodes)
        pairs = _Pairs(order, first, high.astype(np.int32), np.searchsorted(low, np.arange(nodes + 1)).astype(np.int32))
        graph = sp.csr_matrix((np.ones(len(first)), pairs.columns, pairs.begins), shape=(nodes, nodes))
        parts, _ = connected_components(graph, directed=False)
        if parts > 1:
            raise ValueError(
                f"SpanningTreePolytope is an empty set: the graph of {nodes} nodes has {parts} parts; connect them by edges."
            )
        checks.settle(self, edges=edges, _pairs=pairs)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.edges),)

    @property
    def _size(self) -> int:
        """Edges of a tree."""
        return int(self.edges.max())

    @property
    def diameter(self) -> float:
        """An upper bound: two trees that share as few edges as their number allows."""
        return math.sqrt(2 * min(self._size, len(self.edges) - self._size))

    @property
    def max_norm(self) -> float:
        """Exact: that of a tree."""
        return math.sqrt(self._size)

    def _chosen(self, direction: np.ndarray) -> np.ndarray:
        import scipy.sparse as sp
        from scipy.sparse.csgraph import minimum_spanning_tree

        order, pairs, nodes = increasing_order(direction), self._pairs, self._size + 1
        if len(order) >= COMPILED_FROM:
            return kernels.spanning_tree(order, self.edges)
        ranks = np.empty(len(order))
        ranks[order] = np.arange(1.0, len(order) + 1)
        ranks = ranks[pairs.order]
        if len(pairs.first) < len(ranks):  # the cheapest of parallel edges
            ranks = np.minimum.reduceat(ranks, pairs.first)
        tree = minimum_spanning_tree(sp.csr_matrix((ranks, pairs.columns, pairs.begins), shape=(nodes, nodes)))
        return order[tree.data.astype(np.int64) - 1]

    def start(self) -> np.ndarray:
        """The mean of the trees that are minimal for all edges in order, in reverse order, and for each edge alone."""
        m = len(self.edges)
        trees = [np.arange(m), -np.arange(m), *(-np.eye(m) if m <= 100 else ())]
        return np.mean([self.lmo(np.asarray(g, dtype=float)) for g in trees], axis=0)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether x is within ``tolerance`` times the diameter, by up to m calls of the linear oracle."""
        x, room = self._point(x), tolerance * (self.diameter or self.max_norm)
        plain = between_0_and_1(x, room) and abs(float(x.sum()) - self._size) <= room * math.sqrt(len(x))
        return plain and is_within(self.lmo, x, room)


def _spanning_tree_polytopes() -> Examples:
    return {
        "": SpanningTreePolytope([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
        "of parallel edges": SpanningTreePolytope([(0, 1), (1, 0), (1, 2), (2, 0), (2, 3)]),
        "of one tree": SpanningTreePolytope([(0, 1), (1, 2)]),
    }


@lru_cache(maxsize=4)
def _all_trees(domain: SpanningTreePolytope) -> np.ndarray:
    n, found = int(domain.edges.max()) + 1, []
    for chosen in itertools.combinations(range(len(domain.edges)), n - 1):
        part = list(range(n))
        for u, v in domain.edges[list(chosen)]:
            part = [part[u] if p == part[v] else p for p in part]
        if len(set(part)) == 1:
            found.append(np.isin(np.arange(len(domain.edges)), chosen).astype(float))
    return np.array(found)


def _in_spanning_tree_polytope(domain: SpanningTreePolytope, rng: np.random.Generator) -> np.ndarray:
    return mixture(_all_trees(domain), rng)


ENTRY = DomainEntry(
    "spanning-tree-polytope", SpanningTreePolytope, "{x >= 0 : x(E) = n - 1, x(E[S]) <= |S| - 1}", "a minimum spanning tree",
    _spanning_tree_polytopes, _in_spanning_tree_polytope, vertices=_all_trees, arrays=("edges",), bounds=("diameter",),
)  # fmt: skip
