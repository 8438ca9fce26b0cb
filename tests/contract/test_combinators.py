"""What the sets made from other sets, and the newer sets of matrices, must do besides test_domains.py."""

from __future__ import annotations

import pickle
import threading
import warnings

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.contract.test_domains import SETS, entry_of

import condgrad as cg
from condgrad import spec
from condgrad.checks import NonFinite, NotGiven
from condgrad.domains.combinators._combination import reached
from condgrad.domains.spectral import elliptope
from condgrad.driver.vertices import by_user
from condgrad.inner import Corrective, absolute, inner_solver
from condgrad.points import distance2, norm2
from condgrad.protocols import Projectable, SpectralSet, fits
from condgrad.runtime.signals import InexactOracleWarning, receiving, report_inexact, worst

NEW = {
    name: domain
    for name, domain in SETS.items()
    if type(domain).__module__.startswith("condgrad.domains.combinators")
    or isinstance(
        domain,
        cg.SymmetricNuclearBall | cg.HermitianNuclearBall | cg.SchattenBall | cg.UnfoldingBall | cg.Elliptope,
    )
}
every_new_set = pytest.mark.parametrize("domain", NEW.values(), ids=NEW.keys())


def interior(domain, seed):
    """A point inside of the set, and one far outside, as vectors or arrays."""
    rng, sample = np.random.default_rng(seed), entry_of(domain).sample
    middle = sum(np.asarray(sample(domain, rng)) for _ in range(8)) / 8
    far = middle + domain.max_norm * rng.standard_normal(domain.shape)
    return middle, far


# ------------------------------------------------------------------------------------------------------ every new set


@every_new_set
@pytest.mark.parametrize("name", ["condg", "corrective", "exact"])
def test_every_inner_solver_reaches_a_relative_gap_of_1e_8(domain, name):
    """condg, whose rate is sublinear at the boundary, on a problem with its solution inside; the others on any."""
    if name == "exact" and not fits(domain, Projectable):
        pytest.skip("the set has no projection")
    inside, far = interior(domain, 1)
    z = inside if name == "condg" else far
    u, gamma = np.asarray(domain.start()), 0.5
    g = (u - z) / gamma  # the solution is the projection of z
    scale = domain.max_norm * (domain.max_norm + float(np.linalg.norm(z))) / gamma
    solver = cg.Corrective(20_000) if name == "corrective" else inner_solver(name, domain, 20_000)
    with receiving() as reports:
        p, gap, _ = solver.solve(domain, g, u, gamma, absolute(1e-9 * scale), solver.init(domain, u))
    assert gap + worst(reports) <= 1e-8 * scale
    direction = g + (p - u) / gamma
    with receiving():
        true_gap = float(np.vdot(direction, p - domain.lmo(direction)))
    assert true_gap <= 1e-8 * scale
    if name == "corrective" and fits(domain, Projectable):
        assert np.linalg.norm(p - domain.project(z)) <= 1e-4 * domain.max_norm  # Lemma 1: sqrt(gamma gap)


@every_new_set
def test_nan_is_refused_in_one_sentence(domain):
    g = np.ones(domain.shape)
    g.flat[-1] = np.nan
    if isinstance(domain, cg.Cached):
        return  # has the answer of its set
    with pytest.raises(NonFinite, match=r"The direction given to .* holds NaN or Inf"):
        domain.lmo(g)


@every_new_set
def test_minimize_converges_with_a_certificate(domain):
    target = interior(domain, 5)[1]
    F = cg.Function(
        lambda x: float(np.sum((np.asarray(x) - target) ** 2)) / 2,
        lambda x: np.asarray(x) - target,
        domain.shape,
        smoothness=1.0,
    )
    tol = 1e-6 * domain.max_norm**2
    result = cg.minimize(F, domain, tol=tol, max_steps=300)
    assert result.status == "converged" and result.certificate.upper <= tol
    assert domain.contains(result.x, 1e-6)
    if fits(domain, Projectable) and not fits(domain, SpectralSet):
        assert np.linalg.norm(np.asarray(result.x) - domain.project(target)) <= 0.1 * domain.max_norm
        assert result.inner == "exact"


# -------------------------------------------------------------------------------------------------------------- blocks


