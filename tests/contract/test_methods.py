"""What every method of the registry must do; a new entry in METHODS gets all of this by being there."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.problems import EXPECTATIONS, PLAIN, SUMS, WITHOUT_PROJECTION, case

import condgrad as cg
from condgrad.protocols import Expectation, FiniteSum, Objective, Projectable, fits
from condgrad.solvers import METHODS, Setup, build

STEPS = 12
SEES = {"gradient": (*PLAIN, *SUMS), "terms": SUMS, "samples": (*SUMS, *EXPECTATIONS)}
INNERS = {"condg": cg.CondG(30), "corrective": cg.Corrective(30)}


def suited(method):
    """The problems that a method can see, by what its entry says of it."""
    return [name for name in SEES[method.sees] if not (method.projects and name in WITHOUT_PROJECTION)]


every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
every_walk = pytest.mark.parametrize(
    ("method", "problem", "inner"),
    [
        pytest.param(method, problem, inner, id=f"{method.name}-{problem}-{inner}")
        for method in METHODS.values()
        for problem in suited(method)
        for inner in (INNERS if method.slides else ["condg"])
    ],
)
deterministic = [method for method in METHODS.values() if method.deterministic]
every_deterministic = pytest.mark.parametrize("method", deterministic, ids=[m.name for m in deterministic])
stochastic = [method for method in METHODS.values() if not method.deterministic]
every_stochastic = pytest.mark.parametrize("method", stochastic, ids=[m.name for m in stochastic])


def solver_of(method, problem, inner="condg", schedule=None, seed=0, options=None):
    setup = Setup(schedule or cg.practical(1e-2), INNERS.get(inner, inner), STEPS, seed)
    return build(method.name, problem, setup, options or {})


def states_of(solver, problem, x0, steps=STEPS):
    return list(islice(cg.iterate(solver, problem, x0), steps + 1))


# --------------------------------------------------------------------------------------------------- states and steps


def leaves(thing):
    """All that a state is made of, arrays and numbers, in a fixed order."""
    if is_dataclass(thing):
        return [leaf for field in fields(thing) for leaf in leaves(getattr(thing, field.name))]
    if isinstance(thing, tuple):
        return [leaf for part in thing for leaf in leaves(part)]
    return [thing]


def bits(state):
    return [leaf.tobytes() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves(state)]


def frozen(answer):
    if isinstance(answer, np.ndarray):
        answer.setflags(write=False)
    return answer


def read_only(target):
    """The same thing; every array that it answers with is read-only, so a method that writes into one fails."""
    names = [name for name in dir(target) if not name.startswith("_")]
    return SimpleNamespace(**{name: freezing(getattr(target, name)) for name in names})


def freezing(member):
    return (lambda *args: frozen(member(*args))) if callable(member) else member


@every_walk
def test_a_step_is_pure(method, problem, inner):
    example = case(problem)
    x0 = example.x0.copy()
    guarded = cg.Problem(read_only(example.objective), read_only(example.domain))
    solver = solver_of(method, guarded, inner)
    assert is_dataclass(solver) and type(solver).__dataclass_params__.frozen
    state = solver.init(guarded, frozen(x0))
    for _ in range(STEPS):
        for leaf in leaves(state):
            frozen(leaf)
        was = bits(state)
        once, twice = solver.step(guarded, state), solver.step(guarded, state)
        assert bits(once) == bits(twice)
        assert bits(state) == was
        state = once
    assert np.array_equal(x0, example.x0)


@every_walk
def test_states_have_what_the_driver_reads(method, problem, inner):
    example = case(problem)
    states = states_of(solver_of(method, example.problem, inner), example.problem, example.x0)
    assert [state.k for state in states] == list(range(STEPS + 1))
    assert np.array_equal(states[0].x, example.x0)
    for state in states:
        assert isinstance(state.x, np.ndarray) and state.x.shape == example.domain.shape
        assert example.objective.smoothness == state.L
        assert state.certificate is None or state.certificate.gap >= 0
        assert state.descent is None or len(state.descent) == 3
        assert is_dataclass(state) and type(state).__dataclass_params__.frozen


@every_walk
def test_iterates_stay_in_the_set(method, problem, inner):
    example = case(problem)
    for state in states_of(solver_of(method, example.problem, inner), example.problem, example.x0, 30):
        assert example.domain.contains(state.x)
        if state.certificate is not None:
            assert example.domain.contains(state.certificate.prox)


@every_walk
def test_a_step_does_not_ask_for_what_it_was_not_promised(method, problem, inner):
    """Of a problem a method may use the oracles that its entry in the registry names, and no others."""
    example = case(problem)
    tally = tallied(example, method, inner, STEPS)[-1]
    used = {name.upper() for name in ("fo", "sfo", "ifo", "lo", "po") if tally[name]}
    allowed = set(method.oracles.split(", "))
    if fits(example.objective, FiniteSum):  # a full gradient is n term gradients, and a sample is a term
        allowed |= {"IFO"}
    if not method.deterministic:  # the first step size of SFW and its kin: one gradient and one linear oracle call
        allowed |= {"FO"}
    assert used <= allowed


# ------------------------------------------------------------------------------------------------------ reproducible


def rows(trace):
    clocks = {"seconds", "cpu"}
    return [[str(getattr(row, f.name)) for f in fields(row) if f.name not in clocks] for row in trace]


def minimized(method, example, seed):
    """The path and the result of a run through the front door."""
    path = []
    result = cg.minimize(
        example.objective,
        example.domain,
        example.x0,
        method=method.name,
        seed=seed,
        max_steps=STEPS,
        tol=1e-12,
        validate=50,
        callback=lambda record, x: path.append(x.tobytes()),
    )
    return path, result


@every_method
def test_runs_are_reproducible_from_the_seed(method):
    for problem in suited(method):
        example = case(problem)
        (path, one), (again, two), (another, _) = (minimized(method, example, seed) for seed in (5, 5, 6))
        assert path == again
        assert one.x.tobytes() == two.x.tobytes()
        assert rows(one.trace) == rows(two.trace)
        assert one.counts == two.counts
        assert (path == another) == method.deterministic, problem


# ------------------------------------------------------------------------------------------------------------- counts


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
UNITS = ("fo", "sfo", "ifo", "lo", "po", "values")


def tallied(example, method, inner, steps, schedule=None, options=None, problem=None):
    """The tally after each step, from 0, of a method driven by hand."""
    problem, tally = problem or example.problem, dict.fromkeys(UNITS, 0)
    watched = spied(problem, tally)
    walk = cg.iterate(solver_of(method, watched, inner, schedule, options=options), watched, example.x0)
    return [dict(tally) for _ in islice(walk, steps + 1)]


def recorded(example, method, inner, steps, schedule=None, options=None, problem=None):
    problem = problem or example.problem
    solver = solver_of(method, problem, inner, schedule, options=options)
    return cg.run(problem, solver, example.x0, cg.Steps(steps), validate=20)


@every_walk
def test_counts_are_those_of_another_counter(method, problem, inner):
    example = case(problem)
    for schedule in (cg.practical(1e-2), cg.theory(STEPS)):
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
    assert (tallies[-1]["values"] > 0) == (rule in ("adaptive", "line-search"))


@every_deterministic
def test_counts_with_backtracking(method):
    example = case("indefinite simplex")
    problem = cg.Problem(unknown(example.objective), example.domain)
    tallies = tallied(example, method, "condg", STEPS, problem=problem)
    assert recorded(example, method, "condg", STEPS, problem=problem).counts == tallies[-1]
    assert tallies[0]["fo"] == 2, "the first guess of L is two gradients"


@every_stochastic
@pytest.mark.parametrize("problem", SUMS + EXPECTATIONS)
def test_term_gradients_by_the_formula(method, problem):
    """What T steps cost by the papers' own arithmetic, with batches of 3, epochs of 4 and samples of 20."""
    example, T, n = case(problem), STEPS, getattr(case(problem).objective, "n_terms", 0)
    if problem not in SEES[method.sees]:
        pytest.skip("the method does not see this problem")
    given = {"batch": 3, "epoch": 4, "sample": 20, "initial_gap": 1.0}
    options = {name: value for name, value in given.items() if name in method.options}
    tally = tallied(example, method, "condg", T, options=options)[-1]
    J = sum(len(np.unique(second_batch(len_table(method, n), k))) for k in range(1, T + 1))
    cost = {
        "stochastic-ncgs": 3 * T,
        "ncgs-vr": T // 4 * n + 2 * 3 * T,
        "sfw": 3 * T,
        "svfw": T // 4 * n + 2 * 3 * T,
        "svfw-s": T // 4 * 20 + 2 * 3 * T,
        "sagafw": n + 3 * T + J,
        "sagafw-s": 20 + 3 * T + J,
    }
    assert tally["ifo" if n else "sfo"] == cost[method.name]
    assert method.slides or tally["lo"] == T


