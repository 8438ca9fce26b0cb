"""Frank-Wolfe methods with an active set: linear convergence, sparse atoms, and the active set after many steps."""

from __future__ import annotations

import dataclasses
from itertools import pairwise as pairs_of

import numpy as np
import pytest

import condgrad as cg
from condgrad.driver.run import iterate
from condgrad.solvers import Setup, build
from condgrad.solvers.active_steps import REFRESH, View, away_from, exchange, moved, towards
from condgrad.solvers.away_step import AwayStep

N = 25
METHODS = ("away-step", "pairwise", "blended-pairwise", "fully-corrective")


def strongly_convex(n=N, seed=0):
    """A quadratic with eigenvalues from 1 to 4 whose minimiser over the simplex has a face of its own, not a vertex."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((n, n)))[0]
    Q = (V * np.linspace(1.0, 4.0, n)) @ V.T
    inside = cg.Simplex(n).project(0.1 * rng.standard_normal(n))
    return cg.Quadratic((Q + Q.T) / 2, -Q @ inside - 0.05 * (inside == 0)), cg.Simplex(n)


def gaps(method, steps, **options):
    objective, domain = strongly_convex()
    stop = cg.Gap(1e-10) | cg.Steps(steps)
    result = cg.minimize(objective, domain, np.eye(N)[0], method=method, stop=stop, progress=False, **options)
    return result, np.minimum.accumulate([row.gap for row in result.trace if np.isfinite(row.gap)])


@pytest.mark.parametrize("method", METHODS)
def test_convergence_is_linear(method):
    """From 1e-2 to 1e-10 the logarithm of the gap falls along a straight line; open-loop steps are far above it in the end."""
    result, gap = gaps(method, 1500)
    assert result.status == "converged", result.message
    k = np.flatnonzero(gap < 1e-2)
    slope, intercept = np.polyfit(k, np.log10(gap[k]), 1)
    assert slope < -8 / 1500
    assert np.abs(np.log10(gap[k]) - slope * k - intercept).max() < 1.0, "far from a line"
    sublinear = gaps("frank-wolfe", len(gap))[1]
    assert sublinear[-1] > 1e4 * gap[-1]


@pytest.mark.parametrize("method", METHODS)
def test_fewer_atoms_than_open_loop(method):
    objective, domain = strongly_convex()
    problem = cg.Problem(objective, domain)
    solver = build(method, problem, Setup(cg.practical(), cg.CondG(), 300), {})
    for state in iterate(problem, solver, np.eye(N)[0]):
        if state.k == 300:
            break
    hull = state.hull
    assert hull.weights.min() > 0 and hull.weights.sum() == pytest.approx(1, abs=1e-12)
    assert np.allclose(np.asarray(hull.point()), state.x, atol=1e-12), "the weights stand for the iterate"
    assert hull.atoms.all_sparse and len(hull.atoms) <= np.sum(state.x > 0) + 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", ["short", "adaptive", "line-search", "golden-section", "secant"])
def test_structured_and_dense_atoms_walk_together(method, rule):
    """The set without ``atom`` takes the same steps with dense atoms."""
    objective, domain = strongly_convex()
    plain = cg.user_set(domain.lmo, N, diameter=domain.diameter, contains=domain.contains)
    walks = []
    for region in (domain, plain):
        problem = cg.Problem(objective, region)
        walk = iterate(
            problem, build(method, problem, Setup(cg.practical(), cg.CondG(), 40), {"rule": rule}), np.eye(N)[3]
        )
        walks.append([next(walk).x for _ in range(40)])
    tolerance = 1e-9 if rule in ("short", "adaptive") else 1e-5
    assert all(np.allclose(x, y, atol=tolerance) for x, y in zip(*walks, strict=True))


def test_rules_that_do_not_descend_are_refused():
    with pytest.raises(ValueError, match="open-loop"):
        cg.minimize(*strongly_convex(), method="pairwise", rule="open-loop")


def test_a_million_variables_stay_sparse():
    """Atoms have one entry each, and no step makes them dense."""
    n = 1_000_000
    centre = np.zeros(n)
    centre[:50] = np.linspace(0.01, 0.03, 50)
    objective = cg.Function(lambda x: float((x - centre) @ (x - centre)) / 2, lambda x: x - centre, n, smoothness=1.0)
    x0 = np.zeros(n)
    x0[0] = 1.0
    for asked in ({"method": "pairwise"}, {"method": "ncgs", "inner": "corrective"}):
        result = cg.minimize(objective, cg.Simplex(n), x0, stop=cg.Steps(30), progress=False, every=10**9, **asked)
        assert np.count_nonzero(result.x) <= 51


@pytest.mark.parametrize("seed", range(20))
def test_the_longest_step_drops_the_away_atom(seed):
    """Exactly: a weight that is rounding would keep it in the active set."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(7))
    for move in (away_from(2, weights[2]), exchange(5, 2, weights[2])):
        new = moved(weights, *move, 1.0)
        assert new[2] == 0.0 and new.sum() == pytest.approx(1, abs=1e-15) and np.count_nonzero(new) == 6
        part = moved(weights, *move, 0.5)
        assert 0 < part[2] < weights[2] and part.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_the_iterate_is_computed_from_its_weights_now_and_then(method):
    """So that the rounding of the steps does not add up: here x carries an error that no step would take away."""
    objective, domain = strongly_convex()
    problem = cg.Problem(objective, domain)
    solver = build(method, problem, Setup(cg.practical(), cg.CondG(), 300), {})
    state = next(state for state in iterate(problem, solver, np.eye(N)[0]) if state.k == REFRESH - 2)
    off = dataclasses.replace(state, x=state.x + 1e-9, fun=None, grad=None)
    before = solver.step(problem, off)
    after = solver.step(problem, before)
    assert after.k == REFRESH and np.array_equal(after.x, np.asarray(after.hull.point()))
    assert np.abs(before.x - np.asarray(before.hull.point())).max() > 1e-10


