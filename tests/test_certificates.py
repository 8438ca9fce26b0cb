"""Certificates are never wrong: Lemma 1 on random sets, points, gradients and witnesses, and what a run makes of a lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from math import inf, isnan, nan, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import condgrad as cg
from condgrad.certificate import Certificate, linear_gap, witness
from condgrad.driver import mapping
from condgrad.inner import absolute, relative, with_gap
from condgrad.points.rounding import mapping_rounding
from condgrad.protocols import Prox
from condgrad.runtime.signals import report_inexact
from condgrad.solvers import NCGS

RADII = st.floats(-3, 3).map(lambda e: 10.0**e)
SEEDS = st.integers(0, 2**32 - 1)
SETS = {
    "simplex": lambda n, r, rng: cg.Simplex(n, r),
    "l1": lambda n, r, rng: cg.L1Ball(n, r),
    "l2": lambda n, r, rng: cg.L2Ball(n, r),
    "linf": lambda n, r, rng: cg.LinfBall(n, r),
    "box": lambda n, r, rng: cg.Box(r * rng.uniform(-2, 0.5, n), r * rng.uniform(0.5, 1, n)),
    "nuclear": lambda n, r, rng: cg.NuclearBall((n, 3), r),
    "spectrahedron": lambda n, r, rng: cg.Spectrahedron(n, r),
    "fantope": lambda n, r, rng: cg.Fantope(n, (n + 1) // 2),
}
POLYTOPES, SPECTRAL = ("simplex", "l1", "linf", "box"), ("nuclear", "spectrahedron", "fantope")


@dataclass(frozen=True)
class Linear:
    """F(x) = <w, x>: any vector is the gradient of some F, and the certificate looks at nothing else."""

    w: np.ndarray

    def grad(self, x: np.ndarray) -> np.ndarray:
        return self.w


@dataclass(frozen=True)
class Case:
    """A problem, a point x of its set, a step gamma, and the means to draw more."""

    problem: cg.Problem
    x: np.ndarray
    gamma: float
    rng: np.random.Generator

    @property
    def w(self) -> np.ndarray:
        return self.problem.objective.w

    def point(self) -> np.ndarray:
        return a_point(self.problem.domain, self.rng)

    def exact(self) -> float:
        """|g|, by projection."""
        p = self.problem.domain.project(self.x - self.gamma * self.w)
        return float(np.linalg.norm(self.x - p)) / self.gamma

    def rounding(self, p: np.ndarray) -> float:
        """What floating point may add to either norm: a gap is known up to rounding, and it comes in under a root."""
        M, gamma = self.problem.domain.max_norm, self.gamma
        direction = float(np.linalg.norm(self.w)) + float(np.linalg.norm(p - self.x)) / gamma
        return 1e-13 * (M / gamma + np.linalg.norm(self.w)) + sqrt(
            (1e-14 * direction * M + 1e-15 * M**2 / gamma) / gamma
        )

    def assert_between(self, certificate: Certificate) -> None:
        slack, exact = self.rounding(certificate.prox), self.exact()
        assert sqrt(certificate.lower) - slack <= exact <= sqrt(certificate.upper) + slack


def a_point(domain: Any, rng: np.random.Generator) -> np.ndarray:
    """Of the set: a vertex, a point inside, or the projection of one outside, which is where most faces are met."""
    kind = rng.integers(3)
    if kind == 0:
        return domain.lmo(rng.standard_normal(domain.shape))
    far = domain.max_norm * 10.0 ** rng.uniform(-2, 1) * rng.standard_normal(domain.shape)
    onto = domain.project(far)
    return onto if kind == 1 else 0.5 * onto + 0.5 * domain.lmo(rng.standard_normal(domain.shape))


@st.composite
def cases(draw: Any, names: tuple[str, ...] = tuple(SETS)) -> Case:
    rng = np.random.default_rng(draw(SEEDS))
    domain = SETS[draw(st.sampled_from(names))](draw(st.integers(1, 7)), draw(RADII), rng)
    w = 10.0 ** draw(st.floats(-4, 4)) * rng.standard_normal(domain.shape)
    gamma = 10.0 ** draw(st.floats(-5, 5))
    return Case(cg.Problem(Linear(w), domain), a_point(domain, rng), gamma, rng)


# ------------------------------------------------------------------------------------------------------------ Lemma 1


@settings(max_examples=200, deadline=None, derandomize=True)
@given(case=cases())
def test_any_point_of_the_set_is_a_witness(case: Case) -> None:
    certificate = witness(case.problem, case.x, case.point(), case.gamma)
    assert certificate.lower <= certificate.upper
    case.assert_between(certificate)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(case=cases())
def test_a_point_is_its_own_witness(case: Case) -> None:
    """|g|^2 <= gap / gamma, with the Frank-Wolfe gap."""
    certificate = witness(case.problem, case.x, case.x, case.gamma)
    case.assert_between(certificate)
    gap = float(np.sum(case.w * (case.x - case.problem.domain.lmo(case.w))))
    assert certificate.wolfe_gap == pytest.approx(
        gap, abs=1e-12 * np.linalg.norm(case.w) * case.problem.domain.max_norm
    )
    assert sqrt(certificate.upper) == pytest.approx(sqrt(certificate.wolfe_gap / case.gamma) + certificate.rounding)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(case=cases())
def test_the_exact_prox_point_leaves_no_interval(case: Case) -> None:
    exact = case.problem.domain.project(case.x - case.gamma * case.w)
    certificate = witness(case.problem, case.x, exact, case.gamma)
    case.assert_between(certificate)
    assert sqrt(certificate.upper) - sqrt(certificate.lower) <= 4 * case.rounding(exact)
    measured = mapping(case.problem, case.x, case.gamma)
    case.assert_between(measured)
    assert sqrt(measured.upper) - sqrt(measured.lower) <= case.rounding(exact), "no gap, and rounding under no root"


@pytest.mark.parametrize("inner", [cg.CondG(50), cg.CondG(1), cg.Corrective(20), cg.Corrective(1), cg.Exact()], ids=str)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(case=cases(), accuracy=st.floats(-8, 1).map(lambda e: 10.0**e), scale_free=st.booleans())
def test_every_inner_solver_reports_a_gap_that_holds(inner: Any, case: Case, accuracy: float, scale_free: bool) -> None:
    domain = case.problem.domain
    stop = relative(accuracy, 0.0) if scale_free else absolute(accuracy * np.linalg.norm(case.w) * domain.max_norm)
    point, gap, _ = inner.solve(domain, case.w, case.x, case.gamma, stop, inner.init(domain, case.point()))
    assert domain.contains(point, 1e-8) and gap >= 0
    case.assert_between(Certificate(case.x, point, case.gamma, gap))
    case.assert_between(Certificate(case.x, point, case.gamma, gap).verify(case.problem))


@pytest.mark.parametrize("inner", [cg.Spectral(), cg.Spectral(1), cg.Spectral(4, 1.25)], ids=str)
@settings(max_examples=80, deadline=None, derandomize=True)
@given(case=cases(SPECTRAL), accuracy=st.floats(-8, 1).map(lambda e: 10.0**e), scale_free=st.booleans())
def test_the_spectral_solver_reports_a_gap_that_holds(
    inner: Any, case: Case, accuracy: float, scale_free: bool
) -> None:
    domain = case.problem.domain
    stop = relative(accuracy, 0.0) if scale_free else absolute(accuracy * np.linalg.norm(case.w) * domain.max_norm)
    point, gap, _ = inner.solve(domain, case.w, case.x, case.gamma, stop, inner.init(domain, case.point()))
    assert domain.contains(point, 1e-8) and gap >= 0
    case.assert_between(Certificate(case.x, point, case.gamma, gap))
    case.assert_between(Certificate(case.x, point, case.gamma, gap).verify(case.problem))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(case=cases(), stretch=st.floats(0, 4).map(lambda e: 10.0**e), near=st.booleans())
def test_a_witness_for_a_longer_step_is_one_for_a_shorter(case: Case, stretch: float, near: bool) -> None:
    """|g| falls as the step size grows, and times the step size it rises: any point, or the exact prox point of the longer."""
    step = stretch * case.gamma
    far = case.problem.domain.project(case.x - step * case.w)
    certificate = witness(case.problem, case.x, far if near else case.point(), case.gamma, step=step)
    assert certificate.gamma == case.gamma and certificate.lower <= certificate.upper
    slack, exact = stretch * replace(case, gamma=step).rounding(certificate.prox), case.exact()
    assert sqrt(certificate.lower) - slack <= exact <= sqrt(certificate.upper) + slack
    assert certificate.verify(case.problem) == certificate
    assert stretch > 1 or certificate.upper == pytest.approx(
        witness(case.problem, case.x, certificate.prox, case.gamma).upper
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(case=cases(POLYTOPES), accuracy=st.floats(-6, 0).map(lambda e: 10.0**e))
def test_a_set_that_does_not_project_is_measured_with_an_interval(case: Case, accuracy: float) -> None:
    """A polytope without its projection: the interval holds, and is a tenth of the norm or of sqrt(eps)."""
    domain = case.problem.domain
    hidden = cg.Problem(case.problem.objective, cg.user_set(domain.lmo, domain.shape))
    eps = (accuracy * float(np.linalg.norm(case.w))) ** 2
    measured = mapping(hidden, case.x, case.gamma, eps)
    case.assert_between(measured)
    assert measured.error <= max(0.1 * measured.norm, 0.1 * sqrt(eps)) * (1 + 1e-9) + case.rounding(measured.prox)


def test_the_lemma_is_sharp_enough_to_be_tested() -> None:
    """Halving the allowed error would be found out: somewhere |g~ - g|^2 is more than a quarter of V/gamma."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(300):
        domain, w = cg.L2Ball(3), rng.standard_normal(3)
        case = Case(cg.Problem(Linear(w), domain), a_point(domain, rng), 10.0 ** rng.uniform(-2, 2), rng)
        certificate = witness(case.problem, case.x, case.point(), case.gamma)
        exact = (case.x - domain.project(case.x - case.gamma * w)) / case.gamma
        error = float(np.linalg.norm((case.x - certificate.prox) / case.gamma - exact))
        assert error <= certificate.error * (1 + 1e-9)
        worst = max(worst, error / certificate.error)
    assert worst > 0.5


