"""What every inner solver must do: a prox point of the set, to the accuracy that was asked for, with its true gap."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contract.inners import (
    CURVED,
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
)
from tests.problems import projection

import condgrad as cg
from condgrad.inner import absolute, inner_solver, relative
from condgrad.inner.corrective import Hull


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
        assert_honest(name, domain, g, u, gamma, p, gap)
        if calls < max_calls:  # then it ended because nothing was left to gain
            assert gap <= rounding(domain, g, gamma)


def test_condg_uses_the_budget_up():
    domain = POLYTOPES["simplex"]
    g, u, gamma = subproblem(domain, 1)
    for max_calls in (1, 2, 5, 50):
        (p, _, _), calls = solve("condg", domain, g, u, gamma, absolute(1e-12), max_calls)
        assert calls == max_calls
        assert (max_calls == 1) == np.array_equal(p, u), "one call only finds out how good u is"


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
        assert np.array_equal(p, domain.start()) and gap == 0 and calls <= 1


@every_pair
def test_inputs_and_memory_are_not_written_to(name, domain):
    g, u, gamma = subproblem(domain, 3)
    solver = inner_solver(name, domain, 20)
    memory = solver.init(domain, u)
    for _ in range(3):
        if isinstance(memory, Hull):
            for array in (*memory.atoms, memory.gram, memory.weights):
                array.setflags(write=False)
        once = solver.solve(domain, g, u, gamma, absolute(1e-3), memory)
        twice = solver.solve(domain, g, u, gamma, absolute(1e-3), memory)
        assert once.point.tobytes() == twice.point.tobytes() and once.gap == twice.gap
        memory = once.memory


def test_a_stop_rule_says_how_large_a_gap_may_be_after_this_way():
    assert absolute(0.5)(0.0) == absolute(0.5)(100.0) == 0.5
    rule = relative(0.25, 0.1)
    assert rule(0.0) == rule(0.4) == 0.1 and rule(1.0) == 0.25


def test_inner_solvers_by_name():
    simplex, l3 = POLYTOPES["simplex"], CURVED["l3"]
    assert inner_solver("auto", simplex) == cg.Exact()
    assert inner_solver("auto", l3, 7) == cg.Corrective(7)
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
        TypeError, match=r"^The spectral inner solver needs a spectral set .*, Simplex is none: use 'auto'"
    ):
        inner_solver("spectral", simplex)
    with pytest.raises(ValueError, match="Unknown inner solver 'correctiv': did you mean 'corrective'"):
        inner_solver("correctiv", simplex)


def test_a_budget_of_no_calls():
    domain = POLYTOPES["simplex"]
    g, u, gamma = subproblem(domain, 1)
    with pytest.raises(ValueError, match="max_calls"):
        solve("condg", domain, g, u, gamma, absolute(1e-2), 0)
