"""Curves as they are given, and what the estimator takes from files and tells to its report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from condgrad.data import load
from condgrad.learn import RobustCompletion
from condgrad.learn.completion.path import Radius
from condgrad.learn.completion.report import fit_sentences, path_plot, validation_sentences
from condgrad.report import Curve, Plot
from condgrad.report.bands import bands


def plot(**keywords: object) -> Plot:
    runs = [{"x": [3.0, 1.0, 0.0, 2.0], "y": [5.0, 7.0, 1.0, np.nan]}]
    return Plot("p", "P", "y", {"x": "x", "z": "z"}, [Curve("c", runs)], as_given=True, **keywords)  # type: ignore[arg-type]


def test_what_is_given_is_drawn_without_best_so_far() -> None:
    (band,) = bands(plot(scales=("linear", "linear")), "x")
    assert band is not None and band.x.tolist() == [3, 1, 0] and band.middle.tolist() == [5, 7, 1]
    assert bands(plot(), "z") == [None]


def test_a_log_scale_leaves_out_what_it_can_not_show() -> None:
    (band,) = bands(plot(), "x")
    assert band is not None and band.x.tolist() == [3, 1]


def test_scales_and_runs_are_checked() -> None:
    with pytest.raises(ValueError, match="Unknown scale 'cubic'"):
        plot(scales=("log", "cubic"))
    run = {"x": [1.0], "y": [1.0]}
    with pytest.raises(ValueError, match="a curve does not have exactly one run"):
        Plot("p", "P", "y", {"x": "x"}, [Curve("c", [run, run])], as_given=True)


def with_path() -> RobustCompletion:
    """The chosen fit has neither the least error, which is by another loss, nor the least RMSE, nor the model's rank."""
    model = RobustCompletion()
    model.path_ = [
        Radius(10.0, 3.0, 1, "cauchy", False, 4.0, 3.5, 2.5),
        Radius(13.0, 0.5, 2, "cauchy", False, 1.25, 0.75, 0.5),
        Radius(13.0, 2.0, 2, "welsch", False, 2.25, 1.5, 1.0),
        Radius(15.5, 1.0, 3, "welsch", True, 1.375, 0.875, 0.625),
    ]
    model.best_index_, model.n_validation_, model.singular_values_ = 3, 71, np.ones(5)
    return model


def test_the_path_has_a_curve_for_each_loss_and_one_for_the_chosen_fit() -> None:
    model = with_path()
    (path,) = path_plot(model)
    assert isinstance(path, Plot)
    led, ball, free, chosen = path.curves
    assert [led.label, ball.label] == ["cauchy, within the ball", "welsch, within the ball"]
    assert free.label == "welsch, singular values not shrunk" and chosen.label == "chosen"
    assert (led.runs[0]["radius"], free.runs[0]["radius"]) == ([10.0, 13.0], [15.5])
    assert (ball.runs[0]["round"], free.runs[0]["y"]) == ([3], [1.375])
    assert chosen.runs[0] == {"radius": [15.5], "round": [4], "y": [1.375]}
    model.path_ = []
    assert path_plot(model) == []


def test_the_curve_the_caption_and_the_text_speak_of_one_fit() -> None:
    model = with_path()
    (path,) = path_plot(model)
    (said,) = validation_sentences(model)
    assert isinstance(path, Plot) and path.y == "RMSE on held-out entries"
    assert "radius 15.5, rank 3, RMSE 1.375 and MAE 0.875" in path.note
    assert (
        "71 entries are held out" in said and "the RMSE is 1.375 and the MAE 0.875" in said and "within 0.625" in said
    )
    assert "(radius 15.5, rank 3)" in said and "has rank 5" in said
    assert (model.validation_rmse_, model.validation_mae_) == (1.375, 0.875) and model.validation_median_error_ == 0.625


def test_nothing_is_said_to_be_held_out_where_nothing_was() -> None:
    found = dict.fromkeys(("entries", "rows", "columns", "rank", "outliers"), 1)
    found |= {"observed": 1.0, "radius": 1.0, "sigma": 1.0, "held-out entries": None}  # type: ignore[dict-item]
    assert "held-out" not in fit_sentences(found) and "held-out" in fit_sentences({**found, "held-out entries": 5})
    model = RobustCompletion()
    model.best_index_, model.path_ = None, []
    assert validation_sentences(model) == [] and model.validation_rmse_ is None and model.validation_mae_ is None


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    rng = np.random.default_rng(0)
    return 3 + rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))


def test_fit_and_predict_take_what_load_gives(truth: np.ndarray, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    seen = np.argwhere(rng.random(truth.shape) < 0.5)
    lines = [f"u{i},i{j},{truth[i, j]:.5f}" for i, j in rng.permutation(seen)]
    (tmp_path / "r.csv").write_text("\n".join(["user,item,rating", *lines]))
    given = load(tmp_path / "r.csv")
    loaded = RobustCompletion().fit(given)
    names = np.array([(f"u{i}", f"i{j}") for i, j in seen])
    listed = RobustCompletion().fit((names[:, 0], names[:, 1], truth[tuple(seen.T)].round(5)))
    assert (loaded.row_ids_ == listed.row_ids_).all() and np.allclose(loaded.predict(names), listed.predict(names))
    assert np.allclose(loaded.predict(given), given.values, atol=0.05)
    (tmp_path / "p.csv").write_text("user,item\nu1,i1\nzoe,i1\n")
    pairs = load(tmp_path / "p.csv", values=False)
    assert np.array_equal(loaded.predict(pairs), loaded.predict(np.array([("u1", "i1"), ("zoe", "i1")])))
    with pytest.raises(ValueError, match="with values"):
        RobustCompletion().fit(pairs)


def test_a_given_sigma_is_where_the_scale_ends(truth: np.ndarray) -> None:
    """From biases alone everything is far off: a loss as narrow as the noise would believe nothing from the start."""
    rng = np.random.default_rng(2)
    noisy = truth + 0.05 * rng.normal(size=truth.shape) + 15 * (rng.random(truth.shape) < 0.03)
    model = RobustCompletion(sigma=0.05).fit(np.where(rng.random(truth.shape) < 0.5, noisy, np.nan))
    assert model.sigma_ == 0.05 and len(model.outliers_) < 120
    assert np.median(np.abs(model.fill("nothing") - truth)) < 0.05


def test_losses_are_kept_and_saved(truth: np.ndarray, tmp_path: Path) -> None:
    model = RobustCompletion().fit(truth[:20, :15])
    model.save(tmp_path / "m.npz")
    assert model.losses_ and RobustCompletion.load(tmp_path / "m.npz").losses_ == model.losses_
