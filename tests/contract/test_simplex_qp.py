"""The small quadratic programme over weights: against all supports, on random atoms, and with a factor carried along."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.simplex_qp import nearest_in_hull

from condgrad.linalg import simplex_qp
from condgrad.linalg.simplex_qp import compute_factor, nearest_weights

quick = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def check_weights(P, z, start):
    w, _ = nearest_weights(P @ P.T, P @ z, start)
    assert w.min() >= 0 and w.sum() == pytest.approx(1, abs=1e-12)
    scale = 1 + np.abs(P).max() + np.abs(z).max()
    slope = P @ (w @ P - z)  # optimal where no atom is better than the mix
    assert slope @ w - slope.min() <= 1e-11 * scale**2
    return w, scale


@quick
@given(data=st.data())
def test_nearest_weights_by_trying_all_supports(data):
    """Atoms with small whole entries: many are equal, many are affinely dependent, many problems are ties."""
    n, d = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    entries = st.lists(st.integers(-3, 3), min_size=n * d, max_size=n * d)
    P = np.array(data.draw(entries), dtype=float).reshape(n, d)
    z = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=d, max_size=d))) / 2
    start = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=float)
    start[data.draw(st.integers(0, n - 1))] += 1
    w, scale = check_weights(P, z, start / start.sum())
    assert np.linalg.norm(w @ P - z) <= nearest_in_hull(P, z) + 1e-7 * scale


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), d=st.integers(1, 8), inside=st.booleans())
def test_nearest_weights_on_random_atoms(seed, n, d, inside):
    """Up to 30 atoms in up to 8 dimensions, one of them twice, one of them between two others; also with z in the hull."""
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((n, d))
    P[rng.integers(n)] = P[rng.integers(n)]
    P[rng.integers(n)] = (P[rng.integers(n)] + P[rng.integers(n)]) / 2
    z = rng.dirichlet(np.ones(n)) @ P if inside else 2 * rng.standard_normal(d)
    w, _ = check_weights(P, z, rng.dirichlet(np.ones(n)))
    if inside:
        assert np.linalg.norm(w @ P - z) <= 1e-6


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    exponents=st.lists(st.integers(-3, 3), min_size=2, max_size=5),
    common=st.sampled_from([-120, -12, 0, 12, 120]),
    copies=st.integers(0, 2),
    carried=st.booleans(),
)
def test_nearest_weights_with_degenerate_atoms(seed, exponents, common, copies, carried):
    """Atoms of scales that differ by up to a million, some twice, one between others, all of them tiny or huge; also with a
    factor that was carried along while the atoms came."""
    rng = np.random.default_rng(seed)
    P = 10.0 ** np.array(exponents)[:, None] * rng.standard_normal((len(exponents), 3))
    P = np.vstack([P, P[rng.integers(len(P), size=copies)], P[:2].mean(axis=0)])
    z, n = rng.standard_normal(3) * 10.0 ** exponents[0], len(P)
    weights, factor = np.eye(n)[0], None
    if carried:
        for k in range(2, n + 1):
            some = P[:k] * 10.0**common
            weights[:k], factor = nearest_weights(some @ some.T, some @ (z * 10.0**common), weights[:k], factor)
    scaled = P * 10.0**common
    weights, _ = nearest_weights(scaled @ scaled.T, scaled @ (z * 10.0**common), weights, factor)
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1, abs=1e-12)
    # the Gram matrix has lost what is below 1e-16 of its largest entry, so that the distance is known to the root of that
    scale = np.abs(P).max() + np.abs(z).max()
    assert np.linalg.norm(weights @ P - z) <= nearest_in_hull(P, z) + 1e-6 * scale


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_factor_takes_up_what_is_independent_whatever_its_scale(scale):
    atoms = scale * np.random.default_rng(0).standard_normal((4, 6))
    gram = atoms @ atoms.T
    factor = compute_factor(gram, np.arange(3)).with_atom(gram, 3)
    assert np.allclose(factor.R.T @ factor.R, gram + factor.shift, rtol=1e-12, atol=0)
    fewer = factor.without(1)
    kept = gram[np.ix_(fewer.index, fewer.index)]
    assert fewer.index.tolist() == [0, 2, 3]
    assert np.allclose(fewer.R.T @ fewer.R, kept + fewer.shift, rtol=1e-12, atol=0) and not np.tril(fewer.R, -1).any()
    atoms[3] = atoms[:3].mean(axis=0)  # depends on the others
    gram = atoms @ atoms.T
    for dependent in (compute_factor(gram, np.arange(3)).with_atom(gram, 3), compute_factor(gram, np.arange(4))):
        off = dependent.R.T @ dependent.R - gram - dependent.shift - dependent.ridge * np.eye(4)
        assert 0 < dependent.ridge <= 1e-8 * scale**2 and np.abs(off).max() <= 1e-12 * scale**2


@pytest.mark.parametrize("seed", range(20))
def test_a_factor_from_before_changes_nothing(seed):
    """Atoms come one by one and the target moves, as in a run; the factor is carried along or made anew each time."""
    rng = np.random.default_rng(seed)
    P, z = rng.standard_normal((1, 6)), 2 * rng.standard_normal(6)
    weights, factor = np.ones(1), None
    for step in range(12):
        P, weights = np.vstack([P, rng.standard_normal(6)]), np.append(weights, 0.0)
        z = z + (0.3 * rng.standard_normal(6) if step % 4 == 3 else 0)
        anew, _ = nearest_weights(P @ P.T, P @ z, weights)
        weights, factor = nearest_weights(P @ P.T, P @ z, weights, factor)
        assert np.allclose(weights @ P, anew @ P, atol=1e-9)
        assert np.array_equal(np.sort(factor.index), np.flatnonzero(weights))
        assert np.allclose(factor.R.T @ factor.R, (P @ P.T)[np.ix_(factor.index, factor.index)] + factor.shift)


@pytest.mark.parametrize("seed", range(10))
def test_many_atoms_that_enter_at_once(seed, monkeypatch):
    """From one atom to dozens: the guess of the active atoms ends at the minimiser that single atoms lead to."""
    rng = np.random.default_rng(seed)
    P = np.vstack([rng.standard_normal((20, 40)), np.eye(40)])
    z, start = rng.dirichlet(np.ones(60)) @ P + 0.05 * rng.standard_normal(40), np.eye(60)[0]
    w, _ = check_weights(P, z, start)
    assert np.count_nonzero(w) > 10
    rounds = []
    monkeypatch.setattr(simplex_qp, "guess_active", lambda *asked: rounds.append(1))  # which fails
    single, _ = check_weights(P, z, start)
    assert rounds == [1] and np.allclose(w @ P, single @ P, atol=1e-9)


def test_a_wrong_guess_changes_nothing(monkeypatch):
    """A guess with a higher value is dropped."""
    rng = np.random.default_rng(3)
    P, z = rng.standard_normal((30, 20)), rng.standard_normal(20)
    start, far = np.ones(30) / 30, np.eye(30)[7]
    wrong = lambda gram, pull, active, noise: (far, gram @ far - pull, compute_factor(gram, np.array([7])))  # noqa: E731
    monkeypatch.setattr(simplex_qp, "MIN_GUESSED", 0)
    monkeypatch.setattr(simplex_qp, "guess_active", wrong)
    check_weights(P, z, start)
