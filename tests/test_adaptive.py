"""Steps that adapt: F goes down in each of them, what they certify is true, and they end with a certificate that is confirmed."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problems import PLAIN, SUMS, case, symmetric
from tests.reference import ncgs as reference
from tests.test_lockstep import MAX_CALLS, STEPS, condg, ground

import condgrad as cg
from condgrad.driver import mapping
from condgrad.points import norm2
from condgrad.protocols import SpectralSet, fits
from condgrad.solvers import Setup, build
from condgrad.solvers import ncgs as library
from condgrad.solvers.smoothness import VALUE_NOISE, curvature_along, curvature_of_gradients, smoothness
from condgrad.solvers.states import Descent

quick = settings(max_examples=30, deadline=None, derandomize=True, database=None)
SETS = {
    "simplex": lambda n, r: cg.Simplex(n, r),
    "l1": lambda n, r: cg.L1Ball(n, r),
    "l2": lambda n, r: cg.L2Ball(n, r),
    "box": lambda n, r: cg.Box(-0.5 * r * np.ones(n), r * np.ones(n)),
    "nuclear": lambda n, r: cg.NuclearBall((n, 3), r),
    "spectrahedron": lambda n, r: cg.Spectrahedron(n, r),
    "fantope": lambda n, r: cg.Fantope(n, (n + 1) // 2),
}
INNERS = {
    "exact": cg.Exact(),
    "condg": cg.CondG(40),
    "corrective": cg.Corrective(40),
    "spectral": cg.Spectral(),
    "spectral in practice": cg.Spectral(4, 1.25),
}


def quadratic(domain: Any, rng: np.random.Generator, stated: float) -> cg.Function:
    """Indefinite, of any scale, on points of any shape; it says that its L is ``stated`` times what it is."""
    size = int(np.prod(domain.shape))
    Q = 10.0 ** rng.uniform(-2, 2) * symmetric(size, -rng.uniform(0, 1), 1.0, rng)
    b = np.abs(Q).max() * domain.max_norm * rng.standard_normal(size)
    return cg.Function(
        lambda x: float(x.ravel() @ Q @ x.ravel() / 2 + b @ x.ravel()),
        lambda x: (Q @ x.ravel() + b).reshape(domain.shape),
        domain.shape,
        smoothness=stated * float(np.linalg.norm(Q, 2)),
    )


@st.composite
def problems(draw: Any) -> tuple[cg.Problem, np.ndarray, Any, float]:
    """(problem, start, inner solver, eps)"""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    domain = SETS[draw(st.sampled_from(sorted(SETS)))](draw(st.integers(1, 5)), 10.0 ** draw(st.floats(-1, 1)))
    names = [name for name in INNERS if "spectral" not in name or fits(domain, SpectralSet)]
    objective = quadratic(domain, rng, 10.0 ** draw(st.floats(0, 3)))
    x0 = domain.project(domain.max_norm * rng.standard_normal(domain.shape))
    eps = 10.0 ** draw(st.floats(-12, 0)) * (objective.smoothness * domain.max_norm) ** 2
    return cg.Problem(objective, domain), x0, INNERS[draw(st.sampled_from(names))], eps


def exact_mapping(problem: cg.Problem, x: np.ndarray, gamma: float) -> float:
    """|g(x, grad F(x), gamma)|, by projection."""
    prox = problem.domain.project(x - gamma * problem.objective.grad(x))
    return float(np.linalg.norm(x - prox)) / gamma


def states_of(problem: cg.Problem, x0: Any, inner: Any, eps: float, steps: int = 25) -> list[Any]:
    solver = build("ncgs", problem, Setup(cg.practical(eps), inner, steps), {})
    return list(islice(cg.iterate(problem, solver, x0), steps + 1))


def papers_problem(size: int, rank: int, generator: str, seed: int) -> cg.Problem:
    data = cg.paper_data(size, size, rank, seed=seed, generator=generator)
    objective = cg.Completion(data.rows, data.cols, data.values, (size, size))
    return cg.Problem(objective, cg.NuclearBall((size, size), data.nuclear_norm))


# ---------------------------------------------------------------------------------------------------------- every step


@quick
@given(drawn=problems())
def test_every_step_descends_and_certifies_the_truth(drawn: Any) -> None:
    problem, x0, inner, eps = drawn
    F, L = problem.objective, problem.objective.smoothness
    for before, after in pairwise(states_of(problem, x0, inner, eps)):
        proof = after.certificate
        assert problem.domain.contains(after.x, 1e-8) and proof.x is before.x and proof.prox is after.x
        assert proof.gamma == 1 / (2 * L) == 1 / (2 * after.L), "the mapping that is spoken of is the paper's"
        assert proof.step is None or proof.step > proof.gamma

        scale = np.linalg.norm(F.grad(before.x)) + L * problem.domain.max_norm
        rounding = 1e-7 * scale  # a gap is known to 1e-15 of its terms, and comes in under a root
        exact = exact_mapping(problem, before.x, proof.gamma)
        assert sqrt(proof.lower) - rounding <= exact <= sqrt(proof.upper) + rounding

        d, step = after.x - before.x, proof.step or proof.gamma
        size = abs(F.value(before.x)) + abs(F.value(after.x)) + np.linalg.norm(F.grad(before.x)) * np.linalg.norm(d)
        slope = float(np.sum(F.grad(before.x) * d))
        noise = 10 * VALUE_NOISE * size
        assert F.value(after.x) <= F.value(before.x) + slope + float(np.sum(d**2)) / (4 * step) + noise
        assert F.value(after.x) <= F.value(before.x) + proof.gap + noise


@quick
@given(drawn=problems())
def test_with_a_tiny_floor_F_never_rises(drawn: Any) -> None:
    """And falls by L_k/2 |theta_k - theta_{k-1}|^2 at least, where the prox met its relative accuracy of 1/2."""
    problem, x0, inner, _ = drawn
    for before, after in pairwise(states_of(problem, x0, inner, 1e-300)):
        fall = problem.objective.value(before.x) - problem.objective.value(after.x)
        step, way2 = after.certificate.step or after.certificate.gamma, float(np.sum((after.x - before.x) ** 2))
        noise = 10 * VALUE_NOISE * (abs(problem.objective.value(before.x)) + way2 / step)
        assert fall >= -noise
        if after.certificate.gap <= 0.5 * way2 / step:
            assert fall >= way2 / (4 * step) - noise


def test_long_steps_are_taken_where_F_is_flat() -> None:
    """L is a hundred times too large, and it does not matter: the step is what F's own curvature allows."""
    rng, domain = np.random.default_rng(0), cg.L2Ball(6)
    problem = cg.Problem(quadratic(domain, rng, 100.0), domain)
    states = states_of(problem, domain.start(), cg.Exact(), 1e-12)
    steps = [state.certificate.step for state in states[1:] if state.certificate.step]
    true_L = problem.objective.smoothness / 100
    assert steps and min(steps) >= 1 / (2 * 2 * true_L)


