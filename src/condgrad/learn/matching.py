"""The estimator `GraphMatcher`: finds for each node of a graph its partner in another graph, so that edges agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from condgrad.checks import choice, not_negative, positive, whole, yes_or_no
from condgrad.domains import Birkhoff
from condgrad.driver import Result, Session, minimize
from condgrad.inner import CondG
from condgrad.learn.base import all_or_nothing, attach_partial_fit, seed_of, unfitted_copy
from condgrad.learn.matching_problem import PADDINGS, MatchingProblem, adjacency, known_pairs, scores
from condgrad.objectives import GraphMatching

STARTS = ("convex", "barycenter")


@dataclass(frozen=True)
class Tuning:
    """Constants of the relaxations, chosen on stochastic block and preferential attachment graphs of 100 and 200 nodes."""

    convex_steps: int = 5
    """Number of steps on the convex relaxation. A few steps are enough for a start: the minimum of the convex relaxation takes
    long to compute, and is far from a permutation."""
    oracle_calls: int = 3
    """Number of linear oracle calls for each prox subproblem. With one call, a step is a Frank-Wolfe step, and runs end in a poor
    local minimum more often. Ten calls give no better results than three, and take more time."""
    random_permutations: int = 10
    """Number of random permutation matrices whose average, averaged again with the barycenter, is a random start."""


TUNING = Tuning()


class GraphMatcher(BaseEstimator):
    r"""Match the nodes of two graphs so that their edges agree as well as possible.

    .. math:: \max_p \sum_{ij} A_{ij} B_{p(i)p(j)} + w \sum_i S_{ip(i)}

    The permutation is relaxed to a doubly stochastic matrix P. First, NCGS takes a few steps on the convex relaxation
    |AP - PB|^2 / 2. From there, it minimises the indefinite relaxation -<AP, PB>, whose local minima are mostly permutations. The
    linear oracle solves an assignment problem. Another assignment problem rounds the result to a permutation.

    Parameters
    ----------
    start : {"convex", "barycenter"}, default "convex"
        Start of the indefinite relaxation. "barycenter": the matrix with all entries 1/n. "convex": the result of a few steps on
        the convex relaxation, which start at the barycenter. "barycenter" is faster, but ends in a poor local minimum more often.
    n_starts : int, default 1
        Number of starts. The best result is kept. Each start after the first is the mean of the barycenter and of the average of
        10 random permutation matrices.
    padding : {"centered", "naive"}, default "centered"
        If the graphs have different sizes, nodes without edges are added to the smaller graph. "centered": before that, the
        middle of the range of weights is subtracted from every entry, so that a missing edge is as important as an edge. The
        smaller graph is then found as an induced subgraph of the larger graph. Sparse matrices become dense. "naive": only edges
        are taken into account.
    similarity_weight : float, default 1.0
        The weight w of ``similarity`` in the sum above. The first part of the sum has weight 1.
    refine : bool, default False
        Whether the matching is improved after rounding, by exchanging the partners of two nodes until no exchange improves it.
        This rarely changes the result, and takes a product of two matrices for each exchange.
    tol : float, default 1e-6
        The indefinite relaxation ends when its squared gradient mapping is at most ``tol`` times the squared norm of the gradient
        at the start.
    max_steps : int, default 100
        Maximum number of steps on the indefinite relaxation.
    random_state : int, RandomState instance or None, default 0
        Seed of the random starts.

    Attributes
    ----------
    permutation_ : ndarray of int of shape (n_A,)
        Partner in B of each node of A: A is approximately ``B[permutation_][:, permutation_]``. If A has more nodes than B, nodes
        without a partner have -1.
    score_ : float
        Agreement of the edges between matched nodes: 2 <A, B_p> / (\|A\|^2 + \|B_p\|^2). For graphs without weights, this is the
        number of common edges divided by the mean of the numbers of edges. It is 1 if all edges agree.
    objective_ : float
        Value of the sum that is maximised. In an undirected graph, each edge is counted twice.
    certificate_ : Certificate
        Bounds on the squared norm of the gradient mapping of the indefinite relaxation at ``result_.x``. The mapping is 0 at a
        stationary point.
    result_ : Result
        Result of the best run on the indefinite relaxation. Its ``x`` is a doubly stochastic matrix for the nodes that are not
        seeds. Trace, counts, steps and times are those of all runs together. The column ``phase`` of the trace names the
        relaxation.
    n_steps_ : int
        Number of steps of NCGS in all runs together.

    Examples
    --------
    >>> import numpy as np
    >>> from condgrad.learn import GraphMatcher
    >>> rng = np.random.default_rng(0)
    >>> A = np.triu(rng.random((30, 30)) < 0.3, 1).astype(float)
    >>> A += A.T
    >>> truth = rng.permutation(30)
    >>> B = np.empty_like(A)
    >>> B[np.ix_(truth, truth)] = A
    >>> matcher = GraphMatcher().fit(A, B)
    >>> bool((matcher.permutation_ == truth).all()), matcher.score_
    (True, 1.0)

    References
    ----------
    V. Lyzinski et al., Graph matching: relax at your own risk, IEEE Transactions on Pattern Analysis and Machine Intelligence 38
    (2016). D. E. Fishkind et al., Seeded graph matching, Pattern Recognition 87 (2019).
    """

    def __init__(
        self,
        start: str = "convex",
        *,
        n_starts: int = 1,
        padding: str = "centered",
        similarity_weight: float = 1.0,
        refine: bool = False,
        tol: float = 1e-6,
        max_steps: int = 100,
        random_state: Any = 0,
    ):
        self.start = start
        self.n_starts = n_starts
        self.padding = padding
        self.similarity_weight = similarity_weight
        self.refine = refine
        self.tol = tol
        self.max_steps = max_steps
        self.random_state = random_state

    @all_or_nothing
    def fit(self, A: Any, B: Any, *, seeds: Any = None, similarity: Any = None) -> Self:
        """Find the matching.

        Parameters
        ----------
        A : array-like or sparse matrix of shape (n_A, n_A)
            Adjacency matrix. Edges may have weights and directions.
        B : array-like or sparse matrix of shape (n_B, n_B)
            Adjacency matrix of the other graph.
        seeds : array-like of int of shape (k, 2), default None
            Known pairs (node of A, node of B).
        similarity : array-like of shape (n_A, n_B), default None
            The matrix S of the sum that is maximised. If node i of A is matched with node j of B, ``similarity_weight`` times
            S_ij is added.

        Returns
        -------
        GraphMatcher
            The estimator itself.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid. The estimator is then unchanged.
        """
        choice(self.start, STARTS, "start")
        choice(self.padding, PADDINGS, "padding")
        yes_or_no(self.refine, "refine")
        n_starts, tol, max_steps = (
            whole(self.n_starts, "n_starts"),
            positive(self.tol, "tol"),
            whole(self.max_steps, "max_steps"),
        )
        A, B = adjacency(A, "A"), adjacency(B, "B")
        sizes = A.shape[0], B.shape[0]
        weight = not_negative(self.similarity_weight, "similarity_weight")
        similarity, seeds = scores(similarity, weight, sizes), known_pairs(seeds, sizes)
        problem = MatchingProblem.of(A, B, seeds, similarity, self.padding)
        if not len(problem.rows):
            raise ValueError("Every node is in seeds, so that no node remains to be matched: leave some pairs out.")

        best: tuple[float, np.ndarray, Result] | None = None
        session = Session()

        def partial_fit(interruption: KeyboardInterrupt) -> Self | None:
            found = best
            if found is None and isinstance(result := getattr(interruption, "result", None), Result):
                session.add(result, "interrupted")
                found = (0.0, self._rounded(problem, result), result)
            return (
                None
                if found is None
                else unfitted_copy(self)._set_results(A, B, similarity, problem, *found[1:], session)
            )

        with attach_partial_fit(partial_fit):
            for x0 in self._starts(problem, n_starts):
                result = self._minimised(problem, x0, tol, max_steps, session, convex_start=best is None)
                permutation = self._rounded(problem, result)
                value = problem.value(permutation)
                if best is None or value > best[0]:
                    best = value, permutation, result
        assert best is not None  # there is at least one start
        return self._set_results(A, B, similarity, problem, *best[1:], session)

    def _starts(self, problem: MatchingProblem, number: int) -> Any:
        """Yield the starting points: the barycenter, then random points."""
        n = len(problem.rows)
        yield np.full((n, n), 1 / n)
        rng = np.random.default_rng(seed_of(self.random_state))
        for _ in range(number - 1):
            random = np.zeros((n, n))
            for _ in range(TUNING.random_permutations):
                random[np.arange(n), rng.permutation(n)] += 1 / TUNING.random_permutations
            yield (random + 1 / n) / 2

    def _minimised(
        self,
        problem: MatchingProblem,
        x0: np.ndarray,
        tol: float,
        max_steps: int,
        session: Session,
        convex_start: bool,
    ) -> Result:
        """Minimise the indefinite relaxation from x0; with ``convex_start``, after a few steps on the convex relaxation.

        Each run is added to the session.
        """
        domain, inner = Birkhoff(x0.shape), CondG(max_calls=TUNING.oracle_calls)

        # A is multiplied by a factor and B is divided by it, so that both have the same norm; <AP, PB> does not change
        sizes = [float(np.sqrt((graph * graph).sum())) for graph in (problem.A, problem.B)]
        scale = np.sqrt(sizes[1] / sizes[0]) if min(sizes) > 0 else 1.0
        graphs = scale * problem.A, problem.B / scale

        def run(convexity: float, x0: np.ndarray, steps: int, output: str) -> Result:
            objective = GraphMatching(*graphs, problem.C, convexity)
            size2 = float(np.sum(objective.grad(x0) ** 2))
            return minimize(
                objective,
                domain,
                x0,
                inner=inner,
                tol=tol * size2 if size2 > 0 else tol,
                max_steps=steps,
                smoothness=None
                if objective.smoothness > 0
                else 1.0,  # L is 0 for graphs without edges, where F is linear
                output=output,
                on_interrupt="raise",
            )

        if convex_start and self.start == "convex":
            convex = run(1.0, x0, TUNING.convex_steps, "last")
            session.add(convex, "convex")
            x0 = np.asarray(convex.x)
        result = run(0.0, x0, max_steps, "lowest")
        session.add(result, "indefinite")
        return result

    def _rounded(self, problem: MatchingProblem, result: Result) -> np.ndarray:
        """The permutation nearest to the doubly stochastic matrix, improved by exchanges if ``refine``."""
        permutation = Birkhoff(len(problem.rows)).permutation(-np.asarray(result.x))
        return problem.refine(permutation) if self.refine else permutation

    def _set_results(
        self,
        A: Any,
        B: Any,
        similarity: np.ndarray | None,
        problem: MatchingProblem,
        permutation: np.ndarray,
        result: Result,
        session: Session,
    ) -> Self:
        """Set the fitted attributes."""
        self.permutation_ = problem.matching(permutation)
        matched = np.flatnonzero(self.permutation_ >= 0)
        partners = self.permutation_[matched]
        one, other = A[matched][:, matched], B[partners][:, partners]
        common, sizes = float((one * other).sum()), float((one * one).sum() + (other * other).sum())
        self.score_ = 2 * common / sizes if sizes > 0 else 1.0
        self.objective_ = common if similarity is None else common + float(similarity[matched, partners].sum())
        self.result_, self.certificate_, self.n_steps_ = session.whole(result), result.certificate, session.steps
        return self
