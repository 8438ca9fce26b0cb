"""Every estimator under Frank-Wolfe, boosted Frank-Wolfe and sliding, by the one option ``estimator``."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.contract.counting import recorded, tallied
from tests.contract.methods import STEPS, solver_of, states_of
from tests.problems import case

import condgrad as cg
from condgrad.estimators import ESTIMATORS, SAGA, SPIDER, SVRG, Minibatch, ZeroSARAH
from condgrad.estimators.by_name import OF_TERMS
from condgrad.solvers import METHODS

CARRIERS = [name for name, method in METHODS.items() if "estimator" in method.options]
FOR_SAMPLES = {
    "SVRG of samples": SVRG(3, 4, sample=20),
    "SAGA of samples": SAGA(3, sample=20),
    "SPIDER of samples": SPIDER(3, 4, sample=20),
}
PAIRS = [
    pytest.param(carrier, estimator, problem, id=f"{carrier}-{name}-{problem}")
    for carrier in CARRIERS
    for problem in ("welsch simplex", "expectation simplex")
    for name, estimator in ({name: name for name in ESTIMATORS} | FOR_SAMPLES).items()
    if problem == "welsch simplex" or name not in OF_TERMS
]


def options_of(carrier, estimator):
    return {"estimator": estimator} | ({"initial_gap": 2.0} if "initial_gap" in METHODS[carrier].options else {})


def test_the_carriers():
    assert CARRIERS == ["stochastic-ncgs", "sfw", "boosted-sfw"]


@pytest.mark.parametrize(("carrier", "estimator", "problem"), PAIRS)
def test_every_pair_keeps_the_contract(carrier, estimator, problem):
    """Steps are pure, iterates move and stay in the set, runs repeat from their seed, and counts are those of another counter."""
    example, method, options = case(problem), METHODS[carrier], options_of(carrier, estimator)
    solver = solver_of(method, example.problem, options=options)
    states = states_of(solver, example.problem, example.x0)
    for before, after in pairwise(states):
        again = solver.step(example.problem, before)
        assert after.k == before.k + 1 and again.x.tobytes() == after.x.tobytes()
        assert example.domain.contains(after.x)
    assert np.linalg.norm(states[-1].x - example.x0) > 1e-3
    other = states_of(solver_of(method, example.problem, seed=1, options=options), example.problem, example.x0)
    # on the expectation the vertices of all seeds may be the same
    assert problem == "expectation simplex" or other[-1].x.tobytes() != states[-1].x.tobytes()
    counts = recorded(example, method, "condg", STEPS, options=options).counts
    assert counts == tallied(example, method, "condg", STEPS, options=options)[-1]


@pytest.mark.parametrize(
    ("method", "estimator"),
    [
        ("svfw", SVRG(4, 3)),
        ("sagafw", SAGA(3)),
        ("spider-fw", SPIDER(4, 3)),
        ("zero-sarah-fw", ZeroSARAH(3, 3 / 40)),
        ("sfw", Minibatch(lambda k: 3)),
    ],
)
def test_with_the_estimator_of_another_method_sfw_is_that_method(method, estimator):
    example = case("welsch simplex")
    own = {name: size for name, size in {"epoch": 4, "batch": 3}.items() if name in METHODS[method].options}
    walks = [
        states_of(solver_of(METHODS[name], example.problem, options=options), example.problem, example.x0)
        for name, options in ((method, own), ("sfw", {"estimator": estimator}))
    ]
    for one, other in zip(*walks, strict=True):
        assert one.x.tobytes() == other.x.tobytes()


@pytest.mark.parametrize("estimator", [SVRG(1, 3), SPIDER(1, 3), Minibatch(lambda k: 20, replace=False)], ids=type)
def test_with_full_gradients_stochastic_ncgs_is_option_ii_and_sfw_is_frank_wolfe(estimator):
    """Epochs of one step, and batches of all terms."""
    example = case("welsch simplex")
    sliding = solver_of(METHODS["stochastic-ncgs"], example.problem, options={"estimator": estimator})
    option_ii = solver_of(METHODS["ncgs-ii"], example.problem)
    states = states_of(sliding, example.problem, example.x0), states_of(option_ii, example.problem, example.x0)
    for one, other in zip(*states, strict=True):
        assert np.allclose(one.theta_ag, other.x, rtol=0, atol=1e-10)
    solver = solver_of(METHODS["sfw"], example.problem, options={"estimator": estimator, "initial_gap": 2.0})
    x = example.x0
    for state in states_of(solver, example.problem, example.x0)[1:]:
        t = np.sqrt(2.0 / (example.objective.smoothness * example.domain.diameter**2 * state.k))
        x = x + t * (example.domain.lmo(example.objective.grad(x)) - x)
        assert np.allclose(state.x, x, rtol=0, atol=1e-10)


def test_with_one_round_boosted_sfw_is_sfw():
    example = case("expectation simplex")
    walks = [
        states_of(solver_of(METHODS[name], example.problem, options=options), example.problem, example.x0)
        for name, options in (("sfw", {"batch": 3}), ("boosted-sfw", {"batch": 3, "rounds": 1}))
    ]
    for one, other in zip(*walks, strict=True):
        assert np.allclose(one.x, other.x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize(
    ("problem", "asked", "said"),
    [
        ("expectation simplex", {"estimator": "svrg"}, "The estimator svrg needs the terms .* use minibatch, momentum"),
        (
            "expectation simplex",
            {"estimator": SPIDER(3, 3)},
            "The estimator SPIDER needs the terms .* FunctionExpectation",
        ),
        ("expectation simplex", {"estimator": ZeroSARAH(3, 0.1)}, "The estimator ZeroSARAH needs the terms"),
        ("expectation simplex", {"estimator": Minibatch(lambda k: 3, replace=False)}, "The estimator Minibatch needs"),
        ("welsch simplex", {"estimator": "sprider"}, "Unknown estimator 'sprider': did you mean 'spider'"),
        ("welsch simplex", {"estimator": SVRG}, "a name .* or an estimator such as SPIDER"),
        ("welsch simplex", {"estimator": 3}, "a name .* or an estimator such as SPIDER"),
        ("welsch simplex", {"estimator": "saga", "batch": 3}, "leave them out, or leave estimator out"),
        (
            "welsch simplex",
            {"estimator": "saga", "schedule": "theory"},
            "which has its own estimator: use schedule='practical'",
        ),
    ],
)
def test_wrong_pairs_fail_before_the_first_step(carrier, problem, asked, said):
    example = case(problem)
    with pytest.raises((TypeError, ValueError), match=said):
        cg.minimize(example.objective, example.domain, method=carrier, max_steps=1, **asked)
