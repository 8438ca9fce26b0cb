"""Parts that are registered from outside the package: by name in minimize, specs, listings and checkpoints; refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.driving import assert_refused

import condgrad as cg
from condgrad import registration
from condgrad.checks import as_shape
from condgrad.cli import main
from condgrad.protocols import Prox
from condgrad.solvers import Option
from condgrad.solvers.smoothness import smoothness
from condgrad.solvers.states import Descent, State
from condgrad.spec import load
from condgrad.testing import check_domain, check_inner, check_loss, check_method, check_objective


class Corners:
    """{x : 0 <= x_i <= size}, with what a set must have and no more."""

    def __init__(self, shape: Any, size: Any = 1.0):
        self.shape, self.size = as_shape(shape, "Corners"), size

    def lmo(self, direction: Any) -> Any:
        if direction.shape != self.shape:
            raise ValueError(f"a direction of shape {direction.shape}")
        return np.where(direction > 0, 0.0, self.size)


class Distance:
    """|x - centre|^2 / 2"""

    smoothness = 1.0

    def __init__(self, centre: Any):
        self.centre = np.asarray(centre, dtype=float)
        self.shape = self.centre.shape

    def value(self, x: Any) -> float:
        return float(np.sum((x - self.centre) ** 2)) / 2

    def grad(self, x: Any) -> Any:
        return x - self.centre


@dataclass(frozen=True)
class LogCosh:
    """log cosh (z - y)"""

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "real"
    smoothness: ClassVar[float] = 1.0
    lower_smoothness: ClassVar[float] = 0.0

    def value(self, z: Any, y: Any) -> Any:
        t = np.abs(np.asarray(z) - y)
        return np.maximum(t + np.log1p(np.exp(-2 * t)) - np.log(2), 0.0)

    def deriv(self, z: Any, y: Any) -> Any:
        return np.tanh(np.asarray(z) - y)


@dataclass(frozen=True)
class Halving:
    """Towards the linear oracle's answer by 1/2, 1/4, ..."""

    share: float = 0.5

    def init(self, problem: Any, x0: Any) -> State:
        return State(x=x0, L=smoothness(problem, x0))

    def step(self, problem: Any, state: State) -> State:
        x, grad = state.x, problem.objective.grad(state.x)
        s = problem.domain.lmo(grad)
        return replace(state, k=state.k + 1, x=x + self.share ** (state.k + 1) * (s - x), descent=Descent(x, grad))


def halving(problem: Any, setup: Any, share: float = 0.5) -> Halving:
    return Halving(share)


@dataclass(frozen=True)
class TwoAtoms:
    """An inner solver of one's own: corrective under another name."""

    max_calls: int | None = None

    def init(self, domain: Any, x: Any) -> Any:
        return cg.Corrective().init(domain, x)

    def solve(self, domain: Any, g: Any, u: Any, gamma: float, stop: Any, memory: Any) -> Prox:
        return cg.Corrective(self.max_calls).solve(domain, g, u, gamma, stop, memory)


def share(value: Any, what: str) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{what} must be between 0 and 1, but got {value!r}.")


DETAILS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "set": ("corners", Corners, {"example": lambda: Corners(3), "notation": "{x : 0 <= x_i <= size}"}),
    "objective": ("distance", Distance, {"example": lambda: Distance([0.5, 0.2]), "arrays": ("centre",)}),
    "loss": ("log-cosh", LogCosh, {"formula": "log cosh(z - y)"}),
    "method": ("halving", halving, {"options": {"share": Option(share, 0.25)}, "certifies": False}),
    "inner": ("two-atoms", TwoAtoms, {"about": "corrective under another name"}),
}


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    """The registries, as they were."""
    before = {kind: dict(table) for kind, table in registration.TABLES.items()}
    yield
    for kind, table in registration.TABLES.items():
        table.clear()
        table.update(before[kind])


@pytest.fixture
def registered() -> None:
    for kind, (name, factory, details) in DETAILS.items():
        assert cg.register(kind, name, factory, **details) is registration.TABLES[kind][name]


SPEC = """
[problem]
objective = "distance"
centre = [0.5, 0.2, 2.0]
[set]
name = "corners"
size = 1.0
[method]
name = "{method}"
{more}
[stop]
mapping = 1e-6
steps = 60
"""


def a_spec(folder: Path, method: str, more: str = "") -> Path:
    path = folder / "own.toml"
    path.write_text(SPEC.format(method=method, more=more))
    return path


