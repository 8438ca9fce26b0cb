"""What every method of the registry must do; a new entry in METHODS gets all of this by being there."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from tests.contract.counting import tallied
from tests.contract.methods import (
    INNERS,
    STEPS,
    every_deterministic,
    every_method,
    every_walk,
    inners,
    solver_of,
    states_of,
    suited,
    unknown,
)
from tests.problems import case

import condgrad as cg
from condgrad.points import LowRank, SparsePlusLowRank
from condgrad.protocols import FiniteSum, Objective, fits

# --------------------------------------------------------------------------------------------------- states and steps


def leaves(thing):
    """All that a state is made of, arrays and numbers, in a fixed order."""
    if is_dataclass(thing):
        return [leaf for field in fields(thing) for leaf in leaves(getattr(thing, field.name))]
    if isinstance(thing, tuple):
        return [leaf for part in thing for leaf in leaves(part)]
    if isinstance(thing, SparsePlusLowRank):
        return [thing.values, thing.scale, *leaves(thing.low)]
    if isinstance(thing, LowRank):
        return [leaf for c, factors in thing.terms for leaf in (c, factors.U, factors.V)]
    return [thing]


def bits(state):
    return [leaf.tobytes() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves(state)]


def frozen(answer):
    for leaf in leaves(answer):
        if isinstance(leaf, np.ndarray):
            leaf.setflags(write=False)
    return answer


def read_only(target):
    """The same thing; every array that it answers with is read-only, so a method that writes into one fails."""
    names = [name for name in dir(target) if not name.startswith("_")]
    return SimpleNamespace(**{name: freezing(getattr(target, name)) for name in names})


def freezing(member):
    return (lambda *args: frozen(member(*args))) if callable(member) else member


@every_walk
def test_a_step_is_pure(method, problem, inner):
    example = case(problem)
    x0 = example.x0.copy()
    guarded = cg.Problem(read_only(example.objective), read_only(example.domain))
    solver = solver_of(method, guarded, inner)
    assert is_dataclass(solver) and type(solver).__dataclass_params__.frozen
    state = solver.init(guarded, frozen(x0))
    for _ in range(STEPS):
        for leaf in leaves(state):
            frozen(leaf)
        was = bits(state)
        once, twice = solver.step(guarded, state), solver.step(guarded, state)
        assert bits(once) == bits(twice)
        assert bits(state) == was
        state = once
    assert np.array_equal(x0, example.x0)


@every_walk
def test_states_have_what_the_driver_reads(method, problem, inner):
    example = case(problem)
    states = states_of(solver_of(method, example.problem, inner), example.problem, example.x0)
    assert [state.k for state in states] == list(range(STEPS + 1))
    assert np.array_equal(states[0].x, example.x0)
    for state in states:
        assert isinstance(state.x, np.ndarray) and state.x.shape == example.domain.shape
        assert example.objective.smoothness == state.L
        assert state.certificate is None or state.certificate.gap >= 0
        assert state.descent is None or len(state.descent) == 3
        assert is_dataclass(state) and type(state).__dataclass_params__.frozen


@every_walk
def test_iterates_stay_in_the_set(method, problem, inner):
    example = case(problem)
    for state in states_of(solver_of(method, example.problem, inner), example.problem, example.x0, 30):
        assert example.domain.contains(state.x)
        if state.certificate is not None:
            assert example.domain.contains(state.certificate.prox)


@every_walk
def test_a_step_certifies_the_truth(method, problem, inner):
    """It speaks of the point where the gradient was taken; and the gap, computed anew, is not above what is said."""
    example = case(problem)
    for state in states_of(solver_of(method, example.problem, inner), example.problem, example.x0):
        if state.certificate is not None:
            assert state.certificate.x is state.descent.x
            assert state.certificate.verify(example.problem).gap <= state.certificate.gap + 1e-9


@every_walk
def test_a_step_does_not_ask_for_what_it_was_not_promised(method, problem, inner):
    """Of a problem a method may use the oracles that its entry in the registry names, and no others."""
    example = case(problem)
    tally = tallied(example, method, inner, STEPS)[-1]
    used = {name.upper() for name in ("fo", "sfo", "ifo", "lo", "ub", "po") if tally[name]}
    allowed = set(method.oracles.split(", "))
    if fits(example.objective, FiniteSum):  # a full gradient is n term gradients, and a sample is a term
        allowed |= {"IFO"}
    if not method.deterministic:  # the first step size of SFW and its kin: one gradient and one linear oracle call
        allowed |= {"FO"}
    if inner == "spectral":  # certifies its gaps by upper bounds
        allowed |= {"UB"}
    assert used <= allowed


# ------------------------------------------------------------------------------------------------------ reproducible


def rows(trace):
    clocks = {"seconds", "cpu", "wall"}
    return [[str(getattr(row, f.name)) for f in fields(row) if f.name not in clocks] for row in trace]


def minimized(method, example, seed):
    """The path and the result of a run through the front door."""
    path = []
    result = cg.minimize(
        example.objective,
        example.domain,
        example.x0,
        method=method.name,
        seed=seed,
        max_steps=STEPS,
        tol=1e-12,
        validate=50,
        callback=lambda record, x: path.append(x.tobytes()),
    )
    return path, result


@every_method
def test_runs_are_reproducible_from_the_seed(method):
    for problem in suited(method):
        example = case(problem)
        (path, one), (again, two), (another, _) = (minimized(method, example, seed) for seed in (5, 5, 6))
        assert path == again
        assert one.x.tobytes() == two.x.tobytes()
        assert rows(one.trace) == rows(two.trace)
        assert one.counts == two.counts
        assert (path == another) == method.deterministic, problem


# -------------------------------------------------------------------------------------------------- unknown smoothness


@every_deterministic
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_smoothness_need_not_be_known(method, scale):
    """Convex where the method is for convex F. The squared mapping has the square of F's scale, and so has the tolerance."""
    example = case("convex simplex" if "convex" in method.assumes else "indefinite simplex")
    f = unknown(example.objective, scale)
    tol = 1e-3 * scale**2
    result = cg.minimize(f, example.domain, example.x0, method=method.name, tol=tol, max_steps=3000)
    assert result.status == "converged", result.message
    gamma = result.certificate.gamma
    assert exact_mapping(f, example.project, result.x, gamma) <= tol * (1 + 1e-6)


