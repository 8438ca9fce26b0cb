"""A second counter of oracle calls, written by other means than the library's."""

from __future__ import annotations

from itertools import islice
from types import SimpleNamespace

from tests.contract.methods import (
    solver_of,
)

import condgrad as cg


def spied(problem, tally):
    """The problem with its oracles counted once more, by other means: plain functions in a bare namespace."""

    def call(oracle, ask, *prices):
        def asked(*args):
            for unit, price in prices:
                tally[unit] += price(args)
            return ask(*args)

        return {oracle: asked}

    f, domain = problem.objective, problem.domain
    is_sum = hasattr(f, "n_terms")
    unit = "ifo" if is_sum else "sfo"
    objective = {name: getattr(f, name) for name in CONSTANTS if hasattr(f, name)}
    if hasattr(f, "value"):
        objective |= call("value", f.value, ("values", lambda args: 1))
        full = [("fo", lambda args: 1), ("ifo", lambda args: f.n_terms if is_sum else 0)]
        objective |= call("grad", f.grad, *full)
    if hasattr(f, "draw"):
        objective |= {"draw": f.draw, "assemble": f.assemble}
        objective |= call("grad_terms", f.grad_terms, (unit, lambda args: len(args[1])))
        objective |= call("term_rows", f.term_rows, (unit, lambda args: len(args[1])))
    region = {"shape": domain.shape, "diameter": domain.diameter, "max_norm": domain.max_norm}
    region |= {"start": domain.start, "contains": domain.contains}
    region |= call("lmo", domain.lmo, ("lo", lambda args: 1))
    for name in ("atom", "atoms"):
        if hasattr(domain, name):
            region |= call(name, getattr(domain, name), ("lo", lambda args: 1))
    if hasattr(domain, "lmo_near"):
        region |= {
            name: getattr(domain, name)
            for name in ("spectrum", "narrowest", "trace", "floor", "shrink", "low_rank_start")
        }
        region |= call("lmo_near", domain.lmo_near, ("lo", lambda args: 1))
        region |= call("beyond", domain.beyond, ("ub", lambda args: 1))
    if hasattr(domain, "project"):
        region |= call("project", domain.project, ("po", lambda args: 1))
    return cg.Problem(SimpleNamespace(**objective), SimpleNamespace(**region))


CONSTANTS = (
    "shape",
    "smoothness",
    "lower_smoothness",
    "lower_bound",
    "n_terms",
    "term_smoothness",
    "mean_square_smoothness",
)
UNITS = ("fo", "sfo", "ifo", "lo", "ub", "po", "values")


def tallied(example, method, inner, steps, schedule=None, options=None, problem=None):
    """The tally after each step, from 0, of a method driven by hand."""
    problem, tally = problem or example.problem, dict.fromkeys(UNITS, 0)
    watched = spied(problem, tally)
    walk = cg.iterate(watched, solver_of(method, watched, inner, schedule, options=options), example.x0)
    return [dict(tally) for _ in islice(walk, steps + 1)]


def recorded(example, method, inner, steps, schedule=None, options=None, problem=None):
    problem = problem or example.problem
    solver = solver_of(method, problem, inner, schedule, options=options)
    return cg.run(problem, solver, example.x0, cg.Steps(steps), validate=20)