def len_table(method, n):
    return 20 if method.name == "sagafw-s" else n or 1


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


# -------------------------------------------------------------------------------------------------- unknown smoothness


def unknown(objective, scale=1.0):
    return cg.Function(lambda x: scale * objective.value(x), lambda x: scale * objective.grad(x), objective.shape)


@every_deterministic
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_smoothness_need_not_be_known(method, scale):
    """Convex where the method is for convex F. The squared mapping has the square of F's scale, and so has the tolerance."""
    example = case("convex simplex" if "convex" in method.assumes else "indefinite simplex")
    f = unknown(example.objective, scale)
    tol = 1e-3 * scale**2
    result = cg.minimize(f, example.domain, example.x0, method=method.name, tol=tol, max_steps=3000)
    assert result.status == "converged", result.message
    gamma = result.certificate.gamma
    assert exact_mapping(f, example.project, result.x, gamma) <= tol * (1 + 1e-6)


# -------------------------------------------------------------------------------------------------------- certificates


def exact_mapping(f, project, x, gamma):
    """|g(x, grad F(x), gamma)|^2 with the exact prox point."""
    return float(np.sum((x - project(x - gamma * f.grad(x))) ** 2)) / gamma**2


@every_deterministic
@pytest.mark.parametrize("schedule", [cg.practical(1e-2), cg.theory(30)], ids=["practical", "theory"])
@pytest.mark.parametrize("inner", INNERS)
def test_certificates_are_true(method, schedule, inner):
    earned = 0
    for problem in suited(method):
        example = case(problem)
        for options in [{}, {"stretch": 1.0}] if "stretch" in method.options else [{}]:
            solver = solver_of(method, example.problem, inner, schedule, options=options)
            for state in states_of(solver, example.problem, example.x0, 30):
                if (proof := state.certificate) is None:
                    continue
                earned += 1
                exact = exact_mapping(example.objective, example.project, proof.x, proof.gamma)
                rounding = 1e-9 * (1 + exact)
                assert proof.lower - rounding <= exact <= proof.upper + rounding, (problem, state.k)
    assert earned > 0 or method.name == "cgs"


