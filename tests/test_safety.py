"""What is noticed of a run from outside: no numbers, points outside, values that smoothness forbids, wrong gradients."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest
from tests.driving import CONVEX, NEVER, SIMPLEX, X0, a_sum

import condgrad as cg
from condgrad.checks import BadOracle, NonFinite
from condgrad.driver.audit import Audit
from condgrad.driver.reached import Reached
from condgrad.points import Pattern, SparsePlusLowRank
from condgrad.solvers.states import State

# --------------------------------------------------------------------------------------------------- NaN, Inf, overflow


class Broken:
    """Any attribute of the thing, but for an oracle that answers badly from its ``first`` call on."""

    def __init__(self, thing: Any, oracle: str, bad: Any, first: int = 4):
        self.thing, self.oracle, self.bad, self.left = thing, oracle, bad, first

    def __getattr__(self, name: str) -> Any:
        ask = getattr(self.thing, name)
        if name != self.oracle:
            return ask

        def answer(*args: Any) -> Any:
            self.left -= 1
            return ask(*args) if self.left > 0 else self.bad

        return answer


SPOILED = np.array([0.0, nan, inf])
SAID = "holds NaN or Inf (2 of 3 entries, the first at index (1,))"


@pytest.mark.parametrize(
    ("part", "oracle", "bad", "method", "said"),
    [
        ("objective", "grad", SPOILED, "projected-gradient", f"The gradient of Broken {SAID}."),
        ("objective", "grad", np.full(3, 1e200), "projected-gradient", "The gradient of Broken is too large to square"),
        ("objective", "value", nan, "projected-gradient", "The value of Broken is nan."),
        ("objective", "value", -inf, "frank-wolfe", "The value of Broken is -inf."),
        ("objective", "grad_terms", SPOILED, "sfw", f"The batch gradient of Broken {SAID}."),
        ("domain", "lmo", SPOILED, "frank-wolfe", f"The linear oracle's answer of Broken {SAID}."),
        ("domain", "project", SPOILED, "projected-gradient", f"The projection of Broken {SAID}."),
        ("domain", "project", SPOILED, "ncgs", f"The projection of Broken {SAID}."),
    ],
)
def test_what_is_not_finite_is_said_and_where(part: str, oracle: str, bad: Any, method: str, said: str) -> None:
    """Answers of objects that check nothing themselves: the run ends with what stood before, and says which, where, how many."""
    parts: dict[str, Any] = {"objective": a_sum(), "domain": SIMPLEX}
    parts[part] = Broken(parts[part], oracle, bad)
    result = cg.minimize(parts["objective"], parts["domain"], X0, method=method, stop=NEVER | cg.Steps(50))
    assert result.status == "failed" and SIMPLEX.contains(result.x)
    assert result.message.startswith(f"In step {result.steps + 1}: {said}"), result.message
    assert "The result is the iterate before this step." in result.message


def test_a_structured_gradient_says_where_in_its_values() -> None:
    from condgrad.driver.counting import describe_non_finite

    pattern = Pattern(np.array([0, 1, 1]), np.array([0, 0, 1]), (2, 2))
    assert describe_non_finite(SparsePlusLowRank(pattern, SPOILED)) == SAID
    assert (
        describe_non_finite(np.array([[1.0, -1e300]]))
        == "is too large to square: its largest entry is -1e+300, at index (0, 1)"
    )


class Stray:
    """A method whose third step leads to a given point."""

    def __init__(self, x: np.ndarray):
        self.x = x

    def init(self, problem: cg.Problem, x0: np.ndarray) -> State:
        return State(x=x0, L=3.0)

    def step(self, problem: cg.Problem, state: State) -> State:
        return State(k=state.k + 1, x=self.x if state.k == 2 else state.x, L=3.0)


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (SPOILED, "In step 3: The point after the step holds NaN or Inf (2 of 3 entries, the first at index (1,))."),
        (np.array([0.5, 0.7, 0.3]), "In step 3: The point after the step lies outside of the set: compare the answers"),
        (np.array([0.5, -0.1, 0.6]), "In step 3: The point after the step lies outside of the set"),
    ],
)
def test_a_step_to_nowhere_ends_with_what_stood_before(x: np.ndarray, said: str) -> None:
    objective = (
        CONVEX
        if x is not SPOILED
        else cg.FunctionExpectation(  # which has no value that would tell
            lambda size, rng: rng.normal(size=(size, 3)), lambda x, batch: x - batch, (3,), 1.0
        )
    )
    result = cg.run(cg.Problem(objective, SIMPLEX), Stray(x), X0, cg.Steps(9), output="last", validate=5)
    assert result.status == "failed" and result.message.startswith(said)
    assert result.steps == 2 and np.array_equal(result.x, X0)


# ------------------------------------------------------------------------------------------------------ out of the set


def twice(g: np.ndarray) -> np.ndarray:
    return 2 * SIMPLEX.lmo(g)


def test_a_linear_oracle_that_leaves_its_set_is_noticed() -> None:
    liar = cg.user_set(twice, 3, contains=SIMPLEX.contains, start=X0)
    with pytest.raises(
        BadOracle, match=r"outside of the set: compare the answers of UserSet's lmo|worse than a known point"
    ):
        cg.minimize(CONVEX, liar, method="frank-wolfe")


def test_a_projection_that_leaves_its_set_is_noticed() -> None:
    """By its own set's contains; where none is given, since projecting what was projected moves it again."""
    for contains in (SIMPLEX.contains, None):
        liar = cg.user_set(SIMPLEX.lmo, 3, project=lambda x: x / 2, contains=contains, start=X0)
        try:
            result = cg.minimize(CONVEX, liar, X0 if contains else None, method="projected-gradient", max_steps=20)
            assert result.status == "failed" and "outside of the set" in result.message
        except BadOracle as error:
            assert "lies outside of the set: compare the answers of ProjectableUserSet's lmo or project" in str(error)


