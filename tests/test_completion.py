"""Completion on arrays and on low-rank points, with weights and biases: values, gradients, terms and the constants it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import condgrad as cg
from condgrad import kernels
from condgrad.checks import NonFinite
from condgrad.points import LowRank, SparsePlusLowRank


@dataclass(frozen=True)
class Quartic:
    """A user's own loss, which no kernel knows; smooth on [-1, 1]."""

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "real"
    smoothness: ClassVar[float] = 12.0
    lower_smoothness: ClassVar[float] = 0.0

    def value(self, z, y):
        return (z - y) ** 4

    def deriv(self, z, y):
        return 4 * (z - y) ** 3


LOSSES = {
    "squared": cg.Squared(),
    "huber": cg.Huber(0.4),
    "welsch": cg.Welsch(0.7),
    "cauchy": cg.Cauchy(0.3),
    "geman-mcclure": cg.GemanMcClure(1.3),
    "logistic": cg.Logistic(),
    "sigmoid": cg.Sigmoid(),
}


def over(losses):
    return pytest.mark.parametrize("loss", losses.values(), ids=losses.keys())


every_loss, and_one_s_own = over(LOSSES), over(LOSSES | {"one's own": Quartic()})
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


class Data:
    """Seeded observations in no order, and F from its formula, one of them at a time."""

    def __init__(self, loss, weighted=False, shape=(17, 13), share=0.4):
        self.rng, self.shape, self.loss = np.random.default_rng(0), shape, loss
        cells = self.rng.permutation(shape[0] * shape[1])[: int(share * shape[0] * shape[1])]
        self.rows, self.cols = cells // shape[1], cells % shape[1]
        labels = loss.labels == "+-1"
        self.values = self.rng.choice([-1.0, 1.0], len(cells)) if labels else self.rng.standard_normal(len(cells))
        self.weights = self.rng.uniform(0.1, 3.0, len(cells)) if weighted else None

    def objective(self, **more):
        return cg.Completion(self.rows, self.cols, self.values, self.shape, self.loss, self.weights, **more)

    def low_rank(self, r=3):
        m, n = self.shape
        return LowRank(self.rng.standard_normal((m, r)), self.rng.standard_normal((n, r)))

    def terms(self, X):
        """(i, j, w_ij phi, w_ij phi') of all observations."""
        w = np.ones(len(self.values)) if self.weights is None else self.weights
        for i, j, y, c in zip(self.rows, self.cols, self.values, w, strict=True):
            yield i, j, c * float(self.loss.value(X[i, j], y)), c * float(self.loss.deriv(X[i, j], y))

    def value(self, X):
        return sum(value for _, _, value, _ in self.terms(X))

    def grad(self, X):
        grad = np.zeros(self.shape)
        for i, j, _, slope in self.terms(X):
            grad[i, j] = slope
        return grad


# ------------------------------------------------------------------------------------- the same on arrays and low rank


@and_one_s_own
@weighted
def test_value_and_gradient_are_the_formula_s(loss, weighted):
    data = Data(loss, weighted)
    f = data.objective()
    for x in (data.low_rank(), LowRank.zeros(data.shape), data.low_rank(0), data.low_rank() - 0.3 * data.low_rank(1)):
        X = np.asarray(x)
        value, grad = data.value(X), data.grad(X)
        assert f.value(X) == pytest.approx(value, rel=1e-12) and f.value(x) == pytest.approx(value, rel=1e-12)
        assert isinstance(f.grad(x), SparsePlusLowRank) and isinstance(f.grad(X), np.ndarray)
        assert np.allclose(f.grad(X), grad, rtol=1e-12, atol=1e-14)
        assert np.allclose(np.asarray(f.grad(x)), grad, rtol=1e-11, atol=1e-13)


@and_one_s_own
@weighted
def test_terms_add_up_to_the_gradient(loss, weighted):
    data = Data(loss, weighted)
    f, x = data.objective(), data.low_rank()
    X, everything, some = np.asarray(x), np.arange(f.n_terms), data.rng.integers(f.n_terms, size=9)
    assert np.allclose(f.term_rows(x, some), f.term_rows(X, some), rtol=1e-11, atol=1e-13)
    for point in (x, X):
        whole = f.grad_terms(point, everything)
        assert np.allclose(np.asarray(whole), data.grad(X), rtol=1e-11, atol=1e-13)
        expected = np.zeros(data.shape)
        for i in some:  # some of them twice
            expected[f.pattern.rows[i], f.pattern.cols[i]] += f.term_rows(point, np.array([i]))[0] / len(some)
        assert np.allclose(np.asarray(f.grad_terms(point, some)), expected, rtol=1e-11, atol=1e-13)
        rows = f.term_rows(point, everything)
        assert rows.shape == (f.n_terms,) and np.sum(rows != 0) > f.n_terms / 2


