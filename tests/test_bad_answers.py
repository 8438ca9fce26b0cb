"""Oracles that answer badly, at the start or on the way: nothing is lost, and nothing bad is called success."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from tests.driving import CONVEX, SIMPLEX, function, solve

import condgrad as cg
from condgrad.checks import BadOracle, NonFinite

nan, inf = np.nan, np.inf

# -------------------------------------------------------------------------------------- a NaN on the way, not at the start


def beyond(limit: float, answer: Any, bad: Any) -> Any:
    """Answers, until the first coordinate passes the limit."""
    return lambda x: answer(x) if x[0] < limit else bad


def after(calls: int, answer: Any, bad: Any) -> Any:
    """Answers so many times, and never again."""
    left = [calls]

    def asked(x: np.ndarray) -> Any:
        left[0] -= 1
        return answer(x) if left[0] >= 0 else bad

    return asked


START = np.array([0.3, 0.4, 0.3])
"""From here the first coordinate grows to 6/11 on the way to the minimum."""


DETERMINISTIC = ["ncgs", "ncgs-ii", "projected-gradient", "accelerated-gradient", "cgs", "frank-wolfe"]
CASES = [(method, which) for method in DETERMINISTIC for which in ("grad", "value")]


@pytest.mark.parametrize(("method", "which"), CASES)
@pytest.mark.parametrize("bad", [nan, inf])
def test_a_bad_answer_on_the_way_loses_nothing(method: str, which: str, bad: float) -> None:
    wrong = np.full(3, bad) if which == "grad" else bad
    objective = function(**{which: beyond(0.5, getattr(CONVEX, which), wrong)}, L=30.0)
    options = {"frank-wolfe": {"rule": "short"}, "ncgs": {"adaptive": False}}.get(method, {})
    result = cg.minimize(objective, SIMPLEX, START, method=method, stop=cg.Steps(500), **options)
    assert (result.status, result.success) == ("failed", False)
    assert result.message.startswith(f"In step {result.steps + 1}: The answer of {which} holds NaN or Inf")
    assert "The result is the iterate before this step." in result.message and "\n" not in result.message
    assert 0 < result.steps < 500 and result.x[0] < 0.5 and SIMPLEX.contains(result.x)
    assert np.isfinite(result.fun) and result.fun < CONVEX.value(START)
    assert np.isfinite(result.certificate.upper) and result.trace[result.steps].k == result.steps


@pytest.mark.parametrize("bad", [nan, inf])
def test_a_bad_answer_at_the_end_of_a_long_step_loses_nothing(bad: float) -> None:
    """Steps that adapt are long: the first one leads to where nothing is known."""
    objective = function(grad=beyond(0.5, CONVEX.grad, np.full(3, bad)), L=30.0)
    result = cg.minimize(objective, SIMPLEX, START, stop=cg.Steps(500))
    assert (result.status, result.success) == ("failed", False)
    assert result.message.startswith(f"In step {result.steps + 1}: The answer of grad holds NaN or Inf")
    assert SIMPLEX.contains(result.x) and np.isfinite(result.fun) and result.fun <= CONVEX.value(START)
    assert np.isfinite(result.certificate.upper) and result.trace[result.steps].k == result.steps


def test_a_bad_linear_oracle_on_the_way_loses_nothing() -> None:
    """It answers 40 times, fails once, and answers the check again."""
    calls = [0]

    def lmo(g: np.ndarray) -> np.ndarray:
        calls[0] += 1
        return np.full(3, nan) if calls[0] == 41 else SIMPLEX.lmo(g)

    domain = cg.user_set(lmo, 3, start=START)
    result = cg.minimize(CONVEX, domain, method="frank-wolfe", stop=cg.Steps(500))
    assert result.status == "failed" and "The answer of lmo holds NaN or Inf" in result.message
    assert result.steps == 40 and np.isfinite(result.certificate.upper)


@pytest.mark.parametrize("which", ["grad", "value", "lmo"])
def test_an_oracle_that_never_answers_again_loses_nothing(which: str) -> None:
    """Nothing can be verified any more, but the iterate, its trace and its counts are still there."""
    objective, domain = function(L=30.0), cg.user_set(SIMPLEX.lmo, 3, start=START)
    if which == "lmo":
        domain = cg.user_set(after(40, SIMPLEX.lmo, np.full(3, nan)), 3, start=START)
    else:
        wrong = np.full(3, nan) if which == "grad" else nan
        objective = function(**{which: after(40, getattr(CONVEX, which), wrong)}, L=30.0)
    result = cg.minimize(objective, domain, method="frank-wolfe", stop=cg.Steps(500))
    assert result.status == "failed" and 0 < result.steps <= 40 and SIMPLEX.contains(result.x)


def test_values_too_large_to_square_are_said_to_be() -> None:
    huge = cg.Quadratic(1e200 * np.eye(3))
    with pytest.raises(
        NonFinite, match=r"The gradient of Quadratic is too large to square: its largest entry is 5e\+199"
    ):
        solve(huge)


def test_an_error_of_the_users_own_is_not_swallowed() -> None:
    def broken(x: np.ndarray) -> np.ndarray:
        raise RuntimeError("my own bug")

    with pytest.raises(RuntimeError, match="my own bug"):
        solve(function(grad=broken))


class Bare:
    """A finite sum with what the contract on the first page asks for, and nothing else."""

    shape, n_terms, smoothness, term_smoothness, mean_square_smoothness = (3,), 4, 1.0, 1.0, 1.0

    def value(self, x: np.ndarray) -> float:
        return float(x @ x) / 2

    def grad(self, x: np.ndarray) -> np.ndarray:
        return x

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(4, size=size)

    def term_rows(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return np.stack([x] * len(batch))

    def assemble(self, rows: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return rows.mean(axis=0)

    def grad_terms(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return self.assemble(self.term_rows(x, batch), batch)


@pytest.mark.parametrize("method", cg.METHODS)
def test_nothing_is_asked_of_an_objective_that_its_contract_does_not_name(method: str) -> None:
    assert solve(Bare(), method=method).status in ("converged", "out_of_budget")


@pytest.mark.parametrize(
    ("where", "error"),
    [("value", OverflowError("math range error")), ("grad", np.linalg.LinAlgError("SVD did not converge"))],
)
def test_a_function_that_can_not_be_computed_ends_the_run_with_what_stood_before(where, error):
    asked, A = {"value": 0, "grad": 0}, np.array([1.0, -1.0, 0.5])

    def answer(name, found):
        asked[name] += 1
        if name == where and asked[name] > 20:
            raise error
        return found

    F = cg.Function(
        lambda x: answer("value", float(x @ x + A @ x)),
        lambda x: answer("grad", 2 * x + A),
        (3,),
        smoothness=200.0,
    )
    result = cg.minimize(F, cg.L2Ball(3), method="frank-wolfe", tol=1e-14)
    assert result.status == "failed" and str(error) in result.message and np.isfinite(result.x).all()


# ------------------------------------------------------------------------ linear oracles that are not, and memory that is not


def second_best(g: np.ndarray) -> np.ndarray:
    return np.eye(len(g))[np.argsort(g, kind="stable")[1]]


def stale() -> Any:
    """Answers the question that was asked before."""
    last = [np.eye(3)[0]]

    def lmo(g: np.ndarray) -> np.ndarray:
        answer, last[0] = last[0], SIMPLEX.lmo(g)
        return answer

    return lmo


@pytest.mark.filterwarnings("ignore::condgrad.InexactOracleWarning")
@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe", "ncgs-ii"])
@pytest.mark.parametrize("kind", ["second best", "stale"])
def test_a_linear_oracle_that_is_worse_than_its_earlier_answers_ends_the_run(method: str, kind: str) -> None:
    for seed in range(5):
        b = np.random.default_rng(seed).standard_normal(3)
        domain = cg.user_set(second_best if kind == "second best" else stale(), 3, 1.5, contains=SIMPLEX.contains)
        try:
            result = cg.minimize(cg.Quadratic(np.diag([1.0, 2.0, 3.0]), b), domain, START, method=method, tol=1e-3)
        except BadOracle as error:  # in the first step there is nothing to return
            assert "worse than" in str(error)
            continue
        assert result.status == "failed" and "worse than" in result.message, result.message


def frozen() -> Any:
    """Answers the first question for ever."""
    answers: list[np.ndarray] = []

    def lmo(g: np.ndarray) -> np.ndarray:
        answers.append(np.eye(len(g))[np.argmin(g)])
        return answers[0]

    return lmo


@pytest.mark.filterwarnings("ignore::condgrad.InexactOracleWarning")
@pytest.mark.parametrize("output", ["best", "last", "lowest"])
@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe"])
@pytest.mark.parametrize("kind", ["second best", "frozen"])
def test_no_oracle_that_overlooks_the_best_vertex_is_certified(method: str, kind: str, output: str) -> None:
    n = 12
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Q, b = rng.standard_normal((n, n)), rng.standard_normal(n)
        domain = cg.user_set(
            second_best if kind == "second best" else frozen(), n, 1.5, None, np.full(n, 1 / n), cg.Simplex(n).contains
        )
        try:
            result = cg.minimize(cg.Quadratic(Q @ Q.T / n, b), domain, method=method, tol=1e-3, output=output)
        except BadOracle as error:
            assert "worse than" in str(error)
            continue
        assert result.status == "failed" and "worse than" in result.message, result.message
        assert result.certificate is None and np.isfinite(result.fun)


POLYTOPES = {
    "simplex": np.eye(5),
    "l1 ball": 2.0 * np.vstack([np.eye(4), -np.eye(4)]),
    "box": np.array([[a, b, c] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)]),
    "polytope": np.random.default_rng(3).standard_normal((12, 4)),
}


def near_hull(vertices: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The projection on the hull of the vertices, by least squares with weights that sum to 1 up to 1e-8."""
    weights, _ = nnls(np.vstack([vertices.T, np.full(len(vertices), 1e4)]), np.append(z, 1e4))
    return weights @ vertices / weights.sum()


