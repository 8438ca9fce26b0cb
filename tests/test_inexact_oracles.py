"""Linear oracles that do not converge: more room first, then an error that is certified, told, and taken into certificates."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.certificate import Certificate, witness
from condgrad.domains.spectral import _spectra
from condgrad.driver.metrics import mapping, wolfe_gap
from condgrad.driver.observation import Gap, Observer
from condgrad.driver.reached import Reached
from condgrad.linalg import lanczos
from condgrad.points import LowRank, Pattern, SparsePlusLowRank
from condgrad.runtime.signals import receiving, report_inexact, worst
from condgrad.solvers.states import Descent

SETS = {
    "nuclear": cg.NuclearBall((90, 80), 2.0),
    "spectrahedron": cg.Spectrahedron(85, 3.0),
    "fantope": cg.Fantope(85, 3),
}
SPECTRA = {
    "clustered": lambda n: np.r_[1 - 1e-9 * np.arange(12), np.linspace(0.99, 0.1, n - 12)],
    "no gap": lambda n: np.linspace(1.0, 0.0, n),
    "all but equal": lambda n: 1 - 1e-7 * np.arange(n) / n,
}


def direction(domain: Any, spectrum: str, seed: int) -> np.ndarray:
    m, n = domain.shape
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((n, n)))[0]
    U = -V if m == n else np.linalg.qr(rng.standard_normal((m, n)))[0]
    return (U * SPECTRA[spectrum](n)) @ V.T


def least(domain: Any, D: np.ndarray) -> float:
    """The minimum of <D, .>, by LAPACK."""
    if isinstance(domain, cg.NuclearBall):
        return -domain.radius * float(np.linalg.norm(D, 2))
    values = np.linalg.eigvalsh((D + D.T) / 2)
    return domain.radius * values[0] if isinstance(domain, cg.Spectrahedron) else float(values[: domain.rank].sum())


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little room that hardly any search comes to its end."""
    for name, little in (("STEPS", 12), ("KEPT", 4), ("MAX_RESTARTS", 1), ("SECOND_TRY", 2)):
        monkeypatch.setattr(lanczos, name, little)
    for size in ("MAX_GRAM_SIZE", "MAX_DENSE_GRAM_SIZE"):  # the pair of an array would be found without a search
        monkeypatch.setattr(_spectra, size, 0)


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("domain", SETS.values(), ids=SETS)
def test_the_room_there_is_enough_for_hard_spectra(domain: Any, spectrum: str) -> None:
    D = direction(domain, spectrum, 0)
    with receiving() as reports:
        vertex = domain.lmo(D)
    assert reports == [] and np.vdot(D, vertex) == pytest.approx(least(domain, D), rel=1e-9)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("domain", SETS.values(), ids=SETS)
def test_the_error_is_told_and_true(domain: Any, spectrum: str) -> None:
    told = 0
    for seed in range(5):
        D = direction(domain, spectrum, seed)
        for A in (D, low_rank(D)):
            with receiving() as reports:
                vertex = domain.lmo(A)
            off = float(np.vdot(D, np.asarray(vertex))) - least(domain, D)
            assert domain.contains(vertex)
            assert -1e-9 <= off <= worst(reports) + 1e-9
            assert all(0 < one.error < np.inf and "did not converge" in one.sentence for one in reports)
            told += len(reports)
    assert told >= 5


def low_rank(D: np.ndarray) -> SparsePlusLowRank:
    """The same, known through its products."""
    none = np.empty(0, int)
    return SparsePlusLowRank(Pattern(none, none, D.shape), np.empty(0)) + LowRank(D, np.eye(D.shape[1]))


def test_a_second_search_with_more_room_finds_what_the_first_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = SETS["nuclear"]
    D = direction(domain, "no gap", 1)
    monkeypatch.setattr(lanczos, "MAX_RESTARTS", 1)
    monkeypatch.setattr(lanczos, "STEPS", 27)
    with receiving() as reports:
        assert np.vdot(D, domain.lmo(D)) == pytest.approx(least(domain, D), rel=1e-9)
    assert reports == []


@pytest.mark.usefixtures("short")
def test_where_nobody_listens_it_is_a_warning() -> None:
    with pytest.warns(
        cg.InexactOracleWarning, match=r"NuclearBall did not converge: .* up to \d.*, which is certified"
    ):
        SETS["nuclear"].lmo(direction(SETS["nuclear"], "no gap", 1))


@pytest.mark.usefixtures("short")
def test_certificates_take_the_error_in() -> None:
    """With an oracle that answers badly, the gap that is stated is still one that LAPACK's answer does not exceed."""
    domain = SETS["nuclear"]
    objective = linear(direction(domain, "no gap", 2))
    problem, x = cg.Problem(objective, domain), domain.start()
    with receiving():
        gap, stated = wolfe_gap(problem, x), witness(problem, x, x, 0.5)
        measured = mapping(problem, x, 0.5)
    true = np.vdot(objective.grad(x), x) - least(domain, objective.grad(x))
    assert gap >= true - 1e-12 and stated.gap >= true - 1e-12
    assert stated.gap > np.vdot(objective.grad(x), x - domain_answer(domain, objective.grad(x))) + 1e-6
    assert measured.lower <= np.linalg.norm((x - domain.project(x - 0.5 * objective.grad(x))) / 0.5) ** 2 * (1 + 1e-9)


