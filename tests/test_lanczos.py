"""Singular vectors and eigenvectors from products alone, of matrices whose spectrum is known."""

from __future__ import annotations

import numpy as np
import pytest

from condgrad.linalg.lanczos import (
    MAX_VECTORS,
    SPARE,
    biased,
    eigen_ritz,
    lowest_eigen,
    random_block,
    remaining_growth,
    singular_ritz,
    spare_columns,
    symmetric_times,
    top_of_gram,
    top_singular,
    wider,
)
from condgrad.linalg.qr import qr
from condgrad.points import LowRank, Pattern, SparsePlusLowRank
from condgrad.points.low_rank import outer


def orthonormal(n, k, rng):
    return np.linalg.qr(rng.standard_normal((n, k)))[0]


def with_singular_values(m, n, sigma, seed=7):
    """A matrix with these singular values, and its singular vectors."""
    rng = np.random.default_rng(seed)
    U, V = orthonormal(m, len(sigma), rng), orthonormal(n, len(sigma), rng)
    return (U * sigma) @ V.T, U, V


def with_eigenvalues(values, seed=7):
    V = orthonormal(len(values), len(values), np.random.default_rng(seed))
    A = (V * values) @ V.T
    return (A + A.T) / 2, V


def slow(k):
    """A spectrum without a gap."""
    return np.linspace(1.0, 0.0, k)


def flat(k):
    """One that is flat at the top."""
    return 1 - np.linspace(0.0, 1.0, k) ** 2


SPECTRA = {
    "a gap": ((60, 50), np.concatenate([[3.0], np.linspace(1.0, 0.1, 49)])),
    "two tied at the top": ((60, 50), np.concatenate([[3.0, 3.0], np.linspace(2.0, 0.1, 48)])),
    "ten tied at the top": ((60, 50), np.concatenate([np.full(10, 3.0), np.linspace(2.0, 0.1, 40)])),
    "all tied": ((60, 50), np.full(50, 2.0)),
    "a cluster at the top": ((120, 110), np.concatenate([1 - 1e-7 * np.arange(8), slow(102) * 0.9])),
    "rank one": ((60, 50), np.array([5.0])),
    "rank three": ((60, 50), np.array([5.0, 4.0, 3.0])),
    "one row": ((1, 50), np.array([2.0])),
    "one column": ((50, 1), np.array([2.0])),
    "one entry": ((1, 1), np.array([2.0])),
    "tall": ((2000, 12), np.linspace(3.0, 1.0, 12)),
    "wide": ((12, 2000), np.linspace(3.0, 1.0, 12)),
    "slow, with restarts": ((500, 400), flat(400)),
    "slow and wide": ((300, 700), slow(300) ** 0.25),
    "huge": ((60, 50), 1e100 * slow(50)),
    "tiny": ((60, 50), 1e-100 * slow(50)),
}
every_spectrum = pytest.mark.parametrize(("shape", "sigma"), SPECTRA.values(), ids=SPECTRA.keys())


def largest_found(A, found):
    """|A v| for the right vector: what the oracle's answer is worth, whatever value it names."""
    assert np.allclose(found.left[:, 0] @ (A @ found.right[:, 0]), found.values[0], rtol=1e-9)
    for vectors in (found.left, found.right):
        assert np.allclose(vectors.T @ vectors, np.eye(vectors.shape[1]), rtol=0, atol=1e-9)
    return np.linalg.norm(A @ found.right[:, 0])


# ---------------------------------------------------------------------------------------------- the top singular value


@every_spectrum
def test_the_largest_singular_value_is_found(shape, sigma):
    A, _, _ = with_singular_values(*shape, sigma)
    found = top_singular(A)
    assert sigma[0] * (1 - 1e-12) <= largest_found(A, found) <= sigma[0] * (1 + 1e-12)
    assert len(found.values) <= MAX_VECTORS and np.all(np.diff(found.values) <= 0)
    assert np.all(found.values <= sigma[0] * (1 + 1e-12))


@every_spectrum
def test_the_same_through_products_only(shape, sigma):
    _, U, V = with_singular_values(*shape, sigma)
    m, n = shape
    empty = SparsePlusLowRank(Pattern(np.empty(0, int), np.empty(0, int), (m, n)), np.empty(0))
    dense, products = top_singular((U * sigma) @ V.T), top_singular(empty + LowRank(U * sigma, V))
    assert products.values[0] == pytest.approx(dense.values[0], rel=1e-12)


