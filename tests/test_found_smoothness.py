"""Sliding methods for sums and expectations without a given L, and the monotone form of option II."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from tests.reference import found as reference
from tests.reference import momentum as flat_momentum

import condgrad as cg
from condgrad.driver.resolve import check_problem, with_smoothness
from condgrad.solvers import METHODS, Setup, build

SEED, STEPS = 3, 40
FINDS = [name for name, method in METHODS.items() if method.finds_smoothness]


def example(scale: float = 1.0, terms: int = 60) -> cg.Problem:
    """Robust regression; with a scale, in other units of x."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((terms, 6))
    y = A @ np.array([2.0, -1.0, 0, 0, 0, 1.0]) + np.where(rng.random(terms) < 0.1, 20.0, 0.0)
    return check_problem(cg.Problem(cg.LinearModel(scale * A, y, cg.Welsch(4.0)), cg.L1Ball(6, 3.0 / scale)))


def untold(problem: cg.Problem) -> cg.Problem:
    nothing = {"term_smoothness": None, "mean_square_smoothness": None}
    return cg.Problem(with_smoothness(problem.objective, None, **nothing), problem.domain)


def states(name: str, problem: cg.Problem, **options: Any) -> list[Any]:
    solver = build(name, problem, Setup(cg.practical(1e-12), cg.Exact(), STEPS, SEED), options)
    return list(islice(cg.iterate(problem, solver, problem.domain.start()), STEPS + 1))


@pytest.mark.parametrize("name", ["ncgs-vr", "ncgs-spider"])
def test_epochs_without_constants_walk_as_their_reference(name: str) -> None:
    problem = untold(example())
    F, domain = problem.objective, problem.domain
    x, L, lam = reference.epochs(
        F.value, lambda x, i: F.grad_terms(x, np.array([i])), 60, domain.project, domain.lmo, domain.start(), 4, 7, STEPS,
        SEED, recursive=name == "ncgs-spider",
    )  # fmt: skip
    walked = states(name, problem, epoch=4, batch=7)
    assert max(np.abs(state.x - one).max() for state, one in zip(walked, x, strict=True)) < 1e-10
    assert np.allclose([state.L for state in walked[1:]], L) and np.allclose([state.lam for state in walked[1:]], lam)
    assert len({round(step, 12) for step in lam}) > 3 and min(np.diff(lam)) < 0, "some epoch is undone"


def test_momentum_without_constants_walks_as_its_reference() -> None:
    problem = untold(example())
    F, domain, found = problem.objective, problem.domain, []
    mean = F.grad_terms
    batch = F.draw(16, np.random.default_rng((SEED, 0, 7)))
    L0 = 1e-3 * reference.first_curvature(lambda x: mean(x, batch), domain.lmo, domain.start())

    def step(k: int) -> float:
        return k ** (-1 / 3) / 4

    def grads(x: np.ndarray, I: np.ndarray) -> np.ndarray:
        return np.array([F.grad_terms(x, np.array([i])) for i in I])

    move = reference.probing(mean, domain.project, step, L0, SEED, F.draw, found)
    x = flat_momentum.run(
        F.draw, grads, move, domain.start(), lambda k: k ** (-2 / 3), 2, 5, STEPS, SEED, recursive=True
    )
    solver = build(
        "momentum-ncgs", problem, Setup(cg.practical(1e-12), cg.Exact(), STEPS, SEED), {"batch": 2, "sample": 5}
    )
    first = solver.init(problem, domain.start())
    assert np.isclose(first.L, 1e3 * L0)
    walked = list(islice(cg.iterate(problem, solver, domain.start(), replace(first, L=L0)), STEPS + 1))
    assert max(np.abs(state.x - one).max() for state, one in zip(walked, x, strict=True)) < 1e-10
    assert np.allclose([state.L for state in walked], found) and found[-1] > 100 * L0, "L grows"


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-3])
@pytest.mark.parametrize("name", FINDS)
def test_runs_that_are_told_nothing_converge_in_any_unit(name: str, scale: float) -> None:
    problem = untold(example(scale, 500))
    tol = 1e-4 * scale**2
    result = cg.minimize(problem.objective, problem.domain, method=name, tol=tol, max_steps=3000, seed=1)
    assert result.status == "converged"
    L = example(scale, 500).objective.term_smoothness
    assert np.all(result.trace["smoothness"] <= 2 * L), "every quotient is at most the constant of the terms"
    at_truth = cg.minimize(
        problem.objective, problem.domain, method=name, tol=tol, max_steps=3000, seed=1, smoothness="estimate"
    )
    assert at_truth.x.tobytes() == result.x.tobytes(), "smoothness='estimate' says the same"


