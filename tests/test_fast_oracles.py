"""The faster forms of linear oracles: beside the plain ones, and where a faster form could go wrong."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import condgrad as cg
from condgrad.checks import BadOracle, NonFinite
from condgrad.domains import DOMAINS
from condgrad.domains.polytopes import path_polytope, polytope, spanning_tree_polytope
from condgrad.linalg.extreme_eigen import Tridiagonal
from condgrad.linalg.selection import PACKED, SHORT, by_sign, increasing_order


@pytest.mark.parametrize("n", [1, 2, 3, 40, 130])
@pytest.mark.parametrize("kind", ["real", "complex", "columns"])
def test_eigenpairs_of_a_reduction_are_those_of_the_matrix(n, kind):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if kind != "real" else 0.0)
    A = (A + A.conj().T) / 2
    A = np.asfortranarray(A) if kind == "columns" else A
    values, reduced = np.linalg.eigvalsh(A), Tridiagonal(A)
    for first, last in {(0, 0), (n - 1, n - 1), (0, min(4, n - 1))}:
        found, vectors = reduced.eigenpairs(first, last)
        assert np.allclose(found, values[first : last + 1], rtol=0, atol=1e-12 * n)
        assert np.array_equal(found.shape, reduced.eigenvalues(first, last).shape)
        assert np.allclose(A @ vectors, vectors * found, rtol=0, atol=1e-12 * n)
        assert np.allclose(vectors.conj().T @ vectors, np.eye(last - first + 1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("A", [np.eye(70), np.zeros((70, 70)), np.ones((70, 70)), np.diag(1 + 1e-12 * np.arange(70.0))])
def test_equal_eigenvalues_have_orthonormal_vectors(A):
    values, vectors = Tridiagonal(A).eigenpairs(0, 9)
    assert np.allclose(vectors.T @ vectors, np.eye(10), rtol=0, atol=1e-12)
    assert np.allclose(A @ vectors, vectors * values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [65, 400, 401])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_symmetric_nuclear_ball_takes_the_larger_end_by_each_method(n, sign):
    rng = np.random.default_rng(n)
    v = rng.standard_normal(n)
    noise = rng.standard_normal((n, n)) / math.sqrt(n)
    g = (
        sign * 5 * np.outer(v, v) / (v @ v) + (noise + noise.T) / 10 + (noise - noise.T)
    )  # an antisymmetric part, not seen
    answer = cg.SymmetricNuclearBall(n, 2.0).lmo(g)
    assert np.vdot(g, answer) == pytest.approx(-2 * np.abs(np.linalg.eigvalsh((g + g.T) / 2)).max(), rel=1e-11)


def test_an_order_keeps_equal_keys_as_they_come():
    rng = np.random.default_rng(0)
    for keys in (
        rng.standard_normal(500),
        rng.integers(0, 5, 500) * 1.0,
        np.zeros(7),
        np.array([0.0, -0.0, 0.0]),
        np.ones(1),
    ):
        assert np.array_equal(increasing_order(keys), np.argsort(keys, kind="stable"))


def test_a_long_order_keeps_equal_keys_as_they_come():
    """Sorted as whole numbers of which the last bits are the index: keys that agree but for these bits are sorted again."""
    rng, n = np.random.default_rng(0), PACKED + 1_000
    close = 1 + rng.permutation(n // 2) * 2.0**-52
    for keys in (
        rng.standard_normal(n),
        np.concatenate([rng.standard_normal(n - 600), close[:300], -close[:300]]),  # a few that are close
        np.concatenate([close, -close]),
        np.concatenate([rng.standard_normal(n - 9), [0.0, -0.0, 0.0, -5e-324, 5e-324, -1e308, 1e308, 1.0, 1.0]]),
        rng.integers(-3, 4, n) * 1.0,
        np.zeros(n),
        -np.arange(float(n)),
    ):
        assert np.array_equal(increasing_order(keys), np.argsort(keys, kind="stable"))


def test_a_choice_by_sign_is_that_of_where():
    rng, n = np.random.default_rng(0), 3 * SHORT + 5
    x = rng.integers(-1, 2, n) * rng.choice([1.0, -1.0], n)
    x[:4] = [0.0, -0.0, 5e-324, -5e-324]
    for first, second in ((rng.standard_normal(n), rng.standard_normal(n)), (np.zeros(n), -np.zeros(n))):
        for shape in ((n,), (-1, 1)):
            given = [array.reshape(shape) for array in (x, first, second)]
            assert np.array_equal(by_sign(*given), np.where(given[0] > 0, *given[1:]))
    assert np.array_equal(by_sign(x, np.broadcast_to(2.0, n), first), np.where(x > 0, 2.0, first))


def test_a_matroid_is_asked_for_blocks_or_for_all_prefixes_at_once():
    """The same bases as one element at a time, by fewer calls of rank where many elements are independent."""
    rng, n = np.random.default_rng(0), 60
    asked = []

    def rank(chosen):
        asked.append(len(chosen))
        return len(np.unique(chosen // 3))

    def prefixes(order):
        return np.cumsum(np.isin(np.arange(n), np.unique(order // 3, return_index=True)[1]))

    plain, quick = cg.MatroidBasePolytope(n, rank), cg.MatroidBasePolytope(n, rank, prefixes)
    for g in (rng.standard_normal(n), rng.integers(-1, 2, n) * 1.0, np.arange(n) % 3 * 1.0):
        expected = np.zeros(n)
        order = np.argsort(g, kind="stable")
        expected[order[np.unique(order // 3, return_index=True)[1]]] = 1.0
        asked.clear()
        assert np.array_equal(plain.lmo(g), expected) and len(asked) <= 2 * n
        calls = len(asked)
        assert np.array_equal(quick.lmo(g), expected) and len(asked) == calls
    assert calls == 1  # the first elements of each block come first
    wrong = cg.MatroidBasePolytope(3, lambda chosen: len(chosen), lambda order: [1.0, 3.0, 3.0])
    with pytest.raises(BadOracle, match=r"^The answers of prefixes are not ranks"):
        wrong.lmo(np.ones(3))


def test_groups_of_all_kinds_are_summed_once():
    """Runs of equal and of different lengths, beside the norm of each group."""
    rng = np.random.default_rng(0)
    for groups in (
        [range(i, i + 4) for i in range(0, 18, 2)] + [[18, 19], [0, 19]],
        [range(i, i + 4) for i in range(0, 17, 2)],
        [[i] for i in range(20)],
        [range(20)],
    ):
        ball = cg.LatentGroupBall(20, groups, 2.0, 0.5 + rng.random(len(groups)))
        for g in rng.standard_normal((5, 20)):
            best = max(np.linalg.norm(g[list(group)]) / w for group, w in zip(groups, ball.weights, strict=True))
            assert np.vdot(g, ball.lmo(g)) == pytest.approx(-2.0 * best, rel=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_a_path_is_the_same_from_python_and_from_the_compiled_loop(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    pairs = np.sort(rng.integers(30, size=(150, 2)), axis=1)
    edges = np.concatenate([[(i, i + 1) for i in range(29)], pairs[pairs[:, 0] < pairs[:, 1]]])
    paths = cg.PathPolytope(edges[rng.permutation(len(edges))], 0, 29)
    for g in (rng.standard_normal(len(edges)), rng.integers(-2, 3, len(edges)) * 1.0, np.zeros(len(edges))):
        monkeypatch.setattr(path_polytope, "MIN_COMPILED_EDGES", 10**9)
        single = paths.lmo(g)
        monkeypatch.setattr(path_polytope, "MIN_COMPILED_EDGES", 0)
        assert np.array_equal(single, paths.lmo(g))


@pytest.mark.parametrize("n", [300, 70_000])
@pytest.mark.parametrize("radius", [1e-3, 5.0, 1e9])
def test_a_cut_l1_ball_spends_its_radius_on_the_steepest_entries(n, radius):
    """Beside a sort of all entries; with ties, and with boxes that leave the steepest entries little room."""
    rng = np.random.default_rng(n)
    lower, upper = -rng.random(n) * (rng.random(n) < 0.5), rng.random(n) * (rng.random(n) < 0.5)
    for g in (rng.standard_normal(n), rng.integers(-3, 4, n) * 1.0, np.zeros(n)):
        ball = cg.L1BallInBox(lower, upper, radius)
        order = np.argsort(-np.abs(g), kind="stable")
        room = np.where(g > 0, ball.lower, ball.upper)[order]
        before = np.concatenate([[0.0], np.cumsum(np.abs(room))[:-1]])
        expected = np.zeros(n)
        expected[order] = np.sign(room) * np.minimum(np.abs(room), np.maximum(radius - before, 0.0))
        assert np.allclose(ball.lmo(g), expected, rtol=0, atol=1e-12 * min(radius, 1.0))


@pytest.mark.parametrize("perfect", [True, False])
def test_a_bipartite_matching_of_edges_in_any_order_is_the_best_of_all(perfect):
    rng = np.random.default_rng(1)
    pairs = np.array([(i, j) for i in range(4) for j in range(4) if (i, j) != (1, 2)])
    for seed in range(5):
        edges = np.random.default_rng(seed).permutation(pairs)
        number = {tuple(pair): i for i, pair in enumerate(edges.tolist())}
        g = rng.standard_normal(len(edges)) if seed % 2 else rng.integers(-2, 3, len(edges)) * 1.0
        best = math.inf
        for columns in itertools.permutations(range(4)):
            costs = [g[number[i, j]] if (i, j) in number else math.inf for i, j in enumerate(columns)]
            best = min(best, sum(costs) if perfect else sum(min(cost, 0.0) for cost in costs))
        found = cg.BipartiteMatchingPolytope(edges, perfect=perfect).lmo(g)
        assert found @ g == pytest.approx(best, abs=1e-12)


def test_a_sum_of_sets_changes_no_remembered_answer():
    """Answers are added in place, to an array that no set keeps."""
    kept = cg.Cached(cg.L2Ball(3))
    both, g = cg.MinkowskiSum(kept, cg.L2Ball(3), cg.Simplex(3)), np.array([3.0, -4.0, 0.0])
    first = both.lmo(g)
    assert np.array_equal(both.lmo(g), first) and np.array_equal(kept.lmo(g), cg.L2Ball(3).lmo(g))
    assert np.allclose(first, [-1.2, 2.6, 0.0])


EXAMPLES = {
    f"{e.name} {label}".strip(): s for e in DOMAINS.values() if e.name != "user" for label, s in e.examples().items()
}


@pytest.mark.parametrize("domain", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_every_set_refuses_a_direction_with_nan(domain):
    """Sets that are made from others leave the check to them, so each must make it, wherever the NaN is."""
    for at in (0, -1):
        g = np.zeros(domain.shape)
        g.flat[at] = np.nan
        with pytest.raises(NonFinite, match=r"^The direction given to .* holds NaN or Inf.*\.$"):
            domain.lmo(g)


POLYTOPES = DOMAINS["polytope"].examples()


@pytest.mark.parametrize("label", POLYTOPES)
def test_a_polytope_answers_tied_directions_with_one_vertex_whatever_was_asked_before(label):
    """Normals of faces, for which every point of the face is a minimiser; 0; and these times tiny and huge numbers."""
    domain, fresh = POLYTOPES[label], DOMAINS["polytope"].examples()[label]
    n = domain.shape[0]
    corners = polytope._polytope_vertices(domain)
    normals = np.concatenate([domain.A.toarray(), domain.C.toarray(), np.eye(n), np.ones((1, n)), np.zeros((1, n))])
    normals = np.concatenate([normals, -normals])
    answers = [domain.lmo(g) for g in normals]
    for g, v in reversed(list(zip(normals, answers, strict=True))):
        assert np.abs(corners - v).max(axis=1).min() <= 1e-12 * domain.max_norm
        assert g @ v <= (corners @ g).min() + 1e-12 * np.linalg.norm(g) * domain.max_norm
        assert np.array_equal(fresh.lmo(g), v)
        size = np.abs(g).max() or 1.0
        for scale in (1e-300, 1e300):
            assert np.array_equal(domain.lmo(scale * (g / size)), domain.lmo(g / size))


@pytest.mark.parametrize("seed", range(4))
def test_compiled_spanning_trees_are_those_of_scipy(seed, monkeypatch):
    """With ties, costs of any sign, and parallel edges."""
    rng = np.random.default_rng(seed)
    edges = np.concatenate([[(i, i + 1) for i in range(29)], [rng.choice(30, 2, replace=False) for _ in range(120)]])
    trees, g = cg.SpanningTreePolytope(edges), rng.integers(-3, 4, len(edges)) * 1.0
    by_scipy = trees.lmo(g)
    monkeypatch.setattr(spanning_tree_polytope, "COMPILED_FROM", 0)
    compiled = trees.lmo(g)
    assert compiled @ g == by_scipy @ g and compiled.sum() == 29 and trees.contains(compiled)


@pytest.mark.parametrize("level", [-100.0, -3.0, -1.0, 0.0, 1e5])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e7])
def test_transport_plans_are_minimal_for_costs_of_any_sign_and_size(level, size):
    """POT takes no plan at all for costs of at most -2, without a word."""
    pytest.importorskip("ot")
    rng = np.random.default_rng(0)
    g, sums = size * (level + rng.standard_normal((3, 4))), (np.array([1.0, 2.0, 0.5]), np.full(4, 0.875))
    plan, known = (cg.TransportPolytope(*sums, solver).lmo(g) for solver in ("network-simplex", "lp"))
    assert np.vdot(g, plan) == pytest.approx(np.vdot(g, known), rel=1e-12)