@every_loss
def test_the_gradient_is_the_slope_of_the_value(loss):
    data = Data(loss, weighted=True)
    f, x, d = data.objective(), data.low_rank(), data.low_rank()
    t = 1e-6
    slope = (f.value(x + t * d) - f.value(x - t * d)) / (2 * t)
    assert f.grad(x).inner(d) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_values_are_not_those_of_another_point():
    """What is remembered of the last point is of that point."""
    data = Data(cg.Welsch())
    f, x, y = data.objective(), data.low_rank(), data.low_rank()
    for point in (x, y, x, 2 * x, y, LowRank(*x.factors())):
        assert f.value(point) == pytest.approx(data.value(np.asarray(point)))
        assert np.allclose(np.asarray(f.grad(point)), data.grad(np.asarray(point)))
    for k in range(50):  # points that come and go may get each other's place in memory
        assert f.value((k / 50) * x) == pytest.approx(data.value(k / 50 * np.asarray(x)))


def test_weights_of_one_are_none():
    data = Data(cg.Welsch())
    plain, x = data.objective(), data.low_rank()
    data.weights = np.ones(len(data.values))
    weighted = data.objective()
    assert weighted.value(x) == pytest.approx(plain.value(x), rel=1e-14)
    assert weighted.smoothness == plain.smoothness and weighted.lower_bound == plain.lower_bound


def test_a_weight_counts_like_so_many_observations():
    data = Data(cg.Cauchy())
    data.weights = np.where(np.arange(len(data.values)) == 3, 2.0, 1.0)
    f, x = data.objective(), data.low_rank()
    alone = cg.Completion(data.rows[3:4], data.cols[3:4], data.values[3:4], data.shape, data.loss)
    data.weights = None
    assert f.value(x) == pytest.approx(data.objective().value(x) + alone.value(x))


# -------------------------------------------------------------------------------------------------------- the constants


@every_loss
@weighted
def test_the_smoothness_is_reached_and_not_exceeded(loss, weighted):
    data = Data(loss, weighted)
    f = data.objective()
    w = np.ones(f.n_terms) if data.weights is None else data.weights
    h, steepest, lowest = 1e-4, 0.0, 0.0
    z = np.linspace(-6, 6, 24001)
    for i in (int(np.argmax(w)), int(np.argmin(w))):
        curvature = w[i] * (loss.deriv(z + h, data.values[i]) - loss.deriv(z - h, data.values[i])) / (2 * h)
        steepest, lowest = max(steepest, np.abs(curvature).max()), min(lowest, curvature.min())
    assert steepest <= f.smoothness * (1 + 1e-6) and steepest >= f.smoothness * (1 - 1e-3)
    assert -lowest <= f.lower_smoothness * (1 + 1e-6) + 1e-9 and -lowest >= f.lower_smoothness * (1 - 1e-3)


@every_loss
@weighted
def test_the_smoothness_of_terms_and_of_their_mean_square_holds(loss, weighted):
    data = Data(loss, weighted)
    f, n = data.objective(), data.objective().n_terms
    everything = np.arange(n)
    for scale in (1e-3, 0.1, 1.0, 10.0):
        for _ in range(10):
            x, step = data.low_rank(), scale * data.low_rank(1)
            change = f.term_rows(x + step, everything) - f.term_rows(x, everything)
            moved = step.at(f.pattern)
            assert np.all(np.abs(change) <= f.term_smoothness * np.abs(moved) * (1 + 1e-9) + 1e-12 * n)
            mean_square, distance2 = np.mean(change**2), float(np.sum(np.asarray(step) ** 2))
            assert mean_square <= f.mean_square_smoothness**2 * distance2 * (1 + 1e-9) + 1e-20
            assert np.linalg.norm(change) / n <= f.smoothness * np.sqrt(distance2) * (1 + 1e-9) + 1e-12
    assert f.mean_square_smoothness <= f.term_smoothness


def test_the_mean_square_smoothness_is_reached():
    """By the squares, from a step on the heaviest observation alone."""
    data = Data(cg.Squared(), weighted=True)
    f, heaviest = data.objective(), int(np.argmax(data.weights))
    step = np.zeros(data.shape)
    step[data.rows[heaviest], data.cols[heaviest]] = 0.7
    everything = np.arange(f.n_terms)
    change = f.term_rows(step, everything) - f.term_rows(0 * step, everything)
    assert np.sqrt(np.mean(change**2)) == pytest.approx(f.mean_square_smoothness * 0.7)


