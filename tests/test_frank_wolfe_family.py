"""Frank-Wolfe methods that are deterministic and keep no active set: equivalences, bounds and what they save."""

from __future__ import annotations

from itertools import islice, pairwise
from math import inf, log2
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.minima import NONCONVEX
from tests.problems import case
from tests.reference import boosted, lazy

import condgrad as cg
from condgrad.solvers import Setup, build
from condgrad.solvers.boosted_frank_wolfe import Aligned

STEPS = 40
POLYTOPES = ["indefinite simplex", "convex simplex", "indefinite l1", "sigmoid l1"]


def states(method: str, problem: cg.Problem, x0: Any, steps: int = STEPS, **options: Any) -> list[Any]:
    solver = build(method, problem, Setup(cg.practical(1e-2), cg.CondG(30), steps), options)
    return list(islice(cg.iterate(problem, solver, x0), steps + 1))


def together(one: list[Any], other: list[Any], tolerance: float = 1e-10) -> None:
    assert np.linalg.norm(one[-1].x - one[0].x) > 1e-3, "neither moves: it would prove nothing"
    for a, b in zip(one, other, strict=True):
        assert np.linalg.norm(a.x - b.x) <= tolerance, f"apart after {a.k} steps"


# --------------------------------------------------------------------------------------------------------------- lazy


@pytest.mark.parametrize("problem", POLYTOPES)
@pytest.mark.parametrize("rule", ["short", "open-loop", "adaptive"])
def test_lazy_frank_wolfe_that_pays_for_every_vertex_is_frank_wolfe(problem: str, rule: str) -> None:
    example = case(problem)
    paid = states("lazy-frank-wolfe", example.problem, example.x0, rule=rule, cache=0)
    together(paid, states("frank-wolfe", example.problem, example.x0, rule=rule))
    assert all(state.certificate.gap < np.inf for state in paid[1:])