def test_it_saves_gradients_of_the_papers_problem() -> None:
    """Of F's Hessian, which is diagonal, one in ten entries is not 0: along a step F is flatter than L."""
    problem = papers_problem(60, 3, "gaussian", 1)
    how = {"tol": 1e-5, "warm_start": 0, "max_steps": 1000, "every": 20, "polish": False}
    adaptive, fixed = (cg.minimize(problem.objective, problem.domain, adaptive=a, **how) for a in (True, False))
    assert adaptive.status == fixed.status == "converged"
    assert 2 * adaptive.counts["fo"] <= fixed.counts["fo"] and adaptive.fun <= fixed.fun + 1e-3


# ----------------------------------------------------------------------------------------------------- the flat transcription


@pytest.mark.parametrize("problem", [*PLAIN, "welsch simplex", "completion nuclear"])
@pytest.mark.parametrize("eps", [1e-1, 1e-2])
def test_iterate_by_iterate(problem: str, eps: float) -> None:
    example, schedule = ground(problem), cg.practical(eps, c=0.4)
    f = example.objective

    def prox(l: Any, u: Any, lam: float, floor: float) -> tuple[Any, float]:
        def accurate(gap: float, moved: float) -> bool:
            return gap <= max(floor, 0.4 * moved)

        p, V, _ = condg.condg(example.domain.lmo, l, u, lam, accurate, MAX_CALLS)
        return p, condg.wolfe_gap(example.domain.lmo, l, u, lam, p) if V is None else V

    walk = reference.option_1_adaptive(
        f.value, f.grad, prox, example.x0, f.smoothness, STEPS, eps, library.FIRST_L_SHARE, library.MIN_L_SHARE
    )
    setup = Setup(schedule, cg.CondG(MAX_CALLS), STEPS)
    states = islice(cg.iterate(example.problem, build("ncgs", example.problem, setup, {}), example.x0), 1, STEPS + 1)
    assert np.linalg.norm(walk["theta"][-1] - example.x0) > 1e-3
    assert len(set(walk["L"])) > 2, "L_k stays where it is: it would prove nothing"
    for k, state in enumerate(states, start=1):
        assert np.linalg.norm(state.x - walk["theta"][k]) <= 1e-8, k
        assert 1 / (2 * (state.certificate.step or state.certificate.gamma)) == pytest.approx(walk["L"][k], rel=1e-6)
        assert (state.due, state.demand) == (walk["due"][k], pytest.approx(walk["demand"][k], rel=1e-6))


