"""The contract checks find what is wrong, say it in words, and raise only if they are asked to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.inner import absolute
from condgrad.protocols import Prox
from condgrad.solvers import FrankWolfe
from condgrad.solvers.states import State
from condgrad.testing import (
    ContractError,
    check_domain,
    check_inner,
    check_loss,
    check_method,
    check_objective,
)

SIMPLEX = cg.Simplex(4)


class Own:
    """The simplex, with some members replaced."""

    def __init__(self, without: tuple[str, ...] = (), **replaced: Any):
        members = ("shape", "lmo", "start", "contains", "diameter", "max_norm", "project")
        vars(self).update({name: getattr(SIMPLEX, name) for name in members if name not in without} | replaced)


def scribbling(g: Any) -> Any:
    g[0] = 0.0
    return SIMPLEX.lmo(g)


def alternating() -> Any:
    asked: list[int] = []

    def lmo(g: Any) -> Any:
        asked.append(1)
        return np.roll(SIMPLEX.lmo(g), len(asked) % 2)

    return lmo


def scribbling_politely(g: Any) -> Any:
    answer = SIMPLEX.lmo(g)
    if g.flags.writeable:
        g *= 2
    return answer


def projecting_in_place(x: Any) -> Any:
    nearest = SIMPLEX.project(x).copy()
    if x.flags.writeable:
        x[:] = nearest
    return nearest


def stale() -> Any:
    """Answers to the direction before."""
    asked = [np.ones(4)]

    def lmo(g: Any) -> Any:
        asked.append(np.array(g))
        return SIMPLEX.lmo(asked.pop(0))

    return lmo


def remembering_arrays() -> Any:
    known: dict[int, Any] = {}
    seen: list[Any] = []

    def lmo(g: Any) -> Any:
        seen.append(g)  # so that no other array gets its id
        return known.setdefault(id(g), SIMPLEX.lmo(g)).copy()

    return lmo


WRITES = "lmo, contains and project do not write into their arguments"
NUMBERS = "lmo answers with an array of float64 or a structured point"


def normalising(g: Any) -> Any:
    return -g / np.sqrt(np.sum(g * g))


BALL = cg.L2Ball(4)


def reusing(oracle: Callable[[Any], Any]) -> Callable[[Any], Any]:
    buffer = np.empty(4)

    def ask(x: Any) -> Any:
        buffer[:] = oracle(x)
        return buffer

    return ask


SETS: dict[str, tuple[Any, str, str]] = {
    "no lmo": (Own(without=("lmo",)), "members", "it has no lmo"),
    "maximises": (
        Own(lmo=lambda g: SIMPLEX.lmo(-g)),
        "lmo is no worse than its answers to other directions",
        "is better by",
    ),
    "overlooks a vertex": (
        Own(lmo=lambda g: np.append(cg.Simplex(3).lmo(g[:3]), 0.0)),
        "lmo is minimal over random points of the set",
        "is better by",
    ),
    "answers outside": (
        Own(lmo=lambda g: 1.1 * SIMPLEX.lmo(g)),
        "lmo answers with points of the set",
        "does not accept",
    ),
    "another shape": (
        Own(lmo=lambda g: SIMPLEX.lmo(g)[:3]),
        "lmo answers with a finite point of the shape",
        "shape (3,)",
    ),
    "NaN": (Own(lmo=lambda g: np.full(4, np.nan)), "lmo answers with a finite point of the shape", "NaN or Inf"),
    "writes into the direction": (Own(lmo=scribbling), WRITES, "lmo writes into its argument"),
    "writes where it may": (Own(lmo=scribbling_politely), WRITES, "lmo writes into its argument"),
    "projects in place": (Own(project=projecting_in_place), WRITES, "project writes into its argument"),
    "changes its mind": (Own(lmo=alternating()), "lmo repeats its answers", "two answers to"),
    "is stale": (
        Own(lmo=stale()),
        "lmo is no worse than its answers to other directions",
        "its own answer",
    ),
    "remembers arrays, not numbers": (
        Own(lmo=remembering_arrays()),
        "lmo repeats its answers",
        "in an array that was used before it answered",
    ),
    "is second best": (
        Own(lmo=lambda g: np.eye(4)[np.argsort(g, kind="stable")[1]]),
        "lmo is no worse than its answers to other directions",
        "is better by",
    ),
    "is second best where one entry counts": (
        Own(lmo=lambda g: SIMPLEX.lmo(g if np.count_nonzero(g) > 1 else -g)),
        "tied directions",
        "another answer is better by",
    ),
    "answers with a list": (Own(lmo=lambda g: SIMPLEX.lmo(g).tolist()), NUMBERS, "answered with a list, an array"),
    "answers with a pair": (Own(lmo=lambda g: (SIMPLEX.lmo(g), 0.0)), NUMBERS, "answered with a tuple, an array"),
    "answers with nothing": (Own(lmo=lambda g: None), NUMBERS, "answered with a NoneType, an array"),
    "answers with a mask": (
        Own(lmo=lambda g: np.ma.masked_equal(SIMPLEX.lmo(g), 0)),
        NUMBERS,
        "a MaskedArray, an array",
    ),
    "answers with truth values": (Own(lmo=lambda g: SIMPLEX.lmo(g) > 0), NUMBERS, "numbers of type bool"),
    "answers with complex numbers": (Own(lmo=lambda g: SIMPLEX.lmo(g) + 0j), NUMBERS, "numbers of type complex128"),
    "answers with words": (Own(lmo=lambda g: SIMPLEX.lmo(g).astype(str)), NUMBERS, "numbers of type <U32"),
    "answers with a column": (
        Own(lmo=lambda g: SIMPLEX.lmo(g)[:, None]),
        "lmo answers with a finite point of the shape",
        "answered with shape (4, 1), (4,) was expected",
    ),
    "takes -0.0 for less than 0": (
        Own(lmo=lambda g: SIMPLEX.lmo(np.where(np.signbit(g) & (g == 0), -3.0, g))),
        "entries that are -0.0",
        "with 0.0 for -0.0 it is",
    ),
    "divides by -0.0": (
        Own(lmo=lambda g: SIMPLEX.lmo(g) * (np.nan if np.any(np.signbit(g) & (g == 0)) else 1.0)),
        "entries that are -0.0",
        "answered [nan",
    ),
    "contains in part": (
        Own(contains=lambda x, tolerance=1e-9: x >= 0),
        "contains",
        "answers with a ndarray, not True",
    ),
    "a diameter that is not a number": (Own(diameter=np.nan), "diameter", "it is nan, a finite number of at least 0"),
    "an infinite norm": (Own(max_norm=np.inf), "max_norm", "it is inf, a finite number of at least 0"),
    "reuses its buffer": (
        Own(lmo=reusing(SIMPLEX.lmo)),
        "answers of lmo and project are values",
        "an answer of lmo changes when lmo is called again",
    ),
    "reuses the buffer of its projections": (
        Own(project=reusing(SIMPLEX.project)),
        "answers of lmo and project are values",
        "an answer of project changes when project is called again",
    ),
    "divides by 0": (Own(lmo=lambda g: SIMPLEX.lmo(g) / (1.0 if g.any() else np.nan)), "zero direction", "answered"),
    "breaks ties badly": (
        Own(lmo=lambda g: SIMPLEX.lmo(-g) if np.ptp(g) == 0 or g[0] == g[1] < g[2] else SIMPLEX.lmo(g)),
        "tied directions",
        "better by",
    ),
    "sees the size": (
        Own(lmo=lambda g: SIMPLEX.lmo(g if np.abs(g).max() > 1e-100 else -g)),
        "tiny and huge directions",
        "is answered by",
    ),
    "overflows": (
        Own(without=("contains", "start", "project", "diameter", "max_norm"), lmo=normalising),
        "tiny and huge directions",
        "",
    ),
    "fails on NaN": (
        Own(lmo=lambda g: SIMPLEX.lmo(g) if np.isfinite(g).all() else {}["nan"]),
        "directions with NaN",
        "raised KeyError",
    ),
    "starts outside": (Own(start=lambda: np.zeros(4)), "start", "does not accept start()"),
    "contains everything": (Own(contains=lambda x, tolerance=1e-9: True), "contains", "is accepted"),
    "contains little": (
        Own(contains=lambda x, tolerance=1e-9: SIMPLEX.contains(x, tolerance) and x.max() > 0.7),
        "contains",
        "is not accepted",
    ),
    "a small diameter": (Own(diameter=1.0), "diameter", "it is 1, but two points are 1.41"),
    "a small norm": (Own(max_norm=0.5), "max_norm", "but a point has the norm 1"),
    "projects elsewhere": (Own(project=lambda x: SIMPLEX.lmo(-x)), "project", "it moves the point"),
    "projects not to the nearest": (
        Own(project=lambda x: x if SIMPLEX.contains(x) else SIMPLEX.lmo(-x)),
        "project",
        "which is not the nearest point",
    ),
    "does not project": (Own(project=lambda x: x), "project", "outside of the set"),
}


def failed(report: Any, check: str, words: str) -> None:
    assert not report.passed
    found = {finding.check: finding.detail for finding in report.failures}
    assert check in found and words in found[check], str(report)
    text = str(report)
    assert "FAILED" in text and check in text and report.subject in text.splitlines()[0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SETS)
def test_what_is_wrong_with_a_set_is_found(name: str) -> None:
    domain, check, words = SETS[name]
    sample = None if name == "overflows" else (lambda _, rng: rng.dirichlet(np.full(4, 0.5)))
    failed(check_domain(domain, sample=sample), check, words)


def sums_up_to_1(x: Any, tolerance: float = 1e-9) -> bool:
    return bool(np.all(x >= -tolerance) and x.sum() <= 1 + tolerance)


def nearly_at_a_vertex(g: Any) -> Any:
    return (1 - 1e-6) * SIMPLEX.lmo(g) + 1e-6 * SIMPLEX.start()


@pytest.mark.parametrize(
    ("wrong", "check", "words"),
    [
        ({"contains": sums_up_to_1}, "contains", "is accepted, which lies beyond the minimum in [1., 1., 1., 1.]"),
        ({"lmo": nearly_at_a_vertex}, "project", "the projection"),
    ],
)
def test_a_defect_that_no_answer_to_one_direction_shows_is_found(wrong: Any, check: str, words: str) -> None:
    report = check_domain(Own(**wrong), sample=lambda domain, rng: rng.dirichlet(np.ones(4)))
    assert [finding.check for finding in report.failures] == [check]
    failed(report, check, words)


def test_what_is_wrong_with_the_arguments_of_a_check_is_said() -> None:
    for wrong in (np.zeros(3), np.full(4, np.nan)):
        report = check_domain(Own(), sample=lambda domain, rng, wrong=wrong: wrong)
        failed(report, "lmo is minimal over random points of the set", "a finite point of shape (4,) was expected")
    with pytest.raises(ValueError, match="number of trials of check_domain must be a whole number of at least 2"):
        check_domain(Own(), trials=0)
    with pytest.raises(ValueError, match="tolerance of check_domain must not be negative"):
        check_domain(Own(), tolerance=-1.0)


def test_a_strict_check_raises_with_the_report() -> None:
    with pytest.raises(ContractError, match="FAILED"):
        check_domain(SETS["starts outside"][0], strict=True)


def test_a_right_set_passes_with_what_it_has() -> None:
    assert check_domain(Own(), strict=True).passed
    bare = check_domain(Own(without=("start", "contains", "diameter", "max_norm", "project")))
    skipped = {finding.check for finding in bare.findings if finding.outcome == "not checked"}
    assert bare.passed and {"start", "contains", "diameter", "max_norm", "project"} < skipped
    careless = check_domain(Own(lmo=lambda g: np.eye(4)[np.argmin(np.ravel(g)) % 4]))
    assert careless.passed and [finding.check for finding in careless.notes] == ["directions of another shape"]
    for narrow, digits in ((np.float16, 3), (np.float32, 6)):
        rough = check_domain(Own(lmo=lambda g, narrow=narrow: SIMPLEX.lmo(g).astype(narrow)))
        assert (
            rough.passed
            and f"answers are of type {np.dtype(narrow)}, which has {digits} digits" in rough.notes[0].detail
        )
    table = np.eye(4)
    kept = check_domain(Own(lmo=lambda g: table[np.argmax(SIMPLEX.lmo(g))]))
    assert kept.passed and "who writes into an answer of lmo changes the set" in kept.notes[0].detail
    known = check_domain(Own(), least=lambda _, g: g.min(), vertices=lambda _: np.eye(4))
    assert known.passed
    skipped = {finding.check for finding in known.findings if finding.outcome == "not checked"}
    assert skipped == {"atom is the answer of lmo", "diameter is attained"}
    wrong = check_domain(Own(), least=lambda _, g: g.min() - 0.1, vertices=lambda _: np.eye(4)[:3])
    assert {f.check for f in wrong.failures} == {"lmo reaches the known minimum", "lmo answers with vertices"}
    none = check_domain(Own(without=("diameter",)), exact_diameter=True, trials=4)
    failed(none, "diameter is attained", "but the set has no diameter")


Q = np.diag([1.0, 2.0, -1.0])


class F:
    """x'Qx / 2, with some members replaced."""

    def __init__(self, without: tuple[str, ...] = (), **replaced: Any):
        f = cg.Quadratic(Q)
        members = ("shape", "value", "grad", "smoothness", "lower_smoothness")
        vars(self).update({name: getattr(f, name) for name in members if name not in without} | replaced)


