"""The factored phase: its parametrisations beside a dense reference, its safeguards, its counts, and where it is used."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise
from math import inf, isfinite
from weakref import WeakSet

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import factored as reference
from tests.resuming import Walk, completion

import condgrad as cg
from condgrad.checks import BadOracle
from condgrad.driver import mapping
from condgrad.linalg.lanczos import SPARE
from condgrad.linalg.lbfgs import Iterate, Pairs, lbfgs
from condgrad.paper.runs import spec_of
from condgrad.points import inner, norm2
from condgrad.runtime.cache import active
from condgrad.solvers import NCGS, Polished, PolishSettings, Setup, WarmStart, build
from condgrad.solvers.smoothness import VALUE_NOISE

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)
FORMS = ("ball, boundary", "ball, interior", "spectrahedron", "bounded trace, boundary", "bounded trace, interior")
every_form = pytest.mark.parametrize("name", FORMS)


def example(name, seed, dense=False):
    """(a set, a point of it of rank 3, a gradient that chooses the form)"""
    rng = np.random.default_rng(seed)
    U, V, R = rng.standard_normal((7, 3)), rng.standard_normal((5, 3)), 10.0 ** rng.uniform(-1, 2)
    size = R * (rng.uniform(0.1, 0.9) if "interior" in name else 1.0)
    if "ball" in name:
        domain, X = cg.NuclearBall((7, 5), R), U @ V.T
        X *= size / np.linalg.norm(X, "nuc")
    else:
        domain, X = cg.Spectrahedron(7, R, equal=name == "spectrahedron"), U @ U.T
        X *= size / np.trace(X)
    grad = rng.standard_normal(domain.shape)
    grad -= (abs(np.vdot(grad, X)) + np.vdot(grad, X) + 1) / np.vdot(X, X) * X  # <grad, X> < 0: the boundary stays
    x = X if dense else cg.LowRank(*(lambda left, s, right: (left[:, :3] * s[:3], right[:3].T))(*np.linalg.svd(X)))
    return domain, x, grad


def factors(domain, form, w):
    """What the reference takes: (U, V, R, inside) or (U, R, inside)."""
    parts = form.split(w)
    parts = parts if isinstance(parts, tuple) else (parts,)
    return *parts, domain.radius, form.scale.inside


def of_reference(domain):
    names = (
        ("ball", "ball_gradient") if isinstance(domain, cg.NuclearBall) else ("spectrahedron", "spectrahedron_gradient")
    )
    return [getattr(reference, name) for name in names]


# ------------------------------------------------------------------------------------------------- the parametrisations


@every_form
@pytest.mark.parametrize("dense", [False, True], ids=["low-rank", "array"])
def test_a_form_starts_at_its_point(name, dense):
    domain, x, grad = example(name, 1, dense)
    form = domain.factored(x, grad)
    assert form.scale.inside == ("interior" in name)
    assert isinstance(form.point(form.start), type(x))
    np.testing.assert_allclose(np.asarray(form.point(form.start)), np.asarray(x), atol=1e-12 * domain.radius)


def test_the_interior_is_open_where_F_falls_inwards():
    domain, x, grad = example("ball, boundary", 2)
    assert not domain.factored(x, grad).scale.inside
    assert domain.factored(x, -grad).scale.inside


@every_form
@quick
@given(seed=st.integers(0, 2**31), size=st.floats(-3, 3), dense=st.booleans())
def test_every_vector_is_a_point_of_the_set_with_the_derivative_of_the_reference(name, seed, size, dense):
    domain, x, grad = example(name, seed % 97, dense)
    form, rng = domain.factored(x, grad), np.random.default_rng(seed)
    w = 10.0**size * rng.standard_normal(form.start.size) + rng.integers(2) * form.start
    X, point, derivative = form.point(w), *of_reference(domain)
    assert domain.contains(X, 1e-12)
    np.testing.assert_allclose(np.asarray(X), point(*factors(domain, form, w)), rtol=1e-10, atol=1e-10 * domain.radius)

    G = rng.standard_normal(domain.shape)
    expected = derivative(*factors(domain, form, w), G)
    expected = np.concatenate(expected if isinstance(expected, tuple) else (expected,)) / form.weights
    expected = expected.ravel()
    pulled = form.pull_back(w, G)
    np.testing.assert_allclose(pulled, expected, rtol=1e-10, atol=1e-10 * np.linalg.norm(expected))


@every_form
@pytest.mark.parametrize("seed", range(3))
def test_the_derivative_is_that_of_differences(name, seed):
    """F(X) = <G, X> + |X|^2, so that the gradient changes with the point."""
    domain, x, grad = example(name, seed)
    form, rng = domain.factored(x, grad), np.random.default_rng(seed)
    w = form.start * (1 + 0.01 * rng.standard_normal(form.start.size))
    if form.scale.inside:
        w *= 0.9  # away from s = R, where c has a kink
    else:
        w *= 1.3
    G, d = rng.standard_normal(domain.shape), rng.standard_normal(w.size)

    def F(v):
        X = np.asarray(form.point(v))
        return np.vdot(G, X) + np.vdot(X, X)

    h = 1e-6 * np.linalg.norm(w) / np.linalg.norm(d)
    slope = form.pull_back(w, G + 2 * np.asarray(form.point(w))) @ d
    assert (F(w + h * d) - F(w - h * d)) / (2 * h) == pytest.approx(
        slope, rel=1e-5, abs=1e-7 * np.linalg.norm(G) * domain.radius
    )


def test_both_sides_of_the_kink_agree_in_value():
    domain, x, grad = example("ball, interior", 5)
    form = domain.factored(x, grad)
    w = form.start * np.sqrt(2 * domain.radius / form.sizes(form.start).sum())
    below, above = np.asarray(form.point(w * (1 - 1e-9))), np.asarray(form.point(w * (1 + 1e-9)))
    np.testing.assert_allclose(below, above, atol=1e-8 * domain.radius)


@every_form
@pytest.mark.parametrize("seed", range(4))
def test_the_estimate_is_the_mapping_within_the_span(name, seed):
    """At a point of full rank nothing is outside of the span. It is too large where the multiplier is not that of a solution."""
    rng = np.random.default_rng(seed)
    domain = example(name, seed)[0]
    m, n = domain.shape
    A, B = rng.standard_normal((m, m)), rng.standard_normal((n, m))
    X = A @ B.T if "ball" in name else A @ A.T
    norm = np.linalg.norm(X, "nuc") if "ball" in name else np.trace(X)
    X *= (0.5 if "interior" in name else 1.0) * domain.radius / norm
    G = rng.standard_normal(domain.shape)
    G = G if "ball" in name else G + G.T
    G -= (np.vdot(G, X) + abs(np.vdot(G, X))) / np.vdot(X, X) * X
    form = domain.factored(X, G)
    gamma = 1e-9 * np.linalg.svd(X, compute_uv=False)[-1] / np.linalg.norm(G)
    estimate = form.squared_mapping(form.start, form.pull_back(form.start, G), gamma)
    true = np.sum((X - domain.project(X - gamma * G)) ** 2) / gamma**2
    assert true / 2.1 <= estimate <= 10 * true


@pytest.mark.parametrize("name", ["ball, boundary", "spectrahedron"])
def test_the_estimate_is_that_of_the_point_whatever_the_length_of_the_vector(name):
    """On the boundary all multiples of w are the same point. L-BFGS lengthens w, and the phase must not end because of it."""
    domain, x, G = example(name, 3)
    form = domain.factored(x, G)
    estimates = []
    for length in (1.0, 10.0):
        w = length * form.start
        estimates.append(form.squared_mapping(w, form.pull_back(w, G), 1e-6))
    assert estimates[1] == pytest.approx(estimates[0], rel=1e-9)


@every_form
def test_the_estimate_does_not_depend_on_the_choice_of_columns(name):
    """Columns that L-BFGS has mixed: only with ``rotate`` the estimate is that of the point."""
    domain, x, G = example(name, 3)
    G = G if "ball" in name else G + G.T
    form = domain.factored(x, G)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    mixed = ((form.start.reshape(-1, 3) / form.weights) @ Q * form.weights).ravel()
    np.testing.assert_allclose(np.asarray(form.point(mixed)), np.asarray(x), atol=1e-9 * domain.radius)
    known = form.squared_mapping(form.start, form.pull_back(form.start, G), 1e-6)
    pulled = form.pull_back(mixed, G)
    assert form.squared_mapping(mixed, pulled, 1e-6, rotate=True) == pytest.approx(known, rel=1e-8)
    assert form.squared_mapping(mixed, pulled, 1e-6) != pytest.approx(known, rel=1e-3)


def test_columns_are_weighted_by_their_singular_values():
    """The weights are those of the start, so that the columns of w have comparable second derivatives."""
    domain, x, G = example("ball, boundary", 4)
    form, sigma = domain.factored(x, G), x.svd()[1]
    np.testing.assert_allclose(form.weights**2, sigma + sigma.mean())
    np.testing.assert_allclose(form.sizes(form.start), 2 * sigma)


@every_form
def test_a_vanishing_singular_value_adds_no_more_than_its_removal(name):
    """Without the limit, the slope along a value of 1e-12 counts as if the mapping could move it by any length."""
    domain = example(name, 0)[0]
    m, n = domain.shape
    rng = np.random.default_rng(0)
    Q, P = (np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in (m, n))
    P = P if "ball" in name else Q
    X = domain.radius * (Q * [1 - 1e-12, 1e-12]) @ P.T
    G = 0.1 * np.outer(Q[:, 1], P[:, 1])
    form = domain.factored(X, G)
    pulled = form.pull_back(form.start, G)
    assert form.squared_mapping(form.start, pulled, 0.1) <= 1e-9 < form.squared_mapping(form.start, pulled, 1e-20)


# -------------------------------------------------------------------------------------------------------------- L-BFGS


def rosenbrock(w):
    return float(np.sum(100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2))


def rosenbrock_gradient(w):
    g, bend = np.zeros_like(w), w[1:] - w[:-1] ** 2
    g[:-1] += -400 * w[:-1] * bend - 2 * (1 - w[:-1])
    g[1:] += 200 * bend
    return g


def test_lbfgs_converges_falls_and_ends():
    w = np.tile([-1.2, 1.0], 5)
    iterates = list(lbfgs(rosenbrock, rosenbrock_gradient, Iterate(w, rosenbrock(w), rosenbrock_gradient(w))))
    assert len(iterates) < 500 and np.linalg.norm(iterates[-1].grad) < 1e-6
    for before, after in pairwise(iterates):
        assert after.fun <= before.fun + 1e-14 * abs(before.fun)
        assert after.fun == rosenbrock(after.w)
        np.testing.assert_array_equal(after.grad, rosenbrock_gradient(after.w))


def test_lbfgs_survives_values_that_are_not_finite():
    """log is not defined below 0, and the first steps go there."""
    value = lambda w: float(w[0] - np.log(w[0])) if w[0] > 0 else inf  # noqa: E731
    start = Iterate(np.array([1e-3]), value([1e-3]), np.array([1 - 1e3]))
    last = list(lbfgs(value, lambda w: 1 - 1 / w, start))[-1]
    assert last.w[0] == pytest.approx(1.0, abs=1e-6)


def test_lbfgs_lengthens_a_step_that_is_too_short():
    """The curvature condition of Wolfe. The first trial moves by a hundredth, and the minimum is far away."""
    start = Iterate(np.ones(4), 2.0, np.ones(4))
    first = next(lbfgs(lambda w: float(w @ w) / 2, lambda w: w, start))
    assert first.grad @ (first.w - start.w) >= 0.9 * (start.grad @ (first.w - start.w))


@pytest.mark.parametrize(("unit", "size"), [(1e6, 1.0), (1.0, 1e-8)])
def test_lbfgs_knows_the_size_of_a_step(unit, size):
    """The inverse Hessian is scaled by the last pair, so that one value suffices for most iterations, near a solution too."""
    curvatures, values = unit * np.arange(1.0, 41.0), []

    def value(w):
        values.append(float(curvatures @ w**2) / 2)
        return values[-1]

    w = size * np.ones(40)
    iterates = list(islice(lbfgs(value, lambda w: curvatures * w, Iterate(w, value(w), curvatures * w)), 40))
    assert iterates[-1].fun < 1e-6 * iterates[0].fun and len(values) < 1.5 * len(iterates)


def by_the_two_loops(pairs, g):
    """H g by the two-loop recursion (Nocedal 1980), from pairs (s, y), the oldest first."""
    g, shares = g.copy(), []
    for s, y in reversed(pairs):
        shares.append((s @ g) / (s @ y))
        g = g - shares[-1] * y
    s, y = pairs[-1]
    g = g * (s @ y) / (y @ y)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        g = g + (share - (y @ g) / (s @ y)) * s
    return g


@pytest.mark.parametrize("taken", [1, 3, 4, 5, 11])
def test_the_compact_form_is_the_two_loop_recursion(taken):
    """With room for 4 pairs, before and after the oldest are replaced; a pair without positive curvature is dropped."""
    rng = np.random.default_rng(taken)
    A = np.diag(np.arange(1.0, 13.0))
    points = [Iterate(w, 0.0, A @ w) for w in rng.standard_normal((taken + 1, 12))]
    known, pairs = Pairs(4, 12), []
    for old, new in pairwise(points):
        known.times_inverse_hessian(old.grad)
        known.add(old, new)
        pairs = [*pairs, (new.w - old.w, new.grad - old.grad)][-4:]
        known.add(new, Iterate(new.w + 1, 0.0, new.grad - 1))
    for g in (points[-1].grad, rng.standard_normal(12)):
        np.testing.assert_allclose(known.times_inverse_hessian(g), by_the_two_loops(pairs, g), rtol=1e-9, atol=1e-9)


def test_pairs_of_float32_change_directions_by_rounding_only():
    rng = np.random.default_rng(3)
    points = [Iterate(w, 0.0, np.arange(1.0, 13.0) * w) for w in rng.standard_normal((6, 12))]
    double, single = Pairs(4, 12), Pairs(4, 12, np.float32)
    for old, new in pairwise(points):
        double.add(old, new)
        single.add(old, new)
    assert single.S.nbytes == double.S.nbytes / 2
    for g in (points[-1].grad, rng.standard_normal(12)):
        product = single.times_inverse_hessian(g)
        assert product.dtype == float
        np.testing.assert_allclose(product, double.times_inverse_hessian(g), rtol=1e-4, atol=1e-4)


def test_lbfgs_has_nothing_to_do_at_a_minimum():
    zero = np.zeros(3)
    assert list(lbfgs(lambda w: float(w @ w), lambda w: 2 * w, Iterate(zero, 0.0, zero))) == []


# ------------------------------------------------------------------------------------------------------------- the phase


def solver_of(objective, domain, tol=1e-8, polish="auto", **settings):
    setup = Setup(cg.practical(tol), cg.inner.inner_solver("auto", domain, 1000), 100, warm_start=5, polish=polish)
    solver = build("ncgs", cg.Problem(objective, domain), setup, {})
    assert isinstance(solver, WarmStart)
    if not settings:
        return solver
    polished = solver.solver
    return WarmStart(
        Polished(polished.solver, polished.inner, polished.eps, settings=PolishSettings(**settings)), solver.steps
    )


def states(problem, solver, steps=12):
    return list(islice(cg.iterate(problem, solver, problem.domain.low_rank_start()), 6, 6 + steps))


def gram_problem(inside=False):
    """Entries of a positive semidefinite matrix, over the spectrahedron (or bounded trace)."""
    rng = np.random.default_rng(4)
    B = rng.standard_normal((70, 3))
    Y = B @ B.T + 0.05 * rng.standard_normal((70, 70))
    trace = float(np.trace(B @ B.T)) * (3.0 if inside else 0.5)
    objective = cg.Completion.from_dense(Y, rng.random(Y.shape) < 0.4, cg.Squared())
    return objective, cg.Spectrahedron(70, trace, equal=not inside)


PROBLEMS = {
    "completion": completion,
    "interior": lambda: (completion()[0], cg.NuclearBall((90, 70), 5e3)),
    "spectrahedron": gram_problem,
    "bounded trace": lambda: gram_problem(inside=True),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_lockstep_with_the_reference(name, monkeypatch):
    """Each point and gradient that the phase of a run computes, beside the dense reference."""
    objective, domain = PROBLEMS[name]()
    point, derivative = of_reference(domain)
    seen = []

    class Spy:
        def __init__(self, form):
            self.form = form

        def __getattr__(self, attribute):
            return getattr(self.form, attribute)

        def pull_back(self, w, grad):
            pulled = self.form.pull_back(w, grad)
            known = factors(domain, self.form, w)
            X = point(*known)
            assert domain.contains(self.form.point(w), 1e-11)
            np.testing.assert_allclose(np.asarray(self.form.point(w)), X, atol=1e-10 * np.abs(X).max())
            assert objective.value(self.form.point(w)) == pytest.approx(objective.value(X), rel=1e-10)
            size = float(self.form.sizes(w).sum()) / (2 if isinstance(domain, cg.NuclearBall) else 1)
            if self.form.scale.inside and abs(size / domain.radius - 1) < 1e-12:
                return pulled  # where the scale has a kink, rounding decides which of the two derivatives is taken
            expected = derivative(*known, objective.grad(X))
            parts = expected if isinstance(expected, tuple) else (expected,)
            expected = (np.concatenate(parts) / self.form.weights).ravel()
            np.testing.assert_allclose(pulled, expected, atol=1e-10 * max(np.abs(expected).max(), domain.radius))
            seen.append(w)
            return pulled

    whole = type(domain).factored
    monkeypatch.setattr(type(domain), "factored", lambda self, x, grad: Spy(whole(self, x, grad)))
    states(cg.Problem(objective, domain), solver_of(objective, domain), 3)
    assert len(seen) > 10


@pytest.mark.parametrize("name", PROBLEMS)
def test_F_never_rises_and_points_stay_in_the_set(name):
    objective, domain = PROBLEMS[name]()
    problem = cg.Problem(objective, domain)
    proofs = []
    for before, after in pairwise(states(problem, solver_of(objective, domain, tol=1e-14), 14)):
        noise = 10 * VALUE_NOISE * abs(before.fun)
        assert domain.contains(after.x, 1e-9)
        assert after.fun <= before.fun + noise and after.fun == pytest.approx(objective.value(after.x), rel=1e-12)
        step = after.descent  # of the sliding step, before the phase
        d, beta = step.y - step.x, after.certificate.step or after.certificate.gamma
        reached = objective.value(step.y)
        assert after.fun <= reached + noise
        if not isfinite(after.certificate.gap):
            assert inner(step.grad, d) <= -0.5 * norm2(d) / beta * (1 - 1e-9) + noise
            assert reached <= before.fun - norm2(d) / (4 * beta) * (1 - 1e-6) + noise
        proofs.append(isfinite(after.certificate.gap))
    assert not all(proofs) and any(proofs), "steps without a proof, and some with one at growing distance"


@pytest.mark.parametrize(
    ("name", "tol"),
    [
        ("completion", 1e-3),
        ("completion", 1e-8),
        ("interior", 1e-3),
        ("interior", 1e-5),
        ("spectrahedron", 1e-3),
        ("spectrahedron", 1e-8),
        ("bounded trace", 1e-3),
        ("bounded trace", 1e-4),
    ],
)
def test_what_is_certified_is_true(name, tol):
    """The inner problems fit noise with nearly all singular vectors, where no method converges fast."""
    objective, domain = PROBLEMS[name]()
    result = cg.minimize(objective, domain, tol=tol)
    assert result.status == "converged", result.message
    dense = np.asarray(result.x)
    gamma = 1 / (2 * objective.smoothness)
    prox = domain.project(dense - gamma * objective.grad(dense))
    assert np.sum((dense - prox) ** 2) / gamma**2 <= tol * (1 + 1e-5)
    plain = cg.minimize(objective, domain, stop=cg.Mapping(tol) | cg.Steps(60), polish=False)
    assert plain.status != "converged" or result.steps <= plain.steps
    assert result.fun <= plain.fun + max(1e-6, 10 * tol)


def test_the_trace_says_which_steps_have_a_phase():
    objective, domain = completion()
    trace = cg.minimize(objective, domain, tol=1e-6).trace
    named = trace["phase"].tolist()
    assert named[0] == "warm-start" and named[1] == "main" and named[2] == "factored"
    assert set(named[3:]) <= {"main", "factored"}
    assert "factored" not in cg.minimize(objective, domain, max_steps=3, polish=False).trace["phase"].tolist()


def test_tiny_tolerances_are_reached_or_said_to_be_out_of_precision():
    objective, domain = completion()
    first = mapping(cg.Problem(objective, domain), domain.low_rank_start(), 1 / (2 * objective.smoothness)).upper
    result = cg.minimize(objective, domain, tol=1e-12 * first)
    assert result.status == "converged", result.message
    beyond = cg.minimize(objective, domain, tol=1e-14 * first, max_steps=60)
    assert beyond.status in ("converged", "unverified") and beyond.certificate.upper <= 1e-10 * first


def test_without_a_given_smoothness_it_backtracks():
    objective, domain = completion()
    result = cg.minimize(objective, domain, tol=1e-6, smoothness="estimate", polish=True)
    assert result.status == "converged", result.message


def test_arrays_on_demand():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((8, 8)), rng.standard_normal((8, 6))
    Q = A.T @ A
    F = cg.Function(
        lambda x: float(np.vdot(x, Q @ x) / 2 - np.vdot(B, x)),
        lambda x: Q @ x - B,
        (8, 6),
        smoothness=np.linalg.norm(Q, 2),
    )
    domain = cg.NuclearBall((8, 6), 0.5)
    runs = {
        polish: cg.minimize(F, domain, tol=1e-10, polish=polish, max_steps=3000) for polish in (True, False, "auto")
    }
    assert {run.status for run in runs.values()} == {"converged"}
    assert runs[True].steps < runs[False].steps
    assert runs["auto"].x.tobytes() == runs[False].x.tobytes(), "'auto' leaves arrays alone"
    assert runs[True].fun == pytest.approx(runs[False].fun, abs=1e-8)


def test_large_factors_have_no_phase():
    """A limit on memory that no pair fits in: the steps are those of the solver alone."""
    objective, domain = completion()
    problem = cg.Problem(objective, domain)
    limited = states(problem, solver_of(objective, domain, max_numbers=10), 4)
    alone = WarmStart(solver_of(objective, domain).solver.solver, 5)
    plain = states(problem, alone, 4)
    assert [s.fun for s in limited] == [s.fun for s in plain]
    assert states(problem, solver_of(objective, domain), 4)[-1].fun < plain[-1].fun


def test_larger_factors_have_a_phase_with_three_pairs(monkeypatch):
    """It was left out: a matrix with 200,000 rows and columns had none from rank 7 on, and a run took hundreds of steps."""
    made, init = [], Pairs.__init__

    def noted(self, most, size, dtype=float):
        made.append((most, np.dtype(dtype)))
        init(self, most, size, dtype)

    monkeypatch.setattr(Pairs, "__init__", noted)
    objective, domain = completion()
    x = states(cg.Problem(objective, domain), solver_of(objective, domain), 1)[-1].x
    size = x.rank * sum(objective.shape)
    states(cg.Problem(objective, domain), solver_of(objective, domain, max_numbers=2 * size), 1)
    assert made[-1] == (3, np.float32)


def test_pairs_are_float32_for_large_factors_and_for_float32_data(monkeypatch):
    made, init = [], Pairs.__init__

    def noted(self, most, size, dtype=float):
        made.append((most, size, np.dtype(dtype)))
        init(self, most, size, dtype)

    monkeypatch.setattr(Pairs, "__init__", noted)
    objective, domain = completion()
    rows, cols, values = objective.pattern.rows, objective.pattern.cols, objective.values.astype(np.float32)
    single = cg.Completion(rows, cols, values, domain.shape)
    for F, limit in ((objective, 2**23), (objective, 2**14), (single, 2**23)):
        made.clear()
        found = states(cg.Problem(F, domain), solver_of(F, domain, pairs=10, max_numbers=limit), 3)
        assert found[-1].fun < found[0].fun
        for most, size, dtype in made:
            large = 20 * size > limit // 2
            assert dtype == (np.float32 if large or F is single else float)
            assert most == min(10, max(limit // (2 * size), 3))
        assert any(dtype == np.float32 for *_, dtype in made) == (F is single or limit == 2**14)


def test_a_run_holds_one_gradient_while_a_phase_computes_the_next():
    """A gradient is as large as the data. That of the step is needed for the check of L; before the step none is kept.

    The values of the point of the step on the pattern are as large, and are not kept.
    """
    objective, domain = completion()
    alive, most, values, inside = WeakSet(), [], [], []

    class Watched(Tally):
        def grad(self, x):
            if inside:
                most.append(len(alive))  # before the next one
                values.append(len(active().values(objective.pattern)))
            found = self._objective.grad(x)
            alive.add(found)
            return found

    solver = solver_of(objective, domain, pairs=10).solver
    inner_descend = Polished.descend

    class Noted(Polished):
        def descend(self, *arguments):
            iterates = inner_descend(self, *arguments)
            for number, iterate in enumerate(iterates):
                inside[:] = [True] * (number > 0)
                yield iterate
            inside.clear()

    solver = WarmStart(Noted(solver.solver, solver.inner, solver.eps), 5)
    problem = cg.Problem(Watched(objective), domain)
    result = cg.run(problem, solver, domain.low_rank_start(), cg.Steps(4), output="last")
    assert result.steps == 4 and len(most) > 20 and max(most) == 1 and max(values) == 0


@pytest.mark.parametrize(("small", "growth"), [(2**18, 2.5), (0, 1.5), (220 * 40, 2.0)])
def test_an_estimate_limits_the_growth_of_the_rank(small, growth, monkeypatch):
    """A small block may grow faster, as far as it stays small."""
    monkeypatch.setattr("condgrad.inner.spectral.SMALL_BLOCK", small)
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((120, 100)) < 0.5)
    F, domain = (
        cg.Completion(rows, cols, rng.standard_normal(len(rows)), (120, 100), cg.Squared()),
        cg.NuclearBall((120, 100), 1e4),
    )
    x = domain.low_rank_start()
    rank = 20
    memory = np.linalg.qr(rng.standard_normal((100, rank + SPARE)))[0]
    found = cg.Spectral().estimate(domain, F.grad(x), x, 1.0, memory)
    assert rank < found.point.rank <= int(growth * rank) + SPARE  # a projection has full rank: the ball is not active
    assert growth == 1.5 or found.point.rank > int(1.5 * rank) + SPARE
    assert found.memory.shape[1] <= int(growth * rank) + SPARE


# ------------------------------------------------------------------------------------------- counts, budgets, interruption


class Tally:
    """Counts the calls of an objective's own methods."""

    def __init__(self, objective, fail_at=None, fault=None):
        self._objective, self.calls, self.fail_at = objective, {"value": 0, "grad": 0}, fail_at
        self.fault = fault

    def __getattr__(self, name):
        return getattr(self._objective, name)

    def _called(self, name):
        self.calls[name] += 1
        if self.fail_at and self.calls["value"] >= self.fail_at:
            self.fail_at = None
            raise self.fault

    def value(self, x):
        self._called("value")
        return self._objective.value(x)

    def grad(self, x):
        self._called("grad")
        return self._objective.grad(x)


