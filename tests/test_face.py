"""The face phase: BFGS over weights beside a flat reference, its safeguards, its counts, and where it is used."""

from __future__ import annotations

from itertools import islice, pairwise
from math import nan

import numpy as np
import pytest
from tests.reference import face as reference

import condgrad as cg
import condgrad.linalg.simplex_bfgs as simplex_bfgs_module
from condgrad.checks import BadOracle
from condgrad.linalg.lbfgs import Iterate
from condgrad.linalg.simplex_bfgs import centred, gap_of, simplex_bfgs, towards, updated
from condgrad.linalg.simplex_qp import Factor
from condgrad.points import ActiveSet
from condgrad.solvers.evaluation import Evaluation
from condgrad.solvers.face import Face, FaceSettings, OnFaces, settled
from condgrad.solvers.smoothness import VALUE_NOISE

# ----------------------------------------------------------------------------------------------------- BFGS over weights


def least_squares(seed, atoms=5, condition=10.0):
    """F(w) = sum_i h_i (x_i - c_i)^2 / 2 with x = A'w: value, gradient, Gram matrix."""
    rng = np.random.default_rng(seed)
    A, h = rng.standard_normal((atoms, 8)), np.geomspace(1.0, condition, 8)
    c = rng.dirichlet(np.full(atoms, 0.4)) @ A + 0.1 * rng.standard_normal(8)
    return lambda w: float(h @ (w @ A - c) ** 2) / 2, lambda w: A @ (h * (w @ A - c)), A @ A.T


def wave(seed):
    """A function of weights that is not convex."""
    rng = np.random.default_rng(seed)
    A, c = rng.standard_normal((5, 5)), 3 * rng.standard_normal(5)
    return lambda w: float(np.sum(np.cos(3 * (A @ w) + c))), lambda w: -3 * A.T @ np.sin(3 * (A @ w) + c), np.eye(5)


@pytest.mark.parametrize("family", [least_squares, wave])
@pytest.mark.parametrize("seed", range(8))
def test_lockstep_with_the_reference(family, seed):
    F, gradient, gram = family(seed)
    w = np.random.default_rng(seed).dirichlet(np.ones(len(gram)))
    fast = [now.w for now, _ in islice(simplex_bfgs(F, gradient, Iterate(w, F(w), gradient(w)), 2 * gram), 6)]
    assert len(fast) >= 2
    for ours, flat in zip(fast, reference.iterates(F, gradient, w, 2 * gram, len(fast)), strict=True):
        np.testing.assert_allclose(ours, flat, atol=1e-7)


@pytest.mark.parametrize("condition", [1.0, 10.0, 1e3])
@pytest.mark.parametrize("seed", range(4))
def test_it_converges_within_the_simplex_and_ends(condition, seed):
    F, gradient, gram = least_squares(seed, 6, condition)
    w = np.ones(6) / 6
    start = Iterate(w, F(w), gradient(w))
    walk = [start, *(now for now, _ in islice(simplex_bfgs(F, gradient, start, gram), 200))]
    assert len(walk) < 100
    for before, after in pairwise(walk):
        assert after.w.min() >= 0 and after.w.sum() == pytest.approx(1, abs=1e-12)
        assert after.fun <= before.fun + 1e-12 * abs(before.fun) and after.fun == F(after.w)
        np.testing.assert_array_equal(after.grad, gradient(after.w))
    assert gap_of(walk[-1]) <= 1e-9 * gap_of(start)


def test_the_fall_is_at_most_twice_the_distance_from_the_minimum():
    """For a quadratic whose second derivatives B are known: the model is F, and twice where no weight becomes 0."""
    F, gradient, _ = least_squares(3)
    H = np.array([gradient(e) - gradient(np.zeros(5)) for e in np.eye(5)])
    w = np.ones(5) / 5
    (first, fall), *_ = simplex_bfgs(F, gradient, Iterate(w, F(w), gradient(w)), H)
    distance = F(w) - first.fun
    assert distance * (1 - 1e-9) <= fall <= 2 * distance * (1 + 1e-9) and gap_of(first) <= 1e-9


