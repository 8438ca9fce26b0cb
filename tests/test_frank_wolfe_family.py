"""Frank-Wolfe methods that are deterministic and keep no active set: equivalences, bounds and what they save."""

from __future__ import annotations

from itertools import islice
from math import log2
from typing import Any

import numpy as np
import pytest
from tests.minima import NONCONVEX
from tests.problems import case
from tests.reference import lazy

import condgrad as cg
from condgrad.solvers import Setup, build

STEPS = 40
POLYTOPES = ["indefinite simplex", "convex simplex", "indefinite l1", "sigmoid l1"]


def states(method: str, problem: cg.Problem, x0: Any, steps: int = STEPS, **options: Any) -> list[Any]:
    solver = build(method, problem, Setup(cg.practical(1e-2), cg.CondG(30), steps), options)
    return list(islice(cg.iterate(problem, solver, x0), steps + 1))


def together(one: list[Any], other: list[Any], tolerance: float = 1e-10) -> None:
    assert np.linalg.norm(one[-1].x - one[0].x) > 1e-3, "neither moves: it would prove nothing"
    for a, b in zip(one, other, strict=True):
        assert np.linalg.norm(a.x - b.x) <= tolerance, f"apart after {a.k} steps"


# --------------------------------------------------------------------------------------------------------------- lazy


@pytest.mark.parametrize("problem", POLYTOPES)
@pytest.mark.parametrize("rule", ["short", "open-loop", "adaptive"])
def test_lazy_frank_wolfe_that_pays_for_every_vertex_is_frank_wolfe(problem: str, rule: str) -> None:
    example = case(problem)
    paid = states("lazy-frank-wolfe", example.problem, example.x0, rule=rule, cache=0)
    together(paid, states("frank-wolfe", example.problem, example.x0, rule=rule))
    assert all(state.certificate.gap < np.inf for state in paid[1:])


@pytest.mark.parametrize("factor", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("problem", POLYTOPES)
def test_lazy_frank_wolfe_calls_the_oracle_as_often_as_its_reference(problem: str, factor: float) -> None:
    example, F = case(problem), case(problem).objective
    solver = build("lazy-frank-wolfe", example.problem, Setup(cg.practical(), cg.CondG(), 60), {"factor": factor})
    result = cg.run(example.problem, solver, example.x0, cg.Steps(60))
    _, calls = lazy.run(F.grad, example.domain.lmo, example.x0, 60, F.smoothness, factor)
    assert result.counts["lo"] == calls
    assert calls < 60 or problem == "indefinite simplex", "from whose stationary vertex no known one descends"
    assert result.counts["fo"] in (60, 61)


@pytest.mark.parametrize("factor", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("make", NONCONVEX)
def test_the_bound_of_lazy_frank_wolfe(make: Any, factor: float) -> None:
    """A gap of at most eps is found within max(2K'h/eps, 2K'^2 C h/eps^2) + log2(gap(x_0)/eps) + 2 steps; not at the start."""
    known = make()
    C = known.objective.smoothness * known.domain.diameter**2
    g = known.objective.grad(known.x0)
    first = float(np.sum(g * (known.x0 - known.domain.lmo(g))))
    share, eps = max(factor, 2.0), 0.6 * first
    steps = int(max(2 * share * known.h0 / eps, 2 * share**2 * C * known.h0 / eps**2) + log2(first / eps) + 2)
    gaps = [s.certificate.gap for s in states("lazy-frank-wolfe", known.problem, known.x0, steps, factor=factor)[1:]]
    assert min(gaps) <= eps < gaps[0]


def test_lazy_frank_wolfe_keeps_no_more_vertices_than_it_may() -> None:
    example = case("indefinite lp")  # on a curved set each vertex is new
    few = states("lazy-frank-wolfe", example.problem, example.x0, cache=3)
    assert len(few[1].vertices) == 1 and max(len(state.vertices) for state in few[1:]) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [({"factor": 0.5}, "factor is 0.5, a number of at least 1 was expected"), ({"cache": -1}, "cache must be a whole")],
)
def test_lazy_frank_wolfe_refuses(options: Any, said: str) -> None:
    example = case("indefinite l1")
    with pytest.raises(ValueError, match=said):
        cg.minimize(example.objective, example.domain, method="lazy-frank-wolfe", max_steps=2, **options)
