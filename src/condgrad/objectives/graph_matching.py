"""The relaxations of graph matching."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.objectives._matrices import Matrix, as_matrix, spectral_norm


@final
@dataclass(frozen=True, eq=False)
class GraphMatching:
    r"""Disagreement of two graphs under a soft matching P, a doubly stochastic matrix.

    .. math:: F(P) = \frac{t}{2} \left(|AP|^2 + |PB|^2\right) - \langle AP, PB \rangle - \langle C, P \rangle

    If P is a permutation matrix with the ones at (i, p(i)), then <AP, PB> is the sum of A_ij B_p(i)p(j), the weight of the
    matched edges, and the first term is a constant: every t has the same best permutations. With t = 1 and C = 0, F is
    |AP - PB|^2 / 2, which is convex. With t = 0 it is the indefinite relaxation, whose local minima over the Birkhoff polytope are
    mostly permutations.

    Parameters
    ----------
    A, B : array_like or sparse matrix of shape (n, n)
        Adjacency matrices; weights and directed edges are allowed.
    similarity : array_like of shape (n, n), default None
        C: what matching node i of A with node j of B is worth, beside their edges. None: 0.
    convexity : float, default 0.0
        t, from 0 (indefinite) to 1 (convex).

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> path, other = np.eye(3, k=1) + np.eye(3, k=-1), np.array([[0.0, 1, 1], [1, 0, 0], [1, 0, 0]])
    >>> F = cg.GraphMatching(path, other)
    >>> F.value(np.eye(3)[[1, 0, 2]]), F.value(np.eye(3))  # 2 edges matched, each counted in both directions; 1 edge
    (-4.0, -2.0)

    References
    ----------
    J. T. Vogelstein et al., Fast approximate quadratic programming for graph matching, PLoS ONE 10 (2015).
    V. Lyzinski et al., Graph matching: relax at your own risk, IEEE Transactions on Pattern Analysis and Machine Intelligence 38
    (2016).
    """

    A: Matrix
    B: Matrix
    similarity: Any = None
    convexity: float = 0.0

    lower_bound = None

    def __post_init__(self) -> None:
        A, B = (as_matrix(graph, f"The {name} of GraphMatching") for graph, name in ((self.A, "A"), (self.B, "B")))
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"The A of GraphMatching has shape {A.shape}, but an adjacency matrix must be square.")
        checks.same_shape(B.shape, A.shape, "The B of GraphMatching")
        C = self.similarity
        if C is not None:
            C = checks.finite_array(C, "The similarity of GraphMatching")
            checks.same_shape(C.shape, A.shape, "The similarity of GraphMatching")
        convexity = checks.probability(self.convexity, "The convexity of GraphMatching")
        checks.settle(self, A=A, B=B, similarity=C, convexity=convexity)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.A.shape

    @property
    def smoothness(self) -> float:
        """t (a^2 + b^2) + 2ab with the spectral norms a of A and b of B, an upper bound."""
        a, b = self._norms
        return self.convexity * (a * a + b * b) + 2 * a * b

    @property
    def lower_smoothness(self) -> float:
        """2 (1 - t) ab: the second derivative is at least t (x - y)^2 - 2 (1 - t) xy with x <= a, y <= b."""
        a, b = self._norms
        return 2 * (1 - self.convexity) * a * b

    @cached_property
    def _norms(self) -> tuple[float, float]:
        return spectral_norm(self.A), spectral_norm(self.B)

    @cached_property
    def _symmetric(self) -> bool:
        """Whether both graphs are undirected, where one product serves both terms of the gradient of <AP, PB>."""
        return all(abs(graph - graph.T).max() == 0 for graph in (self.A, self.B))

    @cached_property
    def _linear_norm(self) -> float:
        return 0.0 if self.similarity is None else float(np.linalg.norm(self.similarity))

    def grad_scale(self, P: np.ndarray) -> float:
        """(t (a^2 + b^2) + 2ab) |P| + |C|, at least the norm of the terms of the gradient."""
        return self.smoothness * float(np.linalg.norm(P)) + self._linear_norm

    def value(self, P: np.ndarray) -> float:
        P = self._point(P)
        AP, PB = self.A @ P, P @ self.B
        squares = self.convexity * (np.vdot(AP, AP) + np.vdot(PB, PB)) / 2 if self.convexity else 0.0
        return float(squares - np.vdot(AP, PB) - self._linear(P))

    def grad(self, P: np.ndarray) -> np.ndarray:
        return self.value_and_grad(P)[1]

    def value_and_grad(self, P: np.ndarray) -> tuple[float, np.ndarray]:
        """F(P) and its gradient A'(t AP - PB) + (t PB - AP) B' - C, by two products if t = 0 and A, B are symmetric, else four."""
        P, t = self._point(P), self.convexity
        AP = self.A @ P
        if t == 0 and self._symmetric:
            APB = AP @ self.B
            value, grad = -np.vdot(APB, P), -2 * APB
        else:
            PB = P @ self.B
            value = t * (np.vdot(AP, AP) + np.vdot(PB, PB)) / 2 - np.vdot(AP, PB)
            grad = self.A.T @ (t * AP - PB) + (t * PB - AP) @ self.B.T
        if self.similarity is not None:
            grad = grad - self.similarity
        return float(value - self._linear(P)), grad

    def _linear(self, P: np.ndarray) -> float:
        return 0.0 if self.similarity is None else float(np.vdot(self.similarity, P))

    def _point(self, P: Any) -> np.ndarray:
        return checks.point(P, self.shape, "GraphMatching")