def test_an_oracle_that_does_not_minimise_is_noticed_by_the_check() -> None:
    """It goes the wrong way: its answer is worse than the point itself."""
    liar = cg.user_set(lambda g: SIMPLEX.lmo(-g), 3, contains=SIMPLEX.contains, start=np.array([0.1, 0.2, 0.7]))
    with pytest.raises(BadOracle, match="worse than a known point of the set"):
        cg.minimize(CONVEX, liar, method="frank-wolfe", max_steps=20)


def test_the_set_is_asked_on_steps_ever_further_apart() -> None:
    asked = []

    def contains(x: np.ndarray, tolerance: float) -> bool:
        asked.append(tolerance)
        return SIMPLEX.contains(x, tolerance)

    domain = cg.user_set(SIMPLEX.lmo, 3, contains=contains)
    result = cg.minimize(CONVEX, domain, X0, method="frank-wolfe", stop=cg.Steps(2000))
    assert result.status == "out_of_budget" and 10 < len(asked) < 100
    assert set(asked) == {1e-6, 1e-15}, "and at the end, whether the point is in the set to the last digits"


# ------------------------------------------------------------------------------------------- what smoothness forbids


def test_a_value_that_smoothness_forbids_is_noticed() -> None:
    """The gradient is a third of F's: L holds for it, so two gradients tell nothing, but F falls more slowly than it says."""
    wrong = cg.Function(lambda x: -CONVEX.value(x), lambda x: CONVEX.grad(x) / 3, (3,), smoothness=3.0)
    with pytest.warns(cg.SmoothnessWarning, match=r"In step 1 F reached .* allow at most .*check_gradient"):
        result = cg.minimize(wrong, SIMPLEX, X0, adaptive=False, max_steps=5)
    assert len(result.warnings) == 1 and result.status != "failed"


def test_a_smoothness_that_is_too_small_is_said_once() -> None:
    with pytest.warns(cg.SmoothnessWarning, match="is too small: between two points"):
        result = cg.minimize(CONVEX, SIMPLEX, X0, smoothness=0.3, adaptive=False, max_steps=5, tol=1e-12)
    assert len(result.warnings) == 1


