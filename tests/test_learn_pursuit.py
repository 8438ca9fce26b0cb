"""The start of RobustCompletion from a principal component pursuit: many wrong entries, of one sign, in rows and in blocks."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.defaults_data import group

from condgrad.learn import RobustCompletion
from condgrad.learn.completion import pursuit
from condgrad.learn.completion.pursuit import dense_sample, preferred
from condgrad.objectives import Completion, Squared

Wrong = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def one_sided(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.random(shape) < 0.3


def block(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return np.outer(np.arange(shape[0]) < 0.28 * shape[0], np.arange(shape[1]) < 0.28 * shape[1])


def raised(where: Wrong, m: int = 150, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of rank 3, and 40 % of its entries, of which those in some places are raised."""
    rng = np.random.default_rng(1)
    truth = 3 + rng.normal(size=(m, 3)) @ rng.normal(size=(3, n)) / np.sqrt(3)
    X = truth + 0.1 * rng.normal(size=truth.shape) + where(rng, truth.shape) * rng.uniform(2, 6, truth.shape)
    return truth, np.where(rng.random(truth.shape) < 0.4, X, np.nan)


@pytest.mark.parametrize("where", [one_sided, block])
def test_errors_of_one_sign_and_in_a_block_are_left_out(where: Wrong) -> None:
    truth, X = raised(where)
    model = RobustCompletion(average=False).fit(X)
    assert np.linalg.norm(model.fill("nothing") - truth) < 0.25 * np.linalg.norm(truth - truth.mean())
    assert model.loss_ == "welsch" and [candidate.pursued for candidate in model.candidates_] == [False] * 3 + [True]


def test_a_real_group_of_rows_is_no_block_of_wrong_entries() -> None:
    """The pursuit of clean data left out a component that an eighth of the entries have: its rank was smaller."""
    rng = np.random.default_rng(10)
    truth = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 50))
    truth[::4, :25] += 8
    model = RobustCompletion(average=False).fit(
        np.where(rng.random(truth.shape) < 0.7, truth + 0.1 * rng.normal(size=truth.shape), np.nan)
    )
    assert np.linalg.norm(model.fill("nothing") - truth) < 0.05 * np.linalg.norm(truth)


def test_a_real_group_of_four_percent_is_predicted_and_kept() -> None:
    """The squared loss predicted its held-out entries; they were outliers for the pursuit, which has a smaller rank."""
    data = group(30, 24)(0)
    found = RobustCompletion().fit(data.X).fill("nothing")
    assert np.linalg.norm((found - data.truth)[data.test]) < 0.05 * np.linalg.norm(data.truth[data.test])


def test_a_given_radius_leaves_the_pursuit_out() -> None:
    """The fit from the pursuit is in no ball: its nuclear norm replaced the given radius."""
    model = RobustCompletion(radius=20.0, average=False).fit(raised(one_sided)[1])
    assert model.radius_ == 20 and not any(candidate.pursued for candidate in model.candidates_)


def test_rows_and_columns_outside_of_the_sample_are_regressed_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pursuit, "MAX_SIDE", 110)
    truth, X = raised(one_sided)
    model = RobustCompletion(average=False).fit(X)
    errors = np.abs(model.fill("nothing") - truth)
    assert model.candidates_[-1].pursued and np.median(errors) < 0.1 and np.mean(errors > 1) < 0.05


def test_a_start_needs_clean_errors_or_a_much_smaller_median() -> None:
    rng = np.random.default_rng(0)
    tail = rng.standard_t(1.5, size=2000)

    def other(errors: np.ndarray, rank: int | None = 3) -> Any:
        return SimpleNamespace(residuals=errors, model=SimpleNamespace(rank=rank))

    def prefers(errors: np.ndarray, rank: int, against: Any) -> bool:
        return preferred(errors, rank, against, [against])

    assert prefers(0.5 * tail, 5, other(tail)) and not prefers(0.9 * tail, 5, other(tail))
    assert not prefers(tail, 2, other(tail))  # a smaller rank, but the errors have a tail
    noise = rng.normal(size=2000)
    gross = np.where(rng.random(2000) < 0.1, 50.0, noise)
    fewer = np.where(rng.random(2000) < 0.3, 5.0, gross)
    assert prefers(gross, 3, other(fewer)) and not prefers(gross, 4, other(fewer))
    part = rng.random(2000)
    block = np.where(part < 0.08, 50.0, noise)
    spread = np.where(part < 0.08, 15 * noise, noise)  # values of a block of which only the mean can be predicted
    assert prefers(block, 2, other(spread)) and not prefers(block, 3, other(spread))
    assert not prefers(block, 2, other(spread, rank=None))
    assert not prefers(block, 2, other(noise))  # all of them are predicted: a real group
    assert not prefers(block, 2, other(np.where(part < 0.04, noise, spread)))  # or half of them
    noise = noise[np.abs(noise) < 2.9]  # without the normal tail, of errors that are neither ordinary nor gross
    few = np.arange(len(noise)) < 8
    assert prefers(np.where(few, 50.0, noise), 2, other(noise))  # too few for a group
    # a fit with a smaller mean of the errors explains the tail of the data
    assert not prefers(0.3 * tail * np.abs(tail), 3, other(tail))


def test_the_sample_has_the_rows_and_columns_with_most_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pursuit, "MAX_SIDE", 2)
    seen = np.array([[1, 1, 0, 0], [1, 1, 0, 1], [0, 1, 1, 1], [0, 0, 0, 1]], dtype=bool)
    rows, cols = np.nonzero(seen)
    found = dense_sample(Completion(rows, cols, np.ones(len(rows)), seen.shape, Squared()))
    assert [part.tolist() for part in found] == [[1, 2], [1, 3]]
