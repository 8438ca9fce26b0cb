"""What is large is not wrong: whole rows and columns are fitted, though a loss gives up what is far off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import condgrad as cg
from condgrad.learn import RobustCompletion
from condgrad.learn.completion.biases import Biases
from condgrad.learn.completion.folding import fold_in_rows
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.rescue import rescue
from condgrad.learn.completion.robust_scale import value_range
from condgrad.points import LowRank


def relative(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth - truth.mean()))


def seen(truth: np.ndarray, share: float, noise: float, wrong: float, seed: int, far: float = 5.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = truth + noise * rng.normal(size=truth.shape)
    values += np.where(rng.random(truth.shape) < wrong, far * truth.std() * rng.uniform(-1, 1, truth.shape), 0)
    return np.where(rng.random(truth.shape) < share, values, np.nan)


def rows_that_differ(m: int, n: int, rank: int, seed: int) -> np.ndarray:
    """Rows vary by orders of magnitude, as rush hours of large stations do beside nights of small ones."""
    rng = np.random.default_rng(seed)
    return rng.lognormal(0, 1, (m, 1)) * (rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)))


@pytest.mark.parametrize("loss", ["welsch", "geman-mcclure"])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_given_up_where_nothing_is_wrong(loss: str, seed: int) -> None:
    """By itself a loss that gives up what is far off ends with an error of 0.26 for one of these, with whole rows as outliers."""
    rng = np.random.default_rng(seed)
    truth = 3 + rng.normal(size=(150, 1)) @ rng.normal(size=(1, 100))
    model = RobustCompletion(loss).fit(seen(truth, 0.4, 0.1, 0.0, seed))
    assert relative(model.fill("nothing"), truth) < 0.04
    assert len(model.outliers_) < 0.02 * model._seen.n_terms
    assert np.bincount(model.outliers_.row, minlength=150).max() < 0.3 * 40


@pytest.mark.parametrize(("noise", "wrong", "most"), [(0.1, 0.0, 0.02), (0.1, 0.1, 0.06), (0.0, 0.0, 0.01)])
def test_rows_of_very_different_size_are_fitted(noise: float, wrong: float, most: float) -> None:
    truth = rows_that_differ(200, 150, 3, seed=0)
    model = RobustCompletion().fit(seen(truth, 0.4, noise, wrong, seed=0))
    assert relative(model.fill("nothing"), truth) < most


def test_rounded_values_are_no_outliers() -> None:
    rng = np.random.default_rng(0)
    truth = 3 + rng.normal(size=(150, 1)) @ rng.normal(size=(1, 100))
    model = RobustCompletion().fit(seen(truth, 0.4, 0.0, 0.0, 0).round(2))
    assert len(model.outliers_) == 0 and relative(model.fill("nothing"), truth) < 2e-3


def test_a_fit_does_not_depend_on_the_order_of_rows() -> None:
    truth = rows_that_differ(120, 80, 2, seed=3)
    holes = seen(truth, 0.5, 0.05, 0.05, seed=3)
    order = np.random.default_rng(0).permutation(120)
    errors = [
        relative(RobustCompletion().fit(given).fill("nothing"), whole)
        for given, whole in ((holes, truth), (holes[order], truth[order]))
    ]
    assert max(errors) < 0.05


def test_outliers_that_agree_are_outliers_as_long_as_rows_have_more_others() -> None:
    """Nine entries of 50 are a matrix of rank one, but no row believes them."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
        holes = seen(truth, 0.6, 0.1, 0.0, seed)
        holes[:3, :3] = 50.0
        model = RobustCompletion().fit(holes)
        assert {(i, j) for i in range(3) for j in range(3)} <= {(int(e.row), int(e.column)) for e in model.outliers_}
        assert relative(model.fill("nothing"), truth) < 0.06


# ------------------------------------------------------------------------------------------------------------ the parts


def lost_in(axis: int, far: float = 50.0) -> tuple[cg.Completion, Model, np.ndarray]:
    """A model that fits all rows (columns) but two, which are as the others, only larger; the entries; and the truth."""
    rng = np.random.default_rng(1)
    P, Q = rng.normal(size=(30, 2)), rng.normal(size=(25, 2))
    known = P.copy(), Q.copy()
    (P, Q)[axis][:2] *= far
    truth = P @ Q.T
    keep = rng.random(truth.shape) < 0.7
    rows, cols = np.nonzero(keep)
    objective = cg.Completion(rows, cols, truth[keep], truth.shape, cg.Welsch(1.0))
    model = Model(LowRank(*known), Biases(0.0, np.zeros(30), np.zeros(25)), cg.Welsch(1.0), sigma=0.01, rank=2)
    return objective, model, truth


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("which", ["both", None])
def test_what_is_lost_is_fitted_to_what_the_others_have_taught(axis: int, which: str | None) -> None:
    objective, model, truth = lost_in(axis)
    found = rescue(objective, model, which)
    assert relative(model.x.to_dense(), truth) > 0.5
    U, V = found.factors()
    assert np.allclose(U @ V.T, truth, atol=0.2)
    assert found.state is None and found.rank == 2


