"""A tolerance of 1e-12 of the first squared mapping is reached, or said to be out of precision, on registered sets."""

from __future__ import annotations

import numpy as np
import pytest

import condgrad as cg
from condgrad.domains import DOMAINS
from condgrad.driver import mapping

VECTORS = [name for name, entry in DOMAINS.items() if entry.example().shape and len(entry.example().shape) == 1]


@pytest.mark.parametrize("inner", ["auto", "corrective"])
@pytest.mark.parametrize("name", VECTORS)
def test_a_strongly_convex_quadratic_is_solved_to_1e_12(name, inner):
    domain, rng = DOMAINS[name].example(), np.random.default_rng(0)
    vertices = [np.asarray(domain.lmo(rng.standard_normal(domain.shape))) for _ in range(3)]
    size = max(np.linalg.norm(v - vertices[0]) for v in vertices)
    c = sum(vertices) / 3 + 0.3 * size * rng.standard_normal(domain.shape) / np.sqrt(domain.shape[0])
    h = 1 + rng.random(domain.shape)
    F = cg.Function(lambda x: float(h @ (x - c) ** 2) / 2, lambda x: h * (x - c), domain.shape, smoothness=2.0)
    start = np.asarray(domain.lmo(np.ones(domain.shape)), dtype=float)
    first = mapping(cg.Problem(F, domain), start, 0.25).upper
    result = cg.minimize(F, domain, start, inner=inner, tol=1e-12 * first, max_steps=3000)
    exhausted = result.status == "unverified" and "Precision is exhausted" in result.message
    assert result.status == "converged" or exhausted, f"{result.status}: {result.message}"