@every_loss
@weighted
def test_values_stay_above_the_lower_bound(loss, weighted):
    data = Data(loss, weighted)
    f = data.objective()
    assert all(f.value(scale * data.low_rank()) >= f.lower_bound for scale in (0.0, 0.1, 1.0, 100.0))


# ------------------------------------------------------------------------------------------------------ biases, and input


def residual_means(f):
    """Of rows and columns, where they are observed."""
    rows, cols = f.pattern.rows, f.pattern.cols
    sums, counts = (np.bincount(a, f.values) for a in (rows, cols)), (np.bincount(a) for a in (rows, cols))
    return [s / np.maximum(c, 1) for s, c in zip(sums, counts, strict=True)]


@pytest.mark.parametrize("which", ["rows", "columns", "both"])
@pytest.mark.parametrize("share", [0.15, 0.5, 1.0])
def test_biases_leave_means_of_zero(which, share):
    data = Data(cg.Welsch(), shape=(30, 20), share=share)
    data.values = data.values + 5.0 + 0.3 * data.rows - 0.2 * data.cols
    f = data.objective(biases=which)
    of_rows, of_cols = residual_means(f)
    exact = 1e-12 * np.abs(data.values).max()
    if which != "columns":
        assert np.abs(of_rows).max() <= (exact if which == "rows" else 1e9 * exact)  # by turns, 20 times
    if which != "rows":
        assert np.abs(of_cols).max() <= exact
    assert (which == "rows") == (not f.biases.cols.any()) and (which == "columns") == (not f.biases.rows.any())
    assert f.biases.mean == pytest.approx(data.values.mean())


def test_biases_explain_a_matrix_without_interaction():
    rows, cols = np.nonzero(np.random.default_rng(0).random((30, 20)) < 0.5)
    values = 2.0 + np.sin(rows) + np.cos(cols)
    f = cg.Completion(rows, cols, values, (30, 20), biases="both")
    assert np.abs(f.values).max() <= 1e-6
    everywhere = f.biases.at(*np.indices((30, 20)))
    assert np.allclose(everywhere, 2.0 + np.sin(np.arange(30))[:, None] + np.cos(np.arange(20)), atol=1e-6)


def test_a_prediction_is_the_point_and_the_biases():
    data = Data(cg.Squared(), weighted=True)
    f, x = data.objective(biases="both"), data.low_rank()
    prediction = np.asarray(x) + f.biases.at(*np.indices(data.shape))
    assert f.value(x) == pytest.approx(data.value(prediction))
    assert f.value(np.asarray(x)) == pytest.approx(data.value(prediction))
    assert np.allclose(np.asarray(f.grad(x)), data.grad(prediction))
    assert f.grad_terms(x, np.arange(f.n_terms)).inner(x) == pytest.approx(f.grad(x).inner(x))


def test_what_was_never_observed_has_no_bias():
    f = cg.Completion([0, 2], [1, 1], [3.0, 5.0], (4, 3), biases="both")
    assert np.array_equal(f.biases.rows[[1, 3]], [0.0, 0.0]) and np.array_equal(f.biases.cols[[0, 2]], [0.0, 0.0])


@weighted
def test_the_order_of_the_input_does_not_matter(weighted):
    data = Data(cg.Welsch(), weighted)
    order = np.lexsort((data.cols, data.rows))
    sort = Data(cg.Welsch(), weighted)
    sort.rows, sort.cols, sort.values = data.rows[order], data.cols[order], data.values[order]
    sort.weights = data.weights[order] if weighted else None
    before = [np.array(a) for a in (data.rows, data.cols, data.values)]
    x = data.low_rank()
    for biases in (None, "both"):
        one, other = data.objective(biases=biases), sort.objective(biases=biases)
        assert np.array_equal(one.values, other.values) and np.array_equal(one.pattern.rows, other.pattern.rows)
        assert np.array_equal(one.weights, other.weights)
        assert one.value(x) == other.value(x) and one.grad(x).inner(x) == other.grad(x).inner(x)
    assert all(np.array_equal(a, b) for a, b in zip(before, (data.rows, data.cols, data.values), strict=True))


@weighted
def test_from_dense(weighted):
    data = Data(cg.Huber(0.5), weighted)
    Y, mask = np.full(data.shape, np.nan), np.zeros(data.shape, dtype=bool)
    Y[data.rows, data.cols], mask[data.rows, data.cols] = data.values, True
    weights = None
    if weighted:
        table = np.zeros(data.shape)
        table[data.rows, data.cols] = data.weights
        weights = table[mask]
    expected, x = data.objective(biases="rows"), data.low_rank()
    for f in (
        cg.Completion.from_dense(Y, loss=data.loss, weights=weights, biases="rows"),
        cg.Completion.from_dense(np.nan_to_num(Y), mask, data.loss, weights=weights, biases="rows"),
    ):
        assert f.value(x) == expected.value(x) and np.array_equal(f.values, expected.values)


