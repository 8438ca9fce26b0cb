"""The theorems' bounds, on problems whose constants and minimum are known; mappings are measured exactly, by projection.

Constants in these proofs are generous, so each bound is also shown to say something: where a bound shrinks with the length of
the run, the starting point itself violates it for the longest run, so a method that does not move would be found out.
"""

from __future__ import annotations

from itertools import count, islice, pairwise
from math import ceil, sqrt
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from scipy.stats import t as student
from tests.minima import (
    NONCONVEX,
    Known,
    box,
    completion,
    concave_simplex,
    l2_ball,
    least_on_box,
)

import condgrad as cg
from condgrad.checks import BadOracle
from condgrad.solvers import NCGS, NCGSII, Setup, build
from condgrad.solvers.ncgs_vr import epoch_and_batch, step_size
from condgrad.solvers.stochastic_frank_wolfe import random_iterate
from condgrad.solvers.stochastic_ncgs import stopping_index


@pytest.mark.parametrize("make", NONCONVEX)
def test_the_minimum_is_the_minimum(make: Any) -> None:
    """The premise of this page: no random point of the set is better, and the problems are not convex."""
    known = make()
    rng = np.random.default_rng(0)
    assert known.domain.contains(known.argmin) and known.domain.contains(known.x0)
    least = known.objective.value(known.argmin)
    scales = 10.0 ** rng.uniform(-2, 1, 500)
    points = [known.domain.project(known.domain.start() + s * rng.standard_normal(known.domain.shape)) for s in scales]
    assert min(map(known.objective.value, points)) >= least - 1e-12
    assert known.objective.lower_smoothness > 0 and known.h0 > 0


# ------------------------------------------------------------------------------------------------- Theorem 1, batched

LENGTHS = (1, 2, 7, 60)


@pytest.mark.parametrize("stretch", [0.0, 1.0])
@pytest.mark.parametrize("make", NONCONVEX)
def test_theorem_1_option_i(make: Any, stretch: float) -> None:
    """min_k |g(theta_{k-1}, grad F(theta_md_k), lambda_k)|^2 <= (12 L (F(theta_0) - F*) + 16 L) / N."""
    known = make()
    L = known.objective.smoothness
    for N in LENGTHS:
        states = known.states(NCGS(cg.theory(N), cg.CondG(), stretch), N)
        measured = []
        for k, (before, after) in enumerate(pairwise(states), start=1):
            alpha, beta = 2 / (k + 1), 1 / (2 * L)
            theta_md = (1 - alpha) * before.theta_ag + alpha * before.x
            assert np.allclose(theta_md, after.descent.x, rtol=0, atol=1e-12)
            measured.append(known.mapping2(before.x, known.objective.grad(theta_md), (1 + stretch * alpha / 4) * beta))
            assert known.domain.contains(after.x)
        assert min(measured) <= (12 * L * known.h0 + 16 * L) / N
    # on the smallest problem, the completion, 16 L/N alone is too much to be violated by anyone
    assert measured[0] > (0 if make is completion else (12 * L * known.h0 + 16 * L) / LENGTHS[-1])


@pytest.mark.parametrize("make", NONCONVEX)
def test_theorem_1_option_ii(make: Any) -> None:
    """min_k |g(theta_md_k, grad F(theta_md_k), beta_k)|^2 <= the bound below."""
    known = make()
    for N in LENGTHS:
        states = known.states(NCGSII(cg.theory(N), cg.CondG()), N)
        theta_md = [state.descent.x for state in states[1:]]
        measured = [known.true_mapping2(x, 1 / (2 * known.objective.smoothness)) for x in theta_md]
        assert min(measured) <= option_ii_bound(known, N)
    assert measured[0] > 0


def test_theorem_1_option_ii_finds_out_who_stands_still() -> None:
    """With l small against L the bound falls below the mapping at the start."""
    rng = np.random.default_rng(14)
    q, b = np.array([40.0, 25.0, 30.0, -0.2]), 20 * rng.standard_normal(4)
    lower, upper = -np.ones(4), np.ones(4)
    known = Known(cg.Quadratic(np.diag(q), b), cg.Box(lower, upper), upper, least_on_box(q, b, lower, upper))
    N = 120
    states = known.states(NCGSII(cg.theory(N), cg.CondG()), N)
    measured = [known.true_mapping2(state.descent.x, 1 / 80) for state in states[1:]]
    assert min(measured) <= option_ii_bound(known, N) < measured[0]


