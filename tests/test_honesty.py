"""Attacks on ``converged``: whatever a solver, an inner solver or a rule claims, it is said of nothing that is not so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.contract.methods import every_method, solver_of, suited
from tests.driving import CONVEX, SIMPLEX, X0
from tests.problems import EXPECTATIONS, case

import condgrad as cg
from condgrad.driver.stopping import Rule
from condgrad.protocols import Prox, Reason, Record
from condgrad.solvers.states import State

TOL = 1e-8


@dataclass(frozen=True)
class Liar:
    """A method whose every step claims to have been certified."""

    solver: Any
    lie: Any

    def init(self, problem: cg.Problem, x0: np.ndarray) -> Any:
        return self.solver.init(problem, x0)

    def step(self, problem: cg.Problem, state: Any) -> Any:
        return self.lie(self.solver.step(problem, state))


def certified(state: Any, x: np.ndarray, prox: np.ndarray, gamma: float, **more: Any) -> Any:
    return replace(state, certificate=cg.Certificate(x, prox, gamma, 0.0), **more)


LIES = {
    "no gap": lambda state: certified(state, state.x, state.x, 1 / (2 * state.L)),
    "a long step": lambda state: certified(state, state.x, state.x, 1e15),
    "a small L": lambda state: certified(state, state.x, state.x, 1e15, L=1e-15),
    "not a number": lambda state: certified(state, state.x, state.x + np.nan, 1 / (2 * state.L)),
    "a negative gap": lambda state: replace(
        state, certificate=cg.Certificate(state.x, state.x, 1 / (2 * state.L), -1e300)
    ),
    "a witness outside": lambda state: certified(state, state.x, 1e3 + state.x, 1 / (2 * state.L)),
}


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("output", ["best", "last", "lowest"])
@every_method
def test_no_solver_is_believed(method: Any, lie: str, output: str) -> None:
    example = slow(method)
    solver = Liar(solver_of(method, example.problem), LIES[lie])
    stop = cg.Mapping(TOL) | cg.Steps(3)
    for measure in (False, True):
        result = cg.run(example.problem, solver, example.x0, stop, output=output, measure=measure, validate=50)
        true = mapping(example, result.x)
        assert true > TOL or lie == "a small L"  # with which steps are so long that they may lead to a solution
        assert result.status != "converged" or true <= TOL, result.message
        assert result.certificate is None or true <= result.certificate.upper * (1 + 1e-6)


def slow(method: Any) -> Any:
    """A problem that the method can see and that nobody solves in three steps."""
    return case("convex simplex" if method.sees == "gradient" else "welsch simplex")


def mapping(example: Any, x: np.ndarray) -> float:
    """|g|^2 at x for gamma = 1/(2L), with the exact prox point."""
    gamma = 1 / (2 * example.objective.smoothness)
    return float(np.sum((x - example.project(x - gamma * example.objective.grad(x))) ** 2)) / gamma**2


@dataclass(frozen=True)
class Lazy:
    """An inner solver that is done before it begins."""

    def init(self, domain: Any, x: np.ndarray) -> None:
        return None

    def solve(self, domain: Any, g: Any, u: Any, gamma: float, stop: Any, memory: None) -> Prox:
        return Prox(u, 0.0, memory)


@pytest.mark.parametrize("method", [m for m in cg.METHODS.values() if m.slides], ids=lambda m: m.name)
def test_no_inner_solver_is_believed(method: Any) -> None:
    for problem in suited(method):
        if problem in EXPECTATIONS:
            continue
        example = case(problem)
        result = cg.minimize(
            example.objective, example.domain, example.x0, method=method.name, inner=Lazy(), tol=TOL, max_steps=4
        )
        assert mapping(example, result.x) > TOL or problem == "indefinite simplex"
        assert mapping(example, result.x) <= TOL or not result.success, problem


OUTSIDE = {
    "with contains": SIMPLEX,
    "with nothing but a linear oracle": cg.user_set(SIMPLEX.lmo, 3),
    "with a projection": cg.user_set(SIMPLEX.lmo, 3, project=SIMPLEX.project),
}


@pytest.mark.parametrize("domain", OUTSIDE.values(), ids=OUTSIDE)
def test_no_point_outside_is_called_a_solution(domain: Any) -> None:
    """The gradient is 0 at 0, which is not on the simplex: a witness that every oracle call confirms."""
    zero = np.zeros(3)
    solver = Liar(
        solver_of(cg.METHODS["frank-wolfe"], cg.Problem(CONVEX, domain)), lambda s: certified(s, zero, zero, 0.1)
    )
    result = cg.run(cg.Problem(CONVEX, domain), solver, X0, cg.Mapping(TOL) | cg.Steps(3))
    assert result.status == "failed" and "the point that is returned lies outside of the set" in result.message
    assert result.certificate is None


@dataclass(frozen=True)
class Lucky(Rule):
    """A rule that is satisfied with anything."""

    def __call__(self, record: Record, trace: Sequence[Record]) -> Reason | None:
        return Reason("converged", "I am sure of it.") if record.k >= 2 else None

    def progress(self, record: Record, trace: Sequence[Record]) -> float:
        return 0.0


@every_method
def test_no_rule_is_believed_that_looks_at_no_certificate(method: Any) -> None:
    example = slow(method)
    for output in ("best", "last"):
        result = cg.minimize(
            example.objective, example.domain, example.x0, method=method.name, stop=Lucky() | cg.Steps(4), output=output
        )
        assert result.status in ("unverified", "out_of_budget") and not result.success


@pytest.mark.parametrize("method", [m for m in cg.METHODS.values() if m.deterministic], ids=lambda m: m.name)
def test_a_lying_objective_is_noticed_where_it_is_asked_for(method: Any) -> None:
    """A gradient of 0 certifies every point: nothing but its function tells that it is wrong."""
    liar = cg.Function(CONVEX.value, np.zeros_like, (3,), smoothness=3.0, lower_smoothness=0.0)
    with pytest.raises(ValueError, match="The gradient does not match the function"):
        cg.minimize(liar, SIMPLEX, X0, method=method.name, check_gradient=True)


def test_no_tiny_L_is_believed_where_none_is_given() -> None:
    """With a huge step the mapping of any point is small."""
    Q = np.diag([1.0, -2.0, 3.0])
    F = cg.Function(lambda x: float(x @ Q @ x), lambda x: 2 * Q @ x, (3,))

    class Tiny:
        def init(self, problem: Any, x0: Any) -> Any:
            return self.said(problem, State(k=0, x=x0, L=1e-12))

        def step(self, problem: Any, state: Any) -> Any:
            return self.said(problem, replace(state, k=state.k + 1))

        def said(self, problem: Any, state: Any) -> Any:
            vertex = problem.domain.lmo(problem.objective.grad(state.x))
            return replace(state, certificate=cg.Certificate(state.x, vertex, 5e11, 0.0))

    problem = cg.Problem(F, cg.Simplex(3))
    result = cg.run(problem, Tiny(), np.array([0.3, 0.5, 0.2]), cg.Mapping(1e-9) | cg.Steps(5))
    assert result.status != "converged"
