"""Linear oracles against the best alternative that a user has: numpy, scipy, HiGHS, POT, networkx. Run by `make bench-sets`.

python -m benchmarks.sets [--quick] [--check] [--out DIR] [--largest N] [--seconds S] [--only SET ...]

A row is a set, a size and an alternative; both answer the same random directions in turn. The table has the smallest CPU time of
each, and the median ratio over the rounds (for linear programs the mean over changing directions, and its ratio). ``passes`` is
the time of the oracle (of its structured atom, if it has one) in units of ``np.abs(x).max()`` over as many numbers. Both answers
must have the same inner product with the direction. ``verdict`` says "faster", "tie" (within 5 %), "overhead" (slower by less
than 50 microseconds a call, which the checks of the input take) or "slower"; reasons stand below the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse.csgraph import dijkstra, min_weight_full_bipartite_matching, minimum_spanning_tree
from scipy.sparse.linalg import eigsh, svds

from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad.domains import DOMAINS

Rival = Callable[[np.ndarray], Any]
"""direction -> a minimiser, or the minimum itself."""
LARGE, MIDDLE, MATRIX = (1_000, 100_000, 10_000_000), (1_000, 100_000, 1_000_000), (50, 200, 400)
QUICK = {LARGE: (1_000,), MIDDLE: (1_000,), MATRIX: (20,)}
TIE = 0.95
"""'Never slower' grants the clock 5 %: a ratio from here to 1 / TIE is a tie."""
OVERHEAD = 50e-6
"""Seconds that the checks of an input may take, which alternatives do not make: with less than this between the two, no claim is
made."""


@dataclass(frozen=True)
class Case:
    """One set against one alternative."""

    name: str
    make: Callable[[Callable[..., Any], int], Any]
    """(factory, n) -> the set"""
    rival: Callable[[Any], Rival]
    by: str
    sizes: tuple[int, ...] = LARGE
    required: float = TIE
    """How many times as fast the oracle must be."""
    program: bool = False
    """Whether the oracle is a linear program that starts where the last one ended: directions then change from call to call."""


# ----------------------------------------------------------------------------------------------------- alternatives


def put(shape: tuple[int, ...], where: Any, what: Any) -> np.ndarray:
    """Zeros, and ``what`` at the flat indices ``where``."""
    x = np.zeros(shape)
    x.reshape(-1)[where] = what
    return x


def largest(g: np.ndarray, k: int) -> np.ndarray:
    return np.argpartition(np.abs(g), -k)[-k:]


def smallest(S: Any) -> Rival:
    return lambda g: put(S.shape, np.argpartition(g, S.k)[: S.k], S.radius)


def opposite_order(S: Any) -> Rival:
    falling = np.sort(S.values)[::-1]
    return lambda g: put(S.shape, np.argsort(g), falling)


def k_support(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        kept = largest(g, S.k)
        return put(S.shape, kept, -S.radius * g[kept] / np.linalg.norm(g[kept]))

    return answer


def k_sparse(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        kept = largest(g, S.k)
        return put(S.shape, kept, -S.radius * np.sign(g[kept]))

    return answer


def owl(S: Any) -> Rival:
    sums = np.cumsum(np.sort(S.weights)[::-1])

    def answer(g: np.ndarray) -> np.ndarray:
        order = np.argsort(-np.abs(g))
        best = int(np.argmax(np.cumsum(np.abs(g[order])) / sums))
        kept = order[: best + 1]
        return put(S.shape, kept, -S.radius / sums[best] * np.sign(g[kept]))

    return answer


def weighted_l1(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        i = np.argmax(np.abs(g) / S.weights)
        return put(S.shape, i, -S.radius / S.weights[i] * np.sign(g[i]))

    return answer


def l1(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        i = np.argmax(np.abs(g))
        return put(S.shape, i, -S.radius * np.sign(g[i]))

    return answer


def lp(S: Any) -> Rival:
    q = S.p / (S.p - 1)
    return lambda g: -S.radius * np.sign(g) * np.abs(g) ** (q - 1) / np.sum(np.abs(g) ** q) ** (1 / S.p)


def rows_l2(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        norms = np.sqrt(np.einsum("ij,ij->i", g, g))
        i = np.argmax(norms)
        x = np.zeros(S.shape)
        x[i] = -S.radius * g[i] / norms[i]
        return x

    return answer


def rows_min(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        x = np.zeros(S.shape)
        x[np.arange(len(g)), g.argmin(axis=1)] = S.radius
        return x

    return answer


def capped(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        order = np.argsort(g)
        filled = np.minimum(np.cumsum(S.upper[order]), S.radius)
        return put(S.shape, order, np.diff(filled, prepend=0.0))

    return answer


def monotone(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        tails = np.append(np.cumsum(g[::-1])[::-1], 0.0)
        return np.where(np.arange(len(g)) >= tails.argmin(), S.upper, S.lower)

    return answer


def jump(S: Any) -> Rival:
    """One jump of the total-variation ball, where the cumulative sum of the centred direction is largest."""

    def answer(g: np.ndarray) -> np.ndarray:
        n = len(g)
        sums = np.cumsum(g - g.mean())[:-1]
        i = int(np.argmax(np.abs(sums))) + 1
        x = np.zeros(n)
        x[:i] = S.radius * (1 - i / n)
        x[i:] = -S.radius * i / n
        return (x if sums[i - 1] < 0 else -x) + S.mean

    return answer


def assignment(S: Any) -> Rival:
    return lambda g: put(S.shape, np.ravel_multi_index(linear_sum_assignment(g), S.shape), 1.0)


def top_pair(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        u, _, vt = svds(g, k=1)
        return -S.radius * u @ vt

    return answer


def polar(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        u, _, vt = np.linalg.svd(g, full_matrices=False)
        return -S.radius * u @ vt

    return answer


def lowest_pair(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        _, v = eigsh((g + g.T) / 2, k=1, which="SA")
        return S.radius * v @ v.T

    return answer


def lowest_space(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        v = np.linalg.eigh((g + g.T) / 2)[1][:, : S.rank]
        return v @ v.T

    return answer


def emd(S: Any) -> Rival:
    import ot

    return lambda g: ot.emd(S.row_sums, S.column_sums, g)


def kruskal(S: Any) -> Rival:
    """scipy's spanning tree; weights are shifted, as it takes 0 for no edge."""
    u, v = np.asarray(S.edges).T
    n = int(max(u.max(), v.max())) + 1

    def answer(g: np.ndarray) -> float:
        low = g.min() - 1.0
        tree = minimum_spanning_tree(sparse.csr_array((g - low, (u, v)), shape=(n, n)))
        return float(tree.sum() + low * (n - 1))

    return answer