def test_blocks_are_points():
    rng = np.random.default_rng(0)
    A, B, v = rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), rng.standard_normal(4)
    x, y = cg.Blocks(A, v), cg.Blocks(B, 2 * v)
    assert np.array_equal(np.asarray(x + 2 * y), np.asarray(x) + 2 * np.asarray(y))
    assert x.shape == (10,) and len(x) == 2 and [block.shape for block in x] == [(3, 2), (4,)]
    assert x.inner(y) == pytest.approx(float(np.asarray(x) @ np.asarray(y)))
    assert norm2(x - y) == pytest.approx(distance2(np.asarray(x), np.asarray(y)))
    flat = rng.standard_normal(10)
    for total in (x + flat, flat + x, x - (-flat), flat - (-1.0 * x)):
        assert isinstance(total, cg.Blocks) and np.allclose(np.asarray(total), np.asarray(x) + flat)
    assert x.inner(flat) == pytest.approx(float(np.asarray(x) @ flat))
    low = cg.Blocks(cg.LowRank(A, rng.standard_normal((5, 2))), v)
    assert isinstance((low - 0.5 * low)[0], cg.LowRank) and norm2(low - low) == 0.0
    copied = pickle.loads(pickle.dumps(low))
    assert np.array_equal(np.asarray(copied), np.asarray(low)) and isinstance(copied[0], cg.LowRank)


def test_blocks_by_name():
    x = cg.Blocks(matrix=np.eye(2), vector=[1, 2, 3])
    assert x["vector"].dtype == float and x[1] is x["vector"] and x.names == ("matrix", "vector")
    assert (2 * x).names == x.names and "vector: array of shape (3,)" in repr(x)
    assert x.like({"vector": [4, 5, 6], "matrix": np.zeros((2, 2))})["vector"].tolist() == [4.0, 5.0, 6.0]
    assert cg.Blocks(np.zeros(2, dtype=np.float32), np.zeros(2)).dtype == np.float32
    given = [np.zeros((2, 2)), np.zeros(3)]
    filled = x.like(given)
    given[0][:], given[1][:] = 1.0, 1.0
    assert not np.asarray(filled).any(), "the numbers are copied"
    with pytest.raises(KeyError, match="no block 'other': there are matrix, vector"):
        x["other"]
    with pytest.raises(ValueError, match="all blocks by position, or all by name"):
        cg.Blocks()
    with pytest.raises(ValueError, match=r"Block vector of the point has shape \(2,\), but \(3,\) was expected"):
        x.like((np.eye(2), np.ones(2)))
    with pytest.raises(ValueError, match="The point has 1 blocks, but 2 were expected"):
        x.like([np.eye(2)])
    with pytest.raises(ValueError, match="has the blocks matrix, but matrix, vector were expected"):
        x.like({"matrix": np.eye(2)})
    with pytest.raises(ValueError, match="give both the same shapes"):
        x + cg.Blocks(np.ones(3), np.eye(2))
    with pytest.raises(TypeError, match="is no matrix: take its blocks"):
        np.eye(7) @ x


# ------------------------------------------------------------------------------------------------------------- product

TARGET = {"weights": np.array([0.5, 0.7, 0.0]), "matrix": np.random.default_rng(0).standard_normal((4, 3))}
BOTH = cg.Product(weights=cg.Simplex(3), matrix=cg.NuclearBall((4, 3), 1.0))


def square_distance(x):
    return sum(float(np.sum((x[name] - TARGET[name]) ** 2)) for name in TARGET)


def twice_difference(x):
    return {name: 2 * (x[name] - TARGET[name]) for name in TARGET}


def nearest():
    return {name: one.project(TARGET[name]) for name, one in zip(BOTH.names, BOTH.sets, strict=True)}


@pytest.mark.parametrize("method", [name for name, m in cg.METHODS.items() if m.sees == "gradient"])
def test_every_deterministic_method_takes_points_of_blocks(method):
    F = cg.Function(square_distance, twice_difference, smoothness=2.0)
    # these two have step sizes with which they converge slowly here
    tol = {"parameter-free-frank-wolfe": 2e-2, "dca-frank-wolfe": 1e-3}.get(method, 1e-8)
    result = cg.minimize(F, BOTH, method=method, tol=tol)
    assert result.status == "converged" and isinstance(result.x, cg.Blocks) and result.x.names == BOTH.names
    # F is strongly convex: the distance to the solution is at most the mapping's norm
    assert all(np.allclose(result.x[name], best, atol=max(1e-3, tol**0.5)) for name, best in nearest().items())
    again = result.certificate.verify(cg.Problem(F, BOTH))
    assert again.upper <= tol


class Own:
    """A class of the user's, which answers with a tuple."""

    def value(self, x):
        return square_distance(x)

    def grad(self, x):
        return tuple(2 * (x[name] - TARGET[name]) for name in TARGET)


def test_gradients_may_be_tuples_dicts_blocks_or_vectors():
    points = [np.asarray(cg.minimize(Own(), BOTH, smoothness=2.0).x)]
    for answer in (
        lambda x: cg.Blocks(**twice_difference(x)),
        lambda x: tuple(twice_difference(x).values()),
        lambda x: np.concatenate([block.ravel() for block in twice_difference(x).values()]),
    ):
        F = cg.Function(square_distance, answer, smoothness=2.0)
        points.append(np.asarray(cg.minimize(F, BOTH).x))
    both = cg.Function(value_and_grad=lambda x: (square_distance(x), twice_difference(x)), smoothness=2.0)
    points.append(np.asarray(cg.minimize(both, BOTH).x))
    assert all(np.array_equal(x, points[0]) for x in points)
    for wrong, sentence in (
        (lambda x: (x["weights"],), "has 1 blocks, but 2 were expected"),
        (lambda x: {"weights": x["weights"] * np.nan, "matrix": x["matrix"]}, "holds NaN or Inf"),
    ):
        with pytest.raises(ValueError, match=sentence):
            cg.Function(square_distance, wrong).grad(BOTH.start())


