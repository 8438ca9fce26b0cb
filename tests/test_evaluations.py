"""What a run asks of F: never a value at a point whose value is known, and one call where one call gives both."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problems import case

import condgrad as cg
from condgrad.solvers import METHODS, RULES
from condgrad.solvers.evaluation import Evaluation, cached

WALKS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name, method in METHODS.items() if method.deterministic and name != "frank-wolfe"),
    ("ncgs", {"adaptive": False}),
    ("ncgs", {"stretch": 1.0}),
    ("cgs", {"strong_convexity": 0.5}),
    *(("frank-wolfe", {"rule": rule}) for rule in RULES),
    ("frank-wolfe", {"rule": lambda along: min((2 / (along.k + 2), 0.0, 1.0), key=along.value)}),
]
every_walk = pytest.mark.parametrize(("method", "options"), WALKS)
SETS = ["indefinite simplex", "convex simplex", "welsch simplex"]


class Spy:
    """A user's function that remembers every point at which it is asked."""

    def __init__(self, F: Any, known: bool, form: str = "separate"):
        self.F, self.values, self.grads, self.both = F, Counter[bytes](), Counter[bytes](), Counter[bytes]()
        functions: dict[str, Any] = {"value": self.value, "grad": self.grad}
        if form == "together":
            functions = {"value_and_grad": self.value_and_grad}
        constants = {"smoothness": F.smoothness, "lower_smoothness": F.lower_smoothness} if known else {}
        self.objective = cg.Function(shape=F.shape, **functions, **constants)

    def value(self, x: np.ndarray) -> float:
        self.values[x.tobytes()] += 1
        return self.F.value(x)

    def grad(self, x: np.ndarray) -> np.ndarray:
        self.grads[x.tobytes()] += 1
        return np.asarray(self.F.grad(x))

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.both[x.tobytes()] += 1
        return self.F.value(x), np.asarray(self.F.grad(x))


@every_walk
@pytest.mark.parametrize("known", [True, False], ids=["L given", "L unknown"])
@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("problem", SETS)
def test_no_value_is_asked_for_twice(
    problem: str, every: int, known: bool, method: str, options: dict[str, Any]
) -> None:
    example = case(problem)
    spy = Spy(example.objective, known)
    how = {"method": method, "stop": cg.Mapping(1e-5) | cg.Steps(25), "every": every, **options}
    result = cg.minimize(spy.objective, example.domain, example.x0, **how)
    assert result.steps > 1
    # a vertex that the linear oracle names again, which line searches look at, is a new question: nothing holds it
    vertices = [point for point in spy.values if "rule" in options and np.count_nonzero(np.frombuffer(point)) == 1]
    times = max(asked for point, asked in spy.values.items() if point not in vertices)
    assert times == 1, f"F was asked {times} times at one of {len(spy.values)} points"
    assert sum(spy.values.values()) >= result.counts["values"], "the counter counts what was not asked"
    assert result.fun == example.objective.value(result.x), "a remembered value is that of another point"
    for k, fun in zip(result.trace["k"], result.trace["fun"], strict=True):
        assert np.isfinite(fun) or k % every


@pytest.mark.parametrize("every", [1, 5])
def test_the_recorded_values_are_those_of_the_points(every: int) -> None:
    """Recorded from the solver's own state, and equal to what F answers at that point."""
    example, seen = case("welsch simplex"), []
    for options in ({}, {"smoothness": "estimate"}, {"method": "frank-wolfe", "rule": "line-search"}):
        cg.minimize(
            example.objective,
            example.domain,
            example.x0,
            every=every,
            max_steps=20,
            callback=lambda record, x: seen.append((record, example.objective.value(x))),
            **options,
        )
    for record, fun in seen:
        assert record.fun == fun if record.k % every == 0 else np.isnan(record.fun)


# ------------------------------------------------------------------------------------------------------ both in one call


