"""Step rules as values: their parameters, what they promise, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.problems import case

import condgrad as cg
from condgrad.solvers import FrankWolfe, InverseSqrt, Monotone, OpenLoop, Secant
from condgrad.solvers.step_rules import Direction, GoldenSection, LineSearch


def walk(problem: str, rule: Any, steps: int = 30) -> list[Any]:
    example = case(problem)
    states = cg.iterate(example.problem, FrankWolfe(rule), example.x0)
    return [next(states) for _ in range(steps)]


def along(value: Any, slope: Any) -> Direction:
    """The direction of a function of t in [0, 1]."""
    objective = SimpleNamespace(value=lambda x: value(float(x[0])), grad=lambda x: np.array([slope(float(x[0]))]))
    return Direction(
        problem=cg.Problem(objective, None),
        k=0,
        x=np.zeros(1),
        grad=np.array([slope(0.0)]),
        own=-1.0,
        parts=((1.0, np.ones(1)),),
        gap=-slope(0.0),
        length2=1.0,
        L=1.0,
        curvature=1.0,
    )


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a.x, b.x) for a, b in zip(one, other, strict=True))


def test_open_loop_has_a_parameter() -> None:
    assert same(walk("indefinite l1", OpenLoop(5)), walk("indefinite l1", lambda d: 5 / (d.k + 5)))
    assert same(walk("indefinite l1", OpenLoop()), walk("indefinite l1", "open-loop"))


@pytest.mark.parametrize("rule", ["open-loop", OpenLoop(6), InverseSqrt(), "short"], ids=str)
@pytest.mark.parametrize("problem", ["convex simplex", "sigmoid l1"])
def test_a_monotone_rule_never_increases_F(problem: str, rule: Any) -> None:
    F = case(problem).objective.value
    falls = [F(b.x) - F(a.x) for a, b in pairwise(walk(problem, Monotone(rule)))]
    assert max(falls) <= 1e-11
    plain = [F(b.x) - F(a.x) for a, b in pairwise(walk(problem, rule))]
    assert (max(plain) > 1e-6) == (rule != "short"), "or the rule would have nothing to do"


def test_a_monotone_rule_leaves_steps_that_decrease_F_as_they_are() -> None:
    assert same(walk("convex simplex", Monotone("short")), walk("convex simplex", "short"))


def test_the_secant_of_a_quadratic_is_exact() -> None:
    """At most two gradients and two values a step: at the end of the segment and at the zero, where the next step begins."""
    example, steps = case("convex simplex"), 20
    result = cg.run(example.problem, FrankWolfe("secant"), example.x0, cg.Steps(steps))
    assert result.counts["fo"] <= 1 + 2 * steps and result.counts["values"] <= 1 + 2 * steps
    best = walk("convex simplex", "line-search", steps)[-1]
    assert example.objective.value(walk("convex simplex", "secant", steps)[-1].x) <= best.fun + 1e-7


@pytest.mark.parametrize("rule", [Secant(), GoldenSection(), LineSearch()], ids=str)
@pytest.mark.parametrize("seed", range(30))
def test_a_search_ends_at_a_stationary_point_that_is_not_above_the_start(seed: int, rule: Any) -> None:
    """Of a non-convex function with a negative slope at 0 that has several local minima."""
    rng = np.random.default_rng(seed)
    a, w, p = 3 * rng.standard_normal(3), rng.uniform(1, 15, 3), rng.uniform(0, 6, 3)

    def value(t: float) -> float:
        return float(np.sum(a * np.sin(w * t + p)))

    def slope(t: float) -> float:
        return float(np.sum(a * w * np.cos(w * t + p)))

    if slope(0.0) > 0:
        a = -a
    t, _ = rule.choose(along(value, slope))
    assert value(t) <= value(0.0)
    assert t == 1.0 or abs(slope(t)) <= 1e-4 * (1 + np.abs(a * w**2).sum()) or not isinstance(rule, Secant)


def test_the_secant_does_not_stop_at_the_end_of_a_segment_that_is_above_its_start() -> None:
    """The slope at 1 is negative, but F(1) > F(0)."""
    t, _ = Secant().choose(along(lambda t: np.sin(6 * t + 3) + 2 * t, lambda t: 6 * np.cos(6 * t + 3) + 2))
    assert 0 < t < 0.5 and abs(6 * np.cos(6 * t + 3) + 2) <= 1e-5


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: OpenLoop(0), "ell of OpenLoop"),
        (lambda: Secant(tolerance=2.0), "tolerance of Secant is 2.0, a number between 0 and 1"),
        (lambda: Secant(max_trials=0), "max_trials of Secant"),
        (lambda: GoldenSection(0.0), "width of GoldenSection is 0.0, a number between 0 and 1"),
        (lambda: Monotone("shorter"), "rule of Monotone"),
        (lambda: FrankWolfe(OpenLoop(3), step_scale=2.0), "step_scale is for the rules short and bounded"),
        (
            lambda: cg.minimize(cg.Quadratic(np.eye(3)), cg.Simplex(3), method="away-step", rule=OpenLoop(4)),
            r"OpenLoop\(ell=4\) does not minimise F along a direction, .*: use one of short, adaptive, line-search",
        ),
    ],
)
def test_refusals(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