def raised(constant: float, n: int = 60) -> tuple[Any, Any]:
    """A quadratic with a constant added, and a box. Next to a large constant, short steps do not change the value."""
    rng = np.random.default_rng(0)
    h, c = 50 ** rng.random(n), 0.6 * rng.standard_normal(n)
    value = lambda x: constant + float(h @ (x - c) ** 2) / 2  # noqa: E731
    return cg.Function(value, lambda x: h * (x - c), n, smoothness=50.0), cg.Box(-np.ones(n), np.ones(n))


def test_lockstep_where_values_do_not_change() -> None:
    F, box = raised(1e15)
    eps, x0, steps = 1e-10, np.zeros(60), 60

    def prox(g: np.ndarray, x: np.ndarray, lam: float, floor: float) -> tuple[np.ndarray, float]:
        return box.project(x - lam * g), 0.0

    walk = reference.option_1_adaptive(F.value, F.grad, prox, x0, 50.0, steps, eps, library.FIRST_L_SHARE, 1e-4)
    setup = Setup(cg.practical(eps), cg.Exact(), steps)
    solver = build("ncgs", cg.Problem(F, box), setup, {"momentum": False})
    assert len(set(walk["L"])) > 2
    for k, state in enumerate(islice(cg.iterate(cg.Problem(F, box), solver, x0), steps + 1)):
        assert np.linalg.norm(state.x - walk["theta"][k]) <= 1e-8, k


def test_a_constant_does_not_slow_a_run_down() -> None:
    """Without curvature from gradients, L_k only fell once F changed by less than its noise: 3,000 steps did not suffice."""
    runs = [cg.minimize(*raised(c), np.zeros(60), tol=1e-10, momentum=False, max_steps=3000) for c in (0.0, 1e6)]
    assert [run.status == "out_of_budget" for run in runs] == [False, False]
    assert runs[1].steps <= 1.2 * runs[0].steps


def test_curvature_of_gradients_is_that_of_values() -> None:
    F, box = raised(0.0)
    rng = np.random.default_rng(1)
    x, y = box.project(rng.standard_normal(60)), box.project(rng.standard_normal(60))
    step = Descent(x, F.grad(x), y)
    rho, noise = curvature_of_gradients(F, step, F.grad(y))
    assert rho == pytest.approx(curvature_along(step, F.value(x), F.value(y))[0]) and 0 < noise < 1e-10
    assert curvature_of_gradients(F, Descent(x, F.grad(x), x), F.grad(x)) == (0.0, 0.0)


# ------------------------------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize("problem", [*PLAIN, *SUMS])
@pytest.mark.parametrize(("inner", "tol"), [("auto", 1e-8), ("corrective", 1e-4), ("condg", 1e-2)])
def test_it_ends_with_a_certificate_that_is_confirmed(problem: str, inner: str, tol: float) -> None:
    example = case(problem)
    if (inner, problem) == ("corrective", "quadratic sum lp"):
        tol = 1e-3
    result = cg.minimize(example.objective, example.domain, example.x0, inner=inner, tol=tol, max_steps=2000, every=20)
    assert result.status == "converged", result.message
    assert result.certificate.gamma == 1 / (2 * example.objective.smoothness)
    assert result.certificate.upper <= tol * (1 + 1e-5)
    gamma = result.certificate.gamma
    prox = example.project(result.x - gamma * example.objective.grad(result.x))
    assert np.sum((result.x - prox) ** 2) / gamma**2 <= tol * (1 + 1e-5)


