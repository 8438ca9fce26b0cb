"""Bounds by a Cholesky factorisation, against full decompositions."""

import numpy as np
import pytest

from condgrad.linalg.dense_bound import dense_eigenvalue_bound, dense_singular_bound

NOISE = 1e-13


def orthonormal(rng, n, k):
    return np.linalg.qr(rng.standard_normal((n, k)))[0]


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (25, 25)])
@pytest.mark.parametrize("k", [0, 3])
@pytest.mark.parametrize("exact", [True, False])
def test_a_bound_on_singular_values_is_proven_where_it_holds(shape, k, exact):
    rng = np.random.default_rng(0)
    A = rng.standard_normal(shape) / 10
    left, _, right = np.linalg.svd(A)
    left, right = left[:, :k], right[:k].T
    if not exact:  # vectors that hide little: large values stay outside
        left, right = orthonormal(rng, shape[0], k), orthonormal(rng, shape[1], k)
    outside = A - left @ (left.T @ A)
    outside -= outside @ right @ right.T
    _, values, vectors = np.linalg.svd(outside)
    for target in (1.01 * values[0], (1 + 1e-10) * values[0], 10.0, np.inf):
        assert dense_singular_bound(A, left, right, target, NOISE).bound == target
    for target in (0.99 * values[0], (1 - 1e-12) * values[0], 0.0, -1.0, -np.inf):
        found = dense_singular_bound(A, left, right, target, NOISE)
        assert values[0] <= found.bound <= values[0] * (1 + 1e-11) + 2 * NOISE
        np.testing.assert_allclose(np.abs(vectors[:5] @ found.vectors[:, :5]), np.eye(5), atol=1e-8)


@pytest.mark.parametrize("shift", [-5.0, 0.0, 5.0])
def test_a_bound_on_eigenvalues_is_proven_where_it_holds(shift):
    rng = np.random.default_rng(1)
    S = rng.standard_normal((25, 25))
    S = S + S.T + shift * np.eye(25)
    values, vectors = np.linalg.eigh(S)
    for known in (vectors[:, :0], vectors[:, -3:]):
        rest = values[: 25 - known.shape[1]][::-1]
        for target in (rest[0] + 1e-9, rest[0] + 1.0, np.inf):
            assert dense_eigenvalue_bound(S, known, target, NOISE).bound == target
        for target in (rest[0] - 1e-11, rest[0] - 1.0, -np.inf):
            found = dense_eigenvalue_bound(S, known, target, NOISE)
            assert rest[0] <= found.bound <= rest[0] + 1e-11
            assert np.abs(known.T @ found.vectors).max(initial=0.0) <= 1e-10
            assert np.linalg.norm(S @ found.vectors[:, 0] - rest[0] * found.vectors[:, 0]) <= 1e-10


def test_nothing_is_outside_of_the_whole_space_and_zero_is_bounded_by_rounding():
    whole, none = np.eye(6), np.zeros((6, 0))
    assert dense_singular_bound(np.ones((6, 6)), whole, whole, -1.0, NOISE).bound == 0.0
    assert dense_eigenvalue_bound(np.ones((6, 6)), whole, -1.0, NOISE).bound == -np.inf
    for target in (1e-12, 1.0):
        assert dense_singular_bound(np.zeros((6, 6)), none, none, target, NOISE).bound == target
    assert 0 <= dense_singular_bound(np.zeros((6, 6)), none, none, 0.0, NOISE).bound <= 2 * NOISE


@pytest.mark.parametrize("multiple", [1 - 1e-6, 1 - 1e-11])
def test_a_false_bound_is_never_proven(multiple):
    """Not even just below a value of high multiplicity."""
    rng = np.random.default_rng(2)
    for n in (5, 40):
        Q, P = orthonormal(rng, n, n), orthonormal(rng, n, n)
        A = Q @ P.T
        assert dense_singular_bound(A, A[:, :0], A[:, :0], multiple, NOISE).bound > 1 - 1e-12
