"""What every inner solver must do: a prox point of the set, to the accuracy that was asked for, with its true gap."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contract.inners import (
    CURVED,
    DOMAINS,
    POINTS,
    POLYTOPES,
    assert_honest,
    every_frugal_pair,
    every_pair,
    every_rule,
    every_seed,
    moved,
    pairs,
    rounding,
    solve,
    subproblem,
    watched,
)
from tests.problems import projection

import condgrad as cg
from condgrad.inner import CORRECTIVE_CALLS, INNERS, absolute, inner_solver, relative, with_gap
from condgrad.points import ActiveSet
from condgrad.points.rounding import gap_rounding
from condgrad.testing import check_inner


@pytest.mark.parametrize("entry", INNERS.values(), ids=INNERS.keys())
def test_every_inner_solver_keeps_its_contract(entry):
    report = check_inner(entry.factory())
    assert report.passed and not report.notes, str(report)


@every_pair
@every_rule
@every_seed
def test_the_point_is_what_it_is_said_to_be(name, domain, stop, seed):
    g, u, gamma = subproblem(domain, seed)
    (p, gap, _), _ = solve(name, domain, g, u, gamma, stop)
    noise = rounding(domain, g, gamma)
    assert domain.contains(p)
    assert_honest(name, domain, g, u, gamma, p, gap)
    assert gap - noise <= stop(moved(p, u, gamma))


@every_pair
@every_rule
@every_seed
def test_lemma_1(name, domain, stop, seed):
    """|g~ - g|^2 <= V/gamma, against the exact projection."""
    g, u, gamma = subproblem(domain, seed)
    (p, gap, _), _ = solve(name, domain, g, u, gamma, stop)
    psi = projection(domain)(u - gamma * g)
    assert np.linalg.norm(p - psi) / gamma <= np.sqrt(gap / gamma) + 1e-9 * (1 + np.linalg.norm(g))


@every_frugal_pair
@pytest.mark.parametrize("max_calls", [1, 2, 3, 7])
def test_the_budget_is_kept_to_the_call(name, domain, max_calls):
    never = absolute(-1.0)
    for seed in range(4):
        g, u, gamma = subproblem(domain, seed)
        (p, gap, _), calls = solve(name, domain, g, u, gamma, never, max_calls)
        assert calls <= max_calls
        assert domain.contains(p)
        if np.isfinite(gap):
            assert_honest(name, domain, g, u, gamma, p, gap)
        else:
            assert name in ("condg", "corrective") and calls == max_calls, (
                "the last gap is left unmeasured at the limit"
            )
        if calls < max_calls:  # then it ended because nothing was left to gain
            assert gap <= rounding(domain, g, gamma)


def test_condg_makes_as_many_steps_as_it_has_calls():
    """Frank-Wolfe with exact line search on the prox subproblem, by hand: k steps take k oracle calls, from the first on."""
    domain = POLYTOPES["simplex"]
    g, u, gamma = subproblem(domain, 1)
    expected = u
    for max_calls in range(1, 8):
        slope = g + (expected - u) / gamma
        d = domain.lmo(slope) - expected
        expected = expected + min(1.0, -gamma * np.sum(slope * d) / np.sum(d**2)) * d
        (p, gap, _), calls = solve("condg", domain, g, u, gamma, absolute(1e-12), max_calls)
        assert calls == max_calls
        assert np.allclose(p, expected, rtol=0, atol=1e-13) and not np.array_equal(p, u)
        assert gap == np.inf, "not measured: nobody has asked for it"


@pairs(DOMAINS, ("condg",))
def test_the_gap_that_condg_has_not_measured_is_measured_by_one_call(name, domain):
    for seed in range(4):
        g, u, gamma = subproblem(domain, seed)
        prox, _ = solve(name, domain, g, u, gamma, absolute(0.0), 2)
        region, calls = watched(domain)
        measured = with_gap(prox, region, g, u, gamma)
        assert len(calls) == (prox.gap == np.inf)
        assert measured.point is prox.point
        assert_honest(name, domain, g, u, gamma, measured.point, measured.gap)
        assert with_gap(measured, region, g, u, gamma) is measured


@pytest.mark.parametrize(("method", "proxes"), [("ncgs", 1), ("ncgs-ii", 2), ("ncgs-vr", 1), ("cgs", 1)])
@pytest.mark.parametrize("measure", [False, True])
def test_a_method_pays_for_the_gap_where_it_certifies_its_steps(method, proxes, measure):
    """One more call a step, and counted; none where nobody uses the certificate. The iterates are the same."""
    rng, domain, steps = np.random.default_rng(0), cg.Simplex(8), 12
    F = cg.LinearModel(rng.standard_normal((30, 8)), rng.standard_normal(30), cg.Welsch(2.0))
    options = {} if method in ("ncgs-ii", "cgs") else {"adaptive": False}
    never = cg.practical(eps=1e-300, c=1e-300)
    result = cg.minimize(
        F,
        domain,
        method=method,
        inner=cg.CondG(max_calls=1),
        schedule=never,
        stop=cg.Steps(steps),
        measure=measure,
        output="last",
        **options,
    )
    certifies = method in ("ncgs", "ncgs-ii") and not measure
    assert result.counts["lo"] == steps * (proxes + certifies)
    assert np.isfinite(result.trace["mapping"][1:]).any()
    other = cg.minimize(
        F, domain, method=method, inner=cg.CondG(1), schedule=never, stop=cg.Steps(steps), measure=not measure,
        output="last", **options,
    )  # fmt: skip
    assert np.array_equal(result.x, other.x) and not np.array_equal(result.x, domain.start())


@every_frugal_pair
def test_more_calls_do_not_hurt(name, domain):
    g, u, gamma = subproblem(domain, 2)

    def prox_value(max_calls):
        p = solve(name, domain, g, u, gamma, absolute(0.0), max_calls)[0].point
        return np.sum(g * p) + np.sum((p - u) ** 2) / (2 * gamma)

    values = np.array([prox_value(max_calls) for max_calls in range(1, 12)])
    assert np.all(np.diff(values) <= 1e-12 * (1 + np.abs(values).max()))


@every_pair
def test_zero_gradient(name, domain):
    _, u, gamma = subproblem(domain, 0)
    (p, gap, _), calls = solve(name, domain, np.zeros(domain.shape), u, gamma, absolute(1e-9))
    assert np.allclose(p, u, atol=1e-9)
    assert gap <= 1e-9
    assert calls <= 1


@every_pair
@every_rule
@every_seed
def test_from_a_vertex(name, domain, stop, seed):
    g, _, gamma = subproblem(domain, seed)
    vertex = domain.lmo(-g)  # the worst one
    (p, gap, _), _ = solve(name, domain, g, vertex, gamma, stop)
    assert domain.contains(p)
    assert_honest(name, domain, g, vertex, gamma, p, gap)
    best = domain.lmo(g)  # is optimal for a large gradient, and known to be after one call
    (p, gap, _), calls = solve(name, domain, 1e3 * g, best, gamma, absolute(1e-6))
    assert np.allclose(p, best, atol=1e-6)
    assert calls <= 1


@pairs(POINTS)
@every_seed
def test_a_set_of_one_point(name, domain, seed):
    g, u, gamma = subproblem(domain, seed)
    for stop in (absolute(0.0), relative(0.1, 0.0)):
        (p, gap, _), calls = solve(name, domain, g, u, gamma, stop)
        assert np.array_equal(p, domain.start()) and gap <= rounding(domain, g, gamma) and calls <= 1


@every_pair
def test_inputs_and_memory_are_not_written_to(name, domain):
    g, u, gamma = subproblem(domain, 3)
    solver = inner_solver(name, domain, 20)
    memory = solver.init(domain, u)
    for _ in range(3):
        if isinstance(memory, ActiveSet):
            stack = memory.atoms
            for array in (stack.rows, stack.indices, stack.values, memory.gram, memory.weights):
                array.setflags(write=False)
        once = solver.solve(domain, g, u, gamma, absolute(1e-3), memory)
        twice = solver.solve(domain, g, u, gamma, absolute(1e-3), memory)
        assert once.point.tobytes() == twice.point.tobytes() and once.gap == twice.gap
        memory = once.memory


@pytest.mark.parametrize("structured", [False, True])
def test_a_computed_gap_of_0_is_known_up_to_rounding_only(structured):
    """At a vertex that the direction asks for again, <direction, u - v> is computed as 0 exactly."""
    simplex, u, g, gamma = cg.Simplex(3), np.eye(3)[0], np.array([-1.0, 0.5, 1 / 3]), 0.7
    domain = simplex if structured else cg.user_set(simplex.lmo, 3, diameter=simplex.diameter)
    least = gap_rounding(g, u, u)
    for solver in (cg.CondG(), cg.Corrective()):
        prox = solver.solve(domain, g, u, gamma, absolute(0.0), solver.init(domain, u))
        assert np.array_equal(np.asarray(prox.point), u) and prox.gap >= least > 0, type(solver).__name__
        assert with_gap(prox._replace(gap=np.inf), domain, g, u, gamma).gap >= least


def test_a_stop_rule_says_how_large_a_gap_may_be_after_this_way():
    assert absolute(0.5)(0.0) == absolute(0.5)(100.0) == 0.5
    rule = relative(0.25, 0.1)
    assert rule(0.0) == rule(0.4) == 0.1 and rule(1.0) == 0.25


def test_inner_solvers_by_name():
    simplex, l3 = POLYTOPES["simplex"], CURVED["l3"]
    assert inner_solver("auto", simplex) == cg.Exact()
    assert inner_solver("auto", l3) == cg.Corrective() and inner_solver("auto", l3, 3) == cg.Corrective(3)
    assert inner_solver("auto", l3, 1000) == cg.Corrective(CORRECTIVE_CALLS)
    assert inner_solver("condg", simplex, 7) == cg.CondG(7)
    for spectral in (CURVED["nuclear"], CURVED["spectrahedron"], CURVED["fantope"]):
        assert inner_solver("auto", spectral) == inner_solver("spectral", spectral) == cg.Spectral()
        limited = inner_solver("auto", spectral, 7)
        assert isinstance(limited, cg.Spectral) and limited.max_calls <= 7 and limited.growth > 1
        assert inner_solver("exact", spectral) == cg.Exact()
    assert inner_solver("auto", cg.SpectralBall((3, 3))) == cg.Exact(), "whose projections have full rank"
    with pytest.raises(TypeError, match=r"^The exact inner solver needs a set that projects, LpBall does not: use '"):
        inner_solver("exact", l3)
    with pytest.raises(
        TypeError, match=r"^The spectral inner solver needs a spectral set .*, but Simplex is not a spectral set: use 'auto'"
    ):
        inner_solver("spectral", simplex)
    with pytest.raises(ValueError, match="Unknown inner solver 'correctiv': did you mean 'corrective'"):
        inner_solver("correctiv", simplex)


def test_a_budget_of_no_calls():
    domain = POLYTOPES["simplex"]
    g, u, gamma = subproblem(domain, 1)
    with pytest.raises(ValueError, match="max_calls"):
        solve("condg", domain, g, u, gamma, absolute(1e-2), 0)
