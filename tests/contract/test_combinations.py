"""Every method on every kind of objective and set: it runs, or is refused before the first step, in one sentence."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
from tests.contract.methods import every_method

import condgrad as cg
from condgrad.checks import NotGiven
from condgrad.protocols import Expectation, FiniteSum, Objective, Projectable, fits
from condgrad.solvers import METHODS
from condgrad.solvers.registry import CONTRACTS

RNG = np.random.default_rng(0)
A, Y = RNG.standard_normal((12, 4)), RNG.standard_normal(12)


class Counted:
    """Counts the gradients of an objective, of which a run that is refused takes none."""

    def __init__(self, objective):
        self.objective, self.calls = objective, 0

    def __getattr__(self, name):
        member = getattr(self.objective, name)
        if member is None or name not in ("grad", "value", "grad_terms", "term_rows", "value_and_grad"):
            return member

        def call(*args):
            self.calls += 1
            return member(*args)

        return call


def plain():
    return cg.Quadratic(np.diag([1.0, -2.0, 3.0, 1.5]), np.arange(4.0))


def without_smoothness():
    F = plain()
    return cg.Function(F.value, F.grad, 4)


def finite_sum():
    return cg.LinearModel(A, Y, cg.Welsch())


def sum_without_constants():
    F = finite_sum()
    return cg.FunctionSum(F.value, lambda x, batch: F.term_rows(x, batch)[:, None] * A[batch], 12, 4)


def expectation():
    F = finite_sum()
    return cg.FunctionExpectation(
        lambda size, rng: rng.integers(12, size=size),
        lambda x, batch: F.term_rows(x, batch)[:, None] * A[batch],
        4,
        smoothness=F.smoothness,
    )


OBJECTIVES = {f.__name__: f for f in (plain, without_smoothness, finite_sum, sum_without_constants, expectation)}
SETS = {
    "projects": lambda: cg.Simplex(4),
    "polytope": lambda: cg.ConvexHull(np.eye(4)),
    "curved": lambda: cg.LpBall(4, 3.0),
    "user's": lambda: cg.user_set(lambda g: np.eye(4)[np.argmin(g)], 4),
}


@every_method
def test_a_combination_runs_or_is_refused_with_alternatives(method):
    for kind, domain in product(OBJECTIVES, SETS):
        check(method, OBJECTIVES[kind](), SETS[domain]())
    check(method, cg.Completion.from_dense(np.outer(np.arange(3.0), np.ones(4))), cg.NuclearBall((3, 4)))


def check(method, objective, space):
    F = Counted(objective)
    try:
        result = cg.minimize(F, space, method=method.name, tol=1e-2, max_steps=1, validate=50, progress=False)
    except (TypeError, ValueError) as refusal:
        message = str(refusal)
        assert F.calls == 0, f"{message} (after {F.calls} calls of the objective)"
        assert message.endswith(".") and "\n" not in message and ". " not in message, message
        assert method.name in message or isinstance(refusal, NotGiven), message
        advice = message.split(": ", 1)[1]
        named = set(re.findall(r"[a-z][a-z-]+", advice)) & set(METHODS)
        for name in named:
            assert suits(METHODS[name], objective, space), f"{name} is named, and does not fit either: {message}"
        mended = any(word in advice for word in ("give ", "pass ", "leave "))
        assert named or mended, f"no alternative is named: {message}"
        assert mended or not suits(method, objective, space), f"refused, although it fits: {message}"
    else:
        assert suits(method, objective, space) and result.method == method.name


def suits(method, objective, space):
    """Whether a method fits by what its entry says."""
    return fits(objective, CONTRACTS[method.sees]) and (not method.projects or fits(space, Projectable))


def test_the_kinds_are_what_they_are_called():
    assert fits(finite_sum(), FiniteSum) and not fits(plain(), Expectation) and not fits(expectation(), Objective)
    assert not fits(SETS["polytope"](), Projectable) and not fits(SETS["user's"](), Projectable)
