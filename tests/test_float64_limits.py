"""Tolerances near the limit of float64, with the inner solver ``corrective``: a run converges, or says that precision ends."""

from __future__ import annotations

import numpy as np
import pytest

import condgrad as cg
from condgrad.driver import mapping

SETS = {
    "simplex": lambda rng: cg.Simplex(60),
    "l1": lambda rng: cg.L1Ball(60, 2.0),
    "k-sparse": lambda rng: cg.KSparsePolytope(40, 4, 1.0),
    "hypersimplex": lambda rng: cg.Hypersimplex(40, 6),
    "transport": lambda rng: cg.TransportPolytope(rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))),
    "paths": lambda rng: cg.PathPolytope([(i, j) for i in range(8) for j in range(i + 1, 8)], 0, 7),
    "birkhoff": lambda rng: cg.Birkhoff(6),
}
STEPS = 600


def quadratic(domain, rng, condition):
    """A quadratic whose minimiser is outside of the set, so that its gradient at the solution is far from 0."""
    H = condition ** rng.random(domain.shape)
    c = domain.lmo(rng.standard_normal(domain.shape)) * 0.6 + 0.4 * rng.standard_normal(domain.shape)
    return cg.Function(
        lambda x: float(np.vdot(H * (x - c), x - c)) / 2, lambda x: H * (x - c), domain.shape, smoothness=condition
    )


def logistic(domain, rng, condition):
    A = rng.standard_normal((80, int(np.prod(domain.shape))))
    model = cg.LinearModel(A, np.sign(rng.standard_normal(80)), cg.Logistic())
    return cg.Function(
        lambda x: model.value(x.reshape(-1)),
        lambda x: model.grad(x.reshape(-1)).reshape(x.shape),
        domain.shape,
        smoothness=model.smoothness,
    )


@pytest.mark.parametrize("share", [1e-12, 1e-15])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("objective", "condition"), [(quadratic, 10.0), (quadratic, 1e3), (logistic, 1.0)])
@pytest.mark.parametrize("name", SETS)
def test_a_tiny_tolerance_does_not_use_up_the_budget(name, objective, condition, seed, share):
    rng = np.random.default_rng((seed, list(SETS).index(name)))
    domain = SETS[name](rng)
    F = objective(domain, rng, condition)
    x0 = domain.lmo(rng.standard_normal(domain.shape))
    first = mapping(cg.Problem(F, domain), x0, 1 / (2 * F.smoothness)).upper
    result = cg.minimize(F, domain, x0, inner="corrective", tol=share * first, max_steps=STEPS, every=10**9)
    assert result.status == "converged" or "Precision is exhausted" in result.message, result.message
    assert result.status in ("converged", "unverified") and result.steps < STEPS