@pytest.mark.usefixtures("registered")
def test_registered_parts_work_by_name(tmp_path: Path) -> None:
    own = cg.minimize(Distance([0.5, 0.2, 2.0]), Corners(3), method="halving", share=0.7, max_steps=8, tol=1e-12)
    assert own.method == "halving" and own.steps == 8
    slid = cg.minimize(Distance([0.5, 0.2, 2.0]), Corners(3), inner="two-atoms", tol=1e-8)
    assert slid.status == "converged" and slid.inner == "two-atoms" and np.allclose(slid.x, [0.5, 0.2, 1.0], atol=1e-3)
    asked: dict[str, Any] = {"method": "halving", "share": 0.7, "tol": 1e-12, "checkpoint": tmp_path / "c"}
    cg.minimize(Distance([0.5, 0.2, 2.0]), Corners(3), max_steps=4, **asked)
    resumed = cg.minimize(Distance([0.5, 0.2, 2.0]), Corners(3), max_steps=8, resume=True, **asked)
    assert np.array_equal(resumed.x, own.x) and resumed.counts == own.counts
    model = cg.LinearModel(np.eye(3), np.array([0.3, 0.1, 0.2]), cg.LOSSES["log-cosh"].factory())
    assert cg.minimize(model, Corners(3), tol=1e-8).status == "converged"


@pytest.mark.usefixtures("registered")
def test_registered_parts_work_in_specs_and_listings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = load(a_spec(tmp_path, "ncgs", 'inner = { name = "two-atoms", max_calls = 50 }')).solve(progress=False)
    assert found.status == "converged" and found.inner == "two-atoms"
    assert load(a_spec(tmp_path, "halving", "share = 0.6")).solve(progress=False).method == "halving"
    assert main(["solve", str(a_spec(tmp_path, "ncgs")), "--json", "--quiet"]) == 0
    capsys.readouterr()
    for kind, command in {
        "set": "sets",
        "objective": "objectives",
        "loss": "losses",
        "method": "methods",
        "inner": "inner-solvers",
    }.items():
        assert main([command, "--json"]) == 0
        assert DETAILS[kind][0] in [row["name"] for row in json.loads(capsys.readouterr().out)]
        assert main([command]) == 0
        assert DETAILS[kind][0] in capsys.readouterr().out


