"""What minimize, the registry and the rules say to wrong input: one sentence, of the right type, with the words that help."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.checks import NonFinite
from condgrad.points import LowRank
from condgrad.solvers import Setup, build

nan, inf = np.nan, np.inf
X0 = np.array([0.5, 0.2, 0.3])
SIMPLEX = cg.Simplex(3)
CONVEX = cg.Quadratic(np.diag([1.0, 2.0, 3.0]))
SUM = cg.LinearModel(np.eye(3), np.ones(3), cg.Squared())
EXPECTATION = cg.FunctionExpectation(
    lambda size, rng: rng.normal(size=(size, 3)), lambda x, batch: x - batch, (3,), 1.0, 0.0
)
MATRICES = cg.FunctionExpectation(
    lambda size, rng: rng.normal(size=(size, 2, 2)), lambda x, batch: x - batch, (2, 2), 1.0, 0.0
)
HOLES = cg.Completion.from_dense([[1.0, nan], [0.0, 2.0]])
NOTHING = (lambda x: 0.0, lambda x, batch: np.zeros((len(batch), 3)), 4, (3,))
WITHOUT_L, WITH_L = cg.FunctionSum(*NOTHING), cg.FunctionSum(*NOTHING, smoothness=1.0)
WITH_K = cg.FunctionSum(*NOTHING, mean_square_smoothness=1.0)
ONLY_LMO = cg.user_set(SIMPLEX.lmo, 3)


def solve(objective: Any = CONVEX, domain: Any = SIMPLEX, x0: Any = X0, **more: Any) -> cg.Result:
    return cg.minimize(objective, domain, x0, **{"max_steps": 5} | more)


def function(value: Any = CONVEX.value, grad: Any = CONVEX.grad, L: float | None = 3.0) -> cg.Function:
    return cg.Function(value, grad, (3,), smoothness=L)


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
        "The objective is a plain function, an Objective was expected: for your own function use Function",
    ),
    "a number": (lambda: solve(3.0), TypeError, "The objective is of type float"),
    "an array for a set": (
        lambda: solve(domain=np.eye(3)),
        TypeError,
        "The domain is of type ndarray, a set with lmo, shape, diameter was expected",
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
        "Method 'ncgs-vr' needs a finite sum, Quadratic has none: use ncgs, ncgs-ii, frank-wolfe.",
    ),
    "no samples": (
        lambda: solve(method="sfw"),
        TypeError,
        "Method 'sfw' needs samples (draw, grad_terms), Quadratic has none",
    ),
    "an expectation for ncgs": (
        lambda: solve(EXPECTATION, method="ncgs"),
        TypeError,
        "Method 'ncgs' needs value and grad, FunctionExpectation has none: use stochastic-ncgs, sfw",
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
    # names
    "method": (
        lambda: solve(method="ncsg"),
        ValueError,
        "Unknown method 'ncsg': did you mean 'ncgs'? Known methods: ncgs, ncgs-ii",
    ),
    "no method at all": (lambda: solve(method="zzz"), ValueError, "Unknown method 'zzz'. Known methods: ncgs"),
    "a method that is none": (lambda: solve(method=None), ValueError, "Unknown method None"),
    "inner": (
        lambda: solve(inner="corective"),
        ValueError,
        "Unknown inner solver 'corective': did you mean 'corrective'?",
    ),
    "schedule": (
        lambda: solve(schedule="practicall"),
        ValueError,
        "Unknown schedule 'practicall': did you mean 'practical'?",
    ),
    "output": (lambda: solve(output="lst"), ValueError, "Unknown output 'lst': did you mean 'last'?"),
    "smoothness": (
        lambda: solve(smoothness="estimat"),
        ValueError,
        "Unknown smoothness 'estimat': did you mean 'estimate'?",
    ),
    "rule": (
        lambda: solve(method="frank-wolfe", rule="shortt"),
        ValueError,
        "Unknown Frank-Wolfe rule 'shortt': did you mean 'short'?",
    ),
    "oracle": (lambda: cg.Calls(5, "value"), ValueError, "Unknown oracle 'value': did you mean 'values'?"),
    "column": (lambda: solve().trace["maping"], ValueError, "Unknown column 'maping': did you mean 'mapping'?"),
    "built by hand": (
        lambda: build("ncg", cg.Problem(CONVEX, SIMPLEX), Setup(cg.theory(5), cg.Exact(), 5), {}),
        ValueError,
        "Unknown method 'ncg': did you mean 'ncgs'?",
    ),
    # options
    "option": (
        lambda: solve(strech=1.0),
        TypeError,
        "Method 'ncgs' has no option 'strech': its options are stretch, adaptive.",
    ),
    "another method's option": (
        lambda: solve(method="ncgs-ii", stretch=1.0),
        TypeError,
        "Method 'ncgs-ii' has no option 'stretch': its options are none.",
    ),
    "an option of nobody": (lambda: solve(maxiter=5), TypeError, "has no option 'maxiter'"),
    "stretch": (lambda: solve(stretch=2.0), ValueError, "stretch is 2.0, but the proof covers 0 to 1"),
    "stretch and adaptive": (
        lambda: solve(stretch=0.5, adaptive=True),
        ValueError,
        "stretch and adaptive exclude each other: give one of them.",
    ),
    "adaptive": (
        lambda: solve(adaptive="yes"),
        ValueError,
        "The option adaptive must be True or False, but got 'yes'.",
    ),
    "the spectral solver on a simplex": (
        lambda: solve(inner="spectral"),
        TypeError,
        "The spectral inner solver needs a spectral set such as NuclearBall, Simplex is none: use 'auto'.",
    ),
    "the same as an object": (
        lambda: solve(inner=cg.Spectral()),
        TypeError,
        "The spectral inner solver needs a spectral set such as NuclearBall, Simplex is none: use 'auto'.",
    ),
    "the exact one as an object": (
        lambda: solve(domain=ONLY_LMO, inner=cg.Exact()),
        TypeError,
        "exact inner solver needs a set that projects, UserSet does not: use 'corrective' or 'condg'",
    ),
    "a warm start on a simplex": (
        lambda: solve(warm_start=5),
        TypeError,
        "warm_start is for spectral sets such as NuclearBall, Simplex is none: leave it out.",
    ),
    "half a warm start": (
        lambda: solve(warm_start=0.5),
        ValueError,
        "warm_start must be a whole number of at least 0, but got 0.5.",
    ),
    "a warm start without gradients": (
        lambda: cg.minimize(MATRICES, cg.NuclearBall((2, 2)), method="stochastic-ncgs", warm_start=5),
        TypeError,
        "warm_start takes full gradients, FunctionExpectation has none: leave it out.",
    ),
    "random output of a deterministic method": (
        lambda: solve(output="random"),
        ValueError,
        "Method 'ncgs' is deterministic, it has no random output: use output='best' or 'last'.",
    ),
    "a negative batch": (
        lambda: solve(SUM, method="sfw", batch=-3),
        ValueError,
        "The option batch must be a whole number of at least 1, but got -3.",
    ),
    "a negative epoch": (
        lambda: solve(SUM, method="svfw", epoch=-3),
        ValueError,
        "The option epoch must be a whole number of at least 1, but got -3.",
    ),
    "a negative step": (
        lambda: solve(SUM, method="ncgs-vr", lam=-1.0),
        ValueError,
        "The option lam must be positive, but got -1.0",
    ),
    "negative strong convexity": (
        lambda: solve(method="cgs", strong_convexity=-1.0),
        ValueError,
        "The option strong_convexity must not be negative, but got -1.0",
    ),
    "a negative limit of an inner solver": (
        lambda: cg.CondG(max_calls=-1),
        ValueError,
        "max_calls must be a whole number of at least 1, but got -1.",
    ),
    # numbers
    "negative tol": (lambda: solve(tol=-1e-6), ValueError, "must be positive, but got -1e-06"),
    "tol 0": (lambda: solve(tol=0), ValueError, "must be positive, but got 0"),
    "NaN as tol": (lambda: solve(tol=nan), ValueError, "must be a finite real number, but got nan"),
    "tol in words": (lambda: solve(tol="small"), ValueError, "must be a finite real number, but got 'small'"),
    "negative max_steps": (
        lambda: solve(max_steps=-1),
        ValueError,
        "max_steps must be a whole number of at least 0, but got -1.",
    ),
    "half a step": (
        lambda: solve(max_steps=2.5),
        ValueError,
        "max_steps must be a whole number of at least 0, but got 2.5.",
    ),
    "fractional seed": (lambda: solve(seed=1.5), ValueError, "seed must be a whole number of at least 0, but got 1.5."),
    "negative seed": (lambda: solve(seed=-1), ValueError, "seed must be a whole number"),
    "no seed": (lambda: solve(seed=None), ValueError, "seed must be a whole number of at least 0, but got None."),
    "every": (lambda: solve(every=0), ValueError, "every must be a whole number of at least 1, but got 0."),
    "L = 0": (lambda: solve(smoothness=0.0), ValueError, "smoothness must be positive, but got 0.0"),
    "negative L": (lambda: solve(smoothness=-2.0), ValueError, "smoothness must be positive, but got -2.0"),
    "negative L of a function": (
        lambda: function(L=-1.0),
        ValueError,
        "The smoothness of Function must be positive, but got -1.0",
    ),
    "Mapping": (lambda: cg.Mapping(-1.0), ValueError, "tolerance for the squared gradient mapping must be positive"),
    "Gap": (lambda: cg.Gap(0.0), ValueError, "tolerance for the Frank-Wolfe gap must be positive"),
    "Steps": (lambda: cg.Steps(-1), ValueError, "number of steps must be a whole number of at least 0, but got -1."),
    "Seconds": (lambda: cg.Seconds(0), ValueError, "number of seconds must be positive"),
    "CpuSeconds": (lambda: cg.CpuSeconds(nan), ValueError, "number of CPU seconds must be a finite real number"),
    "Calls": (
        lambda: cg.Calls(1.5),
        ValueError,
        "number of lo calls must be a whole number of at least 1, but got 1.5.",
    ),
    "Stagnation": (
        lambda: cg.Stagnation(0),
        ValueError,
        "number of steps must be a whole number of at least 1, but got 0.",
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
    "a rule that is none": (lambda: solve(stop="gap"), TypeError, "stop"),
    "an inner solver that is none": (lambda: solve(inner=5), TypeError, "inner"),
    "a schedule that is none": (lambda: solve(schedule=5), TypeError, "schedule"),
    "a callback that is none": (lambda: solve(callback=5), TypeError, "callback"),
    "a class for a set": (lambda: solve(domain=cg.Simplex), TypeError, "domain"),
    "a class for an objective": (lambda: solve(cg.Quadratic), TypeError, "objective"),
    "negative tol beside a stop": (lambda: solve(tol=-1.0, stop=cg.Steps(3)), ValueError, "must be positive"),
    "tol 0 for auto": (lambda: solve(SUM, method="auto", tol=0), ValueError, "must be positive"),
    "no samples to validate with": (lambda: solve(EXPECTATION, method="sfw", validate=-1), ValueError, "validate"),
    "no steps in theory": (lambda: cg.theory(0), ValueError, "steps"),
    "negative accuracy": (lambda: cg.practical(c=-1.0), ValueError, "must not be negative"),
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
}


def one_sentence(error: BaseException) -> str:
    said = str(error)
    assert "\n" not in said and said.endswith((".", "?")), said
    assert "_WithSmoothness" not in said and "object at 0x" not in said, said
    return said


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    do, kind, words = REFUSED[name]
    with pytest.raises(kind, match=re.escape(words)) as caught:
        do()
    one_sentence(caught.value)