def test_short_steps_do_not_make_the_next_model_drop_the_same_atoms_again(monkeypatch):
    """A step shorter than 1 leaves positive weights where the minimiser has 0: with hundreds of atoms, dropping them in each
    iteration took most of the time of a phase."""
    rng, atoms = np.random.default_rng(0), 120
    h, c = 100 ** rng.random(atoms), rng.dirichlet(np.ones(atoms)) - 0.006
    dropped, without = [], Factor.without
    monkeypatch.setattr(Factor, "without", lambda *args: dropped.append(1) or without(*args))
    w = np.ones(atoms) / atoms
    start = Iterate(w, float(h @ (w - c) ** 2) / 2, h * (w - c))
    walk = simplex_bfgs(lambda v: float(h @ (v - c) ** 2) / 2, lambda v: h * (v - c), start, 2 * np.eye(atoms))
    steps = list(islice(walk, 40))
    assert gap_of(steps[-1][0]) < 1e-2 * gap_of(start)
    assert len(dropped) < 2 * atoms


@pytest.mark.parametrize("seed", range(6))
def test_the_minimiser_of_the_model_is_the_same_from_every_start(seed):
    F, gradient, gram = least_squares(seed, 6)
    rng = np.random.default_rng(seed)
    w, last = rng.dirichlet(np.ones(6)), np.eye(6)[seed]
    now, H = Iterate(w, F(w), gradient(w)), gram + np.eye(6)
    (one, fall), (other, fall_of_other) = towards(H, now, last), towards(H, now, w)
    np.testing.assert_allclose(one, other, atol=1e-9)
    assert fall == pytest.approx(fall_of_other) and fall < 0
    v = rng.dirichlet(np.ones(6), 1000) - w
    assert (
        now.grad @ (one - w) + (one - w) @ H @ (one - w) / 2
        <= (v @ now.grad + np.sum(v @ H * v, axis=1) / 2).min() + 1e-12
    )


def test_a_minimiser_that_rounding_has_spoilt_is_computed_again_from_the_point(monkeypatch):
    F, gradient, gram = least_squares(1, 6)
    w, worst = np.ones(6) / 6, np.eye(6)[np.argmax(gradient(np.ones(6) / 6))]
    now, right = Iterate(w, F(w), gradient(w)), simplex_bfgs_module.nearest_weights

    def spoilt(C, pull, weights):
        return (worst, None) if weights is worst else right(C, pull, weights)

    monkeypatch.setattr(simplex_bfgs_module, "nearest_weights", spoilt)
    to, fall = towards(gram, now, worst)
    assert fall < 0
    np.testing.assert_array_equal(to, towards(gram, now, w)[0])


def test_centring_changes_no_difference_of_weights():
    rng = np.random.default_rng(0)
    B, w, v = rng.standard_normal((4, 4)), rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    B = B @ B.T
    assert v @ centred(B, w) @ v == pytest.approx((v - w) @ B @ (v - w))
    assert np.abs(centred(B, w) @ w).max() <= 1e-12


def test_an_update_meets_the_secant_condition_up_to_a_constant():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((5, 5))
    s = rng.standard_normal(5)
    s -= s.mean()
    y = A @ A.T @ s
    left = updated(np.eye(5), s, y + 7.0) @ s - y
    assert np.abs(left - left.mean()).max() <= 1e-9 * np.abs(y).max()
    B = np.eye(5)
    assert updated(B, s, -y) is B, "negative curvature"


def test_values_that_are_not_finite_are_stepped_back_from():
    value = lambda w: nan if w[0] > 0.9 else float((w[0] - 0.8) ** 2)  # noqa: E731
    gradient = lambda w: np.array([2 * (w[0] - 0.8), 0.0])  # noqa: E731
    w = np.array([0.1, 0.9])
    last = list(simplex_bfgs(value, gradient, Iterate(w, value(w), gradient(w)), 1e-3 * np.eye(2)))[-1][0]
    assert last.w[0] == pytest.approx(0.8, abs=1e-5)


def test_it_ends_where_rounding_has_made_the_model_indefinite():
    """A LinAlgError of the factorisation would end the run."""
    w, g = np.array([0.5, 0.3, 0.2]), np.array([1.0, -1.0, 0.5])
    indefinite = -np.eye(3)
    assert list(simplex_bfgs(lambda w: float(g @ w), lambda w: g, Iterate(w, float(g @ w), g), indefinite)) == []


def test_it_has_nothing_to_do_at_a_minimum():
    w = np.array([1.0, 0.0])
    assert (
        list(
            simplex_bfgs(
                lambda w: 1 - w[0], lambda w: np.array([-1.0, 0.0]), Iterate(w, 0.0, np.array([-1.0, 0])), np.eye(2)
            )
        )
        == []
    )


