"""The class `MatchingProblem`: the problem of matching two graphs, as a quadratic assignment problem for graphs of equal size.

The smaller graph is padded to the size of the larger graph. Known pairs are removed, and their edges become a linear term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse

from condgrad import checks
from condgrad.learn.robust_start import dense
from condgrad.objectives._matrices import Matrix, as_matrix

PADDINGS = ("centered", "naive")


def adjacency(graph: Any, name: str) -> Matrix:
    """Validate an adjacency matrix. It must be finite and square, with at least one node. Returns an array or a csr matrix."""
    matrix = as_matrix(graph, name)
    if matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise ValueError(
            f"{name} has shape {matrix.shape}, but must be an adjacency matrix of shape (n, n): give one row and one column "
            "for each node."
        )
    return matrix


def known_pairs(seeds: Any, sizes: tuple[int, int]) -> np.ndarray:
    """Validate the seeds. Returns an array of int of shape (k, 2), in which each node occurs at most once."""
    pairs = np.empty((0, 2), dtype=int) if seeds is None or not len(seeds) else np.asarray(seeds)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"seeds have shape {pairs.shape} and dtype {pairs.dtype}, but must be whole numbers of shape (k, 2): give a row "
            "(node of A, node of B) for each known pair."
        )
    for nodes, size, name in zip(pairs.T, sizes, "AB", strict=True):
        if len(nodes) and not 0 <= nodes.min() <= nodes.max() < size:
            raise ValueError(
                f"seeds name nodes {nodes.min()} to {nodes.max()} of {name}, whose nodes are 0 to {size - 1}: correct them."
            )
        found, counts = np.unique(nodes, return_counts=True)
        if len(found) < len(nodes):
            raise ValueError(f"seeds name node {found[counts.argmax()]} of {name} twice: a node has one partner.")
    return pairs


def scores(similarity: Any, weight: float, sizes: tuple[int, int]) -> np.ndarray | None:
    """Validate the similarities and multiply them by the weight; None if no similarities are given."""
    if similarity is None:
        return None
    values = checks.finite_array(similarity, "similarity")
    if values.shape != sizes:
        raise ValueError(
            f"similarity has shape {values.shape}, but A has {sizes[0]} nodes and B has {sizes[1]}: give one number for each "
            f"pair, shape {sizes}."
        )
    return weight * values


def _padded(matrix: Matrix, size: int) -> Matrix:
    """Append rows and columns of zeros."""
    sparse: bool = issparse(matrix)
    if not sparse:
        return np.pad(matrix, (0, size - matrix.shape[0]))
    larger: Matrix = csr_array(matrix)  # a copy of the object, not of its arrays
    larger.resize((size, size))
    return larger


@dataclass(frozen=True)
class MatchingProblem:
    """The problem to maximise sum A_ij B_p(i)p(j) + sum C_ip(i) over the permutations p of the nodes that are not seeds.

    Attributes
    ----------
    A, B : array or csr_array of shape (n, n)
        Adjacency matrices of the nodes that are not seeds, padded to the same size.
    C : array of shape (n, n) or None
        Matrix of the linear term: similarities plus edges to seeds.
    rows, cols : array of int, shape (n,)
        For each row of A (of B), the number of its node in the padded graph.
    sizes : (int, int)
        Numbers of nodes of the two given graphs.
    seeds : array of int, shape (k, 2)
        The known pairs.
    """

    A: Matrix
    B: Matrix
    C: np.ndarray | None
    rows: np.ndarray
    cols: np.ndarray
    sizes: tuple[int, int]
    seeds: np.ndarray

    @classmethod
    def of(cls, A: Matrix, B: Matrix, seeds: np.ndarray, similarity: np.ndarray | None, padding: str) -> Self:
        """Make the problem of two graphs. ``similarity`` must be multiplied by its weight already."""
        sizes = A.shape[0], B.shape[0]
        size = max(sizes)
        if sizes[0] != sizes[1]:
            # after centering, edges and missing edges have weights of the same size and opposite sign; padding has weight 0
            if padding == "centered":
                both = [dense(graph) for graph in (A, B)]
                middle = (max(graph.max() for graph in both) + min(graph.min() for graph in both)) / 2
                A, B = (graph - middle for graph in both)
            A, B = _padded(A, size), _padded(B, size)
        C = None if similarity is None else np.pad(similarity, [(0, size - n) for n in sizes])
        rows, cols = (np.setdiff1d(np.arange(size), known) for known in seeds.T)
        if not len(seeds):
            return cls(A, B, C, rows, cols, sizes, seeds)
        known_a, known_b = seeds.T
        to_seeds = A[rows][:, known_a] @ B[cols][:, known_b].T + A[known_a][:, rows].T @ B[known_b][:, cols]
        to_seeds = dense(to_seeds)
        linear = to_seeds if C is None else to_seeds + C[np.ix_(rows, cols)]
        return cls(A[rows][:, rows], B[cols][:, cols], linear, rows, cols, sizes, seeds)

    def matching(self, permutation: np.ndarray) -> np.ndarray:
        """The partner in B of each node of A (-1 for no partner) for a permutation of this problem."""
        partner = np.empty(max(self.sizes), dtype=int)
        partner[self.seeds[:, 0]] = self.seeds[:, 1]
        partner[self.rows] = self.cols[permutation]
        partner = partner[: self.sizes[0]]
        return np.where(partner < self.sizes[1], partner, -1)

    def value(self, permutation: np.ndarray) -> float:
        """Value of the sum that is maximised, for a permutation."""
        matched = float((self.A * self.B[permutation][:, permutation]).sum())
        return matched if self.C is None else matched + float(self.C[np.arange(len(permutation)), permutation].sum())

    def swap_gains(self, permutation: np.ndarray) -> np.ndarray:
        """Increase of ``value`` if nodes i and j exchange their partners, for all i and j; shape (n, n)."""
        A, K = dense(self.A), dense(self.B[permutation][:, permutation])
        out, into = A @ K.T, A.T @ K
        crossed = out + into
        gains = crossed + crossed.T - np.add.outer(np.diag(crossed), np.diag(crossed))
        a, k = np.diag(A), np.diag(K)
        # correct the terms at i and j, where both the row and the column change
        inside = np.subtract.outer(a, a)
        across = A - A.T
        gains -= (a[:, None] - A.T) * (K.T - k[:, None]) + (A - a[None, :]) * (k[None, :] - K)
        gains -= (a[:, None] - A) * (K - k[:, None]) + (A.T - a[None, :]) * (k[None, :] - K.T)
        gains += -inside * np.subtract.outer(k, k) - across * (K - K.T)
        if self.C is not None:
            paired = self.C[:, permutation]
            gains += paired + paired.T - np.add.outer(np.diag(paired), np.diag(paired))
        return gains

    def refine(self, permutation: np.ndarray) -> np.ndarray:
        """Exchange the partners of two nodes, the best exchange first, until no exchange increases ``value`` (2-opt)."""
        permutation = permutation.copy()
        least = 1e-9 * (1 + abs(self.value(permutation)))
        for _ in range(MAX_EXCHANGES_PER_NODE * len(permutation)):
            gains = self.swap_gains(permutation)
            i, j = np.unravel_index(gains.argmax(), gains.shape)
            if gains[i, j] <= least:
                break
            permutation[[i, j]] = permutation[[j, i]]
        return permutation


MAX_EXCHANGES_PER_NODE = 2
"""Maximum number of exchanges, divided by the number of nodes. A rounded local minimum needs few exchanges; the limit ends the
search on graphs that do not match."""