def option_ii_bound(known: Known, N: int, outside: float = 48.0, inexact: float = 2.0) -> float:
    """48 L (4 L |theta_0 - theta*|^2 / (N^2 (N+1)) + l (|theta*|^2 + 2 M^2)/N + 2/N)."""
    L, l, M = known.objective.smoothness, known.objective.lower_smoothness, known.domain.max_norm
    start = 4 * L * np.sum((known.x0 - known.argmin) ** 2) / (N**2 * (N + 1))
    return outside * L * (start + l * (np.sum(known.argmin**2) + 2 * M**2) / N + inexact / N)


# ---------------------------------------------------------------------------------------------- Theorem 2, stochastic


class Noisy(NamedTuple):
    known: Known
    sigma: float

    def expectation(self, seen: list[Any]) -> cg.FunctionExpectation:
        """The gradient with normal noise of total variance sigma^2; each batch gradient is noted down in ``seen``."""
        F, d = self.known.objective, len(self.known.x0)

        def term_grads(x: np.ndarray, batch: np.ndarray) -> np.ndarray:
            rows = F.grad(x) + batch
            seen.append((x, rows.mean(axis=0)))
            return rows

        def draw(size: int, rng: np.random.Generator) -> np.ndarray:
            return self.sigma / sqrt(d) * rng.standard_normal((size, d))

        return cg.FunctionExpectation(draw, term_grads, (d,), F.smoothness, F.lower_smoothness)


def stochastic_ncgs(expectation: Any, known: Known, N: int, seed: int) -> cg.Result:
    """Algorithm 3 to the letter: the theorem's schedule, condg, R random."""
    options = {"method": "stochastic-ncgs", "schedule": cg.theory(N), "inner": cg.CondG()}
    return cg.minimize(expectation, known.domain, known.x0, seed=seed, validate=1, **options)


def mean_and_upper_99(sample: list[float]) -> tuple[float, float]:
    """The mean, and the end of its one-sided 99 % confidence interval by Student's t."""
    n = len(sample)
    return float(np.mean(sample)), float(np.mean(sample) + student.ppf(0.99, n - 1) * np.std(sample, ddof=1) / sqrt(n))


@pytest.mark.parametrize("make", [concave_simplex, box, l2_ball])
@pytest.mark.parametrize("N", [3, 10])
def test_theorem_2(make: Any, N: int) -> None:
    """E |g(theta_md_R, G_R, beta)|^2 <= 192 L (.. + 1/N + 3 sigma^2 / (2 L N)), and the same with the true gradient.

    The mean over 48 seeds, each with its own R and noise; one-sided confidence 99 % that the expectation is below the bound.
    """
    known, sigma = make(), 4.0
    L = known.objective.smoothness
    with_batch, with_true = [], []
    for seed in range(48):
        seen: list[Any] = []
        expectation = Noisy(known, sigma).expectation(seen)
        result = stochastic_ncgs(expectation, known, N, seed)
        assert result.status == "finished" and result.counts["sfo"] == result.steps * (result.steps + 1) // 2
        theta_md, G = seen[-1]
        assert np.array_equal(theta_md, result.x)
        with_batch.append(known.mapping2(theta_md, G, 1 / (2 * L)))
        with_true.append(known.true_mapping2(theta_md, 1 / (2 * L)))
    bound = option_ii_bound(known, N, outside=192, inexact=1 + 3 * sigma**2 / (2 * L))
    for sample in (with_batch, with_true):
        mean, upper = mean_and_upper_99(sample)
        assert 0 < mean < upper <= bound


def test_theorem_2_finds_out_who_stands_still() -> None:
    """A convex problem and a long run: the bound is below the mapping at the start. 40 seeds, one-sided confidence 99 %."""
    q, b = np.array([40.0, 30.0, 20.0]), np.array([60.0, -50.0, 30.0])
    lower, upper = -np.ones(3), np.ones(3)
    known = Known(cg.Quadratic(np.diag(q), b), cg.Box(lower, upper), upper, least_on_box(q, b, lower, upper))
    N, sigma, sample = 20, 1.0, []
    for seed in range(40):
        expectation = Noisy(known, sigma).expectation([])
        x = stochastic_ncgs(expectation, known, N, seed).x
        sample.append(known.true_mapping2(x, 1 / 80))
    bound = option_ii_bound(known, N, outside=192, inexact=1 + 3 * sigma**2 / 80)
    assert mean_and_upper_99(sample)[1] <= bound < known.true_mapping2(known.x0, 1 / 80)


