"""The counts of every method equal those of a counter written by other means."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contract.counting import UNITS, recorded, tallied
from tests.contract.methods import (
    SEES,
    STEPS,
    every_deterministic,
    every_walk,
    stochastic,
    unknown,
)
from tests.problems import case

import condgrad as cg
from condgrad.solvers import METHODS, Cost

RULES_WITH_VALUES = ("adaptive", "monotone", "line-search", "golden-section", "secant")
SIZES = {"batch": 3, "epoch": 4, "sample": 20}


@every_walk
def test_counts_are_those_of_another_counter(method, problem, inner):
    example = case(problem)
    for schedule in (cg.practical(1e-2), cg.theory(STEPS)) if method.slides else (cg.practical(1e-2),):
        tallies = tallied(example, method, inner, STEPS, schedule)
        result = recorded(example, method, inner, STEPS, schedule)
        assert result.steps == STEPS
        assert result.counts == tallies[-1]
        assert [{unit: getattr(row, unit) for unit in UNITS} for row in result.trace] == tallies


@pytest.mark.parametrize("rule", cg.solvers.RULES)
def test_frank_wolfe_pays_for_its_values(rule):
    example, method = case("indefinite l1"), METHODS["frank-wolfe"]
    tallies = tallied(example, method, "condg", STEPS, options={"rule": rule})
    assert recorded(example, method, "condg", STEPS, options={"rule": rule}).counts == tallies[-1]
    assert (tallies[-1]["values"] > 0) == (rule in RULES_WITH_VALUES)


@every_deterministic
def test_counts_with_backtracking(method):
    example = case("indefinite simplex")
    problem = cg.Problem(unknown(example.objective), example.domain)
    tallies = tallied(example, method, "condg", STEPS, problem=problem)
    assert recorded(example, method, "condg", STEPS, problem=problem).counts == tallies[-1]
    assert tallies[0]["fo"] == 2, "the first guess of L is two gradients"


@pytest.mark.parametrize(
    ("method", "problem"),
    [pytest.param(m, p, id=f"{m.name}-{p}") for m in stochastic if m.cost for p in SEES[m.sees]],
)
def test_term_gradients_by_the_formula(method, problem):
    """What T steps cost by the papers' own arithmetic, with batches of 3, epochs of 4 and samples of 20."""
    example, T, n = case(problem), STEPS, getattr(case(problem).objective, "n_terms", 0)
    given = {**SIZES, "initial_gap": 1.0}
    options = {name: value for name, value in given.items() if name in method.options}
    tally = tallied(example, method, "condg", T, options=options)[-1]
    cost = Cost(
        T, n, **SIZES, distinct=lambda size: sum(len(np.unique(second_batch(size, k))) for k in range(1, T + 1))
    )
    assert tally["ifo" if n else "sfo"] == method.cost(cost)
    assert method.slides or tally["lo"] == T or ("rounds" in method.options and tally["lo"] > T)


def second_batch(n, k):
    rng = np.random.default_rng((0, k))
    rng.integers(n, size=3)
    return rng.integers(n, size=3)


@pytest.mark.parametrize("name", ["ncgs-vr", "svfw"])
def test_stored_snapshots_halve_the_cost_of_a_step(name):
    example, method, T = case("welsch simplex"), METHODS[name], STEPS
    options = {"batch": 3, "epoch": 4, "store": True}
    if "initial_gap" in method.options:
        options["initial_gap"] = 1.0
    assert tallied(example, method, "condg", T, options=options)[-1]["ifo"] == T // 4 * 20 + 3 * T
