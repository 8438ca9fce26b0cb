"""The compiled loops beside their plain forms in tests/reference: for every type of number and index, and bit for bit for
any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import numba
import numpy as np
import pytest
from tests.reference import kernels as plain

import condgrad as cg
from condgrad import kernels
from condgrad.points import Pattern
from condgrad.points.pattern import MAX_STRIPE_COLUMNS

FLOATS = {np.float32: 2e-6, np.float64: 1e-14}
"""The error granted to a sum, relative to the sum of its terms' sizes."""
SHAPES = {
    "one entry": (1, 1, 1.0),
    "square": (23, 19, 0.4),
    "no entries": (6, 5, 0.0),
    "all entries": (7, 6, 1.0),
    "mostly empty rows and columns": (40, 50, 0.01),
    "one row": (1, 60, 0.5),
    "one column": (60, 1, 0.5),
    "tall": (900, 3, 0.5),
    "wide": (3, 900, 0.5),
    "several stripes": (20, 2 * MAX_STRIPE_COLUMNS + 7, 0.05),
}
every_type = pytest.mark.parametrize("real", FLOATS, ids=lambda real: real.__name__)
every_index = pytest.mark.parametrize("index", [np.int32, np.int64], ids=lambda index: index.__name__)
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
every_loss = pytest.mark.parametrize("name", kernels.LOSSES)


@pytest.fixture(autouse=True, params=[0, kernels.MIN_COMPILED_WORK], ids=["compiled", "by numpy if small"])
def least_work(request, monkeypatch):
    """The simplest kernels are compiled for much work only: both ways must be right."""
    monkeypatch.setattr(kernels, "MIN_COMPILED_WORK", request.param)


class Entries:
    """A seeded pattern with values, in the types that are asked for."""

    def __init__(self, m, n, share, real=np.float64, index=np.int32, seed=0):
        self.rng, self.real, self.m, self.n = np.random.default_rng(seed), real, m, n
        seen = self.rng.random((m, n)) < share
        if share > 0 and m > 2 and n > 2:
            seen[m // 2], seen[:, n // 2], seen[-1] = False, False, False
        rows, cols = np.nonzero(seen)
        self.pattern = pattern = Pattern(rows, cols, (m, n))
        self.indptr, self.indices, self.cuts = (
            a.astype(index) for a in (pattern.indptr, pattern.indices, pattern.cuts)
        )
        self.rows, self.cols = rows.astype(index), cols.astype(index)
        self.values = self.block(len(rows))

    def block(self, *shape):
        return self.rng.standard_normal(shape).astype(self.real)

    def transposed_times(self, Q):
        return kernels.transposed_times(self.cuts, self.indices, self.values, Q, self.n, self.pattern.width)


def close(found, expected, sizes, real):
    """``sizes``: the same sums of the terms' sizes."""
    assert found.dtype == real and found.shape == expected.shape
    assert np.all(np.abs(found - expected) <= FLOATS[real] * sizes)


# ---------------------------------------------------------------------------------------------------- the products


@every_type
@every_index
@every_shape
def test_products_equal_the_plain_ones(real, index, shape):
    at = Entries(*shape, real, index)
    for width in (1, 2, 3, 8, 33):
        U, V = at.block(at.m, width), at.block(at.n, width)
        exact, sizes = (U.astype(float), V.astype(float)), (np.abs(U.astype(float)), np.abs(V.astype(float)))
        ends, each = (at.indptr, at.indices), (at.rows, at.cols)
        close(kernels.sample(*ends, U, V), plain.sample(*ends, *exact), plain.sample(*ends, *sizes), real)
        close(kernels.sample_at(*each, U, V), plain.sample_at(*each, *exact), plain.sample_at(*each, *sizes), real)

        values, size = at.values.astype(float), np.abs(at.values.astype(float))
        found = kernels.times(*ends, at.values, V)
        close(found, plain.times(*ends, values, exact[1]), plain.times(*ends, size, sizes[1]), real)
        expected = plain.transposed_times(*ends, values, exact[0], at.n)
        close(at.transposed_times(U), expected, plain.transposed_times(*ends, size, sizes[0], at.n), real)


@every_index
@every_shape
def test_weights_and_their_sums_equal_the_plain_ones(index, shape):
    at = Entries(*shape, index=index)
    left, rows, cols = at.values, at.block(at.m), at.block(at.n)
    left[::7], slopes = 0.0, np.sin(2 * left)  # some of the other sign: no weight
    weights, sums, pulls = kernels.inlier_weights(at.indptr, left, slopes.copy(), 2.0)
    for found, expected in zip((weights, sums, pulls), plain.inlier_weights(at.indptr, left, slopes, 2.0), strict=True):
        assert np.allclose(found, expected, rtol=0, atol=1e-12)
    assert (weights[::7] == 1).all() and (weights >= 0).all() and (weights <= 1).all()
    found = kernels.row_weighted_sums(at.indptr, at.indices, weights, left, cols)
    assert np.allclose(found, plain.row_weighted_sums(at.indptr, at.indices, weights, left, cols), rtol=0, atol=1e-12)
    found = kernels.column_weighted_sums(at.cuts, at.indices, weights, left, rows, at.n, at.pattern.width)
    expected = plain.column_weighted_sums(at.indptr, at.indices, weights, left, rows, at.n)
    assert np.allclose(found, expected, rtol=0, atol=1e-12)


@every_type
@pytest.mark.parametrize("size", [0, 1, 100, 400_000])
def test_adding_in_place(real, size):
    rng = np.random.default_rng(0)
    total, part = (rng.standard_normal(size).astype(real) for _ in range(2))
    expected = total + real(0.3) * part
    kernels.add(total, 0.3, part)
    assert total.dtype == real and np.allclose(total, expected, rtol=0, atol=4 * FLOATS[real])


@pytest.mark.parametrize("size", [0, 1, 100, kernels.SUM_CHUNK + 1, 400_000])
def test_sums_over_all_entries(size):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, size))
    assert kernels.dot(x, y) == pytest.approx(np.vdot(x, y), rel=1e-12, abs=1e-10)
    assert kernels.distance2(2.0, x, 0.5, y) == pytest.approx(np.sum((2 * x - y / 2) ** 2), rel=1e-12)


