"""Defects that were found and mended, each with the test that would have found it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.driving import CONVEX, SIMPLEX, X0, a_record, an_expectation, function, passing

import condgrad as cg
from condgrad.certificate import Certificate
from condgrad.driver import wolfe_gap
from condgrad.driver.resolve import proven_outside
from condgrad.inner import absolute


@pytest.mark.parametrize("tol", [1e-6, 1e-9, 1e-10])
def test_an_exact_prox_on_the_nuclear_ball_is_verified_down_to_rounding(tol: float) -> None:
    data = cg.paper_data(30, 30, 3, seed=0, generator="gaussian", observe=0.3)
    objective = cg.Completion(data.rows, data.cols, data.values, (30, 30))
    result = cg.minimize(
        objective, cg.NuclearBall((30, 30), 0.3 * data.nuclear_norm), tol=tol, max_steps=20_000, every=50
    )
    assert result.status == "converged", result.message


def test_a_smoothness_too_small_is_noticed_where_the_run_converges_at_once() -> None:
    objective = cg.Function(
        lambda x: float(500 * np.sum((x - 0.5) ** 2)), lambda x: 1000 * (x - 0.5), 1, smoothness=4e-4
    )
    with pytest.warns(cg.SmoothnessWarning):
        cg.minimize(objective, cg.LinfBall(1), stop=cg.Mapping(1e-6) | cg.Steps(3), schedule=cg.theory(3))


@pytest.mark.parametrize("rule", cg.solvers.RULES)
@pytest.mark.parametrize("share", [1e-3, 0.6])
def test_a_smoothness_too_small_is_noticed_whatever_the_frank_wolfe_rule(rule: str, share: float) -> None:
    """The quadratic has one curvature, so any two gradients tell."""
    objective = cg.Quadratic(2 * np.eye(3), [1.0, 2.0, -1.0])
    with pytest.warns(cg.SmoothnessWarning):
        cg.minimize(objective, SIMPLEX, X0, method="frank-wolfe", rule=rule, smoothness=2 * share, stop=cg.Steps(10))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("method", ["ncgs", "ncgs-ii", "frank-wolfe"])
def test_what_met_the_gap_is_what_is_returned(method: str, seed: int) -> None:
    """The smallest mapping need not have the smallest gap."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 6))
    problem = cg.Problem(cg.Quadratic((A + A.T) / 2, rng.standard_normal(6)), cg.L1Ball(6))
    stop = cg.Gap(0.1) | cg.Mapping(1e-12) | cg.Steps(60)
    result = cg.minimize(problem.objective, problem.domain, method=method, stop=stop)
    assert result.status != "unverified"
    if result.success:
        assert min(wolfe_gap(problem, result.x) / 0.1, result.certificate.upper / 1e-12) <= 1 + 1e-6


def test_the_last_iterate_too_is_checked_with_the_linear_oracle() -> None:
    wrong = cg.user_set(SIMPLEX.lmo, 3, 2.0, project=lambda x: np.array([1.0, 0.0, 0.0]))
    result = cg.minimize(CONVEX, wrong, np.eye(3)[0], method="projected-gradient", output="last", max_steps=20)
    assert not result.success


def test_user_code_cannot_change_the_iterate() -> None:
    def meddle(record: object, x: np.ndarray) -> None:
        x *= 0

    def in_place(x: np.ndarray) -> np.ndarray:
        x -= 0.1
        return x

    with pytest.raises(ValueError, match="read-only"):
        cg.minimize(CONVEX, SIMPLEX, callback=meddle)
    with pytest.raises(ValueError, match="read-only"):
        cg.minimize(function(grad=in_place), SIMPLEX)


def test_the_last_step_of_a_measured_method_is_measured() -> None:
    rng = np.random.default_rng(0)
    robust = cg.LinearModel(rng.normal(size=(27, 3)), rng.normal(size=27), cg.Welsch())
    result = cg.minimize(robust, SIMPLEX, method="svfw", max_steps=97, tol=1e-300)
    assert result.trace[-1].k == 97 and np.isfinite(result.trace[-1].mapping)


def test_a_gap_on_a_validation_batch_is_not_said_to_be_on_F() -> None:
    result = cg.minimize(an_expectation(), cg.L2Ball(2), method="sfw", stop=cg.Gap(0.5) | cg.Steps(200), validate=500)
    assert result.success and result.certificate.on == "a validation batch of 500 samples"


def test_seconds_are_a_deadline_that_metrics_count_in(fake_clock: list[float]) -> None:
    slow = function(value=passing(fake_clock, 1.0, CONVEX.value))
    result = cg.minimize(slow, SIMPLEX, X0, stop=cg.Seconds(10), adaptive=False)
    assert result.status == "out_of_budget" and result.trace[-1].wall <= 12 and result.seconds == 0.0


def test_a_mapping_that_stays_0_stagnates() -> None:
    result = cg.minimize(cg.Quadratic(np.diag([3.0, -1, 2])), SIMPLEX, stop=cg.Stagnation(steps=20) | cg.Steps(5000))
    assert result.status == "stalled" and result.steps < 100


def test_stagnation_looks_back_two_windows_and_no_further() -> None:
    rows = cg.Trace([a_record(k=k, mapping=0.1 if k < 10 else 1.0 - 0.01 * k) for k in range(30)])
    assert cg.Stagnation(10, rtol=1e-3)(a_record(k=30, mapping=0.5), rows) is None


