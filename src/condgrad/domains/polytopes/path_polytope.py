"""The polytope of paths between two nodes of a directed graph without cycles."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from condgrad import checks, kernels
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._graph import edge_list, incidence
from condgrad.domains.polytopes._zero_one import ZeroOnePolytope, between_0_and_1

MIN_COMPILED_EDGES = 2_000
"""A sweep over fewer edges is a loop in Python, which takes less than a millisecond and compiles nothing."""


class _Layer(NamedTuple):
    """Edges into the nodes whose longest path from the source has the same length, grouped by these nodes."""

    edges: slice
    """Where they stand in the sorted list."""
    starts: np.ndarray
    """Where the edges of each node begin within the layer."""
    heads: np.ndarray
    """The nodes."""


@final
@dataclass(frozen=True, eq=False)
class PathPolytope(ZeroOnePolytope):
    """{x : x >= 0 on the edges, one unit flows from source to target}, the convex hull of the paths of a graph without cycles.

    The linear oracle is a shortest path, with costs of any sign, by one sweep over the edges in topological order. In a graph
    with cycles a flow without capacities is not bounded: use :class:`FlowPolytope`.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Directed edges (from, to); nodes are numbered from 0. Two edges may connect the same nodes.
    source, target : int
        Where the paths begin and end.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> paths = cg.PathPolytope([(0, 1), (1, 3), (0, 2), (2, 3), (1, 2)], source=0, target=3)
    >>> paths.lmo(np.array([1.0, 4.0, 3.0, 1.0, -1.0]))
    array([1., 0., 0., 1., 1.])

    References
    ----------
    T. H. Cormen, C. E. Leiserson, R. L. Rivest, C. Stein, Introduction to Algorithms, section 24.2, MIT Press 2009.
    """

    edges: Any
    source: int
    target: int
    _order: Any = field(init=False, repr=False)
    _layers: Any = field(init=False, repr=False)
    _into: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        edges = edge_list(self.edges, "PathPolytope")
        source, target = (
            checks.whole(getattr(self, end), f"The {end} of PathPolytope", 0) for end in ("source", "target")
        )
        nodes = int(edges.max()) + 1
        if source == target or max(source, target) >= nodes:
            raise ValueError(
                f"PathPolytope got source {source} and target {target}: give two different nodes of the {nodes} in the edges."
            )
        useful = _reached(edges, source, nodes) & _reached(edges[:, ::-1], target, nodes)
        if not useful[source]:
            raise ValueError(f"PathPolytope is an empty set: no path leads from {source} to {target}; add edges.")
        kept = np.flatnonzero(useful[edges].all(axis=1))
        depth = _depths(edges[kept], nodes, int(useful.sum()))
        if depth is None:
            raise ValueError(
                "PathPolytope got a graph with a cycle between source and target, in which flows are not bounded: use "
                "FlowPolytope with capacities."
            )
        heads = edges[kept, 1]
        order = kept[np.lexsort((kept, heads, depth[heads]))]
        heads = edges[order, 1]
        cuts = np.flatnonzero(np.diff(depth[heads], prepend=-1, append=-1))
        layers, into = [], np.zeros((nodes, 2), dtype=np.int64)
        for begin, end in itertools.pairwise(cuts):
            starts = np.flatnonzero(np.diff(heads[begin:end], prepend=-1))
            layers.append(_Layer(slice(int(begin), int(end)), starts, heads[begin:end][starts]))
            into[layers[-1].heads] = np.stack([begin + starts, np.append(begin + starts[1:], end)], axis=1)
        checks.settle(self, edges=edges, source=source, target=target, _order=order, _layers=tuple(layers), _into=into)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.edges),)

    @property
    def _longest(self) -> int:
        return len(self._layers)

    @property
    def diameter(self) -> float:
        """An upper bound: two paths of the largest number of edges that share none; 0 where there is only one path."""
        return math.sqrt(min(2 * self._longest, len(self._order))) if len(self._order) > self._longest else 0.0

    @property
    def max_norm(self) -> float:
        """Exact: the path of the largest number of edges."""
        return math.sqrt(self._longest)

    def _chosen(self, direction: np.ndarray) -> np.ndarray:
        costs = direction[self._order]
        if len(costs) < MIN_COMPILED_EDGES:
            last = self._last_edges(costs.tolist())
        else:
            last = kernels.shortest_paths(self.source, self._nodes, self._into, self._tails, costs).tolist()
        tails, node, path = self._lists[0], self.target, []
        while node != self.source:
            path.append(last[node])
            node = tails[last[node]]
        return self._order[path]

    def _last_edges(self, costs: list[float]) -> list[int]:
        """The result of :func:`condgrad.kernels.shortest_paths`, without a compiler."""
        tails, nodes = self._lists
        distances, last = [math.inf] * len(self._into), [0] * len(self._into)
        distances[self.source] = 0.0
        for node, begin, end in nodes:
            best = math.inf
            for edge in range(begin, end):
                length = distances[tails[edge]] + costs[edge]
                if length < best:
                    best, last[node] = length, edge
            distances[node] = best
        return last

    @cached_property
    def _tails(self) -> np.ndarray:
        return self.edges[self._order, 0]

    @cached_property
    def _nodes(self) -> np.ndarray:
        """The nodes behind the source, in topological order."""
        return np.concatenate([layer.heads for layer in self._layers])

    @cached_property
    def _lists(self) -> tuple[list[int], list[tuple[int, int, int]]]:
        """Tails of the sorted edges, and the nodes in this order with the first edge into each and the one after the last."""
        return self._tails.tolist(), [(node, *self._into[node].tolist()) for node in self._nodes.tolist()]

    def _split(self, weights: np.ndarray) -> np.ndarray:
        """The flow that leaves each node over its edges in proportion to their weights."""
        tails, share = self._tails, weights[self._order]
        share = share / np.bincount(tails, share)[tails]
        through = np.zeros(int(self.edges.max()) + 1)
        through[self.source] = 1.0
        flow = np.zeros(self.shape)
        for edges, starts, heads in self._layers:
            moved = through[tails[edges]] * share[edges]
            flow[self._order[edges]] = moved
            through[heads] = np.add.reduceat(moved, starts)
        return flow

    def start(self) -> np.ndarray:
        """The flow that leaves each node in equal parts."""
        return self._split(np.ones(self.shape))

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether x is a flow of one unit, each condition up to the tolerance."""
        x = self._point(x)
        if not between_0_and_1(x, tolerance):
            return False
        nodes = int(self.edges.max()) + 1
        supply = np.zeros(nodes)
        supply[[self.source, self.target]] = 1.0, -1.0
        elsewhere = np.ones(len(x), dtype=bool)
        elsewhere[self._order] = False  # edges on no path
        kept = np.all(
            np.abs(incidence(self.edges, nodes) @ x - supply) <= tolerance * (1 + _degrees(self.edges, nodes))
        )
        return bool(kept and np.all(np.abs(x[elsewhere]) <= tolerance))