@pytest.mark.parametrize("width", range(1, 34))
def test_every_width_of_a_block(width):
    at = Entries(12, 9, 0.5, seed=width)
    U, V = at.block(12, width), at.block(9, width)
    ends = (at.indptr, at.indices)
    assert np.allclose(kernels.sample(*ends, U, V), plain.sample(*ends, U, V), rtol=0, atol=1e-13)
    assert np.allclose(kernels.sample_at(at.rows, at.cols, U, V), plain.sample(*ends, U, V), rtol=0, atol=1e-13)
    assert np.allclose(kernels.times(*ends, at.values, V), plain.times(*ends, at.values, V), rtol=0, atol=1e-13)
    expected = plain.transposed_times(*ends, at.values, U, 9)
    assert np.allclose(at.transposed_times(U), expected, rtol=0, atol=1e-13)


@every_shape
def test_the_stripes_are_cut_where_the_columns_say(shape):
    pattern = Entries(*shape).pattern
    expected = plain.cuts(pattern.indptr, pattern.indices, pattern.shape[1], pattern.width)
    assert np.array_equal(pattern.cuts, expected)


def test_entries_are_sampled_in_any_order_and_as_often_as_they_are_named():
    at = Entries(12, 9, 0.5)
    U, V, picked = at.block(12, 3), at.block(9, 3), at.rng.integers(len(at.rows), size=100)
    found = kernels.sample_at(at.rows[picked], at.cols[picked], U, V)
    assert np.array_equal(found, kernels.sample(at.indptr, at.indices, U, V)[picked])


