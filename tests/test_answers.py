"""What a result says of the point that it returns, and of those that it does not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.driving import CONVEX, EXPECTATION, SIMPLEX, X0, a_sum
from tests.problems import PLAIN, SUMS, case

import condgrad as cg
from condgrad.inner import with_gap
from condgrad.solvers import FrankWolfe

RNG = np.random.default_rng(5)
A = RNG.standard_normal((8, 8))
INDEFINITE = cg.Quadratic((A + A.T) / 2, RNG.standard_normal(8))
NEVER = cg.Mapping(1e-300)


# ---------------------------------------------------------------------------------------------------- the inner solver


@pytest.mark.parametrize(
    ("domain", "options", "name"),
    [
        (cg.L1Ball(8), {}, "exact"),
        (cg.L1Ball(8), {"inner": "corrective"}, "corrective"),
        (cg.L1Ball(8), {"inner": cg.CondG(5)}, "condg"),
        (cg.LpBall(8, 3.0), {}, "corrective"),
        (cg.L1Ball(8), {"smoothness": "estimate"}, "exact"),
        (cg.L1Ball(8), {"method": "cgs"}, "exact"),
        (cg.L1Ball(8), {"method": "frank-wolfe"}, None),
        (cg.L1Ball(8), {"method": "projected-gradient"}, None),
    ],
)
def test_a_result_says_which_inner_solver_worked_and_whether_it_projected(domain: Any, options: Any, name: Any) -> None:
    result = cg.minimize(INDEFINITE, domain, max_steps=5, **options)
    assert result.inner == result.summary()["inner"] == name
    line = next((line for line in str(result).splitlines() if line.startswith("  inner ")), None)
    if name is None:
        assert line is None
    elif name == "exact":
        assert result.counts["po"] > 0 and f"exact: {result.counts['po']} projections; inner='corrective'" in line
    else:
        assert result.counts["po"] == 0 and line == f"  inner     {name}, without projecting"


def test_the_inner_solver_behind_a_warm_start_and_one_of_the_users_own() -> None:
    data = cg.paper_data(12, 10, 2, seed=0, generator="gaussian", observe=0.6)
    F = cg.Completion(data.rows, data.cols, data.values, (12, 10))
    assert cg.minimize(F, cg.NuclearBall((12, 10), 3.0), max_steps=2).inner == "spectral"

    class Mine:
        def init(self, domain: Any, x: Any) -> Any:
            return None

        def solve(self, *subproblem: Any) -> Any:
            return cg.CondG(20).solve(*subproblem)

    assert cg.minimize(INDEFINITE, cg.L1Ball(8), inner=Mine(), max_steps=2).inner == "Mine"


# ------------------------------------------------------------------------------------------------------ which iterate


@pytest.mark.parametrize(
    "method", ["ncgs", "ncgs-ii", "frank-wolfe", "projected-gradient", "accelerated-gradient", "cgs"]
)
@pytest.mark.parametrize("problem", [*PLAIN[:3], *SUMS[:2]])
@pytest.mark.parametrize("steps", [1, 4, 15])
def test_the_step_that_is_named_is_that_of_the_iterate(method: str, problem: str, steps: int) -> None:
    """Never "F was lower at step k" of an iterate that is said to be from step k; and F there is what the trace has there."""
    example = case(problem)
    if cg.METHODS[method].projects and not hasattr(example.domain, "project"):
        pytest.skip("the set does not project")
    result = cg.minimize(
        example.objective, example.domain, example.x0, method=method, stop=NEVER | cg.Steps(steps), inner="corrective"
    )
    step = int(re.search(r"from step (\d+)", result.message).group(1))
    fun = dict(zip(result.trace["k"], result.trace["fun"], strict=True))
    between = method in ("ncgs-ii", "accelerated-gradient")  # they certify theta_md, which is no iterate
    assert between or fun[step] == result.fun
    lower = re.search(r"F was lower at step (\d+), (\S+): ", result.message)
    if result.lowest.fun < result.fun:
        assert lower or (between and "F was lower at the end of that step" in result.message)
    if lower:
        assert int(lower.group(1)) != step and int(lower.group(1)) == result.lowest.step
        assert lower.group(2) == f"{fun[result.lowest.step]:.6g}"


@pytest.mark.parametrize("inner", ["condg", "corrective", "exact"])
@pytest.mark.parametrize("problem", ["welsch simplex", "sigmoid l1"])
@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_one_point_has_one_bound(inner: str, problem: str, tol: float) -> None:
    """What the message says of the mapping is what the certificate says, which was computed again at the end."""
    example = case(problem)
    result = cg.minimize(example.objective, example.domain, example.x0, inner=inner, tol=tol, max_steps=3000, every=50)
    assert result.status == "converged"
    assert f"The squared gradient mapping is at most {result.certificate.upper:.3g}, " in result.message
    bounds = re.findall(r"at most (\S+), the tolerance| and (\S+) \(gamma", str(result))
    assert len(bounds) == 2 and bounds[0][0] == bounds[1][1]


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")
def test_one_bound_also_where_the_solver_says_a_smaller_one() -> None:
    """Its own L is below F's, and its certificates speak of that; the check, and the message, of F's."""
    from condgrad.solvers import NCGS

    F = cg.Function(CONVEX.value, CONVEX.grad, (3,), smoothness=0.8 * CONVEX.smoothness)
    problem = cg.Problem(CONVEX, SIMPLEX)

    class Rosy:
        solver = NCGS(cg.practical(1e-3), cg.Exact())

        def init(self, _: Any, x0: Any) -> Any:
            return self.solver.init(cg.Problem(F, SIMPLEX), x0)

        def step(self, counted: Any, state: Any) -> Any:
            return self.solver.step(counted, state)

    result = cg.run(problem, Rosy(), X0, cg.Mapping(1e-3) | cg.Steps(500))
    assert result.status == "converged"
    assert f"at most {result.certificate.upper:.3g}, " in result.message


def test_tol_has_the_unit_of_F_squared_over_x_squared() -> None:
    """10 F has a squared mapping 100 times as large; F(x/10) over the set times 10 one that is 100 times smaller."""
    x, s = np.array([0.5, 0.2, 0.1]), 10.0

    def upper(F: Any, domain: Any, x: Any) -> float:
        return cg.driver.mapping(cg.Problem(F, domain), x, 1 / (2 * F.smoothness)).upper

    Q, b = np.diag([3.0, 1.0, 2.0]), np.array([1.0, -4.0, 2.0])
    plain = upper(cg.Quadratic(Q, b), cg.L1Ball(3), x)
    assert upper(cg.Quadratic(s * Q, s * b), cg.L1Ball(3), x) == pytest.approx(s**2 * plain)
    assert upper(cg.Quadratic(Q / s**2, b / s), cg.L1Ball(3, s), s * x) == pytest.approx(plain / s**2)


# ----------------------------------------------------------------------------------------------------------- the lowest


@pytest.mark.parametrize("method", list(cg.METHODS))
@pytest.mark.parametrize("every", [1, 4])
def test_the_lowest_iterate_is_beside_the_best_certified(method: str, every: int) -> None:
    seen: dict[int, Any] = {}
    F = a_sum()
    result = cg.minimize(
        F, SIMPLEX, X0, method=method, stop=NEVER | cg.Steps(18), every=every,
        callback=lambda record, x: seen.update({record.k: x.copy()}),
    )  # fmt: skip
    lowest = result.lowest
    values = {k: F.value(x) for k, x in seen.items() if k % every == 0}
    least = min(values, key=values.__getitem__)
    assert lowest.fun == F.value(lowest.x) <= min(values[least], result.fun)
    if values[least] <= result.fun:
        assert lowest.step == least and np.array_equal(lowest.x, seen[least])
    assert result.summary()["lowest"] == {"fun": lowest.fun, "step": lowest.step}


@pytest.mark.parametrize("method", list(cg.METHODS))
def test_the_lowest_iterate_can_be_asked_for(method: str) -> None:
    F, stop = a_sum(), NEVER | cg.Steps(18)
    best, asked = (
        cg.minimize(F, SIMPLEX, X0, method=method, stop=stop, output=output) for output in ("best", "lowest")
    )
    assert asked.fun == F.value(asked.x) == min(asked.trace["fun"]) and asked.lowest.x is asked.x
    assert asked.counts["values"] == best.counts["values"], "no value is asked for twice"
    assert f"Returned: the iterate with the lowest F that is known, from step {asked.lowest.step}." in asked.message
    gamma = 1 / (2 * F.smoothness)
    true = np.sum((asked.x - SIMPLEX.project(asked.x - gamma * F.grad(asked.x))) ** 2) / gamma**2
    certificate = asked.certificate
    assert certificate.x is asked.x and certificate.lower <= true * (1 + 1e-9) + 1e-20
    assert true <= certificate.upper * (1 + 1e-9) + 1e-20


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")
def test_the_lowest_iterate_converges_only_by_its_own_certificate() -> None:
    asked = cg.minimize(CONVEX, SIMPLEX, X0, output="lowest")
    assert asked.status == "converged" and asked.certificate.upper <= 1e-6 * (1 + 1e-5)

    class Rough(cg.Quadratic):
        """Its values and its gradient are of different functions: the lowest value is where the mapping is not small."""

        def value(self, x: Any) -> float:
            return -super().value(x)

    wrong = cg.minimize(
        Rough(np.diag([1.0, 2.0, 3.0])), SIMPLEX, X0, output="lowest", method="projected-gradient", max_steps=300
    )
    assert wrong.status == "unverified" and wrong.certificate.upper > 1e-6
    assert "But the check of the returned point found a squared mapping of" in wrong.message


def test_an_expectation_has_no_lowest_value() -> None:
    assert cg.minimize(EXPECTATION, SIMPLEX, X0, method="sfw", max_steps=3).lowest is None
    with pytest.raises(TypeError, match=r"^output='lowest' compares values of F, \w+ has none: use output='best'"):
        cg.minimize(EXPECTATION, SIMPLEX, X0, method="sfw", output="lowest")


def test_the_lowest_iterate_of_a_run_that_is_interrupted_is_certified_by_one_call() -> None:
    def impatient(record: Any, x: Any) -> None:
        if record.k == 5:
            raise KeyboardInterrupt

    asked = {"output": "lowest", "stop": NEVER | cg.Steps(9), "on_interrupt": "return"}
    result = cg.minimize(CONVEX, SIMPLEX, X0, callback=impatient, **asked)
    assert result.status == "interrupted" and result.lowest.step == 5
    assert result.certificate.x is result.x and result.certificate.prox is result.x


class Liar(cg.CondG):
    """Its gaps are a million times too small."""

    def solve(self, *subproblem: Any) -> Any:
        prox = super().solve(*subproblem)
        return prox._replace(gap=1e-6 * with_gap(prox, *subproblem[:4]).gap)


def every_other_time_off() -> Any:
    calls, rng = [0], np.random.default_rng(0)

    def grad(x: np.ndarray) -> np.ndarray:
        calls[0] += 1
        return CONVEX.grad(x) + (1e-2 * rng.standard_normal(3) if calls[0] % 2 else 0.0)

    return grad


class Flatterer:
    """Frank-Wolfe, with a gap of 0 in every certificate."""

    solver = FrankWolfe("open-loop")

    def init(self, problem: Any, x0: Any) -> Any:
        return self.solver.init(problem, x0)

    def step(self, problem: Any, state: Any) -> Any:
        state = self.solver.step(problem, state)
        return replace(state, certificate=replace(state.certificate, gap=0.0))


def flattered(stop: Any) -> cg.Result:
    return cg.minimize(CONVEX, SIMPLEX, X0, method=Flatterer(), stop=stop | cg.Steps(8))


UNVERIFIED: dict[str, Any] = {
    "an inner solver that lies": lambda: cg.minimize(CONVEX, SIMPLEX, X0, inner=Liar(1), max_steps=60),
    "a gradient that varies": lambda: cg.minimize(
        cg.Function(CONVEX.value, every_other_time_off(), (3,), smoothness=3.0), SIMPLEX, X0, max_steps=100
    ),
    "precision": lambda: cg.minimize(cg.Quadratic(np.eye(3), 1e12 + X0), SIMPLEX, X0, method="frank-wolfe"),
    "a gap": lambda: flattered(cg.Gap(1e-9)),
    "a mapping and a gap": lambda: flattered(cg.Mapping(1e-6) & cg.Gap(1e-9)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", UNVERIFIED)
def test_one_point_has_one_bound_also_where_a_claim_is_not_confirmed(kind: str) -> None:
    result = UNVERIFIED[kind]()
    assert result.status == "unverified", result.message
    assert "is at most" not in result.message, "the claim that the check did not confirm"
    mappings = re.findall(r"a squared mapping of ([-+.e\d]+\d)", result.message)
    gaps = re.findall(r"a Frank-Wolfe gap of ([-+.e\d]+\d)", result.message)
    assert len(mappings) == (kind not in ("precision", "a gap")) and len(gaps) == ("gap" in kind), result.message
    assert all(said == f"{result.certificate.upper:.3g}" for said in mappings), result.message
    assert all(said == f"{result.certificate.gap:.3g}" for said in gaps), result.message