def test_the_stopping_index_has_its_law() -> None:
    """Prob{R = k} = k(k+1) / sum_j j(j+1): chi-square on 20,000 draws, level 1e-3 (the seed is fixed)."""
    N, rng = 12, np.random.default_rng(15)
    k = np.arange(1, N + 1)
    drawn = np.bincount([stopping_index(N, rng) for _ in range(20_000)], minlength=N + 1)
    p = k * (k + 1) / np.sum(k * (k + 1))
    assert drawn[0] == 0 and len(drawn) == N + 1
    assert chisquare(drawn[1:], 20_000 * p).pvalue > 1e-3
    assert chisquare(drawn[1:], np.full(N, 20_000 / N)).pvalue < 1e-100


def test_the_random_iterate_is_uniform() -> None:
    """Over theta_0 .. theta_{T-1}: chi-square on 20,000 draws, level 1e-3 (the seed is fixed)."""
    rng = np.random.default_rng(16)
    drawn = np.bincount([random_iterate(9, rng) for _ in range(20_000)])
    assert len(drawn) == 9 and chisquare(drawn).pvalue > 1e-3


# --------------------------------------------------------------------------------------------- Theorem 3, finite sums


def sum_on_box(n: int, in_common: float = 0.0) -> Known:
    """Diagonal, indefinite terms of different sizes over a box; with something in common, the mean is of their size."""
    rng = np.random.default_rng(n)
    q, b = 5 * rng.standard_normal((n, 4)), 10 * rng.standard_normal((n, 4))
    q, b = q + in_common * np.array([1.0, 1.0, 0.7, -0.2]), b + in_common * np.array([2.0, -2.0, 1.0, 1.0])
    mean_q, mean_b = q.mean(axis=0), b.mean(axis=0)
    lower, upper = -np.ones(4), 2 * np.ones(4)
    objective = cg.FunctionSum(
        lambda x: float(np.mean((q * x**2 / 2 + b * x).sum(axis=1))),
        lambda x, batch: q[batch] * x + b[batch],
        n,
        (4,),
        smoothness=float(np.abs(mean_q).max()),
        term_smoothness=float(np.abs(q).max()),
    )
    x_max = least_on_box(-mean_q, -mean_b, lower, upper)
    return Known(objective, cg.Box(lower, upper), x_max, least_on_box(mean_q, mean_b, lower, upper))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (8, 2), (27, 3), (64, 4)])
def test_theorem_3(n: int, m: int) -> None:
    """E |g(theta_a, grad F(theta_a), lambda)|^2 <= 18 L (F(theta_0) - F* + 1) / T, L of each term, b = m^2, T a multiple of m.

    The mean over 40 seeds, of a uniformly random iterate each; one-sided confidence 99 % that the expectation is below the bound.
    """
    known = sum_on_box(n)
    L = known.objective.term_smoothness
    lam, T = 1 / (3 * L), 12 * m
    solver = build("ncgs-vr", known.problem, Setup(cg.theory(T), cg.CondG(), T), {})
    assert (solver.lam, solver.estimator.epoch, solver.estimator.batch) == (lam, m, m * m)

    sample = []
    for seed in range(40):
        result = cg.minimize(
            known.objective,
            known.domain,
            known.x0,
            method="ncgs-vr",
            schedule=cg.theory(T),
            inner=cg.CondG(),
            seed=seed,
        )
        assert result.status == "finished" and 0 <= result.steps < T
        sample.append(known.true_mapping2(result.x, lam))
    mean, upper = mean_and_upper_99(sample)
    assert 0 < mean < upper <= 18 * L * (known.h0 + 1) / T