# -------------------------------------------------------------------------------------------------------- certificates


def exact_mapping(f, project, x, gamma):
    """|g(x, grad F(x), gamma)|^2 with the exact prox point."""
    return float(np.sum((x - project(x - gamma * f.grad(x))) ** 2)) / gamma**2


@every_deterministic
@pytest.mark.parametrize("schedule", [cg.practical(1e-2), cg.theory(30)], ids=["practical", "theory"])
@pytest.mark.parametrize("inner", INNERS)
def test_certificates_are_true(method, schedule, inner):
    earned = 0
    for problem in suited(method):
        if inner not in inners(problem):
            continue
        example = case(problem)
        for options in [{}, {"stretch": 1.0}] if "stretch" in method.options else [{}]:
            solver = solver_of(method, example.problem, inner, schedule, options=options)
            for state in states_of(solver, example.problem, example.x0, 30):
                if (proof := state.certificate) is None:
                    continue
                earned += 1
                exact = exact_mapping(example.objective, example.project, proof.x, proof.gamma)
                rounding = 1e-9 * (1 + exact)
                assert proof.lower - rounding <= exact <= proof.upper + rounding, (problem, state.k)
    assert earned > 0 or method.name == "cgs"


@every_method
def test_the_results_certificate_is_true(method):
    """Whatever a run returns with a certificate, earned or measured from outside, is as good as it says."""
    for problem in suited(method):
        example = case(problem)
        if not fits(example.objective, Objective):
            continue  # certified on a validation batch, which is not F
        result = cg.minimize(example.objective, example.domain, example.x0, method=method.name, max_steps=20, tol=1e-3)
        exact = exact_mapping(example.objective, example.project, result.x, result.certificate.gamma)
        rounding = 1e-9 * (1 + exact)
        assert result.certificate.lower - rounding <= exact <= result.certificate.upper + rounding