# ------------------------------------------------------------------------------------------------------------ rounding


def offset_problem(offset: float, seed: int = 0) -> tuple[cg.Quadratic, np.ndarray, np.ndarray]:
    """A quadratic with L < 1 on the simplex, plus offset * sum(x), which is constant there."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 6))
    Q, b = A @ A.T / 30, rng.standard_normal(6) / 10
    return cg.Quadratic(Q, b + offset), Q, b


def without_offset(Q: np.ndarray, b: np.ndarray, offset: float, x: np.ndarray, gamma: float) -> float:
    """The true squared mapping: sum(x) is constant on the simplex, so the offset does not matter but for the rounding of b."""
    slope = Q @ x + ((b + offset) - offset)
    return float(np.sum((x - cg.Simplex(6).project(x - gamma * slope)) ** 2)) / gamma**2


@pytest.mark.parametrize("method", ["frank-wolfe", "ncgs", "ncgs-ii", "projected-gradient", "cgs"])
@pytest.mark.parametrize("offset", [1e12, 1e13])
def test_a_gap_that_rounding_hides_is_not_taken_for_0(method: str, offset: float) -> None:
    for seed in range(3):
        F, Q, b = offset_problem(offset, seed)
        result = cg.minimize(F, cg.Simplex(6), method=method, max_steps=300)
        assert result.status == "unverified" and "Precision is exhausted" in result.message, result.message
        assert "subtract it; else scale F or the set" in result.message
        true = without_offset(Q, b, offset, result.x, result.certificate.gamma)
        assert true <= result.certificate.upper and result.certificate.upper > 1e-6


@pytest.mark.parametrize("inner", ["condg", "corrective", "exact"])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e7, 1e10, 1e13])
def test_no_certificate_of_a_step_is_below_the_truth_under_an_offset(inner: str, offset: float) -> None:
    for seed in range(5):
        F, Q, b = offset_problem(offset, seed)
        x, gamma = np.full(6, 1 / 6), 1 / (2 * F.smoothness)
        solver, grad = {"condg": cg.CondG(50), "corrective": cg.Corrective(50), "exact": cg.Exact()}[inner], F.grad(x)
        p, gap, _ = solver.solve(cg.Simplex(6), grad, x, gamma, absolute(1e-9), solver.init(cg.Simplex(6), x))
        true = without_offset(Q, b, offset, x, gamma)
        own = Certificate(x, p, gamma, gap, rounding=mapping_rounding(grad, x, p, gamma))
        checked = witness(cg.Problem(F, cg.Simplex(6)), x, p, gamma)
        for certificate in (own, checked):
            assert certificate.lower * (1 - 1e-6) <= true <= certificate.upper * (1 + 1e-6)
        assert checked.gap >= checked.noise > 0


def test_without_an_offset_tight_tolerances_are_met_as_before() -> None:
    for seed in range(5):
        F, _, _ = offset_problem(0.0, seed)
        for tol in (1e-6, 1e-10):
            assert cg.minimize(F, cg.Simplex(6), tol=tol).status == "converged"


def test_a_run_that_only_rounding_keeps_from_its_tolerance_ends_there() -> None:
    F, _, _ = offset_problem(1e9)
    result = cg.minimize(F, cg.Simplex(6), method="projected-gradient", max_steps=100_000)
    assert result.status == "unverified" and result.steps < 1000


@pytest.mark.parametrize("method", ["frank-wolfe", "projected-gradient"])
@pytest.mark.parametrize(
    "rule",
    [cg.Gap(1e-6), cg.Gap(1e-6) & cg.Steps(1), cg.Gap(1e-6) | cg.Mapping(1e-6), cg.Gap(1e-6) | cg.Mapping(1e-300)],
    ids=["gap", "gap and steps", "gap or mapping", "gap or never"],
)
def test_a_gap_that_only_rounding_keeps_from_its_tolerance_ends_the_run(method: str, rule: Any) -> None:
    F, _, _ = offset_problem(1e12)
    result = cg.minimize(F, cg.Simplex(6), method=method, stop=rule | cg.Steps(300))
    assert result.status == "unverified" and result.steps < 300
    assert "Precision is exhausted: the rounding error of the " in result.message
    assert "subtract it; else scale F or the set" in result.message


def test_a_budget_that_ends_near_the_rounding_of_the_gap_is_a_lack_of_precision() -> None:
    """The rounded prox points of ncgs keep the gap at 3.7 times its rounding."""
    F, _, _ = offset_problem(1e12)
    result = cg.minimize(F, cg.Simplex(6), method="ncgs", stop=cg.Gap(1e-6) | cg.Steps(50))
    assert result.status == "unverified" and "the rounding error of the Frank-Wolfe gap can be" in result.message


def test_a_gap_in_reach_is_waited_for_where_the_mapping_is_not() -> None:
    F, _, _ = offset_problem(1e9)
    result = cg.minimize(
        F, cg.Simplex(6), method="frank-wolfe", stop=cg.Mapping(1e-9) | cg.Gap(1e-4) | cg.Steps(100_000)
    )
    assert result.status == "converged" and "The Frank-Wolfe gap is at most" in result.message
    never = cg.minimize(F, cg.Simplex(6), method="frank-wolfe", stop=cg.Gap(1e-300) | cg.Steps(300))
    assert never.status == "out_of_budget" and never.steps == 300  # such a tolerance says that only budgets end the run


def test_a_gradient_in_float32_is_certified_to_its_own_digits() -> None:
    """Its answers are off by 1e-7 of themselves: a bound below that would be false."""
    F, Q, b = offset_problem(100.0)
    single = cg.Function(F.value, lambda x: F.grad(x).astype(np.float32), (6,), smoothness=F.smoothness)
    x = np.full(6, 1 / 6)
    certificate = witness(cg.Problem(single, cg.Simplex(6)), x, x, 1 / (2 * F.smoothness))
    assert certificate.rounding > 2.0**-24 * np.linalg.norm(F.grad(x))
    assert certificate.rounding > 1e5 * witness(cg.Problem(F, cg.Simplex(6)), x, x, 1 / (2 * F.smoothness)).rounding
    result = cg.minimize(single, cg.Simplex(6), tol=1e-8)
    assert (
        result.status != "converged"
        and without_offset(Q, b, 100.0, result.x, result.certificate.gamma) <= result.certificate.upper
    )


def test_the_coarsest_type_that_a_function_has_returned_is_certified() -> None:
    """A function that answers in float32 once and in float64 later has had one answer with float32's error."""
    types = iter([np.float32, np.float64, np.float64])
    F = cg.Function(lambda x: float(x @ x), lambda x: (2 * x).astype(next(types)), (3,))
    for _ in range(3):
        F.grad(np.ones(3))
        assert F.precision == 2.0**-23