@pytest.mark.filterwarnings("ignore::condgrad.InexactOracleWarning")
@pytest.mark.parametrize("ending", ["budget", "signal"])
@pytest.mark.parametrize("output", ["best", "lowest"])
@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe", "ncgs-ii"])
@pytest.mark.parametrize("kind", POLYTOPES)
def test_no_oracle_that_overlooks_the_best_vertex_certifies_where_a_budget_ends_the_run(
    kind: str, method: str, output: str, ending: str
) -> None:
    vertices = POLYTOPES[kind]
    n = vertices.shape[1]
    for steps in (1, 3, 8):
        rng = np.random.default_rng(steps)
        Q = rng.standard_normal((n, n))
        F = cg.Quadratic(Q @ Q.T / n, rng.standard_normal(n))
        domain = cg.user_set(lambda g: vertices[np.argsort(vertices @ g, kind="stable")[1]], n, 10.0, None, vertices[0])

        def impatient(record: Any, x: Any, steps: int = steps) -> None:
            if ending == "signal" and record.k == steps:
                raise KeyboardInterrupt

        try:
            result = cg.minimize(
                F, domain, method=method, max_steps=steps + (ending == "signal"), output=output, callback=impatient,
                on_interrupt="return",
            )  # fmt: skip
        except BadOracle as error:  # in the first step there is nothing to return
            assert "worse than" in str(error)
            continue
        if (certificate := result.certificate) is None:
            assert result.status == "failed" and "worse than" in result.message, result.message
            assert "The returned point has no certificate" in result.message and np.isfinite(result.fun)
            continue
        prox = near_hull(vertices, result.x - certificate.gamma * F.grad(result.x))
        assert np.sum((result.x - prox) ** 2) / certificate.gamma**2 <= certificate.upper * (1 + 1e-5)


