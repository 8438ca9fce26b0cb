"""What the registry says of its methods is true, and what they cannot take is refused."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from tests.contract.counting import tallied
from tests.contract.methods import (
    SEES,
    STEPS,
    every_method,
    solver_of,
    states_of,
    stochastic,
    suited,
    unknown,
)
from tests.problems import EXPECTATIONS, PLAIN, SUMS, WITHOUT_PROJECTION, case

import condgrad as cg
from condgrad.protocols import Expectation, FiniteSum, Objective, Projectable, fits
from condgrad.solvers import METHODS

# ----------------------------------------------------------------------------------------------------------- refusals


def wrong_problems(method):
    plain, expectation, finite_sum = (case(name) for name in ("indefinite simplex", *EXPECTATIONS, "welsch simplex"))
    if method.sees == "gradient":
        yield expectation.problem, "FunctionExpectation"
    if method.sees == "terms":
        yield plain.problem, "Quadratic"
        yield expectation.problem, "FunctionExpectation"
    if method.sees == "samples":
        yield plain.problem, "Quadratic"
    if method.projects:
        yield case("indefinite lp").problem, "LpBall"
    f = finite_sum.objective
    if not method.deterministic and not method.finds_smoothness:
        nameless = cg.FunctionSum(f.value, f.term_rows, 20, 5)
        yield cg.Problem(nameless, finite_sum.domain), "FunctionSum"
    if method.needs_term_smoothness:
        nameless = cg.FunctionSum(f.value, f.term_rows, 20, 5, smoothness=f.smoothness)
        yield cg.Problem(nameless, finite_sum.domain), "FunctionSum"


@every_method
def test_a_wrong_problem_is_refused_in_one_sentence(method):
    refused = 0
    for problem, culprit in wrong_problems(method):
        with pytest.raises((TypeError, ValueError)) as refusal:
            cg.minimize(problem.objective, problem.domain, method=method.name, max_steps=1)
        one_sentence(str(refusal.value), method.name, culprit)
        refused += 1
    assert refused > 0


@every_method
def test_an_unknown_option_is_refused_in_one_sentence(method):
    example = case(suited(method)[0])
    with pytest.raises(TypeError) as refusal:
        cg.minimize(example.objective, example.domain, method=method.name, memory=0.9)
    one_sentence(str(refusal.value), method.name, "memory", *method.options)


def one_sentence(message, *names):
    assert message.endswith(".") and "\n" not in message and ". " not in message, message
    assert all(name in message for name in names), message


# ----------------------------------------------------------------------------------------------------------- metadata


@every_method
def test_the_entry_is_true(method):
    assert METHODS[method.name] is method
    assert (Path(inspect.getfile(cg)).parent / method.file).is_file()
    assert method.sees in SEES
    assert method.title and method.assumes and method.bound and method.reference
    assert method.projects == ("PO" in method.oracles)
    assert (method.output_law is None) == (method.deterministic or method.convex)
    parameters = list(inspect.signature(method.make).parameters.values())
    assert list(method.options) == [parameter.name for parameter in parameters[2:]]
    assert all(parameter.default is not parameter.empty for parameter in parameters[2:])


@pytest.mark.parametrize(
    ("method", "option"),
    [
        pytest.param(m, option, id=f"{m.name}-{option}")
        for m in METHODS.values()
        for option in m.options
        if (m.name, option) != ("ncgs", "momentum")  # it begins at step 30, with exact projections: see test_adaptive
    ],
)
def test_options_are_real(method, option):
    """Each one changes the iterates, or at least what they cost."""
    example = case("convex simplex" if method.convex and method.deterministic else "welsch simplex")
    needed = dict(method.options[option].needs)

    def outcome(options):
        solver = solver_of(method, example.problem, options=options)
        last = states_of(solver, example.problem, example.x0)[-1]
        return last.x.tobytes(), tallied(example, method, "condg", STEPS, options=options)[-1]

    assert outcome(needed) != outcome({**needed, option: method.options[option].example})


@pytest.mark.parametrize("method", [m for m in stochastic if m.output_law], ids=lambda method: method.name)
def test_the_random_output_is_one_of_the_iterates(method):
    drawn = [method.output_law(10, np.random.default_rng(seed)) for seed in range(400)]
    least = min(drawn)
    assert least in (0, 1) and set(drawn) == set(range(least, least + 10))


def test_what_fits_what():
    """The problems of these tests are of the kinds that their names say."""
    for name in PLAIN:
        assert fits(case(name).objective, Objective) and not fits(case(name).objective, Expectation)
    for name in SUMS:
        assert fits(case(name).objective, FiniteSum)
    for name in EXPECTATIONS:
        assert fits(case(name).objective, Expectation) and not fits(case(name).objective, Objective)
    for name in (*PLAIN, *SUMS, *EXPECTATIONS):
        assert fits(case(name).domain, Projectable) == (name not in WITHOUT_PROJECTION)


# ------------------------------------------------------------------------------------------------------------------- at the edges


@pytest.mark.parametrize("name", ["frank-wolfe", "cgs", "ncgs", "ncgs-ii", "projected-gradient"])
def test_a_linear_function_has_a_vertex_for_its_minimiser(name):
    result = cg.minimize(cg.Quadratic(np.zeros((3, 3)), [2.0, 1.0, 3.0]), cg.Simplex(3), method=name)
    assert np.allclose(result.x, [0.0, 1.0, 0.0], atol=1e-3)


@pytest.mark.parametrize("name", ["sfw", "svfw", "sagafw", "svfw-s", "sagafw-s"])
def test_the_set_may_be_one_point(name):
    f = cg.LinearModel(np.ones((8, 1)), np.arange(8.0), cg.Welsch())
    assert cg.minimize(f, cg.Simplex(1), method=name, max_steps=3).x == 1.0


def test_ncgs_vr_refuses_what_its_theorem_does_not_cover():
    f = cg.FunctionSum(lambda x: x @ x / 2, lambda x, batch: x + 0 * batch[:, None], 8, 3, mean_square_smoothness=1.0)
    with pytest.raises(ValueError, match="term_smoothness"):
        cg.minimize(f, cg.Simplex(3), method="ncgs-vr", schedule="theory", max_steps=5)


@pytest.mark.parametrize("name", ["stochastic-ncgs", "sfw"])
def test_only_terms_can_be_drawn_without_replacement(name):
    example = case("expectation simplex")
    with pytest.raises((TypeError, ValueError), match="replace"):
        cg.minimize(example.objective, example.domain, method=name, replace=False, max_steps=3, validate=20)


@pytest.mark.parametrize("value", [0, -1, 2.5, "many"])
@pytest.mark.parametrize("name", ["stochastic-ncgs", "ncgs-vr", "sfw", "svfw", "sagafw", "svfw-s", "sagafw-s"])
def test_a_batch_is_a_whole_number_of_terms(name, value):
    example = case("welsch simplex")
    with pytest.raises(ValueError, match="batch must be a whole number of at least 1"):
        cg.minimize(example.objective, example.domain, method=name, batch=value, max_steps=3)


def test_adaptive_steps_do_not_depend_on_the_scale_of_F():
    example, tiny = case("convex simplex"), 1e-13
    result = cg.minimize(
        unknown(example.objective, tiny),
        example.domain,
        method="frank-wolfe",
        rule="adaptive",
        tol=0.1 * tiny**2,
        max_steps=2000,
    )
    assert result.status == "converged", result.message


def test_cgs_needs_no_diameter_in_practice():
    """A user's set may not have one; only the theorem's accuracy asks for it."""
    domain = cg.user_set(cg.Simplex(3).lmo, 3)
    convex = cg.Quadratic(np.diag([1.0, 2.0, 3.0]))
    assert cg.minimize(convex, domain, method="cgs").status == "converged"
    with pytest.raises(ValueError, match="diameter"):
        cg.minimize(convex, domain, method="cgs", schedule="theory", max_steps=5)
