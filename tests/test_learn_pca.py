"""Low rank plus sparse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from condgrad.learn import RobustPCA, low_rank_start


def mixed(noise=0.1, shape=(60, 40), seed=0):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))
    wrong = rng.random(shape) < 0.1
    S = wrong * rng.choice([-1.0, 1.0], shape) * rng.uniform(10, 40, shape)
    return L, S, L + S + noise * rng.normal(size=shape)


@pytest.fixture(scope="module")
def fitted():
    return RobustPCA().fit(mixed()[2])


def error(found, L):
    return np.linalg.norm(found - L) / np.linalg.norm(L)


def test_gross_errors_are_set_apart(fitted):
    L, S, X = mixed()
    plain = PCA(2).fit(X)
    assert error(plain.inverse_transform(plain.transform(X)), L) > 20 * error(fitted.low_rank_, L)
    assert error(fitted.low_rank_, L) < 0.03 and fitted.n_components_ == 2
    assert fitted.outliers_[S != 0].all() and fitted.outliers_[S == 0].mean() < 0.006  # 0.0027 are above 3 sigma
    assert np.array_equal(fitted.sparse_ != 0, fitted.outliers_) and np.abs(fitted.sparse_ - S).max() < 1
    assert np.allclose((fitted.low_rank_ - fitted.mean_).mean(axis=0), 0)


def best(L, S, X):
    """The error of plain PCA, of rank 2, where nothing is wrong."""
    plain = PCA(2).fit(X - S)
    return error(plain.inverse_transform(plain.transform(X - S)), L)


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.1, 0.5])
@pytest.mark.parametrize("seed", [1, 2])
def test_nearly_as_good_as_pca_without_errors(noise, seed):
    L, S, X = mixed(noise, seed=seed)
    offsets = np.linspace(-100, 100, L.shape[1])
    pca = RobustPCA().fit(X + offsets)
    assert pca.n_components_ == 2 and error(pca.low_rank_ - offsets, L) < 1.3 * best(L, S, X)
    assert error(pca.inverse_transform(pca.transform(X + offsets)) - offsets, L) < 1.3 * best(L, S, X)


def test_a_larger_matrix():
    L, S, X = mixed(0.01, (300, 200))
    pca = RobustPCA().fit(X[:200])
    assert pca.n_components_ == 2 and error(pca.low_rank_, L[:200]) < 1.2 * best(L[:200], S[:200], X[:200])
    assert pca.outliers_[S[:200] != 0].all() and pca.outliers_[S[:200] == 0].mean() < 0.006
    assert error(pca.inverse_transform(pca.transform(X[200:])), L[200:]) < 2e-3  # rows that it has not seen


def raised(where, rank=3, shape=(150, 120), seed=0):
    """A low-rank matrix, and the same with noise and with the entries at these places raised by 5 to 15."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    return L, L + 0.1 * rng.normal(size=shape) + where(rng, shape) * rng.uniform(5, 15, shape)


@pytest.mark.parametrize(("share", "rank"), [(0.2, 3), (0.3, 3), (0.4, 3), (0.3, 6)])
def test_errors_that_all_have_the_same_sign(share, rank):
    """Means and medians of the columns are wrong, and the convex problem gives up between 30 and 40 %."""
    L, X = raised(lambda rng, shape: rng.random(shape) < share, rank)
    pca = RobustPCA().fit(X + 20)
    assert pca.n_components_ == rank and error(pca.low_rank_ - 20, L) < 0.03 and 0.09 < pca.sigma_ < 0.11
    assert pca.outliers_.mean() == pytest.approx(share, abs=0.02)


def block(rng, shape):
    return np.outer(np.arange(shape[0]) < 40, np.arange(shape[1]) < 30)


def most_of_some_rows(rng, shape):
    return (np.arange(shape[0]) < 20)[:, None] & (rng.random(shape) < 0.7)


@pytest.mark.parametrize("where", [block, most_of_some_rows])
def test_errors_in_one_place_are_no_component(where):
    L, X = raised(where)
    pca = RobustPCA().fit(X)
    assert pca.n_components_ == 3 and error(pca.low_rank_, L) < 0.03
    assert pca.outliers_[where(np.random.default_rng(0), L.shape) & (X - L > 1)].all()