def test_the_error_of_an_inexact_linear_oracle_is_added_to_the_gap() -> None:
    class Inexact(cg.Simplex):
        def lmo(self, direction: Any) -> Any:
            report_inexact(0.25, "The search did not converge.")
            return super().lmo(direction)

    direction, point = np.array([1.0, 2.0, 4.0]), np.full(3, 1 / 3)
    assert linear_gap(Inexact(3), direction, point)[0] == pytest.approx(
        linear_gap(cg.Simplex(3), direction, point)[0] + 0.25
    )


def test_a_point_outside_of_the_set_by_little_is_certified_by_as_much_less() -> None:
    """A start that sums to 1 - 1e-8 passes the entry; with an offset of 1e4, a gap of 1e-4 would look like 0."""
    F, Q, b = offset_problem(1e4)
    x0 = np.full(6, (1 - 1e-8) / 6)
    result = cg.minimize(F, cg.Simplex(6), x0, method="frank-wolfe", max_steps=1, output="best")
    true = without_offset(Q, b, 1e4, result.x, result.certificate.gamma)
    assert true <= result.certificate.upper


# --------------------------------------------------------------------------------------------------- the certificate


@pytest.fixture
def quadratic() -> cg.Problem:
    return cg.Problem(cg.Quadratic(np.diag([1.0, -2.0, 3.0]), [0.1, 0.2, -0.3]), cg.Simplex(3))


