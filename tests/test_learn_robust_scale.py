"""Data whose rows, steps or units are unusual, and the parts that look after them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.samples import first

import condgrad as cg
from condgrad.learn import RobustCompletion
from condgrad.learn.completion import folding
from condgrad.learn.completion.biases import Biases
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.path import Fit
from condgrad.learn.completion.robust_scale import quantization_step
from condgrad.points import LowRank


def holes(values: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    return np.where(np.random.default_rng(seed + 100).random(values.shape) < share, values, np.nan)


def unseen(model: RobustCompletion, given: np.ndarray, truth: np.ndarray) -> float:
    """The root mean square error at the holes."""
    return float(np.sqrt(np.mean((model.fill("nothing") - truth)[np.isnan(given)] ** 2)))


def decades(seed: int, over: float = 1.5, across: float = 0.0) -> np.ndarray:
    """Of rank 2, with rows (and columns) whose sizes differ by powers of ten."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 60))
    return truth * 10 ** rng.uniform(-over, over, size=(100, 1)) * 10 ** rng.uniform(-across, across, size=60)


# ------------------------------------------------------------------------------------------------------- sizes of rows


@pytest.mark.parametrize("seed", first(range(3)))
@pytest.mark.parametrize("loss", ["welsch", "cauchy"])
def test_rows_over_three_decades_are_fitted_as_by_a_convex_loss(seed: int, loss: str) -> None:
    truth = decades(seed)
    given = holes(truth + 0.01 * np.random.default_rng(seed).normal(size=truth.shape), 0.6, seed)
    model = RobustCompletion(loss).fit(given)
    assert unseen(model, given, truth) < 0.01 and len(model.singular_values_) == 2
    assert len(model.outliers_) < 0.02 * np.isfinite(given).sum()


def test_rows_and_columns_of_all_sizes_without_noise() -> None:
    rng = np.random.default_rng(119)
    truth = np.outer(rng.lognormal(0, 1.2, 120) * rng.normal(size=120), rng.lognormal(0, 0.8, 90))
    given = holes(truth, 0.5)
    model = RobustCompletion().fit(given)
    assert unseen(model, given, truth) < 1e-3 * truth.std() and len(model.outliers_) == 0


@pytest.mark.parametrize("seed", first(range(4)))
def test_a_huge_row_of_few_entries_does_no_harm_to_the_others(seed: int) -> None:
    """It is lost in the part that is fitted on the path, and found where all entries are: the ball has to grow with it."""
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(200, 2)), rng.normal(size=(100, 2))
    U[0] *= 1e3
    truth = U @ V.T
    given = holes(truth + 0.1 * rng.normal(size=truth.shape), 0.3, seed)
    given[0] = np.nan
    given[0, :6] = truth[0, :6]
    model = RobustCompletion().fit(given)
    assert np.sqrt(np.mean((model.fill("nothing") - truth)[1:] ** 2)) < 0.06


def test_many_new_rows_are_fitted_to_a_model_of_few() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(540, 2)) @ rng.normal(size=(2, 60))
    given = holes(truth + 0.1 * rng.normal(size=truth.shape), 0.5)
    rows, cols = np.nonzero(~np.isnan(given))
    first = rows < 40
    model = RobustCompletion().fit((rows[first], cols[first], given[rows[first], cols[first]]))
    model.partial_fit((rows[~first], cols[~first], given[rows[~first], cols[~first]]))
    assert unseen(model, given, truth) < 0.06


@pytest.mark.parametrize("unit", first([2.0**40, 2.0**-40]))
def test_the_unit_does_not_matter_where_rows_are_rescued(unit: float) -> None:
    """The loss is given: here the evidence for one or another is so small that rounding errors decide."""
    truth = decades(0)
    given = holes(truth + 0.01 * np.random.default_rng(0).normal(size=truth.shape), 0.6)
    one = RobustCompletion("huber").fit(given)
    other = RobustCompletion("huber").fit(unit * given)
    assert np.allclose(other.fill("nothing") / unit, one.fill("nothing"), rtol=0, atol=2e-3), "of rows up to 100"


def test_the_path_ends_with_the_loss_that_was_asked_for() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 60))
        path = RobustCompletion("welsch").fit(holes(truth + rng.standard_t(2, size=truth.shape), 0.6, seed)).path_
        assert path[0].loss == "cauchy" and path[-1].loss == "welsch"


# --------------------------------------------------------------------------------------------------------------- steps


def mostly(middle: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.clip(np.round(middle + 0.7 * np.outer(rng.normal(size=100), rng.normal(size=80))), 1, 5)


@pytest.mark.parametrize("seed", first([1, 0]))
def test_stars_that_are_mostly_the_same_are_not_outliers_where_they_differ(seed: int) -> None:
    """More than half of the errors of a constant are 0; its scale is not."""
    truth = mostly(3.0, seed)
    assert (truth == 3).mean() > 0.6
    given = holes(truth, 0.3, seed)
    model, squared = RobustCompletion().fit(given), RobustCompletion("squared").fit(given)
    assert unseen(model, given, truth) < 1.05 * unseen(squared, given, truth) < 0.3
    robust = RobustCompletion("welsch").fit(given)  # the squared loss has no width, so no lower bound on its scale
    assert len(model.outliers_) == len(robust.outliers_) == 0 and robust.sigma_ >= 0.5 > squared.sigma_


def test_ones_among_zeros_are_data() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.normal(size=(100, 2)) @ rng.normal(size=(2, 80)) > 2).astype(float)
    given = holes(truth, 0.5)
    model = RobustCompletion().fit(given)
    assert 0.05 < truth.mean() < 0.15 and len(model.outliers_) == 0
    assert unseen(model, given, truth) < 0.8 * truth.std()