def test_an_early_claim_does_not_keep_it_from_ending() -> None:
    """A step with 1/(2L) that finds the mapping larger than a long one had it asks for more of the next long ones. Their prox
    points must then be more accurate too, or no gap is ever small enough to ask again."""
    example = case("welsch simplex")
    result = cg.minimize(example.objective, example.domain, example.x0, inner="condg", tol=1e-2, max_steps=200)
    assert result.status == "converged", result.message
    setup = Setup(cg.practical(1e-2), cg.CondG(1000), 200)
    solver = build("ncgs", example.problem, setup, {})
    states = islice(cg.iterate(example.problem, solver, example.x0), result.steps + 1)
    assert max(state.demand for state in states) > 4


@pytest.mark.parametrize("seed", range(6))
def test_random_problems_end_whatever_L_is_stated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = [cg.Simplex(5), cg.L1Ball(5), cg.L2Ball(5), cg.NuclearBall((4, 3)), cg.Spectrahedron(4), cg.Fantope(4, 2)]
    problem = cg.Problem(quadratic(domain[seed], rng, 1.0), domain[seed])
    F, L = problem.objective, problem.objective.smoothness
    for stated in (1.0, 10.0, 300.0):
        for share in (1e-4, 1e-8):
            tol = share * (L * problem.domain.max_norm) ** 2
            result = cg.minimize(F, problem.domain, smoothness=stated * L, tol=tol, max_steps=5000, every=50)
            assert result.status == "converged", (stated, share, result.message)
            assert exact_mapping(problem, np.asarray(result.x), 1 / (2 * stated * L)) ** 2 <= tol * (1 + 1e-5)


def test_in_theory_it_may_adapt_too() -> None:
    """There is no eps to certify; a point that is stationary already is no reason to fail."""
    F = cg.Quadratic(np.diag([1.0, -2.0, 3.0]))
    for x0 in (np.eye(3)[1], np.array([0.5, 0.2, 0.3])):
        result = cg.minimize(F, cg.Simplex(3), x0, schedule="theory", max_steps=20, adaptive=True)
        assert result.status in ("converged", "out_of_budget") and result.x[1] == pytest.approx(1.0)


def test_who_adapts() -> None:
    problem = cg.Problem(cg.Quadratic(np.eye(3)), cg.Simplex(3))

    def adapts(schedule: Any, **options: Any) -> bool:
        return build("ncgs", problem, Setup(schedule, cg.Exact(), 5), options).adaptive

    assert adapts(cg.practical()) and not adapts(cg.theory(5)) and not adapts(cg.practical(), stretch=0.5)
    assert adapts(cg.theory(5), adaptive=True) and not adapts(cg.practical(), adaptive=False)


# ------------------------------------------------------------------------------------------------------------ L unknown


@quick
@given(drawn=problems())
def test_where_L_is_unknown_it_descends_all_the_same(drawn: Any) -> None:
    (problem, x0, inner, eps), known = drawn, drawn[0].objective
    forgetful = cg.Problem(cg.Function(known.value, known.grad, known.shape), problem.domain)
    guess = smoothness(forgetful, x0)
    states = states_of(forgetful, x0, inner, eps)
    for before, after in pairwise(states):
        assert after.L >= before.L
        assert after.certificate.gamma == 1 / (2 * after.L)
        noise = 10 * VALUE_NOISE * (abs(known.value(before.x)) + abs(known.value(after.x)))
        slope = np.linalg.norm(known.grad(before.x)) * np.linalg.norm(after.x - before.x)
        assert known.value(after.x) <= known.value(before.x) + after.certificate.gap + noise + 10 * VALUE_NOISE * slope
    assert max(2 * known.smoothness, guess) * (1 + 1e-9) >= states[-1].L