# ------------------------------------------------------------------------------------------------------------- the phase


def problem(name="simplex", condition=100.0, seed=0, **asked):
    """A strongly convex quadratic whose solution has a few atoms; the start is a vertex, structured where the set has atoms."""
    domain = {"simplex": cg.Simplex(300), "l1": cg.L1Ball(300, 2.0), "birkhoff": cg.Birkhoff(6)}[name]
    rng = np.random.default_rng(seed)
    c = sum(p * domain.lmo(rng.standard_normal(domain.shape)) for p in rng.dirichlet(np.full(12, 5.0)))
    c = c - 0.002 if name == "simplex" else c
    h = condition ** rng.random(domain.shape)
    F = cg.Function(
        lambda x: float(np.vdot(h * (x - c), x - c)) / 2,
        lambda x: h * (x - c),
        domain.shape,
        smoothness=condition,
        **asked,
    )
    return F, domain, domain.atom(rng.standard_normal(domain.shape))


NAMES = ("simplex", "l1", "birkhoff")
every_set = pytest.mark.parametrize("name", NAMES)


def solved(name="simplex", tol=1e-10, x0=None, **asked):
    F, domain, start = problem(name)
    return cg.minimize(F, domain, start if x0 is None else x0, **{"inner": "corrective", "tol": tol, **asked})


@every_set
@pytest.mark.parametrize("dense", [False, True])
def test_a_form_gives_the_point_and_the_gradient_of_its_weights(name, dense):
    _, domain, first = problem(name)
    rng = np.random.default_rng(2)
    atoms = [first, *(domain.atom(rng.standard_normal(domain.shape)) for _ in range(5))]
    atoms = [np.asarray(a) for a in atoms] if dense else atoms
    hull = ActiveSet.at(atoms[0], origin=dense).with_atoms(atoms[1:])
    face, w, G = Face(hull, atoms[0]), rng.dirichlet(np.ones(6)), rng.standard_normal(domain.shape)
    x = face.point(w)
    assert type(x) is type(atoms[0])
    np.testing.assert_allclose(np.asarray(x), sum(p * np.asarray(a) for p, a in zip(w, atoms, strict=True)), atol=1e-14)
    flat = np.array([np.vdot(np.asarray(a), G) for a in atoms])
    ours = face.products(G)
    np.testing.assert_allclose(ours - ours[0], flat - flat[0], atol=1e-12)


def test_settled_is_that_no_atom_is_new():
    corners = np.eye(4)
    hull = ActiveSet.at(corners[0], origin=False).with_atoms([corners[1], corners[2]]).with_weights(np.ones(3) / 3)
    assert settled(hull, hull.with_weights([0.5, 0.0, 0.5]))
    assert not settled(hull, hull.with_atom(corners[3]).with_weights(np.ones(4) / 4))


@every_set
def test_F_never_rises_and_points_stay_in_the_set(name):
    F, domain, x0 = problem(name)
    seen = []
    cg.minimize(
        F,
        domain,
        x0,
        inner="corrective",
        tol=1e-10,
        callback=lambda record, x: seen.append((record, np.asarray(x))) and None,
    )
    assert "face" in {record.phase for record, _ in seen}
    for (before, _), (after, x) in pairwise(seen):
        assert after.fun <= before.fun + VALUE_NOISE * abs(before.fun)
        assert after.fun == pytest.approx(F.value(x), rel=1e-12) and domain.contains(x, 1e-9)


def test_a_phase_that_ends_at_a_higher_value_is_discarded(monkeypatch):
    """Each phase goes to the atom at which F is largest."""
    tried = []

    def to_the_worst_atom(self, F, face, gram, start, state, limit):
        points = [face.point(w) for w in np.eye(len(start.w))]
        fun, at = max((F.value(x), i) for i, x in enumerate(points))
        tried.append(fun > start.fun)
        yield Iterate(np.eye(len(start.w))[at], fun, start.grad), Evaluation(points[at], fun)

    monkeypatch.setattr(OnFaces, "descend", to_the_worst_atom)
    values = solved(tol=1e-6).trace["fun"]
    assert any(tried) and np.all(np.diff(values[np.isfinite(values)]) <= 1e-12)


