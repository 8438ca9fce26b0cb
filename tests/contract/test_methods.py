"""What every method of the registry must do; a new entry in METHODS gets all of this by being there."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
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
from condgrad.protocols import Objective, fits
from condgrad.testing import check_method


@every_walk
def test_every_method_keeps_its_contract(method, problem, inner):
    """Steps are pure, states have what the driver reads, iterates stay in the set, certificates are true, no oracle is called
    that the entry does not name, and runs repeat and resume."""
    example = case(problem)
    report = check_method(method, {problem: example.problem}, x0=example.x0, inner=INNERS[inner], steps=STEPS)
    assert report.passed and not report.notes, str(report)


@every_method
def test_every_method_keeps_its_contract_by_name(method):
    steps = 20 if method.name == "sagafw-s" else 12  # its estimate is poor before all terms have been drawn
    report = check_method(method.name, steps=steps)
    assert report.passed and not report.notes, str(report)


@every_walk
def test_a_step_certifies_the_point_where_the_gradient_was_taken(method, problem, inner):
    example = case(problem)
    for state in states_of(solver_of(method, example.problem, inner), example.problem, example.x0, 15):
        assert example.domain.contains(state.x)
        assert example.objective.smoothness == state.L
        assert state.descent is None or len(state.descent) == 3
        if state.certificate is not None:
            assert example.domain.contains(state.certificate.prox)
            assert state.certificate.x is state.descent.x


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
    example = case("convex simplex" if method.convex else "indefinite simplex")
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
            for state in states_of(solver, example.problem, example.x0, 15):
                if (proof := state.certificate) is None:
                    continue
                earned += 1
                exact = exact_mapping(example.objective, example.project, proof.x, proof.gamma)
                rounding = 1e-9 * (1 + exact)
                assert proof.lower - rounding <= exact <= proof.upper + rounding, (problem, state.k)
    assert (earned > 0) == method.certifies


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


@pytest.mark.parametrize(
    "name",
    [
        "frank-wolfe",
        "lazy-frank-wolfe",
        "boosted-frank-wolfe",
        "dca-frank-wolfe",
        "parameter-free-frank-wolfe",
        "away-step",
        "pairwise",
        "blended-pairwise",
        "fully-corrective",
    ],
)
def test_the_certified_gap_of_a_minimiser_is_its_rounding_and_not_0(name):
    """The computed gap of a vertex that minimises a linear function is exactly 0; the true one is only known up to rounding."""
    linear = cg.Quadratic(np.zeros((3, 3)), np.array([1e9, 2e9, 3e9]))
    problem = cg.Problem(linear, cg.Simplex(3))
    _, state = states_of(solver_of(cg.METHODS[name], problem), problem, np.array([1.0, 0.0, 0.0]), 1)
    assert state.certificate.gap == state.certificate.noise > 0