def test_theorem_3_finds_out_who_stands_still() -> None:
    """After a long run the bound is below the mapping at the start; here the mean is over all iterates, for 3 seeds."""
    known = sum_on_box(27, in_common=20.0)
    L, T = known.objective.term_smoothness, 90
    means = []
    for seed in range(3):
        setup = Setup(cg.theory(T), cg.CondG(), T, seed)
        states = known.states(build("ncgs-vr", known.problem, setup, {}), T - 1)
        means.append(np.mean([known.true_mapping2(state.x, 1 / (3 * L)) for state in states]))
    bound = 18 * L * (known.h0 + 1) / T
    assert 0 < max(means) <= bound < known.true_mapping2(known.x0, 1 / (3 * L))


# ------------------------------------------------------------------------- recursive estimators and momentum, derived here


def averages(known: Known, method: str, T: int, criterion: Any, seeds: int = 6) -> list[float]:
    """The mean of a criterion over all iterates x_0 .. x_{T-1}, for each seed. Prox points are exact, to save time."""
    means = []
    for seed in range(seeds):
        setup = Setup(cg.theory(T), cg.Exact(), T, seed)
        options = {"initial_gap": known.h0} if "initial_gap" in cg.METHODS[method].options else {}
        states = known.states(build(method, known.problem, setup, options), T - 1)
        means.append(float(np.mean([criterion(state.x) for state in states])))
    return means


def frank_wolfe_gap(known: Known, x: np.ndarray) -> float:
    g = known.objective.grad(x)
    return float(g @ (x - known.domain.lmo(g)))


def noise(known: Known) -> float:
    """The largest variance of a term's gradient on the box: convex in every coordinate, so attained at its ends."""
    n, ends = known.objective.n_terms, (known.domain.lower, known.domain.upper)
    rows = [np.asarray(known.objective.term_rows(x, np.arange(n))) for x in ends]
    return float(np.max([r.var(axis=0) for r in rows], axis=0).sum())


@pytest.mark.parametrize("n", [1, 9, 27])
def test_the_bound_of_ncgs_spider(n: int) -> None:
    """E |g(theta_a, grad F(theta_a), lambda)|^2 <= 9 K (4 (F(theta_0) - F*) + 5)/T; at the start it does not hold."""
    known, T = sum_on_box(n, in_common=20.0), 90
    K = known.objective.term_smoothness
    solver = build("ncgs-spider", known.problem, Setup(cg.theory(T), cg.CondG(), T), {})
    assert (solver.lam, solver.estimator.epoch) == (1 / (3 * K), solver.estimator.batch)
    mean, upper = mean_and_upper_99(averages(known, "ncgs-spider", T, lambda x: known.true_mapping2(x, solver.lam)))
    assert mean <= upper <= 9 * K * (4 * known.h0 + 5) / T
    assert known.true_mapping2(known.x0, solver.lam) > 9 * K * (4 * known.h0 + 5) / T


def test_the_bound_of_momentum_ncgs() -> None:
    known, T = sum_on_box(27, in_common=20.0), 400
    K, sigma2 = known.objective.term_smoothness, noise(known)
    lam = T ** (-1 / 3) / (4 * known.objective.term_smoothness)
    mean, upper = mean_and_upper_99(averages(known, "momentum-ncgs", T, lambda x: known.true_mapping2(x, lam)))
    bound = (43.2 * K * known.h0 + 55.2 * K + 25.2 * sigma2) * T ** (-2 / 3)
    assert mean <= upper <= bound < known.true_mapping2(known.x0, lam)


def recursive_bound(known: Known, T: int) -> float:
    F = known.objective
    return 2 * known.domain.diameter * sqrt((F.term_smoothness + F.smoothness / 2) * known.h0 / T)


def table_bound(known: Known, T: int) -> float:
    F, D, n = known.objective, known.domain.diameter, known.objective.n_terms
    rows = np.asarray(F.term_rows(known.x0, np.arange(n)))
    first = sqrt(
        rows.var(axis=0).sum() + 2 / n * float((rows**2).sum()) / n
    )  # at most: |e|^2 + (2/n) Y with a table of 0
    return 2 * D * sqrt((sqrt(24) * F.term_smoothness + F.smoothness / 2) * known.h0 / T) + 8 * sqrt(n) * D * first / T