@pytest.mark.parametrize(("method", "options"), [("frank-wolfe", {}), ("ncgs", {"inner": "corrective"})])
def test_a_run_with_blocks_resumes_bit_for_bit(tmp_path, method, options):
    F = cg.Function(square_distance, twice_difference)  # L by backtracking
    given = {"method": method, "tol": 1e-14, **options}
    whole = cg.minimize(F, BOTH, max_steps=9, **given)
    path = cg.Checkpoint(tmp_path / "run", steps=2)
    cg.minimize(F, BOTH, max_steps=4, checkpoint=path, **given)
    resumed = cg.minimize(F, BOTH, max_steps=9, checkpoint=path, resume=True, **given)
    assert np.asarray(resumed.x).tobytes() == np.asarray(whole.x).tobytes()
    assert resumed.counts == whole.counts and resumed.x.names == BOTH.names


def test_blocks_of_low_rank_stay_so(tmp_path):
    data = cg.paper_data(12, 9, 1, seed=0, generator="gaussian", observe=0.6, corrupt=0.0)
    G = cg.Completion(data.rows, data.cols, data.values, (12, 9), cg.Squared())

    class Together:
        low_rank = True

        def value(self, x):
            return G.value(x[0]) + float(np.sum((x[1] - 1) ** 2)) / 2

        def grad(self, x):
            return G.grad(x[0]), x[1] - 1

    S = cg.Product(cg.NuclearBall((12, 9), data.nuclear_norm), cg.L2Ball(3))
    alone = cg.minimize(G, S.sets[0], tol=1e-4)
    projected = cg.minimize(Together(), S, tol=1e-4)
    assert projected.status == "converged" and projected.inner == "exact"
    assert G.value(projected.x[0]) <= G.value(alone.x) + 0.01 <= 0.1 * G.value(np.zeros((12, 9)))
    few = cg.minimize(Together(), S, inner=cg.Corrective(max_calls=3), max_steps=8)
    steps = cg.minimize(Together(), S, method="frank-wolfe", max_steps=30)
    for run in (projected, few, steps):
        assert isinstance(run.x[0], cg.LowRank) and np.allclose(run.x[1], 1 / np.sqrt(3), atol=0.05)
        assert run.fun < Together().value(S.start())
    dense = cg.minimize(Together(), S, S.start(), tol=1e-3)
    assert isinstance(dense.x[0], np.ndarray)


def test_objectives_for_vectors_work_on_products():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 15))
    F = cg.LinearModel(A, A @ rng.random(15), cg.Welsch(2.0))
    blocks, flat = cg.minimize(F, BOTH, tol=1e-8), cg.minimize(F, BOTH, np.asarray(BOTH.start()), tol=1e-8)
    assert isinstance(blocks.x, cg.Blocks) and isinstance(flat.x, np.ndarray)
    assert np.allclose(np.asarray(blocks.x), flat.x, atol=1e-6)
    assert cg.minimize(F, BOTH, method="ncgs-vr", tol=1e-2, max_steps=50).x.names == BOTH.names


def test_atoms_of_products_multiples_and_caches_are_structured():
    S = cg.Product(cg.Simplex(4), cg.Scaled(cg.Simplex(3), 2.0))
    g = np.random.default_rng(0).standard_normal(7)
    flat, blocks = S.atom(g), S.atom(S.start().like(g))
    assert isinstance(flat, cg.SparseArray) and all(isinstance(block, cg.SparseArray) for block in blocks)
    assert np.array_equal(np.asarray(flat), S.lmo(g)) and np.array_equal(np.asarray(blocks), S.lmo(g))
    cached = cg.Cached(cg.Simplex(4))
    assert cached.atom(g[:4]) is cached.atom(g[:4]) and isinstance(cached.lmo(g[:4]), np.ndarray)
    assert cached.saved == (3, 1, 0) and not hasattr(cg.Cached(cg.LpBall(3, 3.0)), "atom")
    F = cg.Quadratic(np.diag(np.arange(1.0, 8.0)), g)
    runs = [cg.minimize(F, S, start, inner="corrective", tol=1e-8) for start in (None, np.asarray(S.start()))]
    assert all(run.status == "converged" for run in runs) and np.allclose(np.asarray(runs[0].x), runs[1].x, atol=1e-3)