def test_a_smoothness_that_is_a_hundredth_too_small_is_said() -> None:
    """Of x'x/2, whose gradients differ by just what their points do."""
    with pytest.warns(cg.SmoothnessWarning, match="the gradient changed by 1 times their distance"):
        cg.minimize(cg.Quadratic(np.eye(3)), SIMPLEX, X0, method="frank-wolfe", smoothness=0.99, max_steps=5, tol=1e-12)


@pytest.mark.parametrize(
    "method", ["ncgs", "ncgs-ii", "frank-wolfe", "cgs", "projected-gradient", "accelerated-gradient"]
)
def test_a_true_smoothness_is_not_doubted(method: str) -> None:
    """All the way to where steps are nothing but rounding; with values far from 0, where they have few digits."""
    for constant in (0.0, 1e6):
        objective = cg.Quadratic(np.diag([1.0, 2.0, 3.0]), None, constant)
        result = cg.minimize(objective, SIMPLEX, X0, method=method, stop=cg.Steps(300))
        assert result.warnings == ()


def test_rises_are_seen_whatever_is_recorded() -> None:
    wrong = cg.Function(lambda x: -CONVEX.value(x), lambda x: CONVEX.grad(x) / 3, (3,), smoothness=3.0)
    with pytest.warns(cg.SmoothnessWarning, match=r"In step \d+ F reached"):
        cg.minimize(wrong, SIMPLEX, X0, method="accelerated-gradient", max_steps=9, every=4)


# ------------------------------------------------------------------------------------------------------ wrong gradients


@pytest.mark.parametrize("entry", cg.OBJECTIVES.values(), ids=cg.OBJECTIVES)
def test_the_gradients_of_the_library_match(entry: Any) -> None:
    objective = entry.example()
    domain = cg.L2Ball(objective.shape, 2.0)
    if entry.kind == "expectation":
        with pytest.raises(TypeError, match=r"A gradient is checked against values, but Function\w+ has none"):
            cg.check_gradient(objective, domain)
        return
    found = cg.check_gradient(objective, domain)
    assert found.matches and found.error < 1e-6 and str(found).startswith("The gradient matches")


WRONG = {
    "sign": lambda g: -g,
    "factor": lambda g: 1.01 * g,
    "one entry": lambda g: g * np.array([1.0, 1.0, 0.5]),
    "an entry too much": lambda g: g + 0.01 * np.abs(g).max() * np.array([0.0, 1.0, 0.0]),
    "order": lambda g: g[::-1],
    "nothing": lambda g: 0 * g,
}


