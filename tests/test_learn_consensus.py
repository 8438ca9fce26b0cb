"""Rows in which most entries are wrong are fitted to the entries that agree; rows that only look like them are left alone."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import poisson

import condgrad as cg
from condgrad.learn import RobustCompletion
from condgrad.learn.completion.biases import Biases
from condgrad.learn.completion.consensus import MAX_EXPECTED, RING, consensus, expected_by_chance, refit_by_consensus
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.observed import InMemory
from condgrad.points import LowRank

PENALTIES = np.full(3, 1.0)


def table(seed: int, wrong: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The truth, what is observed, and which rows have 65 % raised entries."""
    rng = np.random.default_rng(seed)
    truth = 1 + rng.normal(size=(100, 2)) @ rng.normal(size=(2, 90))
    bad = np.arange(100) < wrong
    raised = bad[:, None] & (rng.random(truth.shape) < 0.65)
    X = truth + 0.1 * rng.normal(size=truth.shape) + raised * rng.uniform(3, 9, truth.shape)
    return truth, np.where(rng.random(truth.shape) < 0.5, X, np.nan), bad


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_with_mostly_raised_entries(seed: int, axis: int) -> None:
    """Without the search, the predictions of these rows are 3 to 5 too high."""
    truth, seen, bad = table(seed)
    model = RobustCompletion().fit(seen if axis == 0 else seen.T)
    found = model.fill("nothing") if axis == 0 else model.fill("nothing").T
    errors = np.sqrt(np.mean((found - truth) ** 2, axis=1))
    assert np.median(errors[bad]) < 0.15 and errors[~bad].max() < 0.15
    outliers = np.bincount(model.outliers_.row if axis == 0 else model.outliers_.column, minlength=100)
    assert np.median(outliers[bad]) > 20 and np.median(outliers[~bad]) <= 2


def row_of(right: int, others: int, seed: int, spread: float = 60.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regression rows, targets of which some agree with a fit and the others are spread widely, and the coefficients."""
    rng = np.random.default_rng(seed)
    design, u = (
        np.column_stack([np.ones(right + others), 10 * rng.normal(size=(right + others, 2))]),
        rng.normal(size=3),
    )
    targets = design @ u + rng.normal(size=right + others)
    targets[:others] += rng.uniform(15, 15 + spread, others)
    return design, targets, u


@pytest.mark.parametrize("seed", range(5))
def test_a_minority_is_found_only_if_it_agrees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design, targets, u = row_of(18, 30, seed)
    found = consensus(design, targets, np.full(48, 40.0), PENALTIES, rng)
    assert found is not None and np.abs(design @ (found - u)).max() < 4
    design, targets, _ = row_of(0, 48, seed, spread=200.0)
    assert consensus(design, targets, np.full(48, 100.0), PENALTIES, rng) is None


def test_entries_that_the_present_fit_explains_are_no_errors() -> None:
    """Most entries of the row follow the present fit roughly, and the rest agree with another fit by structure, such as zeros."""
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(60), 30 * rng.normal(size=(60, 2))])
    present = design @ [5.0, 1.0, -1.0]
    targets = np.where(np.arange(60) < 24, rng.normal(size=60), present + 8 * rng.choice([-1, 1], 60))
    assert consensus(design, targets, present, PENALTIES, rng) is None
    assert consensus(design, targets, np.full(60, 90.0), PENALTIES, rng) is not None


def test_a_present_fit_that_agrees_with_as_many_entries_is_kept() -> None:
    design, targets, u = row_of(18, 30, 0)
    assert consensus(design, targets, design @ u, PENALTIES, np.random.default_rng(0)) is None


def test_rows_of_another_kind_are_left_alone() -> None:
    """Half of each of these rows is as in other rows, and the errors of the other half have all sizes: they are no outliers."""
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(60, 2)), rng.normal(size=(80, 2))
    X = U @ V.T + 0.05 * rng.normal(size=(60, 80))
    X[:6, :50] += rng.exponential(0.6, (6, 50))
    i, j = np.indices(X.shape).reshape(2, -1)
    entries = cg.Completion(i, j, X.ravel(), X.shape)
    raised = U @ np.concatenate([V[:50] + 2, V[50:] - 2]).T
    shown = np.where(np.arange(60)[:, None] < 6, raised, U @ V.T)  # a present fit that is wrong in these rows
    left, values, right = np.linalg.svd(shown, full_matrices=False)
    model = Model(
        LowRank(left[:, :3] * values[:3], right[:3].T), Biases(0.0, np.zeros(60), np.zeros(80)), cg.Welsch(0.02), 0.05
    )
    assert refit_by_consensus(entries, model, None, InMemory(), rng) is model


@pytest.mark.parametrize(("inside", "ring", "n", "p"), [(12, 0, 40, 4), (9, 5, 30, 3), (20, 8, 90, 1), (3, 0, 30, 3)])
def test_the_number_of_sets_by_chance_is_that_of_the_formula(inside: int, ring: int, n: int, p: int) -> None:
    by_chance = poisson.sf(inside - p - 1, (ring + 1) / (RING - 1))
    assert np.isclose(expected_by_chance(inside, ring, n, p), comb(n, p) * by_chance, rtol=1e-4)


def test_random_rows_rarely_have_such_a_set() -> None:
    """The bound holds: no set is kept in any of 40 rows of noise whose width is not the assumed one."""
    rng = np.random.default_rng(1)
    kept = 0
    for _ in range(40):
        design = np.column_stack([np.ones(50), rng.normal(size=(50, 2))])
        kept += consensus(design, 12 * rng.normal(size=50), np.zeros(50), PENALTIES, rng) is not None
    assert kept <= 40 * MAX_EXPECTED
