"""Own objectives, sets and solvers: through minimize, and by name in a spec."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problems import case

import condgrad as cg
from condgrad.cli import BAD_INPUT, main
from condgrad.solvers import NCGS, Backtracking, FrankWolfe, ProjectedGradient
from condgrad.solvers.states import State
from condgrad.spec import load

# ------------------------------------------------------------------------------------------------------ solver objects


class Halving:
    """A user's own method: halfway to the linear oracle's answer, half as far in each step."""

    def init(self, problem: Any, x0: Any) -> State:
        return State(x=x0, L=problem.objective.smoothness)

    def step(self, problem: Any, state: State) -> State:
        s = problem.domain.lmo(problem.objective.grad(state.x))
        return replace(state, k=state.k + 1, x=state.x + 0.5 ** (state.k + 1) * (s - state.x))


def test_a_solver_object_walks_as_its_name_does() -> None:
    example = case("welsch simplex")
    given = cg.minimize(example.objective, example.domain, example.x0, method=FrankWolfe("short"), tol=1e-3)
    named = cg.minimize(example.objective, example.domain, example.x0, method="frank-wolfe", rule="short", tol=1e-3)
    assert np.array_equal(given.x, named.x) and given.counts == named.counts and given.status == named.status
    assert given.method == "FrankWolfe"


@pytest.mark.parametrize(
    "solver", [Halving(), ProjectedGradient(), NCGS(cg.practical(1e-4), cg.Exact()), Backtracking(FrankWolfe("short"))]
)
def test_any_solver_object_is_run(solver: Any, tmp_path: Path) -> None:
    example, path = case("welsch simplex"), tmp_path / "run.ckpt"
    how: dict[str, Any] = {"method": solver, "tol": 1e-12, "checkpoint": path}
    cg.minimize(example.objective, example.domain, example.x0, max_steps=4, **how)
    resumed = cg.minimize(example.objective, example.domain, example.x0, max_steps=9, resume=True, **how)
    whole = cg.minimize(example.objective, example.domain, example.x0, method=solver, tol=1e-12, max_steps=9)
    assert resumed.steps == whole.steps and np.array_equal(resumed.x, whole.x) and resumed.counts == whole.counts
    assert whole.certificate is not None


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"schedule": "theory"}, "schedule"),
        ({"inner": "condg"}, "inner"),
        ({"warm_start": 3}, "warm_start"),
        ({"smoothness": "estimate"}, "smoothness='estimate'"),
        ({"output": "random"}, "output='random'"),
        ({"rule": "short", "inner": cg.Exact()}, "inner, rule"),
    ],
)
def test_what_a_solver_object_has_itself_is_refused(options: dict[str, Any], names: str) -> None:
    with pytest.raises(TypeError) as refused:
        cg.minimize(cg.Quadratic(np.eye(3)), cg.Simplex(3), method=FrankWolfe(), **options)
    expected = f"method is a solver object of type FrankWolfe, which has its own settings: leave out {names}."
    assert str(refused.value) == expected


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (FrankWolfe, "method is the class FrankWolfe, an instance was expected: FrankWolfe(...)."),
        (
            3,
            "method is of type int, which has no init and no step: give a name from condgrad.METHODS, or a solver with",
        ),
        (None, "method is of type NoneType, which has no init and no step: give a name"),
    ],
)
def test_what_is_no_solver_is_refused(method: Any, message: str) -> None:
    with pytest.raises(TypeError) as refused:
        cg.minimize(cg.Quadratic(np.eye(3)), cg.Simplex(3), method=method)
    assert str(refused.value).startswith(message)


# ------------------------------------------------------------------------------------------------- a rule of one's own


def test_a_rule_sees_what_it_is_said_to_see() -> None:
    example, seen = case("welsch simplex"), []

    def rule(along: Any) -> float:
        F, S = example.objective, example.domain
        assert np.array_equal(along.grad, F.grad(along.x))
        assert np.array_equal(along.d, S.lmo(along.grad) - along.x)
        assert along.gap == pytest.approx(float(-along.grad @ along.d)) and along.length2 == pytest.approx(
            along.d @ along.d
        )
        assert F.smoothness == along.L and along.value(0.25) == F.value(along.x + 0.25 * along.d)
        seen.append(along.k)
        return min(1.0, along.gap / (along.L * along.length2))

    own = cg.minimize(
        example.objective, example.domain, example.x0, method="frank-wolfe", rule=rule, max_steps=10, tol=1e-12
    )
    named = cg.minimize(
        example.objective, example.domain, example.x0, method="frank-wolfe", rule="short", max_steps=10, tol=1e-12
    )
    assert np.array_equal(own.x, named.x) and seen == list(range(10))
    assert own.counts["values"] == 11, "F(x0), and one value in each step"


@pytest.mark.parametrize("answer", [1.5, -0.1, np.nan, None, "half", True, np.ones(2)])
def test_a_rule_must_answer_a_number_from_0_to_1(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"^The rule returned .*: return a number t from 0 to 1\.$"):
        cg.minimize(
            cg.Quadratic(np.eye(3)), cg.Simplex(3), np.eye(3)[0], method="frank-wolfe", rule=lambda along: answer
        )


def test_a_rule_that_fails_later_ends_the_run() -> None:
    def rule(along: Any) -> float:
        return 0.5 if along.k < 3 else 2.0

    result = cg.minimize(
        cg.Quadratic(np.eye(3)), cg.Simplex(3), np.eye(3)[0], method="frank-wolfe", rule=rule, tol=1e-12
    )
    assert result.status == "failed" and result.steps == 3 and "The rule returned 2.0" in result.message


# ------------------------------------------------------------------------------------------- an estimate of the smoothness


def a_sum(n: int = 60, d: int = 6, seed: int = 0, scale: float = 1.0) -> tuple[cg.FunctionSum, cg.LinearModel]:
    rng = np.random.default_rng(seed)
    A, y = scale * rng.normal(size=(n, d)), rng.normal(size=n)
    known = cg.LinearModel(A, y, cg.Squared())
    own = cg.FunctionSum(known.value, lambda x, b: (A[b] @ x - y[b])[:, None] * A[b], n, d)
    return own, known


@pytest.mark.parametrize(("scale", "seed"), [(1e-3, 0), (1.0, 1), (1.0, 2), (1e3, 3)])
@pytest.mark.parametrize("domain", [cg.L2Ball(6), cg.L1Ball(6, 5.0), cg.Box(-np.ones(6), np.ones(6)), cg.Simplex(6)])
def test_the_estimate_is_a_lower_bound_times_the_safety_factor(domain: Any, scale: float, seed: int) -> None:
    own, known = a_sum(seed=seed, scale=scale)
    found = cg.estimate_smoothness(own, domain, seed=seed, safety=1.5)
    assert found == pytest.approx(1.5 * found.seen) and found.seen <= known.smoothness * (1 + 1e-6)
    assert found.term_smoothness <= 1.5 * known.term_smoothness * (1 + 1e-6)
    assert found.mean_square_smoothness <= 1.5 * known.mean_square_smoothness * (1 + 1e-6)
    assert found <= found.mean_square_smoothness <= found.term_smoothness
    # on the simplex only differences of points with equal sums are seen
    assert found.seen >= 0.4 * known.smoothness and found.mean_square_smoothness >= 0.4 * known.mean_square_smoothness


def test_all_its_calls_are_counted() -> None:
    asked = {"grad": 0, "lmo": 0}

    def grad(x: Any) -> Any:
        asked["grad"] += 1
        return 3.0 * x

    def lmo(direction: Any) -> Any:
        asked["lmo"] += 1
        return cg.L2Ball(4).lmo(direction)

    F = cg.Function(lambda x: 1.5 * float(x @ x), grad, 4)
    found = cg.estimate_smoothness(F, cg.user_set(lmo, 4, start=np.zeros(4)), samples=5, rounds=2)
    assert found.seen == pytest.approx(3.0) and found.term_smoothness is None and found.of_terms == {}
    assert found.counts["fo"] == asked["grad"] == 5 * (4 + 3) and found.counts["lo"] == asked["lmo"]
    assert pickle.loads(pickle.dumps(found)) == found and pickle.loads(pickle.dumps(found)).counts == found.counts


def test_terms_are_counted_and_only_some_are_looked_at() -> None:
    own, _ = a_sum()
    found = cg.estimate_smoothness(own, cg.L2Ball(6), samples=2, rounds=1, terms=7)
    assert found.counts["fo"] == 2 * (3 + 3) and found.counts["ifo"] == 12 * 60 + 12 * 7


@pytest.mark.parametrize("method", ["stochastic-ncgs", "ncgs-vr", "sfw", "svfw", "sagafw"])
def test_stochastic_methods_run_on_ones_own_sum(method: str) -> None:
    own, _ = a_sum()
    if "ncgs" in method:  # sliding methods find the constant
        assert cg.minimize(own, cg.L2Ball(6), method=method, max_steps=2).steps == 2
    else:
        with pytest.raises(ValueError, match="smoothness"):
            cg.minimize(own, cg.L2Ball(6), method=method, max_steps=2)
    found = cg.estimate_smoothness(own, cg.L2Ball(6))
    result = cg.minimize(own, cg.L2Ball(6), method=method, smoothness=found, max_steps=30, tol=1e-12)
    assert result.smoothness == float(found) and result.status == "out_of_budget"
    stated = replace(own, smoothness=found, **found.of_terms)
    again = cg.minimize(stated, cg.L2Ball(6), method=method, max_steps=30, tol=1e-12)
    assert np.array_equal(again.x, result.x)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("digits", [np.float64, np.float32])
def test_the_estimate_does_not_depend_on_the_size_of_the_set(size: float, digits: Any) -> None:
    """sum_i sqrt(1 + x_i^2) has L = 1, at 0, and is nearly linear but for |x_i| < 1; a quadratic has it everywhere."""
    box = cg.Box(np.full(5, -size), np.full(5, 1.5 * size))
    curved = cg.Function(
        lambda x: float(np.sum(np.sqrt(1 + x**2))), lambda x: (x / np.sqrt(1 + x**2)).astype(digits), 5
    )
    plain = cg.Function(lambda x: float(x @ x) / 2 + x.sum(), lambda x: (x + size).astype(digits), 5)
    for F in (curved, plain):
        assert 0.6 <= cg.estimate_smoothness(F, box).seen <= 1.02


def test_an_expectation_is_seen_through_a_batch() -> None:
    G = cg.FunctionExpectation(lambda size, rng: rng.normal(size=(size, 3)), lambda x, batch: 2 * (x - batch), 3)
    found = cg.estimate_smoothness(G, cg.L2Ball(3), samples=3)
    assert found.seen == pytest.approx(2.0) and found.counts["sfo"] == 3 * (5 + 3) * 100
    assert cg.minimize(G, cg.L2Ball(3), method="stochastic-ncgs", smoothness=found, max_steps=5).steps > 0


def test_a_linear_function_has_no_smoothness_to_see() -> None:
    with pytest.raises(
        ValueError, match=r"does not change between any of 10 pairs .* Give any positive number as smoothness\.$"
    ):
        cg.estimate_smoothness(cg.Quadratic(np.zeros((2, 2)), [1.0, 2.0]), cg.L2Ball(2), samples=2)


@pytest.mark.parametrize("bad", [{"samples": 0}, {"rounds": -1}, {"safety": 0.0}, {"terms": 1.5}, {"seed": -1}])
def test_bad_numbers_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        cg.estimate_smoothness(cg.Quadratic(np.eye(2)), cg.L2Ball(2), **bad)


# ------------------------------------------------------------------------------------------------------- module:name in a spec


MODULE = """
import numpy as np
import condgrad as cg