def test_products_join_sparse_vertices():
    class SparseSimplex:
        shape = (4,)

        def lmo(self, direction):
            return cg.SparseArray([int(np.argmin(direction))], 1.0, (4,))

    S = cg.Product(SparseSimplex(), SparseSimplex())
    v = S.lmo(np.array([3.0, 1.0, 2.0, 5.0, 0.0, -1.0, 4.0, 1.0]))
    assert isinstance(v, cg.SparseArray) and v.indices.tolist() == [1, 5]
    assert S.contains(np.full(8, 0.25)) and not S.contains(np.full(8, 0.3))
    with pytest.raises(NotGiven, match="diameter of SparseSimplex is needed"):
        _ = S.diameter


def test_a_users_set_inside_is_compared_with_its_own_answers():
    calls = []

    def stale(direction):
        calls.append(1)
        return -direction / np.linalg.norm(direction) if len(calls) < 6 else np.array([0.0, 1.0])

    own = cg.user_set(stale, 2, diameter=2.0, contains=lambda x, tolerance: np.linalg.norm(x) <= 1 + tolerance)
    S = cg.Product(own, cg.Simplex(2))
    assert by_user(S) and not by_user(BOTH) and not hasattr(S, "project") and hasattr(BOTH, "project")
    F = cg.Quadratic(np.diag([1.0, 2.0, 1.0, 3.0]), np.array([0.3, 0.2, 0.0, 0.1]))
    result = cg.minimize(F, S, np.array([1.0, 0.0, 1.0, 0.0]), method="frank-wolfe", max_steps=60, tol=1e-10)
    assert result.status == "failed" and "worse than" in result.message


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: cg.Product(), ValueError, "Product needs at least one set"),
        (lambda: cg.Product(cg.Simplex), TypeError, "is made from sets, but got <class"),
        (lambda: cg.Product(3), TypeError, "give sets such as Simplex"),
        (lambda: cg.Scaled(cg.Simplex(2), 0.0), ValueError, "leaves one point only"),
        (lambda: cg.Shifted(cg.Simplex(2), [1.0]), ValueError, "The vector of Shifted has shape"),
        (lambda: cg.LinearImage(np.eye(3), cg.Simplex(2)), ValueError, "give a matrix with 2 columns"),
        (lambda: cg.MinkowskiSum(cg.Simplex(2), cg.Simplex(3)), ValueError, "A set given to MinkowskiSum has shape"),
        (lambda: cg.HullOfUnion(), ValueError, "give at least one"),
        (lambda: cg.HalfSpaceCut(cg.Simplex(2), [0.0, 0.0], 1.0), ValueError, "The normal of HalfSpaceCut is 0"),
        (lambda: cg.HalfSpaceCut(cg.Simplex(2), [1.0, 1.0], 0.5), ValueError, "is an empty set: <a, x> is at least 1"),
        (lambda: cg.BoxCut(cg.NuclearBall((2, 2)), 0.0, 1.0), TypeError, "but got NuclearBall: cut single bounds off"),
        (lambda: cg.BoxCut(cg.Simplex(2), 0.0, 0.4), ValueError, "BoxCut is an empty set: the entries"),
        (lambda: cg.BoxCut(cg.L1Ball(2), 0.6, 1.0), ValueError, "the least norm in the box is 1.2"),
        (lambda: cg.BoxCut(cg.L2Ball(2), 0.8, 1.0), ValueError, "the least norm in the box is 1.13"),
        (lambda: cg.BoxCut(cg.LinfBall(2), 2.0, 3.0), ValueError, "the two boxes have no point in common"),
        (lambda: cg.Cached(cg.Simplex(2), 0), ValueError, "The size of Cached must be a whole number"),
        (lambda: cg.SchattenBall((2, 2), 1.0), ValueError, "use NuclearBall"),
        (lambda: cg.SchattenBall((2, 2), 0.5), ValueError, "below 1 the set is not convex"),
        (lambda: cg.UnfoldingBall((2, 2), 2), ValueError, "UnfoldingBall got the mode 2"),
        (lambda: cg.HermitianNuclearBall((3, 2, 2)), ValueError, "give \\(2, n, n\\), or n alone"),
        (lambda: cg.Elliptope((2, 3)), ValueError, "Elliptope is a set of symmetric matrices"),
    ],
)
def test_refused_in_one_sentence(make, kind, sentence):
    with pytest.raises(kind, match=sentence) as refusal:
        make()
    assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value)


# ------------------------------------------------------------------------------------------------- oracles of each set


