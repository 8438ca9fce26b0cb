"""GraphMatcher: planted matchings, seeds, similarities, sizes that differ, and refusals."""

from __future__ import annotations

import pickle
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.graph_matching import flipped, noisy_pair
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import condgrad as cg
from condgrad.learn import GraphMatcher
from condgrad.learn.matching_problem import MatchingProblem

NO_SEEDS = np.empty((0, 2), dtype=int)


@pytest.mark.parametrize("kind", ["block", "power-law"])
def test_a_planted_matching_is_found_and_certified(kind: str) -> None:
    A, B, truth = noisy_pair(kind, 100, 101)
    matcher = GraphMatcher().fit(A, B)
    assert np.array_equal(matcher.permutation_, truth)
    assert matcher.objective_ == np.sum(A * B[np.ix_(truth, truth)]) and 0.97 < matcher.score_ < 1
    assert matcher.result_.status == "converged" and matcher.certificate_ is matcher.result_.certificate
    assert cg.Birkhoff(100).contains(np.asarray(matcher.result_.x))
    assert matcher.n_steps_ == matcher.result_.steps == matcher.result_.trace[-1].k
    assert {row.phase for row in matcher.result_.trace} == {"convex", "indefinite"}
    assert matcher.result_.counts["lo"] == matcher.result_.trace[-1].lo


@pytest.mark.parametrize("form", [sp.csr_array, sp.coo_matrix, sp.csc_array])
def test_sparse_graphs_have_the_answer_of_dense_ones(form: type) -> None:
    A, B, truth = noisy_pair("block", 50, 102)
    pairs = np.column_stack([np.arange(4), truth[:4]])
    for seeds in (None, pairs):
        dense, sparse = (GraphMatcher().fit(*graphs, seeds=seeds) for graphs in ((A, B), (form(A), form(B))))
        assert np.array_equal(dense.permutation_, sparse.permutation_)
        assert dense.score_ == pytest.approx(sparse.score_) and dense.objective_ == pytest.approx(sparse.objective_)
    assert np.array_equal(
        GraphMatcher().fit(form(A[:40, :40]), form(B), seeds=pairs).permutation_,
        GraphMatcher().fit(A[:40, :40], B, seeds=pairs).permutation_,
    )


def test_directed_weighted_graphs_in_any_unit() -> None:
    rng = np.random.default_rng(1)
    A, truth = rng.random((40, 40)), rng.permutation(40)
    B = np.empty_like(A)
    B[np.ix_(truth, truth)] = A + 0.05 * rng.standard_normal(A.shape)
    for unit in (1.0, 1e-8, 1e6):
        assert np.array_equal(GraphMatcher().fit(A, unit * B).permutation_, truth)
    assert not np.array_equal(GraphMatcher().fit(A, B.T).permutation_, truth)  # the direction of edges counts


def test_seeds_are_kept_and_help() -> None:
    A, B, truth = noisy_pair("block", 60, 103, share=0.3)
    alone = GraphMatcher().fit(A, B).permutation_
    pairs = np.column_stack([np.arange(15), truth[:15]])
    seeded = GraphMatcher().fit(A, B, seeds=pairs).permutation_
    assert np.array_equal(seeded[:15], truth[:15]) and sorted(seeded) == list(range(60))
    assert np.mean(seeded == truth) > np.mean(alone == truth)
    wrong = np.array([[0, truth[1]]])
    assert GraphMatcher().fit(A, B, seeds=wrong).permutation_[0] == truth[1]


def test_similarities_decide_between_twins() -> None:
    star = np.zeros((4, 4))
    star[0, 1:] = star[1:, 0] = 1.0
    leaves = np.zeros((4, 4))
    leaves[[1, 2, 3], [2, 3, 1]] = 0.1
    matcher = GraphMatcher().fit(star, star, similarity=leaves)
    assert matcher.permutation_.tolist() == [0, 2, 3, 1] and matcher.objective_ == pytest.approx(6.3)
    assert GraphMatcher(similarity_weight=0.0).fit(star, star, similarity=leaves).objective_ == pytest.approx(6.0)


