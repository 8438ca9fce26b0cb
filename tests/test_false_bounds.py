"""Certificates that were false, each once: gradients in few digits, sums that cancel, tiny sets, tolerances just missed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.solvers.states import State


class Single:
    """By protocol, with a gradient in float32, as an array or a list."""

    shape, smoothness, lower_smoothness, lower_bound, value_and_grad = (20,), 1.0, None, None, None

    def __init__(self, listed: bool):
        rng = np.random.default_rng(0)
        self.q, self.b, self.listed = rng.uniform(0.5, 1, 20), 1e3 + 0.05 * rng.standard_normal(20), listed

    def value(self, x: np.ndarray) -> float:
        return float(x @ (self.q * x) / 2 + self.b @ x)

    def grad(self, x: np.ndarray) -> Any:
        found = (self.q * x + self.b).astype(np.float32)
        return list(found) if self.listed else found


def of_function(objective: Any) -> Any:
    return cg.Function(objective.value, objective.grad, 20, smoothness=1.0)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("kind", [lambda F: F, of_function], ids=["protocol", "Function"])
def test_a_gradient_in_float32_counts_as_float32(kind: Any, listed: bool) -> None:
    F, domain = Single(listed), cg.Simplex(20)
    result = cg.minimize(kind(F), domain, np.eye(20)[0], tol=1e-10)
    x = result.x
    true = 4 * np.sum((x - domain.project(x - (F.q * x + F.b) / 2)) ** 2)
    assert result.status == "unverified" and true <= result.certificate.upper


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")  # differences of such gradients are rounding too
@pytest.mark.parametrize("method", ["ncgs", "projected-gradient"])
def test_a_gradient_whose_terms_cancel_errs_by_their_size(method: str) -> None:
    """A'r with r orthogonal to the columns of A, and large."""
    rng = np.random.default_rng(0)
    A, r = rng.standard_normal((50, 5)), rng.standard_normal(50)
    for _ in range(3):
        r -= A @ np.linalg.lstsq(A, r, rcond=None)[0]
    F, ball = cg.LinearModel(A, 1e12 * r + A @ rng.standard_normal(5), cg.Squared()), cg.L2Ball(5, 100.0)
    result = cg.minimize(F, ball, method=method, tol=1e-9)
    x, wide = result.x.astype(np.longdouble), A.astype(np.longdouble)
    grad = (wide.T @ (wide @ x - F.y) / 50).astype(float)
    true = 4 * F.smoothness**2 * np.sum((result.x - ball.project(result.x - grad / (2 * F.smoothness))) ** 2)
    assert result.certificate.lower <= true <= result.certificate.upper
    assert result.status != "converged" or true <= 1e-9


def test_an_objective_may_state_the_size_of_its_terms() -> None:
    class Stated(Single):
        def grad_scale(self, x: np.ndarray) -> float:
            return 1e12

    domain, x0 = cg.Simplex(20), np.eye(20)[0]
    plain, stated = (cg.minimize(F(False), domain, x0, tol=1e-1, max_steps=20) for F in (Single, Stated))
    assert stated.certificate.rounding > 1e3 * plain.certificate.rounding


@pytest.mark.parametrize("method", ["ncgs", "projected-gradient"])
def test_what_converged_is_within_the_tolerance(method: str) -> None:
    """The tolerance is a bound that the method itself reported: the check's own differs in the last digits."""
    for seed in range(3):
        Q = np.random.default_rng(seed).standard_normal((30, 30))
        F, domain, x0 = cg.Quadratic((Q + Q.T) / 2), cg.L1Ball(30, 2.0), np.eye(30)[0]
        trace = cg.minimize(F, domain, x0, method=method, tol=1e-30, max_steps=30).trace["mapping"]
        for tol in [float(bound) for bound in trace if np.isfinite(bound) and bound > 1e-9][::3]:
            result = cg.minimize(F, domain, x0, method=method, tol=tol)
            assert result.status != "converged" or result.certificate.upper <= tol


