"""float32: the type of the data decides the type of the large arrays, and certificates stay true."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from benchmarks.true_mapping import dense, long, true_mapping
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import resuming
from tests.resuming import Walk

import condgrad as cg
from condgrad.data import load
from condgrad.learn import RobustCompletion, RobustLinearRegressor, RobustPCA, SigmoidClassifier
from condgrad.learn.linear_problem import Design
from condgrad.objectives import _matrices, completion
from condgrad.points import LowRank, Pattern, SparsePlusLowRank, inner, norm2, pattern, sparse_plus_low_rank
from condgrad.storage.snapshot import restore, snapshot

F32, U32 = np.float32, 2.0**-24
LOSSES = {
    "squared": cg.Squared(),
    "huber": cg.Huber(0.7),
    "welsch": cg.Welsch(2.0),
    "cauchy": cg.Cauchy(0.5),
    "geman-mcclure": cg.GemanMcClure(1.5),
    "logistic": cg.Logistic(),
    "sigmoid": cg.Sigmoid(),
}


class Cosh:
    """log cosh(z - y), a loss that is not compiled."""

    smoothness, lower_smoothness, lower_bound, labels = 1.0, 0.0, 0.0, "real"

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logaddexp(z - y, y - z) - np.log(2.0)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.tanh(z - y)


def observed(m: int, n: int, loss: Any, seed: int, scale: float = 1.0, dtype: Any = F32, **more: Any) -> cg.Completion:
    """A little more than half of the entries of a matrix of rank 2, with noise, as float32 numbers stored in this type."""
    rng = np.random.default_rng(seed)
    Y = scale * (rng.standard_normal((m, 2)) @ rng.standard_normal((n, 2)).T + 0.3 * rng.standard_normal((m, n)))
    seen = rng.random((m, n)) < 0.6
    seen[0, 0] = True
    rows, cols = np.nonzero(seen)
    values = Y[seen] if loss.labels == "real" else np.sign(Y[seen])
    return cg.Completion(rows, cols, values.astype(F32).astype(dtype), (m, n), loss, **more)


def point(m: int, n: int, rank: int, seed: int) -> LowRank:
    rng = np.random.default_rng(seed)
    return LowRank(rng.standard_normal((m, rank)), rng.standard_normal((n, rank)))


# ------------------------------------------------------------------------------------------------------- types


def test_the_type_of_the_values_decides() -> None:
    F, D = observed(9, 8, cg.Welsch(1.0), 0), observed(9, 8, cg.Welsch(1.0), 0, dtype=float)
    assert (F.dtype, F.values.dtype, F.pattern.dtype, F.weights.dtype) == (F32,) * 4
    assert D.dtype == D.values.dtype == D.weights.dtype == np.float64
    x = point(9, 8, 3, 1)
    assert F.grad(x).values.dtype == F32 and D.grad(x).values.dtype == np.float64
    assert x.at(F.pattern).dtype == x.cached_at(F.pattern).dtype == F32
    assert F.assemble(np.ones(2), np.array([0, 3])).values.dtype == F32
    assert F.replaced(np.ones(F.n_terms)).values.dtype == F32 and F.replaced(loss=cg.Squared()).values is F.values
    assert cg.Completion([0, 1], [0, 1], [1.0, 2.0], (2, 2)).dtype == np.float64
    assert cg.Completion([0, 1], [0, 1], np.ones(2, np.float16), (2, 2)).dtype == np.float64
    assert cg.Completion.from_dense(np.ones((2, 2), F32)).dtype == F32
    assert cg.Completion([1, 0], [0, 1], np.array([1, 2], F32), (2, 2), biases="both").values.dtype == F32
    assert pickle.loads(pickle.dumps(F)).values.dtype == F32


def test_weights_have_the_type_of_the_values() -> None:
    values = np.ones(2, F32)
    assert cg.Completion([0, 1], [0, 1], values, (2, 2), weights=[0.5, 1.0]).weights.dtype == F32
    with pytest.raises(ValueError, match="range of float32"), np.errstate(over="ignore"):
        cg.Completion([0, 1], [0, 1], values, (2, 2), weights=[1.0, 1e300])
    with pytest.raises(ValueError, match="range of float32"):
        cg.Completion([0, 1], [0, 1], values, (2, 2), weights=[1e-300, 1e-300])


def test_factors_keep_float32_and_mixing_gives_float64() -> None:
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((30, 3)).astype(F32), rng.standard_normal((20, 3)).astype(F32)
    x, y = LowRank(U, V), LowRank(U.astype(float), V)
    assert x.dtype == x.factors()[0].dtype == (2 * x).dtype == F32
    assert y.dtype == y.factors()[1].dtype == (x + y).dtype == np.float64
    assert LowRank.zeros((3, 2)).dtype == np.float64
    wide = LowRank(U.astype(float), V.astype(float))
    for one, two in ((0.3 * x, 0.3 * wide), (x - 0.1 * x, wide - 0.1 * wide), (x + x.T.T, wide + wide)):
        assert np.array_equal(np.asarray(one), np.asarray(two)) or np.allclose(one, two, rtol=1e-15)
        assert norm2(one) == pytest.approx(norm2(two), rel=1e-14)
        assert np.allclose(one.svd()[1], two.svd()[1], rtol=1e-14)
        assert inner(one, np.ones((30, 20))) == pytest.approx(inner(two, np.ones((30, 20))), rel=1e-13)
    close = LowRank(U, V * F32(1 + 2.0**-20))
    assert norm2(x - close) == pytest.approx(norm2(wide - LowRank(U.astype(float), close.factors()[1])), rel=1e-10)
    assert cg.NuclearBall((30, 20), float(x.svd()[1].sum())).contains(x)


def test_products_of_a_gradient_in_float32_are_computed_in_float64() -> None:
    F, x = observed(12, 10, cg.Welsch(1.0), 0), point(12, 10, 3, 1)
    z = x - 0.3 * F.grad(x)
    written = np.asarray(z)
    assert written.dtype == np.float64
    W, Q = np.random.default_rng(0).standard_normal((10, 4)), np.random.default_rng(1).standard_normal(12)
    assert np.allclose(z @ W, written @ W, rtol=0, atol=1e-13) and np.allclose(z.T @ Q, written.T @ Q, atol=1e-13)
    assert (z @ W.astype(F32)).dtype == (z.T @ Q.astype(F32)).dtype == F32 and (z @ W).dtype == np.float64
    assert norm2(z) == pytest.approx(float((written**2).sum()), rel=1e-13)
    assert inner(F.grad(x), x) == pytest.approx(float((np.asarray(F.grad(x)) * np.asarray(x)).sum()), rel=1e-12)
    y = point(12, 10, 2, 3)
    assert inner(F.grad(x), y) == pytest.approx(float((np.asarray(F.grad(x)) * np.asarray(y)).sum()), rel=1e-12)


def test_the_norm_of_what_nearly_cancels_keeps_its_digits() -> None:
    F = observed(12, 10, cg.Squared(), 0)
    x = point(12, 10, 3, 1)
    S = SparsePlusLowRank(F.pattern, x.at(F.pattern))
    z = S - x  # on the observations only rounding is left
    assert norm2(z) == pytest.approx(float((np.asarray(z) ** 2).sum()), rel=1e-9)


def test_sums_of_gradients_in_float32_add_their_rounding() -> None:
    F, x, y = observed(12, 10, cg.Welsch(1.0), 0), point(12, 10, 3, 1), point(12, 10, 3, 2)
    G = observed(12, 10, cg.Welsch(1.0), 0, dtype=float)
    for a, b in ((1.0, -1.0), (0.3, 0.7), (2.0, 2.0)):
        total, exact = a * F.grad(x) + b * F.grad(y), a * G.grad(x) + b * G.grad(y)
        error = float(np.linalg.norm(np.asarray(total) - np.asarray(exact)))
        assert 0 < error <= total.rounding <= 20 * U32 * (abs(a) + abs(b)) * 10
    assert G.grad(x).rounding == 0.0


# ------------------------------------------------------------------------------------------------- evaluations


@pytest.mark.parametrize("loss", [*LOSSES.values(), Cosh()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_gradient_is_that_of_float64_rounded_once(loss: Any, weighted: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(pattern, "PIECE_ENTRIES", 11)
    size = observed(15, 12, loss, 3).n_terms
    weights = np.random.default_rng(5).random(size).astype(F32) if weighted else None
    F, G = (observed(15, 12, loss, 3, dtype=dtype, weights=weights) for dtype in (F32, float))
    for x in (LowRank.zeros((15, 12)), point(15, 12, 1, 0), point(15, 12, 4, 1), 0.5 * point(15, 12, 2, 2)):
        slopes, exact = F.grad(x).values, G.grad(x).values
        assert np.abs(slopes - exact).max() <= 1.0001 * U32 * np.abs(exact).max() + 1e-14
        assert float(np.linalg.norm(slopes - exact)) <= F.grad(x).rounding * 1.0001 + 1e-14
        assert F.value(x) == pytest.approx(G.value(x), rel=1e-13)
        assert inner(F.grad(x), x) == pytest.approx(inner(G.grad(x), x), rel=1e-6, abs=1e-6)


def test_pieces_have_all_entries_once(monkeypatch: Any) -> None:
    rows, cols = np.nonzero(np.random.default_rng(0).random((20, 15)) < 0.3)
    rows = np.where(rows == 4, 5, rows)  # an empty row
    order = np.lexsort((cols, rows))
    flat = np.unique(rows[order] * 15 + cols[order])
    here, x = Pattern(flat // 15, flat % 15, (20, 15)), point(20, 15, 3, 0)
    for size in (1, 4, 37, 10_000):
        monkeypatch.setattr(pattern, "PIECE_ENTRIES", size)
        found = list(here.pieces(*x.factors()))
        assert [entries.start for entries, _ in found[1:]] == [entries.stop for entries, _ in found[:-1]]
        assert np.array_equal(np.concatenate([z for _, z in found]), x.at(here))


def test_a_value_and_a_gradient_are_one_evaluation(monkeypatch: Any) -> None:
    F, x, y = observed(15, 12, cg.Welsch(1.0), 3), point(15, 12, 3, 0), point(15, 12, 3, 1)
    calls, inside = [], F._evaluate_in_pieces
    monkeypatch.setattr(F, "_evaluate_in_pieces", lambda x: calls.append(x) or inside(x))
    value, held = F.value(x), F.grad(x)
    F.value(y), F.grad(y)
    assert len(calls) == 2 and F.value(x) == value and F.grad(x) is held  # still held here, so not computed again
    assert len(calls) == 2
    F.grad(y)
    assert len(calls) == 3  # nobody has held that one


def test_float64_in_pieces_where_observations_are_very_many(monkeypatch: Any) -> None:
    F, G = (observed(15, 12, cg.Cauchy(1.0), 3, dtype=float) for _ in range(2))
    points = [point(15, 12, rank, rank) for rank in (1, 3)]
    expected = [(G.value(x), G.grad(x).values, inner(G.grad(x), points[0])) for x in points]
    for module in (completion, sparse_plus_low_rank, pattern):
        monkeypatch.setattr(module, "MANY_ENTRIES", 10)
    for x, (value, slopes, product) in zip([p.uncached() for p in points], expected, strict=True):
        assert np.array_equal(F.grad(x).values, slopes)
        assert F.value(x) == pytest.approx(value, rel=1e-14)
        assert inner(F.grad(x), points[0].uncached()) == pytest.approx(product, rel=1e-12)
        assert not any(factors.has_cached(F.pattern) for _, factors in x.terms)
    result = cg.minimize(F, cg.NuclearBall((15, 12), 10.0), tol=1e-6)
    assert result.status == "converged"


# ------------------------------------------------------------------------------------------------ certificates


def truth(F: cg.Completion, domain: Any, certificate: Any) -> Any:
    """The mapping at the certificate's point, in extended precision, of the problem whose data are these float32 numbers."""
    slopes = F.loss.deriv(dense(certificate.x)[F.pattern.rows, F.pattern.cols], long(F.values))
    grad = np.zeros(F.shape, np.longdouble)
    grad[F.pattern.rows, F.pattern.cols] = slopes * long(F.weights) if F.weights.size else slopes
    return true_mapping(domain, certificate.x, grad, certificate.gamma)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    loss=st.sampled_from(sorted(LOSSES)),
    seed=st.integers(0, 10**6),
    radius=st.sampled_from([0.05, 1.0, 8.0, 1e4]),
    scale=st.sampled_from([1.0, 1e-3, 1e4]),
    tol=st.sampled_from([1e-2, 1e-6, 1e-10, 1e-13]),
    method=st.sampled_from(["ncgs", "frank-wolfe"]),
)
def test_no_certificate_of_float32_is_false(
    loss: str, seed: int, radius: float, scale: float, tol: float, method: str
) -> None:
    F, domain = observed(6, 5, LOSSES[loss], seed, scale), cg.NuclearBall((6, 5), radius)
    result = cg.minimize(F, domain, method=method, stop=cg.Mapping(tol) | cg.Steps(60), x0=LowRank.zeros((6, 5)))
    true, certificate = truth(F, domain, result.certificate), result.certificate
    assert true.least <= certificate.upper and certificate.lower <= (true.norm + true.error) ** 2
    if result.status == "converged":
        assert true.least <= tol