@pytest.mark.parametrize("name", ["ncgs-vr", "ncgs-spider"])
def test_without_constants_no_snapshot_is_higher_than_the_one_before(name: str) -> None:
    problem = untold(example(terms=300))
    values = [problem.objective.value(state.snapshot.start) for state in states(name, problem, epoch=3, batch=2)[1:]]
    assert max(np.diff(values)) <= 0 and values[-1] < values[0]


@pytest.mark.parametrize("name", FINDS)
def test_the_theorems_ask_for_the_constant(name: str) -> None:
    problem = untold(example())
    with pytest.raises(ValueError, match=r"use stochastic-ncgs.*which find it with schedule='practical'"):
        cg.minimize(problem.objective, problem.domain, method=name, schedule="theory", max_steps=10)


@pytest.mark.parametrize("name", ["ncgs-vr", "ncgs-spider"])
def test_fixed_steps_need_a_constant_or_a_length(name: str) -> None:
    problem = untold(example())
    with pytest.raises(
        ValueError, match=r"adaptive=False needs the smoothness L.*leave adaptive out, or give lam= or smoothness="
    ):
        cg.minimize(problem.objective, problem.domain, method=name, adaptive=False)
    assert cg.minimize(problem.objective, problem.domain, method=name, lam=0.1, max_steps=5).steps == 5


@pytest.mark.parametrize("told", [True, False])
def test_option_ii_that_is_monotone_never_rises_and_restarts(told: bool) -> None:
    rng = np.random.default_rng(4)
    Q = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    F = cg.Quadratic((Q * np.geomspace(1e-3, 1.0, 40)) @ Q.T, 0.05 * rng.standard_normal(40))
    how: dict[str, Any] = {"method": "ncgs-ii", "tol": 1e-13, "max_steps": 400, "inner": "exact"}
    how["smoothness"] = None if told else "estimate"
    monotone, plain = (cg.minimize(F, cg.L1Ball(40, 3.0), monotone=m, **how) for m in (True, False))
    falls = np.diff(monotone.trace["fun"])
    assert max(falls) <= 1e-12 and max(np.diff(plain.trace["fun"])) > 1e-9, "only the plain form rises"
    assert monotone.status == "converged" and monotone.counts["fo"] <= plain.counts["fo"]


def test_a_step_of_the_monotone_form_is_that_of_option_ii_or_of_option_i() -> None:
    problem = example()
    F, domain, L = problem.objective, problem.domain, problem.objective.smoothness
    walked = states("ncgs-ii", problem, monotone=True)
    k, theta, restarts = 0, walked[0].x, 0
    for state, new in pairwise(walked):
        k += 1
        md = (1 - 2 / (k + 1)) * state.x + 2 / (k + 1) * theta
        ag = domain.project(md - F.grad(md) / (2 * L))
        if F.value(ag) > F.value(state.x) + 1e-12 * abs(F.value(state.x)) and k > 1:
            k, md, restarts = 1, state.x, restarts + 1
            theta, ag = state.x, domain.project(md - F.grad(md) / (2 * L))
        theta = domain.project(theta - k / (4 * L) * F.grad(md))
        assert np.abs(new.x - ag).max() < 1e-12 and np.abs(new.theta - theta).max() < 1e-12
        assert new.since_restart == k and new.fun == pytest.approx(F.value(ag))
    assert restarts > 0