@every_method
def test_the_results_certificate_is_true(method):
    """Whatever a run returns with a certificate, earned or measured from outside, is as good as it says."""
    for problem in suited(method):
        example = case(problem)
        if not fits(example.objective, Objective):
            continue  # certified on a validation batch, which is not F
        result = cg.minimize(example.objective, example.domain, example.x0, method=method.name, max_steps=20, tol=1e-3)
        exact = exact_mapping(example.objective, example.project, result.x, result.certificate.gamma)
        rounding = 1e-9 * (1 + exact)
        assert result.certificate.lower - rounding <= exact <= result.certificate.upper + rounding


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
    if not method.deterministic:
        f = finite_sum.objective
        nameless = cg.FunctionSum(f.value, f.term_rows, 20, 5)
        yield cg.Problem(nameless, finite_sum.domain), "FunctionSum"
    if method.name == "ncgs-vr":
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
        cg.minimize(example.objective, example.domain, method=method.name, momentum=0.9)
    one_sentence(str(refusal.value), method.name, "momentum", *method.options)


def one_sentence(message, *names):
    assert message.endswith(".") and "\n" not in message and ". " not in message, message
    assert all(name in message for name in names), message


# ----------------------------------------------------------------------------------------------------------- metadata


OPTIONS = {
    "stretch": 1.0,
    "rule": "short",
    "batch": 5,
    "epoch": 3,
    "lam": 0.05,
    "store": True,
    "replace": False,
    "sample": 7,
    "initial_gap": 0.3,
    "strong_convexity": 2.0,
}


@every_method
def test_the_entry_is_true(method):
    assert METHODS[method.name] is method
    assert (Path(inspect.getfile(cg)).parent / method.file).is_file()
    assert method.sees in SEES
    assert method.title and method.assumes and method.bound and method.reference
    assert method.projects == ("PO" in method.oracles)
    assert (method.output_law is None) == method.deterministic
    parameters = list(inspect.signature(method.make).parameters.values())
    assert method.options == [parameter.name for parameter in parameters[2:]]
    assert all(parameter.default is not parameter.empty for parameter in parameters[2:])


@pytest.mark.parametrize(
    ("method", "option"),
    [pytest.param(m, option, id=f"{m.name}-{option}") for m in METHODS.values() for option in m.options],
)
def test_options_are_real(method, option):
    """Each one changes the iterates, or at least what they cost."""
    example = case("convex simplex" if method.name == "cgs" else "welsch simplex")
    needed = {"strong_convexity": 1.5} if (method.name, option) == ("cgs", "initial_gap") else {}

    def outcome(options):
        solver = solver_of(method, example.problem, options=options)
        last = states_of(solver, example.problem, example.x0)[-1]
        return last.x.tobytes(), tallied(example, method, "condg", STEPS, options=options)[-1]

    assert outcome(needed) != outcome({**needed, option: OPTIONS[option]})


@every_method
def test_the_random_output_is_one_of_the_iterates(method):
    if method.output_law is None:
        pytest.skip("deterministic")
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