def test_graphs_of_different_sizes() -> None:
    A, B, truth = noisy_pair("power-law", 40, 100)
    pairs = np.column_stack([np.arange(5), truth[:5]])
    small = GraphMatcher().fit(A[:34, :34], B, seeds=pairs)
    assert small.permutation_.shape == (34,) and len(set(small.permutation_)) == 34
    assert np.mean(small.permutation_ == truth[:34]) > 0.9 and small.score_ > 0.9
    large = GraphMatcher().fit(B, A[:34, :34], seeds=pairs[:, ::-1])
    assert large.permutation_.shape == (40,) and np.sum(large.permutation_ == -1) == 6
    expected = np.full(40, -1)
    expected[truth[:34]] = np.arange(34)
    assert np.mean(large.permutation_ == expected) > 0.9
    assert sorted(GraphMatcher(padding="naive").fit(A[:34, :34], B).permutation_) != []


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(0, 2))
@settings(max_examples=25, deadline=None)
def test_the_reduced_problem_ranks_matchings_as_the_whole_one(seed: int, n: int, known: int) -> None:
    """Seeds and padding move sums into other terms: differences of values must stay, and gains of exchanges be exact."""
    rng = np.random.default_rng(seed)
    A, B, C = rng.standard_normal((3, n + known, n + known))
    pairs = np.column_stack([rng.permutation(n + known)[:known], rng.permutation(n + known)[:known]])
    problem = MatchingProblem.of(A, B, pairs, C, "naive")

    def whole(p: np.ndarray) -> float:
        q = problem.matching(p)
        return float(np.sum(A * B[np.ix_(q, q)]) + C[np.arange(len(q)), q].sum())

    p, q = rng.permutation(n), rng.permutation(n)
    assert problem.value(p) - problem.value(q) == pytest.approx(whole(p) - whole(q), abs=1e-9)
    gains = problem.swap_gains(p)
    i, j = rng.integers(n, size=2)
    swapped = p.copy()
    swapped[[i, j]] = swapped[[j, i]]
    assert gains[i, j] == pytest.approx(problem.value(swapped) - problem.value(p), abs=1e-9)
    refined = problem.refine(p)
    assert problem.value(refined) >= problem.value(p) - 1e-9 and problem.swap_gains(refined).max() < 1e-6


def test_more_starts_and_refinement_are_never_worse_and_reproducible() -> None:
    A, B, _ = noisy_pair("block", 40, 104, share=0.3)
    one = GraphMatcher("barycenter").fit(A, B)
    several = GraphMatcher("barycenter", n_starts=4).fit(A, B)
    refined = GraphMatcher("barycenter", n_starts=4, refine=True).fit(A, B)
    assert one.objective_ <= several.objective_ <= refined.objective_
    assert several.n_steps_ > one.n_steps_
    assert np.array_equal(
        GraphMatcher("barycenter", n_starts=4, random_state=0).fit(A, B).permutation_, several.permutation_
    )


def test_small_graphs_are_matched_as_well_as_by_brute_force() -> None:
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        upper = np.triu(rng.random((6, 6)), 1)
        A = upper + upper.T
        B = flipped((A > 0.4).astype(float), 0.2, rng) * A
        best = max(float(np.sum(A * B[np.ix_(p, p)])) for p in map(list, permutations(range(6))))
        matcher = GraphMatcher(n_starts=5, refine=True).fit(A, B)
        assert matcher.objective_ <= best + 1e-9
        found.append(matcher.objective_ >= best - 1e-9)
    assert sum(found) >= 4  # a local method: most, not all


