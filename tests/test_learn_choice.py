"""The choice of the loss by held-out entries, and the average over the posterior."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.completions import problem

import condgrad as cg
from condgrad import kernels
from condgrad.learn import RobustCompletion
from condgrad.learn.completion.choice import evidence
from condgrad.learn.completion.report import worst_share
from condgrad.learn.completion.validation import HeldOut


def test_regressions_are_those_of_the_normal_equations() -> None:
    rng = np.random.default_rng(0)
    m, n, d = 7, 9, 3
    seen = rng.random((m, n)) < 0.6
    rows, cols = np.nonzero(seen)
    ends = np.searchsorted(rows, np.arange(m + 1))
    targets, weights = rng.normal(size=len(rows)), rng.random(len(rows))
    V, penalties, centres, noise = (rng.normal(size=(n, d)), rng.random(d), *rng.normal(size=(2, m, d)))
    solutions, draws = kernels.ridge_regressions(ends, cols, targets, weights, V, penalties, centres, noise)
    for i in range(m):
        own = slice(ends[i], ends[i + 1])
        A = V[cols[own]].T @ (weights[own, None] * V[cols[own]]) + np.diag(penalties)
        b = V[cols[own]].T @ (weights[own] * targets[own]) + penalties * centres[i]
        assert np.allclose(solutions[i], np.linalg.solve(A, b))
        assert np.allclose(draws[i] - solutions[i], np.linalg.solve(np.linalg.cholesky(A).T, noise[i]))


def test_evidence_ignores_entries_that_neither_predicts() -> None:
    rng = np.random.default_rng(0)
    held_out = HeldOut(np.arange(300), np.arange(300) % 20, np.zeros(300))
    old = rng.normal(size=300)
    new = 0.7 * old
    assert evidence(held_out, new, old, 1.0) > 5 and evidence(held_out, old, new, 1.0) < -5
    part = HeldOut(held_out.rows[:200], held_out.cols[:200], held_out.values[:200])
    before = evidence(part, new[:200], old[:200], 1.0)
    new[200:], old[200:] = 1e3 * rng.normal(size=(2, 100)) + 1e4
    held_out = HeldOut(held_out.rows, np.where(held_out.rows < 200, held_out.cols, 20), held_out.values)
    assert np.isclose(evidence(held_out, new, old, 1.0), before)


def test_a_path_goes_on_until_a_radius_is_better_than_the_biases() -> None:
    """20 % of the entries are wrong: the first radii are no better than the biases alone, and the path ended there."""
    rng = np.random.default_rng((0, 3))
    truth = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 120)) / 2
    seen = truth + 0.1 * rng.normal(size=truth.shape)
    wrong = rng.random(truth.shape) < 0.2
    seen[wrong] += (rng.uniform(3, 10, truth.shape) * rng.choice([-1, 1], truth.shape))[wrong]
    seen[rng.random(truth.shape) < 0.5] = np.nan
    found = RobustCompletion("welsch").fit(seen).fill("nothing")
    assert np.linalg.norm(found - truth) < 0.1 * np.linalg.norm(truth)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_path_ends_where_the_ball_no_longer_limits_the_fit(loss: str) -> None:
    """5 % of the entries are observed. Each larger radius brought a gain below 0.01 %, only because it took more steps, and the
    path went on to a radius of 1e8."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(200, 2)), rng.normal(size=(150, 2))
    places = rng.choice(200 * 150, 1500, replace=False)
    i, j = places // 150, places % 150
    truth = left @ right.T / np.sqrt(2)
    values = truth[i, j] + 0.1 * rng.normal(size=1500)
    model = RobustCompletion(loss).fit((i, j, values))
    assert max(point.radius for point in model.path_) < 10 * np.linalg.norm(truth, "nuc")
    assert np.linalg.norm(model.predict(np.column_stack([i, j])) - truth[i, j]) < 0.15 * np.linalg.norm(truth[i, j])


def test_candidates_are_listed_averaged_and_saved(tmp_path: Path) -> None:
    truth, holes = problem(noise=0.3)
    holes[:3, :3] = truth[:3, :3]  # nothing is wrong
    model = RobustCompletion().fit(holes)
    losses = [candidate.loss for candidate in model.candidates_]
    assert losses[:3] == ["squared", "huber", "welsch"] and model.loss_ in losses
    assert [candidate.averaged for candidate in model.candidates_[:4]] == [False, False, False, True]
    average = RobustCompletion("huber", average=True, implicit=False).fit(holes)
    assert average.averaging_ is not None and average.loss_ == "huber" and average.path_[average.best_index_].averaged
    plain = RobustCompletion("huber").fit(holes)
    assert plain.averaging_ is None and plain.candidates_ == []
    errors = [np.linalg.norm(fit.fill("nothing") - truth) for fit in (average, plain)]
    assert errors[0] < errors[1]
    average.save(tmp_path / "model.npz")
    again = RobustCompletion.load(tmp_path / "model.npz")
    assert again.averaging_ == average.averaging_ and again.candidates_ == average.candidates_
    again.partial_fit(np.where(np.isnan(holes), np.nan, holes)[:3])
    assert np.linalg.norm(again.fill("nothing") - truth) < 1.2 * errors[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"average": 3}, "average is 3: give True, False or 'auto'"),
        ({"implicit": "yes"}, "implicit is 'yes'"),
        ({"average": True, "certify": 1.0}, "average=True was given with certify"),
        ({"average": True, "loss": cg.Welsch(1.0)}, "average=True was given with a loss object"),
    ],
)
def test_switches_are_checked(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RobustCompletion(**given).fit(np.eye(4))


def test_concentrated_outliers_are_told_from_scattered_ones() -> None:
    rng = np.random.default_rng(0)
    scattered, concentrated = rng.integers(200, size=500), rng.integers(8, size=500)
    assert worst_share(scattered, 200)[0] < 1.5 * worst_share(scattered, 200)[1]
    assert worst_share(concentrated, 200)[0] == 1.0


@pytest.mark.parametrize("dirty", [False, True])
def test_a_large_table_is_fitted_with_the_settings_of_a_sample(dirty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rank is found, and the error is that of a choice on all entries."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 300))
    seen = np.where(rng.random(truth.shape) < 0.4, truth + 0.1 * rng.normal(size=truth.shape), np.nan)
    seen += dirty * (rng.random(truth.shape) < 0.05) * 20.0
    errors = []
    for limit in (10**9, 10_000):
        monkeypatch.setattr("condgrad.learn.completion.estimator.MAX_SEARCHED_ENTRIES", limit)
        monkeypatch.setattr("condgrad.learn.completion.coarse.SAMPLED_ENTRIES", 12_000)
        model = RobustCompletion(average="auto" if limit < 10**9 else False).fit(seen)
        errors.append(np.linalg.norm(model.fill("nothing") - truth) / np.linalg.norm(truth))
        assert len(model.singular_values_) == 3 and model.averaging_ is None
    assert errors[1] < 1.05 * errors[0] < 0.02
    assert model.n_validation_ < 3000 and abs(model.sigma_ - 0.1) < 0.02
    assert (model.loss_ == "welsch") == dirty