@pytest.mark.parametrize("seed", range(6))
def test_a_cut_simplex_against_linear_programming(seed):
    rng = np.random.default_rng(seed)
    a, g = rng.standard_normal(12), rng.integers(-3, 4, 12).astype(float)
    for b in (a.min(), np.median(a), a.max() + 1):  # touching, cutting, loose
        S = cg.HalfSpaceCut(cg.Simplex(12), a, b)
        found = linprog(g, A_ub=[a], b_ub=[b], A_eq=np.ones((1, 12)), b_eq=[1.0], bounds=(0, None))
        v = S.lmo(g)
        assert g @ v == pytest.approx(found.fun, abs=1e-10) and S.contains(v, 1e-12)
        assert np.count_nonzero(v) <= 2, "of two vertices"
        z = 3 * rng.standard_normal(12)
        p = S.project(z)
        assert S.contains(p, 1e-12) and float((z - p) @ (S.lmo(p - z) - p)) <= 1e-10


def test_cuts_of_cuts():
    S = cg.HalfSpaceCut(cg.HalfSpaceCut(cg.LinfBall(3), [1.0, 1.0, 0.0], 0.5), [0.0, 1.0, -1.0], 0.25)
    rng = np.random.default_rng(0)
    for _ in range(20):
        g = rng.standard_normal(3)
        found = linprog(g, A_ub=[[1, 1, 0], [0, 1, -1]], b_ub=[0.5, 0.25], bounds=(-1, 1))
        assert g @ S.lmo(g) == pytest.approx(found.fun, abs=1e-12)


def test_a_cut_that_takes_too_many_calls_says_its_error(monkeypatch):
    from condgrad.domains.combinators import half_space_cut

    S = cg.HalfSpaceCut(cg.LpBall(4, 3.0), [1.0, 2.0, 0.0, -1.0], -0.3)
    g = np.array([-1.0, -0.5, 0.3, 2.0])
    exact = float(g @ S.lmo(g))
    monkeypatch.setattr(half_space_cut, "MAX_CALLS", 2)
    with receiving() as reports:
        answer = S.lmo(g)
    rough = float(g @ answer)
    assert S.contains(answer, 1e-12)
    assert exact < rough <= exact + worst(reports) * (1 + 1e-9)
    with pytest.warns(InexactOracleWarning, match="HalfSpaceCut did not converge"):
        S.lmo(g)