@pytest.mark.parametrize("problem", [*PLAIN, "welsch simplex", "completion nuclear"])
def test_where_L_is_unknown_it_ends_all_the_same(problem: str) -> None:
    example = case(problem)
    f = cg.Function(example.objective.value, example.objective.grad, example.objective.shape)
    result = cg.minimize(f, example.domain, example.x0, tol=1e-4, max_steps=2000, every=20)
    assert result.status == "converged" and result.warnings == ()
    gamma = result.certificate.gamma
    prox = example.project(result.x - gamma * example.objective.grad(result.x))
    assert np.sum((result.x - prox) ** 2) / gamma**2 <= 1e-4 * (1 + 1e-5)


# ------------------------------------------------------------------------------------------------------------- NCGS-VR


def epochs_of(problem: cg.Problem, x0: Any, inner: Any, count: int, seed: int) -> tuple[Any, list[Any]]:
    """(the solver, the states after the first step of each epoch, when its snapshot has been taken)"""
    solver = build("ncgs-vr", problem, Setup(cg.practical(1e-6), inner, 1000, seed), {})
    m = solver.estimator.epoch
    return solver, list(islice(cg.iterate(problem, solver, x0), 1, count * m, m))


def sums() -> list[Any]:
    cases = [pytest.param(case(name).problem, case(name).x0, cg.Corrective(60), id=name) for name in SUMS]
    for generator in ("orthonormal", "gaussian"):
        data = cg.paper_data(30, 30, 2, seed=3, generator=generator)
        problem = cg.Problem(
            cg.Completion(data.rows, data.cols, data.values, (30, 30)), cg.NuclearBall((30, 30), data.nuclear_norm)
        )
        cases.append(pytest.param(problem, problem.domain.low_rank_start(), cg.Spectral(4, 1.25), id=generator))
    return cases


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("problem", "x0", "inner"), sums())
def test_F_never_rises_from_snapshot_to_snapshot_but_at_the_safe_step(
    problem: cg.Problem, x0: Any, inner: Any, seed: int
) -> None:
    solver, states = epochs_of(problem, x0, inner, 40, seed)
    assert solver.adaptive
    F, longer = problem.objective.value, 0
    for before, after in pairwise(states):
        assert after.lam >= solver.lam * (1 - 1e-12) and after.snapshot.x is not None
        at = F(before.snapshot.x), F(after.snapshot.x)
        assert after.snapshot_fun == pytest.approx(at[1], rel=1e-9)
        if after.snapshot.x is before.snapshot.x:  # taken back
            assert after.lam < before.lam
        elif before.lam > solver.lam:
            assert at[1] <= at[0] + 1e-12 * abs(at[0]), "an epoch with a longer step was kept, and F rose"
        longer += after.lam > before.lam
    assert longer > 0, "it never adapts: it would prove nothing"
    assert norm2(states[-1].snapshot.x - x0) > 0


@pytest.mark.parametrize(
    ("size", "rank", "generator", "seed"),
    [
        *((50, 3, "gaussian", seed) for seed in range(2)),
        *((100, 4, "orthonormal", seed) for seed in range(3)),
        pytest.param(200, 5, "orthonormal", 0, marks=pytest.mark.slow),
    ],
)
def test_problem_5_does_not_stall(size: int, rank: int, generator: str, seed: int) -> None:
    problem = papers_problem(size, rank, generator, seed)
    result = cg.minimize(
        problem.objective, problem.domain, method="ncgs-vr", tol=1e-3, max_steps=1500, every=100, seed=seed
    )
    assert result.status == "converged", result.message
    measured = mapping(problem, np.asarray(result.x), 1 / (2 * problem.objective.smoothness))
    assert measured.upper <= 1e-3 * (1 + 1e-5)


def test_the_fixed_step_with_the_L_of_F_does_stall() -> None:
    """Which no theorem covers: its L is that of each term, n times as large. The theorem's own epoch and batch."""
    problem = papers_problem(100, 4, "gaussian", 0)
    m, b = cg.solvers.ncgs_vr.epoch_and_batch(problem.objective.n_terms)
    options = {"lam": 1 / (3 * problem.objective.smoothness), "epoch": m, "batch": b, "adaptive": False}
    how = {"method": "ncgs-vr", "tol": 1e-3, "max_steps": 60, "every": 10}
    fixed = cg.minimize(problem.objective, problem.domain, **how, **options)
    assert fixed.status == "out_of_budget" and fixed.certificate.upper > 10
    adapting = cg.minimize(problem.objective, problem.domain, **how)
    assert adapting.trace["fun"][-1] < 0.8 * fixed.trace["fun"].min()