@pytest.mark.parametrize("size", [1e-160, 1e150])
def test_huge_and_tiny_values_keep_their_digits(size):
    at = Entries(23, 19, 0.4)
    U, V, small = at.block(23, 4), at.block(19, 4), (at.indptr, at.indices)
    assert np.allclose(kernels.sample(*small, size * U, V), size * plain.sample(*small, U, V), rtol=1e-10, atol=0)
    expected = plain.times(*small, at.values, V)
    assert np.allclose(kernels.times(*small, at.values, size * V), size * expected, rtol=1e-10, atol=0)
    expected = plain.transposed_times(*small, at.values, U, 19)
    assert np.allclose(at.transposed_times(size * U), size * expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_where_it_belongs(bad):
    """Of the fast-math liberties none may assume that NaN and Inf do not occur."""
    at = Entries(12, 9, 0.6)
    U, V, ends = np.abs(at.block(12, 3)), np.abs(at.block(9, 3)), (at.indptr, at.indices)
    U[at.rows[5], 1] = V[at.cols[8], 2] = at.values[3] = bad
    assert np.allclose(kernels.sample(*ends, U, V), plain.sample(*ends, U, V), equal_nan=True)
    assert np.allclose(kernels.sample_at(at.rows, at.cols, U, V), plain.sample(*ends, U, V), equal_nan=True)
    with np.errstate(invalid="ignore"):
        assert np.allclose(kernels.times(*ends, at.values, V), plain.times(*ends, at.values, V), equal_nan=True)
        expected = plain.transposed_times(*ends, at.values, U, 9)
        assert np.allclose(at.transposed_times(U), expected, equal_nan=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_first_entry_of_a_factor_is_no_different_from_the_others(bad):
    at = Entries(12, 9, 0.6)
    U, V, ends = np.abs(at.block(12, 3)), np.abs(at.block(9, 3)), (at.indptr, at.indices)
    U[0, 0] = bad
    assert np.allclose(kernels.sample(*ends, U, V), plain.sample(*ends, U, V), equal_nan=True)
    assert np.allclose(kernels.sample_at(at.rows, at.cols, U, V), plain.sample(*ends, U, V), equal_nan=True)
    W, Q = np.abs(at.block(9, 1)), np.abs(at.block(12, 1))
    W[0], Q[0] = bad, bad
    assert np.allclose(kernels.times(*ends, at.values, W), plain.times(*ends, at.values, W), equal_nan=True)
    expected = plain.transposed_times(*ends, at.values, Q, 9)
    assert np.allclose(at.transposed_times(Q), expected, equal_nan=True)


# ---------------------------------------------------------------------------------------------------- the losses


def observed(name, z, rng):
    return rng.choice([-1.0, 1.0], len(z)) if cg.LOSSES[name].labels == "+-1" else rng.standard_normal(len(z))


def loss_of(name, c):
    """The library's loss with this parameter, where it has one."""
    factory = cg.LOSSES[name].factory
    return factory(c) if factory.__dataclass_fields__ and name not in ("squared", "logistic", "sigmoid") else factory()


@every_loss
@every_type
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_losses_equal_the_plain_ones(name, real, weighted):
    rng = np.random.default_rng(1)
    for size, c in product([0, 1, kernels.SUM_CHUNK, 2 * kernels.SUM_CHUNK + 5], [0.3, 1.0, 7.0]):
        z = (2 * rng.standard_normal(size)).astype(real)
        y = observed(name, z, rng).astype(real)
        weights = rng.random(size).astype(real) if weighted else np.empty(0, real)
        value, deriv = kernels.loss(name, c, z, y, weights)
        expected, slopes = plain.loss(name, c, z.astype(float), y.astype(float), weights.astype(float))
        tolerance = 1e-5 if real is np.float32 else 1e-12
        assert value == pytest.approx(expected, rel=tolerance)
        assert deriv.dtype == real and np.allclose(deriv, slopes, rtol=tolerance, atol=tolerance)


EXTREME = [1e300, 1e155, 1e100, 1e80, 1e40, 1e10, 50.0, 30.0, 1.0, 1e-3, 1e-8, 1e-100, 1e-200, 1e-310, 5e-324, 0.0]


@every_loss
def test_losses_equal_the_library_s_for_extreme_arguments(name):
    for z, sign, c in product(EXTREME, (-1.0, 1.0), (1e-3, 1.0, 1e3)):
        loss = loss_of(name, c)
        for y in (-1.0, 1.0) if cg.LOSSES[name].labels == "+-1" else (0.0,):
            value, deriv = kernels.loss(name, c, np.array([sign * z]), np.array([y]), np.empty(0))
            tiny = 1e-307  # where numbers lose their digits to underflow, so may the two losses
            assert value == pytest.approx(loss.value(sign * z, y), rel=1e-11, abs=tiny), (z, y, c)
            assert deriv[0] == pytest.approx(loss.deriv(sign * z, y), rel=1e-11, abs=tiny), (z, y, c)


@every_loss
def test_without_slopes_the_sum_is_the_same(name):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(kernels.SUM_CHUNK + 7)
    y, weights = observed(name, z, rng), rng.random(len(z))
    value, deriv = kernels.loss(name, 0.7, z, y, weights, False)
    assert value == kernels.loss(name, 0.7, z, y, weights)[0] and deriv.size == 0


@every_loss
def test_losses_are_symmetric_to_the_last_bit(name):
    z = np.concatenate([np.array(EXTREME), np.random.default_rng(0).standard_normal(100)])
    y = np.ones_like(z) if cg.LOSSES[name].labels == "+-1" else 0.3 * np.cos(np.arange(len(z)))
    one, slopes = kernels.loss(name, 0.7, z, y, np.empty(0))
    other, opposite = kernels.loss(name, 0.7, -z, -y, np.empty(0))
    assert one == other and np.array_equal(slopes, -opposite)


@every_loss
def test_nan_is_not_hidden_by_a_loss(name):
    z = np.array([0.5, np.nan, 0.25])
    y = np.array([1.0, 1.0, -1.0])
    value, deriv = kernels.loss(name, 1.0, z, y, np.empty(0))
    assert np.isnan(value)
    assert np.array_equal(np.isnan(deriv), [False, True, False])


@every_loss
def test_infinite_predictions_have_their_limits(name):
    far = np.array([1e300])
    for sign in (-1.0, 1.0):
        y = np.array([1.0])
        _, at_most = kernels.loss(name, 1.0, sign * far, y, np.empty(0))
        value, deriv = kernels.loss(name, 1.0, np.array([sign * np.inf]), y, np.empty(0))
        with np.errstate(all="ignore"):
            limit = loss_of(name, 1.0).value(sign * 1e300, 1.0)
        assert value == np.inf if limit > 2 else value == limit
        assert deriv[0] == (sign * np.inf if name == "squared" else pytest.approx(at_most[0], abs=1e-290))


# ------------------------------------------------------------------------------------------- threads, compilation


@pytest.fixture
def threads():
    before = numba.get_num_threads()
    yield numba.set_num_threads
    numba.set_num_threads(before)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
@every_type
@pytest.mark.parametrize("shape", [(3000, 800), (400, 6000)], ids=["tall", "wide"])
def test_one_and_two_threads_give_the_same_bits(real, shape, threads):
    at = Entries(*shape, 0.02, real)
    U, V = at.block(at.m, 9), at.block(at.n, 9)
    many = at.block(kernels.MIN_PARALLEL_WORK // 10 + 12345)
    work = 9 * len(at.values)
    assert work >= kernels.MIN_PARALLEL_WORK and 10 * len(many) >= kernels.MIN_PARALLEL_WORK
    left, rows, cols = at.values.astype(float), U[:, 0].astype(float), V[:, 0].astype(float)
    ends, width = (at.indptr, at.indices), at.pattern.width
    calls = [
        lambda: np.concatenate(kernels.inlier_weights(at.indptr, left, np.tanh(left), 1.0)),
        lambda: kernels.row_weighted_sums(*ends, left, left, cols),
        lambda: np.concatenate(kernels.column_weighted_sums(at.cuts, at.indices, left, left, rows, at.n, width)),
        lambda: kernels.sample(at.indptr, at.indices, U, V),
        lambda: kernels.sample_at(at.rows, at.cols, U, V),
        lambda: kernels.times(at.indptr, at.indices, at.values, V),
        lambda: at.transposed_times(U),
        *(
            lambda name=name: np.append(*kernels.loss(name, 0.7, many, np.sign(many), many**2))
            for name in kernels.LOSSES
        ),
    ]
    for call in calls:
        answers = []
        for count in (1, 2, 1, 2):
            threads(count)
            answers.append(call().tobytes())
        assert len(set(answers)) == 1


def test_small_work_leaves_the_number_of_threads_as_it_was():
    at, before = Entries(12, 9, 0.5), numba.get_num_threads()
    kernels.times(at.indptr, at.indices, at.values, at.block(9, 2))
    assert numba.get_num_threads() == before


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )


def test_numba_is_not_imported_before_it_is_needed():
    code = "import sys, condgrad, condgrad.cli; print('numba' in sys.modules)"
    assert run(code).stdout.strip() == "False"