def test_the_stops_own_tolerance_is_the_accuracy_of_the_prox() -> None:
    result = cg.minimize(CONVEX, SIMPLEX, X0, inner="corrective", stop=cg.Mapping(1e-12) | cg.Steps(2000))
    assert result.status == "converged"


def test_an_error_of_half_again_is_not_forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check finds 1.5 times the tolerance at every step: the run is never called converged."""
    honest = Certificate.verify

    def harsher(self: Certificate, problem: cg.Problem) -> Certificate:
        seen = honest(self, problem)
        extra = max((1.5e-3) ** 0.5 - seen.norm, 0.0)
        return Certificate(seen.x, seen.prox, seen.gamma, seen.gamma * extra**2)

    monkeypatch.setattr(Certificate, "verify", harsher)
    result = cg.minimize(CONVEX, SIMPLEX, X0, tol=1e-3, max_steps=50)
    assert result.status == "unverified"
    assert "50 steps" in result.message and "found a squared mapping of 0.0015" in result.message


def test_a_budget_that_ends_between_two_checks_does_not_hide_convergence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first check misses, the next one is not due before the budget ends; the check at the end confirms."""
    how = {"tol": 1e-4, "smoothness": 100.0, "adaptive": False}
    steps = cg.minimize(CONVEX, SIMPLEX, X0, **how).steps
    honest, asked = Certificate.verify, []

    def harsh_at_first(self: Certificate, problem: cg.Problem) -> Certificate:
        asked.append(1)
        seen = honest(self, problem)
        return Certificate(seen.x, seen.prox, seen.gamma, 1.0) if len(asked) == 1 else seen

    monkeypatch.setattr(Certificate, "verify", harsh_at_first)
    result = cg.minimize(CONVEX, SIMPLEX, X0, **how, max_steps=steps + 1)
    assert steps > 20 and result.status == "converged" and result.steps == steps + 1 and len(asked) == 2


@pytest.mark.parametrize(("tol", "estimated"), [(0.99, False), (1.01, True)])
def test_a_tolerance_is_vacuous_from_the_square_of_2LD(tol: float, estimated: bool) -> None:
    objective = cg.Quadratic(1e-5 * np.eye(3), [3.0, 1.0, 2.0])
    bound = (2 * objective.smoothness * SIMPLEX.diameter) ** 2
    result = cg.minimize(objective, SIMPLEX, tol=tol * bound, max_steps=3)
    assert (result.smoothness > 1.0) == estimated


def test_a_point_inside_a_curved_set_of_which_only_the_oracle_is_known_is_let_in() -> None:
    ball = cg.LpBall(5, 3.0)
    inside = 0.9 * ball.lmo(np.arange(1.0, 6.0))
    only_lmo = cg.user_set(ball.lmo, 5)
    assert not proven_outside(only_lmo, inside) and proven_outside(only_lmo, 1.3 * inside)


@pytest.mark.parametrize(
    "domain", [cg.Simplex(60), cg.L2Ball(40), cg.LpBall(20, 3.0), cg.LinfBall(30), cg.NuclearBall((8, 6))], ids=str
)
@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe"])
def test_entry_checks_ask_an_expensive_oracle_a_handful_of_times(domain: Any, method: str) -> None:
    """A set that has nothing but its linear oracle, and a start: at most 10 calls before the first step, and the start as given
    is let in; one that is clearly outside is refused within three calls."""
    calls: list[np.ndarray] = []

    def lmo(direction: np.ndarray) -> np.ndarray:
        calls.append(direction)
        return np.asarray(domain.lmo(direction))

    rng = np.random.default_rng(0)
    x0 = sum(np.asarray(domain.lmo(rng.standard_normal(domain.shape))) for _ in range(5)) / 5
    only_lmo = cg.user_set(lmo, domain.shape, diameter=domain.diameter)
    F = cg.Function(lambda x: float(np.sum(x**2)), lambda x: 2 * x, domain.shape, smoothness=2.0)
    before: list[int] = []
    cg.minimize(
        F,
        only_lmo,
        x0,
        method=method,
        max_steps=1,
        callback=lambda record, x: before.append(len(calls)) if record.k == 0 else None,
    )
    assert before[0] <= 10
    calls.clear()
    with pytest.raises(ValueError, match="x0 lies outside the set"):
        cg.minimize(F, only_lmo, 50 * x0 + 50, method=method)
    assert len(calls) <= 3


def test_condg_goes_on_as_far_as_rounding_lets_it() -> None:
    box = cg.Box(np.zeros(2), np.ones(2))
    solver = cg.CondG(100_000)
    prox = solver.solve(box, np.array([-1.0, 2.0]), np.array([0.5, 0.5]), 1.0, absolute(1e-11), None)
    assert prox.gap <= 1e-11


@pytest.mark.parametrize("x0", [np.array(0.5), 0.5])
def test_points_have_at_least_one_axis(x0: object) -> None:
    with pytest.raises(ValueError, match="at least one axis"):
        cg.minimize(CONVEX, cg.L2Ball(()), x0)


def test_a_sum_without_a_smoothness_is_solved_by_auto() -> None:
    plain = cg.FunctionSum(lambda x: float(x @ x / 2), lambda x, batch: x + 0 * batch[:, None], 8, 3)
    assert cg.minimize(plain, SIMPLEX, method="auto").status == "converged"