def momentum_bound(known: Known, T: int) -> float:
    Lh = known.objective.smoothness * known.h0
    return known.domain.diameter * (1.5 * sqrt(Lh) + sqrt(2 * noise(known) + Lh)) * T ** (-1 / 4)


def one_sample_bound(known: Known, T: int) -> float:
    Kh = known.objective.term_smoothness * known.h0
    return known.domain.diameter * (1.5 * sqrt(Kh) + sqrt(3 * noise(known) + 2 * Kh)) * T ** (-1 / 3)


def transport_bound(known: Known, T: int) -> float:
    """The terms are quadratic: M = 0."""
    D, L = known.domain.diameter, known.objective.smoothness
    tau = min(1.0, sqrt(known.h0 / (L * D**2)))
    return (known.h0 / tau + 2 * D * sqrt(noise(known)) + L * D**2 * tau / 2) * T ** (-2 / 7)


def accelerated_bound(known: Known, T: int) -> float:
    F, D, h0 = known.objective, known.domain.diameter, known.h0
    C = 1.35 * F.term_smoothness + 0.92 * F.smoothness
    assert sqrt(h0 / (C * D**2 * T)) <= 2 / 3
    return 2 * D * sqrt(C * h0 / T) + 1.26 * D * steepest(known) / T


def accelerated_storm_bound(known: Known, T: int) -> float:
    Kh, D = known.objective.term_smoothness * known.h0, known.domain.diameter
    first = D * (1.92 * sqrt(Kh) + sqrt(3 * noise(known) + 3.7 * Kh)) * T ** (-1 / 3)
    return first + 1.26 * D * steepest(known) / T


@pytest.mark.parametrize(
    ("method", "bound"),
    [
        ("acc-szofw", accelerated_bound),
        ("acc-szofw-star", accelerated_storm_bound),
        ("igt-sfw", transport_bound),
        ("spider-fw", recursive_bound),
        ("sarah-fw", recursive_bound),
        ("zero-sarah-fw", table_bound),
        ("momentum-sfw", momentum_bound),
        ("one-sample-sfw", one_sample_bound),
    ],
)
def test_the_bounds_of_frank_wolfe_with_recursive_estimates_and_momentum(method: str, bound: Any) -> None:
    known, T = sum_on_box(27, in_common=20.0), 400
    mean, upper = mean_and_upper_99(averages(known, method, T, lambda x: frank_wolfe_gap(known, x)))
    assert mean <= upper <= bound(known, T)
    assert frank_wolfe_gap(known, known.x0) > 2 * mean, "a method that does not move would be found out"


@pytest.mark.parametrize("p", [1.3, 1.6, 2.0])
def test_the_bound_of_clipped_sfw_where_the_variance_is_infinite(p: float) -> None:
    """Pareto noise with the tail index p + 0.1, so that its p-th moment is finite and, for p < 1.9, its variance is not."""
    known, T, index = sum_on_box(1, in_common=20.0), 400, p + 0.1
    F, D = known.objective, known.domain.diameter
    sigma = (index / (index - p)) ** (1 / p)  # E R^p = index/(index - p) for a Pareto length R >= 1
    q = 1 / (3 * p - 2)
    level = max(sigma, 2 * steepest(known) * T**-q)

    def draw(size: int, rng: np.random.Generator) -> np.ndarray:
        direction = rng.standard_normal((size, 4))
        length = rng.random(size) ** (-1 / index)
        return direction / np.linalg.norm(direction, axis=1)[:, None] * length[:, None]

    noisy = cg.FunctionExpectation(draw, lambda x, batch: F.grad(x) + batch, (4,), F.smoothness)
    problem, options = cg.Problem(noisy, known.domain), {"level": level, "tail": p, "initial_gap": known.h0}
    means = []
    for seed in range(6):
        solver = build("clipped-sfw", problem, Setup(cg.theory(T), cg.CondG(), T, seed), options)
        walk = cg.iterate(problem, solver, known.x0)
        means.append(float(np.mean([frank_wolfe_gap(known, next(walk).x) for _ in range(T)])))
    mean, upper = mean_and_upper_99(means)
    assert mean <= upper <= D * (2.5 * sqrt(F.smoothness * known.h0) + 4 * level) * T ** (-(p - 1) * q)
    assert frank_wolfe_gap(known, known.x0) > 2 * mean, "a method that does not move would be found out"