def test_a_constant_with_some_that_are_wrong_is_a_constant() -> None:
    rng = np.random.default_rng(0)
    wrong = rng.random((60, 40)) < 0.1
    values = np.where(wrong, 3 + rng.uniform(-50, 50, wrong.shape), 3.0)
    model = RobustCompletion().fit(values)
    assert np.allclose(model.fill(), 3.0) and len(model.outliers_) == wrong.sum()


def test_a_step_is_the_least_between_values_that_many_share() -> None:
    rng = np.random.default_rng(0)
    assert quantization_step(rng.normal(size=5000)) == 0.0
    assert quantization_step(rng.integers(1, 11, 5000) / 2) == 0.5
    assert quantization_step(np.append(rng.integers(0, 2, 5000), [0.3, 1e6]).astype(float)) == 1.0
    assert quantization_step(np.append(rng.normal(size=900), np.full(100, -9999.0))) == 0.0, "a sentinel is no step"
    rain = np.where(rng.random(5000) < 0.6, 0.0, rng.exponential(size=5000))
    assert 0.5 < quantization_step(rain) < 0.9
    assert quantization_step(np.where(rng.random(5000) < 0.9, 0.0, rng.normal(size=5000))) == 0.0, "so few may be wrong"
    assert quantization_step(np.ones(3)) == quantization_step(np.array([2.0])) == 0.0
    many = rng.integers(0, 5, 1_000_000).astype(float)
    assert quantization_step(many) == 1.0


# ------------------------------------------------------------------------------------------------------------- folding


def test_rows_are_folded_in_the_same_beside_any_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of rows of about one length: one long row must not make the others wait, nor move them."""
    rng = np.random.default_rng(0)
    columns, singular = np.linalg.qr(rng.normal(size=(200, 3)))[0], np.array([9.0, 5.0, 2.0])
    counts = np.array([4, 200, 0, 7, 12, 5, 30])
    rows = np.repeat(np.arange(7), counts)
    cols = np.concatenate([rng.permutation(200)[:count] for count in counts])
    left = rng.normal(size=7)[rows] + rng.normal(size=len(rows))

    def fold(rows: np.ndarray, cols: np.ndarray, left: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
        return folding.fold_in_rows(columns, singular, (rows, cols, left), m, cg.Welsch(9.0), 0.1, ridge=3.0)

    together = fold(rows, cols, left, 7)
    order = rng.permutation(len(rows))
    monkeypatch.setattr(folding, "MAX_BLOCK_ELEMENTS", 50)
    for bias, factors in (fold(rows, cols, left, 7), fold(rows[order], cols[order], left[order], 7)):
        assert np.allclose(bias, together[0], atol=1e-6) and np.allclose(factors, together[1], atol=1e-6)
    for row in range(7):
        its = rows == row
        bias, factors = fold(np.zeros(counts[row], int), cols[its], left[its], 1)
        assert np.allclose(bias, together[0][row]) and np.allclose(factors, together[1][row])
    assert together[0][2] == 0 and (together[1][2] == 0).all()


# ------------------------------------------------------------------------------------------------------------ the path


@pytest.mark.parametrize("seed", first(range(3)))
def test_one_more_singular_value_is_let_go_where_it_helps(seed: int) -> None:
    """The mean and the biases take most of a positive matrix of rank one: what is left has rank two, and one is small."""
    rng = np.random.default_rng(seed)
    truth = np.outer(rng.random(96), rng.random(106))
    given = holes(truth, 0.3, seed)
    model = RobustCompletion(average=False).fit(given)
    assert unseen(model, given, truth) < 1e-4 * truth.std() and len(model.singular_values_) == 2


def test_few_held_out_entries_do_not_end_the_path_at_once() -> None:
    rng = np.random.default_rng(3)
    truth = np.outer(rng.normal(size=30), rng.normal(size=60))
    given = np.where(rng.random(truth.shape) < 0.2, truth, np.nan)
    assert unseen(RobustCompletion().fit(given), given, truth) < 0.3 * truth.std()


def test_the_last_fit_rescues_too() -> None:
    rng = np.random.default_rng(0)
    P, Q = rng.normal(size=(30, 2)), rng.normal(size=(25, 2))
    known, P[0] = P.copy(), 50 * P[0]
    rows, cols = np.nonzero(rng.random((30, 25)) < 0.7)
    objective = cg.Completion(rows, cols, (P @ Q.T)[rows, cols], (30, 25))
    fit = Fit(objective, "welsch", None, None, np.random.default_rng(0))
    begin = Model(LowRank(known, Q), Biases(0.0, np.zeros(30), np.zeros(25)), cg.Welsch(1.0), 0.3, 200.0, rank=2)
    found = fit.finish(begin, steps=20, tol=1e-4)
    assert np.abs(found.x.to_dense()[0] - P[0] @ Q.T).max() < 0.5