@pytest.mark.parametrize("domain", [cg.Simplex(5, 2.0), cg.L1Ball(5, 1.0), cg.L2Ball(5, 0.9)], ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_boxes_cut_as_half_spaces_do(domain, seed):
    """Against the corrective inner solver on the box's own oracle, and bounds that touch."""
    rng = np.random.default_rng(seed)
    lower, upper = -0.5 * rng.random(5), 0.5 + rng.random(5)
    S = cg.BoxCut(domain, lower, upper)
    z = rng.standard_normal(5) * 2
    p = S.project(z)
    u = S.start()
    q = Corrective().solve(S, (u - z), u, 1.0, absolute(1e-13), Corrective().init(S, u)).point
    assert S.contains(p, 1e-13) and np.allclose(p, q, atol=1e-6)
    point = S.project(z)
    thin = cg.BoxCut(domain, point, point)  # one point only
    assert np.allclose(thin.lmo(rng.standard_normal(5)), point) and np.allclose(thin.project(z), point)


def test_reached_is_the_distance():
    S, x = cg.L2Ball(3), np.array([2.0, 0.0, 0.0])
    assert reached((S,), x, 1.0 + 1e-9) and not reached((S,), x, 1.0 - 1e-6)
    terms = (cg.Simplex(3), cg.LinfBall(3, 0.5))
    away = np.array([2.5, 0.5, 0.5])  # from (1, 0, 0) + (0.5, 0.5, 0.5)
    assert reached(terms, away, 1.0 + 1e-9) and not reached(terms, away, 1.0 - 1e-6)
    assert reached((S,), np.array([1.0, 0.0, 0.0]), 1e-9) and not reached((S,), np.array([np.nan, 0.0, 0.0]), 1.0)


def test_images_by_sparse_matrices_and_by_rotations():
    from scipy.sparse import random as random_sparse

    A = random_sparse(6, 5, 0.5, random_state=0)
    dense, sparse = cg.LinearImage(A.toarray(), cg.L1Ball(5)), cg.LinearImage(A, cg.L1Ball(5))
    g = np.random.default_rng(0).standard_normal(6)
    assert np.allclose(dense.lmo(g), sparse.lmo(g)) and dense.diameter == pytest.approx(sparse.diameter)
    assert hasattr(SETS["linear-image turned"], "project") and not hasattr(dense, "project")


# --------------------------------------------------------------------------------------------------------------- cache


def test_a_cache_changes_no_bit_and_says_what_it_saved():
    F = cg.Quadratic(np.diag([3.0, -1.0, 2.0, 1.0, 0.5]))
    plain, cached = cg.LpBall(5, 3.0), cg.Cached(cg.LpBall(5, 3.0))
    runs = [cg.minimize(F, domain, method="frank-wolfe", max_steps=60) for domain in (plain, cached, cached)]
    assert all(run.x.tobytes() == runs[0].x.tobytes() and run.counts == runs[0].counts for run in runs)
    saved = cached.saved
    assert saved.repeats > 0 and saved.calls == saved.asked - saved.repeats
    assert not hasattr(cached, "project") and cached.radius == 1.0
    other = pickle.loads(pickle.dumps(cached))
    assert other.saved == (0, 0, 0) and np.array_equal(other.lmo(np.arange(5.0)), cached.lmo(np.arange(5.0)))
    assert fits(cg.Cached(cg.NuclearBall((3, 3))), SpectralSet), "it has all members of its set"


def test_a_cache_forgets_the_oldest_and_is_shared_by_threads():
    S = cg.Cached(cg.Simplex(3), 2)
    directions = [np.roll([0.0, 1.0, 2.0], i) for i in range(3)]
    for g in (*directions, directions[2], directions[1], directions[0]):
        assert np.array_equal(S.lmo(g), cg.Simplex(3).lmo(g))
    assert S.saved == (6, 2, 0)
    shared, wrong = cg.Cached(cg.Simplex(3), 2), []

    def ask():
        for i in range(300):
            if not np.array_equal(shared.lmo(directions[i % 3]), cg.Simplex(3).lmo(directions[i % 3])):
                wrong.append(i)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and shared.saved.asked == 1200


def test_a_cache_repeats_the_errors_of_inexact_answers():
    class Rough:
        shape = (2,)

        def lmo(self, direction):
            report_inexact(0.25, "It was rough.")
            return -np.sign(direction)

    S = cg.Cached(Rough())
    for _ in range(2):
        with receiving() as reports:
            S.lmo(np.ones(2))
        assert [report.error for report in reports] == [0.25]
    with pytest.warns(InexactOracleWarning, match="It was rough"):
        S.lmo(np.ones(2))


def test_lazy_answers_are_good_enough():
    S, x = cg.Cached(cg.Simplex(4)), np.full(4, 0.25)
    g = np.array([3.0, 1.0, 0.5, 2.0])
    vertex, remembered = S.lmo_lazy(g, x, 0.1)
    assert not remembered and np.array_equal(vertex, np.eye(4)[2])
    close = g + np.array([0.0, -0.8, 0.0, 0.0])
    vertex, remembered = S.lmo_lazy(close, x, 0.1)
    assert remembered and close @ (x - vertex) >= 0.1 and S.saved == (2, 0, 1)
    vertex, remembered = S.lmo_lazy(close, x, 5.0)
    assert not remembered and np.array_equal(vertex, np.eye(4)[1])


# ------------------------------------------------------------------------------------------------------------ matrices


def test_symmetric_ball_of_large_and_structured_matrices():
    rng = np.random.default_rng(0)
    D, ball = rng.standard_normal((90, 90)), cg.SymmetricNuclearBall(90, 2.0)
    half = (D + D.T) / 2
    for sign in (1.0, -1.0):
        v = ball.lmo(sign * D)
        assert np.vdot(sign * D, v) == pytest.approx(-2 * np.linalg.norm(half, 2), rel=1e-12)
        assert ball.contains(v) and np.array_equal(v, v.T)
    low = cg.LowRank(rng.standard_normal((90, 2)), rng.standard_normal((90, 2)))
    v = ball.lmo(low)
    dense = (low.to_dense() + low.to_dense().T) / 2
    assert isinstance(v, cg.LowRank) and v.inner(low) == pytest.approx(-2 * np.linalg.norm(dense, 2), rel=1e-10)
    assert ball.contains(v)


def test_hermitian_points_are_pairs_of_real_matrices():
    rng, ball = np.random.default_rng(0), cg.HermitianNuclearBall(4, 1.5)
    X = rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))
    Y = X + X.conj().T
    assert np.array_equal(ball.to_complex(ball.to_real(X)), X)
    assert np.vdot(ball.to_real(X), ball.to_real(Y)) == pytest.approx(np.trace(X.conj().T @ Y).real)
    p = ball.to_complex(ball.project(ball.to_real(Y)))
    vectors = np.linalg.eigh(Y)[1]
    shrunk = np.diag(vectors.conj().T @ p @ vectors).real
    assert np.allclose(p, (vectors * shrunk) @ vectors.conj().T) and np.abs(shrunk).sum() == pytest.approx(1.5)
    assert not ball.contains(ball.to_real(1j * Y / np.linalg.norm(Y, "nuc")))


def test_real_hermitian_matrices_are_the_symmetric_ones():
    g = np.random.default_rng(3).standard_normal((4, 4))
    real, both = cg.SymmetricNuclearBall(4), cg.HermitianNuclearBall(4)
    pair = np.stack([g, np.zeros((4, 4))])
    assert np.allclose(both.lmo(pair)[0], real.lmo(g)) and np.allclose(both.lmo(pair)[1], 0)
    assert np.allclose(both.project(pair)[0], real.project(g))


