"""L unknown: it is found. L given too small: it is noticed. L given right: no false alarm."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.driver import wolfe_gap
from condgrad.solvers.smoothness import smoothness

METHODS = [
    ("ncgs", {}),
    ("ncgs", {"inner": "corrective"}),
    ("ncgs-ii", {}),
    ("cgs", {}),
    ("projected-gradient", {}),
    ("accelerated-gradient", {}),
    ("frank-wolfe", {"rule": "short"}),
    ("frank-wolfe", {"rule": "bounded"}),
]
"""All that take steps by L."""
NAMED = [f"{name} {' '.join(map(str, options.values()))}".strip() for name, options in METHODS]
every_method = pytest.mark.parametrize(("method", "options"), METHODS, ids=NAMED)
LINEAR = ["ncgs", "ncgs-ii", "cgs", "frank-wolfe", "projected-gradient", "accelerated-gradient"]


def quadratic(seed: int, convex: bool, scale: float = 1.0, n: int = 5) -> cg.Quadratic:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    return cg.Quadratic(scale * (A @ A.T / n if convex else (A + A.T) / 2), scale * rng.standard_normal(n))


def a_set(seed: int, n: int = 5, r: float = 1.0) -> Any:
    return [cg.Simplex(n, r), cg.L1Ball(n, r), cg.L2Ball(n, r), cg.Box(np.full(n, -r), np.full(n, r))][seed % 4]


def forgetful(F: Any) -> cg.Function:
    """The same function, without its L."""
    return cg.Function(F.value, F.grad, F.shape)


def a_start(domain: Any, seed: int) -> np.ndarray:
    return domain.project(np.random.default_rng((seed, 1)).standard_normal(domain.shape))


# ---------------------------------------------------------------------------------------------------------- L unknown


@every_method
@pytest.mark.parametrize("seed", range(8))
def test_L_is_found(method: str, options: dict[str, Any], seed: int) -> None:
    """Never above twice the true L, unless the first guess was; and the tolerance is reached."""
    F, domain = quadratic(seed, convex=method == "cgs" or seed % 2 == 0), a_set(seed)
    x0, unknown = a_start(domain, seed), forgetful(F)
    guess = smoothness(cg.Problem(unknown, domain), x0)
    tol = 0.3 if method == "frank-wolfe" else 1e-6
    result = cg.minimize(unknown, domain, x0, method=method, tol=tol, max_steps=4000, every=50, **options)
    assert result.smoothness <= max(2 * F.smoothness, guess) * (1 + 1e-9)
    assert result.status == "converged" and result.warnings == ()


@every_method
def test_the_descent_inequality_holds_at_every_accepted_step(method: str, options: dict[str, Any]) -> None:
    """F(y) <= F(x) + <grad F(x), y - x> + L/2 |y - x|^2 for the L of that step, and L never falls."""
    options = {name: value for name, value in options.items() if name != "inner"}
    F, domain = forgetful(quadratic(3, convex=method == "cgs")), a_set(3)
    problem = cg.Problem(F, domain)
    setup = cg.solvers.Setup(cg.practical(1e-6), cg.Corrective(100), 50)
    states = cg.iterate(problem, cg.solvers.build(method, problem, setup, options), a_start(domain, 3))
    seen = [next(states) for _ in range(30)]
    for before, after in pairwise(seen):
        x, grad, y = after.descent
        assert np.array_equal(grad, F.grad(x))
        assert F.value(y) <= F.value(x) + grad @ (y - x) + after.L / 2 * np.sum((y - x) ** 2) + 1e-12
        assert after.L >= before.L


def test_a_guess_in_a_flat_place_is_corrected() -> None:
    """Flat where it starts, steep where it leads: the first guess is far too small."""
    F = cg.Function(
        lambda x: float(np.sum(np.maximum(x, 0) ** 2) * 50 - np.sum(x) * 0.1),
        lambda x: 100 * np.maximum(x, 0) - 0.1,
        (2,),
    )
    domain, x0 = cg.Box(-np.ones(2), np.ones(2)), np.array([-1.0, -1.0])
    guess = smoothness(cg.Problem(F, domain), x0)
    assert guess < 1
    result = cg.minimize(F, domain, x0)
    assert result.status == "converged" and 1 < result.smoothness <= 200
    assert result.x == pytest.approx([0.001, 0.001], abs=1e-5)


def test_estimate_forgets_what_the_objective_knows() -> None:
    F, domain = quadratic(0, convex=False), a_set(2)
    known = cg.minimize(F, domain, a_start(domain, 0))
    estimated = cg.minimize(F, domain, a_start(domain, 0), smoothness="estimate")
    assert known.smoothness == F.smoothness != estimated.smoothness
    assert known.success and estimated.success
    given = cg.minimize(F, domain, a_start(domain, 0), smoothness=3 * F.smoothness)
    assert given.smoothness == 3 * F.smoothness and given.success and given.warnings == ()


def test_backtracking_pays_with_values_that_are_counted() -> None:
    F, domain = quadratic(0, convex=False), a_set(2)
    assert cg.minimize(F, domain, adaptive=False).counts["values"] == 0
    assert cg.minimize(forgetful(F), domain, adaptive=False).counts["values"] > 0
    assert cg.minimize(F, domain).counts["values"] > 0


# ------------------------------------------------------------------------------------------------------------- scales


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("radius", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("method", ["ncgs", "ncgs-ii", "projected-gradient", "accelerated-gradient"])
def test_scales_do_not_matter(method: str, scale: float, radius: float) -> None:
    """With the tolerance scaled along, huge and tiny problems end at the same place as the one of size 1."""
    F, b = quadratic(1, convex=True), np.random.default_rng(2).standard_normal(5)
    sized = cg.Quadratic(scale * F.Q, scale * radius * b)
    tol = 1e-10 * (scale * radius) ** 2
    result = cg.minimize(forgetful(sized), cg.L1Ball(5, radius), method=method, tol=tol, max_steps=5000, every=100)
    plain = cg.minimize(cg.Quadratic(F.Q, b), cg.L1Ball(5), tol=1e-12, max_steps=5000, every=100)
    assert result.status == plain.status == "converged"
    assert result.x / radius == pytest.approx(plain.x, abs=1e-3)
    assert result.smoothness <= 2 * sized.smoothness * (1 + 1e-9)


@pytest.mark.parametrize(
    "rule", [rule for rule in cg.solvers.RULES if rule != "inverse-sqrt"]
)  # its steps fall too slowly
@pytest.mark.parametrize("scale", [1e-14, 1.0, 1e8])
def test_frank_wolfe_does_not_depend_on_the_scale(rule: str, scale: float) -> None:
    F = cg.Quadratic(scale * np.diag([1.0, 2.0, 3.0]))
    result = cg.minimize(F, cg.Simplex(3), np.eye(3)[0], method="frank-wolfe", rule=rule, tol=1e-4 * scale**2)
    assert result.status == "converged"


def test_a_large_constant_hides_no_curvature() -> None:
    """F + 1e6: the values are rough, the gradients are not."""
    F, domain = quadratic(4, convex=True), a_set(0)
    lifted = cg.Function(lambda x: F.value(x) + 1e6, F.grad, F.shape)
    result = cg.minimize(lifted, domain, tol=1e-8, max_steps=3000, every=50)
    assert result.status == "converged" and result.smoothness <= 2 * F.smoothness * (1 + 1e-6)


# ------------------------------------------------------------------------------------------------- linear and constant


@pytest.mark.parametrize("method", LINEAR)
def test_a_constant_is_stationary_everywhere(method: str) -> None:
    constant = cg.Function(lambda x: 2.0, lambda x: np.zeros(3))
    result = cg.minimize(constant, cg.Simplex(3), method=method)
    assert result.status == "converged" and result.fun == 2.0 and result.certificate.upper <= 1e-20
    assert np.array_equal(result.x, cg.Simplex(3).start())


@pytest.mark.parametrize("method", LINEAR)
def test_a_linear_function_is_least_at_a_vertex(method: str) -> None:
    """L = 0 is not known; the answer has to be the vertex, not any point with a tiny mapping for a huge step."""
    c = np.array([3.0, 1.0, 2.0])
    linear = cg.Function(lambda x: float(c @ x), lambda x: c)
    result = cg.minimize(linear, cg.Simplex(3), method=method)
    assert result.status == "converged"
    assert wolfe_gap(cg.Problem(linear, cg.Simplex(3)), result.x) <= 1e-3
    assert result.x == pytest.approx([0.0, 1.0, 0.0], abs=1e-3)


@pytest.mark.parametrize("method", LINEAR)
def test_a_linear_function_whose_L_is_known_to_be_0(method: str) -> None:
    result = cg.minimize(cg.Quadratic(np.zeros((3, 3)), [3.0, 1.0, 2.0]), cg.Simplex(3), method=method)
    assert result.status == "converged" and result.x == pytest.approx([0.0, 1.0, 0.0], abs=1e-3)


def test_a_nearly_linear_function_is_minimised() -> None:
    """L = 1e-5 is right, and with gamma = 1/(2 L) every point of the set has a mapping below 3e-5."""
    F, domain = cg.Quadratic(1e-5 * np.eye(3), [3.0, 1.0, 2.0]), cg.Simplex(3)
    result = cg.minimize(F, domain)
    assert result.status == "converged" and wolfe_gap(cg.Problem(F, domain), result.x) <= 1e-3


def test_a_gradient_of_the_wrong_sign_does_not_converge() -> None:
    F = cg.Function(lambda x: float(x.sum()), lambda x: -np.ones(3))
    try:
        result = cg.minimize(F, cg.Box(-np.ones(3), np.ones(3)))
    except ValueError as refused:
        assert "gradient" in str(refused)
    else:
        assert result.status != "converged"


# ---------------------------------------------------------------------------------------------------- L given too small


@pytest.mark.parametrize(
    ("method", "options"), [m for m in METHODS if m[0] != "cgs"], ids=[n for n in NAMED if n != "cgs"]
)
@pytest.mark.parametrize("where", ["in the objective", "in minimize"])
def test_a_smoothness_that_is_too_small_is_noticed(method: str, options: dict[str, Any], where: str) -> None:
    for seed in range(6):
        F, domain = quadratic(seed, convex=seed % 2 == 0), a_set(seed)
        L = 0.01 * F.smoothness
        told = cg.Function(F.value, F.grad, F.shape, smoothness=L) if where == "in the objective" else F
        given = None if where == "in the objective" else L
        with pytest.warns(cg.SmoothnessWarning, match="too small"):
            result = cg.minimize(
                told,
                domain,
                a_start(domain, seed),
                method=method,
                smoothness=given,
                max_steps=50,
                tol=1e-12 * L**2,
                **options,
            )
        (sentence,) = result.warnings
        assert f"L = {L:.3g}" in sentence and "Leave smoothness out" in sentence and "\n" not in sentence
        assert result.smoothness == L
        seen = float(sentence.split("at least ")[1].rstrip("."))
        assert L < seen <= F.smoothness * 1.01  # what is asked for instead was seen, and is not too much


def test_the_advice_in_the_warning_is_good() -> None:
    F, domain = quadratic(1, convex=True), a_set(2)
    told = cg.Function(F.value, F.grad, F.shape, smoothness=0.01 * F.smoothness)
    with pytest.warns(cg.SmoothnessWarning):
        cg.minimize(told, domain, a_start(domain, 1), max_steps=50)
    assert cg.minimize(told, domain, a_start(domain, 1), smoothness="estimate").success


@every_method
def test_the_right_smoothness_gives_no_false_alarm(method: str, options: dict[str, Any]) -> None:
    """Random problems of all sizes, on and on where nothing but rounding is left."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(12):
            scale, radius = 10.0 ** (seed % 7 - 3), 10.0 ** (seed % 5 - 2)
            F, domain = quadratic(seed, convex=method == "cgs" or seed % 2 == 0, scale=scale), a_set(seed, r=radius)
            result = cg.minimize(
                F,
                domain,
                radius * a_start(a_set(seed), seed),
                method=method,
                stop=cg.Steps(120) | cg.Calls(2000),
                **options,
            )
            assert result.warnings == () and result.status == "out_of_budget"


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e6])
def test_no_false_alarm_around_a_minimum_inside(shift: float) -> None:
    """Every eigenvalue is L, so any rounding is too much; the run goes on long after convergence."""
    centre = np.array([0.3, -0.2, 0.1]) + shift
    F = cg.Function(lambda x: float(np.sum((x - centre) ** 2)), lambda x: 2 * (x - centre), (3,), smoothness=2.0)
    box = cg.Box(np.full(3, shift - 1), np.full(3, shift + 1))
    result = cg.minimize(F, box, np.full(3, shift + 1), stop=cg.Steps(300))
    assert result.warnings == ()


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")
def test_no_false_alarm_around_a_minimum_at_0_with_a_large_residual() -> None:
    """F = |A x - y|^2 / 2 with A'A = I and A'y = 0: L is 1 exactly, x and grad F go to 0, y does not."""
    rng = np.random.default_rng(0)
    A = np.linalg.qr(rng.standard_normal((6, 3)))[0]
    y = 1e4 * rng.standard_normal(6)
    y = y - A @ (A.T @ y)
    F = cg.Function(lambda x: float(np.sum((A @ x - y) ** 2) / 2), lambda x: A.T @ (A @ x - y), (3,), smoothness=1.0)
    result = cg.minimize(F, cg.L2Ball(3, 10.0), np.array([1.0, 2.0, 3.0]), stop=cg.Steps(100))
    assert result.warnings == ()


@pytest.mark.parametrize("slope", [0.0, 1e-200])
@pytest.mark.parametrize(
    "method", [name for name, entry in cg.METHODS.items() if entry.deterministic or entry.finds_smoothness]
)
def test_a_constant_function_without_a_constant_converges_at_once(method: str, slope: float) -> None:
    def terms(x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return np.full((len(batch), 4), slope)

    F = cg.FunctionSum(lambda x: 1.0, terms, 7, 4)
    result = cg.minimize(F, cg.L1Ball(4, 1.0), method=method, max_steps=20)
    assert result.status == "converged" and result.fun == 1.0