@pytest.mark.usefixtures("registered")
def test_registered_parts_are_checked_like_the_librarys_own() -> None:
    entry = cg.DOMAINS["corners"]
    assert check_domain(entry.example()).passed
    assert check_objective(cg.OBJECTIVES["distance"].example()).passed
    assert check_loss(cg.LOSSES["log-cosh"].factory()).passed
    assert check_method("halving").passed, str(check_method("halving"))
    assert check_inner(cg.INNERS["two-atoms"].factory(), {"simplex": cg.Simplex(4), "corners": Corners(3)}).passed


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "a kind that is none": (
        lambda: cg.register("sets", "a", Corners),
        ValueError,
        "Unknown kind of part 'sets': did you mean 'set'?",
    ),
    "a name that is taken": (
        lambda: cg.register("set", "simplex", Corners, example=lambda: Corners(3)),
        ValueError,
        "The name of the set 'simplex' is taken: register yours under another name.",
    ),
    "an inner solver's name that is taken": (
        lambda: cg.register("inner", "condg", TwoAtoms),
        ValueError,
        "The name of the inner solver 'condg' is taken",
    ),
    **{
        f"a name like {name!r}": (
            lambda name=name: cg.register("set", name, Corners, example=lambda: Corners(3)),
            ValueError,
            f"The name of the set is {name!r}: give a word of letters, digits",
        )
        for name in ("a:b", "a b", " a", "a,b", "-a", "a\n", "/a", 3, None)
    },
    "a factory without a signature": (
        lambda: cg.register("set", "a", type, example=lambda: Corners(3)),
        TypeError,
        "The parameters of the factory of 'a', <class 'type'>, are not known",
    ),
    "a factory whose parameters have no names": (
        lambda: cg.register("set", "a", lambda *shape: Corners(shape), example=lambda: Corners(3)),
        TypeError,
        "The factory of 'a' takes *shape: give a class or a function in which each parameter has a name.",
    ),
    "a factory of any keys": (
        lambda: cg.register("objective", "a", lambda **keys: Distance([1.0]), example=lambda: Distance([1.0])),
        TypeError,
        "The factory of 'a' takes **keys",
    ),
    "a set as its example": (
        lambda: cg.register("set", "a", Corners, example=Corners(3)),
        TypeError,
        "but a function that builds one was expected",
    ),
    "an objective as its example": (
        lambda: cg.register("objective", "a", Distance, example=Distance([1.0])),
        TypeError,
        "but a function that builds one was expected",
    ),
    "an example that can't be built": (
        lambda: cg.register("set", "a", Corners, example=lambda: Corners("x")),
        TypeError,
        "The examples of 'a' can't be built (ValueError: ",
    ),
    "sets as its examples": (
        lambda: cg.register("set", "a", Corners, examples=[Corners(3)]),
        TypeError,
        "but a function that builds one was expected",
    ),
    "examples without labels": (
        lambda: cg.register("set", "a", Corners, examples=lambda: [Corners(3)]),
        TypeError,
        "The examples of 'a' are of type list, but a dict of sets was expected.",
    ),
    "auto": (lambda: cg.register("method", "auto", halving), ValueError, "is not 'auto'"),
    "no name": (lambda: cg.register("method", "", halving), ValueError, "The name of the method is ''"),
    "no factory": (lambda: cg.register("set", "a", 3), TypeError, "The factory of 'a' is 3, a class or a function"),  # type: ignore[arg-type]
    "a set without an example": (
        lambda: cg.register("set", "a", Corners),
        ValueError,
        "The set 'a' is registered without an example: give example=",
    ),
    "an objective without an example": (
        lambda: cg.register("objective", "a", Distance),
        ValueError,
        "The objective 'a' is registered without an example: give example=",
    ),
    "a detail that is none": (
        lambda: cg.register("set", "a", Corners, example=lambda: Corners(3), notations=""),
        ValueError,
        "Unknown detail 'notations' of the set 'a': did you mean 'notation'?",
    ),
    "a set that is none": (
        lambda: cg.register("set", "a", Distance, example=lambda: Distance([1.0])),
        TypeError,
        "The set 'a' is of type Distance, which has no lmo: add it.",
    ),
    "an objective that is none": (
        lambda: cg.register("objective", "a", Corners, example=lambda: Corners(3)),
        TypeError,
        "The objective 'a' is of type Corners, which has no value and no grad: add it.",
    ),
    "a loss that is none": (
        lambda: cg.register("loss", "a", TwoAtoms),
        TypeError,
        "The loss 'a' is of type TwoAtoms, which has no lower_bound and no labels and no smoothness",
    ),
    "a loss that needs arguments": (
        lambda: cg.register("loss", "a", Corners),
        TypeError,
        "The loss 'a' can't be built without arguments",
    ),
    "an inner solver that is none": (
        lambda: cg.register("inner", "a", LogCosh),
        TypeError,
        "The inner solver 'a' is of type LogCosh, which has no init and no solve: add it.",
    ),
    "a method that takes nothing": (
        lambda: cg.register("method", "a", Halving, options={}),
        TypeError,
        "The method 'a' is built by Halving(share): make(problem, setup, **options) was expected",
    ),
    "a method without a name of its own": (
        lambda: cg.register("method", "a", partial(Halving), options={}),
        TypeError,
        "make(problem, setup, **options) was expected",
    ),
    "options that are not described": (
        lambda: cg.register("method", "a", halving),
        ValueError,
        "The method 'a' has the options share, its entry describes none: give options=",
    ),
    "a method that sees what is not there": (
        lambda: cg.register("method", "a", lambda problem, setup: Halving(), sees="everything"),
        ValueError,
        "Unknown sees of the method 'a' 'everything'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused_in_one_sentence_and_not_registered(name: str) -> None:
    before = {kind: list(table) for kind, table in registration.TABLES.items()}
    do, kind, words = WRONG[name]
    assert_refused(do, kind, words)
    assert {kind: list(table) for kind, table in registration.TABLES.items()} == before


@pytest.mark.usefixtures("registered")
def test_an_option_of_ones_own_is_checked() -> None:
    with pytest.raises(ValueError, match="The option share must be between 0 and 1, but got 2"):
        cg.minimize(Distance([0.5]), Corners(1), method="halving", share=2)


# -------------------------------------------------------------------------------------------------------- entry points


def plugin() -> None:
    cg.register("method", "from-a-package", lambda problem, setup: Halving())


def broken() -> None:
    raise RuntimeError("out of order")


def test_packages_register_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("broken", f"{__name__}:broken", "condgrad"),
        EntryPoint("plugin", f"{__name__}:plugin", "condgrad"),
    ]
    monkeypatch.setattr(registration, "entry_points", lambda group: points)
    registration.load_plugins.cache_clear()
    try:
        with pytest.warns(cg.PluginWarning, match=r"The entry point 'broken' .* RuntimeError: out of order"):
            result = cg.minimize(Distance([0.5, 0.2]), Corners(2), method="from-a-package", max_steps=3, tol=1e-12)
        assert result.method == "from-a-package" and result.steps == 3
    finally:
        registration.load_plugins.cache_clear()
        monkeypatch.undo()
        registration.load_plugins()
