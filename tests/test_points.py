"""Structured points beside the arrays that they stand for: every operation, on random points of random shapes and ranks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.made_points import dense, direction, low_rank, pattern_of, points, same, size

from condgrad.points import LowRank, Pattern, SparseArray, SparsePlusLowRank, distance2, inner, norm2
from condgrad.points.low_rank import MAX_TERMS
from condgrad.points.sparse_array import _validate, sparse_form

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 10**6)
sizes = st.integers(1, 12)
ranks = st.integers(0, 5)
numbers = st.sampled_from([1.0, -1.0, 0.0, 2.5, -1e-3, 1e6, 1 / 3])


# ------------------------------------------------------------------------------------------------------ arithmetic


@quick
@given(m=sizes, n=sizes, r=ranks, number=numbers, seed=seeds)
def test_multiples(m, n, r, number, seed):
    for x in points(m, n, np.random.default_rng(seed), r):
        for made in (number * x, x * number, np.float64(number) * x, x * np.float64(number)):
            same(made, number * dense(x), abs(number) * size(x))
        same(-x, -dense(x), size(x))
        same(2 * x / np.int64(4), dense(x) / 2, size(x))
        if number:
            same(x / number, dense(x) / number, size(x) / abs(number))


@quick
@given(m=sizes, n=sizes, r=ranks, seed=seeds)
def test_sums_and_differences_of_all_kinds(m, n, r, seed):
    every = points(m, n, np.random.default_rng(seed), r)
    for x, y in product(every, every):
        same(x + y, dense(x) + dense(y), size(x, y))
        same(x - y, dense(x) - dense(y), size(x, y))
        same(0.3 * x - 2 * (y - x / 5), 0.3 * dense(x) - 2 * (dense(y) - dense(x) / 5), size(x, y))
        if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
            assert isinstance(x + y, np.ndarray) and isinstance(x - y, np.ndarray)


@quick
@given(m=sizes, n=sizes, r=ranks, seed=seeds)
def test_inner_products_of_all_kinds(m, n, r, seed):
    every = points(m, n, np.random.default_rng(seed), r)
    for x, y in product(every, every):
        found = inner(x, y)
        assert type(found) is float
        assert abs(found - np.sum(dense(x) * dense(y))) <= 1e-12 * size(x) * size(y)
    for x in every:
        assert type(norm2(x)) is float
        assert norm2(x) == pytest.approx(np.sum(dense(x) ** 2), rel=1e-12, abs=1e-300)


def test_what_is_taken_from_itself_is_nothing():
    for x in points(7, 5, np.random.default_rng(0))[:-1]:
        assert norm2(x - x) == 0.0 and not dense(x - x).any()
        assert dense(x + (x - x)) == pytest.approx(dense(x))
    x = low_rank(7, 5, 2, np.random.default_rng(1))
    assert (x - x).rank == 0 and (x + x - 2 * x).rank == 0


@quick
@given(m=sizes, n=sizes, terms=st.integers(1, 3 * MAX_TERMS), seed=seeds)
def test_sums_of_many_terms_fold(m, n, terms, seed):
    rng = np.random.default_rng(seed)
    total, expected, large = LowRank.zeros((m, n)), np.zeros((m, n)), 0.0
    for _ in range(terms):
        c, x = float(rng.standard_normal()), low_rank(m, n, int(rng.integers(0, 4)), rng)
        total, expected, large = total + c * x, expected + c * dense(x), large + abs(c) * size(x)
        assert len(total.terms) <= MAX_TERMS
    same(total, expected, large)
    assert abs(norm2(total) - np.sum(expected**2)) <= 1e-12 * large**2


def test_a_long_sum_stays_as_wide_as_its_rank_asks():
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((60, 3)), rng.standard_normal((50, 3))
    x, expected, widest = LowRank(U, V), U @ V.T, 0
    for k in range(400):
        i, t = int(rng.integers(3)), 2 / (k + 3)
        x = x + t * (LowRank(U[:, i : i + 1], V[:, i : i + 1]) - x)
        expected = expected + t * (np.outer(U[:, i], V[:, i]) - expected)
        widest = max(widest, x.rank)
    assert widest <= 64
    same(x, expected, size(expected))


# ------------------------------------------------------------------------------------ small differences of large points


def almost_equal(relative, rng, m=40, n=30, r=3):
    """Two points of size 1 at about this distance, and their difference by hand."""
    U, V, E = rng.standard_normal((m, r)), rng.standard_normal((n, r)), rng.standard_normal((m, r))
    U /= np.linalg.norm(U @ V.T)
    moved = U + relative / np.linalg.norm(E @ V.T) * E
    return LowRank(U, V), LowRank(moved, V), (U - moved) @ V.T


@pytest.mark.parametrize("relative", [1e-1, 1e-3, 1e-5, 1e-8, 1e-11])
@pytest.mark.parametrize("seed", range(5))
def test_the_distance_of_near_points_keeps_its_digits(relative, seed):
    x, y, exact = almost_equal(relative, np.random.default_rng(seed))
    length = np.linalg.norm(exact)
    differences = [x - y, y - x, 1e3 * x - 1e3 * y]
    differences.append(LowRank(*(x - y).factors()))  # the same as one pair of factors
    for d, scale in zip(differences, (1, 1, 1e3, 1), strict=True):
        assert abs(np.sqrt(norm2(d)) / scale - length) <= 1e-8 * length + 1e-14


@pytest.mark.parametrize("relative", [1e-3, 1e-8, 1e-11])
@pytest.mark.parametrize("fold", ["carried", "many terms"])
def test_also_after_folding(relative, fold):
    rng = np.random.default_rng(3)
    x, y, exact = almost_equal(relative, rng)
    d = x - y
    if fold == "carried":
        d.cached_at(pattern_of(40, 30, rng))
    else:
        parts = [low_rank(40, 30, 1, rng) for _ in range(MAX_TERMS)]
        x = sum(parts, x)
        d = x - sum(parts, y)
        exact = np.linalg.norm(dense(x) - dense(sum(parts, y)))
    length = np.linalg.norm(exact)
    assert abs(np.sqrt(norm2(d)) - length) <= 1e-8 * length + 1e-13 * size(x)


@quick
@given(m=sizes, n=sizes, r=ranks, share=st.sampled_from([0.3, 1.0]), seed=seeds)
def test_no_square_is_negative(m, n, r, share, seed):
    """A direction whose parts cancel where they meet: on a whole matrix they leave nothing but rounding."""
    rng = np.random.default_rng(seed)
    pattern, x = pattern_of(m, n, rng, share), low_rank(m, n, r, rng)
    d = SparsePlusLowRank(pattern, x.at(pattern)) - x
    assert norm2(d) >= 0 and abs(norm2(d) - np.sum(dense(d) ** 2)) <= 1e-12 * norm2(x)
    doubled = LowRank(np.column_stack([x.factors()[0]] * 2), np.column_stack([x.factors()[1], -x.factors()[1]]))
    assert 0 <= norm2(doubled) <= 1e-24 * (norm2(x) + 1e-300)


# ------------------------------------------------------------------------------------------- singular values, products


@quick
@given(m=sizes, n=sizes, r=st.integers(0, 15), seed=seeds)
def test_svd(m, n, r, seed):
    x = low_rank(m, n, r, np.random.default_rng(seed)) - 0.5 * low_rank(m, n, 1, np.random.default_rng(seed + 1))
    left, sigma, right = x.svd()
    expected = np.linalg.svd(dense(x), compute_uv=False)
    assert len(sigma) <= min(m, n, r + 1) and np.all(np.diff(sigma) <= 0) and np.all(sigma > 0)
    assert np.allclose(sigma, expected[: len(sigma)], rtol=0, atol=1e-12 * expected[0])
    assert np.all(expected[len(sigma) :] <= 1e-12 * expected[0])
    for vectors in (left, right):
        assert np.allclose(vectors.T @ vectors, np.eye(len(sigma)), rtol=0, atol=1e-12)
    same((left * sigma) @ right.T, dense(x), size(x))


@quick
@given(m=sizes, n=sizes, r=ranks, seed=seeds)
def test_compressed_is_the_same_with_fewer_columns(m, n, r, seed):
    x = low_rank(m, n, r, np.random.default_rng(seed))
    twice = x + LowRank(*x.factors()) + 0.5 * low_rank(m, n, 0, np.random.default_rng(0))
    small = twice.compressed()
    assert small.rank == min(m, n, r) and len(small.terms) == 1
    same(small, 2 * dense(x), size(x))


def test_nothing_has_no_singular_values():
    for x in (LowRank.zeros((4, 3)), LowRank(np.zeros((4, 2)), np.ones((3, 2)))):
        left, sigma, right = x.svd()
        assert left.shape == (4, 0) and sigma.shape == (0,) and right.shape == (3, 0)
        assert x.compressed().rank == 0 and norm2(x) == 0.0


@quick
@given(m=sizes, n=sizes, r=ranks, columns=st.integers(1, 4), seed=seeds)
def test_products_with_vectors_and_blocks(m, n, r, columns, seed):
    rng = np.random.default_rng(seed)
    for x in points(m, n, rng, r):
        for W in (rng.standard_normal(n), rng.standard_normal((n, columns)), rng.standard_normal((columns, n)).T):
            same(x @ W, dense(x) @ W, size(x, W))
        for Q in (rng.standard_normal(m), rng.standard_normal((m, columns)), rng.standard_normal((columns, m)).T):
            same(x.T @ Q, dense(x).T @ Q, size(x, Q))
        same(x @ np.arange(n), dense(x) @ np.arange(n), size(x) * n)
        same(x @ np.ones(n, dtype=np.float32), dense(x) @ np.ones(n), size(x) * n)
    transposed = low_rank(m, n, r, rng).T
    assert isinstance(transposed, LowRank) and transposed.shape == (n, m)
    same(transposed.T @ np.ones(n), dense(transposed).T @ np.ones(n), size(transposed) * m * n)


@quick
@given(m=sizes, n=sizes, r=ranks, seed=seeds)
def test_written_out(m, n, r, seed):
    for x in points(m, n, np.random.default_rng(seed), r)[:-1]:
        same(np.asarray(x), dense(x), size(x))
        same(x.to_dense(), dense(x), size(x))
        assert np.asarray(x, dtype=np.float32).dtype == np.float32
        assert x.ndim == 2 and x.shape == (m, n)
        assert f"{m} x {n}" in repr(x)


@quick
@given(m=sizes, n=sizes, share=st.sampled_from([0.0, 0.3, 1.0]), seed=seeds)
def test_a_pattern_knows_its_entries(m, n, share, seed):
    seen = np.random.default_rng(seed).random((m, n)) < share
    rows, cols = np.nonzero(seen)
    pattern = Pattern(rows, cols, (m, n))
    assert pattern.size == len(rows) and pattern.shape == (m, n)
    assert np.array_equal(pattern.rows, rows) and np.array_equal(pattern.cols, cols)
    assert np.array_equal(pattern.row_of(np.arange(len(rows))), rows)
    assert pattern.indices.dtype == pattern.indptr.dtype == pattern.cuts.dtype == np.int32
    assert np.array_equal(pattern.to_dense(np.ones(len(rows))), seen)


# ------------------------------------------------------------------------------------------------------- points are values


def test_no_operation_changes_what_it_is_given():
    rng = np.random.default_rng(0)
    pattern = pattern_of(9, 8, rng)
    every = points(9, 8, rng)
    every[4:6] = [direction(pattern, 0, rng), direction(pattern, 2, rng, 0.5)]
    before = [dense(x).copy() for x in every]
    for _ in range(2):
        for x, y in product(every, every):
            x + y, x - y, 2 * x, x / 3, -x, inner(x, y), norm2(x - y), x @ np.ones(8), x.T @ np.ones(9)
        for x in every[:4]:
            x.at(pattern), x.cached_at(pattern), x.at_entries(pattern, np.arange(3)), x.svd(), x.compressed(), x.T
        x = every[0]
        for _ in range(2 * MAX_TERMS):
            x = x + low_rank(9, 8, 1, rng)
    assert all(
        np.array_equal(dense(x), was) or size(dense(x) - was) <= 1e-14 for x, was in zip(every, before, strict=True)
    )


def test_a_point_does_not_follow_the_arrays_it_was_made_from():
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((9, 2)), rng.standard_normal((8, 2))
    x = LowRank(U, V)
    before = dense(x)
    U[:], V[:] = 7.0, -7.0
    assert np.array_equal(dense(x), before)


def test_what_a_point_hands_out_cannot_be_written_to():
    rng = np.random.default_rng(0)
    pattern, x = pattern_of(9, 8, rng), low_rank(9, 8, 2, rng)
    y = x + low_rank(9, 8, 1, rng)
    given = [x.at(pattern), x.cached_at(pattern), y.at(pattern), y.cached_at(pattern), *x.factors(), *y.factors()]
    for array in [*given, direction(pattern, 0, rng).values, LowRank.zeros((9, 8)).at(pattern)]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_sums_in_place_make_new_points():
    rng = np.random.default_rng(0)
    x, y, array = low_rank(9, 8, 2, rng), low_rank(9, 8, 1, rng), rng.standard_normal((9, 8))
    before, total = dense(x).copy(), x
    total += y
    total *= 2
    total -= array
    same(total, 2 * (before + dense(y)) - array, size(x, y, array))
    assert np.array_equal(dense(x), before)


# -------------------------------------------------------------------------------------------------------------- refusals

RNG = np.random.default_rng(0)
HERE, ELSEWHERE, OTHER = pattern_of(5, 4, RNG), pattern_of(5, 4, RNG), pattern_of(3, 4, RNG)
X, D, FOREIGN = low_rank(5, 4, 2, RNG), direction(HERE, 1, RNG), direction(ELSEWHERE, 1, RNG)
SMALLER = low_rank(3, 4, 1, RNG)
SHAPES = "give both the same shape"
OBSERVATIONS = "The two sparse matrices have different observations: build both from one objective."

REFUSED = {
    "a sum of two shapes": (lambda: X + SMALLER, ValueError, SHAPES),
    "a difference of two shapes": (lambda: SMALLER - X, ValueError, SHAPES),
    "a sum with another array": (lambda: X + np.ones((3, 4)), ValueError, SHAPES),
    "an array that numpy would stretch": (lambda: X + np.ones(4), ValueError, SHAPES),
    "one on the left": (lambda: np.ones((1, 4)) - X, ValueError, SHAPES),
    "an inner product of two shapes": (lambda: X.inner(SMALLER), ValueError, SHAPES),
    "one with nothing": (lambda: inner(LowRank.zeros((5, 4)), SMALLER), ValueError, SHAPES),
    "one with an array": (lambda: inner(np.ones(4), X), ValueError, SHAPES),
    "a direction and another array": (lambda: D.inner(np.ones((4, 5))), ValueError, SHAPES),
    "a direction and a smaller point": (lambda: D.inner(SMALLER), ValueError, SHAPES),
    "a sum of a direction and a smaller point": (lambda: SMALLER + D, ValueError, SHAPES),
    "entries on another shape": (lambda: SMALLER.at(HERE), ValueError, SHAPES),
    "carried entries on another shape": (lambda: SMALLER.cached_at(HERE), ValueError, SHAPES),
    "some entries on another shape": (lambda: X.at_entries(OTHER, np.arange(1)), ValueError, SHAPES),
    "a low-rank part of another shape": (lambda: SparsePlusLowRank(HERE, D.values, SMALLER), ValueError, SHAPES),
    "observations of another problem, added": (lambda: D + FOREIGN, ValueError, OBSERVATIONS),
    "taken away": (lambda: D - 2 * FOREIGN, ValueError, OBSERVATIONS),
    "multiplied": (lambda: D.inner(FOREIGN), ValueError, OBSERVATIONS),
    "a short vector": (
        lambda: D @ np.ones(3),
        ValueError,
        "Got a block of 3 rows for a matrix of shape (5, 4): give it 4",
    ),
    "a long vector": (
        lambda: D.T @ np.ones(9),
        ValueError,
        "Got a block of 9 rows for a matrix of shape (5, 4): give it 5",
    ),
    "a short block": (lambda: D @ np.ones((3, 2)), ValueError, "Got a block of 3 rows"),
    "factors of another shape": (
        lambda: HERE.sample(np.ones((5, 1)), np.ones((5, 1))),
        ValueError,
        "Got a block of 5 rows",
    ),
    "too few values": (
        lambda: SparsePlusLowRank(HERE, np.ones(1)),
        ValueError,
        "Got values of shape (1,) for a pattern of",
    ),
    "a matrix of values": (lambda: SparsePlusLowRank(HERE, np.ones((5, 4))), ValueError, "one value for each entry"),
    "factors of two ranks": (
        lambda: LowRank(np.ones((5, 2)), np.ones((4, 1))),
        ValueError,
        "U of m x r and V of n x r",
    ),
    "vectors for factors": (lambda: LowRank(np.ones(5), np.ones(4)), ValueError, "but got shapes (5,) and (4,)"),
    "a sum with a number": (lambda: X + 1, TypeError, "unsupported operand"),
    "a product of points": (lambda: X * X, TypeError, "unsupported operand"),
    "entry by entry with an array": (lambda: np.ones((5, 4)) * X, TypeError, "LowRank"),
    "a complex multiple": (lambda: 1j * X, TypeError, "unsupported operand"),
    "a ufunc": (lambda: np.exp(X), TypeError, "does not support ufuncs"),
}


@pytest.mark.parametrize(("ask", "kind", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(ask, kind, words):
    with pytest.raises(kind) as caught:
        ask()
    assert words in str(caught.value) and "\n" not in str(caught.value)


# ---------------------------------------------------------------------------------------------------- sparse arrays


@quick
@given(st.integers(1, 12), st.integers(1, 12), seeds)
def test_sparse_arrays_beside_arrays(m, n, seed):
    """With entries in any order, of which some are at the same places."""
    rng = np.random.default_rng(seed)

    def made():
        indices = rng.permutation(m * n)[: rng.integers(0, m * n + 1)]
        values = rng.integers(-3, 4, len(indices)).astype(float)
        whole = np.zeros(m * n)
        whole[indices] = values
        return SparseArray(indices, values, (m, n)), whole.reshape(m, n)

    (x, X), (y, Y) = made(), made()
    Z = rng.integers(-3, 4, (m, n)).astype(float)
    assert np.array_equal(np.asarray(x), X) and np.array_equal(np.asarray(-2 * x), -2 * X)
    assert np.array_equal(np.asarray(x + y), X + Y) and np.array_equal(np.asarray(x - y), X - Y)
    assert np.array_equal(x + Z, X + Z) and np.array_equal(Z - x, Z - X)
    assert inner(x, y) == np.vdot(X, Y) and inner(x, Z) == inner(Z, x) == np.vdot(X, Z)
    assert distance2(x, y) == norm2(X - Y) and distance2(x, Z) == distance2(Z, x) == norm2(X - Z)


def test_what_cancels_is_not_stored():
    x = SparseArray([1, 4], [2.0, -1.0], (9,))
    assert (x + SparseArray([1, 7], [-2.0, 1.0], (9,))).indices.tolist() == [4, 7] and (x - x).indices.size == 0


def test_the_distance_of_an_array_and_a_sparse_array_keeps_its_digits():
    """Of an array that is tiny outside of the entries of the sparse one, whose squares lose it."""
    x, dense_point = SparseArray([0, 3], [1.0, 1 / 3], (5,)), np.array([1.0, 1e-12, 0.0, 1 / 3, 2e-12])
    assert distance2(x, dense_point) == pytest.approx(5e-24, rel=1e-12, abs=0)


def test_an_array_is_kept_sparse_up_to_an_eighth_of_its_entries():
    x = np.zeros((4, 4))
    x[0, :2] = 1.0
    assert isinstance(sparse_form(x), SparseArray) and np.array_equal(np.asarray(sparse_form(x)), x)
    x[1, 0] = 1.0
    assert sparse_form(x) is x


def test_a_stored_sparse_array_may_have_the_first_and_the_last_index():
    _validate(SparseArray([0, 3], 1.0, (4,)))
    with pytest.raises(ValueError, match="ind"):
        _validate(SparseArray._of(np.array([0, 4]), np.ones(2), (4,)))