def dag_path(S: Any) -> Rival:
    """scipy's Dijkstra. Edges lead from lower to higher numbers, so that (v - u) times a number, which adds the same to all paths
    between two nodes, makes the weights positive. (networkx takes minutes for 10,000 nodes: its Bellman-Ford method revisits
    nodes again and again where weights are negative.)"""
    u, v = np.asarray(S.edges).T
    n = int(v.max()) + 1

    def answer(g: np.ndarray) -> float:
        lift = 1.0 - min(float((g / (v - u)).min()), 0.0)
        graph = sparse.csr_array((g + lift * (v - u), (u, v)), shape=(n, n))
        length = dijkstra(graph, indices=S.source)[S.target]
        return float(length - lift * (S.target - S.source))

    return answer


def cold_linprog(S: Any) -> Rival:
    bounds = np.column_stack([np.broadcast_to(S.lower, S.shape), np.broadcast_to(S.upper, S.shape)])

    def answer(g: np.ndarray) -> float:
        found = linprog(g, A_ub=S.A, b_ub=S.b, A_eq=S.C, b_eq=S.d, bounds=bounds, method="highs")
        return float(found.fun)

    return answer


def best_entries(S: Any) -> Rival:
    """The l1 ball cut by a box around 0: entries at their bounds, steepest first, until the radius is used up."""

    def answer(g: np.ndarray) -> np.ndarray:
        towards = np.where(g > 0, S.lower, S.upper)
        order = np.argsort(-np.abs(g))
        used = np.diff(np.minimum(np.cumsum(np.abs(towards[order])), S.radius), prepend=0.0)
        return put(S.shape, order, np.sign(towards[order]) * used)

    return answer


