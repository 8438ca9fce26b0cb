"""A function known by its values only: estimates, counts, runs and refusals."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.problems import case

import condgrad as cg
from condgrad.solvers import Setup, build

DIRECTIONS = ("gaussian", "coordinate")
METHODS = ("sfw", "momentum-sfw", "igt-sfw", "clipped-sfw", "one-sample-sfw", "stochastic-ncgs")


def of_values(problem: str = "indefinite l1", directions: str = "gaussian", **more: Any) -> cg.FunctionValues:
    F = case(problem).objective
    return cg.FunctionValues(F.value, F.shape, smoothness=F.smoothness, directions=directions, **more)


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_the_estimate_of_a_quadratic_is_the_projection_of_its_gradient_on_the_direction(directions: str) -> None:
    example, F = case("indefinite l1"), of_values(directions=directions)
    batch = F.draw(5, np.random.default_rng(0))
    d = len(example.x0)
    U = np.sqrt(d) * np.eye(d)[batch] if directions == "coordinate" else batch
    g = example.objective.grad(example.x0)
    assert np.allclose(F.term_rows(example.x0, batch), (U @ g)[:, None] * U, atol=1e-7)
    assert np.allclose(F.grad_terms(example.x0, batch), np.mean((U @ g)[:, None] * U, axis=0), atol=1e-7)


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_mean_and_second_moment_are_within_their_bounds(directions: str) -> None:
    """Of a function that is no quadratic, for a large mu. One-sided, five standard errors of 20,000 samples."""
    example, mu = case("sigmoid l1"), 0.2
    F, a, L = (
        of_values("sigmoid l1", directions, mu=mu),
        example.objective.grad(example.x0),
        example.objective.smoothness,
    )
    rows = F.term_rows(example.x0, F.draw(20_000, np.random.default_rng(1)))
    d, error = len(a), 5 * np.sqrt(rows.var(axis=0).sum() / len(rows))
    bias, c = (L * mu * (d + 3) ** 1.5 / 2, d + 2) if directions == "gaussian" else (L * mu * d / 2, d)
    assert np.linalg.norm(rows.mean(axis=0) - a) <= bias + error
    squares = (rows**2).sum(axis=1)
    assert squares.mean() <= 2 * c * a @ a + L**2 * mu**2 * c**3 / 2 + 5 * squares.std() / np.sqrt(len(rows))


def test_all_coordinates_together_are_the_gradient() -> None:
    example = case("sigmoid l1")
    F = of_values("sigmoid l1", "coordinate")
    assert np.allclose(F.grad_terms(example.x0, np.arange(6)), example.objective.grad(example.x0), atol=1e-6)


@pytest.mark.parametrize("directions", DIRECTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_a_sample_is_counted_as_two_values(method: str, directions: str) -> None:
    example, calls, T = case("indefinite l1"), [], 12
    F = example.objective

    def value(x: np.ndarray) -> float:
        calls.append(x)
        return F.value(x)

    objective = cg.FunctionValues(value, F.shape, smoothness=F.smoothness, directions=directions)
    problem = cg.Problem(objective, example.domain)
    options = {"batch": 3} | ({"initial_gap": 2.0} if "initial_gap" in cg.METHODS[method].options else {})
    solver = build(method, problem, Setup(cg.practical(1e-2), cg.CondG(5), T), options)
    list(islice(cg.iterate(problem, solver, example.x0), T + 1))
    made = len(calls)
    result = cg.run(problem, solver, example.x0, cg.Steps(T), validate=10)
    assert result.counts["sfo"] == result.counts["ifo"] == result.counts["fo"] == 0
    assert result.counts["values"] == made > 0 and made % 2 == 0


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_runs_come_near_the_minimum(directions: str) -> None:
    example = case("convex simplex")
    F = of_values("convex simplex", directions)
    best = cg.minimize(example.objective, example.domain, tol=1e-8).fun
    result = cg.minimize(F, example.domain, example.x0, method="momentum-sfw", batch=20, max_steps=400, validate=200)
    start = example.objective.value(example.x0) - best
    assert example.objective.value(result.x) - best < 0.1 * start


def test_the_lower_bound_spares_the_samples_of_the_first_step_size() -> None:
    example = case("convex simplex")
    F = of_values("convex simplex", lower_bound=-20.0)
    problem = cg.Problem(F, example.domain)
    solver = build("sfw", problem, Setup(cg.practical(1e-2), cg.CondG(5), 4), {"batch": 2})
    assert cg.run(problem, solver, example.x0, cg.Steps(4), validate=10).counts["values"] == 1 + 2 * 2 * 4


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: of_values(directions="sphere"), ValueError, "gaussian"),
        (lambda: of_values(mu=0.0), ValueError, "mu of FunctionValues must be positive"),
        (lambda: cg.FunctionValues(lambda x: 0.0, None), TypeError, "give shape="),
        (
            lambda: cg.minimize(of_values(), cg.L1Ball(6, 2.0), method="frank-wolfe"),
            TypeError,
            "needs value and grad, FunctionValues has none: use stochastic-ncgs",
        ),
    ],
)
def test_refusals(make: Any, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        make()


# ------------------------------------------------------------------------------------------------- sums and expectations


def sum_of_values(problem: str = "sigmoid l1", calls: list[int] | None = None, **more: Any) -> cg.FunctionValuesSum:
    """The sum of a case, known by the values of its terms; ``calls`` gets the number of values of each call."""
    F = case(problem).objective

    def term_values(x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        if calls is not None:
            calls.append(len(batch))
        return F.loss.value(F.A[batch] @ x, F.y[batch])

    constants = {name: getattr(F, name) for name in ("smoothness", "term_smoothness", "mean_square_smoothness")}
    return cg.FunctionValuesSum(term_values, F.n_terms, F.shape, **constants, **more)


def test_differences_of_terms_are_their_gradients() -> None:
    example, F = case("sigmoid l1"), sum_of_values()
    x, batch = example.x0, np.array([3, 0, 3])
    error = F.smoothness * F.mu * np.sqrt(6) / 2
    assert np.linalg.norm(F.grad(x) - example.objective.grad(x)) <= error + 1e-9
    rows = [example.term_grad(x, i) for i in batch]
    assert np.allclose(F.term_rows(x, batch), rows, atol=1e-5) and F.term_rows(x, batch).shape == (3, 6)
    assert np.allclose(F.grad_terms(x, batch), np.mean(rows, axis=0), atol=1e-5)
    assert F.value(x) == pytest.approx(example.objective.value(x), abs=1e-15)


@pytest.mark.parametrize("method", ["acc-szofw", "spider-fw", "sagafw", "ncgs-vr", "storc", "ncgs", "frank-wolfe"])
def test_values_of_terms_are_counted(method: str) -> None:
    calls: list[int] = []
    F, domain, T = sum_of_values(calls=calls), case("sigmoid l1").domain, 6
    problem = cg.Problem(F, domain)
    solver = build(method, problem, Setup(cg.practical(1e-2), cg.CondG(5), T), {})
    list(islice(cg.iterate(problem, solver, domain.start()), T + 1))
    made = sum(calls)
    counts = cg.run(problem, solver, domain.start(), cg.Steps(T)).counts
    assert counts["values"] == made > 0 and counts["fo"] == counts["ifo"] == 0


def test_certificates_of_differences_include_their_error() -> None:
    """mu is so large that the error of the differences decides the bound, and the true mapping is within it."""
    example = case("sigmoid l1")
    for mu in (1e-6, 0.05):
        F = sum_of_values(mu=mu)
        result = cg.minimize(F, example.domain, tol=1e-12, max_steps=200)
        true = cg.minimize(example.objective, example.domain, result.x, max_steps=0, measure=True).certificate.lower
        error = F.smoothness * mu * np.sqrt(6) / 2
        assert true <= result.certificate.upper and error**2 <= result.certificate.upper
        assert result.status != "converged"


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_samples_of_values_have_one_xi_and_one_direction(directions: str) -> None:
    """f(x, xi) = |x|^2/2 - <xi, x>: the estimate is the projection of x - xi on u, and its difference at two points has no xi."""
    F = cg.FunctionValuesExpectation(
        lambda size, rng: rng.normal(size=(size, 3)),
        lambda x, xi: x @ x / 2 - xi @ x,
        3,
        smoothness=1.0,
        directions=directions,
    )
    batch, x, y = F.draw(4, np.random.default_rng(0)), np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.0, 0.0])
    U = np.sqrt(3) * np.eye(3)[batch["u"]] if directions == "coordinate" else batch["u"]
    expected = np.sum(U * (x - batch["xi"]), axis=1)[:, None] * U
    assert np.allclose(F.term_rows(x, batch), expected, atol=1e-8)
    assert np.allclose(F.term_rows(x, batch) - F.term_rows(y, batch), (U @ (x - y))[:, None] * U, atol=1e-7)
    assert np.allclose(F.grad_terms(x, batch[1:]), expected[1:].mean(axis=0), atol=1e-8)


def test_acc_szofw_star_minimises_an_expectation_of_values() -> None:
    calls: list[int] = []

    def sample_value(x: np.ndarray, xi: np.ndarray) -> float:
        calls.append(1)
        return float((x - xi) @ (x - xi)) / 2

    F = cg.FunctionValuesExpectation(
        lambda size, rng: rng.normal([0.7, 0.2, 0.9], 0.3, (size, 3)), sample_value, 3, smoothness=1.0
    )
    problem, T = cg.Problem(F, cg.Simplex(3)), 200
    options = {"batch": 5, "sample": 20, "initial_gap": 1.0}
    solver = build("acc-szofw-star", problem, Setup(cg.practical(), cg.CondG(), T), options)
    last = list(islice(cg.iterate(problem, solver, np.eye(3)[1]), T + 1))[-1]
    assert np.abs(last.x - [0.4, 0.0, 0.6]).max() < 0.1
    assert len(calls) == 2 * (20 + 2 * 5 * (T - 1))


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: cg.FunctionValuesSum(lambda x, batch: batch, 3, 2), ValueError, "give term_smoothness="),
        (lambda: cg.FunctionValuesSum(lambda x, batch: batch, 0, 2, 1.0), ValueError, "n_terms"),
        (lambda: cg.FunctionValuesSum(lambda x, batch: 1.0, 3, 2, 1.0).value(np.zeros(2)), ValueError, "term_values"),
        (lambda: cg.FunctionValuesSum(3, 3, 2, 1.0), TypeError, "term_values is of type int"),
        (lambda: cg.FunctionValuesExpectation(lambda s, r: 0, 1.0, 2), TypeError, "sample_value is of type float"),
        (
            lambda: cg.FunctionValuesExpectation(lambda s, r: np.zeros(s), lambda x, xi: 0.0, None),
            TypeError,
            "give shape=",
        ),
    ],
)
def test_refusals_of_sums_and_expectations(make: Any, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        make()
