"""The registry as the contract tests see it: each method on each problem that it can see."""

from __future__ import annotations

from inspect import signature
from itertools import islice

import pytest
from tests.problems import EXPECTATIONS, PLAIN, SUMS, WITHOUT_PROJECTION, case

import condgrad as cg
from condgrad.inner import INNERS as REGISTERED
from condgrad.protocols import fits
from condgrad.solvers import METHODS, Setup, build

STEPS = 12
SEES = {"gradient": (*PLAIN, *SUMS), "terms": SUMS, "samples": (*SUMS, *EXPECTATIONS)}
INNERS = {
    name: entry.factory(max_calls=30)
    for name, entry in REGISTERED.items()
    if "max_calls" in signature(entry.factory).parameters
}
"""Those whose effort is limited: an exact projection has no contract with a method that it could break."""


def suited(method):
    """The problems that a method can see, by what its entry says of it."""
    return [name for name in SEES[method.sees] if not (method.projects and name in WITHOUT_PROJECTION)]


def inners(problem):
    """Those that can work on the problem's set."""
    return [name for name in INNERS if fits(case(problem).domain, REGISTERED[name].needs)]


every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
every_walk = pytest.mark.parametrize(
    ("method", "problem", "inner"),
    [
        pytest.param(method, problem, inner, id=f"{method.name}-{problem}-{inner}")
        for method in METHODS.values()
        for problem in suited(method)
        for inner in (inners(problem) if method.slides else ["condg"])
    ],
)
deterministic = [method for method in METHODS.values() if method.deterministic]
every_deterministic = pytest.mark.parametrize("method", deterministic, ids=[m.name for m in deterministic])
stochastic = [method for method in METHODS.values() if not method.deterministic]


def solver_of(method, problem, inner="condg", schedule=None, seed=0, options=None):
    setup = Setup(schedule or cg.practical(1e-2), INNERS.get(inner, inner), STEPS, seed)
    return build(method.name, problem, setup, options or {})


def states_of(solver, problem, x0, steps=STEPS):
    return list(islice(cg.iterate(problem, solver, x0), steps + 1))


def unknown(objective, scale=1.0):
    return cg.Function(lambda x: scale * objective.value(x), lambda x: scale * objective.grad(x), objective.shape)
