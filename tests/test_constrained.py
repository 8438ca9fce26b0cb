"""Level conditional gradient: lockstep, certificates, rates, infeasible problems and refusals."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.problems import symmetric
from tests.reference import level

import condgrad as cg
from condgrad.checks import BadOracle
from condgrad.solvers.level_conditional_gradient import ConstrainedProblem, LevelConditionalGradient


def problem(seed: int = 0, d: int = 5) -> tuple[cg.Quadratic, cg.Simplex, list[cg.Quadratic], np.ndarray]:
    """A strongly convex quadratic on the simplex with an ellipsoid and a half-space; the start violates both."""
    rng = np.random.default_rng(seed)
    f = cg.Quadratic(symmetric(d, 0.5, 4.0, rng), rng.standard_normal(d))
    inside = np.full(d, 1 / d)
    ball = cg.Quadratic(2 * np.eye(d), -2 * inside, float(inside @ inside) - 0.1)
    normal = rng.standard_normal(d)
    half = cg.Quadratic(np.zeros((d, d)), normal, -float(normal @ inside) - 0.02)
    return f, cg.Simplex(d), [ball, half], np.eye(d)[np.argmax(normal)]


def best(f: Any, hs: list[Any], d: int) -> float:
    """The minimum, by scipy's SLSQP."""
    rows = [{"type": "ineq", "fun": lambda x, h=h: -h.value(x), "jac": lambda x, h=h: -h.grad(x)} for h in hs]
    rows.append({"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(d)})
    how = {"jac": f.grad, "bounds": [(0, 1)] * d, "constraints": rows, "tol": 1e-12}
    return float(minimize(f.value, np.full(d, 1 / d), **how).fun)


def walk(f: Any, domain: Any, hs: list[Any], x0: np.ndarray, steps: int) -> list[Any]:
    solver, asked = LevelConditionalGradient(), ConstrainedProblem(f, domain, tuple(hs))
    states = [solver.init(asked, x0)]
    for _ in range(steps):
        states.append(solver.step(asked, states[-1]))
    return states


@pytest.mark.parametrize("seed", range(4))
def test_it_walks_beside_its_reference(seed: int) -> None:
    f, domain, hs, x0 = problem(seed)
    states = walk(f, domain, hs, x0, 60)
    expected = level.run(f.value, f.grad, [h.value for h in hs], [h.grad for h in hs], domain.lmo, x0, 60)
    for state, (x, l) in zip(states, expected, strict=True):
        assert np.linalg.norm(state.x - x) <= 1e-10 and abs(state.level - l) <= 1e-10
    assert len({state.level for state in states}) > 2 and np.linalg.norm(states[-1].x - x0) > 0.1


@pytest.mark.parametrize("seed", range(4))
def test_level_and_residual_are_monotone_and_the_level_is_a_lower_bound(seed: int) -> None:
    f, domain, hs, x0 = problem(seed)
    least = best(f, hs, 5)
    states = walk(f, domain, hs, x0, 150)
    for before, after in pairwise(states):
        assert before.level <= after.level <= least + 1e-9
        assert np.linalg.norm(after.residuals) <= np.linalg.norm(before.residuals) * (1 + 1e-9)
        assert domain.contains(after.x)


@pytest.mark.parametrize("seed", range(4))
def test_the_result_is_certified(seed: int) -> None:
    f, domain, hs, x0 = problem(seed)
    least, tol = best(f, hs, 5), 0.03
    result = cg.minimize_constrained(f, domain, hs, x0, tol=tol)
    assert result.status == "converged" and result.gap <= tol and result.infeasibility <= tol
    assert result.lower_bound <= least + 1e-9 and result.fun <= least + tol
    assert result.infeasibility == max(0.0, *(h.value(result.x) for h in hs))
    assert result.verify(f, domain, hs) == pytest.approx(result.lower_bound, abs=1e-9)
    assert result.counts["lo"] == result.steps + 1 and result.counts["fo"] >= result.counts["lo"]
    assert result.counts["values"] % 3 == 0 and result.counts["po"] == result.counts["sfo"] == 0


def test_the_bound_on_the_number_of_steps() -> None:
    """16 M D^2/eps^2 + 8 log(R_0/eps) steps and 1 + log_{9/4}(4 a_0 (f* - l_0)/(3 eps^2)) changes of the level."""
    f, domain, hs, x0 = problem(1)
    states, eps = walk(f, domain, hs, x0, 1000), 0.03
    within = next(k for k, state in enumerate(states) if np.linalg.norm(state.residuals) <= eps)
    raised = sum(a.level < b.level for a, b in pairwise(states[: within + 1]))
    first, M = states[0], max(state.M for state in states) / 0.9
    R0 = float(np.linalg.norm(first.residuals))
    assert within - raised <= 16 * M * domain.diameter**2 / eps**2 + 8 * np.log(R0 / eps)
    assert raised <= 1 + np.log(4 * first.residuals[0] * (best(f, hs, 5) - first.level) / (3 * eps**2)) / np.log(9 / 4)


def test_a_constraint_may_have_its_own_tolerance() -> None:
    f, domain, hs, x0 = problem(2)
    result = cg.minimize_constrained(f, domain, hs, x0, tol=0.1, tol_constraints=0.02)
    assert result.status == "converged" and result.infeasibility <= 0.02 and result.gap <= 0.1
    assert result.verify(f, domain, hs) == pytest.approx(result.lower_bound, abs=1e-9)


def test_a_problem_without_feasible_points_is_certified_as_one() -> None:
    f, domain, _, x0 = problem(0)
    h = cg.Quadratic(np.zeros((5, 5)), np.ones(5), -0.5)  # sum x <= 1/2 on the simplex
    result = cg.minimize_constrained(f, domain, h, x0)
    assert result.status == "infeasible" and result.lower_bound == np.inf
    assert result.verify(f, domain, [h]) > 0


def test_a_start_below_the_level_is_led_back_to_feasible_points() -> None:
    """a = 0: f(x) is below every feasible value, and only the constraints decrease; that is not called infeasible."""
    f, domain, _, _ = problem(0)
    low = cg.minimize(f, domain, tol=1e-10)
    h = cg.Quadratic(2 * np.eye(5), -2 * np.full(5, 0.2), 0.2 - 0.05)  # |x - (0.2, ..)|^2 <= 0.05
    least = best(f, [h], 5)
    assert low.fun < least - 0.1 and h.value(low.x) > 0.1
    result = cg.minimize_constrained(f, domain, h, low.x, lower_bound=(low.fun + least) / 2, tol=0.03)
    assert result.status == "converged" and result.lower_bound <= least + 1e-9


def test_constraints_that_hold_everywhere_change_nothing() -> None:
    f, domain, _, x0 = problem(3)
    h = cg.Quadratic(np.zeros((5, 5)), np.ones(5), -2.0)
    result = cg.minimize_constrained(f, domain, h, x0, tol=1e-4)
    plain = cg.minimize(f, domain, tol=1e-10).fun
    assert result.status == "converged" and result.multipliers == (0.0,) and abs(result.fun - plain) <= 1e-4


def test_a_budget_ends_the_run_and_a_lower_bound_may_be_given() -> None:
    f, domain, hs, x0 = problem(0)
    result = cg.minimize_constrained(f, domain, hs, x0, tol=1e-9, max_steps=5, lower_bound=-100.0)
    assert result.status == "out_of_budget" and result.steps == 5 and "give more max_steps" in result.message
    assert result.counts["lo"] == 5


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"constraints": []}, ValueError, "There are no constraints"),
        (
            {"constraints": [lambda x: 0.0]},
            TypeError,
            "The constraint is of type function, an object with value and grad",
        ),
        ({"objective": cg.Quadratic(-np.eye(5))}, ValueError, "The objective Quadratic states that it is not convex"),
        (
            {"constraints": cg.Quadratic(-np.eye(5))},
            ValueError,
            "The constraint Quadratic states that it is not convex",
        ),
        ({"domain": 3}, TypeError, "has no lmo"),
        ({"tol": 0.0}, ValueError, "tol must be positive"),
        ({"x0": np.ones(5)}, ValueError, "x0 lies outside the set"),
        ({"x0": np.ones(4) / 4}, ValueError, "x0"),
        ({"max_steps": 0}, ValueError, "max_steps"),
        ({"max_steps": "x", "tol": 1e9}, ValueError, "max_steps"),
        ({"x0": "abc"}, ValueError, "x0 must be an array of real numbers"),
    ],
)
def test_refusals(change: dict[str, Any], error: type, said: str) -> None:
    f, domain, hs, x0 = problem()
    with pytest.raises(error, match=said):
        cg.minimize_constrained(**{"objective": f, "domain": domain, "constraints": hs, "x0": x0} | change)


