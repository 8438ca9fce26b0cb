"""Linear minima and projections of sets beside general solvers: an LP, least squares with inequalities, a convex programme."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks import inner_solvers
from scipy.optimize import minimize, nnls
from tests.reference import polytopes

import condgrad as cg
from condgrad.domains import balls, simplices
from condgrad.domains import polytopes as polytope_family

EXAMPLES = {f"{e.name} {label}".strip(): s for e in cg.DOMAINS.values() for label, s in e.examples().items()}
POLYTOPES = {name: s for name, s in EXAMPLES.items() if type(s).__name__ in polytopes.INEQUALITIES}


@pytest.mark.parametrize("domain", POLYTOPES.values(), ids=POLYTOPES.keys())
def test_a_linear_minimum_is_that_of_a_linear_programme(domain):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        g = rng.standard_normal(domain.shape) if seed % 2 else rng.integers(-2, 3, domain.shape).astype(float)
        slack = 1e-12 * np.linalg.norm(g) * domain.max_norm
        assert abs(np.vdot(g, domain.lmo(g)) - polytopes.minimum(domain, g)) <= slack


@pytest.mark.parametrize("domain", POLYTOPES.values(), ids=POLYTOPES.keys())
def test_a_projection_is_that_of_a_quadratic_programme(domain):
    width = domain.diameter or domain.max_norm
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = domain.start() + 0.3 * 3.0 ** (seed % 3) * width * rng.standard_normal(domain.shape)
        assert np.allclose(domain.project(x), polytopes.projection(domain, x), rtol=0, atol=1e-9 * width)


PROJECTING = {
    f"{e.name} {label}".strip(): (e, s)
    for e in cg.DOMAINS.values()
    for label, s in e.examples().items()
    if hasattr(s, "project") and (e.least or e.vertices)
}


@pytest.mark.parametrize("name", PROJECTING)
def test_a_projection_is_certified_by_a_known_minimum(name):
    """p is the projection of x exactly if it minimises <p - x, .> over the set, a minimum that is known without the oracle."""
    entry, domain = PROJECTING[name]
    for seed in range(4):
        x = 10.0 ** (seed - 1) * domain.max_norm * np.random.default_rng(seed).standard_normal(domain.shape)
        p = np.asarray(domain.project(x))
        g = p - x
        known = entry.least(domain, g) if entry.least else min(np.vdot(g, v) for v in entry.vertices(domain))
        rounding = 1e-15 * (np.linalg.norm(x) + domain.max_norm)
        assert np.vdot(g, p) - known <= (1e-9 * np.linalg.norm(g) + rounding) * domain.max_norm


@pytest.mark.parametrize("name", ["l2-ball", "ellipsoid", "ellipsoid with a full matrix"])
def test_a_projection_on_a_curved_set_is_that_of_a_convex_programme(name):
    """SLSQP with the norm as a constraint, which is smooth."""
    domain = EXAMPLES[name]
    for seed in range(3):
        x = 1.5 * domain.max_norm * np.random.default_rng(seed).standard_normal(domain.shape)
        room = {"type": "ineq", "fun": lambda p: domain.radius - domain.norm(p.reshape(domain.shape))}
        found = minimize(
            lambda p, x=x: float(np.sum((p - x.ravel()) ** 2)), 0.1 * domain.lmo(-x).ravel(), method="SLSQP",
            jac=lambda p, x=x: 2 * (p - x.ravel()), constraints=[room], options={"maxiter": 200, "ftol": 1e-13},
        )  # fmt: skip
        p = domain.project(x)
        assert domain.norm(p) == pytest.approx(domain.radius, rel=1e-12)
        assert np.allclose(p.ravel(), found.x, rtol=0, atol=2e-5 * domain.max_norm)


@pytest.mark.parametrize("seed", range(5))
def test_a_projection_on_the_k_support_ball_is_optimal(seed):
    """p is the projection of x if no point of the ball has a larger product with x - p than p: the maximum is r times the norm
    of the k largest entries of x - p."""
    domain = EXAMPLES["k-support-ball"]
    x = 1.5 * domain.max_norm * np.random.default_rng(seed).standard_normal(domain.shape)
    p = domain.project(x)
    normal = np.sort(np.abs(x - p).ravel())[-domain.k :]
    assert domain.norm(p) == pytest.approx(domain.radius, rel=1e-12)
    assert np.vdot(x - p, p) == pytest.approx(domain.radius * np.linalg.norm(normal), rel=1e-10)


def test_a_projection_on_a_permutahedron_is_that_of_a_quadratic_programme_over_its_vertices():
    entry = cg.DOMAINS["permutahedron"]
    for domain in entry.examples().values():
        vertices = entry.vertices(domain)
        for seed in range(3):
            x = 1.5 * domain.max_norm * np.random.default_rng(seed).standard_normal(domain.shape)
            heavy = 1e4 * domain.max_norm  # a row for the sum of the weights, which is nearly 1 then
            weights, _ = nnls(np.vstack([vertices.T, np.full(len(vertices), heavy)]), np.append(x, heavy))
            nearest = weights @ vertices / weights.sum()
            assert np.allclose(domain.project(x), nearest, rtol=0, atol=1e-6 * domain.max_norm)


@pytest.mark.parametrize("seed", range(8))
def test_the_bounds_of_a_latent_norm_meet(seed):
    """Chains, random groups and groups within groups; dense and sparse points; and the case that is the l1/l2 norm."""
    rng = np.random.default_rng(seed)
    chain = [range(i, i + 4) for i in range(0, 18, 3)] + [[20], [19, 20, 0]]
    drawn = [rng.choice(21, rng.integers(1, 8), replace=False) for _ in range(25)] + [range(21)]
    for groups in (chain, drawn):
        groups = [list(map(int, group)) for group in groups] + [[i] for i in range(21)]
        ball = cg.LatentGroupBall(21, groups, 1.0, 0.5 + rng.random(len(groups)))
        for x in (rng.standard_normal(21), rng.standard_normal(21) * (rng.random(21) < 0.2), np.ones(21)):
            low, high = ball._bounds(x)
            assert low <= high * (1 + 1e-15) and high - low <= 1e-9 * high
    x, labels = rng.standard_normal(6), np.array([0, 1, 0, 2, 1, 0])
    apart = cg.LatentGroupBall(6, [np.flatnonzero(labels == i) for i in range(3)])
    assert apart.norm(x) == pytest.approx(cg.GroupBall(6, groups=labels).norm(x), rel=1e-12)


def test_a_k_support_norm_is_the_largest_inner_product_with_the_dual_ball():
    """k = 1 and k = n are the l1 and the l2 norm; between them, a maximum over the points where it is attained."""
    rng = np.random.default_rng(0)
    for x in rng.standard_normal((20, 5)):
        assert cg.KSupportBall(5, 1).norm(x) == pytest.approx(np.abs(x).sum(), rel=1e-13)
        assert cg.KSupportBall(5, 5).norm(x) == pytest.approx(np.linalg.norm(x), rel=1e-13)
        for k in (2, 3, 4):
            z = np.sort(np.abs(x))[::-1]
            found = cg.KSupportBall(5, k).norm(x)
            # the minimum over the split of theta: some entries have 1, the others share what is left in proportion
            splits = [
                np.sum(z[:a] ** 2) + np.sum(z[a:]) ** 2 / (k - a)
                for a in range(k)
                if np.all((k - a) * z[a:] <= np.sum(z[a:]) * (1 + 1e-12))
            ]
            assert found**2 == pytest.approx(min(splits), rel=1e-12)


def test_large_directions_are_selected_from_piece_by_piece():
    """Ties and all, across the pieces in which a long direction is read."""
    from condgrad.linalg import selection

    rng, n = np.random.default_rng(0), 3 * selection.PIECE + 17
    crowd = np.arange(float(n))
    crowd[:: n // selection.SAMPLE] -= 2.0 * n  # the sample is not like the rest: its estimates are too low
    for x in (rng.standard_normal(n), rng.integers(-3, 4, n).astype(float), np.zeros(n), np.arange(n) * -1.0, crowd):
        order, sizes = np.argsort(x, kind="stable"), np.argsort(-np.abs(x), kind="stable")
        for k in (1, 2, 50, 1000, n // 3, n - 1, n):
            assert np.array_equal(selection.indices_of_smallest(x, k), np.sort(order[:k]))
            assert np.array_equal(selection.indices_of_smallest(x, k, sizes=True), np.sort(sizes[:k]))
        assert selection.index_of_smallest(x) == order[0] and selection.index_of_largest_size(x) == sizes[0]
        weights = 1 + rng.random(n)
        assert selection.index_of_largest_size(x, weights) == np.argmax(np.abs(x) / weights)
        x = x.copy()
        x[-3] = np.nan
        for oracle in (cg.L1Ball(n), cg.Simplex(n), cg.Hypersimplex(n, 5), cg.KSupportBall(n, 5), cg.UnitSimplex(n)):
            with pytest.raises(ValueError, match="holds NaN or Inf"):
                oracle.atom(x)


def test_the_smallest_entries_along_an_axis_of_a_large_array():
    from condgrad.linalg import selection

    rng = np.random.default_rng(0)
    for shape in ((300, 400), (70_000, 2), (2, 70_000), (30, 40, 50), (3, 200, 1)):
        x = rng.integers(-50, 50, shape).astype(float)
        for axis in range(len(shape)):
            found = np.zeros(x.size, bool)
            found[selection.indices_of_smallest_along(x, axis)] = True
            expected = np.zeros(shape, bool)
            np.put_along_axis(expected, np.expand_dims(x.argmin(axis), axis), True, axis)
            assert np.array_equal(found.reshape(shape), expected)


def test_a_weighted_direction_whose_quotients_vanish():
    ball = cg.WeightedL1Ball([1.0, 3.0, 2.0])
    for scale in (5e-324, 1e-310, 1e300):
        g = scale * np.array([1.0, 4.0, -3.0]) if scale > 1e-320 else np.array([0.0, 0.0, -5e-324])
        assert ball.lmo(g)[2] == 0.5
    assert cg.WeightedL1Ball(np.array([1e-200, 1.0])).lmo(np.array([0.0, -1e300]))[1] == 1.0


CASES = [case for case in inner_solvers.cases() if case[1:] != ("condg", "outside")]


@pytest.mark.filterwarnings("ignore::condgrad.InexactOracleWarning")  # of the elliptope, whose gaps are measured here
@pytest.mark.parametrize(("name", "inner", "place"), CASES, ids=["-".join(case) for case in CASES])
def test_every_inner_solver_on_every_set_to_a_relative_gap_of_1e_8(name, inner, place):
    """`python -m benchmarks.inner_solvers` prints the calls, also of condg on a boundary, where it is sublinear."""
    row = inner_solvers.solve(inner, cg.DOMAINS[name].example(), place)
    assert row["gap"] <= 1.01 * inner_solvers.RELATIVE_GAP and row["calls"] <= inner_solvers.BUDGET


def test_the_diameter_of_a_capped_simplex_is_exact_for_equal_caps_with_room():
    domain = cg.CappedSimplex(np.full(7, 0.4))
    pairs = itertools.permutations(range(7), 3)
    vertices = [np.bincount(p, [0.4, 0.4, 0.2], 7) for p in pairs]
    assert max(np.linalg.norm(vertices[0] - v) for v in vertices) == pytest.approx(domain.diameter, rel=1e-12)


def test_caps_that_sum_to_the_radius_but_for_rounding():
    domain = cg.CappedSimplex(np.full(10, 0.1))
    for x in (domain.lmo(np.arange(10.0)), domain.start(), domain.project(np.arange(10.0))):
        assert np.allclose(x, 0.1, rtol=0, atol=1e-15) and domain.contains(x)


def test_the_page_of_sets_says_what_is_so():
    """A row for each norm ball, simplex and polytope: whether it has project and atom, and whether its diameter is exact."""
    text = (Path(__file__).parent.parent.parent / "docs" / "sets.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()]
    listed = {row[0].strip("`"): row for row in rows if row and row[0].startswith("`")}
    entries = {entry.name: entry for entry in (*balls.ENTRIES, *simplices.ENTRIES, *polytope_family.ENTRIES)}
    assert listed.keys() == entries.keys()
    for name, entry in entries.items():
        *_, diameter, projects, atom = listed[name]
        assert (diameter.startswith("exact"), projects == "yes") == ("diameter" not in entry.bounds, entry.projects), (
            name
        )
        assert (atom == "yes") == hasattr(entry.example(), "atom"), name