def test_a_tolerance_below_the_rounding_of_float32_is_unverified() -> None:
    """With a large gradient at the boundary, which float64 still resolves."""
    for dtype, status in ((float, "converged"), (F32, "unverified")):
        F = observed(20, 15, cg.Squared(), 0, 1e3, dtype)
        result = cg.minimize(F, cg.NuclearBall((20, 15), 1.0), stop=cg.Mapping(1e-8) | cg.Steps(200))
        assert result.status == status
    assert "Precision is exhausted" in result.message and result.certificate.floor > 1e-8
    assert result.certificate.rounding >= F.grad(result.certificate.x).rounding > 1e-4


@pytest.mark.parametrize("polish", [True, False])
def test_rounding_of_gradients_is_no_curvature(polish: bool) -> None:
    """All entries observed and a squared loss: the gradients of two points differ by L times their distance, to the digits."""
    Y = np.random.default_rng(0).standard_normal((20, 15)).astype(F32)
    F, domain = cg.Completion.from_dense(Y, loss=cg.Squared()), cg.NuclearBall((20, 15), 5.0)
    result = cg.minimize(F, domain, tol=1e-11, polish=polish)
    assert result.status == "converged" and not result.warnings


# --------------------------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe", "ncgs-vr", "sagafw"])
def test_a_resumed_run_is_the_same_to_the_bit(method: str, tmp_path: Any, monkeypatch: Any) -> None:
    def single() -> tuple[Any, Any]:
        F, domain = resuming.completion()
        return cg.Completion(F.pattern.rows, F.pattern.cols, F.values.astype(F32), F.shape, F.loss), domain

    monkeypatch.setitem(resuming.PROBLEMS, "float32", single)
    path, asked = tmp_path / "run", {"method": method, "stop": cg.Steps(9), "seed": 3}
    whole = Walk("float32", path, copies=(2, 6), **asked)
    for step in (2, 6):
        again = Walk("float32", tmp_path / f"run-{step}", resume=True, **asked)
        assert len(again.iterates) < len(whole.iterates)
        again.same_as(whole)