def steepest(known: Known) -> float:
    """The largest norm of a gradient."""
    return max(float(np.linalg.norm(known.objective.grad(x))) for x in corners(known))


def corners(known: Known) -> list[np.ndarray]:
    """The corners of the box: a norm of an affine function is largest at one of them."""
    choice = np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1).T
    return [known.domain.lower + c * (known.domain.upper - known.domain.lower) for c in choice]


# --------------------------------------------------------------------- SVFW and SAGAFW (Reddi et al. 2016), in theory


@pytest.mark.parametrize("method", ["svfw", "sagafw", "svfw-s", "sagafw-s"])
def test_the_step_of_a_variance_reduced_frank_wolfe_is_for_the_smoothness_of_each_term(method: str) -> None:
    """t = sqrt(h_0 / (T L D^2)) with L of each term in theory; with F's own in practice. Certificates keep F's 1/(2L)."""
    known, T = sum_on_box(27), 36
    F, D = known.objective, known.domain.diameter
    assert F.term_smoothness > 2 * F.smoothness, "or the two could not be told apart"
    for schedule, L in ((cg.theory(T), F.term_smoothness), (cg.practical(), F.smoothness)):
        solver = build(method, known.problem, Setup(schedule, cg.CondG(), T), {"initial_gap": 0.5})
        start = solver.init(known.problem, known.x0)
        assert start.scale == pytest.approx(sqrt(0.5 / (L * D**2)))
        assert F.smoothness == start.L


@pytest.mark.parametrize("method", ["svfw", "sagafw"])
def test_svfw_and_sagafw_in_theory_need_the_smoothness_of_each_term(method: str) -> None:
    unknown = cg.FunctionSum(
        lambda x: 0.5 * x @ x, lambda x, batch: np.tile(x, (len(batch), 1)), 8, (3,), smoothness=1.0
    )
    with pytest.raises(
        ValueError, match=r"needs a smoothness of every term, and FunctionSum has none: give it term_smo"
    ):
        cg.minimize(unknown, cg.Simplex(3), method=method, schedule="theory")
    assert cg.minimize(unknown, cg.Simplex(3), method=method, max_steps=2).steps <= 2


@settings(max_examples=500, deadline=None, derandomize=True)
@given(
    n=st.integers(1, 5000),
    L=st.floats(1e-6, 1e6),
    ratio=st.floats(1.0, 1e3),
    more=st.floats(1.0, 1e3),
    theory=st.booleans(),
)
def test_the_step_of_ncgs_vr_meets_the_condition_of_its_proof(
    n: int, L: float, ratio: float, more: float, theory: bool
) -> None:
    """4 lambda^2 K^2 m^2 / b + lambda L - 1 <= -2/9 for K >= L: what the theorem has, and what the practical step keeps."""
    K = ratio * L
    objective = SimpleNamespace(smoothness=L, mean_square_smoothness=K, term_smoothness=more * K)
    m, b = epoch_and_batch(n)
    lam = step_size(objective, cg.theory(10) if theory else cg.practical(), m, b)
    assert lam > 0 and b <= max(n, 1)
    assert 4 * lam**2 * K**2 * m**2 / b + lam * L - 1 <= -2 / 9 + 1e-9
    assert lam * (1 - 1e-12) <= 1 / (3 * L) and lam * (1 + 1e-6) >= 1 / (3 * more * K)


def test_epoch_and_batch_for_every_n() -> None:
    for n in range(1, 5001):
        m, b = epoch_and_batch(n)
        assert 1 <= m * m <= b <= n
        assert m == round(n ** (1 / 3)) if round(n ** (1 / 3)) ** 3 == n else m**3 < n < (m + 1) ** 3


# ------------------------------------------------------------------------------------------ sliding for convex functions


def convex_sum(n: int, strong: bool) -> tuple[cg.LinearModel, cg.L1Ball, float, float]:
    """A least-squares problem over an l1 ball whose minimum is on its boundary, its minimum, and its strong convexity."""
    rng, d = np.random.default_rng(n), 4
    A = rng.standard_normal((n, d)) if strong else rng.standard_normal((n, 2)) @ rng.standard_normal((2, d))
    objective, domain = cg.LinearModel(A, A @ [2.0, -2.0, 1.0, 0.0], cg.Squared()), cg.L1Ball(d, 1.0)
    best = cg.minimize(objective, domain, method="projected-gradient", tol=1e-12, max_steps=1000)
    return objective, domain, best.fun, float(np.linalg.eigvalsh(A.T @ A / n)[0]) if strong else 0.0