def test_unfolding_is_that_of_the_literature():
    X, ball = np.arange(24.0).reshape(2, 3, 4), cg.UnfoldingBall((2, 3, 4), 1)
    assert ball.unfolded(X).shape == (3, 8) and np.array_equal(ball.unfolded(X)[1], X[:, 1].ravel())
    assert np.array_equal(ball.folded(ball.unfolded(X)), X)
    matrix = cg.NuclearBall((3, 8))
    assert np.allclose(ball.unfolded(ball.project(X)), matrix.project(ball.unfolded(X)))


def test_schatten_balls_lie_between_the_nuclear_and_the_spectral_ball():
    g = np.random.default_rng(0).standard_normal((4, 3))
    values = [
        float(np.vdot(g, ball.lmo(g)))
        for ball in (cg.NuclearBall((4, 3)), cg.SchattenBall((4, 3), 1.5), cg.SchattenBall((4, 3), 4.0), cg.SpectralBall((4, 3)))
    ]  # fmt: skip
    assert values == sorted(values, reverse=True)


def test_the_elliptope_has_the_diameter_that_it_says_for_even_n():
    x, y = np.array([1.0, 1.0, 1.0, 1.0]), np.array([1.0, -1.0, 1.0, -1.0])
    S, g = cg.Elliptope(4), np.outer(x, x) - np.outer(y, y)
    with receiving():
        assert np.linalg.norm(S.lmo(g) - S.lmo(-g)) == pytest.approx(S.diameter, rel=1e-5)
    assert np.linalg.norm(np.outer(x, x)) == S.max_norm and S.contains(np.outer(x, x))


def test_the_error_of_the_elliptopes_oracle_is_certified():
    rng, S = np.random.default_rng(0), cg.Elliptope(12)
    for k in range(4):
        g = rng.standard_normal((12, 12)) if k % 2 else rng.integers(-2, 3, (12, 12)).astype(float)
        with receiving() as reports:
            X = S.lmo(g)
        value, error = float(np.vdot(g, X)), worst(reports)
        assert 0 < error <= 1e-10 * np.linalg.norm(g) * 12 and all(not report.sentence for report in reports)
        V = rng.standard_normal((12, 8))  # the mixing method of Burer and Monteiro finds nothing better than that
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        off = (g + g.T) / 2 * (1 - np.eye(12))
        for _ in range(300):
            for i in range(12):
                V[i] = -(off[i] @ V) / np.linalg.norm(off[i] @ V)
        other = float(np.vdot(off, V @ V.T)) + float(np.trace(g))
        assert value - error <= other <= value + 1e-3 * abs(value)


def test_a_run_on_the_elliptope_has_its_errors_in_the_certificate_and_no_warning():
    G = np.random.default_rng(2).standard_normal((5, 5))
    F = cg.Function(lambda X: float(np.sum((X - G) ** 2)) / 2, lambda X: X - G, (5, 5), smoothness=1.0)
    S = cg.Elliptope(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = cg.minimize(F, S, inner="corrective", tol=1e-6)
    assert result.status == "converged" and not result.warnings
    assert np.allclose(result.x, S.project(G), atol=1e-2)
    with receiving() as reports:
        direction = F.grad(result.x) + (result.certificate.prox - result.x) / result.certificate.gamma
        S.lmo(direction)
    assert result.certificate.gap >= worst(reports) * 0.5


def test_elliptope_projection_of_special_matrices():
    S = cg.Elliptope(3)
    assert np.allclose(S.project(np.zeros((3, 3))), np.eye(3)) and np.allclose(S.project(1e6 * np.eye(3)), np.eye(3))
    ones = np.ones((3, 3))
    assert np.allclose(S.project(5 * ones), ones, atol=1e-6) and S.contains(S.project(-ones))


# --------------------------------------------------------------------------------------------------------------- specs


def built(**section):
    problem = {"objective": "robust-regression", "terms": 20, "dimension": 5}
    raw = {"problem": problem, "set": section, "method": {"name": "ncgs"}, "stop": {"mapping": 1e-4, "steps": 200}}
    return spec.build(raw, None)


SPECS = {
    "product": {
        "name": "product",
        "blocks": {"first": {"name": "simplex", "shape": 2}, "rest": {"name": "l2-ball", "shape": [3], "radius": 0.5}},
    },
    "product of a list": {"name": "product", "blocks": [{"name": "simplex", "shape": 4}, {"name": "l1-ball", "shape": 1}]},
    "scaled": {"name": "scaled", "factor": 2.0, "domain": {"name": "simplex"}},
    "shifted": {"name": "shifted", "by": 1.0, "domain": {"name": "l1-ball", "radius": 2.0}},
    "linear image": {
        "name": "linear-image",
        "matrix": np.eye(5)[:, :2].tolist(),
        "domain": {"name": "simplex", "shape": 2},
    },
    "sum": {"name": "minkowski-sum", "sets": [{"name": "simplex"}, {"name": "l2-ball"}]},
    "hull": {"name": "hull-of-union", "sets": [{"name": "simplex"}, {"name": "l2-ball", "radius": 0.5}]},
    "cut": {"name": "half-space-cut", "normal": [1.0, 1.0, 0.0, 0.0, 0.0], "offset": 0.4, "domain": {"name": "simplex"}},
    "box": {"name": "box-cut", "lower": 0.0, "upper": 0.3, "domain": {"name": "simplex"}},
    "nested": {"name": "cached", "domain": {"name": "scaled", "factor": 3.0, "domain": {"name": "simplex"}}},
}  # fmt: skip


@pytest.mark.parametrize("section", SPECS.values(), ids=SPECS.keys())
def test_specs_nest_sets(section):
    run = built(**section)
    assert run.domain.shape == (5,)
    assert run.solve(False).status in ("converged", "out_of_budget")


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ({"name": "scaled", "factor": 2.0}, "needs domain: add it"),
        ({"name": "scaled", "factor": 2.0, "domain": "simplex"}, "a table with the name of a set was expected"),
        ({"name": "scaled", "factor": 2.0, "domain": {"name": "simplx"}}, "did you mean 'simplex'"),
        ({"name": "scaled", "factor": 2.0, "domain": {"radius": 1.0}}, r"\[set\] has no 'name'"),
    ],
)
def test_specs_of_sets_that_are_wrong(section, sentence):
    with pytest.raises(ValueError, match=sentence):
        built(**section)


