"""What the sets of matrices must do that only look at singular values or eigenvalues, besides test_domains.py."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from tests.contract.test_domains import SETS, SPECIAL, direction, over, quick, sample, seeds

from condgrad.domains import Fantope, KyFanBall, NuclearBall, Spectrahedron, SpectralBall

SPECTRAL = {name: domain for name, domain in SETS.items() if hasattr(domain, "shrink")}
EIGEN = {name: domain for name, domain in SPECTRAL.items() if domain.spectrum == "eigen"}
scales = st.sampled_from([0.1, 1.0, 10.0, 1e5])
every_spectral, every_symmetric = over(SPECTRAL), over(EIGEN)


def spectrum(domain, x):
    """(U, the falling values, V') with x = U values V', x symmetric where the set is about eigenvalues."""
    if domain.spectrum == "singular":
        return np.linalg.svd(x, full_matrices=False)
    values, vectors = np.linalg.eigh(x)
    return vectors[:, ::-1], values[::-1], vectors[:, ::-1].T


def matrix(domain, seed):
    g = direction(domain, seed)
    return g if domain.spectrum == "singular" else g + g.T


def test_all_of_them_are_tested_here():
    assert {type(domain) for domain in SPECTRAL.values()} == {
        NuclearBall,
        SpectralBall,
        KyFanBall,
        Spectrahedron,
        Fantope,
    }


@every_spectral
@quick
@given(seed=seeds, scale=scales)
def test_projecting_is_shrinking_the_spectrum(domain, seed, scale):
    x = scale * matrix(domain, seed)
    left, values, right = spectrum(domain, x)
    values.setflags(write=False)
    shrunk = domain.shrink(values)
    assert np.all(np.diff(shrunk) <= 0) and np.all(shrunk >= 0)
    size = np.linalg.norm(x) + domain.max_norm
    assert np.allclose((left * shrunk) @ right, domain.project(x), rtol=0, atol=1e-13 * size)


@every_spectral
@quick
@given(seed=seeds, scale=scales)
def test_no_sampled_point_is_on_the_other_side_of_the_projection(domain, seed, scale):
    rng, x = np.random.default_rng(seed), scale * direction(domain, seed)
    p = domain.project(x)
    slack = 1e-12 * (np.linalg.norm(x) + domain.max_norm) * domain.max_norm
    assert all(np.vdot(x - p, sample(domain, rng) - p) <= slack for _ in range(50))


def half_spaces(domain, size):
    """The set of spectra as bounds and inequalities, one by one."""
    everything = np.ones((1, size))
    match domain:
        case NuclearBall():
            return (0, np.inf), LinearConstraint(everything, -np.inf, domain.radius)
        case SpectralBall():
            return (0, domain.radius), ()
        case KyFanBall():
            rows = [np.isin(np.arange(size), chosen) for chosen in combinations(range(size), domain.k)]
            return (0, np.inf), LinearConstraint(np.array(rows, dtype=float), -np.inf, domain.radius)
        case Spectrahedron():
            low = domain.radius if domain.equal else -np.inf
            return (0, np.inf), LinearConstraint(everything, low, domain.radius)
        case Fantope():
            return (0, 1), LinearConstraint(everything, domain.rank, domain.rank)


@every_spectral
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_shrinking_is_the_quadratic_programme_over_spectra(domain, seed, scale):
    values = scale * spectrum(domain, matrix(domain, seed))[1]
    bounds, constraint = half_spaces(domain, values.size)
    shrunk = domain.shrink(values)
    solved = minimize(
        lambda v: np.sum((v - values) ** 2) / 2,
        np.zeros(values.size),
        jac=lambda v: v - values,
        bounds=[bounds] * values.size,
        constraints=constraint,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert np.allclose(shrunk, solved.x, rtol=1e-5, atol=1e-5)


@every_symmetric
@pytest.mark.parametrize("seed", range(6))
def test_answers_are_symmetric_and_see_the_symmetric_part_only(domain, seed):
    g = direction(domain, seed)
    half = (g + g.T) / 2
    for oracle in (domain.lmo, domain.project):
        answer = oracle(g)
        assert np.array_equal(answer, answer.T)
        assert np.vdot(half, answer) == pytest.approx(np.vdot(half, oracle(half)), abs=1e-12 * np.linalg.norm(g))


@pytest.mark.parametrize("domain", [Spectrahedron(3), Spectrahedron(3, equal=False), Fantope(3, 2)])
def test_a_matrix_that_is_not_symmetric_is_in_no_set_of_symmetric_ones(domain):
    inside, tilt = domain.project(0.2 * np.eye(3)), np.zeros((3, 3))
    tilt[0, 1] = 1e-6
    assert domain.contains(inside + tilt + tilt.T)
    assert not domain.contains(inside + tilt - tilt.T)


@pytest.mark.parametrize("D", SPECIAL.values(), ids=SPECIAL.keys())
def test_lmo_where_values_meet(D):
    """Where the minimiser is not unique, the answer is one of them, and always the same one."""
    S, n = D @ D.T, len(D)
    sigma, values = np.linalg.svd(D, compute_uv=False), np.linalg.eigvalsh(S)
    known = [
        (SpectralBall(D.shape, 2.0), D, -2 * sigma.sum()),
        (KyFanBall(D.shape, 3, 2.0), D, -2 * max(sigma[0], sigma.sum() / 3)),
        (KyFanBall(D.shape, min(D.shape)), D, -sigma[0]),
        (Spectrahedron(n, 2.0), -S, -2 * values[-1]),
        (Spectrahedron(n, 2.0, equal=False), -S, -2 * values[-1]),
        (Spectrahedron(n, 2.0), S, 2 * values[0]),
        (Spectrahedron(n, 2.0, equal=False), S, min(0.0, 2 * values[0])),
        (Fantope(n, 7), -S, -values[-7:].sum()),
        (Fantope(n, n - 7), S, values[:-7].sum()),
    ]
    for domain, g, least in known:
        v = domain.lmo(g)
        assert domain.contains(v, 1e-12)
        assert np.vdot(g, v) == pytest.approx(least, rel=1e-12, abs=1e-12 * np.linalg.norm(g) * domain.max_norm)
        assert np.array_equal(v, domain.lmo(g))


@pytest.mark.parametrize("seed", range(10))
def test_ky_fan_balls_go_from_the_spectral_to_the_nuclear_ball(seed):
    x = 3 * np.random.default_rng(seed).standard_normal((4, 6))
    for ky_fan, ball in (
        (KyFanBall((4, 6), 1, 2.0), SpectralBall((4, 6), 2.0)),
        (KyFanBall((4, 6), 4), NuclearBall((4, 6))),
    ):
        assert np.allclose(ky_fan.project(x), ball.project(x), rtol=0, atol=1e-13 * np.linalg.norm(x))
        assert np.allclose(ky_fan.lmo(x), ball.lmo(x), rtol=0, atol=1e-13 * ball.max_norm)
        assert ky_fan.max_norm == ball.max_norm and ky_fan.diameter == ball.diameter
        assert ky_fan.norm(x) == pytest.approx(ball.norm(x), rel=1e-14)


def test_a_spectrahedron_of_trace_one_is_a_fantope_of_rank_one():
    x = np.random.default_rng(3).standard_normal((5, 5))
    assert np.allclose(Spectrahedron(5).project(x), Fantope(5, 1).project(x), rtol=0, atol=1e-14)
    assert np.allclose(Spectrahedron(5).lmo(x), Fantope(5, 1).lmo(x), rtol=0, atol=1e-14)


@pytest.mark.parametrize("size", [1.0, 1e5, 1e10, 1e15])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1.0])
def test_spectra_of_far_points_shrink_into_the_set(size, spread):
    """Rounding at the size of the point is not rounding at the size of the set."""
    values = size * (1 + spread * np.linspace(1, 0, 7) ** 2)
    for k in range(1, 8):
        assert Fantope(7, k).shrink(values).sum() == pytest.approx(k, rel=1e-14)
        assert KyFanBall((7, 7), k, 0.04).shrink(values)[:k].sum() == pytest.approx(0.04, rel=1e-14)
