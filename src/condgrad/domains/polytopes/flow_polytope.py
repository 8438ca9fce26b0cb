"""The polytope of flows with capacities on a directed graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture, vertices_of
from condgrad.domains.polytopes._direction import scaled
from condgrad.domains.polytopes._graph import edge_list, incidence
from condgrad.domains.polytopes._linear_program import LinearProgram, whole
from condgrad.points import SparseArray


@final
@dataclass(frozen=True, eq=False)
class FlowPolytope:
    """{x : 0 <= x <= capacity on the edges, what leaves node v minus what enters it is supply[v]}.

    The linear oracle is a flow of minimum cost, by a linear program that is kept and warm-started (HiGHS,
    ``pip install 'condgrad[lp]'``); see :class:`Polytope`. Where supplies and capacities are whole numbers, so are the vertices.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Directed edges (from, to); nodes are numbered from 0. Two edges may connect the same nodes.
    supply : array_like of float, shape (n,)
        What each node sends (positive) or takes (negative); its sum is 0.
    capacity : float or array_like of float, shape (m,), default 1.0
        The largest flow on each edge.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> flows = cg.FlowPolytope([(0, 1), (1, 2), (0, 2), (2, 1)], supply=[2.0, 0.0, -2.0], capacity=1.5)
    >>> flows.lmo(np.array([1.0, 1.0, 1.0, 1.0]))
    array([0.5, 0.5, 1.5, 0. ])

    References
    ----------
    R. K. Ahuja, T. L. Magnanti, J. B. Orlin, Network Flows, Prentice Hall 1993.
    """

    edges: Any
    supply: Any
    capacity: Any = 1.0
    _program: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        edges = edge_list(self.edges, "FlowPolytope")
        supply = checks.finite_array(self.supply, "The supply of FlowPolytope")
        capacity = checks.finite_array(self.capacity, "The capacity of FlowPolytope", "flows need finite capacities")
        nodes = int(edges.max()) + 1
        if supply.ndim != 1 or len(supply) < nodes:
            raise ValueError(
                f"The supply of FlowPolytope has shape {supply.shape}, but a number for each of {nodes} nodes was expected."
            )
        if capacity.ndim:
            checks.same_shape(capacity.shape, (len(edges),), "The capacity of FlowPolytope")
        if np.any(capacity < 0):
            raise ValueError("FlowPolytope is an empty set: a capacity is negative; give numbers of at least 0.")
        if abs(supply.sum()) > 1e-9 * np.abs(supply).sum():
            raise ValueError(f"FlowPolytope is an empty set: the supplies sum to {supply.sum():g}, 0 was expected.")
        capacity = checks.read_only(np.array(np.broadcast_to(capacity, len(edges))))
        integral = whole(supply) and whole(capacity) and bool(np.all(supply == np.rint(supply)))
        integral = integral and bool(np.all(capacity == np.rint(capacity)))
        rows = incidence(edges, len(supply))
        program = LinearProgram(rows, supply, supply, np.zeros(len(edges)), capacity, "FlowPolytope", integral)
        checks.settle(self, edges=edges, supply=supply, capacity=capacity, _program=program)

    @classmethod
    def unit(cls, edges: Any, source: int, target: int, capacity: Any = 1.0) -> FlowPolytope:
        """Flows of one unit from a source to a target, in a graph that may have cycles.

        Parameters
        ----------
        edges : array_like of int, shape (m, 2)
            Directed edges (from, to).
        source, target : int
            Two nodes.
        capacity : float or array_like of float, shape (m,), default 1.0
            The largest flow on each edge.

        Returns
        -------
        FlowPolytope
        """
        pairs = edge_list(edges, "FlowPolytope")
        ends = [checks.whole(end, "The source and the target of FlowPolytope", 0) for end in (source, target)]
        supply = np.zeros(max(int(pairs.max()), *ends) + 1)
        supply[ends[0]] += 1.0
        supply[ends[1]] -= 1.0
        return cls(pairs, supply, capacity)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.edges),)

    @property
    def diameter(self) -> float:
        """An upper bound, by the capacities."""
        return float(np.linalg.norm(self.capacity))

    @property
    def max_norm(self) -> float:
        """An upper bound, by the capacities."""
        return float(np.linalg.norm(self.capacity))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """A flow of minimum cost <direction, x>."""
        return self._program.minimiser(scaled(direction, self.shape, "FlowPolytope"))

    def atom(self, direction: np.ndarray) -> SparseArray:
        """The answer of ``lmo`` as the edges with a flow and their flows."""
        flow = self.lmo(direction)
        used = np.flatnonzero(flow)
        return SparseArray(used, flow[used], self.shape)

    def start(self) -> np.ndarray:
        """The middle between the vertices that minimise and maximise a fixed random direction."""
        return self._program.middle

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether x is such a flow, each condition up to ``tolerance`` times the diameter, and rounding."""
        x = checks.point(x, self.shape, "FlowPolytope")
        if not np.isfinite(x).all():
            return False
        slack = tolerance * self.diameter
        D = incidence(self.edges, len(self.supply))
        room = slack * np.sqrt(np.diff(D.indptr)) + 8 * np.finfo(float).eps * (abs(D) @ np.abs(x) + np.abs(self.supply))
        inside = np.all((x >= -slack) & (x <= self.capacity + slack))
        return bool(inside and np.all(np.abs(D @ x - self.supply) <= room))


def _flow_polytopes() -> Examples:
    ring = [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1)]
    return {
        "": FlowPolytope([(0, 1), (1, 2), (0, 2), (2, 1), (0, 2), (2, 0)], [2.0, 0.0, -2.0], [2, 1, 1, 2, 2, 1]),
        "of fractions": FlowPolytope(ring, [0.7, -0.2, -0.5], [0.5, 0.3, 0.25, 1.0, 0.4]),
        "of one unit": FlowPolytope.unit(ring, 0, 1),
    }


@lru_cache(maxsize=4)
def _extreme_flows(domain: FlowPolytope) -> np.ndarray:
    none = np.zeros((0, len(domain.edges)))
    D = incidence(domain.edges, len(domain.supply)).toarray()
    return vertices_of(none, [], D, domain.supply, np.zeros(domain.shape), domain.capacity)


def _in_flow_polytope(domain: FlowPolytope, rng: np.random.Generator) -> np.ndarray:
    return mixture(_extreme_flows(domain), rng)


def _flow_minimum(domain: FlowPolytope, g: np.ndarray) -> float:
    return float((_extreme_flows(domain) @ g).min())


ENTRY = DomainEntry(
    "flow-polytope", FlowPolytope, "{x : 0 <= x <= capacity, out(v) - in(v) = supply(v)}", "a flow of minimum cost (HiGHS)",
    _flow_polytopes, _in_flow_polytope, _flow_minimum, arrays=("edges", "supply", "capacity"),
    bounds=("diameter", "max_norm"),
)  # fmt: skip