def test_graphs_without_edges_and_of_one_node() -> None:
    empty = GraphMatcher().fit(np.zeros((3, 3)), np.zeros((3, 3)))
    assert sorted(empty.permutation_) == [0, 1, 2] and empty.score_ == 1.0 and empty.objective_ == 0.0
    assert GraphMatcher().fit([[0.0]], [[1.0]]).permutation_.tolist() == [0]
    A, B, truth = noisy_pair("power-law", 20, 105)
    last = GraphMatcher().fit(A, B, seeds=np.column_stack([np.arange(19), truth[:19]]))
    assert np.array_equal(last.permutation_, truth)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((np.ones((3, 2)), np.ones((3, 3))), {}), r"A has shape \(3, 2\), but must be an adjacency matrix"),
        (((np.ones((3, 3)), np.ones(3)), {}), "B must be a matrix"),
        (((np.full((3, 3), np.nan), np.ones((3, 3))), {}), "A holds NaN or Inf"),
        (((np.ones((3, 3)), np.ones((0, 0))), {}), r"B has shape \(0, 0\)"),
        (((np.eye(3), np.eye(3)), {"seeds": [[0, 3]]}), "whose nodes are 0 to 2"),
        (((np.eye(3), np.eye(3)), {"seeds": [[0, 1], [2, 1]]}), "seeds name node 1 of B twice"),
        (((np.eye(3), np.eye(3)), {"seeds": [[0.5, 1]]}), "must be whole numbers of shape"),
        (((np.eye(3), np.eye(3)), {"seeds": [0, 1]}), "must be whole numbers of shape"),
        (((np.eye(3), np.eye(3)), {"seeds": [[0, 0], [1, 1], [2, 2]]}), "Every node is in seeds"),
        (((np.eye(3), np.eye(3)), {"similarity": np.ones((2, 3))}), r"similarity has shape \(2, 3\)"),
        (((np.eye(3), np.eye(3)), {"similarity": np.full((3, 3), np.inf)}), "similarity holds NaN or Inf"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments: tuple, words: str) -> None:
    matcher = GraphMatcher()
    with pytest.raises(ValueError, match=words):
        matcher.fit(*arguments[0], **arguments[1])
    assert not hasattr(matcher, "permutation_")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"start": "convx"}, "did you mean 'convex'"),
        ({"padding": "none"}, "Unknown padding"),
        ({"n_starts": 0}, "n_starts must be a whole number"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"max_steps": 1.5}, "max_steps must be a whole number"),
        ({"refine": 1}, "refine must be True or False"),
        ({"similarity_weight": -1.0}, "similarity_weight must not be negative"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GraphMatcher(**parameters).fit(np.eye(3), np.eye(3))


def test_it_behaves_as_an_estimator() -> None:
    A, B, _ = noisy_pair("power-law", 25, 106)
    matcher = GraphMatcher(n_starts=2, refine=True)
    copy = clone(matcher)
    assert copy.get_params() == matcher.get_params() and copy.set_params(start="barycenter").start == "barycenter"
    given = A.copy(), B.copy()
    fitted = matcher.fit(A, B)
    assert fitted is matcher and np.array_equal(A, given[0]) and np.array_equal(B, given[1])
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.permutation_, fitted.permutation_) and again.score_ == fitted.score_
    with pytest.raises(ValueError):
        fitted.fit(A, B[:, :3])
    assert np.array_equal(fitted.permutation_, again.permutation_)


def test_an_interrupted_fit_has_the_matching_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    A, B, _ = noisy_pair("power-law", 25, 106)
    calls = 0
    grad = cg.GraphMatching.value_and_grad

    def interrupting(self: cg.GraphMatching, P: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal calls
        calls += self.convexity == 0
        if calls == 4:
            raise KeyboardInterrupt
        return grad(self, P)

    monkeypatch.setattr(cg.GraphMatching, "value_and_grad", interrupting)
    matcher = GraphMatcher()
    with pytest.raises(KeyboardInterrupt) as caught:
        matcher.fit(A, B)
    partial = caught.value.partial_fit  # type: ignore[attr-defined]
    assert sorted(partial.permutation_) == list(range(25)) and not hasattr(matcher, "permutation_")


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 1.0]), st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_relaxation_equals_its_formula(seed: int, t: float, directed: bool, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    A, B, C, P, D = rng.standard_normal((5, 5, 5))
    if not directed:
        A, B = A + A.T, B + B.T
    made = cg.GraphMatching(sp.csr_array(A) if sparse else A, sp.csr_array(B) if sparse else B, C, t)
    value, grad = made.value_and_grad(P)
    formula = t / 2 * (np.sum((A @ P) ** 2) + np.sum((P @ B) ** 2)) - np.sum((A @ P) * (P @ B)) - np.sum(C * P)
    assert value == pytest.approx(formula) == made.value(P)
    slope = (made.value(P + 1e-6 * D) - made.value(P - 1e-6 * D)) / 2e-6
    assert np.vdot(grad, D) == pytest.approx(slope, rel=1e-5, abs=1e-6)
    curved = np.vdot(made.grad(P + D) - grad, D)
    assert -made.lower_smoothness * np.sum(D**2) - 1e-8 <= curved <= made.smoothness * np.sum(D**2) + 1e-8