def test_the_phase_is_counted():
    objective, domain = completion()
    tally = Tally(objective)
    problem = cg.Problem(tally, domain)
    solver = solver_of(objective, domain)
    run = cg.run(problem, solver, domain.low_rank_start(), cg.Steps(3), output="last")
    counted = tally.calls["value"], tally.calls["grad"]
    assert run.counts["values"] > 50 and run.counts["fo"] > 50
    # the driver's own values, of the rows of the warm start and at the end, are not counted
    assert counted[0] - 8 <= run.counts["values"] <= counted[0]
    assert counted[1] - 8 <= run.counts["fo"] <= counted[1]


def test_a_proof_is_due_at_its_step(monkeypatch):
    """Step 5 bounds its gap, step 4 does not."""
    objective, domain = completion()
    problem, solver = cg.Problem(objective, domain), solver_of(objective, domain, tol=1e-14).solver.solver
    estimate, calls = NCGS.estimate, []
    monkeypatch.setattr(NCGS, "estimate", lambda self, *asked: calls.append(self) or estimate(self, *asked))
    state = solver.init(problem, domain.low_rank_start())
    for k, without in ((3, True), (4, False)):
        calls.clear()
        solver.step(problem, replace(state, k=k, next_proof=5))
        assert bool(calls) == without