@pytest.mark.parametrize("spoil", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_a_wrong_gradient_is_found(spoil: Any, scale: float) -> None:
    objective = cg.Function(lambda x: scale * CONVEX.value(x), lambda x: spoil(scale * CONVEX.grad(x)), (3,))
    found = cg.check_gradient(objective, SIMPLEX, X0)
    assert not found.matches and "does not match the function: along random direction" in str(found)
    with pytest.raises(BadOracle, match=r"gives the slope .* \(relative error .*\)\. Correct Function"):
        cg.minimize(objective, SIMPLEX, X0, check_gradient=True)


F32 = np.float32


def in_float32(loss: str, n: int, seed: int) -> tuple[Any, Any]:
    """(value, grad) as JAX and PyTorch compute them by default: data, points and answers are float32."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((200, n)).astype(F32), np.sign(rng.standard_normal(200)).astype(F32)
    functions = {
        "logistic": (lambda z: np.log1p(np.exp(-y * z)), lambda z: -y / (1 + np.exp(y * z))),
        "squared": (lambda z: (z - y) ** 2 / 2, lambda z: z - y),
        "welsch": (lambda z: 1 - np.exp(-((z - y) ** 2)), lambda z: 2 * (z - y) * np.exp(-((z - y) ** 2))),
    }
    f, slope = functions[loss]

    def value(x: np.ndarray) -> np.floating:
        return np.mean(f(A @ np.asarray(x, F32)), dtype=F32)

    def grad(x: np.ndarray) -> np.ndarray:
        return A.T @ slope(A @ np.asarray(x, F32)) / F32(len(A))

    assert value(np.ones(n)).dtype == grad(np.ones(n)).dtype == F32
    return value, grad


class ByProtocol:
    """A user's own class: nothing of it is condgrad's."""

    smoothness = 10.0

    def __init__(self, value: Any, grad: Any, n: int):
        self.value, self.grad, self.shape = value, grad, (n,)


def flipped(g: np.ndarray) -> np.ndarray:
    at = np.argmax(np.abs(g))
    return np.where(np.arange(len(g)) == at, -g, g)


@pytest.mark.parametrize("made", [cg.Function, ByProtocol], ids=lambda made: made.__name__)
@pytest.mark.parametrize("loss", ["logistic", "squared", "welsch"])
@pytest.mark.parametrize(
    "domain", [cg.L2Ball(20), cg.L2Ball(20, 0.1), cg.L2Ball(20, 5.0), cg.LinfBall(20), cg.Simplex(20)]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_float32_gradient_is_compared_as_precisely_as_its_digits_allow(
    made: Any, loss: str, domain: Any, seed: int
) -> None:
    value, grad = in_float32(loss, 20, seed)
    found = cg.check_gradient(made(value, grad, 20), domain, seed=seed)
    assert found.matches, str(found)
    assert cg.check_gradient(made(value, grad, 20), domain, seed=seed + 10).matches
    for wrong in (lambda x: F32(1.01) * grad(x), lambda x: -grad(x)):
        assert not cg.check_gradient(made(value, wrong, 20), domain, seed=seed).matches
    if isinstance(domain, cg.L2Ball):  # towards a vertex of the others most coordinates are the same
        wrong = cg.check_gradient(made(value, lambda x: flipped(grad(x)), 20), domain, seed=seed)
        assert not wrong.matches and "does not match" in str(wrong)


@pytest.mark.parametrize("seed", range(5))
def test_float32_that_is_added_to_float64_is_still_float32(seed: int) -> None:
    """A regulariser in float64 fills the digits that the loss does not have."""
    value, grad = in_float32("logistic", 20, seed)

    def check(factor: float) -> Any:
        F = cg.Function(lambda x: float(value(x)) + 0.05 * x @ x, lambda x: factor * (grad(x) + 0.1 * x), 20)
        return cg.check_gradient(F, cg.L2Ball(20, 2.0), seed=seed)

    assert check(1.0).matches and not check(1.01).matches
    assert check(1.0).rtol > 1e-3


def test_a_float32_gradient_of_float64_values() -> None:
    A = np.random.default_rng(1).standard_normal((50, 20))
    for factor, right in ((1.0, True), (1.001, False)):
        F = cg.Function(lambda x: 0.5 * np.sum((A @ x) ** 2), lambda x: (factor * A.T @ (A @ x)).astype(F32), 20)  # noqa: B023
        found = cg.check_gradient(F, cg.L2Ball(20))
        assert found.matches == right and found.rtol == 1e-4


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
def test_an_offset_hides_a_gradient_but_makes_none_wrong(offset: float) -> None:
    """1e12 leaves four digits of F: neither a right gradient is refused for that, nor one of the wrong sign let through."""
    for factor in (1.0, -1.0):
        F = cg.Function(lambda x: 50 * CONVEX.value(x) + offset, lambda x: factor * 50 * CONVEX.grad(x), (3,))  # noqa: B023
        assert cg.check_gradient(F, SIMPLEX, X0).matches == (factor > 0), factor


def test_a_check_that_could_not_tell_says_so() -> None:
    """1e18 leaves no digit of what F changes by."""
    hidden = cg.check_gradient(cg.Function(lambda x: CONVEX.value(x) + 1e18, CONVEX.grad, (3,)), SIMPLEX, X0)
    assert hidden.matches and not hidden.sure and "relative to their precision, to confirm it" in str(hidden)
    seen = cg.check_gradient(CONVEX, SIMPLEX, X0)
    assert seen.matches and seen.sure and str(seen).startswith("The gradient matches the function")


ODD = {
    "complex": (lambda x: 1j * x, "must be an array of real numbers, but got dtype complex128: convert it first"),
    "None": (lambda x: None, "must be an array of real numbers, but got a NoneType without them: convert it first"),
    "text": (lambda x: "2 x", "must be an array of real numbers, but got a str without them: convert it first"),
    "scalar": (lambda x: 1.0, r"has shape \(\), but \(3,\) was expected: reshape it"),
    "column": (lambda x: x[:, None], r"has shape \(3, 1\), but \(3,\) was expected: reshape it"),
    "ragged": (lambda x: [[1.0], [1.0, 2.0]], "must be an array of real numbers, but got a list without them"),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("made", [cg.Function, ByProtocol], ids=lambda made: made.__name__)
@pytest.mark.parametrize(
    "options", [{}, {"method": "frank-wolfe", "measure": True}, {"smoothness": "estimate"}], ids=str
)
def test_a_gradient_that_is_none_is_refused_in_one_sentence(odd: str, made: Any, options: Any, tmp_path: Any) -> None:
    grad, words = ODD[odd]
    F = made(CONVEX.value, grad, 3)
    for more in ({}, {"checkpoint": tmp_path / "c"}):
        with pytest.raises(ValueError, match=f"^The answer of grad {words}"):
            cg.minimize(F, SIMPLEX, X0, **({"smoothness": 3.0} | options | more))
    with pytest.raises(ValueError, match=f"^The answer of grad {words}"):
        cg.check_gradient(F, SIMPLEX, X0)


@pytest.mark.parametrize("made", [cg.Function, ByProtocol], ids=lambda made: made.__name__)
def test_a_gradient_that_is_a_list_of_numbers_will_do(made: Any) -> None:
    expected = cg.minimize(CONVEX, SIMPLEX, X0, smoothness=10.0)
    result = cg.minimize(made(CONVEX.value, lambda x: list(CONVEX.grad(x)), 3), SIMPLEX, X0, smoothness=10.0)
    assert result.status == "converged" and np.allclose(result.x, expected.x, atol=1e-3)


@pytest.mark.parametrize("value", [lambda x: None, lambda x: 1j, lambda x: x], ids=["None", "complex", "vector"])
def test_a_value_that_is_none_is_refused_in_one_sentence(value: Any) -> None:
    for made in (cg.Function, ByProtocol):
        with pytest.raises(ValueError, match=r"^The answer of value (must be|has shape)"):
            cg.minimize(made(value, CONVEX.grad, 3), SIMPLEX, X0, smoothness=10.0)


def test_a_gradient_in_a_buffer_that_is_used_again_is_copied() -> None:
    buffer = np.empty(3)

    def grad(x: np.ndarray) -> np.ndarray:
        buffer[:] = CONVEX.grad(x)
        return buffer

    plain, reused = (cg.minimize(ByProtocol(CONVEX.value, g, 3), SIMPLEX, X0) for g in (CONVEX.grad, grad))
    assert plain.x.tobytes() == reused.x.tobytes() and plain.counts == reused.counts


def test_wrong_terms_are_found_where_the_gradient_is_right() -> None:
    terms = a_sum()
    objective = Broken(terms, "grad_terms", None, first=0)
    objective.bad = 2 * terms.grad(X0)
    found = cg.check_gradient(objective, SIMPLEX, X0)
    assert not found.matches and "the mean of the terms' gradients gives the slope" in str(found)


def test_a_right_gradient_passes_and_the_run_is_the_same() -> None:
    plain, checked = (cg.minimize(CONVEX, SIMPLEX, X0, check_gradient=check) for check in (False, True))
    assert checked.x.tobytes() == plain.x.tobytes() and checked.counts == plain.counts


def test_the_check_asks_for_points_of_the_set_only() -> None:
    def value(x: np.ndarray) -> float:
        assert SIMPLEX.contains(x, 1e-12)
        return CONVEX.value(x)

    assert cg.check_gradient(cg.Function(value, CONVEX.grad, (3,)), SIMPLEX, np.eye(3)[0]).matches


def test_values_that_are_none_are_said_by_the_check() -> None:
    class Bad:
        shape, smoothness = (3,), 1.0

        def value(self, x: np.ndarray) -> float:
            return nan

        def grad(self, x: np.ndarray) -> np.ndarray:
            return x

    with pytest.raises(NonFinite, match="The value of Bad is nan and nan at two points of the set"):
        cg.check_gradient(Bad(), SIMPLEX)
    with pytest.raises(ValueError, match="check_gradient must be True or False"):
        cg.minimize(CONVEX, SIMPLEX, check_gradient="yes")


def test_backtracking_sees_to_smoothness_itself() -> None:
    audit = Audit(cg.Problem(CONVEX, SIMPLEX), given=False, reached=Reached())
    audit.check_step(State(x=X0, L=1.0), State(x=X0, L=1.0), None, None, CONVEX.value)  # type: ignore[arg-type]
    assert list(audit.warnings(None)) == []


def test_digits_that_are_lost_at_zero_are_no_rise():
    """F is a square of rounding errors here, which follow no bound."""
    rng = np.random.default_rng(0)
    x = 100 * rng.normal(size=30)
    A = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    F = cg.LinearModel(A, A @ x, cg.Squared())
    for seed in range(20):
        start = x + 1e-13 * np.random.default_rng(seed).normal(size=30)
        cg.minimize(F, cg.L2Ball(30, 1e3), start, method="projected-gradient", smoothness=F.smoothness, max_steps=3)


@pytest.mark.parametrize("seed", range(20))
def test_digits_that_are_lost_in_a_difference_of_terms_are_no_rise(seed: int) -> None:
    """log cosh of t is t + log(1 + exp(-2 t)) - log 2: near its minimum 0, rounding leaves errors of 1e-16 in it."""

    def value(x: np.ndarray) -> float:
        t = np.abs(x - target)
        return float(np.mean(np.maximum(t + np.log1p(np.exp(-2 * t)) - np.log(2), 0.0)))

    target = np.random.default_rng(seed).uniform(0.05, 0.3, 3)
    F = cg.Function(value, lambda x: np.tanh(x - target) / 3, 3, smoothness=1 / 3)
    for method in ("ncgs", "projected-gradient", "frank-wolfe"):
        cg.minimize(F, cg.Box(np.zeros(3), np.ones(3)), np.zeros(3), method=method, tol=1e-20, max_steps=60)


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")
@pytest.mark.parametrize("method", ["ncgs", "ncgs-ii", "projected-gradient", "frank-wolfe"])
def test_no_status_rests_on_a_smoothness_that_the_run_has_refuted(method: str) -> None:
    """L is too small by 1000: with steps that long the mapping is small everywhere."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 6))
    Q, b = A @ A.T, 10 * rng.standard_normal(6)
    true = float(np.linalg.norm(Q, 2))
    F = cg.Function(lambda x: float(x @ Q @ x / 2 + b @ x), lambda x: Q @ x + b, (6,), smoothness=true / 1000)
    result = cg.minimize(F, cg.Simplex(6), method=method, tol=1e-3, max_steps=50)
    gamma = 1 / (2 * true)
    mapping = float(np.sum((result.x - cg.Simplex(6).project(result.x - gamma * F.grad(result.x))) ** 2)) / gamma**2
    assert not result.success or mapping <= 1e-3, result.message
    if result.status == "unverified":
        assert "is too small" in result.message and "Leave smoothness out" in result.message


def test_a_smoothness_that_is_a_little_too_small_is_certified_for_the_one_that_was_seen() -> None:
    Q = np.diag([1.0, 2.0, 3.0])
    F = cg.Function(lambda x: float(x @ Q @ x / 2), lambda x: Q @ x, (3,), smoothness=2.0)
    with pytest.warns(cg.SmoothnessWarning):
        result = cg.minimize(F, cg.Simplex(3), np.array([0.1, 0.1, 0.8]), method="projected-gradient", tol=1e-8)
    assert result.status == "converged" and result.certificate.gamma < 1 / (2 * 2.0), "restated for a larger L"
