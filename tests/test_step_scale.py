"""step_scale: a multiple of the theorem's step, certified for the theorem's step size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.driver.metrics import mapping
from condgrad.protocols import Problem
from condgrad.solvers import NCGS
from condgrad.solvers.frank_wolfe import FrankWolfe
from condgrad.solvers.ncgs_ii import NCGSII

SCALE = 5.0


@pytest.fixture
def problem() -> Problem:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 12))
    return Problem(cg.Quadratic(A + A.T, rng.normal(size=12)), cg.Simplex(12))


def states(solver: Any, problem: Problem, steps: int = 15, L: float | None = None) -> list[Any]:
    """The states of a run; with another L than the objective's where one is given."""
    state = solver.init(problem, problem.domain.start())
    found = [state if L is None else replace(state, L=L)]
    for _ in range(steps):
        found.append(solver.step(problem, found[-1]))
    return found


@pytest.mark.parametrize("method", [NCGS, NCGSII])
def test_the_steps_are_those_of_a_smaller_L(method: Any, problem: Problem) -> None:
    L = problem.objective.smoothness
    long = states(method(cg.practical(), cg.Exact(), step_scale=SCALE), problem)
    smaller = states(method(cg.practical(), cg.Exact()), problem, L=L / SCALE)
    plain = states(method(cg.practical(), cg.Exact()), problem)
    assert all(np.allclose(a.x, b.x, atol=1e-12) for a, b in zip(long, smaller, strict=True))
    assert not np.allclose(long[1].x, plain[1].x, atol=1e-3)


@pytest.mark.parametrize("method", [NCGS, NCGSII])
def test_certificates_are_for_the_theorems_step_size(method: Any, problem: Problem) -> None:
    gamma = 1 / (2 * problem.objective.smoothness)
    for state in states(method(cg.practical(), cg.CondG(20), step_scale=SCALE), problem)[1:]:
        true = mapping(problem, state.certificate.x, gamma)
        assert state.certificate.gamma == gamma
        assert state.certificate.lower <= true.upper * (1 + 1e-9) and true.lower <= state.certificate.upper * (1 + 1e-9)


@pytest.mark.parametrize("rule", ["short", "bounded"])
def test_frank_wolfe_multiplies_the_gap(rule: str, problem: Problem) -> None:
    state = states(FrankWolfe("bounded"), problem, 1)[-1]
    state = replace(state, L=100 * state.L)  # steps far below 1
    start = np.asarray(state.x)
    moved = [np.asarray(FrankWolfe(rule, scale).step(problem, state).x) - start for scale in (1.0, 2.0)]
    assert np.linalg.norm(moved[0]) > 1e-6 and np.allclose(moved[1], 2 * moved[0], atol=1e-12)


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("ncgs", {"step_scale": 0.5}, "give 1 or more"),
        ("ncgs", {"step_scale": float("nan")}, "step_scale"),
        ("ncgs", {"step_scale": 2.0, "adaptive": True}, "step_scale is for the fixed step"),
        ("ncgs", {"step_scale": 2.0, "stretch": 0.5}, "step_scale is for the fixed step"),
        ("ncgs-ii", {"step_scale": 0.5}, "give 1 or more"),
        ("frank-wolfe", {"step_scale": 2.0}, "step_scale is for the rules short and bounded"),
        ("frank-wolfe", {"step_scale": 0.5, "rule": "short"}, "give 1 or more"),
    ],
)
def test_what_it_can_not_be_is_refused_in_a_sentence(
    method: str, options: dict[str, Any], said: str, problem: Problem
) -> None:
    with pytest.raises(ValueError, match=said):
        cg.minimize(problem.objective, problem.domain, method=method, max_steps=2, **options)
