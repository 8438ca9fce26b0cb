"""Methods that are the same method in disguise walk together, to 1e-10 in every iterate."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import sqrt
from operator import attrgetter
from types import SimpleNamespace

import numpy as np
import pytest
from tests.problems import EXPECTATIONS, PLAIN, SUMS, WITHOUT_PROJECTION, case

import condgrad as cg
from condgrad.solvers import Setup, StochasticFrankWolfe, build

STEPS = 40
PROJECTABLE = [name for name in (*PLAIN, *SUMS) if name not in WITHOUT_PROJECTION]
POLYTOPE_SUMS = ["welsch simplex", "sigmoid l1"]
"""Here a linear oracle's answer does not change with the rounding of its direction."""
CONDG = cg.CondG(60)
SCHEDULES = {"theory": cg.theory(STEPS), "practical": cg.practical(1e-2)}

sums = pytest.mark.parametrize("problem", SUMS)
polytope_sums = pytest.mark.parametrize("problem", POLYTOPE_SUMS)
projectable = pytest.mark.parametrize("problem", PROJECTABLE)
schedules = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
inners = pytest.mark.parametrize("inner", [CONDG, cg.Corrective(60), cg.Exact()], ids=["condg", "corrective", "exact"])


def states(method, example, schedule=SCHEDULES["practical"], inner=CONDG, seed=0, **options):
    solver = build(method, example.problem, Setup(schedule, inner, STEPS, seed), options)
    return list(islice(cg.iterate(example.problem, solver, example.x0), STEPS + 1))


def assert_together(one, other, attributes="x", tolerance=1e-10):
    """``attributes``: 'x', or pairs of what is called differently in the two states."""
    assert np.linalg.norm(one[-1].x - one[0].x) > 1e-3, "neither moves: it would prove nothing"
    for left, right in [("x", "x")] if attributes == "x" else attributes:
        for a, b in zip(one[1:], other[1:], strict=True):
            error = np.linalg.norm(attrgetter(left)(a) - attrgetter(right)(b))
            assert error <= tolerance, f"{left} and {right} differ by {error:.2g} after {a.k} steps"


@pytest.fixture
def frank_wolfe():
    """The library's Frank-Wolfe with a given step sequence t(k), k from 1."""

    def walk(example, t):
        return states("frank-wolfe", example, rule=lambda along: t(along.k + 1))

    return walk


def reddi_steps(example, schedule, h0, method):
    """With L of each term in the theorems of the variance reduced methods, else with F's."""
    f, in_theory = example.objective, isinstance(schedule, cg.theory)
    L = f.term_smoothness if in_theory and method != "sfw" else f.smoothness
    scale = sqrt(h0 / (L * example.domain.diameter**2))
    return lambda k: min(1.0, scale / sqrt(STEPS if in_theory else k))


# ------------------------------------------------------------------------------------- the whole data in every batch


@polytope_sums
@schedules
@inners
def test_stochastic_ncgs_is_option_ii(problem, schedule, inner):
    example = case(problem)
    whole = {"batch": example.objective.n_terms, "replace": False}
    stochastic = states("stochastic-ncgs", example, schedule, inner, **whole)
    option_ii = states("ncgs-ii", example, schedule, inner)
    assert_together(stochastic, option_ii, [("theta", "theta"), ("theta_ag", "x"), ("x", "descent.x")])


@sums
@schedules
@pytest.mark.parametrize("name", ["sfw", "svfw", "sagafw"])
def test_their_stochastic_forms_are_frank_wolfe(name, problem, schedule, frank_wolfe):
    example = case(problem)
    whole = {"batch": example.objective.n_terms, "replace": False, "initial_gap": 2.0}
    stochastic = states(name, example, schedule, **whole)
    assert_together(stochastic, frank_wolfe(example, reddi_steps(example, schedule, 2.0, name)))


@polytope_sums
@schedules
@inners
def test_ncgs_vr_with_whole_batches_is_option_i(problem, schedule, inner):
    example = case(problem)
    whole = {"batch": example.objective.n_terms, "replace": False, "epoch": 7}
    reduced = states("ncgs-vr", example, schedule, inner, lam=1 / (2 * example.objective.smoothness), **whole)
    assert_together(reduced, states("ncgs", example, as_option_i(schedule), inner, adaptive=False))