def rows_l1(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        i = np.abs(g).sum(axis=1).argmax()
        x = np.zeros(S.shape)
        x[i] = -S.radius * np.sign(g[i])
        return x

    return answer


def windows(S: Any) -> Rival:
    """Groups of 20 neighbours that overlap by 10."""

    def answer(g: np.ndarray) -> np.ndarray:
        sums = np.add.reduceat(g**2, np.arange(0, len(g), 10))
        i = int((sums[:-1] + sums[1:]).argmax()) * 10
        x = np.zeros(S.shape)
        x[i : i + 20] = -S.radius * g[i : i + 20] / np.linalg.norm(g[i : i + 20])
        return x

    return answer


def sparse_matching(S: Any) -> Rival:
    """Perfect matchings by scipy; weights are shifted, as it takes 0 for no edge."""
    u, v = np.asarray(S.edges).T
    n = int(u.max()) + 1

    def answer(g: np.ndarray) -> float:
        low = g.min() - 1.0
        i, j = min_weight_full_bipartite_matching(costs := sparse.csr_matrix((g - low, (u, v)), shape=(n, n)))
        return float(costs[i, j].sum() + low * n)

    return answer


def padded_assignment(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        i, j = linear_sum_assignment(np.minimum(g, 0.0))
        return put(S.shape, i * S.shape[1] + j, g[i, j] < 0)

    return answer


def blossom(S: Any) -> Rival:
    import networkx as nx

    edges = np.asarray(S.edges).tolist()

    def answer(g: np.ndarray) -> float:
        graph = nx.Graph()
        graph.add_weighted_edges_from((u, v, -c) for (u, v), c in zip(edges, g.tolist(), strict=True) if c < 0)
        return -float(sum(graph.edges[pair]["weight"] for pair in nx.max_weight_matching(graph)))

    return answer


def cold_flow(S: Any) -> Rival:
    (u, v), m = np.asarray(S.edges).T, len(S.edges)
    C = sparse.csr_array((np.repeat([1.0, -1.0], m), (np.concatenate([u, v]), np.tile(np.arange(m), 2))))
    bounds = np.column_stack([np.zeros(m), S.capacity])
    return lambda g: float(linprog(g, A_eq=C, b_eq=S.supply, bounds=bounds, method="highs").fun)


def cold_cut(S: Any) -> Rival:
    """min <g, x> over sum |x_u - x_v| <= r with mean 0: x and the parts of the differences are the variables."""
    (u, v), m, n = np.asarray(S.edges).T, len(S.edges), S.shape[0]
    rows = np.arange(m)
    D = sparse.csr_array((np.repeat([1.0, -1.0], m), (np.tile(rows, 2), np.concatenate([u, v]))), shape=(m, n))
    C = sparse.block_array([[D, -sparse.eye_array(m), sparse.eye_array(m)], [np.ones((1, n)), None, None]]).tocsr()
    A = sparse.csr_array(np.concatenate([np.zeros(n), np.ones(2 * m)])[None])
    bounds = [(None, None)] * n + [(0, None)] * (2 * m)

    def answer(g: np.ndarray) -> float:
        costs = np.concatenate([g, np.zeros(2 * m)])
        found = linprog(costs, A_ub=A, b_ub=[S.radius], A_eq=C, b_eq=np.zeros(m + 1), bounds=bounds, method="highs")
        return float(found.fun)

    return answer


def greedy(S: Any) -> Rival:
    """Edmonds' algorithm for a concave function of the number of elements: a sort."""
    gains = np.diff(np.sqrt(np.arange(S.shape[0] + 1)))
    return lambda g: put(S.shape, np.argsort(g), gains)


def uniform_base(S: Any) -> Rival:
    return lambda g: put(S.shape, np.argpartition(g, S.size)[: S.size], 1.0)


def greedy_base(S: Any) -> Rival:
    """Edmonds' algorithm, which asks for the rank with each element, until it is full."""

    def answer(g: np.ndarray) -> np.ndarray:
        taken: list[int] = []
        for element in np.argsort(g).tolist():
            if len(taken) == S.size:
                break
            if S.rank(np.array([*taken, element])) > len(taken):
                taken.append(element)
        return put(S.shape, taken, 1.0)

    return answer


def by_svd(values: Callable[[Any, np.ndarray], np.ndarray]) -> Callable[[Any], Rival]:
    """A full SVD by numpy; ``values`` maps singular values to those of the answer."""

    def rival(S: Any) -> Rival:
        def answer(g: np.ndarray) -> np.ndarray:
            u, sigma, vt = np.linalg.svd(g, full_matrices=False)
            return -(u * values(S, sigma)) @ vt

        return answer

    return rival


def ky_fan_values(S: Any, sigma: np.ndarray) -> np.ndarray:
    one = S.k * sigma[0] >= sigma.sum()
    return put(sigma.shape, 0, S.radius) if one else np.full(sigma.shape, S.radius / S.k)


def schatten_values(S: Any, sigma: np.ndarray) -> np.ndarray:
    q = S.p / (S.p - 1)
    return S.radius * sigma ** (q - 1) / np.sum(sigma**q) ** (1 / S.p)


def either_end(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        values, v = eigsh((g + g.T) / 2, k=1, which="LM")
        return -S.radius * np.sign(values[0]) * v @ v.T

    return answer


def hermitian_end(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        h = g[0] + 1j * g[1]
        values, vectors = np.linalg.eigh((h + h.conj().T) / 2)
        i = np.abs(values).argmax()
        x = -S.radius * np.sign(values[i]) * np.outer(vectors[:, i], vectors[:, i].conj())
        return np.stack([x.real, x.imag])

    return answer


def unfolded_pair(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        u, _, vt = svds(g.reshape(len(g), -1), k=1)
        return (-S.radius * u @ vt).reshape(g.shape)

    return answer


def two_halves(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        n = len(g) // 2
        x = np.zeros(len(g))
        x[g[:n].argmin()] = 1.0
        i = np.abs(g[n:]).argmax()
        x[n + i] = -np.sign(g[n + i])
        return x

    return answer


def times(S: Any) -> Rival:
    return lambda g: put(S.shape, g.argmin(), S.factor * S.domain.radius)


def moved_simplex(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        x = S.by.copy()
        x[g.argmin()] += S.domain.radius
        return x

    return answer


def image(S: Any) -> Rival:
    return lambda g: S.matrix[:, (S.matrix.T @ g).argmin()]


def simplex_and_ball(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        x = -S.sets[1].radius / np.linalg.norm(g) * g
        x[g.argmin()] += S.sets[0].radius
        return x

    return answer


def simplex_or_ball(S: Any) -> Rival:
    def answer(g: np.ndarray) -> np.ndarray:
        i, length = g.argmin(), np.linalg.norm(g)
        return put(S.shape, i, 1.0) if g[i] < -S.sets[1].radius * length else -S.sets[1].radius / length * g

    return answer


def cut_by_linprog(S: Any) -> Rival:
    """A simplex cut by a half-space or a box, as a linear program."""
    n = S.shape[0]
    extra = {"A_ub": S.normal[None], "b_ub": [S.offset]} if hasattr(S, "normal") else {}
    upper = getattr(S, "upper", np.full(n, np.inf))
    bounds = np.column_stack([np.zeros(n), np.broadcast_to(upper, n)])

    def answer(g: np.ndarray) -> float:
        return float(linprog(g, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=bounds, method="highs", **extra).fun)

    return answer


# ------------------------------------------------------------------------------------------------- problems


def random_edges(nodes: int) -> np.ndarray:
    """A connected graph with 4 edges a node, each from the lower to the higher number."""
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.integers(nodes, size=(4 * nodes, 2)), axis=1)
    chain = np.column_stack([np.arange(nodes - 1), np.arange(1, nodes)])
    return np.unique(np.concatenate([chain, pairs[pairs[:, 0] < pairs[:, 1]]]), axis=0)


def packing(make: Callable[..., Any], n: int) -> Any:
    """{x : A x <= 1, 0 <= x <= 1} with a sparse A >= 0: knapsacks."""
    A = sparse.random_array((n // 2, n), density=min(1.0, 10 / n), rng=np.random.default_rng(1), format="csr")
    return make(A=A, b=np.ones(n // 2), lower=0.0, upper=1.0)


def network(make: Callable[..., Any], n: int) -> Any:
    """Flows with capacities from the first node to the last."""
    edges = random_edges(max(n // 5, 3))
    nodes, m = int(edges.max()) + 1, len(edges)
    C = sparse.csr_array(
        (np.repeat([1.0, -1.0], m), (np.concatenate(edges.T), np.tile(np.arange(m), 2))), shape=(nodes, m)
    )
    return make(C=C, d=np.eye(nodes)[0] - np.eye(nodes)[-1], lower=0.0, upper=1.0)


def portfolios(make: Callable[..., Any], n: int) -> Any:
    """Weights that sum to 1, with a limit for each and for sectors, dense exposures near 0."""
    rng = np.random.default_rng(2)
    exposures = rng.standard_normal((20, n))
    A = np.concatenate([exposures, -exposures])
    return make(A=A, b=np.full(40, 0.5), C=np.ones((1, n)), d=[1.0], lower=0.0, upper=max(0.05, 2 / n))


def cloud(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n // 10, 10))


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(3).uniform(0.5, 1.5, n)


def bipartite(n: int) -> np.ndarray:
    """n rows and columns with about 10 edges a row, the diagonal among them."""
    rng = np.random.default_rng(5)
    rows = np.repeat(np.arange(n), 9)
    return np.unique(np.column_stack([np.r_[rows, :n], np.r_[rng.integers(n, size=9 * n), :n]]), axis=0)


def supplies(edges: np.ndarray) -> np.ndarray:
    """One unit from the first node to the last."""
    supply = np.zeros(int(edges.max()) + 1)
    supply[0], supply[-1] = 1.0, -1.0
    return supply


def overlapping(n: int) -> list[np.ndarray]:
    return [np.arange(i, i + 20) for i in range(0, n - 10, 10)]


def root(chosen: np.ndarray) -> float:
    return float(np.sqrt(len(chosen)))


def rank_of_a_partition(chosen: np.ndarray) -> int:
    """One element of each block of 10 is independent."""
    return len(np.unique(chosen // 10))


def halves(f: Callable[..., Any], n: int) -> Any:
    return f([DOMAINS["simplex"].factory(n // 2), DOMAINS["l1-ball"].factory(n - n // 2)])


def simplex_of(n: int) -> Any:
    return DOMAINS["simplex"].factory(n)


def with_ball(f: Callable[..., Any], n: int) -> Any:
    return f([simplex_of(n), DOMAINS["l2-ball"].factory(n, 0.1)])


GRAPH = (100, 1_000)
"""Nodes of a side."""
LINEAR = (100, 400)
"""Variables of linear programs."""
QUICK[LINEAR] = (40,)

CASES = (
    Case("simplex", lambda f, n: f(n), lambda S: lambda g: put(S.shape, g.argmin(), S.radius), "numpy"),
    Case(
        "unit-simplex",
        lambda f, n: f(n),
        lambda S: lambda g: put(S.shape, i := g.argmin(), S.radius * (g[i] < 0)),
        "numpy",
    ),
    Case("hypersimplex", lambda f, n: f(n, n // 100), smallest, "numpy argpartition"),
    Case("capped-simplex", lambda f, n: f(weights(n), n / 100), capped, "numpy sort", MIDDLE),
    Case("simplex-product", lambda f, n: f((n // 10, 10)), rows_min, "numpy"),
    Case("monotone-box", lambda f, n: f(n), monotone, "numpy"),
    Case("l1-ball", lambda f, n: f(n), l1, "numpy"),
    Case("l2-ball", lambda f, n: f(n), lambda S: lambda g: -S.radius / np.linalg.norm(g) * g, "numpy"),
    Case("linf-ball", lambda f, n: f(n), lambda S: lambda g: np.where(g > 0, -S.radius, S.radius), "numpy"),
    Case("lp-ball", lambda f, n: f(n, 3.0), lp, "numpy", MIDDLE),
    Case("weighted-l1-ball", lambda f, n: f(weights(n)), weighted_l1, "numpy"),
    Case("k-sparse-polytope", lambda f, n: f(n, n // 100), k_sparse, "numpy argpartition"),
    Case("k-support-ball", lambda f, n: f(n, n // 100), k_support, "numpy argpartition"),
    Case("owl-ball", lambda f, n: f(np.linspace(1.0, 0.1, n)), owl, "numpy sort", MIDDLE),
    Case(
        "ellipsoid",
        lambda f, n: f(weights(n)),
        lambda S: lambda g: -S.radius * (h := g / S.matrix) / np.sqrt(g @ h),
        "numpy",
    ),
    Case("group-ball", lambda f, n: f((n // 10, 10)), rows_l2, "numpy"),
    Case(
        "box", lambda f, n: f(np.zeros(n), np.ones(n)), lambda S: lambda g: np.where(g > 0, S.lower, S.upper), "numpy"
    ),
    Case("total-variation-ball", lambda f, n: f(n), jump, "numpy"),
    Case("permutahedron", lambda f, n: f(np.arange(float(n))), opposite_order, "numpy sort", MIDDLE),
    Case(
        "convex-hull", lambda f, n: f(cloud(n)), lambda S: lambda g: S.points[(S.points @ g).argmin()], "numpy", MIDDLE
    ),
    Case("birkhoff", lambda f, n: f(n), assignment, "scipy assignment", MATRIX),
    Case("transport-polytope", lambda f, n: f(np.full(n, 1 / n), np.full(n, 1 / n)), emd, "POT emd", MATRIX),
    Case("path-polytope", lambda f, n: f(random_edges(n), 0, n - 1), dag_path, "scipy csgraph", (1_000, 10_000)),
    Case("spanning-tree-polytope", lambda f, n: f(random_edges(n)), kruskal, "scipy csgraph", (1_000, 10_000)),
    Case("polytope", packing, cold_linprog, "linprog, packing", LINEAR, 3.0, program=True),
    Case("polytope", network, cold_linprog, "linprog, network", LINEAR, 3.0, program=True),
    Case("polytope", portfolios, cold_linprog, "linprog, portfolios", LINEAR, 3.0, program=True),
    Case("nuclear-ball", lambda f, n: f((n, n)), top_pair, "scipy svds", MATRIX),
    Case("spectral-ball", lambda f, n: f((n, n)), polar, "numpy svd", MATRIX),
    Case("spectrahedron", lambda f, n: f((n, n)), lowest_pair, "scipy eigsh", MATRIX),
    Case("fantope", lambda f, n: f((n, n), 5), lowest_space, "numpy eigh", MATRIX),
    Case("l1-ball-in-box", lambda f, n: f(-weights(n), weights(n), n / 100), best_entries, "numpy sort", MIDDLE),
    Case(
        "group-linf-ball",
        lambda f, n: f((n // 10, 10)),
        rows_l1,
        "numpy",
        MIDDLE,
    ),
    Case("latent-group-ball", lambda f, n: f(n, overlapping(n)), windows, "numpy reduceat", (1_000, 100_000)),
    Case(
        "bipartite-matching-polytope",
        lambda f, n: f(bipartite(n), perfect=True),
        sparse_matching,
        "scipy csgraph",
        GRAPH,
    ),
    Case("partial-assignment", lambda f, n: f((n, n)), padded_assignment, "scipy assignment", MATRIX),
    Case("matching-polytope", lambda f, n: f(random_edges(n)), blossom, "networkx blossom", (30, 100)),
    Case(
        "flow-polytope", lambda f, n: f(e := random_edges(n), supplies(e)), cold_flow, "linprog", LINEAR, program=True
    ),
    Case("graph-total-variation-ball", lambda f, n: f(random_edges(n)), cold_cut, "linprog", (30, 100), program=True),
    Case(
        "submodular-base-polytope",
        lambda f, n: f(n, root, lambda order: np.sqrt(np.arange(1, len(order) + 1))),
        greedy,
        "numpy sort",
        (1_000,),
    ),
    Case(
        "matroid-base-polytope",
        lambda f, n: f(n, lambda chosen: min(len(chosen), n // 10)),
        uniform_base,
        "numpy, knowing the matroid",
        (1_000,),
    ),
    Case(
        "matroid-base-polytope",
        lambda f, n: f(n, rank_of_a_partition),
        greedy_base,
        "greedy loop",
        (1_000,),
    ),
    Case("ky-fan-ball", lambda f, n: f((n, n), 3), by_svd(ky_fan_values), "numpy svd", MATRIX),
    Case("schatten-ball", lambda f, n: f((n, n), 3.0), by_svd(schatten_values), "numpy svd", MATRIX),
    Case("symmetric-nuclear-ball", lambda f, n: f((n, n)), either_end, "scipy eigsh", MATRIX),
    Case("hermitian-nuclear-ball", lambda f, n: f(n), hermitian_end, "numpy eigh", MATRIX),
    Case("unfolding-ball", lambda f, n: f((n, n // 10, 10), 0), unfolded_pair, "scipy svds", MATRIX),
    Case("product", halves, two_halves, "numpy"),
    Case("scaled", lambda f, n: f(simplex_of(n), 2.0), times, "numpy"),
    Case("shifted", lambda f, n: f(simplex_of(n), weights(n)), moved_simplex, "numpy"),
    Case("linear-image", lambda f, n: f(cloud(n).T.copy(), simplex_of(n // 10)), image, "numpy", MIDDLE),
    Case("minkowski-sum", with_ball, simplex_and_ball, "numpy"),
    Case("hull-of-union", with_ball, simplex_or_ball, "numpy"),
    Case("half-space-cut", lambda f, n: f(simplex_of(n), weights(n), 0.9), cut_by_linprog, "linprog", (1_000, 10_000)),
    Case(
        "box-cut",
        lambda f, n: f(simplex_of(n), np.zeros(n), np.full(n, 20 / n)),
        cut_by_linprog,
        "linprog",
        (1_000, 10_000),
    ),
)

WITHOUT_RIVAL = {
    "cached": "a wrapper: its first answer costs what the set costs, a remembered one a comparison of directions",
    "elliptope": "a semidefinite programme, and no package of the test environment solves those",
    "user": "the oracle is the user's own function",
}
"""Why a set has no row."""
NOTES = {
    "birkhoff": "both sides call the same routine of scipy; a ratio below 1 is the check of the direction, and the clock",
    "path-polytope": "the alternative needs positive weights, as nodes are numbered in topological order; the oracle takes any",
    "nuclear-ball": "both to a relative error of <G, V> of 1e-13: svds with its default tol=0, a residual at rounding. Up to "
    "400 rows by LAPACK, as an eigenvector of a Gram matrix",
    "unfolding-ball": "as the nuclear ball",
    "spectral-ball": "both sides call the same SVD, as for the Schatten and the Ky Fan balls; what differs is the check of the "
    "direction",
    "spectrahedron": "both to a relative error of 1e-13 (eigsh with its default tol=0); up to 400 rows by LAPACK, at the cost of "
    "a reduction to tridiagonal form whatever the spectrum is",
    "matroid-base-polytope": "the oracle knows the rank function only, which one of the two alternatives does not need",
    "polytope": "from one vertex of the packing polytope with 400 variables to the next the simplex method takes about 110 steps "
    "of 25 microseconds each",
    "partial-assignment": "both sides call the same routine; a ratio below 1 is the check of the direction, and the clock",
    "matching-polytope": "both sides call the same routine; the alternative returns the minimum and no vertex",
    "transport-polytope": "both sides call the same routine; a ratio below 1 is the check of the direction, and the clock",
    "shifted": "both sides copy the vector and look for the smallest entry; a ratio below 1 is the check of the direction, and "
    "the clock",
}
"""Accuracy of both sides, and why an alternative is faster."""


# ---------------------------------------------------------------------------------------------------- measurement


def side_by_side(
    calls: Sequence[Callable[[np.ndarray], Any]], directions: list[np.ndarray], seconds: float
) -> np.ndarray:
    """CPU times of each call, shape (calls, rounds), in batches of at least a millisecond, for ``seconds`` a call.

    The calls take turns, so that a busy machine slows all of them, in the reverse order every second time: whoever is first with
    a direction takes up to 5 % longer, since then it is in the processor's caches.
    """
    repeats = [1] * len(calls)
    for i, call in enumerate(calls):
        while _batch(call, directions[0], repeats[i]) < 1e-3:
            repeats[i] *= 2
    times: list[list[float]] = [[] for _ in calls]
    end = process_time() + seconds * len(calls)
    while len(times[0]) < len(directions) or process_time() < end:
        direction = directions[len(times[0]) % len(directions)]
        for call, count, taken in list(zip(calls, repeats, times, strict=True))[:: 1 if len(times[0]) % 2 else -1]:
            taken.append(_batch(call, direction, count) / count)
    return np.array(times)


def _batch(call: Callable[[np.ndarray], Any], direction: np.ndarray, repeats: int) -> float:
    begun = process_time()
    for _ in range(repeats):
        call(direction)
    return process_time() - begun


def minimum(answer: Any, direction: np.ndarray) -> float:
    return answer if isinstance(answer, float) else float(np.vdot(np.asarray(answer), direction))


def measured(case: Case, n: int, seconds: float) -> Row:
    """One case at one size: times of the oracle and of the alternative, and whether they agree."""
    domain = case.make(DOMAINS[case.name].factory, n)
    rng = np.random.default_rng(n)
    directions = [rng.standard_normal(domain.shape) for _ in range(2 if np.prod(domain.shape) > 1e6 else 6)]
    rival, atom = case.rival(domain), getattr(domain, "atom", domain.lmo)
    agree = True
    for direction in directions:
        ours, theirs = minimum(domain.lmo(direction), direction), minimum(rival(direction), direction)
        agree &= ours <= theirs + 1e-6 * (1e-12 + abs(theirs))
    if case.program:  # each call costs something else, and an oracle that is asked the same again would know the answer
        directions = [directions[0] + 0.3 * rng.standard_normal(domain.shape) for _ in range(20)]
        ours, theirs = (float(np.mean([_batch(call, g, 1) for g in directions])) for call in (domain.lmo, rival))
        structured, speed = ours, theirs / ours
    else:
        times = side_by_side((domain.lmo, rival, atom), directions, seconds)
        ours, theirs, structured = times.min(axis=1).tolist()
        speed = float(np.median(times[1] / times[0]))
    one_pass = float(side_by_side((lambda g: np.abs(g).max(),), directions, seconds).min())
    agree = bool(agree)
    return {
        "set": case.name,
        "n": n,
        "variables": int(np.prod(domain.shape)),
        "alternative": case.by,
        "oracle": ours,
        "atom": structured,
        "other": theirs,
        "speed": speed,
        "passes": structured / one_pass,
        "agree": agree,
        "required": case.required,
        "verdict": verdict(speed, ours - theirs),
    }


def verdict(speed: float, more: float) -> str:
    """In a word: ``speed`` is how many times as fast the oracle is, ``more`` what it takes more, in seconds."""
    if speed >= 1 / TIE:
        return "faster"
    if speed >= TIE:
        return "tie"
    return "overhead" if more < OVERHEAD else "slower"


def claim(row: Row) -> Claim:
    name = f"{row['set']}, {row['variables']:,} variables, against {row['alternative']}"
    free = row["verdict"] == "overhead"
    required = "the same minimum" + ("" if free else f", {row['required']:.2g} times as fast")
    holds = row["agree"] and (free or row["speed"] >= row["required"])
    return Claim(name, required, f"{row['speed']:.2g} times" + ("" if row["agree"] else ", WORSE MINIMUM"), holds)


KEYS = ("set", "variables", "alternative", "oracle", "atom", "other", "speed", "passes", "verdict")


def options(parser: Any) -> None:
    parser.add_argument("--largest", type=float, default=1e7, metavar="N", help="leave larger sizes out")
    parser.add_argument("--seconds", type=float, default=0.2, metavar="S", help="CPU time for each figure")
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="SET", choices=DOMAINS, help="the rows of these sets only"
    )


def main() -> None:
    args = arguments(__doc__, options)
    known = [case for case in CASES if case.name in (args.only or DOMAINS)]
    seconds = 0.01 if args.quick else args.seconds
    jobs = [
        Job(1.0, lambda case=case, n=n: [measured(case, n, seconds)])  # type: ignore[misc]
        for case in known
        for n in (QUICK.get(case.sizes, case.sizes[:1]) if args.quick else case.sizes)
        if n <= args.largest
    ]
    rows = work_off("Sets", jobs)
    missing = (
        {}
        if args.only
        else {name: WITHOUT_RIVAL[name] for name in sorted(set(DOMAINS) - {case.name for case in known})}
    )
    table(
        "Linear oracles and alternatives: CPU seconds",
        ("set", "variables", "alternative", "oracle", "atom", "other", "times as fast", "passes", "verdict", "agree"),
        [(*(row[key] for key in KEYS), "yes" if row["agree"] else "NO") for row in rows],
        "\n".join(
            [
                *(f"{name}: {note}." for name, note in NOTES.items()),
                *(f"Without a row, {name}: {why}." for name, why in missing.items()),
            ]
        ),
    )
    finish("sets", args, rows, [claim(row) for row in rows], without_row=missing)


if __name__ == "__main__":
    main()