@pytest.mark.parametrize("name", ["simplex", "l1"])
def test_it_takes_fewer_steps_and_certifies_the_same_minimum(name):
    runs = {polish: solved(name, tol=1e-8, polish=polish, max_steps=3000) for polish in (True, False)}
    assert {run.status for run in runs.values()} == {"converged"}
    assert runs[True].steps < runs[False].steps / 3
    assert runs[True].counts["fo"] < runs[False].counts["fo"]
    np.testing.assert_allclose(np.asarray(runs[True].x), np.asarray(runs[False].x), atol=5e-4)
    assert runs[True].fun == pytest.approx(runs[False].fun, abs=1e-7)
    if name == "l1":  # with entries in more than a quarter of all places, a point is an array
        assert type(runs[True].x) is cg.SparseArray, "structured atoms stay sparse"
    assert type(solved(name, x0=np.asarray(problem(name)[2])).x) is np.ndarray


def test_a_tolerance_of_the_gap_ends_a_phase():
    """With stop=Gap(eps) the phase aims at that gap, not at the default tolerance of the mapping."""
    rough, fine = (solved(stop=cg.Gap(eps)) for eps in (1e-2, 1e-8))
    assert rough.status == fine.status == "converged"
    assert rough.counts["fo"] < fine.counts["fo"]


class Tally:
    """Counts the calls of an objective's own methods, and fails at one of them."""

    def __init__(self, objective, fail_at=None, fault=None):
        self._objective, self.calls, self.fail_at, self.fault = objective, {"value": 0, "grad": 0}, fail_at, fault

    def __getattr__(self, name):
        return getattr(self._objective, name)

    def value(self, x):
        self.calls["value"] += 1
        if self.calls["value"] == self.fail_at:
            raise self.fault
        return self._objective.value(x)

    def grad(self, x):
        self.calls["grad"] += 1
        return self._objective.grad(x)


def test_the_phase_is_counted():
    F, domain, x0 = problem()
    tally = Tally(F)
    result = cg.minimize(tally, domain, x0, inner="corrective", stop=cg.Steps(3), output="last")
    assert result.trace["phase"][-1] == "face" and result.counts["values"] > 6
    # those of the driver's own checks, before and after the steps, are not counted
    assert tally.calls["value"] - 8 <= result.counts["values"] <= tally.calls["value"]
    assert tally.calls["grad"] - 8 <= result.counts["fo"] <= tally.calls["grad"]


def spent_by_step(oracle):
    result = solved(stop=cg.Mapping(1e-14) | cg.Steps(6))
    return [getattr(row, {"fo": "fo", "values": "values"}[oracle]) for row in result.trace], result


@pytest.mark.parametrize("oracle", ["fo", "values"])
def test_budgets_end_it_inside_and_keep_what_it_has_reached(oracle, tmp_path):
    spent, _ = spent_by_step(oracle)
    k = int(np.argmax(np.diff(spent)))  # the step with the longest phase
    assert spent[k + 1] - spent[k] > 4
    limit, more = spent[k + 1] - 2, cg.Mapping(1e-14) | cg.Steps(6)
    path = tmp_path / "c"
    cut = solved(stop=more | cg.Calls(limit, oracle), checkpoint=path)
    before = solved(stop=cg.Mapping(1e-14) | cg.Steps(k), output="last")
    assert cut.status == "out_of_budget" and cut.counts[oracle] <= limit
    assert cut.steps == k + 1 and cut.lowest.fun < before.fun
    # the checkpoint has the step before, so that a resumed run has the bits of one that was not cut
    resumed = solved(stop=more | cg.Calls(10**6, oracle), checkpoint=path, resume=True)
    whole = solved(stop=more | cg.Calls(10**6, oracle))
    assert np.asarray(resumed.x).tobytes() == np.asarray(whole.x).tobytes() and resumed.counts == whole.counts