def _degrees(edges: np.ndarray, nodes: int) -> np.ndarray:
    return np.bincount(edges.ravel(), minlength=nodes)


def _reached(edges: np.ndarray, source: int, nodes: int) -> np.ndarray:
    """Which nodes a path from the source reaches."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import breadth_first_order

    graph = sp.csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(nodes, nodes))
    found = np.zeros(nodes, dtype=bool)
    found[breadth_first_order(graph, source, return_predecessors=False)] = True
    return found


def _depths(edges: np.ndarray, nodes: int, expected: int) -> np.ndarray | None:
    """The largest number of edges on a path into each node; None if there is a cycle."""
    order = np.argsort(edges[:, 0], kind="stable")
    heads, first = edges[order, 1], np.searchsorted(edges[order, 0], np.arange(nodes + 1))
    waiting = np.bincount(edges[:, 1], minlength=nodes)
    depth = np.zeros(nodes, dtype=np.int64)
    ready, done = np.flatnonzero((waiting == 0) & (first[1:] > first[:-1])), 0
    for level in range(nodes):
        depth[ready] = level
        done += len(ready)
        left = np.concatenate([heads[first[node] : first[node + 1]] for node in ready]) if len(ready) else ready
        np.subtract.at(waiting, left, 1)
        ready = np.unique(left)
        ready = ready[waiting[ready] == 0]
        if not len(ready):
            break
    return depth if done == expected else None


def _path_polytopes() -> Examples:
    grid = [(3 * i + j, 3 * i + j + 1) for i in range(3) for j in range(2)]
    grid += [(3 * i + j, 3 * i + j + 3) for i in range(2) for j in range(3)]
    return {
        "": PathPolytope([(0, 1), (1, 3), (0, 2), (2, 3), (1, 2), (0, 3), (3, 4), (5, 3)], 0, 3),
        "of a grid": PathPolytope(grid, 0, 8),
        "of parallel edges": PathPolytope([(1, 0), (1, 0), (1, 0)], 1, 0),
        "of one path": PathPolytope([(0, 1), (1, 2)], 0, 2),
    }


@lru_cache(maxsize=4)
def _all_paths(domain: PathPolytope) -> np.ndarray:
    found: list[np.ndarray] = []
    open_paths: list[tuple[int, tuple[int, ...]]] = [(domain.source, ())]
    while open_paths:
        node, path = open_paths.pop()
        if node == domain.target:
            found.append(np.isin(np.arange(len(domain.edges)), path).astype(float))
            continue
        open_paths += [(int(to), (*path, i)) for i, (begin, to) in enumerate(domain.edges) if begin == node]
    return np.array(found)


def _in_path_polytope(domain: PathPolytope, rng: np.random.Generator) -> np.ndarray:
    return domain._split(rng.gamma(0.5, size=domain.shape) + 1e-9)


ENTRY = DomainEntry(
    "path-polytope", PathPolytope, "{x >= 0 : one unit flows from s to t, without cycles}", "a shortest path, by a sweep",
    _path_polytopes, _in_path_polytope, vertices=_all_paths, arrays=("edges",), bounds=("diameter",),
)  # fmt: skip
