"""What sets in the registry must do, on random instances of them, many of them degenerate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contract.drawn_sets import DRAW, exact

import condgrad as cg
from condgrad.domains import DOMAINS
from condgrad.runtime.signals import receiving
from condgrad.testing import check_domain


def test_random_instances_are_of_registered_sets():
    """A new set needs no function in drawn_sets.py: without one, the contract is tested on the examples of its entry."""
    assert DRAW.keys() < DOMAINS.keys()
    assert all(isinstance(DRAW[name](np.random.default_rng(0)), type(DOMAINS[name].example())) for name in DRAW)


@pytest.mark.parametrize("name", DRAW)
@settings(max_examples=5, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_instances_keep_the_contract(name, seed):
    entry, domain = DOMAINS[name], DRAW[name](np.random.default_rng(seed))
    facts = {"sample": entry.sample, "least": entry.least, "vertices": entry.vertices}
    with receiving():  # errors of the elliptope's oracle, which are below the tolerance
        report = check_domain(
            domain, **facts, exact_diameter=exact(domain), tolerance=entry.accuracy, trials=8, seed=seed
        )
    assert report.passed and not report.notes, f"{domain!r}\n{report}"


@pytest.mark.parametrize("name", DRAW)
def test_directions_and_points_that_are_not_of_the_shape_are_refused_in_one_sentence(name):
    domain = DRAW[name](np.random.default_rng(0))
    for oracle in ("lmo", "atom", "project", "contains"):
        if hasattr(domain, oracle):
            with pytest.raises(ValueError, match=r"^[A-Z][^.]* has shape .* was expected[^.]*\.$"):
                getattr(domain, oracle)(np.ones((2, *domain.shape)))


@pytest.mark.parametrize("n", [20, 50])
@pytest.mark.parametrize(
    "second", [cg.L2Ball, lambda n, r: cg.LpBall(n, 3.0, r), lambda n, r: cg.Ellipsoid(np.linspace(0.1, 5.0, n), r)]
)
@pytest.mark.parametrize(
    "combine", [cg.MinkowskiSum, lambda *sets: cg.HullOfUnion(cg.MinkowskiSum(*sets), cg.LinfBall(sets[0].shape, 0.01))]
)
def test_sums_with_curved_sets_contain_their_vertices(combine, second, n):
    """500 vertices of a hull are too few for nine digits of a point on a curved boundary in 20 dimensions."""
    domain, rng = combine(cg.Simplex(n), second(n, 0.3)), np.random.default_rng(n)
    g = rng.standard_normal(n)
    vertex, other = domain.lmo(g), domain.lmo(rng.standard_normal(n))
    assert domain.contains(vertex) and domain.contains((vertex + other) / 2)
    assert not domain.contains(vertex - 1e-6 * g / np.linalg.norm(g))


@pytest.mark.parametrize(
    ("curved", "edged", "direction"),
    [
        (cg.LpBall(5, 3.0), cg.LinfBall(5, 0.5), [0, 1, -2, -1, 0]),
        (cg.LpBall(8, 3.0), cg.Permutahedron(np.arange(8) / 2), [-1, 1, -2, 0, -1, -1, 2, -1]),
        (cg.Ellipsoid(np.linspace(0.5, 3.0, 8)), cg.CappedSimplex(np.full(8, 0.7), 1.2), [1, -2, -2, -2, 1, -1, 2, -2]),
        (
            cg.Ellipsoid(np.linspace(0.5, 3.0, 12)),
            cg.KSparsePolytope(12, 2),
            [2, 2, 2, -2, -2, -1, -2, -2, 2, 1, 0, -2],
        ),
        (cg.Ellipsoid(np.linspace(0.5, 3.0, 100)), cg.L1Ball(100), [1, -2, 0, 2] * 25),
        (cg.L2Ball(6, 1e-9), cg.L1Ball(6, 1e-8), [-2, -2, 0, -1, 0, 1]),
    ],
)
def test_sums_of_a_curved_set_and_one_with_edges_know_the_points_of_their_edges(curved, edged, direction):
    """At a tie the one answers with a point of a curved boundary, the other one with an end of an edge."""
    domain, g = cg.MinkowskiSum(curved, edged), np.array(direction, dtype=float)
    vertex, step = domain.lmo(g), domain.max_norm * g / np.linalg.norm(g)
    assert domain.contains(vertex) and domain.contains(vertex - 0.5e-9 * step)
    assert not domain.contains(vertex - 2e-9 * step)


def test_a_set_of_one_point_has_a_tolerance_relative_to_the_point():
    domain = cg.Polytope(lower=[-0.3], upper=[-0.3])
    assert domain.contains(np.array([-0.3 * (1 + 1e-10)])) and not domain.contains(np.array([-0.3 * (1 + 1e-8)]))
