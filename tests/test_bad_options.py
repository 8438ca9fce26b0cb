"""What minimize, the registry and the rules say to wrong names, options and numbers: one sentence, of the right type."""

from __future__ import annotations

from math import nan
from typing import Any

import pytest
from tests.driving import CONVEX, EXPECTATION, ONLY_LMO, SIMPLEX, SUM, assert_refused, function, solve

import condgrad as cg
from condgrad.solvers import Setup, build

MATRICES = cg.FunctionExpectation(
    lambda size, rng: rng.normal(size=(size, 2, 2)), lambda x, batch: x - batch, (2, 2), 1.0, 0.0
)

REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    # names
    "method": (
        lambda: solve(method="ncsg"),
        ValueError,
        "Unknown method 'ncsg': did you mean 'ncgs'? Known methods: ncgs, ncgs-ii",
    ),
    "no method at all": (lambda: solve(method="zzz"), ValueError, "Unknown method 'zzz'. Known methods: ncgs"),
    "a method that is none": (lambda: solve(method=None), TypeError, "method is of type NoneType, which has no init"),
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
        "smoothness is 'estimat', but must be a number above 0 or 'estimate'.",
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
        "Method 'ncgs' has no option 'strech': its options are stretch, adaptive, step_scale, momentum.",
    ),
    "another method's option": (
        lambda: solve(method="ncgs-ii", stretch=1.0),
        TypeError,
        "Method 'ncgs-ii' has no option 'stretch': its options are step_scale, monotone.",
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
        "The spectral inner solver needs a spectral set such as NuclearBall, but Simplex is not a spectral set: use 'auto'.",
    ),
    "the same as an object": (
        lambda: solve(inner=cg.Spectral()),
        TypeError,
        "The spectral inner solver needs a spectral set such as NuclearBall, but Simplex is not a spectral set: use 'auto'.",
    ),
    "the exact one as an object": (
        lambda: solve(domain=ONLY_LMO, inner=cg.Exact()),
        TypeError,
        "exact inner solver needs a set that projects, UserSet does not: use 'corrective' or 'condg'",
    ),
    "a warm start on a simplex": (
        lambda: solve(warm_start=5),
        TypeError,
        "warm_start is for spectral sets such as NuclearBall, but Simplex is not a spectral set: leave it out.",
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
        "Method 'ncgs' has no random output in its theorem: use output='best' or 'last'.",
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
    "a rule that is none": (lambda: solve(stop="gap"), TypeError, "stop"),
    "an inner solver that is none": (lambda: solve(inner=5), TypeError, "inner"),
    "a schedule that is none": (lambda: solve(schedule=5), TypeError, "schedule"),
    "a callback that is none": (lambda: solve(callback=5), TypeError, "callback"),
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
    "negative tol beside a stop": (lambda: solve(tol=-1.0, stop=cg.Steps(3)), ValueError, "must be positive"),
    "tol 0 for auto": (lambda: solve(SUM, method="auto", tol=0), ValueError, "must be positive"),
    "no samples to validate with": (lambda: solve(EXPECTATION, method="sfw", validate=-1), ValueError, "validate"),
    "no steps in theory": (lambda: cg.theory(0), ValueError, "steps"),
    "negative accuracy": (lambda: cg.practical(c=-1.0), ValueError, "must not be negative"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(*REFUSED[name])