def test_what_is_lost_is_fitted_beside_the_biases_of_the_others_with_one_of_its_own() -> None:
    objective, model, truth = lost_in(1)
    rows, cols = objective.pattern.rows, objective.pattern.cols
    of_rows = 10 * np.random.default_rng(2).normal(size=30)
    of_cols = np.where(np.arange(25) < 2, 40.0, 0.0)
    known = replace(model, biases=Biases(5.0, of_rows, np.zeros(25)))
    given = objective.replaced(objective.values + 5.0 + of_rows[rows] + of_cols[cols])
    U, V = rescue(given, known, "columns").factors()
    assert np.allclose(U @ V.T, truth + 5.0 + of_rows[:, None] + of_cols, atol=0.2)


def test_inliers_are_kept_and_so_are_rows_that_no_refit_improves() -> None:
    objective, model, _ = lost_in(0, far=1.0)
    assert rescue(objective, model, "both") is model
    objective, model, _ = lost_in(0)
    values, rows = objective.values.copy(), objective.pattern.rows
    values[rows < 2] = 1e3 * np.random.default_rng(0).normal(size=int((rows < 2).sum()))
    left = rescue(objective.replaced(values), model, "both")
    assert np.allclose(left.x.to_dense(), model.x.to_dense())


def test_a_row_of_few_entries_is_not_rescued() -> None:
    objective, model, _ = lost_in(0)
    rows, cols = objective.pattern.rows, objective.pattern.cols
    few = (rows > 1) | (cols < 4)
    assert 0 < ((rows < 1) & few).sum() < 6
    part = cg.Completion(rows[few], cols[few], objective.values[few], objective.shape, objective.loss)
    assert np.allclose(rescue(part, model, "both").x.to_dense(), model.x.to_dense())


def test_folding_takes_a_price_for_each_component() -> None:
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.normal(size=(40, 2)))[0]
    cols, left = np.arange(40), V @ [3.0, 5.0]
    entries = np.zeros(40, int), cols, left
    free = fold_in_rows(V, np.ones(2), entries, 1, cg.Squared(), np.array([0.0, 0.0]), ridge=None)[1]
    dear = fold_in_rows(V, np.ones(2), entries, 1, cg.Squared(), np.array([0.0, 1.0]), ridge=None)[1]
    assert np.allclose(free, [[3.0, 5.0]]) and np.allclose(dear, [[3.0, 2.5]])


def test_bounds_are_values_that_many_share() -> None:
    rng = np.random.default_rng(0)
    cases = {
        (1.0, 5.0): rng.integers(1, 6, 5000).astype(float),
        (-np.inf, np.inf): rng.normal(size=5000),
        (0.0, np.inf): np.maximum(rng.normal(size=5000), 0.0),
    }
    for expected, values in cases.items():
        assert value_range(values, np.ones(5000, dtype=bool)) == expected
        far = np.concatenate([[-99.0] * 40, values])
        assert value_range(far, far > -99.0) == expected, "only among the inliers"
    few = np.array([1.0, 2.0, 3.0])
    assert value_range(few, few > 0) == (-np.inf, np.inf) == value_range(few, few > 9)


def test_predictions_pass_the_largest_value_that_was_seen_where_it_is_no_bound() -> None:
    rng = np.random.default_rng(2)
    truth = np.exp(rng.normal(size=(80, 1))) @ np.exp(rng.normal(size=(1, 60)))
    holes = np.where(rng.random(truth.shape) < 0.5, truth, np.nan)
    holes[truth.argmax() // 60, truth.argmax() % 60] = np.nan
    model = RobustCompletion().fit(holes)
    assert model.fill("nothing").max() > 1.05 * np.nanmax(holes) and model.range_ == (-np.inf, np.inf)


def test_the_path_tells_which_loss_led() -> None:
    truth = rows_that_differ(60, 40, 2, seed=0)
    holes = seen(truth, 0.6, 0.05, 0.05, seed=0)
    losses = [tried.loss for tried in RobustCompletion("welsch").fit(holes).path_]
    assert losses == sorted(losses) and set(losses) == {"cauchy", "welsch"}
    losses = [tried.loss for tried in RobustCompletion(average=False).fit(holes).path_]
    assert list(dict.fromkeys(losses)) == ["squared", "huber", "cauchy", "welsch"]
    assert {tried.loss for tried in RobustCompletion("huber").fit(holes).path_} == {"huber"}
    assert {tried.loss for tried in RobustCompletion(cg.Welsch(1.0)).fit(holes).path_} == {"Welsch"}