def test_certificates_are_compared_entry_by_entry(quadratic: cg.Problem) -> None:
    x, p = np.array([0.5, 0.2, 0.3]), np.array([0.4, 0.4, 0.2])
    one = witness(quadratic, x, p, 0.1)
    assert one == witness(quadratic, x.copy(), p.copy(), 0.1) and one != witness(quadratic, p, p, 0.1)
    assert one != replace(one, gap=2 * one.gap) and one != x.tolist()


def test_verify_corrects_a_wrong_gap(quadratic: cg.Problem) -> None:
    x, p = np.array([0.5, 0.2, 0.3]), np.array([0.4, 0.4, 0.2])
    honest = witness(quadratic, x, p, 0.1)
    assert honest.gap > 0
    for gap in (0.0, 1e-9, 1e9, -1.0, nan):
        assert replace(honest, gap=gap).verify(quadratic) == honest


def test_verify_asks_for_one_gradient_and_one_linear_minimisation(quadratic: cg.Problem) -> None:
    asked: list[str] = []
    objective = cg.Function(quadratic.objective.value, lambda x: asked.append("grad") or quadratic.objective.grad(x))
    domain = cg.user_set(lambda g: asked.append("lmo") or quadratic.domain.lmo(g), 3)
    witness(quadratic, np.eye(3)[0], np.eye(3)[1], 0.1).verify(cg.Problem(objective, domain))
    assert asked == ["grad", "lmo"]