def test_a_proof_is_due_once_the_squared_length_is_within_the_tolerance():
    objective, domain = completion()
    problem, solver = cg.Problem(objective, domain), solver_of(objective, domain, tol=1e-14).solver.solver
    first = replace(solver.init(problem, domain.low_rank_start()), k=0, next_proof=100)
    length2 = solver.step(problem, first).certificate.norm ** 2
    assert abs(length2 - 1) > 0.1, "another power of the length would not be told apart"
    for share, due in ((1.01, True), (0.99, False)):
        tolerant = replace(solver, schedule=replace(solver.schedule, eps=share * length2))
        assert tolerant.step(problem, first).due == due


def test_a_phase_has_a_maximum_of_iterations(monkeypatch):
    taken = []

    def counting(*asked):
        taken.append(0)
        for iterate in lbfgs(*asked):
            taken[-1] += 1
            yield iterate

    monkeypatch.setattr("condgrad.solvers.polish.lbfgs", counting)
    objective, domain = PROBLEMS["bounded trace"]()
    states(cg.Problem(objective, domain), solver_of(objective, domain, tol=1e-14, iterations=7), 4)
    assert max(taken) == 7


@pytest.mark.parametrize("oracle", ["fo", "values"])
@pytest.mark.parametrize("limit", [40, 50])
def test_budgets_end_it_inside(oracle, limit):
    objective, domain = completion()
    result = cg.minimize(objective, domain, stop=cg.Mapping(1e-12) | cg.Calls(limit, oracle))
    assert result.status == "out_of_budget" and result.counts[oracle] <= limit
    assert domain.contains(result.x, 1e-9)
    assert (result.certificate is not None) == (result.steps > 0), "what is returned is measured"


