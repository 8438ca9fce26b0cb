"""What every objective in the registry must do."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError

from condgrad.objectives import (
    LOSSES,
    OBJECTIVES,
    Completion,
    FunctionSum,
    LinearModel,
    Quadratic,
    Sigmoid,
    Squared,
    Welsch,
    _matrices,
    paper_data,
)
from condgrad.protocols import Expectation, FiniteSum, Objective, fits
from condgrad.testing import check_objective


def observed(loss, size, rng):
    return rng.choice([-1.0, 1.0], size) if loss.labels == "+-1" else rng.standard_normal(size)


def model(loss, n=9, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return LinearModel(rng.standard_normal((n, d)) * rng.uniform(0.2, 3, (n, 1)), observed(loss, n, rng), loss)


def rng_matrix(n, d):
    return np.random.default_rng(n + d).standard_normal((n, d))


def completion(loss, seed=0):
    rng = np.random.default_rng(seed)
    mask = rng.random((4, 5)) < 0.5
    return Completion.from_dense(observed(loss, (4, 5), rng), mask, loss)


MORE = {f"linear-model {name}": model(entry.factory()) for name, entry in LOSSES.items()}
MORE |= {f"completion {name}": completion(entry.factory()) for name, entry in LOSSES.items()}
MORE |= {
    "linear-model of tasks": LinearModel(rng_matrix(9, 4), rng_matrix(9, 3), Welsch(0.5)),
    "linear-model of tasks sparse": LinearModel(sp.csr_array(rng_matrix(9, 4)), np.sign(rng_matrix(9, 2)), Sigmoid()),
    "linear-model sparse": LinearModel(sp.random_array((20, 6), density=0.3, rng=1), np.ones(20), Sigmoid()),
    "linear-model narrow welsch": model(Welsch(0.3)),
    "quadratic sparse": Quadratic(sp.diags_array([-1.0, 2.0, 0.0])),
    "quadratic convex": Quadratic(np.ones((3, 3)), np.ones(3)),
}
ALL = {name: entry.example() for name, entry in OBJECTIVES.items()} | MORE


def points(f, seed, count=1):
    """Read-only, so that an objective that writes into its input fails."""
    rng = np.random.default_rng(seed)
    stack = rng.standard_normal((count, *f.shape)) * 10.0 ** rng.integers(-2, 2, (count, *(1,) * len(f.shape)))
    stack.setflags(write=False)
    return stack


def norm(x):
    return float(np.linalg.norm(x))


# --------------------------------------------------------------------------------------------------- every objective


@pytest.mark.parametrize("entry", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_registry_says_what_is_so(entry):
    f = entry.example()
    assert OBJECTIVES[entry.name] is entry and isinstance(f, entry.factory) and entry.formula
    assert fits(f, Objective) == (entry.kind != "expectation")
    assert fits(f, Expectation) == (entry.kind != "objective")
    assert f.smoothness > 0 and 0 <= f.lower_smoothness <= f.smoothness
    assert f.lower_bound is None or isinstance(f.lower_bound, float)


@pytest.mark.parametrize("f", ALL.values(), ids=ALL.keys())
def test_every_objective_keeps_its_contract(f):
    report = check_objective(f)
    assert report.passed and not report.notes, str(report)


def test_expectation_averages_to_its_mean():
    f = OBJECTIVES["function-expectation"].example()
    batch = f.draw(40_000, np.random.default_rng(0))
    assert np.allclose(f.grad_terms(np.zeros(2), batch), [-1.0, -2.0], atol=0.03)


# ----------------------------------------------------------------------------------------- constants that are exact


def test_quadratic_constants_are_attained():
    Q = np.diag([3.0, -2.0, 1.0])
    f = Quadratic(Q, [1.0, 0.0, 0.0], 5.0)
    assert (f.smoothness, f.lower_smoothness) == pytest.approx((3.0, 2.0))
    assert f.value(np.array([1.0, 1.0, 0.0])) == pytest.approx(0.5 * (3 - 2) + 1 + 5)
    assert Quadratic(-Q).lower_smoothness == pytest.approx(3.0)
    assert Quadratic(np.ones((3, 3))).lower_smoothness == 0.0  # singular, so negative only by rounding
    assert Quadratic(np.zeros((2, 2))).smoothness == 0.0


def test_linear_model_constants_are_attained():
    f = model(Squared())
    hessians = np.einsum("ni,nj->nij", f.A, f.A)
    assert f.smoothness == pytest.approx(np.linalg.eigvalsh(hessians.mean(axis=0))[-1])
    assert f.term_smoothness == pytest.approx(max(np.linalg.eigvalsh(h)[-1] for h in hessians))
    squares = np.mean([h @ h for h in hessians], axis=0)
    assert f.mean_square_smoothness == pytest.approx(math.sqrt(np.linalg.eigvalsh(squares)[-1]))
    assert model(Welsch(2.0)).lower_smoothness == pytest.approx(f.smoothness * 2 * math.exp(-1.5))
    assert LinearModel(np.zeros((2, 2)), [1.0, 2.0], Squared()).smoothness == 0.0


def test_tasks_are_linear_models_side_by_side():
    A, Y, W = rng_matrix(9, 4), rng_matrix(9, 3), rng_matrix(4, 3)
    f = LinearModel(A, Y, Welsch(0.5))
    alone = [LinearModel(A, Y[:, k], Welsch(0.5)) for k in range(3)]
    assert f.value(W) == pytest.approx(sum(g.value(W[:, k]) for k, g in enumerate(alone)))
    assert np.allclose(f.grad(W), np.column_stack([g.grad(W[:, k]) for k, g in enumerate(alone)]))
    for constant in ("smoothness", "lower_smoothness", "term_smoothness", "mean_square_smoothness"):
        assert getattr(f, constant) == getattr(alone[0], constant)


def test_completion_constants_are_attained():
    f = completion(Welsch(0.5))
    one, h = np.zeros(f.shape), 1e-4
    one[f.pattern.rows[0], f.pattern.cols[0]] = 1.0

    def second(x):
        return np.vdot(one, f.grad(x + h * one) - f.grad(x - h * one)) / (2 * h)

    at_data = f.values[0] * one
    assert second(at_data) == pytest.approx(f.smoothness, rel=1e-6)
    assert second(at_data + math.sqrt(0.75) * one) == pytest.approx(-f.lower_smoothness, rel=1e-6)
    assert f.term_smoothness == pytest.approx(f.n_terms * 4.0)
    assert f.mean_square_smoothness == pytest.approx(math.sqrt(f.n_terms) * 4.0)


def test_function_sum_knows_what_follows():
    f = FunctionSum(lambda x: 0.0, lambda x, i: np.zeros((len(i), 2)), 3, term_smoothness=2.0)
    assert f.smoothness == f.mean_square_smoothness == 2.0
    bare = FunctionSum(lambda x: 0.0, lambda x, i: np.zeros((len(i), 2)), 3)
    assert bare.smoothness is bare.mean_square_smoothness is bare.term_smoothness is None
    assert fits(bare, FiniteSum)


# --------------------------------------------------------------------------------------------------- sparse and large


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.csr_matrix, sp.bsr_array])
@pytest.mark.parametrize("name", LOSSES)
def test_sparse_equals_dense(form, name):
    dense = model(LOSSES[name].factory())
    A = dense.A * (np.random.default_rng(3).random(dense.A.shape) < 0.5)
    dense, sparse = LinearModel(A, dense.y, dense.loss), LinearModel(form(A), dense.y, dense.loss)
    x, batch = points(dense, 1)[0], np.array([0, 5, 5, 8])
    assert sp.issparse(sparse.A) and sparse.A.format == "csr"
    assert sparse.value(x) == pytest.approx(dense.value(x), rel=1e-13)
    for answer in (lambda f: f.grad(x), lambda f: f.term_rows(x, batch), lambda f: f.grad_terms(x, batch)):
        assert isinstance(answer(sparse), np.ndarray)
        assert np.allclose(answer(sparse), answer(dense), rtol=1e-12, atol=1e-14)
    for constant in ("smoothness", "lower_smoothness", "term_smoothness", "mean_square_smoothness"):
        assert getattr(sparse, constant) == pytest.approx(getattr(dense, constant), rel=1e-10)


def test_sparse_duplicates_add_up_and_what_was_given_stays():
    A = sp.csr_array(([1.0, 2.0, 5.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    assert np.array_equal(LinearModel(A, [0.0, 0.0], Squared()).A.data, [3.0, 5.0])
    assert np.array_equal(A.data, [1.0, 2.0, 5.0])


def test_sparse_quadratic_equals_dense():
    Q = np.random.default_rng(4).standard_normal((6, 6))
    dense, sparse = Quadratic(Q + Q.T, np.ones(6)), Quadratic(sp.coo_array(Q + Q.T), np.ones(6))
    x = points(dense, 2)[0]
    assert sparse.value(x) == pytest.approx(dense.value(x)) and np.allclose(sparse.grad(x), dense.grad(x))
    assert (sparse.smoothness, sparse.lower_smoothness) == pytest.approx((dense.smoothness, dense.lower_smoothness))


def fails(*_, **__):
    raise ArpackError(-9999)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60)])
def test_spectra_of_large_matrices_are_safe_bounds(shape, monkeypatch):
    monkeypatch.setattr(_matrices, "SMALL", 5)
    A = sp.random_array(shape, density=0.2, rng=2, data_sampler=np.random.default_rng(2).standard_normal).tocsr()
    exact = np.linalg.norm(A.toarray(), 2)
    assert exact <= _matrices.spectral_norm(A) <= exact * (1 + 2e-6)
    assert exact <= _matrices.spectral_norm(A.toarray()) <= exact * (1 + 2e-6)
    assert _matrices.spectral_norm(1e-200 * A) == pytest.approx(1e-200 * exact, rel=1e-5, abs=0)
    monkeypatch.setattr(_matrices, "svds", fails)
    assert exact <= _matrices.spectral_norm(A) < np.inf


@pytest.mark.parametrize("shift", [0.0, -20.0, 20.0])
def test_curvature_of_large_matrices_is_a_safe_bound(shift, monkeypatch):
    monkeypatch.setattr(_matrices, "SMALL", 5)
    A = sp.random_array((60, 60), density=0.1, rng=2)
    Q = (A + A.T + shift * sp.eye_array(60)).tocsr()
    eigenvalues = np.linalg.eigvalsh(Q.toarray())
    exact = np.abs(eigenvalues).max(), max(0.0, -eigenvalues[0])
    for given_up in (False, True):
        if given_up:
            monkeypatch.setattr(_matrices, "eigsh", fails)
        L, low = _matrices.curvature(Q)
        assert exact[0] <= L and exact[1] <= low
        assert given_up or (L, low) == pytest.approx(exact, rel=2e-6)


# -------------------------------------------------------------------------------------------------- the paper's data


def test_completion_is_the_sum_over_observed_entries():
    Y = np.array([[1.0, np.nan], [np.nan, -2.0]])
    f = Completion.from_dense(Y)
    assert f.n_terms == 2
    assert f.value(np.zeros((2, 2))) == pytest.approx(2 - math.exp(-1) - math.exp(-4))
    masked = Completion.from_dense(np.nan_to_num(Y), ~np.isnan(Y))
    assert np.array_equal(f.grad(np.ones((2, 2))), masked.grad(np.ones((2, 2))))


@pytest.mark.parametrize("generator", ["orthonormal", "gaussian"])
def test_paper_data(generator):
    data = paper_data(200, 150, 5, seed=7, generator=generator)
    sigma = np.linalg.svd(data.truth, compute_uv=False)
    assert data.truth.shape == (200, 150) and np.linalg.matrix_rank(data.truth) == 5
    assert data.nuclear_norm == pytest.approx(sigma.sum(), rel=1e-10)
    assert np.allclose(sigma[:5], 1.0) == (generator == "orthonormal")
    assert np.sqrt(np.mean(data.truth**2)) == pytest.approx(1.0, abs=0.2) or generator == "orthonormal"
    noise = data.values - data.truth[data.rows, data.cols]
    assert len(noise) == pytest.approx(3000, abs=5 * math.sqrt(2700))
    assert data.corrupted.sum() == pytest.approx(150, abs=5 * math.sqrt(150))
    assert not noise[~data.corrupted].any()
    assert 2.5 < np.abs(noise).max() <= 3.0 and abs(noise[data.corrupted].mean()) < 0.8


def test_paper_data_is_seeded():
    first, again, other = (paper_data(20, 20, 2, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.values, again.values) and np.array_equal(first.rows, again.rows)
    assert not np.array_equal(first.truth, other.truth)


def test_given_arrays_are_copied():
    A, y = np.ones((2, 2)), np.ones(2)
    f = LinearModel(A, y, Squared())
    A[:], y[:] = 7.0, 7.0
    assert f.value(np.zeros(2)) == 0.5 and np.array_equal(f.A, np.ones((2, 2)))
    seen, values, weights = np.array([1, 0]), np.array([1.0, 2.0]), np.array([1.0, 3.0])
    h = Completion(seen, seen, values, (2, 2), weights=weights)
    before = h.value(np.zeros((2, 2)))
    seen[:], values[:], weights[:] = 0, 7.0, 7.0
    assert h.value(np.zeros((2, 2))) == before and np.array_equal(h.values, [2.0, 1.0])
    assert not h.values.flags.writeable and not h.weights.flags.writeable
    sparse = sp.csr_array(np.ones((2, 2)))
    g = LinearModel(sparse, [1.0, 1.0], Squared())
    sparse.data[:] = 7.0
    assert np.array_equal(g.A.toarray(), np.ones((2, 2)))