def test_a_start_from_a_sample_of_rows_and_columns(monkeypatch):
    monkeypatch.setattr(low_rank_start, "SETTINGS", replace(low_rank_start.SETTINGS, max_side=60))
    L, X = raised(lambda rng, shape: rng.random(shape) < 0.2)
    X[5, 1:] = np.nan  # a row and a column with one entry each
    X[1:, 7] = np.nan
    seen = np.delete(np.delete(np.arange(X.size).reshape(X.shape), 5, axis=0), 7, axis=1)
    pca = RobustPCA().fit(X)
    assert pca.n_components_ == 3 and error(pca.low_rank_.ravel()[seen], L.ravel()[seen]) < 0.03


def test_rows_that_are_noisier_or_further_out_than_all_before_keep_their_scores(fitted):
    L, _, X = mixed()
    loud = X + np.random.default_rng(4).normal(size=X.shape)
    assert error(fitted.inverse_transform(fitted.transform(loud)), L) < 0.4
    assert error(fitted.inverse_transform(fitted.transform(1e3 * L)), 1e3 * L) < 0.05


def test_rows_that_fit_exactly_but_for_gross_errors(fitted):
    scores = np.random.default_rng(5).normal(size=(8, 2))
    rows = fitted.inverse_transform(scores)
    assert np.allclose(fitted.transform(rows), scores, atol=0.01)
    rows[:, :6] += 100.0
    assert np.allclose(fitted.transform(rows), scores, atol=0.01)


def test_components_are_a_basis_and_scores_lie_in_it(fitted):
    L, _, X = mixed()
    V = fitted.components_
    assert np.allclose(V @ V.T, np.eye(len(V))) and (np.diff(fitted.singular_values_) <= 0).all()
    back = fitted.inverse_transform(fitted.transform(X))
    assert error(back, L) < 0.03 and np.allclose(back, fitted.low_rank_, atol=0.02)
    assert error(fitted.inverse_transform(fitted.transform(X[:1])), L[:1]) < 0.15


def test_holes(fitted):
    L, _, X = mixed()
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    pca = RobustPCA().fit(X)
    assert error(pca.low_rank_, L) < 0.04 and not pca.outliers_[np.isnan(X)].any()
    assert np.isfinite(pca.transform(np.full((1, 40), np.nan))).all()


def test_squared_loss_without_a_limit_is_pca():
    L, _, _ = mixed()
    X = L + 0.1 * np.random.default_rng(3).normal(size=L.shape)
    ours = RobustPCA(2, loss="squared", radius=1e4, tol=1e-12, center=False).fit(X)
    _, s, Vt = np.linalg.svd(X)
    assert np.allclose(ours.singular_values_, s[:2], rtol=1e-6)
    assert np.allclose(np.abs(ours.components_ @ Vt[:2].T), np.eye(2), atol=1e-5)


def test_saved_and_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "pca.npz")
    again = RobustPCA.load(tmp_path / "pca.npz")
    X = mixed()[2]
    assert np.array_equal(again.transform(X), fitted.transform(X)) and np.array_equal(again.outliers_, fitted.outliers_)


def test_in_a_pipeline():
    X = mixed()[2]
    pipe = make_pipeline(StandardScaler(), RobustPCA(2, radius=60.0, sigma=0.1)).fit(X)
    assert pipe.transform(X).shape == (60, 2)
    assert list(pipe[-1].get_feature_names_out()) == ["robustpca0", "robustpca1"]


def test_bad_input_gets_a_sentence():
    X = np.ones((4, 3))
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match="Column 1 of X has no entry, only NaN"):
        RobustPCA().fit(X)
    with pytest.raises(ValueError, match="Unknown loss 'l1'"):
        RobustPCA(loss="l1").fit(np.eye(3))


def test_fewer_components_than_asked_for_are_reported():
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=40), rng.normal(size=20))
    with pytest.warns(UserWarning, match="n_components=5 was asked for, but the fitted low-rank part has rank"):
        assert RobustPCA(5).fit(X).n_components_ < 5


def test_more_components_than_rows_or_columns_are_refused():
    for shape in ((6, 9), (9, 6)):
        X = np.random.default_rng(0).normal(size=shape)
        with pytest.raises(
            ValueError, match=rf"^n_components=7 .* {shape[0]} rows and {shape[1]} columns: .* at most 6"
        ):
            RobustPCA(7).fit(X)