def test_restarts_were_needed(monkeypatch):
    A, _, _ = with_singular_values(500, 400, flat(400))
    monkeypatch.setattr("condgrad.linalg.lanczos.MAX_RESTARTS", 1)
    monkeypatch.setattr("condgrad.linalg.lanczos.SECOND_TRY", 4)
    assert top_singular(A).accurate
    monkeypatch.setattr("condgrad.linalg.lanczos.SECOND_TRY", 1)
    found = top_singular(A)
    assert not found.accurate
    assert found.residual == pytest.approx(np.linalg.norm(A.T @ found.left[:, 0] - found.values[0] * found.right[:, 0]))
    assert np.allclose(A @ found.right[:, 0], found.values[0] * found.left[:, 0], rtol=0, atol=1e-13)


def test_nothing_has_a_largest_singular_value_too():
    for shape in ((6, 5), (1, 4), (4, 1), (1, 1)):
        found = top_singular(np.zeros(shape))
        assert found.values[0] == 0.0 and found.residual == 0.0
        assert np.linalg.norm(found.left[:, 0]) == pytest.approx(1.0)
        assert np.linalg.norm(found.right[:, 0]) == pytest.approx(1.0)


@pytest.mark.parametrize("accuracy", [0.0, 1e-10, 1e-8, 1e-6])
@pytest.mark.parametrize("towards", ["nothing", "the second", "the second to the tenth", "the last", "many"])
@pytest.mark.parametrize("name", ["slow", "a gap below the second", "a fourth root"])
def test_an_accuracy_is_reached_whatever_it_begins_near(name, towards, accuracy):
    sigma = {
        "slow": slow(250),
        "a gap below the second": np.concatenate([[1.0, 0.95], 0.9 * slow(248)]),
        "a fourth root": slow(250) ** 0.25,
    }[name]
    A, _, V = with_singular_values(300, 250, sigma)
    near = {
        "nothing": None,
        "the second": V[:, 1:2],
        "the second to the tenth": V[:, 1:10],
        "the last": V[:, -3:],
        "many": V[:, 40:160],
    }[towards]
    found = top_singular(A, near, accuracy)
    assert largest_found(A, found) >= 1 - max(accuracy, 1e-12)