@pytest.mark.parametrize("strong", [False, True])
def test_the_bound_of_storc(strong: bool) -> None:
    """E F(y) - F* <= L D^2 / 2^(t+1) after phase t, with the theorem's full gradients and with small batches."""
    objective, domain, least, alpha = convex_sum(200, strong)
    L, D = objective.term_smoothness, domain.diameter
    length = (lambda t: ceil(sqrt(32 * L / alpha))) if strong else (lambda t: ceil(2 ** (t / 2 + 2)))
    ends = np.cumsum([length(t) for t in range(1, 6 if strong else 9)])
    for batch in (None, 40):
        options = {"strong_convexity": alpha, "batch": batch}
        runs = []
        for seed in range(3 if batch else 1):
            solver = build("storc", cg.Problem(objective, domain), Setup(cg.theory(1), cg.Exact(), 1, seed), options)
            states = list(islice(cg.iterate(cg.Problem(objective, domain), solver, domain.start()), int(ends[-1]) + 1))
            assert [states[k].restart for k in ends] == list(range(1, len(ends) + 1))
            runs.append([objective.value(states[k].x) - least for k in ends])
        for t, mean in enumerate(np.mean(runs, axis=0), 1):
            assert mean <= L * D**2 / 2 ** (t + 1)
    assert L * D**2 / 2 ** (len(ends) + 1) < objective.value(domain.start()) - least, "the bound says something"


def test_the_batches_of_storc_in_theory() -> None:
    """On the sums of these tests they are larger than n."""
    objective, domain, _, _ = convex_sum(50, strong=False)
    problem, N, G, L, D = cg.Problem(objective, domain), 6, 3.0, 2.0, domain.diameter
    for alpha, expected in ((0.0, 700 * N + 24 * N * G * 5 / (L * D)), (0.3, 5600 * N * L / 0.3)):
        solver = build("storc", problem, Setup(cg.theory(9), cg.CondG(), 9), {"strong_convexity": alpha})
        assert solver.batch_size(problem, 1, 4, N, L, G) == ceil(expected)
    x0 = domain.start()
    slope = np.linalg.norm(objective.grad(x0)) + objective.smoothness * D
    assert solver.init(problem, x0).slope == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("first", [None, 1e-3, 30.0])
def test_the_bound_of_universal_cgs(first: float | None) -> None:
    """F(y_N) - (lower bound) <= 4 M D^2/N^2 + gap_0/N^2 with M the largest estimate, at most max(M_0, 2L); told nothing."""
    objective, domain, least, _ = convex_sum(200, strong=True)
    L, D, x0 = objective.smoothness, domain.diameter, np.array([0.0, 0.0, 0.0, 1.0])
    gap = objective.grad(x0) @ (x0 - domain.lmo(objective.grad(x0)))
    for N in (1, 5, 20, 80):
        problem = cg.Problem(cg.Function(objective.value, objective.grad, 4), domain)
        solver = build("universal-cgs", problem, Setup(cg.theory(N), cg.CondG(), N), {"first": first})
        last = list(islice(cg.iterate(problem, solver, x0), N + 1))[-1]
        assert last.lower - 1e-12 <= least <= objective.value(last.x)
        assert last.certified_gap <= 4 * max(2 * L, first or 0.0) * D**2 / N**2 + gap / N**2
    assert last.certified_gap < 0.1 * (objective.value(x0) - least)


def test_universal_cgs_refuses_a_gradient_that_does_not_match() -> None:
    """Values that grow from call to call: no step is short enough."""
    calls = count(1)
    problem = cg.Problem(cg.Function(lambda x: 1e-6 * next(calls), lambda x: 200 * x, 3), cg.Simplex(3))
    solver = build("universal-cgs", problem, Setup(cg.practical(), cg.CondG(), 1), {})
    with pytest.raises(BadOracle, match="gradient does not match"):
        solver.step(problem, solver.init(problem, np.array([0.5, 0.3, 0.2])))
