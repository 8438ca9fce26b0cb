"""What minimize says to a wrong problem, start or answer: one sentence, of the right type, with the words that help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.driving import CONVEX, EXPECTATION, ONLY_LMO, SIMPLEX, SUM, assert_refused, function, solve

import condgrad as cg
from condgrad.checks import NonFinite
from condgrad.points import LowRank

nan, inf = np.nan, np.inf
HOLES = cg.Completion.from_dense([[1.0, nan], [0.0, 2.0]])
NOTHING = (lambda x: 0.0, lambda x, batch: np.zeros((len(batch), 3)), 4, (3,))
WITHOUT_L, WITH_L = cg.FunctionSum(*NOTHING), cg.FunctionSum(*NOTHING, smoothness=1.0)
WITH_K = cg.FunctionSum(*NOTHING, mean_square_smoothness=1.0)

REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    # the problem
    "two shapes": (
        lambda: solve(domain=cg.Simplex(4)),
        ValueError,
        "objective's points have shape (3,), the set's have shape (4,)",
    ),
    "matrices for vectors": (
        lambda: solve(domain=cg.NuclearBall((3, 1))),
        ValueError,
        "(3,), the set's have shape (3, 1)",
    ),
    "a plain function": (
        lambda: solve(lambda x: 1.0),
        TypeError,
        "The objective is a plain function, which has no value and no grad: an objective has at least value and grad; for",
    ),
    "a number": (lambda: solve(3.0), TypeError, "The objective is of type float"),
    "an array for a set": (
        lambda: solve(domain=np.eye(3)),
        TypeError,
        "The domain is of type ndarray, which has no lmo: a set has at least shape and lmo; see condgrad.domains, or user_set",
    ),
    "swapped": (lambda: cg.minimize(SIMPLEX, CONVEX), TypeError, "The domain is of type Quadratic"),
    "NaN in the data": (
        lambda: solve(cg.Quadratic(np.diag([1.0, nan, 1.0]))),
        ValueError,
        "Q of Quadratic holds NaN or Inf (1 of 9 entries, the first at index (1, 1))",
    ),
    "an empty set": (
        lambda: solve(domain=cg.Box([0.0, 0.0, 2.0], [1.0, 1.0, 1.0])),
        ValueError,
        "Box is an empty set: lower 2.0 is above upper 1.0 at index (2,)",
    ),
    "a negative radius": (
        lambda: solve(domain=cg.L2Ball(3, -1.0)),
        ValueError,
        "The radius of L2Ball must be positive, but got -1.0",
    ),
    "a class for a set": (lambda: solve(domain=cg.Simplex), TypeError, "domain"),
    "a class for an objective": (lambda: solve(cg.Quadratic), TypeError, "objective"),
    # the start
    "x0 of low rank outside": (
        lambda: cg.minimize(HOLES, cg.NuclearBall((2, 2)), LowRank(np.ones((2, 1)), np.ones((2, 1)))),
        ValueError,
        "x0 lies outside the set: give a point of it, or leave x0 out",
    ),
    "x0 of low rank and another shape": (
        lambda: cg.minimize(HOLES, cg.NuclearBall((2, 2)), LowRank(np.zeros((3, 1)), np.ones((2, 1)))),
        ValueError,
        "x0 has shape (3, 2), but (2, 2) was expected",
    ),
    "NaN in x0 of low rank": (
        lambda: cg.minimize(HOLES, cg.NuclearBall((2, 2)), LowRank(np.full((2, 1), nan), np.ones((2, 1)))),
        NonFinite,
        "x0 holds NaN or Inf",
    ),
    "x0 outside": (
        lambda: solve(x0=np.ones(3)),
        ValueError,
        "x0 lies outside the set: give a point of it, or leave x0 out",
    ),
    "x0 outside a set with nothing but an oracle": (
        lambda: solve(domain=ONLY_LMO, x0=np.ones(3)),
        ValueError,
        "x0 lies outside the set",
    ),
    "x0 of another shape": (
        lambda: solve(x0=np.ones((3, 1)) / 3),
        ValueError,
        "x0 has shape (3, 1), but (3,) was expected",
    ),
    "x0 too short": (lambda: solve(x0=[0.5, 0.5]), ValueError, "x0 has shape (2,), but (3,) was expected"),
    "NaN in x0": (
        lambda: solve(x0=[0.5, nan, 0.5]),
        ValueError,
        "x0 holds NaN or Inf (1 of 3 entries, the first at index (1,))",
    ),
    "words in x0": (lambda: solve(x0=["a", "b", "c"]), ValueError, "x0 must be an array of real numbers"),
    # what methods need
    "no finite sum": (
        lambda: solve(method="ncgs-vr"),
        TypeError,
        "Method 'ncgs-vr' needs a finite sum, Quadratic has none: use ncgs, ncgs-ii, frank-wolfe, "
        "away-step, pairwise, blended-pairwise, ",
    ),
    "no samples": (
        lambda: solve(method="sfw"),
        TypeError,
        "Method 'sfw' needs samples (draw, grad_terms), Quadratic has none",
    ),
    "an expectation for ncgs": (
        lambda: solve(EXPECTATION, method="ncgs"),
        TypeError,
        "Method 'ncgs' needs value and grad, FunctionExpectation has none: use stochastic-ncgs, momentum-ncgs, sfw",
    ),
    "an expectation for svfw": (
        lambda: solve(EXPECTATION, method="svfw"),
        TypeError,
        "Method 'svfw' needs a finite sum, FunctionExpectation has none",
    ),
    "no projection": (
        lambda: solve(domain=ONLY_LMO, method="projected-gradient"),
        TypeError,
        "Method 'projected-gradient' projects, UserSet has no projection: use ncgs",
    ),
    "no projection, accelerated": (
        lambda: solve(domain=ONLY_LMO, method="accelerated-gradient"),
        TypeError,
        "has no projection",
    ),
    "no exact prox": (
        lambda: solve(domain=ONLY_LMO, inner="exact"),
        TypeError,
        "exact inner solver needs a set that projects, UserSet does not: use 'corrective' or 'condg'",
    ),
    "no smoothness": (
        lambda: solve(WITHOUT_L, method="svfw"),
        ValueError,
        "Method 'svfw' needs the smoothness L, which can't be found by backtracking",
    ),
    "no smoothness of the terms": (
        lambda: solve(WITH_L, method="ncgs-vr"),
        ValueError,
        "Method 'ncgs-vr' needs the terms' smoothness: give term_smoothness= to FunctionSum.",
    ),
    "no smoothness of every term": (
        lambda: solve(WITH_K, method="ncgs-vr", schedule="theory"),
        ValueError,
        "Theorem 3 needs a smoothness of every term: give term_smoothness= to the objective.",
    ),
    "no diameter": (
        lambda: solve(domain=ONLY_LMO, method="cgs", schedule="theory"),
        ValueError,
        "The diameter of the set is needed, and user_set was given none: pass diameter=.",
    ),
    "smoothness estimated from noise": (
        lambda: solve(SUM, method="sfw", smoothness="estimate"),
        ValueError,
        "give smoothness= to LinearModel",
    ),
    "the user's class is named": (
        lambda: solve(EXPECTATION, method="ncgs", smoothness=2.0),
        TypeError,
        "FunctionExpectation has none",
    ),
    # what a user's functions answer at the start
    "NaN gradient": (
        lambda: solve(function(grad=lambda x: np.full(3, nan))),
        NonFinite,
        "The answer of grad holds NaN or Inf (3 of 3 entries, the first at index (0,))",
    ),
    "infinite gradient": (
        lambda: solve(function(grad=lambda x: np.array([1.0, inf, 1.0]))),
        NonFinite,
        "The answer of grad holds NaN or Inf (1 of 3 entries, the first at index (1,))",
    ),
    "NaN value": (lambda: solve(function(value=lambda x: nan)), NonFinite, "The answer of value holds NaN or Inf"),
    "NaN from lmo": (
        lambda: solve(domain=cg.user_set(lambda g: np.full(3, nan), 3), x0=None),
        NonFinite,
        "The answer of lmo holds NaN or Inf",
    ),
    "a gradient of another shape": (
        lambda: solve(function(grad=lambda x: np.ones(4))),
        ValueError,
        "The answer of grad has shape (4,), but (3,) was expected",
    ),
    "a value that is a vector": (
        lambda: solve(function(value=lambda x: x)),
        ValueError,
        "The answer of value has shape (3,), but () was expected",
    ),
    "no gradient": (
        lambda: solve(function(grad=lambda x: None)),
        ValueError,
        "The answer of grad must be an array of real numbers",
    ),
    "NaN rows": (
        lambda: solve(
            cg.FunctionSum(
                lambda x: 0.0, lambda x, batch: np.full((len(batch), 3), nan), 4, (3,), 1.0, term_smoothness=1.0
            ),
            method="ncgs-vr",
        ),
        NonFinite,
        "The answer of term_grads holds NaN or Inf",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(*REFUSED[name])