@pytest.mark.parametrize("name", ["stochastic-ncgs", "ncgs-vr", "sfw", "svfw", "sagafw"])
def test_without_replacement_a_batch_is_of_different_random_terms(name):
    example, batches = case("welsch simplex"), []
    f = example.objective

    def term_rows(x, batch):
        batches.append(tuple(batch))
        return f.term_rows(x, batch)

    members = {member: getattr(f, member) for member in dir(f) if not member.startswith("_")}
    members |= {"term_rows": term_rows, "grad_terms": lambda x, batch: f.assemble(term_rows(x, batch), batch)}
    watched = replace(example, problem=cg.Problem(SimpleNamespace(**members), example.domain))
    states(name, watched, batch=6, replace=False)
    drawn = [batch for batch in batches if len(batch) == 6]
    assert len(drawn) >= STEPS and all(len(set(batch)) == 6 for batch in drawn)
    assert len(set(drawn)) >= STEPS - 1


def test_transported_gradients_of_a_quadratic_are_exact(frank_wolfe):
    """Without noise, since every batch is all of the terms; the gradients are taken at other points than the iterates."""
    example = case("quadratic sum lp")
    whole = {"batch": example.objective.n_terms, "replace": False, "initial_gap": 2.0}
    scale = min(1.0, sqrt(2.0 / (example.objective.smoothness * example.domain.diameter**2)))
    exact = frank_wolfe(example, lambda k: scale * (k + 8) ** (-5 / 7))
    assert_together(states("igt-sfw", example, **whole), exact, tolerance=1e-7)  # the set is curved
    averaged = states("momentum-sfw", example, **whole)
    errors = [np.linalg.norm(s.memory.v - example.objective.grad(s.memory.x)) for s in averaged[5:]]
    assert min(errors) > 1e-4, "or averaging alone would do"


@pytest.mark.parametrize("problem", SUMS + EXPECTATIONS)
@schedules
def test_without_clipping_clipped_sfw_is_momentum_sfw(problem, schedule):
    example = case(problem)
    unclipped = states("clipped-sfw", example, schedule, level=float("inf"), initial_gap=2.0, seed=4)
    assert_together(unclipped, states("momentum-sfw", example, schedule, initial_gap=2.0, seed=4))


@pytest.mark.parametrize(
    ("options", "said"),
    [({"tail": 1.0}, "tail is 1.0, a number above 1 and at most 2"), ({"level": 0.0}, "level must be positive")],
)
def test_clipped_sfw_refuses(options, said):
    example = case("welsch simplex")
    with pytest.raises(ValueError, match=said):
        cg.minimize(example.objective, example.domain, method="clipped-sfw", max_steps=2, **options)


@sums
def test_transport_with_weight_1_is_sfw(problem):
    example, seed = case(problem), 4
    minibatch, transport = cg.estimators.Minibatch(lambda k: 3), cg.estimators.Transport(lambda k: 1.0, 3)
    walks = []
    for estimator in (minibatch, transport):
        solver = StochasticFrankWolfe(estimator, SCHEDULES["practical"], 2.0, seed)
        walks.append(list(islice(cg.iterate(example.problem, solver, example.x0), STEPS + 1)))
    assert_together(*walks)


@pytest.mark.parametrize("problem", [*SUMS, *EXPECTATIONS])
@schedules
def test_transported_points_lie_in_the_set(problem, schedule):
    example, seen = case(problem), []
    f = example.objective
    members = {member: getattr(f, member) for member in dir(f) if not member.startswith("_")}
    members["grad_terms"] = lambda x, batch: seen.append(x) or f.grad_terms(x, batch)
    watched = replace(example, problem=cg.Problem(SimpleNamespace(**members), example.domain))
    states("igt-sfw", watched, schedule, initial_gap=300.0)
    assert len(seen) >= STEPS and all(example.domain.contains(y, 1e-9) for y in seen)


# ------------------------------------------------------------------------------------------------------ epochs of one


@polytope_sums
@schedules
@inners
@pytest.mark.parametrize("store", [False, True])
def test_ncgs_vr_with_epochs_of_one_is_option_i(problem, schedule, inner, store):
    """A snapshot in every step: the batch's differences are zero, whatever the batch."""
    example = case(problem)
    lam = 1 / (2 * example.objective.smoothness)
    reduced = states("ncgs-vr", example, schedule, inner, epoch=1, batch=2, lam=lam, store=store)
    assert_together(reduced, states("ncgs", example, as_option_i(schedule), inner, adaptive=False))