@pytest.mark.parametrize("known", [True, False], ids=["L given", "L unknown"])
@pytest.mark.parametrize(
    ("method", "options"), [walk for walk in WALKS if walk[0] in ("ncgs", "frank-wolfe", "projected-gradient")]
)
def test_one_call_gives_both(method: str, options: dict[str, Any], known: bool) -> None:
    """The same iterates as with two functions; methods that take the gradient where they stand ask once at each point."""
    example = case("indefinite simplex")
    two, one = Spy(example.objective, known), Spy(example.objective, known, "together")
    how = {"method": method, "stop": cg.Steps(15), "output": "last", **options}
    apart, together = (cg.minimize(spy.objective, example.domain, example.x0, **how) for spy in (two, one))
    assert np.array_equal(apart.x, together.x) and apart.fun == together.fun
    assert np.array_equal(apart.trace["fun"], together.trace["fun"])
    assert sum(one.both.values()) < sum(two.values.values()) + sum(two.grads.values())
    if known and options not in ({"stretch": 1.0}, {"rule": "line-search"}):  # which look at other points too
        assert max(one.both.values()) == 1 and together.counts["values"] == together.counts["fo"] == len(one.both)


def test_budgets_hold_for_calls_that_give_both() -> None:
    example = case("welsch simplex")
    spy = Spy(example.objective, True, "together")
    result = cg.minimize(spy.objective, example.domain, example.x0, stop=cg.Calls(5, "fo"))
    assert result.status == "out_of_budget" and result.counts["fo"] == 5


def test_a_run_that_stands_still_but_uses_up_its_budget_is_not_stalled() -> None:
    result = cg.minimize(
        cg.Quadratic(np.eye(3), [-9.0, 0.0, 0.0]),
        cg.Simplex(3),
        np.eye(3)[0],
        method="frank-wolfe",
        stop=cg.Steps(150),
        output="last",
    )
    assert (result.status, result.steps) == ("out_of_budget", 150)


def test_a_gradient_that_comes_with_its_value_must_be_finite_too() -> None:
    class Own:
        shape, smoothness, calls = (3,), 6.0, 0

        def value(self, x: np.ndarray) -> float:
            return float((np.array([1.0, 2.0, 3.0]) * x) @ x)

        def grad(self, x: np.ndarray) -> np.ndarray:
            return 2 * np.array([1.0, 2.0, 3.0]) * x

        def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
            self.calls += 1
            return self.value(x), self.grad(x) if self.calls < 5 else np.array([1.0, np.nan, 0.0])

    result = cg.minimize(Own(), cg.Simplex(3), tol=1e-12, check_gradient=False)
    assert result.status == "failed" and "gradient of Own holds NaN" in result.message


@pytest.mark.parametrize("form", ["separate", "together"])
@pytest.mark.parametrize("oracle", ["fo", "values"])
@pytest.mark.parametrize("options", [{}, {"smoothness": "estimate"}, {"method": "frank-wolfe", "rule": "adaptive"}])
def test_a_run_that_stands_still_ends(options: dict[str, Any], oracle: str, form: str) -> None:
    """The start is a vertex and the minimiser: nothing moves, and what is known there must not be free for ever."""
    spy, at = Spy(cg.Quadratic(np.eye(3), [-9.0, 0.0, 0.0]), True, form), np.eye(3)[0]
    result = cg.minimize(spy.objective, cg.Simplex(3), at, stop=cg.Calls(9, oracle), output="last", **options)
    assert result.status in ("out_of_budget", "stalled")
    if result.status == "out_of_budget":
        assert result.steps <= 9
    else:
        assert result.steps == 100
        assert result.message.startswith("100 steps in a row left the point where it was and used up no budget.")


