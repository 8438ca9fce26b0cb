"""Weights of rows and classes: 2 is a row that stands there twice, 0 is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression

import condgrad as cg
from condgrad.learn import RobustLinearRegressor, SigmoidClassifier
from condgrad.learn.sample_weights import fold_numbers, held_out_rows, holdout_keys, weighted_median


def data(n: int = 80, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y with some outliers, labels, and whole weights with some 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ [3.0, -2.0, 1.0, 0, 0, 0] + 1 + 0.1 * rng.normal(size=n) + 30 * (rng.random(n) < 0.15)
    labels = np.where(X[:, 0] > X[:, 1] + 0.3 * rng.normal(size=n), "up", "down")
    return X, y, labels, rng.integers(0, 4, n)


# Equal to the bit is equal at any tol: a larger one makes for shorter fits.
ESTIMATORS = [
    (RobustLinearRegressor(tol=1e-4), "y"),
    (RobustLinearRegressor("huber", constraint=None, tol=1e-4), "y"),
    (RobustLinearRegressor("squared", tol=1e-4), "y"),
    (RobustLinearRegressor(constraint="nuclear", tol=1e-4), "tasks"),
    (SigmoidClassifier(tol=1e-3), "labels"),
    (SigmoidClassifier("logistic", constraint="l1", class_weight="balanced", tol=1e-3), "labels"),
    (SigmoidClassifier(class_weight={0: 2.0}, tol=1e-3), "classes"),
]


def target(what: str, X: np.ndarray, y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return {"y": y, "tasks": np.c_[y, y - X[:, 0]], "labels": labels, "classes": np.digitize(X[:, 0], [-0.5, 0.5])}[
        what
    ]


@pytest.mark.parametrize(("model", "what"), ESTIMATORS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_weight_is_how_often_a_row_stands_there(model: Any, what: str, form: Any) -> None:
    X, y, labels, weights = data()
    Y = target(what, X, y, labels)
    often = np.repeat(np.arange(len(X)), weights)
    repeated = model.fit(form(X[often]), Y[often])
    coef, intercept, radius = repeated.coef_, repeated.intercept_, repeated.radius_
    order = np.random.default_rng(1).permutation(len(X))
    weighted = model.fit(form(X[order]), Y[order], sample_weight=weights[order])
    assert np.array_equal(weighted.coef_, coef) and np.array_equal(weighted.intercept_, intercept)
    assert weighted.radius_ == radius
    scaled = model.fit(form(X), Y, sample_weight=4.0 * weights)  # a power of two, which rounds nothing
    assert np.array_equal(scaled.coef_, coef)
    unlike = model.fit(form(X), Y)
    assert not np.allclose(unlike.coef_, coef, rtol=1e-4, atol=1e-6)


def test_equal_weights_are_none(tmp_path: Path) -> None:
    X, y, labels, _ = data()
    for model, Y in ((RobustLinearRegressor(), y), (SigmoidClassifier(), labels)):
        plain = model.fit(X, Y).coef_
        assert np.array_equal(model.fit(X, Y, sample_weight=np.full(len(X), 2.5)).coef_, plain)


def test_least_squares_is_that_of_scikit_learn() -> None:
    X, y, _, weights = data()
    theirs = LinearRegression().fit(X, y, sample_weight=weights)
    ours = RobustLinearRegressor("squared", constraint=None, tol=1e-11).fit(X, y, sample_weight=weights)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)


def test_outliers_are_told_of_every_row() -> None:
    X, y, _, weights = data()
    y[0], weights[0] = 1e4, 0
    model = RobustLinearRegressor().fit(X, y, sample_weight=weights)
    assert model.outliers_.shape == y.shape and np.array_equal(
        model.outliers_, np.abs(y - model.predict(X)) > 3 * model.sigma_
    )
    assert model.outliers_[0]


def test_weights_of_classes_move_the_boundary_and_are_saved(tmp_path: Path) -> None:
    X, _, labels, _ = data(300)
    counts = [
        int((SigmoidClassifier("logistic", radius=1.0, class_weight=w).fit(X, labels).predict(X) == "up").sum())
        for w in ({"up": 0.1}, None, {"up": 10.0})
    ]
    assert counts[0] < counts[1] < counts[2]
    few = np.concatenate([np.flatnonzero(labels == "up")[:15], np.flatnonzero(labels == "down")])
    share = [
        SigmoidClassifier("logistic", radius=0.5, class_weight=w).fit(X[few], labels[few]).score(X, labels)
        for w in (None, "balanced")
    ]
    assert share[1] > share[0] + 0.1
    model = SigmoidClassifier(radius=1.0, class_weight={"up": 10.0}).fit(X, labels)
    model.save(tmp_path / "m.npz")
    assert SigmoidClassifier.load(tmp_path / "m.npz").get_params() == model.get_params()


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.full(80, -1.0), "smallest weight of a row is -1"),
        (np.zeros(80), "not all 0|non-zero"),
        (np.ones(79), "shape"),
        (np.full(80, np.nan), "NaN"),
    ],
)
def test_weights_that_are_none_are_refused(weights: np.ndarray, said: str) -> None:
    X, y, labels, _ = data()
    for model, Y in ((RobustLinearRegressor(), y), (SigmoidClassifier(), labels)):
        with pytest.raises(ValueError, match=said):
            model.fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("even", "give None, 'balanced' or a dict"),
        ({"upp": 2.0}, "'upp', which is not a class of y, and lacks the class"),
    ],
)
def test_weights_of_classes_that_are_none_are_refused(given: Any, said: str) -> None:
    X, _, labels, _ = data()
    with pytest.raises(ValueError, match=said):
        SigmoidClassifier(class_weight=given).fit(X, labels)


def test_the_weighted_median_is_that_of_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = rng.integers(1, 9)
        values, weights = rng.integers(0, 5, (n, 2)).astype(float), rng.integers(1, 4, n)
        assert np.array_equal(
            weighted_median(values, weights.astype(float)), np.median(np.repeat(values, weights, axis=0), axis=0)
        )


def test_what_is_held_out_is_a_share_of_the_weight() -> None:
    keys = np.random.default_rng(0).permutation(1000).astype(np.uint64)
    weights = np.random.default_rng(1).uniform(0.1, 5.0, 1000)
    held = held_out_rows(keys, weights, 0.2)
    assert weights[held].sum() / weights.sum() == pytest.approx(0.2, abs=0.005)
    assert held_out_rows(keys, None, 0.2).sum() == 200
    assert held_out_rows(keys[:2], np.array([1e9, 1.0]), 0.2).sum() == held_out_rows(keys[:1], None, 0.2).sum() == 1


def test_folds_have_equal_weights_and_every_row_is_in_one() -> None:
    keys = np.random.default_rng(0).permutation(1000).astype(np.uint64)
    weights = np.random.default_rng(1).uniform(0.1, 5.0, 1000)
    number = fold_numbers(keys, weights, 5)
    assert np.bincount(number, weights) / weights.sum() == pytest.approx(np.full(5, 0.2), abs=0.003)
    assert np.array_equal(np.bincount(fold_numbers(keys, None, 8)), np.full(8, 125))
    assert np.all(np.diff(number[np.argsort(keys)]) >= 0)
    assert len(np.unique(fold_numbers(keys[:5], np.array([1e9, 1.0, 1.0, 1.0, 1.0]), 5))) > 1


def test_a_weighted_linear_model_is_that_of_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    A, y, w = rng.normal(size=(12, 4)), rng.normal(size=(12, 3)), rng.integers(1, 5, 12)
    for form in (np.asarray, sp.csr_array):
        weighted = cg.LinearModel(form(A), y, cg.Welsch(2.0), weights=w)
        repeated = cg.LinearModel(form(np.repeat(A, w, axis=0)), np.repeat(y, w, axis=0), cg.Welsch(2.0))
        x = rng.normal(size=(4, 3))
        assert weighted.value(x) == pytest.approx(repeated.value(x)) and np.allclose(weighted.grad(x), repeated.grad(x))
        assert weighted.smoothness == pytest.approx(repeated.smoothness)
        terms = weighted.assemble(weighted.term_rows(x, np.arange(12)), np.arange(12))
        assert np.allclose(terms, weighted.grad(x))
        near, far = (
            [weighted.assemble(weighted.term_rows(at, one), one) for one in np.arange(12)[:, None]]
            for at in (x, x + 1e-4)
        )
        each = np.linalg.norm(np.array(near) - np.array(far), axis=(1, 2))
        assert each.max() <= weighted.term_smoothness * np.linalg.norm(np.full((4, 3), 1e-4)) * (1 + 1e-9)
        assert np.sqrt(np.mean(np.square(each))) <= weighted.mean_square_smoothness * np.linalg.norm(
            np.full((4, 3), 1e-4)
        )
    with pytest.raises(ValueError, match="must be positive"):
        cg.LinearModel(A, y, cg.Welsch(2.0), weights=np.zeros(12))
    with pytest.raises(ValueError, match="one for each row"):
        cg.LinearModel(A, y, cg.Welsch(2.0), weights=np.ones(3))


def test_other_targets_and_another_loss_are_a_linear_model_of_these() -> None:
    rng = np.random.default_rng(0)
    A, y, other, w = rng.normal(size=(12, 4)), rng.normal(size=12), rng.normal(size=12), rng.uniform(1, 2, 12)
    x = rng.normal(size=4)
    for form in (np.asarray, sp.csr_array):
        first = cg.LinearModel(form(A), y, cg.Squared(), weights=w)
        names = ("smoothness", "lower_smoothness", "term_smoothness", "mean_square_smoothness", "lower_bound")
        kept = [*(getattr(first, name) for name in names), first.grad_scale(x), first.value(x)]
        made, fresh = first.replaced(other, cg.Welsch(2.0)), cg.LinearModel(form(A), other, cg.Welsch(2.0), weights=w)
        for name in names:
            assert getattr(made, name) == getattr(fresh, name), name
        assert made.value(x) == fresh.value(x) and np.array_equal(made.grad(x), fresh.grad(x))
        assert made.grad_scale(x) == fresh.grad_scale(x)
        assert kept == [*(getattr(first, name) for name in names), first.grad_scale(x), first.value(x)]


def test_equal_rows_draw_one_number_in_any_order_and_number() -> None:
    rng = np.random.default_rng(0)
    for seed in range(100):
        n = int(rng.integers(1, 30))
        X, Y = rng.integers(-1, 2, (n, 3)).astype(float), rng.integers(0, 2, (n, 2)).astype(float)

        def keys(X: Any, Y: np.ndarray, seed: int = seed) -> np.ndarray:
            return holdout_keys(X, Y, np.random.RandomState(seed))

        found, rows = keys(X, Y), np.c_[Y, X]
        assert np.array_equal(found[:, None] == found, (rows[:, None] == rows).all(axis=2))
        some = rng.permutation(np.concatenate([np.arange(n), rng.integers(0, n, 5)]))
        assert np.array_equal(keys(X[some], Y[some]), found[some])
        assert np.array_equal(keys(sp.csr_array(X), Y), found) and np.array_equal(keys(3 * X, 7 * Y), found)
