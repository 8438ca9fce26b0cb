"""The ball of the total variation on a graph."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples, sparse_normal
from condgrad.domains.polytopes._direction import scaled
from condgrad.domains.polytopes._graph import edge_list, incidence
from condgrad.domains.polytopes._linear_program import LinearProgram


@final
@dataclass(frozen=True, eq=False)
class GraphTotalVariationBall:
    """{x : sum_e w_e |x_u - x_v| <= r over the edges e = (u, v), mean x = mean}, on a connected graph with n nodes.

    The mean is fixed, since otherwise the set would not be bounded. The vertices have two values, on the two sides of a cut into
    connected parts. The linear oracle finds the cut by a linear program that is kept and warm-started (HiGHS,
    ``pip install 'condgrad[lp]'``), see :class:`Polytope`, and computes the vertex from the cut.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Edges of a connected graph without directions; nodes are numbered from 0.
    radius : float, default 1.0
        r.
    weights : float or array_like of float, shape (m,), default 1.0
        w, positive.
    mean : float, default 0.0
        The mean of the entries.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> square = cg.GraphTotalVariationBall([(0, 1), (1, 2), (2, 3), (3, 0)], radius=4.0)
    >>> square.lmo(np.array([1.0, 1.0, -1.0, -1.0]))
    array([-1., -1.,  1.,  1.])

    References
    ----------
    A. Chambolle, J. Darbon, On total variation minimization and surface evolution using parametric maximum flows, International
    Journal of Computer Vision 84 (2009).
    """

    edges: Any
    radius: float = 1.0
    weights: Any = 1.0
    mean: float = 0.0
    _program: Any = field(init=False, repr=False)
    _last: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        import scipy.sparse as sp
        from scipy.sparse.csgraph import breadth_first_order

        edges = edge_list(self.edges, "GraphTotalVariationBall")
        weights = checks.finite_array(self.weights, "The weights of GraphTotalVariationBall")
        if weights.ndim:
            checks.same_shape(weights.shape, (len(edges),), "The weights of GraphTotalVariationBall")
        if np.any(weights <= 0):
            raise ValueError("The weights of GraphTotalVariationBall must be positive: leave out edges of no weight.")
        weights = checks.read_only(np.array(np.broadcast_to(weights, len(edges))))
        radius = checks.positive(self.radius, "The radius of GraphTotalVariationBall")
        mean = checks.real(self.mean, "The mean of GraphTotalVariationBall")
        m, n = len(edges), int(edges.max()) + 1
        graph = sp.csr_matrix((np.ones(m), (edges[:, 0], edges[:, 1])), shape=(n, n))
        found = breadth_first_order(graph, 0, directed=False, return_predecessors=False)
        if len(found) < n:
            raise ValueError(
                f"GraphTotalVariationBall is unbounded: of {n} nodes {len(found)} are connected with node 0; connect all of them."
            )
        # variables: x, with sum 0; and the positive and the negative part of each difference, for r = 1 and weights of at least 1
        shares = weights / weights.min()
        rows = sp.block_array(
            [
                [incidence(edges, n).T, -sp.eye_array(m), sp.eye_array(m)],
                [sp.csr_array(np.ones((1, n))), None, None],
                [None, sp.csr_array(shares[None]), sp.csr_array(shares[None])],
            ]
        )
        right = np.zeros(m + 2)
        right[-1] = 1.0
        left = np.append(right[:-1], -math.inf)
        most = np.ones(n + 2 * m)
        least = np.concatenate([-np.ones(n), np.zeros(2 * m)])
        program = LinearProgram(sp.csr_array(rows), left, right, least, most, "GraphTotalVariationBall")
        checks.settle(self, edges=edges, radius=radius, weights=weights, mean=mean, _program=program)
        checks.settle(self, _last=int(found[-1]))

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self.edges.max()) + 1,)

    @property
    def diameter(self) -> float:
        """An upper bound: a cut into halves through one edge of the smallest weight."""
        n = self.shape[0]
        return 2 * self.radius / float(self.weights.min()) * math.sqrt((n // 2) * (n - n // 2) / n)

    @property
    def max_norm(self) -> float:
        """An upper bound, by the same."""
        return math.hypot(math.sqrt(self.shape[0]) * self.mean, self.diameter / 2)

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """The vertex with two values that minimises <direction, x>."""
        g, n = scaled(direction, self.shape, "GraphTotalVariationBall"), self.shape[0]
        g = g - g.mean()
        x = self._program.minimiser(np.concatenate([g, np.zeros(2 * len(self.edges))]))[:n]
        top, bottom = float(x.max()), float(x.min())
        upper = x > (top + bottom) / 2
        if (
            top - bottom <= 1e-6
        ):  # all points are minimal: the others stay connected without the last node that was found
            upper = np.arange(n) == self._last
        return self._step(upper)

    def _step(self, upper: np.ndarray) -> np.ndarray:
        """The vertex with the larger value on these nodes."""
        cut = float(self.weights[upper[self.edges[:, 0]] != upper[self.edges[:, 1]]].sum())
        n, k = len(upper), int(upper.sum())
        return np.where(upper, self.mean + self.radius / cut * (n - k) / n, self.mean - self.radius / cut * k / n)

    def start(self) -> np.ndarray:
        """The constant."""
        return np.full(self.shape, self.mean)

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether the variation and the mean are as required, up to ``tolerance`` times r, and rounding."""
        x = checks.point(x, self.shape, "GraphTotalVariationBall")
        least, most = float(self.weights.min()), float(self.weights.sum())
        slack = tolerance * self.radius + 8 * np.finfo(float).eps * most * (abs(self.mean) + self.radius / least)
        variation = float(self.weights @ np.abs(x[self.edges[:, 0]] - x[self.edges[:, 1]]))
        return bool(variation <= self.radius + slack and abs(x.mean() - self.mean) <= slack / least)


def _graph_total_variation_balls() -> Examples:
    return {
        "": GraphTotalVariationBall([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], 2.0),
        "with weights": GraphTotalVariationBall([(0, 1), (1, 2), (1, 3)], 0.5, [1.0, 2.5, 0.3], mean=2.0),
    }


def _in_graph_total_variation_ball(domain: GraphTotalVariationBall, rng: np.random.Generator) -> np.ndarray:
    x = sparse_normal(domain.shape, rng)
    u, v = domain.edges.T
    variation = float(domain.weights @ np.abs(x[u] - x[v])) or 1.0
    return domain.mean + domain.radius * rng.choice([1.0, rng.random()]) * (x - x.mean()) / variation


def _graph_total_variation_minimum(domain: GraphTotalVariationBall, g: np.ndarray) -> float:
    sides = list(itertools.product([False, True], repeat=domain.shape[0]))[1:-1]
    return min(float(g @ domain._step(np.array(side))) for side in sides)


ENTRY = DomainEntry(
    "graph-total-variation-ball", GraphTotalVariationBall, "{x : sum_e w_e |x_u - x_v| <= r, mean x = c}", "a cut (HiGHS)",
    _graph_total_variation_balls, _in_graph_total_variation_ball, _graph_total_variation_minimum,
    arrays=("edges", "weights"), bounds=("diameter", "max_norm"),
)  # fmt: skip