def test_standing_still_is_no_stall_while_a_budget_is_used_up() -> None:
    result = cg.minimize(cg.Quadratic(np.eye(3), [-9.0, 0.0, 0.0]), cg.Simplex(3), np.eye(3)[0], stop=cg.Steps(250))
    assert result.status == "out_of_budget" and result.steps == 250


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({}, "Function has no value and no grad: give value= and grad=, or value_and_grad=."),
        ({"value": sum}, "Function has no grad: give value= and grad=, or value_and_grad=."),
        ({"grad": sum}, "Function has no value: give value= and grad=, or value_and_grad=."),
        (
            {"value_and_grad": 3.0},
            "value_and_grad is of type float, a function was expected: value_and_grad=value_and_grad.",
        ),
    ],
)
def test_what_is_missing_is_said(functions: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        cg.Function(**functions)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (3.0, "The answer of value_and_grad is of type float, a pair (value, gradient) was expected."),
        ((1.0, np.ones(2), None), "The answer of value_and_grad is 3 things, a pair (value, gradient) was expected."),
        ((np.ones(2), 1.0), "The answer of value_and_grad, its value, has shape (2,), but () was expected"),
        ((1.0, np.ones(3)), "The answer of value_and_grad, its gradient, has shape (3,), but (2,) was expected"),
        ((np.nan, np.ones(2)), "The answer of value_and_grad, its value, holds NaN or Inf"),
        ((1.0, np.array([1.0, np.inf])), "The answer of value_and_grad, its gradient, holds NaN or Inf"),
    ],
)
def test_a_bad_pair_is_refused(answer: Any, message: str) -> None:
    F = cg.Function(value_and_grad=lambda x: answer)
    for ask in (F.value_and_grad, F.value, F.grad):
        with pytest.raises(ValueError) as refused:
            ask(np.ones(2))
        assert str(refused.value).startswith(message)


def test_a_class_of_ones_own_may_have_it_and_is_checked() -> None:
    class Broken:
        shape, smoothness, lower_smoothness = (3,), 1.0, None

        def value(self, x: Any) -> float:
            return float(x @ x / 2)

        def grad(self, x: Any) -> Any:
            return x

        def value_and_grad(self, x: Any) -> Any:
            return (float(x @ x / 2), x) if x[0] == 1.0 else (np.nan, x)

    with pytest.raises(ValueError, match="The value of Broken is nan"):
        cg.minimize(Broken(), cg.Simplex(3), np.eye(3)[0])


# --------------------------------------------------------------------------------------------- going on from a checkpoint


@pytest.mark.parametrize("form", ["separate", "together"])
@pytest.mark.parametrize(("method", "options"), WALKS)
def test_a_resumed_run_asks_for_no_more(tmp_path: Path, method: str, options: dict[str, Any], form: str) -> None:
    example = case("welsch simplex")
    how = {"method": method, "tol": 1e-12, "smoothness": "estimate", **options}

    def walk(steps: int, **more: Any) -> tuple[cg.Result, Spy]:
        spy = Spy(example.objective, True, form)
        result = cg.minimize(spy.objective, example.domain, example.x0, max_steps=steps, **how, **more)
        return result, spy

    whole, _ = walk(14)
    path = tmp_path / "half.ckpt"
    walk(6, checkpoint=path)
    resumed, _ = walk(14, checkpoint=path, resume=True)
    assert np.array_equal(resumed.x, whole.x) and resumed.fun == whole.fun and resumed.counts == whole.counts
    assert np.array_equal(resumed.trace["fun"], whole.trace["fun"], equal_nan=True)
    assert np.array_equal(resumed.trace["values"], whole.trace["values"])


# -------------------------------------------------------------------------------------------------------- sums of functions


def a_sum(**functions: Any) -> cg.FunctionSum:
    centres = np.random.default_rng(0).normal(size=(30, 3))
    return cg.FunctionSum(
        value=lambda x: float(np.mean(np.sum((x - centres) ** 2, axis=1)) / 2),
        term_grads=lambda x, batch: x - centres[batch],
        n_terms=30,
        shape=3,
        term_smoothness=1.0,
        **functions,
    )