@pytest.mark.parametrize("factor", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("problem", POLYTOPES)
def test_lazy_frank_wolfe_calls_the_oracle_as_often_as_its_reference(problem: str, factor: float) -> None:
    example, F = case(problem), case(problem).objective
    solver = build("lazy-frank-wolfe", example.problem, Setup(cg.practical(), cg.CondG(), 60), {"factor": factor})
    result = cg.run(example.problem, solver, example.x0, cg.Steps(60))
    _, calls = lazy.run(F.grad, example.domain.lmo, example.x0, 60, F.smoothness, factor)
    assert result.counts["lo"] == calls
    assert calls < 60 or problem == "indefinite simplex", "from whose stationary vertex no known one descends"
    assert result.counts["fo"] in (60, 61)


@pytest.mark.parametrize("factor", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("make", NONCONVEX)
def test_the_bound_of_lazy_frank_wolfe(make: Any, factor: float) -> None:
    """A gap of at most eps is found within max(2K'h/eps, 2K'^2 C h/eps^2) + log2(gap(x_0)/eps) + 2 steps; not at the start."""
    known = make()
    C = known.objective.smoothness * known.domain.diameter**2
    g = known.objective.grad(known.x0)
    first = float(np.sum(g * (known.x0 - known.domain.lmo(g))))
    share, eps = max(factor, 2.0), 0.6 * first
    steps = int(max(2 * share * known.h0 / eps, 2 * share**2 * C * known.h0 / eps**2) + log2(first / eps) + 2)
    gaps = [s.certificate.gap for s in states("lazy-frank-wolfe", known.problem, known.x0, steps, factor=factor)[1:]]
    assert min(gaps) <= eps < gaps[0]


def test_lazy_frank_wolfe_keeps_no_more_vertices_than_it_may() -> None:
    example = case("indefinite lp")  # on a curved set each vertex is new
    few = states("lazy-frank-wolfe", example.problem, example.x0, cache=3)
    assert len(few[1].vertices) == 1 and max(len(state.vertices) for state in few[1:]) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [({"factor": 0.5}, "factor is 0.5, a number of at least 1 was expected"), ({"cache": -1}, "cache must be a whole")],
)
def test_lazy_frank_wolfe_refuses(options: Any, said: str) -> None:
    example = case("indefinite l1")
    with pytest.raises(ValueError, match=said):
        cg.minimize(example.objective, example.domain, method="lazy-frank-wolfe", max_steps=2, **options)


@pytest.mark.parametrize("method", ["lazy-frank-wolfe", "fully-corrective"])
def test_a_step_without_a_linear_minimisation_certifies_nothing(method: str) -> None:
    example = case("indefinite l1")
    calls: list[int] = []

    def lmo(direction: np.ndarray) -> np.ndarray:
        calls.append(1)
        return example.domain.lmo(direction)

    problem = cg.Problem(example.objective, cg.user_set(lmo, 6, diameter=4.0))
    solver = build(method, problem, Setup(cg.practical(1e-2), cg.CondG(30), 40), {})
    state, silent = solver.init(problem, example.x0), 0
    for _ in range(40):
        before = len(calls)
        state = solver.step(problem, state)
        assert (state.certificate.gap == inf) == (len(calls) == before)
        silent += len(calls) == before
    assert 0 < silent < 40


# ------------------------------------------------------------------------------------------------------------ boosted


@pytest.mark.parametrize("problem", POLYTOPES)
@pytest.mark.parametrize("rule", ["short", "adaptive"])
def test_boosted_frank_wolfe_with_one_round_is_frank_wolfe(problem: str, rule: str) -> None:
    example = case(problem)
    once = states("boosted-frank-wolfe", example.problem, example.x0, rule=rule, rounds=1)
    together(once, states("frank-wolfe", example.problem, example.x0, rule=rule))


@pytest.mark.parametrize(("problem", "steps"), [("indefinite lp", 20), ("quadratic sum lp", 12)])
@pytest.mark.parametrize("rounds", [2, 10])
def test_boosted_frank_wolfe_with_a_large_delta_walks_beside_its_reference_until_rounding_decides(
    problem: str, steps: int, rounds: int
) -> None:
    """On the l3 ball x comes so near to its vertex that after 30 steps the gap, and so t, has three digits only."""
    example = case(problem)
    expected = boosted.walk(example, steps, 0, rounds=rounds, delta=0.1)["x"]
    walk = states("boosted-frank-wolfe", example.problem, example.x0, steps, rule="short", rounds=rounds, delta=0.1)
    for k, (state, x) in enumerate(zip(walk, expected, strict=True)):
        assert np.linalg.norm(state.x - x) <= 1e-11, k


def test_boosted_frank_wolfe_takes_few_gradients_and_pays_with_linear_minimisations() -> None:
    """A centre inside of the cube, where Frank-Wolfe zigzags between its corners."""
    centre, cube = np.array([0.1, -0.3, 0.2, 0.4, -0.1]), cg.LinfBall(5, 1.0)
    F, x0 = cg.Quadratic(np.diag([1.0, 2.0, 1.5, 1.2, 3.0]), -centre * [1.0, 2.0, 1.5, 1.2, 3.0]), np.ones(5)
    stop = cg.Gap(1e-3) | cg.Steps(3000)
    runs = {
        name: cg.minimize(F, cube, x0, method=name, rule="short", stop=stop, progress=False)
        for name in ("frank-wolfe", "boosted-frank-wolfe")
    }
    assert runs["boosted-frank-wolfe"].status == "converged"
    few, many = (runs[name].counts for name in ("boosted-frank-wolfe", "frank-wolfe"))
    assert few["fo"] < many["fo"] / 2.5 and few["lo"] > 2 * few["fo"]


@pytest.mark.parametrize("make", NONCONVEX)
def test_a_boosted_step_decreases_F_as_much_as_a_frank_wolfe_step_must(make: Any) -> None:
    known = make()
    C = known.objective.smoothness * known.domain.diameter**2
    walk = states("boosted-frank-wolfe", known.problem, known.x0)
    for before, after in pairwise(walk):
        gap = after.certificate.gap
        decrease = known.objective.value(before.x) - known.objective.value(after.x)
        assert decrease >= min(gap / 2, gap**2 / (2 * C)) - 1e-9 * (1 + abs(known.objective.value(before.x)))
        assert known.domain.contains(after.x, 1e-9)


def test_the_sum_of_the_boosted_weights_is_1() -> None:
    example = case("indefinite lp")
    g, x = example.objective.grad(example.x0), example.x0
    solver = cg.solvers.BoostedFrankWolfe(rounds=5, delta=1e-6)
    s = example.domain.lmo(g)
    plain = Aligned(((1.0, s),), float(g @ (x - s)), float((s - x) @ (s - x)))
    found = solver.aligned(example.problem, g, x, plain)
    d = sum(c * v for c, v in found.parts) - x
    assert len(found.parts) > 1 and sum(c for c, _ in found.parts) == pytest.approx(1.0)
    assert found.gap == pytest.approx(-g @ d) and found.length2 == pytest.approx(d @ d)
    assert found.gap / np.sqrt(found.length2) > plain.gap / np.sqrt(plain.length2), "better aligned"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rounds": 0}, "rounds must be a whole number"),
        ({"delta": 1.5}, "delta is 1.5, a number between 0 and 1"),
        ({"rule": "open-loop"}, "rule of boosted Frank-Wolfe"),
    ],
)
def test_boosted_frank_wolfe_refuses(options: Any, said: str) -> None:
    example = case("indefinite l1")
    with pytest.raises(ValueError, match=said):
        cg.minimize(example.objective, example.domain, method="boosted-frank-wolfe", max_steps=2, **options)


# ----------------------------------------------------------------------------------------------------- parameter-free


@pytest.mark.parametrize("problem", POLYTOPES)
def test_parameter_free_frank_wolfe_that_is_told_half_of_L_takes_short_steps(problem: str) -> None:
    example = case(problem)
    told = states("parameter-free-frank-wolfe", example.problem, example.x0, first=example.objective.smoothness / 2)
    together(told, states("frank-wolfe", example.problem, example.x0, rule="short"))