def test_the_wolfe_gap_is_there_only_for_a_point_that_is_its_own_witness(quadratic: cg.Problem) -> None:
    x = np.array([0.5, 0.2, 0.3])
    own = witness(quadratic, x, x, 0.1)
    assert own.wolfe_gap == own.gap == cg.driver.wolfe_gap(quadratic, x) > 0
    assert own.verify(quadratic).wolfe_gap == own.gap
    assert isnan(witness(quadratic, x, np.eye(3)[0], 0.1).wolfe_gap)


def test_the_interval_by_hand() -> None:
    x, p = np.zeros(2), np.array([0.3, 0.4])
    certificate = Certificate(x, p, 0.5, 0.02)
    assert certificate.norm == pytest.approx(1.0) and certificate.error == pytest.approx(0.2)
    assert (certificate.lower, certificate.upper) == pytest.approx((0.64, 1.44))
    assert Certificate(x, p, 0.5, 10.0).lower == 0.0
    assert Certificate(x, p, 0.5, -1e-18).error == 0.0
    assert Certificate(x, np.array([nan, 0.0]), 0.5, 0.0).upper == inf


@pytest.mark.parametrize("stretch", [0.01, 1.0])
def test_a_stretched_step_certifies_nothing(quadratic: cg.Problem, stretch: float) -> None:
    """It takes its gradient at theta_md, which may lie outside the set."""
    solver = NCGS(cg.practical(1e-4), cg.Exact(), stretch)
    states = islice(cg.iterate(quadratic, solver, np.array([0.5, 0.2, 0.3])), 1, 10)
    assert all(state.certificate is None for state in states)