def as_option_i(schedule):
    """NCGS-VR spares 2/9 of the relative inner error that option I does."""
    return schedule if isinstance(schedule, cg.theory) else replace(schedule, c=schedule.c * 2 / 9)


@pytest.mark.parametrize("problem", [name for name in SUMS if name in PROJECTABLE])
def test_ncgs_vr_with_epochs_of_one_is_projected_gradient(problem):
    """With any step: here 0.3/L, against the formula."""
    example = case(problem)
    f, lam, x = example.objective, 0.3 / example.objective.smoothness, example.x0
    for state in states("ncgs-vr", example, inner=cg.Exact(), epoch=1, batch=2, lam=lam)[1:]:
        x = example.project(x - lam * f.grad(x))
        assert np.linalg.norm(state.x - x) <= 1e-10


@sums
@schedules
@pytest.mark.parametrize("store", [False, True])
def test_svfw_with_epochs_of_one_is_frank_wolfe(problem, schedule, store, frank_wolfe):
    example = case(problem)
    reduced = states("svfw", example, schedule, epoch=1, batch=2, store=store, initial_gap=2.0)
    assert_together(reduced, frank_wolfe(example, reddi_steps(example, schedule, 2.0, "svfw")))


@pytest.mark.parametrize("problem", SUMS + EXPECTATIONS)
def test_svfw_s_with_epochs_of_one_is_sfw(problem):
    example = case(problem)
    reduced = states("svfw-s", example, epoch=1, batch=2, sample=9, initial_gap=2.0, seed=4)
    assert_together(reduced, states("sfw", example, batch=9, initial_gap=2.0, seed=4))


# --------------------------------------------------------------------------------------------------- exact prox points


@projectable
@schedules
def test_option_i_is_projected_gradient(problem, schedule):
    example = case(problem)
    option_i = states("ncgs", example, schedule, cg.Exact(), adaptive=False)
    same = [("x", "x"), ("theta_ag", "x"), ("descent.x", "descent.x")]
    assert_together(option_i, states("projected-gradient", example), same)


@projectable
@schedules
def test_option_ii_is_accelerated_gradient(problem, schedule):
    example = case(problem)
    option_ii = states("ncgs-ii", example, schedule, cg.Exact())
    same = [("x", "x"), ("theta", "slow"), ("descent.x", "descent.x")]
    assert_together(option_ii, states("accelerated-gradient", example), same)


@pytest.mark.parametrize("problem", ["indefinite simplex", "indefinite l1", *POLYTOPE_SUMS])
def test_a_tight_corrective_prox_is_an_exact_one(problem):
    """|p - psi|^2 <= gamma V in each step, with V <= 1e-12 gamma: hence the looser tolerance."""
    example = case(problem)
    tight = states("ncgs", example, cg.practical(eps=4e-12, c=0.0), cg.Corrective(2000), adaptive=False)
    assert_together(tight, states("projected-gradient", example), tolerance=1e-5)


@pytest.mark.parametrize("problem", ["indefinite nuclear", "completion nuclear"])
@pytest.mark.parametrize("name", ["ncgs", "ncgs-ii"])
def test_a_tight_spectral_prox_is_an_exact_one(name, problem):
    example, tight = case(problem), cg.practical(eps=4e-12, c=0.0)
    options = {"adaptive": False} if name == "ncgs" else {}
    spectral = states(name, example, tight, cg.Spectral(), **options)
    assert_together(spectral, states(name, example, tight, cg.Exact(), **options), tolerance=1e-5)


# -------------------------------------------------------------------------------------------------------------- storage


@polytope_sums
@schedules
@pytest.mark.parametrize("name", ["ncgs-vr", "svfw"])
def test_stored_snapshots_change_nothing_but_the_cost(name, problem, schedule):
    example = case(problem)
    options = {} if name == "svfw" else {"lam": 0.2 / example.objective.smoothness}
    fresh, stored = (states(name, example, schedule, seed=2, store=store, **options) for store in (False, True))
    assert_together(fresh, stored)