def test_a_budget_that_ends_a_phase_keeps_what_it_has_reached():
    """A phase may be long, and a budget ends it between two iterations."""
    objective, domain = completion()
    limits = range(36, 60, 3)
    ends = [cg.minimize(objective, domain, stop=cg.Mapping(1e-14) | cg.Calls(limit, "fo")) for limit in limits]
    values = [end.lowest.fun for end in ends]
    assert all(after < before for before, after in pairwise(values)), "three more gradients, three more iterations"
    assert all(end.counts["fo"] <= limit for end, limit in zip(ends, limits, strict=True))


def test_the_proof_of_a_step_is_kept_if_a_budget_ends_its_phase():
    """Step 8 is the first that bounds its gap."""
    objective, domain = completion()
    problem, solver = cg.Problem(objective, domain), solver_of(objective, domain, tol=1e-30, iterations=9)
    start = domain.low_rank_start()
    whole = cg.run(problem, solver, start, cg.Mapping(1e-30) | cg.Steps(8))
    spent = {row.k: row.values for row in whole.trace}
    assert spent[8] - spent[7] > 4, "step 8 has a phase"
    cut = cg.run(problem, solver, start, cg.Mapping(1e-30) | cg.Calls(spent[8] - 2, "values"))
    assert cut.steps == 8 and cut.certificate is not None and isfinite(cut.trace[-1].mapping)