# ------------------------------------------------------------------------------------------------------ runs that lie


@dataclass(frozen=True)
class Liar:
    """Does nothing, and claims to be exact."""

    def init(self, domain: Any, x: Any) -> None:
        return None

    def solve(self, domain: Any, g: Any, u: Any, gamma: float, stop: Any, memory: Any) -> Prox:
        return Prox(u, 0.0, None)


@dataclass(frozen=True)
class Flatterer:
    """One step of condg, with the gap made a million times smaller."""

    def init(self, domain: Any, x: Any) -> None:
        return None

    def solve(self, domain: Any, g: Any, u: Any, gamma: float, stop: Any, memory: Any) -> Prox:
        prox = cg.CondG(1).solve(domain, g, u, gamma, stop, memory)
        point, gap, memory = with_gap(prox, domain, g, u, gamma)
        return Prox(point, 1e-6 * gap, memory)


@pytest.mark.parametrize("method", ["ncgs", "ncgs-ii"])
def test_a_run_whose_inner_solver_lies_does_not_converge(quadratic: cg.Problem, method: str) -> None:
    x0 = np.array([0.5, 0.2, 0.3])
    result = cg.minimize(quadratic.objective, quadratic.domain, x0, method=method, inner=Liar())
    assert (result.status, result.success) == ("unverified", False)
    assert "the check of the returned point found" in result.message and "not accurate enough" in result.message
    assert result.certificate.upper > 1e-6  # the truth, not the claim
    assert (
        result.certificate.upper
        == witness(
            quadratic, result.x, result.certificate.prox, result.certificate.gamma, "F", result.certificate.step
        ).upper
    )


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_a_gap_that_is_made_small_is_found_out(seed: int) -> None:
    A = np.random.default_rng(seed).standard_normal((6, 6))
    objective, domain, x0 = cg.Quadratic(A @ A.T + np.eye(6)), cg.Simplex(6), np.eye(6)[0]
    honest = cg.minimize(objective, domain, x0, inner="corrective")
    lie = cg.minimize(objective, domain, x0, inner=Flatterer())
    assert honest.status == "converged" and lie.status in ("converged", "unverified")
    true = domain.project(lie.x - lie.certificate.gamma * objective.grad(lie.x)) - lie.x
    assert np.sum(true**2) / lie.certificate.gamma**2 <= lie.certificate.upper * (1 + 1e-9)
    assert (lie.certificate.upper <= 1e-6) == (lie.status == "converged")
    assert lie.steps > honest.steps  # the claim came earlier, and was not believed


