"""Entries on a pattern: which are sampled, which carried along, and what that does to distances."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.made_points import dense, low_rank, pattern_of, points, same, size

from condgrad import kernels
from condgrad.points import LowRank, SparsePlusLowRank, distance2, norm2
from condgrad.points.pattern import MAX_CACHED

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 10**6)
sizes = st.integers(1, 12)
ranks = st.integers(0, 5)
numbers = st.sampled_from([1.0, -1.0, 0.0, 2.5, -1e-3, 1e6, 1 / 3])


@quick
@given(m=sizes, n=sizes, r=ranks, share=st.sampled_from([0.0, 0.3, 1.0]), seed=seeds)
def test_entries_equal_those_of_the_array(m, n, r, share, seed):
    rng = np.random.default_rng(seed)
    pattern = pattern_of(m, n, rng, share)
    some = rng.integers(pattern.size, size=7) if pattern.size else np.empty(0, dtype=int)
    for _ in range(2):  # carried or not
        for x in points(m, n, rng, r)[:4]:
            expected = dense(x)[pattern.rows, pattern.cols]
            for found in (x.at_entries(pattern, some), x.at(pattern)[some], x.cached_at(pattern)[some]):
                same(found, expected[some], size(x))
            same(x.at_entries(pattern, some), expected[some], size(x))
            same(x.at(pattern), expected, size(x))
            same(x.cached_at(pattern), expected, size(x))
            same(x, dense(x), 0)


@pytest.fixture
def sampled(monkeypatch):
    """How many entries the kernels have sampled so far, as [all entries at once, one by one]."""
    counts = [0, 0]
    whole, some = kernels.sample, kernels.sample_at

    def sample(indptr, indices, U, V, dtype=None):
        counts[0] += len(indices)
        return whole(indptr, indices, U, V, dtype)

    def sample_at(rows, cols, U, V):
        counts[1] += len(rows)
        return some(rows, cols, U, V)

    monkeypatch.setattr(kernels, "sample", sample)
    monkeypatch.setattr(kernels, "sample_at", sample_at)
    return counts


def test_carried_values_are_not_sampled_again(sampled):
    rng = np.random.default_rng(0)
    pattern = pattern_of(20, 15, rng)
    x, s = low_rank(20, 15, 3, rng), low_rank(20, 15, 1, rng)
    x.cached_at(pattern)
    assert sampled == [pattern.size, 0]
    x.at(pattern), x.cached_at(pattern), (2 * x).at(pattern), (x - 0.5 * x).cached_at(pattern)
    x.at_entries(pattern, np.arange(5))
    assert sampled == [pattern.size, 0]

    y = x + 0.25 * (s - x)
    same(y.cached_at(pattern), dense(y)[pattern.rows, pattern.cols], size(y))
    assert sampled == [2 * pattern.size, 0]  # s alone is new
    y.at(pattern), (0.5 * y - s).at(pattern), (y + 3 * s).at(pattern), y.at_entries(pattern, np.arange(3))
    assert sampled == [2 * pattern.size, 0]


def test_of_many_carried_values_those_asked_for_last_are_kept(sampled):
    rng = np.random.default_rng(0)
    pattern = pattern_of(20, 15, rng)
    x, y, z = (low_rank(20, 15, 2, rng) for _ in range(3))
    for point in (x, y, x, z, x):  # z takes the place of y, for x was asked for since
        point.at(pattern)
    assert sampled == [3 * pattern.size, 0]
    y.at(pattern)
    assert sampled == [4 * pattern.size, 0]


def test_of_large_ones_one_alone_is_kept(sampled, monkeypatch):
    monkeypatch.setattr("condgrad.points.pattern.MANY_ENTRIES", 10)
    rng = np.random.default_rng(0)
    pattern = pattern_of(20, 15, rng)
    x, y = (low_rank(20, 15, 2, rng) for _ in range(2))
    d = SparsePlusLowRank(pattern, rng.standard_normal(pattern.size))
    for _ in range(3):  # a direction remembers what it met
        assert d.inner(x - y) == pytest.approx(np.sum(dense(d) * (dense(x) - dense(y))))
        assert (2.0 * d).inner(y) == pytest.approx(2 * np.sum(dense(d) * dense(y)))
    assert sampled == [2 * pattern.size, 0]
    x.at(pattern), y.at(pattern)
    assert sampled == [4 * pattern.size, 0]


@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-7, 0.0])
def test_distances_keep_their_digits(apart):
    rng = np.random.default_rng(0)
    pattern, x = pattern_of(20, 15, rng), low_rank(20, 15, 3, rng)
    y = LowRank(*(f + apart * rng.standard_normal(f.shape) for f in x.factors()))
    expected = np.sum((dense(x) - dense(y)) ** 2)
    for found in (distance2(x, y), distance2(y, x), norm2(x - y), norm2(0.5 * y - 0.5 * x) * 4):
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-28)
    values = rng.standard_normal(pattern.size)
    s, t = SparsePlusLowRank(pattern, values), SparsePlusLowRank(pattern, values + apart)
    assert distance2(2.0 * s, 2.0 * t) == pytest.approx(4 * pattern.size * apart**2, rel=1e-7)
    assert distance2(s + x, t + y) == pytest.approx(np.sum((dense(s + x) - dense(t + y)) ** 2), rel=1e-6, abs=1e-24)
    assert distance2(np.ones(3), np.zeros(3)) == 3.0


@pytest.mark.parametrize("columns", ["all", "one twice", "one zero"])
@pytest.mark.parametrize("condition", [1.0, 1e4, 1e8])
def test_a_small_distance_of_factors_that_are_nearly_dependent(columns, condition):
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((30, 4)) * np.geomspace(1, 1 / condition, 4), rng.standard_normal((20, 4))
    U[:, 1] = {"all": U[:, 1], "one twice": U[:, 0], "one zero": 0 * U[:, 0]}[columns]
    E = 1e-6 * rng.standard_normal(U.shape)
    expected = np.sum((E @ V.T) ** 2)
    for x, y in ((LowRank(U + E, V), LowRank(U, V)), (LowRank(U, V), LowRank(U + E, V))):
        assert distance2(x, y) == pytest.approx(expected, rel=1e-6)


def test_a_frank_wolfe_walk_samples_each_atom_once_and_keeps_its_digits(sampled):
    rng = np.random.default_rng(0)
    pattern, x = pattern_of(20, 15, rng), LowRank.zeros((20, 15))
    for k in range(300):
        x.cached_at(pattern)
        x = x + 2 / (k + 2) * (low_rank(20, 15, 1, rng) - x)
    same(x.cached_at(pattern), dense(x)[pattern.rows, pattern.cols], size(x))
    assert sampled == [300 * pattern.size, 0]


def test_some_entries_cost_no_more_than_these(sampled):
    rng = np.random.default_rng(0)
    pattern = pattern_of(20, 15, rng)
    x = low_rank(20, 15, 3, rng) + low_rank(20, 15, 2, rng)
    x.at_entries(pattern, np.array([0, 3, 3]))
    assert sampled == [0, 6]  # three of each of its two terms


def test_values_are_carried_for_a_few_points_at_a_time(sampled):
    rng = np.random.default_rng(0)
    pattern = pattern_of(20, 15, rng)
    every = [low_rank(20, 15, 1, rng) for _ in range(2 * MAX_CACHED)]
    for x in every:
        x.cached_at(pattern)
    assert [x.terms[0][1].has_cached(pattern) for x in every] == [False] * MAX_CACHED + [True] * MAX_CACHED
    assert sampled == [2 * MAX_CACHED * pattern.size, 0]
    for x in every:  # those that let theirs go are sampled anew
        same(x.at(pattern), dense(x)[pattern.rows, pattern.cols], size(x))


def test_points_that_are_gone_carry_nothing():
    rng = np.random.default_rng(0)
    pattern = pattern_of(20, 15, rng)
    kept = low_rank(20, 15, 1, rng)
    kept.cached_at(pattern)
    for _ in range(3 * MAX_CACHED):
        low_rank(20, 15, 1, rng).cached_at(pattern)
        gc.collect()
    assert kept.terms[0][1].has_cached(pattern)


def test_values_of_one_pattern_are_not_taken_for_those_of_another():
    rng = np.random.default_rng(0)
    one, other = pattern_of(20, 15, rng), pattern_of(20, 15, rng)
    x = low_rank(20, 15, 2, rng)
    for pattern in (one, other, one, other):
        same(x.cached_at(pattern), dense(x)[pattern.rows, pattern.cols], size(x))
        same(x.at_entries(pattern, np.arange(4)), dense(x)[pattern.rows, pattern.cols][:4], size(x))
    for _ in range(2 * MAX_CACHED):
        low_rank(20, 15, 1, rng).cached_at(one)
    same(x.at(other), dense(x)[other.rows, other.cols], size(x))