@pytest.mark.parametrize("kind", [np.float16, np.int32, np.longdouble])
def test_forged_types_are_refused(kind: Any) -> None:
    F, x = observed(9, 8, cg.Welsch(1.0), 0), point(9, 8, 3, 1)
    single = LowRank(*(part.astype(F32) for part in x.factors()))
    kept, _ = restore(snapshot([single, F.grad(single).low])), None
    assert kept[0].dtype == F32 and np.array_equal(np.asarray(kept[0]), np.asarray(single))
    factors = single.terms[0][1]
    factors.U = factors.U.astype(kind)
    with pytest.raises((ValueError, TypeError)):
        restore(snapshot([single]))


# ------------------------------------------------------------------------------------------- data matrices in float32


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [(40, 7), (7, 40)])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_linear_model_keeps_its_matrix(convert: Any, size: Any, weighted: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(_matrices, "PIECE_ENTRIES", 50)
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal(size).astype(F32), rng.standard_normal(size[0])
    weights, x, some = (
        rng.random(size[0]) + 0.1 if weighted else None,
        rng.standard_normal(size[1]),
        np.array([0, 3, 3]),
    )
    single, double = (cg.LinearModel(convert(M), y, cg.Welsch(1.0), weights=weights) for M in (A, A.astype(float)))
    assert single.A.dtype == F32 and double.A.dtype == np.float64 and single.grad(x).dtype == np.float64
    for name in ("smoothness", "mean_square_smoothness", "term_smoothness"):
        assert getattr(single, name) == pytest.approx(getattr(double, name), rel=1e-12)
    assert single.value(x) == pytest.approx(double.value(x), rel=1e-13)
    assert single.grad_scale(x) == pytest.approx(double.grad_scale(x), rel=1e-12)
    assert np.allclose(single.grad(x), double.grad(x), rtol=1e-12, atol=1e-14)
    assert np.allclose(single.grad_terms(x, some), double.grad_terms(x, some), rtol=1e-12, atol=1e-14)


def test_the_norm_of_a_large_float32_matrix_by_its_products(monkeypatch: Any) -> None:
    monkeypatch.setattr(_matrices, "SMALL", 5)
    A = np.random.default_rng(0).standard_normal((30, 20)).astype(F32)
    exact = float(np.linalg.norm(A.astype(float), 2))
    assert exact <= _matrices.spectral_norm(A) <= exact * (1 + 1e-5)
    assert _matrices.spectral_norm(np.zeros((9, 8), F32)) == 0.0

    def fail(*args: Any, **keywords: Any) -> Any:
        raise _matrices.ArpackError(-9999)

    monkeypatch.setattr(_matrices, "svds", fail)
    assert exact <= _matrices.spectral_norm(A) <= 3 * exact


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_quadratic_keeps_its_matrix(convert: Any) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((9, 9)).astype(F32)
    single, double = (cg.Quadratic(convert(Q)) for Q in ((A + A.T) / 2, ((A + A.T) / 2).astype(float)))
    x = rng.standard_normal(9)
    assert single.Q.dtype == F32 and single.smoothness == double.smoothness
    assert single.value(x) == pytest.approx(double.value(x), rel=1e-13)
    assert np.allclose(single.grad(x), double.grad(x), rtol=1e-13, atol=1e-14)
    assert single.grad_scale(x) == pytest.approx(double.grad_scale(x), rel=1e-12)


# ----------------------------------------------------------------------------------------------------------- estimators


def ratings(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of rank 2 in float32, and the same with noise and a tenth of outliers, half of it NaN."""
    rng = np.random.default_rng(seed)
    truth = (rng.standard_normal((150, 2)) @ rng.standard_normal((2, 100))).astype(F32)
    seen = truth + 0.05 * rng.standard_normal(truth.shape).astype(F32)
    seen[rng.random(truth.shape) < 0.1] += F32(20.0)
    seen[rng.random(truth.shape) < 0.5] = np.nan
    return truth, seen


@pytest.mark.parametrize("form", ["array", "sparse", "triples"])
def test_a_completion_keeps_float32_and_finds_the_same(form: str, tmp_path: Any) -> None:
    def given(dtype: Any) -> Any:
        rows, cols = np.nonzero(~np.isnan(seen))
        values = seen[rows, cols].astype(dtype)
        wholes = {"array": seen.astype(dtype), "triples": (rows, cols, values)}
        return wholes.get(form, sp.csr_array((values, (rows, cols)), shape=seen.shape))

    truth, seen = ratings()
    double, single = (RobustCompletion().fit(given(dtype)) for dtype in (float, F32))
    assert double._seen.dtype == float and single._seen.dtype == F32
    assert np.abs(single.fill("nothing") - double.fill("nothing")).max() < 1e-3
    assert np.abs(single.fill("nothing") - truth).max() < 0.3
    assert single.sigma_ == pytest.approx(double.sigma_, rel=1e-3)
    assert len(single.outliers_) == len(double.outliers_) and single.outliers_.value.dtype == float
    single.save(tmp_path / "model.npz")
    stored = RobustCompletion.load(tmp_path / "model.npz")
    assert stored._seen.dtype == F32 and np.array_equal(stored.fill("nothing"), single.fill("nothing"))


def test_a_completion_in_float32_takes_less_memory() -> None:
    rng = np.random.default_rng(0)
    m, n, count = 1000, 800, 200_000
    places = np.sort(rng.choice(m * n, count, replace=False))
    rows, cols = (places // n).astype(np.int32), (places % n).astype(np.int32)
    values = np.einsum("ij,ij->i", rng.standard_normal((m, 2))[rows], rng.standard_normal((n, 2))[cols])
    peaks = {}
    for dtype in 2 * (float, F32):  # in the first round kernels are compiled
        matrix = sp.csr_array((values.astype(dtype), (rows, cols)), shape=(m, n))
        tracemalloc.start()
        RobustCompletion("huber", radius=2000.0, sigma=0.1, max_steps=4).fit(matrix)
        peaks[dtype] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[F32] < 0.9 * peaks[float]


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_float32_of_extreme_size_becomes_float64(unit: float) -> None:
    seen = ratings()[1][:40, :30] * F32(unit)
    assert RobustCompletion("huber").fit(seen)._seen.dtype == float


def test_robust_pca_keeps_float32_and_finds_the_same(tmp_path: Any, monkeypatch: Any) -> None:
    """Arrays of the size of the matrix are float32, those of the components float64; results differ by rounding only."""
    types, init = [], cg.Completion.__init__
    monkeypatch.setattr(cg.Completion, "__init__", lambda self, *a: types.append(a[2].dtype) or init(self, *a))
    truth, seen = ratings()
    double, single = (RobustPCA().fit(seen.astype(dtype)) for dtype in (float, F32))
    assert types == [float, F32]
    assert single.low_rank_.dtype == single.sparse_.dtype == F32 and double.low_rank_.dtype == float
    for name in ("components_", "singular_values_", "mean_"):
        assert getattr(single, name).dtype == float
    assert single.n_components_ == double.n_components_ == 2
    assert single.sigma_ == pytest.approx(double.sigma_, rel=1e-3)
    assert np.array_equal(single.outliers_, double.outliers_) and np.array_equal(single.sparse_ != 0, single.outliers_)
    assert np.abs(single.low_rank_ - double.low_rank_).max() < 1e-3 and np.abs(single.low_rank_ - truth).max() < 0.3
    scores = single.transform(seen)
    assert scores.dtype == float and np.allclose(scores, single.transform(seen.astype(float)), rtol=0, atol=1e-9)
    single.save(tmp_path / "model.npz")
    stored = RobustPCA.load(tmp_path / "model.npz")
    assert stored.low_rank_.dtype == F32 and np.array_equal(stored.transform(seen), scores)


def features(form: str, spread: float = 10.0) -> tuple[Any, np.ndarray]:
    """Features with means, in float32, whose sizes differ by this factor; and targets of which a tenth are wrong."""
    rng, sizes = np.random.default_rng(0), np.geomspace(1, spread, 6)
    X = rng.standard_normal((400, 6)) * sizes
    if form == "dense":
        X += sizes
    else:
        X[rng.random(X.shape) < 0.5] = 0.0
    X = X.astype(F32)
    y = X.astype(float) @ (np.array([1.0, -2.0, 0.0, 0.0, 3.0, 0.0]) / sizes) + 4.0
    y += 0.1 * rng.standard_normal(400)
    y[:40] += 50.0
    return (X if form == "dense" else sp.csr_array(X)), y


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_estimators_keep_float32_and_find_the_same(form: str, scale: bool, weighted: bool) -> None:
    X, y = features(form, 10.0 if scale else 1.0)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    designs = [Design.of(X.astype(dtype), True, weights, scale) for dtype in (float, F32)]
    assert [design.A.dtype for design in designs] == [float, F32]
    assert abs(designs[1].A - designs[0].A).max() < 1e-5 and designs[1].unit == pytest.approx(designs[0].unit, rel=1e-6)
    regressors = [
        RobustLinearRegressor("huber", constraint="l2", radius=60.0, scale=scale, sigma=0.1, tol=1e-5).fit(
            X.astype(dtype), y, weights
        )
        for dtype in (float, F32)
    ]
    double, single = (regressor.predict(X) for regressor in regressors)
    assert single.dtype == float and np.abs(single - double).max() < 1e-2
    assert np.array_equal(regressors[0].outliers_, regressors[1].outliers_)
    classes = np.where(y > np.median(y), "high", "low")
    classifiers = [
        SigmoidClassifier(scale=scale, radius=5.0, random_state=0).fit(X.astype(dtype), classes, weights)
        for dtype in (float, F32)
    ]
    scores = [classifier.decision_function(X) for classifier in classifiers]
    assert np.allclose(*scores, rtol=1e-3, atol=1e-3 * np.abs(scores[0]).max())


def test_a_linear_fit_in_float32_makes_no_float64_copy_of_the_features() -> None:
    X = np.random.default_rng(0).standard_normal((4000, 300)).astype(F32)
    y = X[:, 0].astype(float)
    peaks = {}
    for dtype in 2 * (float, F32):
        given = X.astype(dtype)
        tracemalloc.start()
        RobustLinearRegressor("huber", radius=1.0, sigma=1.0, max_iter=5, tol=0.1).fit(given, y)
        peaks[dtype] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[F32] < 0.75 * peaks[float]


def test_a_constant_feature_in_float32_has_no_scale() -> None:
    X = features("dense")[0]
    X[:, 2] = F32(0.1)
    X[::2, 3] = np.nextafter(X[0, 3], F32(np.inf))  # constant up to the last bit
    X[1::2, 3] = X[0, 3]
    assert Design.of(X, True, None, scale=True).scales[2:4].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("unit", [1e-25, 1e25])
def test_features_in_float32_of_extreme_size_become_float64(unit: float) -> None:
    X, y = features("dense")
    X = (X / np.abs(X).max() * F32(unit)).astype(F32)
    assert Design.of(X, True).A.dtype == float
    assert np.isfinite(RobustLinearRegressor(random_state=0).fit(X, y).coef_).all()


# -------------------------------------------------------------------------------------------------------------- readers


@pytest.mark.parametrize("dtype", [F32, np.float64, np.int16, np.float16])
@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_binary_files_keep_float32(suffix: str, fault: bool, dtype: Any, tmp_path: Any) -> None:
    """Also where a fault makes the reader go through the rows one by one. All other types of numbers become float64."""
    rows, cols, values = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0]), np.array([1, 2, 3, 4]).astype(dtype)
    if dtype is F32:
        values += F32(0.1)
    path = tmp_path / f"entries{suffix}"
    if fault and values.dtype.kind == "f":
        values[2] = np.nan
    if suffix == ".npz":
        np.savez(path, row=rows, col=cols, data=values)
    else:
        pq.write_table(pa.table({"row": rows, "col": cols, "value": values}), path)
    found = load(path)
    assert found.values is not None and found.values.dtype == (F32 if dtype is F32 else float)
    good = np.isfinite(values)
    assert np.array_equal(found.values, values[good]) and found.matrix().dtype == found.values.dtype
    assert (found.cleanup.count("not finite") + found.cleanup.count("missing value")) == (~good).sum()
    assert cg.Completion(found.rows, found.cols, found.values, found.shape).dtype == found.values.dtype


@pytest.mark.filterwarnings(
    "ignore::condgrad.driver.audit.SmoothnessWarning"
)  # float32 has no more digits at the end of the run
def test_a_penalty_keeps_what_an_objective_states_of_its_rounding() -> None:
    """Without it the mapping of gradients in float32 was certified to the digits of float64."""
    c, box = F32(0.123456789), cg.Box(-np.ones(5), np.ones(5))
    F = cg.Function(lambda x: F32(((x - c) ** 2).sum() / 2), lambda x: x.astype(F32) - c, (5,), smoothness=1.1)
    result = cg.minimize(cg.Penalized(F, cg.SmoothedAbsolute(1.0), 1e-30), box, tol=1e-18, max_steps=40)
    assert result.certificate is not None and result.certificate.upper >= (U32 * float(c)) ** 2
    rng = np.random.default_rng(0)
    model = cg.LinearModel(rng.standard_normal((20, 5)), 1e9 * rng.standard_normal(20), cg.Squared())
    assert cg.Penalized(model, cg.MCP()).grad_scale(np.ones(5)) == model.grad_scale(np.ones(5)) > 0
    with pytest.raises(TypeError, match=r"The objective is the class Quadratic, an instance was expected"):
        cg.Penalized(cg.Quadratic, cg.MCP())