def test_a_budget_that_ends_far_from_the_tolerance_is_no_lack_of_precision() -> None:
    rng = np.random.default_rng(0)
    Q, b = rng.standard_normal((12, 12)), rng.standard_normal(12)
    for tol in (1e-12, 1e-13, 1e-14):
        for method in ("ncgs-ii", "frank-wolfe", "ncgs"):
            result = cg.minimize(cg.Quadratic(Q @ Q.T / 12, b), cg.L1Ball(12, 3.0), method=method, tol=tol, max_steps=5)
            assert result.status == "out_of_budget" or result.certificate.exhausted(tol), result.message


def test_none_for_value_and_grad_stands_for_no_such_method() -> None:
    assert cg.minimize(Single(False), cg.Simplex(20), np.eye(20)[0], tol=1.0).status == "converged"


@pytest.mark.parametrize(
    ("answer", "what"), [(1.0, "of type float"), (None, "of type NoneType"), ((1, 2, 3), "3 things")]
)
def test_an_answer_that_is_no_pair_is_refused_in_one_sentence(answer: Any, what: str) -> None:
    class Odd(Single):
        smoothness = None

        def value_and_grad(self, x: np.ndarray) -> Any:
            return answer

    with pytest.raises(ValueError, match=f"The answer of value_and_grad is {what}, a pair"):
        cg.minimize(Odd(False), cg.Simplex(20), np.eye(20)[0])


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("diameter", [False, True])
@pytest.mark.parametrize("size", [1e-7, 1e-9])
@pytest.mark.parametrize("centre", [0.0, 1e-2])
def test_a_start_outside_of_a_tiny_set_is_refused(size: float, diameter: bool, project: bool, centre: float) -> None:
    ends = centre + np.array([[0.0, 0.0], [size, 0.0]])
    near = lambda x: np.array([min(max(x[0], ends[0, 0]), ends[1, 0]), centre])  # noqa: E731
    domain = cg.user_set(
        lambda d: ends[np.argmin(ends @ d)], 2, size if diameter else None, project=near if project else None
    )
    F = cg.Quadratic(np.eye(2) / size)
    with pytest.raises(ValueError, match="outside the set"):
        cg.minimize(F, domain, ends[0] + [0.0, 5 * size])
    assert cg.minimize(F, domain, ends.mean(axis=0), max_steps=5).status != "failed"


@pytest.mark.parametrize("output", ["last", "lowest"])
def test_the_lowest_point_is_known_whatever_steps_are_recorded(output: str) -> None:
    F = cg.Quadratic(np.diag([1.0, 2.0, 3.0]), np.array([-3.0, 0.0, 0.0]))
    result = cg.minimize(F, cg.Simplex(3), output=output, every=7, tol=1e-3)
    assert result.status == "converged" and result.lowest.fun <= result.fun
    assert result.fun <= cg.minimize(F, cg.Simplex(3), tol=1e-3).fun + 1e-9


def test_no_tiny_L_is_taken_where_the_witness_is_the_point_itself() -> None:
    class Tiny:
        def init(self, problem: cg.Problem, x: np.ndarray) -> State:
            return State(k=0, x=x, L=1e-9)

        def step(self, problem: cg.Problem, state: State) -> State:
            own = cg.Certificate(state.x, state.x, 1 / (2 * state.L), 0.0)
            return replace(state, k=state.k + 1, certificate=own)

    Q, b = np.diag([1.0, 2.0, 3.0]), np.array([-0.3, 0.1, 0.2])
    F = cg.Function(lambda x: float(x @ Q @ x / 2 + b @ x), lambda x: Q @ x + b, 3)
    result = cg.minimize(F, cg.Simplex(3), np.eye(3)[0], method=Tiny(), max_steps=5)
    assert result.status != "converged" and result.certificate.gamma < 10
