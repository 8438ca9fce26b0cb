"""Tables of sensors and times, completed as tensors of rows x periods x times."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.reference.tensor_view import run

import condgrad as cg
from condgrad.cli import main
from condgrad.learn import RobustCompletion
from condgrad.learn.completion.biases import Biases
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.path import Fit
from condgrad.learn.completion.tensor_view import (
    SETTINGS,
    complete_tensor,
    fit_view,
    split_like_holes,
    truncated_shrink,
)
from condgrad.learn.completion.validation import TensorView
from condgrad.objectives import Completion
from condgrad.points import LowRank


def readings(sensors: int = 12, days: int = 20, times: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Every sensor has two daily profiles of its own, and all share two weights for each day; 30 % of their days are missing."""
    rng = np.random.default_rng(seed)
    truth = np.einsum("rik,rj->ijk", rng.normal(size=(2, sensors, times)), rng.random((2, days))).reshape(sensors, -1)
    truth = truth / truth.std() + 5
    missing = np.repeat(rng.random((sensors, days)) < 0.3, times, axis=1)
    return truth, np.where(missing, np.nan, truth + 0.05 * rng.normal(size=truth.shape))


def error(model: RobustCompletion, truth: np.ndarray, seen: np.ndarray) -> float:
    holes = np.isnan(seen)
    return float(np.linalg.norm((model.fill("nothing") - truth)[holes]) / np.linalg.norm((truth - truth.mean())[holes]))


@pytest.mark.parametrize("mu", [0.0, 3e-2])
def test_iterates_are_those_of_the_flat_reference(mu: float) -> None:
    rng = np.random.default_rng(0)
    Y, observed = rng.normal(size=(4, 5, 3)) + 1, rng.random((4, 5, 3)) < 0.7
    inliers = rng.random(Y.shape) < 0.9
    walk = run(Y, observed, inliers, 0.3, mu, 0.1, 1.05, 30)
    for count, expected in enumerate(walk, 1):
        settings = replace(SETTINGS, penalty=0.1, iterations=count, tolerance=0.0)
        found = complete_tensor(Y, observed, inliers, 0.3, mu, None, settings)
        assert np.allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("shape", [(4, 9), (9, 4)])
def test_the_largest_singular_values_are_kept(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).normal(size=shape)
    before = np.linalg.svd(matrix)[1]
    after = np.linalg.svd(truncated_shrink(matrix, 1.0, 2))[1]
    assert np.allclose(after, [*before[:2], *np.maximum(before[2:] - 1.0, 0)], atol=1e-7)