def on_the_simplex(scale: float, offset: float, b: Any) -> tuple[cg.Quadratic, cg.Quadratic]:
    """f = offset sum(x) + <b, x> and h = scale (sum(x) - 1), which is 0 on the whole simplex."""
    zero, ones = np.zeros((6, 6)), np.ones(6)
    return cg.Quadratic(zero, offset * ones + b), cg.Quadratic(zero, scale * ones, -scale)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("scale", "offset"), [(1e17, 1.0), (1.0, 1e14), (1e4, 1e14), (1e17, 1e13)])
def test_rounding_errors_prove_nothing(seed: int, scale: float, offset: float) -> None:
    rng = np.random.default_rng(seed)
    f, h = on_the_simplex(scale, offset, rng.standard_normal(6))
    result = cg.minimize_constrained(f, cg.Simplex(6), h, rng.dirichlet(np.ones(6)), max_steps=100)
    lowest = float(f.grad(np.zeros(6)).min())
    assert result.status != "infeasible" and result.lower_bound <= lowest
    assert result.status != "converged" or result.fun <= lowest + 0.0101


class Listed:
    """A class of the user's own, with gradients that are lists."""

    def value(self, x: np.ndarray) -> Any:
        return float(x @ x)

    def grad(self, x: np.ndarray) -> Any:
        return list(2 * x)