def test_indices_of_any_whole_type():
    data = Data(cg.Welsch())
    expected = data.objective().value(x := data.low_rank())
    for kind in (np.int8, np.uint16, np.int32, np.uint64, list):
        rows, cols = (a.tolist() if kind is list else a.astype(kind) for a in (data.rows, data.cols))
        assert cg.Completion(rows, cols, data.values, data.shape).value(x) == expected


# ---------------------------------------------------------------------------------------------------------- what it costs


@pytest.fixture
def sampled(monkeypatch):
    counts = {"whole": 0, "entries": 0, "losses": 0}
    whole, some, loss = kernels.sample, kernels.sample_at, kernels.loss

    def sample(indptr, indices, U, V, dtype=None):
        counts["whole"] += 1
        return whole(indptr, indices, U, V, dtype)

    def sample_at(rows, cols, U, V):
        counts["entries"] += len(rows)
        return some(rows, cols, U, V)

    def value_and_slopes(*args):
        counts["losses"] += 1
        return loss(*args)

    monkeypatch.setattr(kernels, "sample", sample)
    monkeypatch.setattr(kernels, "sample_at", sample_at)
    monkeypatch.setattr(kernels, "loss", value_and_slopes)
    return counts


def test_a_batch_touches_nothing_but_the_batch(sampled):
    data = Data(cg.Welsch())
    f, x = data.objective(), data.low_rank()
    f.grad_terms(x, np.array([4, 0, 4]))
    f.term_rows(x, np.array([7]))
    assert sampled == {"whole": 0, "entries": 4, "losses": 0}


def test_a_gradient_and_a_value_are_one_pass(sampled):
    data = Data(cg.Welsch(), shape=(80, 70))  # numpy computes the losses of fewer entries
    f, x = data.objective(), data.low_rank()
    f.grad(x), f.value(x), f.grad(x)
    assert sampled == {"whole": 1, "entries": 0, "losses": 1}
    f.grad_terms(x, np.arange(5))  # the gradient left its samples behind
    f.grad(x + 0.5 * (data.low_rank(1) - x))
    assert sampled == {"whole": 2, "entries": 0, "losses": 2}


# -------------------------------------------------------------------------------------------------------------- refusals

THREE = ([0, 1, 2], [0, 1, 1], [1.0, 2.0, 3.0], (3, 2))
REFUSED = {
    "too few weights": (
        lambda: cg.Completion(*THREE, weights=[1.0, 2.0]),
        ValueError,
        "one for each value) has shape (2,)",
    ),
    "a negative weight": (lambda: cg.Completion(*THREE, weights=[1.0, -2.0, 1.0]), ValueError, "must not be negative"),
    "no weight at all": (lambda: cg.Completion(*THREE, weights=np.zeros(3)), ValueError, "nor all zero"),
    "NaN for a weight": (lambda: cg.Completion(*THREE, weights=[1.0, np.nan, 1.0]), NonFinite, "weights of Completion"),
    "words for weights": (
        lambda: cg.Completion(*THREE, weights=["a", "b", "c"]),
        ValueError,
        "weights of Completion must be",
    ),
    "unknown biases": (lambda: cg.Completion(*THREE, biases="cols"), ValueError, "Unknown choice of biases 'cols'"),
    "biases of labels": (
        lambda: cg.Completion([0], [0], [1.0], (1, 1), cg.Logistic(), biases="rows"),
        ValueError,
        "biases are means of real observations, Logistic has labels: leave them out.",
    ),
    "biases by yes": (lambda: cg.Completion(*THREE, biases=True), ValueError, "Unknown choice of biases True"),
    "an entry twice": (
        lambda: cg.Completion([1, 0, 1], [1, 1, 1], np.ones(3), (3, 2), weights=np.ones(3)),
        ValueError,
        "Entry (1, 1) is observed 2 times",
    ),
    "a low-rank point of another shape": (
        lambda: cg.Completion(*THREE).grad(LowRank.zeros((2, 3))),
        ValueError,
        "The point given to Completion has shape (2, 3), but (3, 2) was expected",
    ),
    "terms at a point of another shape": (
        lambda: cg.Completion(*THREE).term_rows(LowRank(np.ones((2, 1)), np.ones((2, 1))), np.arange(2)),
        ValueError,
        "shape (2, 2)",
    ),
}


@pytest.mark.parametrize(("ask", "kind", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(ask, kind, words):
    with pytest.raises(kind) as caught:
        ask()
    assert words in str(caught.value) and "\n" not in str(caught.value)