# ------------------------------------------------------------------------------------------- types and layouts of directions


@pytest.mark.parametrize("domain", SETS.values(), ids=SETS.keys())
def test_float32_and_float64_directions_get_the_same_answer(domain):
    g = np.random.default_rng(7).standard_normal(domain.shape).astype(np.float32)
    single, double = np.asarray(domain.lmo(g)), np.asarray(domain.lmo(g.astype(float)))
    assert single.dtype == double.dtype == np.float64
    assert np.array_equal(single, double)


def test_blocks_of_float32_get_the_answer_of_float64():
    domain = cg.Product(cg.Simplex(3), cg.NuclearBall((2, 3)), cg.L2Ball(4))
    rng = np.random.default_rng(1)
    single = [rng.standard_normal(one.shape).astype(np.float32) for one in domain.sets]
    answers = [domain.lmo(cg.Blocks(*blocks)) for blocks in (single, [block.astype(float) for block in single])]
    for one, other in zip(*(answer.blocks for answer in answers), strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("domain", SETS.values(), ids=SETS.keys())
def test_the_layout_of_a_direction_in_memory_does_not_matter(domain):
    """Read-only, in Fortran order, with gaps, of whole numbers: the same minimum, and the direction is not changed."""
    g = np.rint(4 * np.random.default_rng(8).standard_normal(domain.shape))
    expected, room = float(np.vdot(g, np.asarray(domain.lmo(g)))), 1e-9 * np.linalg.norm(g) * domain.max_norm
    fixed, gaps = g.copy(), np.zeros((*g.shape[:-1], 2 * g.shape[-1]))
    fixed.setflags(write=False)
    gaps[..., ::2] = g
    for given in (fixed, np.asfortranarray(g), gaps[..., ::2], g.astype(np.int64), g[::-1].copy()[::-1]):
        before = given.copy()
        vertex = np.asarray(domain.lmo(given))
        assert abs(float(np.vdot(g, vertex)) - expected) <= room
        assert np.array_equal(given, before)
        assert vertex is not given and not np.shares_memory(vertex, given)


def test_the_start_of_a_half_space_cut_is_on_its_plane_where_that_of_the_set_is_outside():
    """The start of the simplex, (1/3, 1/3, 1/3), has <a, x> = 2/3; the cut asks for at most 0.5."""
    cut = cg.HalfSpaceCut(cg.Simplex(3), np.array([2.0, 0.0, 0.0]), 0.5)
    assert cut.contains(cut.start()) and cut.start()[0] == pytest.approx(0.25)
    touching = cg.HalfSpaceCut(cg.Simplex(3), np.array([1.0, 2.0, 3.0]), 1.0)
    assert np.allclose(touching.start(), [1.0, 0.0, 0.0], atol=1e-9), "the only point of the cut"


def test_the_elliptope_warns_where_its_search_does_not_converge(monkeypatch):
    D = np.random.default_rng(0).standard_normal((6, 6))
    monkeypatch.setattr(elliptope, "_semidefinite", lambda D: (np.eye(len(D)), 0.5))
    with pytest.warns(cg.InexactOracleWarning, match="of Elliptope did not converge"):
        cg.Elliptope(6).lmo(D)