class Nothing(Listed):
    def value(self, x: np.ndarray) -> Any:
        return None


def test_functions_and_sets_of_the_users_own() -> None:
    _, _, hs, x0 = problem()
    vertices = cg.user_set(lambda g: np.eye(5)[np.argmin(g)], (5,))
    found = [cg.minimize_constrained(Listed(), S, hs, list(x0), tol=1e-3) for S in (vertices, cg.Simplex(5))]
    assert [one.status for one in found] == ["converged"] * 2
    with pytest.raises(ValueError, match="x0 lies outside the set"):
        cg.minimize_constrained(Listed(), vertices, hs, 5 * x0)
    with pytest.raises(ValueError, match="The answer of value must be an array of real numbers, but got a NoneType"):
        cg.minimize_constrained(Nothing(), vertices, hs)
    opposite = cg.user_set(lambda g: np.eye(5)[np.argmax(g)], (5,), start=np.full(5, 0.2))
    with pytest.raises(BadOracle, match="The answer of lmo is worse than a point of the set"):
        cg.minimize_constrained(*problem()[:1], opposite, hs)


def test_a_lower_bound_above_a_feasible_value_is_refused() -> None:
    f = cg.Quadratic(np.eye(3))
    h = cg.Quadratic(np.zeros((3, 3)), np.array([1.0, 0.0, 0.0]), -0.6)
    with pytest.raises(ValueError, match="at a feasible point, below its lower bound 5: lower_bound is too high"):
        cg.minimize_constrained(f, cg.Simplex(3), h, lower_bound=5.0)


def test_minimize_says_where_constraints_go() -> None:
    f, domain, hs, _ = problem()
    with pytest.raises(TypeError, match="give them to condgrad"):
        cg.minimize(f, domain, constraints=hs)


def test_a_gradient_that_does_not_match_is_refused() -> None:
    f, domain, hs, x0 = problem()
    calls: list[int] = []

    def value(x: np.ndarray) -> float:
        calls.append(1)
        return float(len(calls))

    with pytest.raises(BadOracle, match="does not match its value"):
        cg.minimize_constrained(f, domain, cg.Function(value, hs[0].grad, 5), x0)