@pytest.mark.parametrize(("oracle", "limit"), [("fo", 45), ("values", 40)])
def test_a_run_that_a_budget_ended_inside_a_phase_is_resumed_to_the_bit(oracle, limit, tmp_path):
    """The result has what the phase had reached, the checkpoint has the step before."""
    path, rule = tmp_path / "c", cg.Mapping(1e-12) | cg.Steps(5)
    cut = Walk("completion", path, stop=rule | cg.Calls(limit, oracle)).result
    assert cut.status == "out_of_budget" and cut.counts[oracle] <= limit
    more = {"stop": rule | cg.Calls(10**6, oracle)}
    resumed = Walk("completion", path, resume=True, **more)
    assert min(resumed.steps) == cut.steps, "the step in which the budget ended is taken again, as a whole"
    resumed.same_as(Walk("completion", **more))


@pytest.mark.parametrize(
    "fault", [KeyboardInterrupt(), MemoryError("no room"), BadOracle("wrong"), ZeroDivisionError("by zero")], ids=repr
)
@pytest.mark.parametrize("at", [30, 45])
def test_what_ends_a_phase_keeps_what_it_has_reached(fault, at):
    """In the first step, which takes more values than that."""
    objective, domain = completion()
    start = domain.low_rank_start()
    tally = Tally(objective, fail_at=at, fault=fault)
    result = cg.minimize(tally, domain, start, warm_start=5, tol=1e-12, on_interrupt="return")
    expected = "interrupted" if isinstance(fault, KeyboardInterrupt) else "failed"
    assert result.status == expected and tally.calls["value"] <= at + 2
    assert domain.contains(result.x, 1e-9)
    sliding = cg.minimize(objective, domain, start, warm_start=5, stop=cg.Mapping(1e-12) | cg.Steps(1), polish=False)
    assert result.steps >= 1 and result.lowest.fun < sliding.fun
    assert result.lowest.fun == pytest.approx(objective.value(result.lowest.x), rel=1e-12)
    if expected == "failed":
        assert "The result is the point that this step had reached." in result.message
    assert result.trace[-1].k == result.steps


