"""What the corrective inner solver must do besides test_inners.py: exact on polytopes, with a memory, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contract.inners import (
    CURVED,
    POLYTOPES,
    every_domain,
    every_polytope,
    every_seed,
    rounding,
    solve,
    subproblem,
    watched,
)

import condgrad as cg
from condgrad.inner import absolute, with_gap
from condgrad.protocols import Prox


@every_polytope
@pytest.mark.parametrize("seed", range(12))
def test_corrective_is_exact_on_polytopes(domain, seed):
    g, u, gamma = subproblem(domain, seed)
    (p, gap, _), calls = solve("corrective", domain, g, u, gamma, absolute(1e-12))
    assert np.linalg.norm(p - domain.project(u - gamma * g)) <= 1e-6
    assert gap <= 1e-12
    assert calls <= 2 * np.prod(domain.shape) + 2, "a handful of atoms, not a sublinear crawl"


@every_polytope
@every_seed
def test_corrective_remembers(domain, seed):
    """The same problem again is one call; one close by is a few."""
    g, u, gamma = subproblem(domain, seed)
    solver = cg.Corrective()
    region, calls = watched(domain)
    cold = solver.solve(region, g, u, gamma, absolute(1e-10), solver.init(region, u))
    n_cold = len(calls)
    again = solver.solve(region, g, u, gamma, absolute(1e-10), cold.memory)
    assert len(calls) == n_cold + 1
    assert np.allclose(again.point, cold.point, atol=1e-5)
    solver.solve(region, 1.001 * g, u, gamma, absolute(1e-10), cold.memory)
    assert len(calls) - n_cold - 1 <= max(3, n_cold / 2)


@every_domain
@every_seed
def test_what_corrective_remembers_is_its_point(domain, seed):
    g, u, gamma = subproblem(domain, seed)
    hull = solve("corrective", domain, g, u, gamma, absolute(1e-3))[0].memory
    p = solve("corrective", domain, g, u, gamma, absolute(1e-3))[0].point
    assert hull.weights.min() > 0 and hull.weights.sum() == pytest.approx(1, abs=1e-12)
    combined = sum(w * np.asarray(a) for w, a in zip(hull.weights, hull.atoms, strict=True))
    assert np.allclose(combined if hull.origin is None else hull.origin + combined, p, atol=1e-12)
    exact = [[np.sum(np.asarray(a) * np.asarray(b)) for b in hull.atoms] for a in hull.atoms]
    assert np.allclose(hull.gram, exact, atol=1e-12 * (1 + domain.max_norm**2))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("domain", POLYTOPES.values(), ids=POLYTOPES.keys())
def test_corrective_is_no_worse_than_its_centre_whatever_it_remembers(domain, seed):
    """The centre is an atom too: with the memory of another point and one call, the prox objective does not go up."""
    rng = np.random.default_rng(seed)
    u, elsewhere = domain.project(rng.standard_normal(domain.shape)), domain.lmo(rng.standard_normal(domain.shape))
    g = 0.1 * rng.standard_normal(domain.shape)
    solver = cg.Corrective(1)
    p = solver.solve(domain, g, u, 0.5, absolute(0.0), solver.init(domain, elsewhere)).point
    z = u - 0.5 * g
    assert np.linalg.norm(p - z) <= np.linalg.norm(u - z) + 1e-12


def test_one_call_moves_the_point():
    """Each call is an atom that the answer uses, the last one too."""
    domain, solver = cg.Simplex(5), cg.Corrective(1)
    u = np.eye(5)[0]
    p, gap, hull = solver.solve(domain, np.arange(5.0, 0, -1), u, 1.0, absolute(0.0), solver.init(domain, u))
    assert not np.array_equal(p, u) and gap == np.inf
    measured = with_gap(Prox(p, gap, hull), domain, np.arange(5.0, 0, -1), u, 1.0).gap
    direction = np.arange(5.0, 0, -1) + p - u
    assert measured == pytest.approx(direction @ p - direction.min(), abs=1e-12)


def test_the_last_call_measures_the_gap_and_its_atom_is_there_for_the_next_prox():
    domain, solver = cg.Birkhoff(6), cg.Corrective(3)
    rng = np.random.default_rng(0)
    u, c = domain.lmo(rng.standard_normal((6, 6))), rng.random((6, 6)) / 6
    region, calls = watched(domain)
    p, gap, hull = solver.solve(region, u - c, u, 0.5, absolute(1e-10), solver.init(region, u))
    direction = u - c + (p - u) / 0.5
    assert (
        len(calls) == 3 and gap == pytest.approx(np.vdot(direction, p - domain.lmo(direction)), abs=1e-12) and gap > 0.1
    )
    assert hull.weights[-1] == 0 and hull.weights[:-1].min() > 0
    assert np.array_equal(np.asarray(hull.atom(len(hull.atoms) - 1)), domain.lmo(direction))
    assert np.allclose(hull.weights @ [np.asarray(atom).ravel() for atom in hull.atoms], p.ravel(), atol=1e-14)
    following = solver.solve(region, u - c, u, 0.5, absolute(1e-10), hull)
    closer = [np.linalg.norm(x - (u - 0.5 * (u - c))) for x in (following.point, p)]
    assert closer[0] < closer[1] - 1e-3 and len(calls) == 6


@pytest.mark.parametrize("domain", [cg.Simplex(300, 2.0), cg.L1Ball((10, 30), 2.0)], ids=repr)
def test_several_vertices_a_call(domain):
    """The first is the answer of ``atom``, they are distinct vertices in the order of their values; with them a prox with a
    support of a hundred takes a few calls."""
    rng = np.random.default_rng(0)
    for direction in (rng.standard_normal(domain.shape), np.zeros(domain.shape), np.ones(domain.shape)):
        for number in (1, 7, 1000):
            found = [np.asarray(atom) for atom in domain.atoms(direction, number)]
            assert np.array_equal(found[0], domain.lmo(direction)) and len(found) == min(number, 300)
            values = [np.vdot(direction, atom) for atom in found]
            assert values == sorted(values) and len(np.unique([atom.ravel() for atom in found], axis=0)) == len(found)
            assert all(domain.contains(atom) and np.count_nonzero(atom) == 1 for atom in found)
            others = np.setdiff1d(np.arange(300), np.flatnonzero(sum(np.abs(atom) for atom in found)))
            best = -np.abs(direction) if isinstance(domain, cg.L1Ball) else direction
            assert others.size == 0 or domain.radius * best.ravel()[others].min() >= values[-1] - 1e-12
    u, g = domain.start(), 0.02 * rng.standard_normal(domain.shape)
    (p, gap, _), calls = solve("corrective", domain, g, u, 1.0, absolute(1e-10))
    assert np.linalg.norm(p - domain.project(u - g)) <= 1e-6 and gap <= 1e-10
    assert calls <= 12 and np.count_nonzero(p) >= 100


@pytest.mark.parametrize("offset", [1e5, 1e6])
def test_corrective_far_from_the_origin(offset):
    """Without max_calls, as in the theory schedule, this does not end."""
    near, far = cg.Box(np.zeros(8), 1.0), cg.Box(np.full(8, offset), offset + 1.0)
    g, _, gamma = subproblem(near, 0)
    (p, gap, _), calls = solve("corrective", far, g, far.start(), gamma, absolute(1e-8), 2000)
    assert calls < 2000 and gap <= 1e-8 + 1e-14 * np.linalg.norm(g) * np.linalg.norm(p)  # it includes its own rounding
    assert np.linalg.norm(p - far.project(far.start() - gamma * g)) <= 1e-4


@pytest.mark.parametrize("domain", [CURVED[name] for name in ("l2", "l3", "nuclear", "nuclear wide")], ids=repr)
def test_corrective_ends_at_the_rounding_of_an_interior_solution(domain):
    g, u, gamma = subproblem(domain, 0)
    g, u = 1e-2 * g / np.linalg.norm(g), 0.1 * u
    (_, gap, _), calls = solve("corrective", domain, g, u, gamma, absolute(0.0), 2000)
    assert gap <= rounding(domain, g, gamma)
    assert calls < 2000


def test_corrective_ends_where_the_oracle_has_nothing_new():
    """With a step far beyond the set the answer is a vertex, known after two calls; what seems left of the gap is rounding."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        region, calls = watched(cg.LinfBall(25, 10.0))
        u, g = region.project(10 * rng.standard_normal(25)), rng.standard_normal(25)
        solver = cg.Corrective(100)
        solver.solve(region, g, u, 1e4, absolute(0.0), solver.init(region, u))
        assert len(calls) <= 5, seed


def test_corrective_where_atoms_are_a_rounding_apart():
    """And the gradient is 1e16 times as large as the set is wide."""
    one, other = np.array([np.nextafter(0.01, 1.0)]), np.array([0.01])
    domain = cg.Box(other, one)
    for u, start in ((one, other), (other, one), (other, other)):
        for slope in (-0.5, 0.5):
            solver = cg.Corrective(20)
            p, gap, _ = solver.solve(domain, np.array([slope]), u, 1.0, absolute(1e-3), solver.init(domain, start))
            assert domain.contains(p, 1e-15) and 0 <= gap <= 1e-3