class Rough:
    """The simplex's linear oracle, which says that it is off: by 1/4, but by 1/2 in its third answer."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, direction: np.ndarray) -> np.ndarray:
        self.calls += 1
        error = 0.5 if self.calls == 3 else 0.25
        report_inexact(error, f"Off by {error}.")
        return cg.Simplex(5).lmo(direction)


DIAGONAL = cg.Quadratic(np.diag([1.0, 2.0, 3.0, 4.0, 5.0]))


def test_a_measurement_takes_the_worst_error_in() -> None:
    """Of several answers, that of the one that is off by most; the rest is as if all were exact."""
    rough, x = Rough(), np.eye(5)[0]
    exact, said = (cg.Problem(DIAGONAL, cg.user_set(lmo, 5, 2.0)) for lmo in (cg.Simplex(5).lmo, rough))
    assert mapping(said, x, 0.1).gap == mapping(exact, x, 0.1).gap + 0.5 and rough.calls > 3
    assert wolfe_gap(said, x) == wolfe_gap(exact, x) + 0.25


def test_a_run_speaks_of_the_worst_error() -> None:
    rough = Rough()
    domain = cg.user_set(rough, 5, 2.0, contains=cg.Simplex(5).contains)
    with pytest.warns(cg.InexactOracleWarning):
        result = cg.minimize(DIAGONAL, domain, np.eye(5)[0], inner="corrective", max_steps=3)
    assert rough.calls > 3 and not result.success
    assert result.warnings == (
        f"Off by 0.5. This happened {rough.calls} times in this run. Certificates include the error.",
    )


def linear(D: np.ndarray) -> cg.Function:
    return cg.Function(lambda X: float(np.vdot(D, X)), lambda X: D, D.shape, smoothness=1.0, lower_smoothness=0.0)


def domain_answer(domain: Any, D: np.ndarray) -> np.ndarray:
    with receiving():
        return np.asarray(domain.lmo(D))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("method", ["frank-wolfe", "ncgs"])
def test_a_run_says_that_its_oracle_was_not_exact(method: str) -> None:
    domain = SETS["nuclear"]
    options = {"inner": "condg"} if method == "ncgs" else {}
    with pytest.warns(cg.InexactOracleWarning, match="did not converge"):
        result = cg.minimize(
            linear(direction(domain, "no gap", 3)), domain, method=method, max_steps=4, tol=1e-9, **options
        )
    assert len(result.warnings) == 1 and "times in this run. Certificates include the error." in result.warnings[0]
    exact = result.certificate.verify(cg.Problem(linear(direction(domain, "no gap", 3)), Lapack()))
    assert result.certificate.upper >= exact.upper * (1 - 1e-9)
    assert not result.success


class Lapack:
    """The nuclear ball with the linear oracle of a full SVD."""

    def lmo(self, D: np.ndarray) -> np.ndarray:
        left, _, right = np.linalg.svd(D, full_matrices=False)
        return -2.0 * np.outer(left[:, 0], right[0])


def test_every_row_of_the_trace_includes_the_error_of_its_steps_oracle() -> None:
    def lmo(direction: np.ndarray, error: float) -> Any:
        report_inexact(error, "")
        return cg.Simplex(3).lmo(direction)

    F = cg.Quadratic(np.diag([1.0, 2.0, 3.0]))
    exact, inexact = (
        cg.minimize(
            F,
            cg.user_set(lambda direction, error=error: lmo(direction, error), 3),
            np.eye(3)[2],
            method="frank-wolfe",
            rule="open-loop",
            max_steps=5,
            tol=1e-9,
        )
        for error in (0.0, 0.25)
    )
    known = np.isfinite(exact.trace["mapping"])
    assert known.sum() > 2 and (inexact.trace["mapping"][known] > 1.01 * exact.trace["mapping"][known]).all()


def test_the_certificate_of_a_step_gets_the_oracles_error_and_the_rounding_of_its_mapping() -> None:
    problem = cg.Problem(cg.Quadratic(np.eye(3), np.full(3, 1e9)), cg.Simplex(3))
    x, prox = np.full(3, 1 / 3), np.array([0.5, 0.25, 0.25])
    own, descent = Certificate(x, prox, 0.5, 1.0), Descent(x, problem.objective.grad(x))
    run = SimpleNamespace(asked=SimpleNamespace(problem=problem), audit=SimpleNamespace(error=0.25))
    full = Observer.with_errors(run, own, descent)  # type: ignore[arg-type]
    assert (full.gap, own.rounding) == (1.25, 0.0)
    assert full.rounding == witness(problem, x, prox, 0.5).rounding > 1e-8


def test_a_gap_that_costs_a_call_is_measured_at_growing_intervals() -> None:
    problem, measured = cg.Problem(cg.Quadratic(np.eye(3)), cg.Simplex(3)), []

    class Counting(Observer):
        def gap_at(self, certificate: Certificate) -> Gap:
            measured.append(certificate)
            return super().gap_at(certificate)

    asked = SimpleNamespace(watches={"gap"}, measured=problem)
    observer = Counting(asked, Reached(state=None), SimpleNamespace(error=0.0))  # type: ignore[arg-type]
    certificate = Certificate(np.full(3, 1 / 3), np.eye(3)[0], 0.5, 1.0)
    for k in range(200):
        observer.gap(certificate, k)
    assert 2 <= len(measured) < 100