def test_held_out_entries_are_like_the_holes() -> None:
    truth, seen = readings()
    rng = np.random.default_rng(0)
    for table, in_blocks in ((seen, 1.0), (np.where(rng.random(truth.shape) < 0.3, np.nan, truth), 0.0)):
        rows, cols = np.nonzero(~np.isnan(table))
        objective = Completion(rows, cols, table[rows, cols], table.shape)
        train, held_out = split_like_holes(Fit(objective, "auto", None, "both", rng), 8)
        assert train.n_terms + len(held_out.values) == len(rows)
        assert abs(len(held_out.values) - 0.1 * len(rows)) < 8
        blocks = held_out.rows * 20 + held_out.cols // 8
        still_there = np.isin(blocks, train.pattern.rows * 20 + train.pattern.cols // 8)
        assert abs(np.mean(~still_there) - in_blocks) < 0.1
        assert np.array_equal(table[held_out.rows, held_out.cols], held_out.values)


def test_whole_days_of_a_sensor_are_predicted_from_other_days() -> None:
    truth, seen = readings()
    plain, view = RobustCompletion().fit(seen), RobustCompletion(period=8).fit(seen)
    assert view.view_ is not None and view.view_.period == 8 and view.candidates_[-1].tensor
    assert error(view, truth, seen) < 0.8 * error(plain, truth, seen)
    assert plain.view_ is None and not plain.candidates_[-1].tensor


def test_outliers_are_found_and_listed() -> None:
    truth, seen = readings(seed=1)
    rng = np.random.default_rng(2)
    wrong = (rng.random(truth.shape) < 0.05) & ~np.isnan(seen)
    seen[wrong] += rng.choice([-8.0, 8.0], wrong.sum())
    seen[np.argwhere(wrong)[0][0], np.argwhere(wrong)[0][1]] = 1e6  # far off: it must not become a component
    model = RobustCompletion(period=8).fit(seen)
    assert model.view_ is not None and model.view_.loss == "welsch"
    listed = {(int(found.row), int(found.column)) for found in model.outliers_}
    found = listed & set(map(tuple, np.argwhere(wrong).tolist()))
    assert len(found) > 0.9 * wrong.sum() and len(listed) < 1.2 * wrong.sum()
    assert error(model, truth, seen) < 0.6
    squared = RobustCompletion("squared", period=8).fit(seen)
    assert len(squared.outliers_) == 0


def test_the_plain_fit_is_kept_where_columns_have_no_order() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    seen = np.where(rng.random(truth.shape) < 0.6, truth + 0.1 * rng.normal(size=truth.shape), np.nan)
    plain, model = RobustCompletion().fit(seen), RobustCompletion(period=8).fit(seen)
    assert model.view_ is None and model.candidates_[-1].tensor and model.candidates_[-1].evidence <= 0
    errors = [np.linalg.norm(fit.fill() - truth) for fit in (model, plain)]
    assert errors[0] < 1.1 * errors[1]


def test_units_do_not_matter() -> None:
    _, seen = readings()
    found = RobustCompletion(period=8).fit(seen)
    unit = 2.0**20  # a power of 2: other factors change rounding errors, which drawn averages amplify
    scaled = RobustCompletion(period=8).fit(unit * seen)
    assert scaled.view_ is not None and found.view_ is not None
    assert scaled.view_[4:5] == found.view_[4:5]
    assert np.allclose(scaled.fill("nothing"), unit * found.fill("nothing"), rtol=1e-6)


def test_a_sensor_without_readings_is_predicted_by_the_biases() -> None:
    _, seen = readings()
    seen[3] = np.nan
    model = RobustCompletion(period=8).fit(seen)
    assert model.view_ is not None
    expected = model.mean_ + model.row_biases_[3] + model.col_biases_
    assert np.allclose(model.fill("nothing")[3], np.clip(expected, *model.range_))


def test_saved_loaded_cloned_continued_and_folded_in(tmp_path: Path) -> None:
    truth, seen = readings()
    model = RobustCompletion(period=8).fit(pd.DataFrame(seen, index=[f"s{i}" for i in range(12)]))
    model.save(tmp_path / "model.npz")
    again = RobustCompletion.load(tmp_path / "model.npz")
    assert again.view_ == model.view_ and again.candidates_ == model.candidates_
    assert again.fill().equals(model.fill())
    assert clone(again).period == 8
    plain = RobustCompletion(period=8).fit(seen)
    before = error(plain, truth, seen)
    plain.partial_fit(seen)
    assert plain.view_ is not None and error(plain, truth, seen) < 1.3 * before
    plain.fold_in(seen[:2])
    assert plain.fill().shape == (14, 160)


@pytest.mark.parametrize(
    ("settings", "columns", "sentence"),
    [
        (
            {"period": 7},
            40,
            "period=7 was given for 40 columns, but a multiple of the period, at least 14, was expected",
        ),
        ({"period": 40}, 40, "at least 80"),
        ({"period": 0}, 40, "period"),
        ({"period": 2.5}, 40, "period"),
        ({"period": 8, "certify": 1e-2}, 40, "period was given with certify"),
        ({"period": 8, "loss": cg.Welsch(1.0)}, 40, "period was given with a loss object"),
    ],
)
def test_bad_periods_are_refused(settings: dict, columns: int, sentence: str) -> None:
    X = np.random.default_rng(0).normal(size=(5, columns))
    with pytest.raises((ValueError, TypeError), match=sentence):
        RobustCompletion(**settings).fit(X)


def test_lists_need_names_that_tell_the_time() -> None:
    _, seen = readings()
    rows, cols = np.nonzero(~np.isnan(seen))
    given = rows, cols, seen[rows, cols]
    assert RobustCompletion(period=8).fit(given).view_ is not None
    with pytest.raises(ValueError, match="do not tell the times between them"):
        RobustCompletion(period=8).fit((rows, np.where(cols == 159, 170, cols), seen[rows, cols]))
    with pytest.raises(ValueError, match="do not tell the times between them"):
        RobustCompletion(period=8).fit((rows, [f"t{j}" for j in cols], seen[rows, cols]))


def test_large_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from condgrad.learn.completion import tensor_view

    monkeypatch.setattr(tensor_view, "MAX_TABLE", 100)
    with pytest.raises(ValueError, match="at most 100 places were expected"):
        RobustCompletion(period=8).fit(readings()[1])


def test_the_command_has_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, seen = readings()
    path, filled = tmp_path / "table.csv", tmp_path / "filled.csv"
    pd.DataFrame(seen, index=[f"s{i:02}" for i in range(12)], columns=[f"t{j:03}" for j in range(160)]).to_csv(path)
    order = ["complete", str(path), "--wide", "--out", str(tmp_path / "model.npz"), "--filled", str(filled), "--quiet"]
    assert main([*order, "--period", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tensor view"] is True
    assert "completed as a tensor with a period of 8 columns" in (tmp_path / "model-report" / "report.html").read_text()
    found = pd.read_csv(filled, index_col=0).to_numpy()
    holes = np.isnan(seen)
    assert np.linalg.norm((found - truth)[holes]) < 0.3 * np.linalg.norm((truth - truth.mean())[holes])
    assert main([*order, "--period", "7"]) == 2
    assert "period=7 was given for 160 columns" in capsys.readouterr().err
    pd.DataFrame(seen, index=[f"s{i:02}" for i in range(12)], columns=[f"t{j}" for j in range(160)]).to_csv(path)
    assert main([*order, "--period", "8"]) == 2
    assert "do not tell the times between them" in capsys.readouterr().err


def test_a_wide_file_may_have_whole_numbers_for_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The names of columns were text, sorted as 0, 1, 10, and the message asked for the whole numbers that were given."""
    _, seen = readings(8, 6, 4)
    table = pd.DataFrame(seen, index=[f"s{i}" for i in range(8)])
    table.to_csv(tmp_path / "wide.csv")
    said = ["--period", "4", "--no-report", "--quiet", "--loss", "huber", "--sigma", "0.1"]
    assert main(["complete", str(tmp_path / "wide.csv"), "--out", str(tmp_path / "m.npz"), *said]) == 0
    assert RobustCompletion.load(tmp_path / "m.npz").col_ids_.tolist() == list(range(24))
    capsys.readouterr()
    table.add_prefix("t").to_csv(tmp_path / "wide.csv")
    assert main(["complete", str(tmp_path / "wide.csv"), "--out", str(tmp_path / "m.npz"), *said]) == 2
    assert "columns such as 't0', whose names do not tell" in capsys.readouterr().err


def test_a_view_with_several_truncations_is_the_mean_of_their_completions() -> None:
    """The held-out entries of real tables did not show which one is best, and the chosen one was 1 % worse than their mean."""
    _, seen = readings()
    i, j = np.nonzero(~np.isnan(seen))
    entries = Completion(i, j, seen[i, j], seen.shape)
    biases = Biases(0.0, np.zeros(seen.shape[0]), np.zeros(seen.shape[1]))
    plain = Model(LowRank(np.ones((seen.shape[0], 1)), np.ones((seen.shape[1], 1))), biases, cg.Squared(), 0.3)

    def completed(*shares: float) -> np.ndarray:
        return fit_view(entries, plain, TensorView(8, "squared", 0.3, shares, 0.0, 1.0)).x.to_dense()

    singles = [completed(share) for share in SETTINGS.truncations]
    assert not np.allclose(singles[0], singles[1], atol=0.1)
    assert np.allclose(completed(*SETTINGS.truncations), np.mean(singles, axis=0))


@pytest.mark.parametrize(("against", "several"), [(-np.inf, True), (np.inf, False)])
def test_the_mean_is_used_unless_there_is_evidence_against_it(
    against: float, several: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from condgrad.learn.completion import tensor_view

    monkeypatch.setattr(tensor_view, "MEAN_EVIDENCE", against)
    _, seen = readings()
    model = RobustCompletion("squared", period=8).fit(seen)
    assert model.view_ is not None and (model.view_.truncations == SETTINGS.truncations) == several
    model.save(tmp_path / "model.npz")
    assert RobustCompletion.load(tmp_path / "model.npz").view_ == model.view_