def test_no_step_leads_away_from_the_only_atom():
    """Where rounding makes the slope towards the linear oracle's answer the smaller one: the longest step would be infinite."""
    hull = cg.ActiveSet.at(np.eye(3)[0]).with_atom(np.eye(3)[1])
    view = View(hull, s=1, a=0, slopes=np.ones(2), level=float(np.nextafter(1.0, 0.0)))
    assert AwayStep.chosen(view) == towards(1)


# --------------------------------------------------------------------------------------------------- fully corrective


def corrective_walk(share, steps=60, method="fully-corrective", objective=None, domain=None):
    given = strongly_convex() if objective is None else (objective, domain)
    problem = cg.Problem(*given)
    options = {"share": share} if method == "fully-corrective" else {"rule": "short"}
    walk = iterate(problem, build(method, problem, Setup(cg.practical(), cg.CondG(), steps), options), np.eye(N)[3])
    return [next(walk) for _ in range(steps)]


def test_fully_corrective_without_corrections_is_frank_wolfe():
    plain = corrective_walk(None, method="frank-wolfe")
    for one, other in zip(corrective_walk(1e300), plain, strict=True):
        assert np.allclose(one.x, other.x, atol=1e-10)


def test_corrections_to_the_end_reach_the_nearest_point_of_the_hull():
    """Of |x - z|^2/2: where the linear oracle is called again, x is the point of the atoms' hull that is nearest to z."""
    z, domain = np.linspace(0.3, -0.2, N), cg.Simplex(N)
    objective = cg.Quadratic(np.eye(N), -z)
    states = corrective_walk(1e-9, 40, objective=objective, domain=domain)
    corrected = [a for a, b in pairs_of(states) if b.certificate.gap < np.inf]
    assert len(corrected) >= 4 and any(len(state.hull.atoms) > 2 for state in corrected)
    for state in corrected:
        assert np.allclose(state.x, np.asarray(state.hull.nearest(z).point()), atol=1e-7)


def test_corrections_cost_no_linear_minimisation():
    """From the same start to the same gap, fewer of them than blended pairwise and than the number of steps."""
    costs = {}
    for method in ("blended-pairwise", "fully-corrective"):
        result, _ = gaps(method, 1500)
        assert result.status == "converged"
        costs[method] = result.counts["lo"], result.steps
    assert costs["fully-corrective"][0] < costs["fully-corrective"][1] / 3
    assert costs["fully-corrective"][0] < costs["blended-pairwise"][0] / 3


def test_the_bound_of_fully_corrective():
    """A gap of at most eps within 2 N + 2 C h/(theta eps)^2 + 1 steps, N = max(2 h/eps, 2 C h/eps^2) + 1; not at the start."""
    objective, domain = strongly_convex()
    x0, C = np.eye(N)[3], objective.smoothness * domain.diameter**2
    g = objective.grad(x0)
    first = float(g @ (x0 - domain.lmo(g)))
    eps, h = 0.5 * first, objective.value(x0) - gaps("pairwise", 1500)[0].fun
    n = max(2 * h / eps, 2 * C * h / eps**2) + 1
    found = [s.certificate.gap for s in corrective_walk(0.5, int(2 * n + 2 * C * h / (0.5 * eps) ** 2 + 2))[1:]]
    assert min(found) <= eps < found[0]