def spied_sum() -> tuple[cg.FunctionSum, Counter[str]]:
    centres, asked = np.random.default_rng(0).normal(size=(30, 3)), Counter[str]()

    def grad(x: np.ndarray) -> np.ndarray:
        asked["grad"] += 1
        return x - centres.mean(axis=0)

    def mean_grad(x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        asked["mean_grad"] += 1
        return x - centres[batch].mean(axis=0)

    def term_grads(x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        asked["term_grads"] += 1
        return x - centres[batch]

    return (
        cg.FunctionSum(a_sum().value, term_grads, 30, 3, term_smoothness=1.0, grad=grad, mean_grad=mean_grad),
        asked,
    )


@pytest.mark.parametrize("method", [name for name, method in METHODS.items()])
def test_a_cheap_gradient_gives_the_same_iterates(method: str) -> None:
    F, asked = spied_sum()
    how = {"method": method, "max_steps": 12, "tol": 1e-12, "output": "last"}
    cheap, plain = (cg.minimize(f, cg.L2Ball(3, 0.2), **how) for f in (F, a_sum()))
    assert np.allclose(cheap.x, plain.x, rtol=0, atol=1e-12) and cheap.counts["ifo"] == plain.counts["ifo"]
    assert cheap.fun == pytest.approx(plain.fun, rel=1e-12)
    if method not in ("sagafw", "sagafw-s", "zero-sarah-fw"):  # which keep a gradient for each term
        assert asked["term_grads"] == 0 < asked["grad"] + asked["mean_grad"]
    if METHODS[method].deterministic:
        assert asked["mean_grad"] == 0, "the full gradient was computed from a batch of all terms"


def test_one_of_the_two_will_do() -> None:
    x, batch, plain = np.array([1.0, 2.0, 3.0]), np.array([0, 5, 5]), a_sum()
    F, asked = spied_sum()
    only_mean = a_sum(mean_grad=F.mean_grad)
    assert np.allclose(only_mean.grad(x), plain.grad(x)) and asked["mean_grad"] == 1
    only_full = a_sum(grad=F.grad)
    assert np.allclose(only_full.grad(x), plain.grad(x)) and asked["grad"] == 1
    assert np.array_equal(only_full.grad_terms(x, batch), plain.grad_terms(x, batch))
    assert np.allclose(only_mean.grad_terms(x, batch), plain.grad_terms(x, batch))


@pytest.mark.parametrize(
    ("functions", "ask", "message"),
    [
        ({"grad": lambda x: x[:1]}, "grad", "The answer of grad has shape (1,), but (3,) was expected"),
        (
            {"mean_grad": lambda x, i: np.ones((2, 3))},
            "grad_terms",
            "The answer of mean_grad has shape (2, 3), but (3,)",
        ),
        ({"mean_grad": lambda x, i: x * np.nan}, "grad_terms", "The answer of mean_grad holds NaN or Inf"),
    ],
)
def test_a_bad_answer_of_a_sum_is_refused(functions: dict[str, Any], ask: str, message: str) -> None:
    arguments = (np.ones(3), np.array([0, 1])) if ask == "grad_terms" else (np.ones(3),)
    with pytest.raises(ValueError) as refused:
        getattr(a_sum(**functions), ask)(*arguments)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("asked", [{"method": "ncgs", "inner": "corrective"}, {"method": "pairwise"}], ids=str)
def test_gradients_of_past_steps_are_not_kept(asked: dict[str, Any]) -> None:
    """With ``value_and_grad`` and without Python's cycle collector: few dense vectors, however many steps there are."""
    n, rng = 100_000, np.random.default_rng(0)
    c, domain = -rng.random(n), cg.Simplex(n)
    c[:20] = rng.random(20) / 10
    F = cg.Function(value_and_grad=lambda x: (float(np.vdot(x - c, x - c)) / 2, x - c), shape=n, smoothness=1.0)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        cg.minimize(F, domain, domain.atom(c), stop=cg.Steps(12), every=10**9, progress=False, **asked)
        peak = tracemalloc.get_traced_memory()[1] / (8 * n)
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peak < 6.5


@pytest.mark.parametrize("name", ["grad", "mean_grad"])
def test_what_is_no_function_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} is of type int, a function was expected"):
        a_sum(**{name: 3})


def test_a_step_uses_the_cache_of_the_wrapper_that_repeats_it() -> None:
    F, x = case("indefinite simplex").objective, np.full(4, 0.25)
    outer = cached(F, Evaluation(x, fun=5.0))
    assert cached(outer, Evaluation(x, fun=7.0)) is outer, "nested caches compare every point twice"
    assert outer.value(x) == 5.0


def test_a_known_gradient_does_not_stand_for_its_value() -> None:
    """A step may begin with the gradient alone, as after a factored phase."""
    F = cg.Function(value_and_grad=lambda x: (float(x @ x) / 2, x), shape=(2,))
    x = np.array([3.0, 4.0])
    assert cached(F, Evaluation(x, grad=x)).value_and_grad(x)[0] == 12.5
