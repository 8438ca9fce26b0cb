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