def test_an_oracle_that_is_too_rough_for_the_tolerance_does_not_converge(quadratic: cg.Problem) -> None:
    """A projection that is wrong in the third digit: the linear oracle finds it out."""
    rough = cg.user_set(quadratic.domain.lmo, 3, 2.0, project=lambda x: np.round(quadratic.domain.project(x), 2))
    convex = cg.Quadratic(np.diag([1.0, 2.0, 3.0]))
    result = cg.minimize(convex, rough, np.array([0.5, 0.25, 0.25]), method="projected-gradient")
    assert result.status == "unverified"


@pytest.mark.parametrize("inner", ["exact", "corrective"])
@pytest.mark.parametrize("tol", [1e-4, 1e-9, 1e-14])
def test_honest_runs_are_verified(inner: str, tol: float) -> None:
    """No false alarm, from coarse to as tight as rounding allows."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((5, 5))
        round_ones = [cg.L2Ball(5)] if inner == "exact" else []
        for domain in [cg.Simplex(5), cg.L1Ball(5), cg.Box(-np.ones(5), np.ones(5)), *round_ones]:
            F = cg.Quadratic(A @ A.T / 5, rng.standard_normal(5))
            result = cg.minimize(F, domain, inner=inner, tol=tol, max_steps=200)
            beyond = tol < 1e-13 and "Precision is exhausted" in result.message  # a gap's rounding, divided by gamma
            assert result.status in ("converged", "out_of_budget") or beyond, result.message
            if result.success:
                assert result.certificate.upper <= tol * (1 + 1e-5)


def test_honest_runs_with_a_stretch_are_verified() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((5, 5))
        domain = cg.Box(-rng.random(5), rng.random(5))
        result = cg.minimize(cg.Quadratic((A + A.T) / 2, rng.standard_normal(5)), domain, stretch=1.0)
        assert result.status in ("converged", "out_of_budget"), result.message


@pytest.mark.parametrize(
    ("seed", "share", "status"),
    [(1, 0.1, "unverified"), (53, 0.3, "unverified"), (58, 1.5, "converged"), (59, 1.0, "converged")],
)
def test_a_small_matrix_problem_ends_where_precision_ends(seed: int, share: float, status: str) -> None:
    """It ran to its budget: the bound of a witness whose direction is rounding was taken with the size of the set."""
    rng, n = np.random.default_rng(seed), 19
    rank, size, observed = int(rng.integers(1, 5)), 10 ** rng.uniform(-2, 2), rng.uniform(0.3, 1)
    Y = size * rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n))
    Y += size * rng.choice([0, 0.1, 1e-3]) * rng.standard_normal((n, n))
    seen = rng.random((n, n)) < observed
    rng.choice(4)
    F = cg.Completion(*np.nonzero(seen), Y[seen], (n, n), cg.Cauchy(float(10 ** rng.uniform(-1, 1))))
    ball, gamma = cg.NuclearBall((n, n), share * float(np.linalg.norm(Y, "nuc"))), 1 / (2 * F.smoothness)
    first = np.linalg.norm(ball.project(-gamma * np.asarray(F.grad(ball.low_rank_start())))) / gamma
    result = cg.minimize(F, ball, stop=cg.Mapping(1e-12 * first**2) | cg.Steps(150), progress=False)
    assert result.status == status and result.steps < 150
    assert status == "converged" or "Precision is exhausted" in result.message


def test_the_direction_of_the_gap_bounds_the_error_of_the_mapping() -> None:
    """In the interior a witness with a tiny direction d is worth |d|, not the square root of |d| times the size of the set."""
    F, ball = cg.Quadratic(np.eye(3), -np.array([0.1, 0.2, 0.3])), cg.L2Ball((3,), 1e6)
    x = np.array([1.0, -1.0, 0.5])
    prox = x - 0.5 * F.grad(x) + 1e-9
    found = witness(cg.Problem(F, ball), x, prox, 0.5)
    assert found.lower <= np.linalg.norm(F.grad(x)) ** 2 <= found.upper
    assert found.error <= 4e-9 + found.rounding