centre = np.array([0.5, 0.3, 0.9])
F = cg.Function(lambda x: float(np.sum((x - centre) ** 2)), lambda x: 2 * (x - centre), 3, smoothness=2.0)
S = cg.Simplex(3)
number = 3

class Scaled:
    lower_smoothness = None
    def __init__(self, scale, shift=0.0):
        self.shape, self.smoothness, self.scale, self.shift = (3,), 2.0 * scale, scale, shift
    def value(self, x):
        return self.scale * float(np.sum((x - centre) ** 2)) + self.shift
    def grad(self, x):
        return 2 * self.scale * (x - centre)

def ball(shape, radius=1.0):
    return cg.L2Ball(shape, radius)

def fails(**keys):
    raise KeyError("radius")

class Half:
    shape, smoothness = (3,), 1.0
    def value(self, x):
        return 0.0
"""


def a_spec(folder: Path, problem: str, domain: str, module: str = MODULE) -> Path:
    (folder / "my_parts.py").write_text(module, encoding="utf-8")
    path = folder / "own.toml"
    path.write_text(
        f'[problem]\n{problem}\n[set]\n{domain}\n[method]\nname = "ncgs"\n[stop]\nmapping = 1e-8\nsteps = 500\n',
        encoding="utf-8",
    )
    return path


def test_the_command_solves_a_spec_with_own_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = a_spec(tmp_path, 'objective = "my_parts:F"', 'name = "my_parts:S"')
    assert main(["solve", str(path), "--json", "--quiet"]) == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["status"] == "converged"


def test_what_own_code_raises_in_a_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = MODULE.replace("2 * self.scale * (x - centre)", "2 * self.scale * (x - center)")
    path = a_spec(tmp_path, 'objective = "my_parts:Scaled"\nscale = 1.0', 'name = "simplex"', module)
    assert main(["solve", str(path), "--quiet"]) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.startswith("condgrad: my_parts:Scaled failed in the run: NameError: name 'center' is not defined")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("problem", "domain"),
    [
        ('objective = "my_parts:F"', 'name = "my_parts:S"'),
        ('objective = "my_parts:F"', 'name = "simplex"'),
        ('objective = "my_parts:Scaled"\nscale = 3.0\nshift = 1.0', 'name = "my_parts:ball"\nradius = 0.5'),
        ('objective = "my_parts:Scaled"\nscale = 3.0', 'name = "my_parts:ball"'),
    ],
)
def test_own_parts_are_found_beside_the_spec(problem: str, domain: str, tmp_path: Path) -> None:
    assert load(a_spec(tmp_path, problem, domain)).solve(progress=False).status == "converged"


def test_two_folders_may_have_a_module_of_one_name(tmp_path: Path) -> None:
    found = []
    for name, centre in (("one", "[0.5, 0.3, 0.9]"), ("two", "[1.0, 0.0, 0.0]")):
        (tmp_path / name).mkdir()
        module = MODULE.replace("[0.5, 0.3, 0.9]", centre)
        spec = a_spec(tmp_path / name, 'objective = "my_parts:F"', 'name = "my_parts:S"', module)
        found.append(load(spec).solve(progress=False).fun)
    assert found[1] == pytest.approx(0.0, abs=1e-6) and found[0] > 0.01


@pytest.mark.parametrize(
    ("problem", "domain", "message"),
    [
        ('objective = "nowhere:F"', 'name = "simplex"', "There is no module 'nowhere' for 'nowhere:F': put nowhere.py"),
        ('objective = "my_parts:G"', 'name = "simplex"', "The module 'my_parts' has no 'G' ('my_parts:G'): it has "),
        (
            'objective = "my_parts:number"',
            'name = "simplex"',
            "'my_parts:number' is of type int, which is no objective: it has no",
        ),
        (
            'objective = "my_parts:Half"',
            'name = "simplex"',
            "'my_parts:Half' is of type Half, which is no objective: it has no grad.",
        ),
        (
            'objective = "my_parts:F"',
            'name = "my_parts:F"',
            "'my_parts:F' is of type Function, which is no set: it has no lmo.",
        ),
        (
            'objective = "my_parts:F"\nscale = 2',
            'name = "simplex"',
            "The objective 'my_parts:F' is an instance, which takes no keys",
        ),
        ('objective = "my_parts:Scaled"', 'name = "simplex"', "The objective 'my_parts:Scaled' needs scale"),
        (
            'objective = "my_parts:Scaled"\nscael = 2',
            'name = "simplex"',
            "Unknown key 'scael' in objective 'my_parts:Scaled'",
        ),
        ('objective = "my_parts:fails"', 'name = "simplex"', "'my_parts:fails' can't be built: KeyError: 'radius'."),
        ('objective = "my parts:F"', 'name = "simplex"', "Unknown objective of a spec 'my parts:F'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    problem: str, domain: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", str(a_spec(tmp_path, problem, domain)), "--quiet"]) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.startswith(f"condgrad: {message}") and said.count("\n") == 1 and "Traceback" not in said


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("import nowhere_at_all", "The module 'my_parts' of 'my_parts:F' needs 'nowhere_at_all': install it."),
        ("def (", "The module 'my_parts' of 'my_parts:F' can't be imported: SyntaxError:"),
        ("1 / 0", "The module 'my_parts' of 'my_parts:F' can't be imported: ZeroDivisionError: division by zero."),
    ],
)
def test_a_module_that_fails_is_said(
    module: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["solve", str(a_spec(tmp_path, 'objective = "my_parts:F"', 'name = "simplex"', module)), "--quiet"])
        == BAD_INPUT
    )
    said = capsys.readouterr().err
    assert said.startswith(f"condgrad: {message}") and said.count("\n") == 1