def a_sum(**replaced: Any) -> Any:
    rng = np.random.default_rng(0)
    f = cg.LinearModel(rng.standard_normal((7, 3)), rng.standard_normal(7), cg.Welsch())
    members = ("shape", "value", "grad", "smoothness", "lower_smoothness", "lower_bound", "draw", "grad_terms")
    members += ("term_rows", "assemble", "n_terms", "term_smoothness", "mean_square_smoothness")
    own = F()
    vars(own).update({name: getattr(f, name) for name in members} | replaced)
    return own


OBJECTIVES: dict[str, tuple[Any, str, str]] = {
    "no grad": (F(without=("grad",)), "members", "it has no grad"),
    "a value of NaN": (F(value=lambda x: np.nan), "value is a finite number", "nan"),
    "a value for each entry": (F(value=lambda x: x), "value is a finite number", "a number was expected"),
    "a gradient of another shape": (F(grad=lambda x: np.ones(2)), "grad is a finite point of the shape", "shape (2,)"),
    "twice the gradient": (F(grad=lambda x: 2 * Q @ x), "the gradient is that of the value", "grad makes"),
    "a gradient of a tiny F, wrong by 1 %": (
        F(value=lambda x: 1e-8 * float(x @ Q @ x) / 2, grad=lambda x: 1.01e-8 * Q @ x, smoothness=2.1e-8),
        "the gradient is that of the value",
        "grad makes",
    ),
    "a small L": (F(smoothness=1.0), "smoothness", "it is 1, but"),
    "a small l": (F(lower_smoothness=0.1), "lower_smoothness", "bends down more"),
    "a high bound": (F(lower_bound=0.0), "lower_bound", "but F is"),
    "another pair": (
        F(value_and_grad=lambda x: (0.0, Q @ x)),
        "value_and_grad agrees with value and grad",
        "another value",
    ),
    "terms that do not average": (
        a_sum(grad=lambda x: np.ones(3)),
        "the terms average to the gradient",
        "not the mean of the terms'",
    ),
    "a draw without a seed": (
        a_sum(draw=lambda size, rng: np.random.default_rng().integers(7, size=size)),
        "draw is seeded",
        "two batches from one seed",
    ),
    "terms that are never drawn": (
        a_sum(draw=lambda size, rng: rng.integers(6, size=size)),
        "draw is uniform over the terms",
        "more often than others",
    ),
    "a small constant of the terms": (
        a_sum(term_smoothness=0.1, mean_square_smoothness=0.1),
        "term_smoothness and mean_square_smoothness",
        "changes faster",
    ),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_what_is_wrong_with_an_objective_is_found(name: str) -> None:
    objective, check, words = OBJECTIVES[name]
    failed(check_objective(objective), check, words)


@pytest.mark.parametrize("radius", [1e-4, 5e3, 1e7])
def test_a_gradient_that_is_wrong_by_a_percent_is_found_on_sets_of_any_size(radius: float) -> None:
    f = F(without=("smoothness", "lower_smoothness"))
    assert check_objective(f, cg.Simplex(3, radius), strict=True).passed
    wrong = F(without=("smoothness", "lower_smoothness"), grad=lambda x: 1.01 * Q @ x)
    failed(check_objective(wrong, cg.Simplex(3, radius)), "the gradient is that of the value", "grad makes")


def test_a_gradient_in_a_reused_buffer_is_noted() -> None:
    buffer = np.empty(3)
    found = check_objective(F(grad=lambda x: np.matmul(Q, x, out=buffer)))
    assert [finding.check for finding in found.notes] == ["an answer of grad is a value"]
    wrong = check_objective(F(grad=lambda x: np.matmul(Q, x, out=buffer), smoothness=1e-3))
    failed(wrong, "smoothness", "it is 0.001, but gradients change by")


def test_a_right_objective_passes_with_what_it_has() -> None:
    assert check_objective(F(), strict=True).passed and check_objective(a_sum(), strict=True).passed
    bare = F(without=("shape", "smoothness", "lower_smoothness"))
    assert check_objective(bare, cg.Simplex(3), strict=True).passed
    unseen = check_objective(bare)
    assert unseen.passed and any("give a domain" in finding.detail for finding in unseen.findings)


@dataclass(frozen=True)
class Loss:
    smoothness: float = 1.0
    lower_smoothness: float = 0.0
    lower_bound: float = 0.0
    labels: str = "real"
    factor: float = 1.0

    def value(self, z: Any, y: Any) -> Any:
        with np.errstate(over="ignore"):
            return np.square(z - y) / 2

    def deriv(self, z: Any, y: Any) -> Any:
        return self.factor * (z - y)


@pytest.mark.parametrize(
    ("loss", "check", "words"),
    [
        (object(), "members", "no value"),
        (Loss(labels="words"), "labels are 'real' or '+-1'", "'words'"),
        (Loss(factor=2.0), "deriv is the derivative of value", "differences make"),
        (
            Loss(smoothness=0.5),
            "smoothness and lower_smoothness are the extremes of the second derivative",
            "reaches 1",
        ),
        (Loss(lower_bound=0.1), "value is at least lower_bound", "but a value is 0"),
    ],
)
def test_what_is_wrong_with_a_loss_is_found(loss: Any, check: str, words: str) -> None:
    failed(check_loss(loss), check, words)
    assert check_loss(Loss(), exact=lambda z, y: (z - y) ** 2 / 2, strict=True).passed
    assert not check_loss(Loss(), exact=lambda z, y: (z - y) ** 2).passed


@dataclass(frozen=True)
class Inner:
    how: str = ""

    def init(self, domain: Any, x: Any) -> None:
        return None

    def solve(self, domain: Any, g: Any, u: Any, gamma: float, stop: Any, memory: Any) -> Prox:
        if self.how == "lazy":
            return Prox(u, 1e9, None)
        found = cg.CondG().solve(domain, g, u, gamma, absolute(1e-6), None)
        if self.how == "outside":
            return Prox(1.5 * found.point, found.gap, None)
        if self.how == "boasts":
            return Prox(u, 0.0, None)
        return found


@pytest.mark.parametrize(
    ("solver", "check", "words"),
    [
        (object(), "members", "no init and no solve"),
        (Inner("outside"), "the prox point lies in the set", "outside of the set"),
        (Inner("boasts"), "the gap is at least the true one", "it says 0, the true gap is"),
        (Inner("lazy"), "the gap is as small as was asked for", "was asked for"),
    ],
)
def test_what_is_wrong_with_an_inner_solver_is_found(solver: Any, check: str, words: str) -> None:
    failed(check_inner(solver, {"simplex": SIMPLEX}), check, words)


@dataclass(frozen=True)
class Solver:
    how: str = ""

    def init(self, problem: Any, x0: Any) -> State:
        return State(x=x0, L=problem.objective.smoothness)

    def step(self, problem: Any, state: State) -> State:
        s = problem.domain.lmo(problem.objective.grad(state.x))
        x, k = state.x + 2 / (state.k + 2) * (s - state.x), state.k + 1
        if self.how == "outside":
            x = 1.1 * x
        if self.how == "counts by 2":
            k += 1
        if self.how == "does nothing":
            x = state.x
        if self.how == "random":
            x = x + 1e-12 * np.random.default_rng().standard_normal(x.shape)
        if self.how == "in place":
            state.x.flags.writeable = True
            state.x[:] = x
        return replace(state, k=k, x=x)


@pytest.mark.parametrize(
    ("solver", "check", "words"),
    [
        (object(), "members", "no init and no step"),
        ("nowhere", "members", "there is no method 'nowhere'"),
        (Solver("outside"), "iterates stay in the set", "outside of the set"),
        (Solver("counts by 2"), "states count steps from the start", "k runs [0, 2, 4"),
        (Solver("does nothing"), "steps lead away from a start that is not stationary", "x is still x0 after 4 steps"),
        (Solver("random"), "a step is pure", "leads to two states"),
        (Solver("random"), "runs repeat", "differ"),
        (Solver("in place"), "a step is pure", "changed the state"),
    ],
)
def test_what_is_wrong_with_a_method_is_found(solver: Any, check: str, words: str) -> None:
    report = check_method(solver, steps=4)
    label = check if check == "members" else f"indefinite quadratic: {check}"
    failed(report, label, words)


def test_a_right_method_passes() -> None:
    assert check_method(Solver(), strict=True).passed and not check_method(Solver()).notes
    assert check_method(FrankWolfe("short"), {"own": cg.Problem(F(), Own3())}, strict=True).passed


class Own3:
    shape = (3,)

    def lmo(self, direction: Any) -> Any:
        return np.eye(3)[int(np.argmin(direction))]

    def contains(self, x: Any, tolerance: float = 1e-9) -> bool:
        return cg.Simplex(3).contains(x, tolerance)


def test_a_method_that_relies_on_a_known_smoothness_is_told() -> None:
    method = cg.solvers.Method("own", "Own", lambda problem, setup: Solver())
    cg.METHODS["own"] = method
    try:
        failed(check_method("own", steps=3), "finite sum: L need not be known", "must have a descent")
    finally:
        del cg.METHODS["own"]
