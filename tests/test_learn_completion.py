"""RobustCompletion: what it recovers, what it takes, and what it says to what it can't take."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.completions import problem, table

import condgrad as cg
from condgrad.learn import RobustCompletion
from condgrad.learn.completion import biases, entries, path
from condgrad.points import Pattern

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def noisy() -> tuple[np.ndarray, np.ndarray, RobustCompletion]:
    truth, holes = problem(noise=0.1)
    return truth, holes, RobustCompletion().fit(holes)


def relative(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def test_a_matrix_without_noise_is_recovered_and_what_is_wrong_is_named() -> None:
    truth, holes = problem()
    model = RobustCompletion().fit(holes)
    assert relative(model.fill(), truth) < 5e-3
    assert {(e.row, e.column) for e in model.outliers_} == {(i, j) for i in range(3) for j in range(3)}
    assert (model.outliers_.score > 0.99).all()
    squared = RobustCompletion("squared").fit(holes)
    assert relative(squared.fill("nothing"), truth) > 10 * relative(model.fill("nothing"), truth)


def test_noise_is_measured_and_the_rank_is_found(noisy: tuple) -> None:
    truth, _, model = noisy
    assert 0.08 < model.sigma_ < 0.16
    assert relative(model.fill("nothing"), truth) < 0.1
    assert model.components_.shape == (len(model.singular_values_), 40)
    low = model.row_factors_ @ model.components_ + model.row_biases_[:, None] + model.col_biases_ + model.mean_
    assert np.allclose(np.clip(low, *model.range_), model.fill("nothing"))
    assert (
        np.isclose(model.singular_values_.sum(), model.radius_, rtol=1e-6)
        or model.singular_values_.sum() < model.radius_
    )


def test_with_a_radius_and_a_loss_nothing_is_held_out(noisy: tuple) -> None:
    truth, holes, _ = noisy
    given = RobustCompletion(cg.Welsch(4.0), radius=89.0).fit(holes)
    assert given.path_ == [] and given.radius_ == 89.0
    assert relative(given.fill("nothing"), truth) < 0.1 and len(given.outliers_) == 9


def test_a_scale_that_is_given_is_reached_from_above(noisy: tuple) -> None:
    """From the beginning as narrow as the noise, the loss would believe nothing."""
    truth, holes, model = noisy
    for given in (RobustCompletion(sigma=0.1), RobustCompletion(sigma=0.1175, radius=model.radius_)):
        assert relative(given.fit(holes).fill("nothing"), truth) < 0.085 and given.sigma_ == given.sigma


def test_biases_of_columns_alone() -> None:
    truth, holes = problem(noise=0.1)
    offsets = np.linspace(-30, 30, 40)
    model = RobustCompletion(biases="columns").fit(holes + offsets)
    assert (model.row_biases_ == 0).all() and relative(model.fill("nothing") - offsets, truth) < 0.1
    with pytest.raises(ValueError, match="choice of biases 'rows'"):
        RobustCompletion(biases="rows").fit(holes)


def test_biases_are_where_reweighting_leaves_them() -> None:
    """Each bias is the weighted mean of the residuals without it, with inlier weights and a ridge penalty."""
    _, holes = problem(noise=0.1)
    rows, cols, values = table(holes + np.linspace(0, 2, 40))
    pattern, loss = Pattern(rows, cols, holes.shape), cg.Welsch(4.0)
    found = biases.Biases(0.0, np.zeros(60), np.zeros(40))
    for _ in range(300):
        residuals = values - pattern.sample(*found.factors())
        found = biases.refit_biases(found, biases.ReweightedEntries(pattern, residuals, loss), "both", iterations=2)
    weights = np.exp(-((values - (found.mean + found.rows[rows] + found.cols[cols])) ** 2) / 4.0)
    assert np.isclose(found.mean, np.average(values - found.rows[rows] - found.cols[cols], weights=weights))
    of_rows = np.bincount(rows, weights * (values - found.mean - found.cols[cols])) / (
        np.bincount(rows, weights) + biases.ROW_RIDGE
    )
    of_cols = np.bincount(cols, weights * (values - found.mean - found.rows[rows])) / (
        np.bincount(cols, weights) + biases.COLUMN_RIDGE
    )
    assert np.allclose(found.rows, of_rows) and np.allclose(found.cols, of_cols)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint16])
def test_whole_numbers_are_ids_in_order(kind: type) -> None:
    for ids in ([3, 0, 2, 2, 1], [5, 9, 9, 7, 5], [0, 120, 7, 7, 0]):
        given = entries.from_list((np.array(ids, kind), np.array(ids, kind), np.ones(5)))
        assert given.row_ids is not None and given.row_ids.dtype == kind
        assert given.row_ids.tolist() == sorted(set(ids)) and given.row_ids[given.rows].tolist() == ids


def test_every_way_to_give_entries_leads_to_the_same_fit(noisy: tuple) -> None:
    _, holes, model = noisy
    rows, cols, values = table(holes)
    shuffle = np.random.default_rng(1).permutation(len(rows))
    pairs = np.c_[rows, cols]
    frame = pd.DataFrame({"who": [f"u{i:02d}" for i in rows], "what": [f"v{j:02d}" for j in cols], "value": values})
    expected = model.predict(pairs)
    assert np.allclose(RobustCompletion().fit(sp.csc_array((values, (rows, cols)), (60, 40))).predict(pairs), expected)
    assert np.allclose(RobustCompletion().fit((rows, cols, values)).predict(pairs), expected)
    assert np.allclose(RobustCompletion().fit(pairs[shuffle], values[shuffle]).predict(pairs), expected)
    named = RobustCompletion().fit(frame.iloc[shuffle])
    assert np.allclose(named.predict(frame[["who", "what"]]), expected)
    assert named.row_ids_[3] == "u03" and named.col_ids_.shape == (40,)


def test_the_columns_of_a_table_are_found_by_their_names(noisy: tuple) -> None:
    _, holes, model = noisy
    rows, cols, values = table(holes)
    frame = pd.DataFrame({"rating": values, "itemId": cols, "User_ID": rows})
    named = RobustCompletion().fit(frame)
    expected = model.predict(np.c_[rows, cols])
    assert np.allclose(named.predict(frame[["itemId", "User_ID"]]), expected)
    assert np.allclose(named.predict(frame[["User_ID", "itemId"]]), expected)
    assert named.score(frame[["itemId", "User_ID"]], values) == named.score(frame)


@pytest.mark.parametrize(
    "frame",
    [
        {"rating": [1, 2], "who": [0, 1], "what": [0, 1]},
        {"a": [1.0, 2.0], "b": [0, 1], "c": [0, 1]},
        {"user": [1, 2], "userId": [0, 1], "rating": [0, 1]},
    ],
)
def test_a_table_whose_order_is_not_clear_is_refused(frame: dict) -> None:
    with pytest.raises(ValueError, match="are row, column and value: name them so"):
        RobustCompletion().fit(pd.DataFrame(frame))


def test_ids_that_are_no_whole_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"A row id must be a whole number or a name, but got 3\.5"):
        RobustCompletion().fit(pd.DataFrame({"row": [3.5, 2.0], "b": [0, 1], "c": [0.0, 1.0]}))
    model = RobustCompletion().fit(([0, 1, 0, 1], [0.0, 1.0, 1.0, 0.0], [1.0, 2.0, 3.0, 4.0]))
    with pytest.raises(ValueError, match=r"must be a whole number or a name, but got 0\.5"):
        model.predict([[0, 0.5]])


def test_zeros_that_a_sparse_matrix_stores_are_observed() -> None:
    model = RobustCompletion().fit(sp.csr_array((np.zeros(12), (np.repeat(range(4), 3), np.tile(range(3), 4))), (4, 3)))
    assert np.allclose(model.fill(), 0.0)


def test_what_is_not_known_is_predicted_by_what_is() -> None:
    _, holes = problem(noise=0.1)
    rows, cols, values = table(holes)
    model = RobustCompletion().fit((rows, cols, values))
    cold = model.predict([[999, 5], [7, 999], [999, 999]])
    assert np.allclose(cold, [model.mean_ + model.col_biases_[5], model.mean_ + model.row_biases_[7], model.mean_])


def test_the_best_columns_are_the_best_unseen_ones(noisy: tuple) -> None:
    _, holes, model = noisy
    best, values = model.recommend([4, 7], k=5)
    whole = np.where(np.isnan(holes), model.fill("nothing"), -np.inf)[[4, 7]]
    assert np.allclose(values, -np.sort(-whole, axis=1)[:, :5])
    assert np.isnan(holes[[[4], [7]], best]).all()
    all_of_them, values = model.recommend([4], k=100)
    assert sorted(all_of_them[0]) == np.flatnonzero(np.isnan(holes[4])).tolist() and np.isfinite(values).all()
    with pytest.raises(ValueError, match="Row 77 is not known"):
        model.recommend([77])


def test_a_row_is_folded_in_near_where_a_fit_puts_it() -> None:
    truth, holes = problem(noise=0.05)
    model = RobustCompletion().fit(holes[:50])
    model.fold_in(holes[50:])
    assert model.fill().shape == (60, 40)
    assert relative(model.fill("nothing")[50:], truth[50:]) < 0.15
    rows, cols, values = table(holes)
    names = RobustCompletion().fit((rows[rows < 50], cols[rows < 50], values[rows < 50]))
    names.fold_in((rows[rows >= 50], cols[rows >= 50], values[rows >= 50]))
    assert relative(names.predict(np.argwhere(truth != 0)[50 * 40 :]), truth[50:].ravel()) < 0.15
    with pytest.raises(ValueError, match="Row 50 is known already"):
        names.fold_in(([50], [0], [1.0]))
    with pytest.raises(ValueError, match="Column 99 is not known"):
        names.fold_in(([77], [99], [1.0]))


def test_transform_replaces_holes_and_what_is_wrong(noisy: tuple) -> None:
    truth, holes, model = noisy
    filled = model.transform(holes[:6])
    assert relative(filled, truth[:6]) < 0.15
    kept = ~np.isnan(holes[:6])
    kept[:3, :3] = False
    assert np.mean(filled[kept] == holes[:6][kept]) > 0.9


def test_more_entries_are_fitted_on() -> None:
    truth, holes = problem(noise=0.05)
    rows, cols, values = table(holes)
    now, later = rows % 5 != 0, rows % 5 == 0
    # by name: a block of equal values is of low rank too, and a loss chosen on held-out entries may fit it
    model = RobustCompletion("welsch").fit((rows[now], cols[now], values[now]))
    model.partial_fit((rows[later], cols[later], values[later]))
    assert len(model.row_ids_) == 60
    assert relative(model.predict(np.argwhere(truth != 0)), truth.ravel()) < 0.1
    model.partial_fit(([0], [0], [truth[0, 0]]))  # what was wrong is corrected
    assert (0, 0) not in {(e.row, e.column) for e in model.outliers_}


def test_a_warm_start_keeps_radius_and_sigma(noisy: tuple) -> None:
    _, holes, model = noisy
    warm = RobustCompletion(warm_start=True).fit(holes)
    radius, sigma = warm.radius_, warm.sigma_
    warm.fit(holes[:, ::1])
    assert warm.sigma_ == sigma and np.isclose(warm.radius_, radius, rtol=0.05)
    assert np.abs(warm.fill("nothing") - model.fill("nothing")).max() < 0.2


@pytest.mark.parametrize("name", ["v{:02d}".format, lambda j: 1000 + j])
def test_outliers_have_names(name: Callable[[int], object], tmp_path: Path) -> None:
    rows, cols, values = table(problem(noise=0.1)[1])
    given = [f"u{i:02d}" for i in rows], [name(j) for j in cols], values
    model = RobustCompletion().fit(given)
    expected = {(f"u{i:02d}", name(j)) for i in range(3) for j in range(3)}
    assert {(e.row, e.column) for e in model.outliers_[:9]} == expected
    model.save(tmp_path / "model.npz")
    again = RobustCompletion.load(tmp_path / "model.npz")
    assert (again.outliers_ == model.outliers_).all() and again.outliers_.dtype == model.outliers_.dtype
    model.fold_in((["a"], [name(0)], [1.0]))
    assert {(e.row, e.column) for e in model.outliers_[:9]} == expected


def test_an_entry_that_is_given_twice_is_told_by_its_name() -> None:
    with pytest.raises(ValueError, match=r"Entry \('bob', 7\) is observed 2 times"):
        RobustCompletion().fit((["bob", "ann", "bob"], [7, 8, 7], [1.0, 2.0, 3.0]))


def test_radius_and_sigma_can_be_given(noisy: tuple) -> None:
    _, holes, _ = noisy
    model = RobustCompletion(radius=20.0, sigma=0.3, biases=False, clip=False).fit(holes)
    assert model.radius_ == 20.0 and model.sigma_ == 0.3 and model.mean_ == 0.0
    assert np.isclose(model.singular_values_.sum(), 20.0)


def test_a_radius_beyond_the_best_is_reached_too(noisy: tuple) -> None:
    _, holes, model = noisy
    assert RobustCompletion(radius=3 * model.radius_).fit(holes).radius_ == 3 * model.radius_


def test_a_certificate_is_there_where_it_is_asked_for(noisy: tuple) -> None:
    _, holes, _ = noisy
    model = RobustCompletion(radius=40.0, certify=1e-1, max_steps=300).fit(holes)
    assert model.result_.status == "converged" and model.result_.certificate.upper <= 1e-1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "welch"}, "did you mean 'welsch'"),
        ({"loss": cg.Logistic()}, "labels -1 and 1"),
        ({"sigma": "big"}, "sigma is 'big'"),
        ({"radius": -1.0}, "radius must be positive"),
        ({"max_steps": 0}, "max_steps"),
        ({"clip": (1, 5)}, r"clip must be True or False, but got \(1, 5\)"),
        ({"clip": 1}, "clip must be True or False"),
    ],
)
def test_bad_parameters_are_told_in_one_sentence(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RobustCompletion(**given).fit(np.eye(4))


def test_certify_is_checked_before_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(*_: object) -> None:
        pytest.fail("the fit has begun")

    monkeypatch.setattr("condgrad.learn.completion.estimator.Fit", fit)
    with pytest.raises(ValueError, match="certify must be positive"):
        RobustCompletion(certify=-1).fit(np.eye(4))


def test_the_smoothed_l0_loss_is_welsch(noisy: tuple) -> None:
    _, holes, _ = noisy
    again, model = RobustCompletion("smoothed-l0").fit(holes), RobustCompletion("welsch").fit(holes)
    assert np.array_equal(again.fill(), model.fill()) and again.loss == "smoothed-l0"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((3, 3), np.nan), "no observed entry"),
        (([0, 1], [0], [1.0, 2.0]), "lists of the same length"),
        (([0, 0], [1, 1], [1.0, 2.0]), "observed 2 times"),
        (([0, 1], [1, 1], [1.0, np.nan]), "1 of 2 values are NaN"),
        (([0, 1], [1, 1], ["a", "b"]), "values must be numbers"),
        (([0, 1], [1, 1]), "A tuple of 2 was given"),
    ],
)
def test_bad_entries_are_told_in_one_sentence(X: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RobustCompletion().fit(X)


@pytest.mark.parametrize("kind", [sp.coo_array, sp.coo_matrix, sp.csr_array, sp.csc_array])
def test_an_entry_that_a_sparse_matrix_holds_twice_is_refused_not_summed(kind: type, noisy: tuple) -> None:
    given = sp.coo_array(([1.0, 2.0, 3.0, 4.0], ([2, 0, 1, 2], [1, 0, 1, 1])), (3, 40))
    if kind is sp.csr_array:
        given = sp.csr_array(([3.0, 3.0, 1.0, 4.0], [0, 1, 1, 1], [0, 1, 2, 4]), (3, 40))
    elif kind is sp.csc_array:
        given = sp.csc_array(([3.0, 3.0, 1.0, 4.0], [0, 1, 2, 2], [0, 1, *[4] * 39]), (3, 40))
    else:
        given = kind(given)
    assert given.nnz == 4
    for call in (RobustCompletion().fit, noisy[2].transform):
        with pytest.raises(ValueError, match=r"Entry \(2, 1\) is observed 2 times"):
            call(given)


def test_progress_is_shown_after_two_seconds(progress: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from condgrad.runtime import progress

    clock, out = iter(range(0, 10_000, 3)), io.StringIO()
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    monkeypatch.setattr(progress.sys, "stderr", out)
    RobustCompletion(verbose=True).fit(problem(noise=0.1)[1])
    assert "on held-out entries" in out.getvalue() and "left]" in out.getvalue()


@pytest.mark.parametrize("loss", ["welsch", "huber", "squared"])
@pytest.mark.parametrize("ratings", [False, True])
def test_validation_errors_are_of_the_fit_that_has_not_seen_the_entries(
    loss: str, ratings: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}
    split, follow = path.Fit.split, path.Fit.follow

    def keep_split(fit: path.Fit) -> Any:
        seen["train"], seen["held"] = split(fit)
        return seen["train"], seen["held"]

    def keep_model(fit: path.Fit, *arguments: Any) -> Any:
        seen["model"] = follow(fit, *arguments)
        return seen["model"]

    monkeypatch.setattr(path.Fit, "split", keep_split)
    monkeypatch.setattr(path.Fit, "follow", keep_model)
    holes = problem(noise=0.3)[1]
    holes = np.clip(np.round(2 * holes), -2, 2) if ratings else holes
    model = RobustCompletion(loss).fit(holes)
    train, held = seen["train"], seen["held"]
    places = set(zip(held.rows.tolist(), held.cols.tolist(), strict=True))
    assert not places & set(zip(train.pattern.rows.tolist(), train.pattern.cols.tolist(), strict=True))
    predicted = seen["model"].predict(held.rows, held.cols)
    if ratings:
        assert np.abs(predicted).max() > 2, "there is something to clip"
        predicted = np.clip(predicted, -2, 2)
    errors = predicted - holes[held.rows, held.cols]
    assert model.validation_rmse_ == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-12)
    assert model.validation_mae_ == pytest.approx(np.mean(np.abs(errors)), rel=1e-12)
    assert model.validation_median_error_ == pytest.approx(np.median(np.abs(errors)), rel=1e-12)
    assert model.n_validation_ == len(errors) == int(0.1 * np.isfinite(holes).sum())


def test_fitting_on_keeps_the_errors_of_the_fit_that_chose_the_radius() -> None:
    holes = problem(noise=0.3)[1]
    model = RobustCompletion().fit(holes)
    before = model.validation_rmse_, model.validation_mae_, model.n_validation_
    model.partial_fit(np.where(np.isnan(holes), 0.5, np.nan)[:3])
    assert (model.validation_rmse_, model.validation_mae_, model.n_validation_) == before
    assert RobustCompletion(cg.Welsch(1.0), radius=5.0).fit(holes).validation_rmse_ is None