HONEST = [
    cg.Simplex(6),
    cg.L1Ball(6, 2.0),
    cg.L2Ball(6, 3.0),
    cg.LpBall(6, 3.0, 2.0),
    cg.Box(-np.ones(6), np.full(6, 0.3)),
    cg.NuclearBall((3, 2), 2.0),
]


@pytest.mark.parametrize("output", ["best", "last", "lowest"])
@pytest.mark.parametrize("digits", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("known", ["lmo", "contains", "project"])
@pytest.mark.filterwarnings("ignore::condgrad.InexactOracleWarning")
@pytest.mark.parametrize("domain", HONEST, ids=lambda domain: type(domain).__name__)
def test_no_honest_oracle_is_suspected_that_answers_in_few_digits(
    domain: Any, digits: Any, output: str, known: str
) -> None:
    rng = np.random.default_rng(0)
    shape, centre = domain.shape, rng.standard_normal(domain.shape)
    F = cg.Function(lambda x: float(np.sum((x - centre) ** 2)) / 2, lambda x: x - centre, shape, smoothness=1.0)
    if known == "project" and not hasattr(domain, "project"):
        pytest.skip("the set does not project")
    more = {} if known == "lmo" else {known: getattr(domain, known)}
    own = cg.user_set(lambda g: np.asarray(domain.lmo(g)).astype(digits), shape, domain.diameter, **more)
    try:
        result = cg.minimize(F, own, tol=5e-2 if digits == np.float16 else 1e-2, max_steps=500, output=output)
    except BadOracle as error:
        pytest.fail(str(error))
    assert result.status == "converged", result.message
    if hasattr(domain, "project"):
        true = 4 * np.sum((result.x - domain.project(result.x - (result.x - centre) / 2)) ** 2)
        assert result.certificate is None or true <= result.certificate.upper


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")  # differences of such gradients are rounding
@pytest.mark.parametrize("domain", HONEST, ids=lambda domain: type(domain).__name__)
def test_a_gradient_in_float16_is_no_reason_to_suspect_a_linear_oracle(domain: Any) -> None:
    centre = np.random.default_rng(0).standard_normal(domain.shape)
    F = cg.Function(
        lambda x: float(np.sum((x - centre) ** 2)) / 2, lambda x: (x - centre).astype(np.float16), domain.shape, 1.0
    )
    own = cg.user_set(lambda g: np.asarray(domain.lmo(g)).astype(np.float16), domain.shape, domain.diameter)
    with pytest.warns(cg.InexactOracleWarning, match="float16 or coarser"):
        result = cg.minimize(F, own, tol=5e-2, max_steps=300)
    assert result.status in ("converged", "unverified", "out_of_budget"), result.message


def test_an_oracle_in_float16_that_overlooks_the_best_vertex_is_still_refused() -> None:
    domain = cg.user_set(lambda g: second_best(g).astype(np.float16), 3, 1.5, contains=SIMPLEX.contains)
    with pytest.raises(BadOracle, match="worse than"):
        cg.minimize(CONVEX, domain, START, max_steps=20)


def test_an_honest_linear_oracle_of_a_user_is_not_suspected() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        corners = rng.standard_normal((12, 4))
        domain = cg.user_set(lambda g, corners=corners: corners[np.argmin(corners @ g)], 4, 20.0)
        result = cg.minimize(cg.Quadratic(np.diag([1.0, 2.0, 3.0, 4.0]), rng.standard_normal(4)), domain)
        assert result.status == "converged" and not result.warnings, result.message


def test_a_linear_oracle_that_is_a_little_inexact_is_warned_of_and_taken_in() -> None:
    """Off by 1e-8 of itself: a gap below that is not known."""
    rng = np.random.default_rng(0)

    def lmo(g: np.ndarray) -> np.ndarray:
        return SIMPLEX.lmo(g + 1e-8 * np.linalg.norm(g) * rng.standard_normal(3))

    domain = cg.user_set(lmo, 3, 1.5, contains=SIMPLEX.contains)
    flat = cg.Function(lambda x: float(x.sum()), lambda x: np.ones(3) + 1e-9 * x, (3,), smoothness=1.0)
    with pytest.warns(cg.InexactOracleWarning, match="is not exact"):
        result = cg.minimize(flat, domain, START, method="frank-wolfe", stop=cg.Steps(30))
    assert result.status != "failed"


def test_the_answers_that_are_compared_survive_a_checkpoint(tmp_path: Any) -> None:
    domain = cg.user_set(SIMPLEX.lmo, 3, 1.5, contains=SIMPLEX.contains)
    options = {"method": "frank-wolfe", "checkpoint": tmp_path / "run.ckpt"}
    cg.minimize(CONVEX, domain, START, stop=cg.Steps(5), **options)
    resumed = cg.minimize(CONVEX, domain, START, stop=cg.Steps(40), resume=True, **options)
    whole = cg.minimize(CONVEX, domain, START, method="frank-wolfe", stop=cg.Steps(40))
    assert np.array_equal(resumed.x, whole.x) and resumed.certificate.upper == whole.certificate.upper


@pytest.mark.parametrize("where", ["grad", "value"])
def test_memory_that_runs_out_again_in_the_last_check_loses_nothing(where: str) -> None:
    asked = [0]

    def limited(x: np.ndarray) -> Any:
        asked[0] += 1
        if asked[0] > 20:
            raise MemoryError("cannot allocate 8 GiB")
        return getattr(CONVEX, where)(x)

    result = cg.minimize(function(**{where: limited}, L=30.0), SIMPLEX, START, method="frank-wolfe", stop=cg.Steps(500))
    assert result.status == "failed" and "Memory ran out" in result.message
    if where == "grad":  # the check asks for no value: those of the iterates are known
        assert result.certificate is None and "memory ran out" in result.message
    assert 0 < result.steps <= 20 and SIMPLEX.contains(result.x)
    assert len(result.trace) > 1