@pytest.mark.parametrize("accuracy", [1e-5, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(4))
def test_without_a_start_a_rough_accuracy_is_reached_to_a_small_factor(seed, accuracy):
    """The growth of the value is extrapolated; where the spectrum has no gap that can be a little too bold."""
    A, _, _ = with_singular_values(300, 250, slow(250), seed)
    assert largest_found(A, top_singular(A, None, accuracy)) >= 1 - 3 * accuracy


def test_a_rough_accuracy_is_cheaper():
    A, _, V = with_singular_values(300, 250, slow(250))
    products = []

    class Counted:
        shape = A.shape
        T = A.T

        def __matmul__(self, W):
            products[-1] += 1
            return A @ W

    for accuracy, near in ((0.0, None), (1e-6, None), (1e-2, None), (0.0, V[:, :1])):
        products.append(0)
        top_singular(Counted(), near, accuracy)
    assert products[0] > products[1] > products[2] and products[3] <= products[0]


@every_spectrum
def test_the_same_question_has_the_same_answer(shape, sigma):
    A, _, V = with_singular_values(*shape, sigma)
    for near in (None, V[:, :2]):
        one, other = top_singular(A, near, 1e-3 * sigma[0]), top_singular(A, near, 1e-3 * sigma[0])
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_start_is_a_subspace_and_not_a_basis():
    rng = np.random.default_rng(0)
    near, block = orthonormal(30, 4, rng), random_block(30, 2)
    turned = near @ orthonormal(4, 4, rng)
    assert np.allclose(biased(block, near), biased(block, turned), rtol=0, atol=1e-14)
    assert np.allclose(biased(block, near), biased(block, -near), rtol=0, atol=1e-14)
    assert np.linalg.norm(near.T @ biased(block, near), axis=0) == pytest.approx(1.0, abs=0.5)
    for nothing in (None, near[:, :0], np.zeros((30, 2))):
        assert np.array_equal(biased(block, nothing), block)


def test_what_is_still_to_come():
    geometric = [(9 + 3 * i, 1 - 0.7**i) for i in range(3)]
    assert remaining_growth(geometric) >= 0.7**2 * 0.999
    algebraic = [(steps, 1 - 1 / steps**2) for steps in (12, 15, 19)]
    assert 1 / 19**2 <= remaining_growth(algebraic) <= 2 / 19**2
    assert remaining_growth([(3, 1.0), (6, 1.0), (9, 1.0)]) == 0.0
    assert remaining_growth(geometric[:2]) == np.inf


# ------------------------------------------------------------------------------------------------- the lowest eigenvalues

RISING = {
    "a gap": np.concatenate([[-3.0, -2.9, -2.8], np.linspace(-1.0, 2.0, 77)]),
    "tied at the bottom": np.concatenate([np.full(4, -3.0), np.linspace(-2.0, 2.0, 76)]),
    "all tied": np.full(30, -2.0),
    "all positive": np.linspace(1.0, 3.0, 40),
    "low rank": np.concatenate([[-2.0, -1.0], np.zeros(58)]),
    "nothing": np.zeros(20),
    "one": np.array([-2.0]),
    "five": np.array([-2.0, -2.0, 0.0, 1.0, 1.0]),
    "without a gap, with restarts": np.linspace(-1.0, 1.0, 300),
    "huge": 1e150 * np.linspace(-1.0, 1.0, 40),
}


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("values", RISING.values(), ids=RISING.keys())
def test_the_lowest_eigenvalues_are_found(values, k):
    k = min(k, len(values))
    A, V = with_eigenvalues(values)
    size = max(np.abs(values).max(), 1e-300)
    for near in (None, V[:, :0], V[:, -2:], V[:, min(k, len(values) - 1) :][:, :8]):
        vectors, found = lowest_eigen(A, k, near, 0.0)[:2]
        assert np.allclose(vectors.T @ vectors, np.eye(vectors.shape[1]), rtol=0, atol=1e-10)
        assert vectors.shape[1] >= k and np.all(np.diff(found) >= 0)
        assert found[:k].sum() == pytest.approx(values[:k].sum(), abs=1e-11 * k * size)
        assert np.trace(vectors[:, :k].T @ A @ vectors[:, :k]) == pytest.approx(values[:k].sum(), abs=1e-11 * k * size)


@pytest.mark.parametrize("accuracy", [1e-10, 1e-7, 1e-5])
@pytest.mark.parametrize("k", [1, 3])
def test_what_it_begins_near_does_not_make_it_miss_the_lowest(k, accuracy):
    for values in (
        np.concatenate([np.full(k, -1.0), np.full(12, -0.9), np.linspace(-0.8, 1.0, 300 - k - 12)]),
        np.linspace(-1.0, 1.0, 300),
    ):
        A, V = with_eigenvalues(values)
        for near in (V[:, k : k + 12], V[:, -5:], V[:, 100:200]):
            vectors = lowest_eigen(A, k, near, accuracy).vectors
            found = np.trace(vectors[:, :k].T @ A @ vectors[:, :k])
            assert found <= values[:k].sum() + max(accuracy, 1e-11)


def test_only_the_symmetric_part_counts():
    rng = np.random.default_rng(0)
    A, W = rng.standard_normal((40, 40)), rng.standard_normal((40, 3))
    assert np.allclose(symmetric_times(A, W), (A + A.T) / 2 @ W, rtol=0, atol=1e-12)
    values = lowest_eigen(A, 2, None, 0.0).values
    assert np.allclose(values[:2], np.linalg.eigvalsh((A + A.T) / 2)[:2], rtol=0, atol=1e-10)


def test_the_same_eigenvectors_every_time():
    A, V = with_eigenvalues(np.linspace(-1.0, 1.0, 120))
    for near in (None, V[:, 2:5]):
        one, other = (lowest_eigen(A, 2, near, 1e-6)[:2] for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("restarts", [1, 2])
def test_eigenvalues_that_are_not_found_are_known_to_their_residual(restarts, monkeypatch):
    A, _ = with_eigenvalues(np.linspace(-1.0, 1.0, 400))
    monkeypatch.setattr("condgrad.linalg.lanczos.MAX_RESTARTS", restarts)
    monkeypatch.setattr("condgrad.linalg.lanczos.STEPS", 20)
    monkeypatch.setattr("condgrad.linalg.lanczos.KEPT", 8)
    vectors, values, residual, accurate = lowest_eigen(A, 2, None, 0.0)
    assert not accurate
    assert np.allclose(vectors[:, :2].T @ vectors[:, :2], np.eye(2), rtol=0, atol=1e-12)
    assert residual == pytest.approx(np.linalg.norm(A @ vectors[:, :2] - vectors[:, :2] * values[:2], axis=0).sum())


# -------------------------------------------------------------------------------------------------------- Ritz vectors


@pytest.mark.parametrize("shape", [(9, 6), (6, 9), (7, 7), (1, 5), (5, 1)])
@pytest.mark.parametrize("rank", [1, 3, 9])
def test_singular_ritz_is_exact_on_the_whole_space(shape, rank):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    left, values, right = singular_ritz(
        A, random_block(shape[1], min(shape)) if shape[0] < shape[1] else np.eye(shape[1])
    )
    expected = np.linalg.svd(A, compute_uv=False)
    assert np.allclose(values, expected, rtol=0, atol=1e-12 * expected[0])
    assert np.allclose((left * values) @ right.T, A, rtol=0, atol=1e-12 * expected[0])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_eigen_ritz_is_exact_on_the_whole_space(n):
    A = np.random.default_rng(0).standard_normal((n, n))
    left, values, right = eigen_ritz(A, random_block(n, n))
    assert np.allclose(values, np.linalg.eigvalsh((A + A.T) / 2)[::-1], rtol=0, atol=1e-12)
    assert np.allclose((left * values) @ right.T, (A + A.T) / 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ritz", [singular_ritz, eigen_ritz])
def test_ritz_values_are_exact_where_the_block_has_the_vectors(ritz):
    A, V = with_eigenvalues(np.linspace(3.0, 0.1, 20))
    left, values, right = ritz(A, V[:, :4] @ orthonormal(4, 4, np.random.default_rng(1)))
    assert np.allclose(values, np.linspace(3.0, 0.1, 20)[:4], rtol=1e-12)
    assert np.allclose(np.abs(right.T @ V[:, :4]), np.eye(4), rtol=0, atol=1e-9)
    assert np.allclose(np.sum(left * right, axis=0), 1.0)


def test_blocks_are_made_wider():
    block = np.eye(20, 2)
    for least, most, expected in ((1, 20, 1 + SPARE), (6, 20, 6 + SPARE), (6, 4, 4), (1, 1, 1)):
        found = wider(block, least, most)
        assert found.shape == (20, expected)
        assert np.array_equal(found[:, : min(2, expected)], block[:, : min(2, expected)])
    assert wider(np.eye(20, 15), 1, 20).shape == (20, 15)


@pytest.mark.parametrize("ritz", [singular_ritz, eigen_ritz])
def test_a_product_that_is_known_is_not_computed_again(ritz):
    A, _ = with_eigenvalues(np.linspace(3.0, -1.0, 30))
    W = np.linalg.qr(random_block(30, 6))[0]
    for one, other in zip(ritz(A, W), ritz(A, W, A @ W), strict=True):
        assert np.array_equal(one, other)
    assert not np.allclose(ritz(A, W)[1], ritz(A, W, A @ (A @ W))[1])


@pytest.mark.parametrize("rows", [40, 3000])
@pytest.mark.parametrize("kind", ["random", "scaled", "nearly dependent", "dependent", "zero"])
def test_qr_whatever_the_columns(rows, kind):
    """Large blocks go by Cholesky factors where these are accurate."""
    B = np.random.default_rng(0).standard_normal((rows, 9))
    if kind == "scaled":
        B *= 10.0 ** np.arange(-40, 50, 10)
    elif kind == "nearly dependent":
        B[:, 4] = B[:, 3] + 1e-9 * B[:, 4]
    elif kind != "random":
        B[:, 4:] = B[:, :5] if kind == "dependent" else 0.0
    Q, R = qr(B)
    assert np.allclose(Q.T @ Q, np.eye(9), rtol=0, atol=1e-13)
    assert np.allclose(R, np.triu(R), rtol=0, atol=0)
    assert np.allclose(Q @ R, B, rtol=1e-10, atol=1e-13 * np.abs(B).max(axis=0))


def test_spare_columns_leave_out_what_is_rounding():
    assert spare_columns(np.array([3.0, 2.0, 1.0, 0.5]), 1, 2).tolist() == [0, 1, 2]
    assert spare_columns(np.array([3.0, 1e-16, -1.0, 1e-17]), 2, 4).tolist() == [0, 1, 2]
    assert spare_columns(np.zeros(3), 0, 2).tolist() == []


def test_outer_products_are_of_the_other_s_kind():
    U, V = np.ones((4, 1)), np.ones((3, 1))
    assert isinstance(outer(U, V, np.zeros((4, 3))), np.ndarray)
    assert isinstance(outer(U, V, LowRank.zeros((4, 3))), LowRank)


# --------------------------------------------------------------------------------------------------------- projections


@pytest.mark.parametrize("shape", [(70, 90), (90, 70), (5, 4), (3, 40)])
def test_the_top_triplets_by_a_gram_matrix(shape):
    rng = np.random.default_rng(0)
    A = rng.standard_normal(shape)
    left, values, right = top_of_gram(A)
    exact = np.linalg.svd(A, compute_uv=False)[: len(values)]
    assert len(values) == min(MAX_VECTORS, *shape) and values[0] == pytest.approx(exact[0], rel=1e-14)
    np.testing.assert_allclose(values, exact, rtol=1e-9)
    np.testing.assert_allclose(A @ right[:, 0], values[0] * left[:, 0], atol=1e-11 * values[0])
    for block in (left, right):
        np.testing.assert_allclose(block.T @ block, np.eye(len(values)), atol=1e-9)
    assert left.flags.contiguous and right.flags.contiguous, (
        "a checkpoint keeps the order in memory, which decides last bits"
    )


def test_the_top_triplets_of_a_matrix_of_low_rank():
    _, values, right = top_of_gram(np.outer(np.arange(80.0), np.ones(70)))
    assert values[1] <= 1e-6 * values[0]
    np.testing.assert_allclose(right.T @ right, np.eye(len(values)), atol=1e-9)