# ------------------------------------------------------------------------------------------------------- where it is used


def used(monkeypatch):
    calls = []
    improved = Polished.improved

    def spy(self, *args, **keywords):
        calls.append(1)
        return improved(self, *args, **keywords)

    monkeypatch.setattr(Polished, "improved", spy)
    return calls


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, True),
        ({"polish": True}, True),
        ({"polish": False}, False),
        ({"schedule": "theory"}, False),
        ({"adaptive": False}, False),
        ({"stretch": 1.0}, False),
        ({"inner": "corrective"}, False),
        ({"method": "ncgs-ii"}, False),
        ({"method": "ncgs-vr"}, False),
        ({"method": "frank-wolfe"}, False),
    ],
    ids=str,
)
def test_where_it_is_used(asked, expected, monkeypatch):
    calls = used(monkeypatch)
    objective, domain = completion()
    cg.minimize(objective, domain, **{"tol": 1e-9, "max_steps": 2, **asked})
    assert bool(calls) == expected


@pytest.mark.parametrize(
    ("asked", "domain", "named"),
    [
        ({"schedule": "theory"}, None, "practical schedule"),
        ({"adaptive": False}, None, "adaptive"),
        ({"inner": "condg"}, None, "CondG"),
        ({"method": "frank-wolfe"}, None, "frank-wolfe"),
        ({}, cg.L2Ball((90, 70)), "L2Ball"),
    ],
    ids=str,
)
def test_it_is_refused_in_one_sentence(asked, domain, named):
    objective, ball = completion()
    with pytest.raises(TypeError) as refusal:
        cg.minimize(objective, domain or ball, polish=True, max_steps=1, **asked)
    message = str(refusal.value)
    assert named in message and "polish" in message and message.endswith(".") and ". " not in message


def test_odd_values_are_refused():
    objective, domain = completion()
    with pytest.raises(ValueError, match="polish must be True or False"):
        cg.minimize(objective, domain, polish="always")


@pytest.mark.parametrize(
    "method", [{"name": "ncgs"}, {"name": "ncgs", "schedule": {"name": "theory", "steps": 3}}], ids=str
)
def test_the_reproduction_never_uses_it(method, monkeypatch):
    calls = used(monkeypatch)
    run = {
        "problem": {"objective": "paper", "shape": [60, 60], "rank": 2, "seed": 0},
        "set": {"name": "nuclear-ball", "radius": 2.0},
        "method": method,
        "stop": {"steps": 3},
        "keep": {"what": "ending"},
    }
    spec = spec_of(run)
    assert spec.keywords["polish"] is False
    spec.solve(progress=False)
    assert not calls
