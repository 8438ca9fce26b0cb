"""A run on low-rank points and the same run on arrays walk together, iterate by iterate, for every method that there is."""

from __future__ import annotations

from functools import cache
from itertools import islice

import numba
import numpy as np
import pytest

import condgrad as cg
from condgrad import kernels
from condgrad.driver import mapping
from condgrad.points import LowRank
from condgrad.solvers import METHODS, Setup, build

STEPS = 12
FEWER = {"stochastic-ncgs": 8}
"""Steps of a method that multiplies what two runs are apart by ten or so in each."""
TOGETHER = 1e-8
"""The distance at which they walk, relative to the set's size."""
SHAPES = {"small": (30, 20), "wide": (20, 30), "beyond a full SVD": (80, 70)}
LOSSES = {"squared": cg.Squared(), "welsch": cg.Welsch(2.0)}
SCHEDULES = {"practical": cg.practical(1e-2), "tight": cg.practical(1e-6), "theory": cg.theory(STEPS)}
SPECTRAL = {"spectral": cg.Spectral(), "spectral with growth": cg.Spectral(1000, growth=1.25)}
SLIDING = [name for name, method in METHODS.items() if method.slides]


@cache
def problem(shape, loss, share=0.4, symmetric=False, seed=2):
    rng, (m, n) = np.random.default_rng(seed), shape
    Y = rng.standard_normal((m, 4)) @ rng.standard_normal((n, 4)).T / 2 + 0.1 * rng.standard_normal(shape)
    seen = rng.random(shape) < share
    if symmetric:
        Y, seen = Y @ Y.T / n, seen | seen.T
        domain = cg.Spectrahedron(n, 0.4 * float(np.trace(Y)))
    else:
        domain = cg.NuclearBall(shape, 0.3 * float(np.linalg.norm(Y, "nuc")))
    return cg.Problem(cg.Completion.from_dense(Y, seen, loss), domain)


def walk(task, name, x0, inner=SPECTRAL["spectral"], schedule=SCHEDULES["practical"], steps=STEPS, **options):
    solver = build(name, task, Setup(schedule, inner, steps, 0), options)
    return list(islice(cg.iterate(task, solver, x0), steps + 1))


def together(task, name, *args, x0=None, steps=None, apart=TOGETHER, **options):
    """Both runs, after as many steps as asked for: they are where the other is."""
    steps = steps or FEWER.get(name, STEPS)
    x0 = LowRank.zeros(task.domain.shape) if x0 is None else x0
    dense = walk(task, name, np.asarray(x0), *args, steps=steps, **options)
    lean = walk(task, name, x0, *args, steps=steps, **options)
    assert all(isinstance(state.x, np.ndarray) for state in dense)
    assert all(isinstance(state.x, LowRank) for state in lean)
    size = task.domain.max_norm
    assert np.linalg.norm(dense[-1].x - dense[0].x) > 1e-3 * size, "it does not move: it would prove nothing"
    for one, other in zip(dense, lean, strict=True):
        error = np.linalg.norm(one.x - np.asarray(other.x)) / size
        assert error <= apart, f"{error:.2g} apart after {one.k} steps"
    return dense, lean


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("name", METHODS)
def test_every_method(name, loss, shape):
    dense, lean = together(problem(shape, loss), name)
    for one, other in zip(dense[1:], lean[1:], strict=True):
        if one.certificate is not None:
            size = 1 + one.certificate.norm**2
            assert abs(one.certificate.norm**2 - other.certificate.norm**2) <= 1e-6 * size
            gap, size = other.certificate.gap, 1 + one.certificate.gap
            assert (
                one.certificate.gap == gap or abs(one.certificate.gap - gap) <= 1e-6 * size
            )  # both are Inf if not measured


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
@pytest.mark.parametrize("inner", SPECTRAL.values(), ids=SPECTRAL.keys())
@pytest.mark.parametrize("name", SLIDING)
def test_every_schedule_of_the_spectral_solver(name, inner, schedule):
    for shape in ((30, 20), (80, 70)):
        together(problem(shape, LOSSES["squared"]), name, inner, schedule)


@pytest.mark.parametrize("inner", [cg.CondG(12), cg.Exact()], ids=["condg", "exact"])
@pytest.mark.parametrize("name", ["ncgs", "ncgs-ii", "ncgs-vr"])
def test_other_inner_solvers(name, inner):
    together(problem((30, 20), LOSSES["welsch"]), name, inner)


def test_condg_beyond_a_full_svd():
    together(problem((80, 70), LOSSES["welsch"]), "ncgs", cg.CondG(6))


def test_corrective_agrees_until_rounding_decides():
    """Its atoms near a tie are as far apart as the set is wide: from 1e-15 apart, two runs on arrays part just as these do."""
    task = problem((80, 70), LOSSES["squared"])
    together(task, "ncgs", cg.Corrective(30), steps=3)