@pytest.mark.parametrize("problem", [*POLYTOPES, "indefinite lp"])
def test_parameter_free_frank_wolfe_asks_for_one_value_a_step(problem: str) -> None:
    """Also where the first curvature is far too small, and where L is not known."""
    example = case(problem)
    F = example.objective
    for given in (F, cg.Function(F.value, F.grad, F.shape)):
        problem_ = cg.Problem(given, example.domain)
        for options in ({}, {"first": 1e-6}):
            solver = build("parameter-free-frank-wolfe", problem_, Setup(cg.practical(), cg.CondG(), 30), options)
            result = cg.run(problem_, solver, example.x0, cg.Steps(30))
            assert result.counts["values"] <= 31 and result.counts["fo"] <= 32 and result.counts["lo"] <= 31


@pytest.mark.parametrize("make", NONCONVEX)
@pytest.mark.parametrize("short", [1.0, 50.0])
def test_the_bound_of_parameter_free_frank_wolfe(make: Any, short: float) -> None:
    """With M_0 = L/``short``: a gap of at most eps within B + max(2H/eps, 4 L D^2 H/eps^2) steps; not at the start."""
    known = make()
    L, D, B = known.objective.smoothness, known.domain.diameter, log2(short)
    H = known.h0 + B * L * D**2 / 2
    g = known.objective.grad(known.x0)
    eps = 0.7 * float(np.sum(g * (known.x0 - known.domain.lmo(g))))
    steps = min(int(B + max(2 * H / eps, 4 * L * D**2 * H / eps**2)) + 1, 300)
    walk = states("parameter-free-frank-wolfe", known.problem, known.x0, steps, first=L / short)
    gaps = [state.certificate.gap for state in walk[1:]]
    assert min(gaps) <= eps < gaps[0]
    doubled = [b.curvature / a.curvature for a, b in pairwise(walk) if b.curvature != a.curvature]
    assert len(doubled) <= B and all(factor >= 2 for factor in doubled)
    assert walk[-1].curvature <= L * (1 + 1e-9)


# ---------------------------------------------------------------------------------------- differences of convex functions


def multiple(c: float) -> Any:
    """g(x) = c |x|^2/2"""
    return SimpleNamespace(grad=lambda x: c * x, smoothness=c)


@pytest.mark.parametrize("problem", POLYTOPES)
def test_dca_with_g_equal_to_0_is_frank_wolfe(problem: str) -> None:
    """With share 1e-9 the anchor moves only where the gap is 0; gradients of phi and F are equal, wherever it is."""
    example = case(problem)
    for share in (0.5, 1e-9):
        walk = states("dca-frank-wolfe", example.problem, example.x0, concave=multiple(0.0), share=share)
        together(walk, states("frank-wolfe", example.problem, example.x0, rule="short"))


@pytest.mark.parametrize("problem", ["indefinite l1", "sigmoid l1"])
def test_dca_whose_anchor_moves_in_every_step_is_frank_wolfe_with_shorter_steps(problem: str) -> None:
    example = case(problem)
    c, L = 2.5, example.objective.smoothness
    walk = states("dca-frank-wolfe", example.problem, example.x0, concave=multiple(c), share=1e300)
    short = states("frank-wolfe", example.problem, example.x0, rule=lambda d: min(1.0, d.gap / ((L + c) * d.length2)))
    together(walk, short)


def test_by_default_dca_takes_the_lower_smoothness() -> None:
    example = case("indefinite l1")
    assert example.objective.lower_smoothness == pytest.approx(3.0)
    own = states("dca-frank-wolfe", example.problem, example.x0, concave=multiple(3.0))
    together(own, states("dca-frank-wolfe", example.problem, example.x0))


@pytest.mark.parametrize("make", NONCONVEX)
def test_dca_descends_from_anchor_to_anchor_within_its_bound(make: Any) -> None:
    known = make()
    F, share = known.objective, 0.5
    C = (F.smoothness + F.lower_smoothness) * known.domain.diameter**2
    g = F.grad(known.x0)
    eps = 0.7 * float(np.sum(g * (known.x0 - known.domain.lmo(g))))
    steps = min(int(max(2 * known.h0 / (share * eps), 2 * C * known.h0 / (share * eps) ** 2)) + 1, 300)
    walk = states("dca-frank-wolfe", known.problem, known.x0, steps)
    found = [state.certificate.gap for state in walk[1:]]
    assert min(found) <= eps < found[0]
    anchors = [F.value(state.certificate.x) for state in walk[1:] if state.certificate.gap < np.inf]
    assert all(later <= earlier + 1e-9 * (1 + abs(earlier)) for earlier, later in pairwise(anchors))


@pytest.mark.parametrize("concave", [3.0, SimpleNamespace(grad=lambda x: x), SimpleNamespace(smoothness=1.0)])
def test_dca_refuses_what_is_no_function(concave: Any) -> None:
    example = case("indefinite l1")
    with pytest.raises(TypeError, match=r"lacks grad\(x\) or smoothness: give the convex g of F = f - g"):
        cg.minimize(example.objective, example.domain, method="dca-frank-wolfe", max_steps=2, concave=concave)
