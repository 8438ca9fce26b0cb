"""Upper bounds on eigenvalues from products with random blocks: they hold, they are found early, and nothing found is missed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betainc

from condgrad.linalg import eigenvalue_bound as module
from condgrad.linalg.eigenvalue_bound import COLUMNS, FAILURE_PROBABILITY, MAX_VECTORS, MIN_BLOCKS, eigenvalue_bound


def exact(size):
    """What rounding does to a product with a matrix of this size."""
    return lambda length: 1e-13 * size


def with_values(values, seed=3):
    V = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    A = (V * values) @ V.T
    return (A + A.T) / 2, V


def asked(A, needed, apart=None, seed=0):
    """The bound, and how many products it took."""
    calls = []

    def times(Q):
        calls.append(Q.shape[1])
        return A @ Q

    apart = np.zeros((len(A), 0)) if apart is None else apart
    return eigenvalue_bound(times, apart, needed, exact(np.linalg.norm(A, 2)), seed), len(calls)


def gaps(n):
    return np.sort(np.random.default_rng(1).standard_normal(n)) ** 3


SPECTRA = {
    "without a gap": np.linspace(-1.0, 1.0, 300),
    "flat at the top": 1 - np.linspace(0.0, 1.0, 300) ** 2,
    "a single one at the top": np.r_[np.linspace(0.0, 0.5, 299), 1.0],
    "ten at the top": np.r_[np.linspace(0.0, 0.5, 290), np.ones(10)],
    "all negative": np.linspace(-3.0, -1.0, 300),
    "with outliers on both sides": gaps(300),
    "few": np.array([1.0, 2.0, 3.0]),
    "all equal": np.full(50, 2.0),
    "of rank 3": np.r_[np.zeros(97), 1.0, 2.0, 3.0],
    "nothing": np.zeros(40),
}
every_spectrum = pytest.mark.parametrize("values", SPECTRA.values(), ids=SPECTRA.keys())


@every_spectrum
@pytest.mark.parametrize("seed", range(5))
def test_a_bound_is_one_whatever_is_asked(values, seed):
    A, _ = with_values(values)
    top, spread = values.max(), np.ptp(values) or 1.0
    for beyond in (-np.inf, -10.0, -0.5, -0.01, -1e-4, 1e-4, 0.01, 0.1, 1.0, 100.0):
        (bound, vectors), _ = asked(A, top + beyond * spread, seed=seed)
        assert top - 1e-12 * max(1, abs(top)) <= bound < np.inf
        if bound != top + beyond * spread:
            assert vectors.shape[1] <= MAX_VECTORS
            assert np.allclose(vectors.T @ vectors, np.eye(vectors.shape[1]), rtol=0, atol=1e-9)
        assert bound <= max(top + beyond * spread, top + 10 * spread)


@pytest.mark.parametrize("n", [300, 1000])
def test_room_makes_it_cheap(n):
    """A few blocks show a tenth, and no more is spent than is needed."""
    A, _ = with_values(np.linspace(0.0, 1.0, n))
    products = [asked(A, 1 + room)[1] for room in (0.01, 0.1, 0.5, 3.0)]
    assert products == sorted(products, reverse=True)
    assert products[0] <= 45 and products[1] <= 12 and products[3] <= 5
    assert asked(A, 0.5)[1] == MIN_BLOCKS


def test_more_columns_save_steps(monkeypatch):
    A, _ = with_values(np.linspace(0.0, 1.0, 400))
    eight = asked(A, 1.1)[1]
    monkeypatch.setattr(module, "COLUMNS", 1)
    assert asked(A, 1.1)[1] > 2.5 * eight


def test_what_is_beyond_is_found():
    values = np.r_[np.linspace(0.0, 1.0, 297), 1.5, 2.0, 3.0]
    A, V = with_values(values)
    (bound, vectors), _ = asked(A, 1.2)
    assert bound >= 3.0
    assert np.linalg.norm(V[:, -1] @ vectors) >= 0.9


@pytest.mark.parametrize("k", [1, 3, 7, 8, 20, 39, 40])
@pytest.mark.parametrize("sign", [1, -1], ids=["positive", "negative"])
def test_what_is_set_apart_is_not_seen(k, sign):
    """Also where it would be the largest, or where 0, which a projection makes of it, would be."""
    values = sign * np.linspace(1.0, 5.0, 40)
    A, V = with_values(values)
    order = np.argsort(-values)
    apart = V[:, order[:k]]
    rest = values[order[k:]].max(initial=-np.inf)
    for needed in (-np.inf, 10.0, rest + 0.3):
        bound, vectors = asked(A, needed, apart)[0]
        assert rest - 1e-12 <= bound <= max(needed, rest + 40)
        assert np.abs(apart.T @ vectors).max(initial=0.0) <= 1e-10
    assert k < 40 or bound == -np.inf


def test_a_start_that_sees_little_is_allowed_for(monkeypatch):
    """The doubt is what it is said to be: with a large one, wrong bounds come about that often and no more."""
    assert betainc(
        COLUMNS / 2, (300 - COLUMNS) / 2, 1 / module._Basis(np.zeros((300, 0)), 0).required_growth
    ) == pytest.approx(FAILURE_PROBABILITY)
    monkeypatch.setattr(module, "FAILURE_PROBABILITY", 0.3)
    monkeypatch.setattr(module, "COLUMNS", 1)
    A, _ = with_values(np.r_[np.linspace(0.0, 1.0, 99), 1.3])
    wrong = sum(asked(A, 1.05, seed=seed)[0].bound < 1.3 for seed in range(200))
    assert 0 < wrong <= 0.3 * 200


def test_the_same_seed_the_same_bits():
    A, _ = with_values(SPECTRA["without a gap"])
    one, other, third = (asked(A, 0.9, seed=seed)[0] for seed in (0, 0, 1))
    assert one.bound == other.bound and np.array_equal(one.vectors, other.vectors)
    assert not np.array_equal(one.vectors, third.vectors)


def test_growth_beyond_x_is_no_less_than_what_is_said_at_x():
    """For blocks it need not rise with x by itself; what is said of it holds for every x beyond."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        p, m = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        n = p * m
        squares = [(A + A.T) / 2 for A in rng.standard_normal((m, p, p))]
        links = [np.triu(B) * 10.0 ** rng.uniform(-2, 1) for B in rng.standard_normal((m - 1, p, p))]
        T = np.zeros((n, n))
        for j, square in enumerate(squares):
            T[j * p : (j + 1) * p, j * p : (j + 1) * p] = square
        for j, link in enumerate(links):
            T[(j + 1) * p : (j + 2) * p, j * p : (j + 1) * p] = link
            T[j * p : (j + 1) * p, (j + 1) * p : (j + 2) * p] = link.T
        top, spread = np.linalg.eigvalsh(T)[-1], np.ptp(np.linalg.eigvalsh(T))
        x = top + spread * 10.0 ** rng.uniform(-2, 1)
        growth = module._Growth(x)
        for square, link in zip(squares, [None, *links], strict=True):
            growth.add_block(square, link)
        assert not growth.ended
        for further in (0.0, 0.1, 0.3, 1.0, 3.0):
            y = x + further * spread
            parts, last, before = [np.eye(p)], np.eye(p), np.zeros((p, p))
            for j, link in enumerate(links):  # the recurrence itself
                rhs = (y * np.eye(p) - squares[j]) @ last - (links[j - 1] @ before if j else 0.0)
                last, before = np.linalg.solve(link.T, rhs), last
                parts.append(last)
            lengths = np.linalg.eigvalsh(sum(part.T @ part for part in parts))
            assert growth.least <= lengths[0] * (1 + 1e-6) + 1e-9 * lengths[-1]


@pytest.mark.parametrize("scale", [1e-140, 1e-60, 1e60, 1e140])
def test_any_scale(scale):
    values = scale * np.linspace(0.0, 1.0, 60)
    A, _ = with_values(values)
    for needed in (0.5 * scale, 1.1 * scale, 1e8 * scale, 1e300):
        assert scale * (1 - 1e-10) <= asked(A, needed)[0].bound < np.inf


def test_a_dropped_rest_is_allowed_for():
    """Where all but rounding is seen, a vector that the start hardly sees may hide in it."""
    A = np.eye(4000)
    A[-1, -1] += 3e-12
    noise = 1e-13
    found = eigenvalue_bound(lambda Q: A @ Q, np.zeros((4000, 0)), -np.inf, lambda length: noise, 0)
    assert found.bound >= 1 + 3e-12