# --------------------------------------------------------------------------------------------------------------- momentum


def narrow_valley() -> cg.Problem:
    """A quadratic of condition 1e6 over a box, on which plain steps take hundreds."""
    rng = np.random.default_rng(1)
    B = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    Q = B * np.geomspace(1e-6, 1.0, 40) @ B.T
    return cg.Problem(cg.Quadratic((Q + Q.T) / 2, 0.05 * rng.standard_normal(40)), cg.Box(-np.ones(40), np.ones(40)))


def test_momentum_takes_fewer_steps_and_says_so() -> None:
    problem = narrow_valley()
    first, plain = (
        cg.minimize(problem.objective, problem.domain, tol=1e-11, momentum=m, max_steps=5000) for m in (None, False)
    )
    assert first.status == plain.status == "converged" and 1.5 * first.counts["fo"] < plain.counts["fo"]
    begins = library.MOMENTUM_FROM
    assert [row.phase for row in first.trace] == ["main"] * begins + ["momentum"] * (len(first.trace) - begins)
    assert {row.phase for row in plain.trace} == {"main"}
    falls = [row.fun for row in first.trace]
    assert all(after <= before + 1e-12 * abs(before) for before, after in pairwise(falls)), (
        "it restarts where F would rise"
    )


def test_the_gap_and_the_mapping_of_steps_with_momentum_are_measured() -> None:
    """At steps with growing distance, as before momentum begins."""
    problem = narrow_valley()
    result = cg.minimize(problem.objective, problem.domain, stop=cg.Gap(1e-4) | cg.Steps(1500))
    assert result.status == "converged" and result.steps > library.MOMENTUM_FROM
    run = cg.minimize(problem.objective, problem.domain, measure=True, tol=1e-30, max_steps=200)
    measured = [row.k for row in run.trace if row.k > library.MOMENTUM_FROM and np.isfinite(row.mapping)]
    assert 10 < len(measured) < 30


def test_momentum_restarts_where_F_would_rise() -> None:
    """Beyond the minimum along the last step F rises: the step is taken again from x, without momentum."""
    problem = cg.Problem(cg.Quadratic(np.eye(3)), cg.Box(-np.ones(3), np.ones(3)))
    solver = library.NCGS(cg.practical(1e-12), cg.Exact(), adaptive=True, momentum=True)
    x = np.array([1e-3, 0.0, 0.0])
    far = {"previous": np.array([1.0, 0.0, 0.0]), "since_restart": 50, "k": 60, "local": 1.0}
    state = replace(solver.init(problem, x), **far)
    assert problem.objective.value(library.theta_md(problem.domain, state)) > problem.objective.value(x)
    new = solver.step(problem, state)
    assert new.descent.x is x and new.since_restart == 1 and new.fun < problem.objective.value(x)


@pytest.mark.parametrize("options", [{"inner": "corrective"}, {"adaptive": False}, {"schedule": cg.theory(10)}])
def test_momentum_where_it_is_not_possible(options: dict[str, Any]) -> None:
    problem = narrow_valley()
    with pytest.raises(TypeError, match="momentum=True needs adaptive steps"):
        cg.minimize(problem.objective, problem.domain, momentum=True, **options)


def test_a_run_with_momentum_is_resumed_to_the_bit(tmp_path: Any) -> None:
    problem, path = narrow_valley(), tmp_path / "c"
    asked = {"tol": 1e-11, "checkpoint": path}
    whole = cg.minimize(problem.objective, problem.domain, tol=1e-11)
    cg.minimize(problem.objective, problem.domain, max_steps=library.MOMENTUM_FROM + 5, **asked)
    resumed = cg.minimize(problem.objective, problem.domain, resume=True, **asked)
    assert resumed.x.tobytes() == whole.x.tobytes() and resumed.counts == whole.counts
    assert [row.phase for row in resumed.trace] == [row.phase for row in whole.trace]