@pytest.mark.parametrize("rule", cg.solvers.RULES)
def test_every_rule_of_frank_wolfe(rule):
    task = problem((30, 20), LOSSES["welsch"])
    x0 = a_vertex() if rule == "bounded" else LowRank.zeros((30, 20))
    # a line search compares values, and these are flat where they are smallest: it finds half of the digits
    together(
        task, "frank-wolfe", rule=rule, x0=x0, apart=1e-6 if rule in ("line-search", "golden-section") else TOGETHER
    )


def a_vertex():
    """The bounded rule's steps are short: from 0 it would hardly move."""
    task = problem((30, 20), LOSSES["welsch"])
    return task.domain.lmo(task.objective.grad(LowRank.zeros((30, 20))))


@pytest.mark.parametrize("options", [{"stretch": 1.0}, {"adaptive": False}, {"adaptive": True}], ids=str)
@pytest.mark.parametrize("shape", [(30, 20), (80, 70)])
def test_ncgs_with_its_options(options, shape):
    together(problem(shape, LOSSES["welsch"]), "ncgs", **options)


@pytest.mark.parametrize("n", [24, 70])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("inner", [*SPECTRAL.values(), cg.Exact()], ids=[*SPECTRAL, "exact"])
def test_on_the_spectrahedron(n, loss, inner):
    task = problem((n, n), loss, symmetric=True)
    _, lean = together(task, "ncgs", inner, x0=task.domain.low_rank_start())
    assert all(task.domain.contains(state.x) for state in lean)


def test_with_weights_and_biases():
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((30, 20)) < 0.5)
    values, weights = 3.0 + rng.standard_normal(len(rows)), rng.uniform(0.1, 2.0, len(rows))
    objective = cg.Completion(rows, cols, values, (30, 20), weights=weights, biases="both")
    task = cg.Problem(objective, cg.NuclearBall((30, 20), 5.0))
    for name in ("ncgs", "ncgs-vr", "frank-wolfe"):
        together(task, name)


def test_minimize_agrees_too():
    """From the default starts, with a warm start: through the front door."""
    task = problem((80, 70), LOSSES["welsch"])
    results = [
        cg.minimize(task.objective, task.domain, x0, warm_start=5, max_steps=STEPS, tol=1e-8, polish=False)
        for x0 in (None, np.zeros((80, 70)))
    ]
    assert isinstance(results[0].x, LowRank) and isinstance(results[1].x, np.ndarray)
    assert np.linalg.norm(np.asarray(results[0].x) - results[1].x) <= TOGETHER * task.domain.radius
    assert results[0].fun == pytest.approx(results[1].fun, rel=1e-9)
    assert results[0].counts == results[1].counts


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
def test_one_and_two_threads_give_the_same_bits():
    rng, (m, n) = np.random.default_rng(0), (900, 800)
    rows, cols = np.nonzero(rng.random((m, n)) < 0.06)
    U, V = rng.standard_normal((m, 3)), rng.standard_normal((n, 3))
    values = np.sum(U[rows] * V[cols], axis=1) + 0.1 * rng.standard_normal(len(rows))
    assert 8 * len(values) >= kernels.MIN_PARALLEL_WORK, "the loops would not be shared out"
    task = cg.Problem(cg.Completion(rows, cols, values, (m, n)), cg.NuclearBall((m, n), 0.5 * 3 * np.sqrt(m * n)))
    before, runs = numba.get_num_threads(), []
    try:
        for threads in (1, 2):
            numba.set_num_threads(threads)
            runs.append(walk(task, "ncgs", LowRank.zeros((m, n)), SPECTRAL["spectral with growth"], steps=6))
    finally:
        numba.set_num_threads(before)
    assert runs[0][-1].x.rank > 0
    for one, two in zip(*runs, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one.x.factors(), two.x.factors(), strict=True))


@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe", "ncgs-vr", "svfw"])
def test_measured_mappings_are_those_of_the_arrays(method):
    """Small matrices are written out to be measured, and the answer is of low rank all the same."""
    task = problem(SHAPES["beyond a full SVD"], LOSSES["welsch"])
    keywords = {"method": method, "stop": cg.Steps(6), "measure": True, "output": "best", "progress": False}
    result = cg.minimize(task.objective, task.domain, **keywords)
    assert isinstance(result.x, LowRank) and result.certificate is not None
    gamma = 1 / (2 * task.objective.smoothness)
    exact = mapping(task, np.asarray(result.x), gamma)
    assert np.isclose(np.nanmin(result.trace["mapping"]), exact.upper, rtol=1e-6)
    rough = mapping(task, result.x, gamma)
    assert rough.lower * (1 - 1e-9) <= exact.upper <= rough.upper * (1 + 1e-9)
    assert np.allclose(result.trace["mapping"], result.trace["mapping_lower"], rtol=1e-10, atol=1e-14, equal_nan=True)