@pytest.mark.parametrize(
    "fault", [KeyboardInterrupt(), MemoryError("no room"), BadOracle("wrong"), ZeroDivisionError("by zero")], ids=repr
)
def test_what_ends_a_phase_keeps_what_it_has_reached(fault, monkeypatch):
    F, domain, x0 = problem()
    spent, _ = spent_by_step("values")
    k = int(np.argmax(np.diff(spent)))
    before = solved(stop=cg.Mapping(1e-14) | cg.Steps(k), output="last")
    tally = Tally(F, spent[k + 1] - 1, fault)
    starts, improved = [], OnFaces.improved
    monkeypatch.setattr(OnFaces, "improved", lambda *known: starts.append(known[2].fun) or improved(*known))
    result = cg.minimize(tally, domain, x0, inner="corrective", tol=1e-14, on_interrupt="return")
    assert result.status == ("interrupted" if isinstance(fault, KeyboardInterrupt) else "failed")
    assert domain.contains(np.asarray(result.x), 1e-9)
    assert result.lowest.fun < starts[-1] < before.fun, (
        "lower than at the start of the phase, not only than before the step"
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, True),
        ({"polish": True}, True),
        ({"polish": False}, False),
        ({"schedule": "theory"}, False),
        ({"adaptive": False}, False),
        ({"inner": "condg"}, False),
        ({"inner": "exact"}, False),
        ({"method": "ncgs-ii"}, False),
        ({"method": "frank-wolfe", "inner": "auto"}, False),
        ({"smoothness": "estimate"}, True),
    ],
    ids=str,
)
def test_where_it_is_used(asked, expected, monkeypatch):
    calls, improved = [], OnFaces.improved
    monkeypatch.setattr(OnFaces, "improved", lambda *known: calls.append(1) or improved(*known))
    solved(tol=1e-9, max_steps=4, **asked)
    assert bool(calls) == expected


def test_it_works_where_L_is_not_known():
    F, domain, x0 = problem()
    unknown = cg.Function(F.value, F.grad, F.shape)
    assert cg.minimize(unknown, domain, x0, inner="corrective", tol=1e-8).status == "converged"


def test_a_method_without_a_phase_refuses_it():
    with pytest.raises(TypeError, match="polish=True"):
        solved(method="frank-wolfe", inner="auto", polish=True)


def test_many_atoms_have_no_phase():
    F, domain, x0 = problem()
    known = cg.Problem(F, domain)
    schedule, inner = cg.practical(1e-12), cg.Corrective(5)
    solver = cg.solvers.NCGS(schedule, inner, adaptive=True)
    plain = list(islice(cg.iterate(known, solver, x0), 6))
    limited = list(islice(cg.iterate(known, OnFaces(solver, settings=FaceSettings(max_atoms=1)), x0), 6))
    free = list(islice(cg.iterate(known, OnFaces(solver), x0), 6))
    assert [s.fun for s in limited] == [s.fun for s in plain] and free[-1].fun < plain[-1].fun


def ill_conditioned():
    """A quadratic over a set that gives one vertex in a call; with plain sliding steps atoms are found long after each other."""
    domain, rng = cg.Hypersimplex(200, 8), np.random.default_rng(4)
    c = sum(p * domain.lmo(rng.standard_normal(200)) for p in rng.dirichlet(np.full(8, 5.0)))
    c, h = np.where(c > 0, c, -0.02), 1000 ** rng.random(200)
    F = cg.Function(lambda x: float(h @ (x - c) ** 2) / 2, lambda x: h * (x - c), 200, smoothness=1000.0)
    return F, domain, domain.atom(rng.standard_normal(200))


def walk(settings, monkeypatch, steps=2000):
    """The states up to a squared mapping of 1e-6, and for each phase its first gap, its limit and its last gap."""
    F, domain, x0 = ill_conditioned()
    phases, descend = [], OnFaces.descend

    def spied(self, F, face, gram, start, state, limit):
        phases.append([gap_of(start), limit, state.certificate.gap, None])
        for now, reached in descend(self, F, face, gram, start, state, limit):
            phases[-1][3] = gap_of(now)
            yield now, reached

    monkeypatch.setattr(OnFaces, "descend", spied)
    solver = OnFaces(cg.solvers.NCGS(cg.practical(1e-6), cg.Corrective(5), adaptive=True), 1e-6, 0.0, settings)
    states = []
    for state in islice(cg.iterate(cg.Problem(F, domain), solver, x0), steps):
        states.append(state)
        if state.certificate is not None and state.certificate.upper <= 1e-6:
            break
    return states, phases


def test_a_phase_begins_before_the_atoms_are_found_where_the_hull_matters_most(monkeypatch):
    asked = FaceSettings()
    states, phases = walk(asked, monkeypatch)
    before = [phase for phase in phases if phase[1] > 0]
    assert before, "no phase began while atoms were missing: it would prove nothing"
    assert all(first > asked.excess * gap and limit == gap for first, limit, gap, _ in before)
    assert any(phase[1] == 0 for phase in phases), "once the atoms are found, a phase goes to the end"
    assert sum(last is not None and last <= limit for _, limit, _, last in before) > len(before) / 2
    late, _ = walk(FaceSettings(excess=1e300), monkeypatch)
    assert len(states) < len(late) / 2
