"""The polytope of the matchings of a bipartite graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture
from condgrad.domains.polytopes._graph import pair_list
from condgrad.domains.polytopes._zero_one import ZeroOnePolytope
from condgrad.domains.polytopes.matching_polytope import matchings_of


class _ByRows(NamedTuple):
    """The edges in the order of a sparse matrix: by their rows, and within a row by their columns."""

    order: np.ndarray
    """Their positions in the list that was given."""
    keys: np.ndarray
    """row * number of columns + column, increasing."""
    columns: np.ndarray
    starts: np.ndarray
    """Where the edges of each row begin, and where the last ones end."""


@final
@dataclass(frozen=True, eq=False)
class BipartiteMatchingPolytope(ZeroOnePolytope):
    """{x : x >= 0, the edges at each node sum to at most 1} on a bipartite graph, or to 1 where ``perfect``.

    The vertices are the matchings. The linear oracle is a sparse assignment problem, solved exactly by scipy's
    ``min_weight_full_bipartite_matching``. For dense graphs :class:`Birkhoff` and :class:`PartialAssignment` are faster.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Different pairs (row, column); rows and columns are numbered from 0, each for themselves.
    perfect : bool, default False
        Whether each row and each column is matched.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> matchings = cg.BipartiteMatchingPolytope([(0, 0), (0, 1), (1, 0), (2, 1)])
    >>> matchings.lmo(np.array([-3.0, -2.0, -2.0, 1.0]))
    array([0., 1., 1., 0.])

    References
    ----------
    R. Jonker, A. Volgenant, A shortest augmenting path algorithm for dense and sparse linear assignment problems, Computing 38
    (1987).
    """

    edges: Any
    perfect: bool = False

    def __post_init__(self) -> None:
        edges = pair_list(self.edges, "BipartiteMatchingPolytope")
        if len(np.unique(edges, axis=0)) < len(edges):
            raise ValueError("The edges of BipartiteMatchingPolytope contain a pair twice: remove one of them.")
        checks.yes_or_no(self.perfect, "The perfect of BipartiteMatchingPolytope")
        checks.settle(self, edges=edges)
        rows, columns = self._sizes
        if self.perfect and not self._most == rows == columns:
            raise ValueError(
                f"BipartiteMatchingPolytope is an empty set: of {rows} rows and {columns} columns at most {self._most} pairs "
                "can be matched; add edges, or leave perfect=False."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.edges),)

    @property
    def _sizes(self) -> tuple[int, int]:
        rows, columns = self.edges.max(axis=0) + 1
        return int(rows), int(columns)

    @cached_property
    def _most(self) -> int:
        """Edges of a largest matching."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import maximum_bipartite_matching

        graph = sp.csr_matrix((np.ones(len(self.edges)), (self.edges[:, 0], self.edges[:, 1])), shape=self._sizes)
        return int(np.sum(maximum_bipartite_matching(graph) >= 0))

    @cached_property
    def _by_rows(self) -> _ByRows:
        rows, columns = self._sizes
        keys = self.edges @ [columns, 1]
        order = np.argsort(keys)
        starts = np.searchsorted(self.edges[order, 0], np.arange(rows + 1))
        return _ByRows(order, keys[order], self.edges[order, 1], starts)

    @property
    def diameter(self) -> float:
        """An upper bound: two largest matchings that share no edge."""
        return math.sqrt(min(2 * self._most, len(self.edges)))

    @property
    def max_norm(self) -> float:
        """Exact: that of a largest matching."""
        return math.sqrt(self._most)

    def _chosen(self, direction: np.ndarray) -> np.ndarray:
        import scipy.sparse as sp
        from scipy.sparse.csgraph import min_weight_full_bipartite_matching

        (rows, columns), by_rows = self._sizes, self._by_rows
        kept, ends, starts = by_rows.columns, by_rows.columns, by_rows.starts
        # 2 more for each row changes nothing, and scipy takes 0 for no edge
        costs = direction[by_rows.order] + 2.0
        if (
            not self.perfect
        ):  # a row that is not matched takes a column of its own, at no cost: the last entry of the row
            useful = costs < 2.0
            before = np.concatenate([[0], np.cumsum(useful)])[starts]
            kept = np.insert(ends[useful], before[1:], columns + np.arange(rows))
            costs = np.insert(costs[useful], before[1:], 2.0)
            starts = before + np.arange(rows + 1)
        wide = columns if self.perfect else columns + rows
        graph = sp.csr_matrix((costs, kept.astype(np.int32), starts.astype(np.int32)), shape=(rows, wide))
        i, j = min_weight_full_bipartite_matching(graph)
        matched = j < columns
        return by_rows.order[np.searchsorted(by_rows.keys, i[matched] * columns + j[matched])]

    def start(self) -> np.ndarray:
        """Edges with equal parts of what their fuller node allows; where ``perfect``, the mean of some vertices."""
        if self.perfect:
            m = len(self.edges)
            trials = [np.arange(m), -np.arange(m), *(-np.eye(m) if m <= 100 else ())]
            return np.mean([self.lmo(np.asarray(g, dtype=float)) for g in trials], axis=0)
        degrees = [np.bincount(end)[end] for end in self.edges.T]
        return 1 / np.maximum(*degrees)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether no entry is below -tolerance and the sums at the nodes are as required, each up to the tolerance."""
        x = self._point(x)
        sums = np.concatenate([np.bincount(end, x, size) for end, size in zip(self.edges.T, self._sizes, strict=True)])
        within = np.abs(sums - 1) <= tolerance if self.perfect else sums <= 1 + tolerance
        return bool(np.all(x >= -tolerance) and np.all(within))


def _bipartite_matching_polytopes() -> Examples:
    return {
        "": BipartiteMatchingPolytope([(0, 0), (0, 1), (1, 0), (2, 1), (2, 2)]),
        "of perfect ones": BipartiteMatchingPolytope(
            [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 1), (1, 2)], perfect=True
        ),
    }


@lru_cache(maxsize=4)
def _all_bipartite_matchings(domain: BipartiteMatchingPolytope) -> np.ndarray:
    found = matchings_of(domain.edges + np.array([0, domain._sizes[0]]))
    return found[found.sum(axis=1) == domain._sizes[0]] if domain.perfect else found


def _in_bipartite_matching_polytope(domain: BipartiteMatchingPolytope, rng: np.random.Generator) -> np.ndarray:
    return mixture(_all_bipartite_matchings(domain), rng)


ENTRY = DomainEntry(
    "bipartite-matching-polytope", BipartiteMatchingPolytope, "{x >= 0 : x(edges at v) <= 1}, on a bipartite graph",
    "a matching, by a sparse assignment problem",
    _bipartite_matching_polytopes, _in_bipartite_matching_polytope, vertices=_all_bipartite_matchings, arrays=("edges",),
    bounds=("diameter",),
)  # fmt: skip
