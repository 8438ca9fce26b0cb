"""Witnesses that are stored as a point and a small difference: see condgrad/driver/finer_witness.py."""

from __future__ import annotations

import numpy as np
import pytest

import condgrad as cg
from condgrad.driver.finer_witness import finer_witness
from condgrad.points import LowRank


def large_completion(size, inside):
    """Half of the entries of a matrix of rank 3 with entries of about ``size``, and a ball with the solution on its boundary."""
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((60, 40)) < 0.5)
    Y = size * rng.standard_normal((60, 3)) @ rng.standard_normal((3, 40))
    F = cg.Completion(rows, cols, Y[rows, cols], (60, 40), cg.Squared())
    return F, cg.NuclearBall((60, 40), (1.5 if inside else 0.999) * np.linalg.norm(Y, "nuc"))


@pytest.mark.parametrize(("size", "tol"), [(100.0, 1e-7), (100.0, 1e-8), (1000.0, 1e-6)])
def test_a_run_converges_although_factors_of_the_prox_point_are_too_coarse(size, tol):
    """It ended as unverified, since the rounding errors of the prox point made the gap too large."""
    F, ball = large_completion(size, inside=False)
    result = cg.minimize(F, ball, tol=tol, max_steps=300)
    assert result.status == "converged"
    checked = result.certificate.verify(cg.Problem(F, ball))
    assert checked.upper <= tol and checked.norm > 0


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_refined_prox_point_has_a_smaller_gap(inside, seed):
    """Its gap is no more than rounding errors of the gradient; it is a point of the set, and as far from x as before."""
    F, ball = large_completion(1e3, inside)
    solved = cg.minimize(F, ball, tol=1e-3, max_steps=300)
    x = LowRank(*solved.x.factors())
    grad, gamma = F.grad(x), 0.25
    exact = ball.project(np.asarray(x) - gamma * np.asarray(grad))
    noise = np.random.default_rng(seed).standard_normal((2, *exact.shape))
    left, values, right = np.linalg.svd(exact + 1e-13 * np.abs(exact).max() * noise[0], full_matrices=False)
    rank = np.linalg.matrix_rank(exact, tol=1e-9 * values[0])
    prox = LowRank(left[:, :rank] * values[:rank], right[:rank].T)
    prox = min(1.0, ball.radius / ball.norm(prox)) * prox

    finer = finer_witness(ball, grad, x, LowRank(*prox.factors()), gamma)
    problem = cg.Problem(F, ball)
    before, after = (cg.Certificate(x, p, gamma, 0.0).verify(problem) for p in (prox, finer))
    assert ball.norm(finer) <= ball.radius * (1 + 1e-13)
    assert after.norm == pytest.approx(before.norm, rel=1e-3, abs=1e-9)
    assert after.gap <= 3 * after.noise + 1e-13 and after.gap <= before.gap / (1 if inside else 3)


def test_other_sets_and_arrays_keep_their_witness():
    x = LowRank(np.ones((4, 1)), np.ones((4, 1)))
    dense, zero = np.asarray(x), LowRank.zeros((4, 4))
    ball = cg.NuclearBall((4, 4), 5.0)
    assert finer_witness(cg.Spectrahedron(4, 4.0), x, x, x, 1.0) is None
    assert finer_witness(ball, dense, dense, dense, 1.0) is None
    assert finer_witness(ball, zero, zero, x, 1.0) is None
    assert finer_witness(ball, zero, x, zero, 1.0) is None
