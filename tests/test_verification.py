"""Parts of the verification of a claim, of the audit of steps and of the probes of an oracle, each alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.driving import a_record

import condgrad as cg
from condgrad.certificate import Certificate
from condgrad.driver import verification, vertices
from condgrad.driver.audit import Audit
from condgrad.driver.verification import Verifier
from condgrad.driver.vertices import Compared, probe
from condgrad.runtime.signals import Inexact, receiving

PROBLEM = cg.Problem(cg.Quadratic(np.diag([1.0, 2.0, 3.0]), [1.0, 0.0, -1.0]), cg.Simplex(3))
X = np.array([0.2, 0.3, 0.5])


def a_run(domain: Any = PROBLEM.domain) -> Any:
    """What a verifier looks at: no tolerance, nothing refuted, points inside of the set."""
    asked = SimpleNamespace(
        problem=cg.Problem(PROBLEM.objective, domain),
        measured=PROBLEM,
        eps=None,
        rank=lambda certificate: certificate.upper,
    )
    return SimpleNamespace(asked=asked, audit=SimpleNamespace(smoothness=lambda L: L, with_slack=lambda found: found))


def test_what_probing_a_users_oracle_finds_is_added_to_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "probe", lambda *given: 0.25)
    claim = Certificate(X, X, 0.1, 1.0)
    assert Verifier.probed(a_run(Compared(PROBLEM.domain)), claim).gap == 1.25
    assert Verifier.probed(a_run(), claim).gap == 1.0, "the library's own sets are not probed"


def test_a_claim_with_a_long_step_is_certified_with_a_short_one_where_that_is_better() -> None:
    gamma = 1 / (2 * PROBLEM.objective.smoothness)
    prox = PROBLEM.domain.project(X - gamma * PROBLEM.objective.grad(X))
    found = Verifier.verify(a_run(), Certificate(X, prox, gamma, 0.0, step=1e4 * gamma))
    assert found.step is None
    assert found.upper == Certificate(X, prox, gamma, 0.0).verify(PROBLEM).upper


def test_a_measure_within_precision_is_waited_for_where_the_other_one_is_exhausted() -> None:
    record = a_record(k=1, gap=0.5, mapping=1.0)
    asked = SimpleNamespace(eps=1e-20, gap_eps=0.1, stop=cg.Mapping(1e-20) | cg.Gap(0.1))
    run = SimpleNamespace(
        asked=asked,
        reached=SimpleNamespace(record=record, trace=[]),
        sensible=lambda name, eps: eps,
        observer=SimpleNamespace(gap_at=lambda certificate: (0.5, 1e-12)),
    )
    exhausted = SimpleNamespace(floor=1e-10, upper=1e-10, exhausted=lambda eps: True)
    assert Verifier.beyond_precision(run, exhausted) is None  # type: ignore[arg-type]
    asked.stop = cg.Mapping(1e-20)
    assert Verifier.beyond_precision(run, exhausted).status == "unverified"  # type: ignore[arg-type, union-attr]


def test_the_least_smoothness_is_a_tenth_of_the_quotient_of_two_gradients() -> None:
    y = np.array([0.6, 0.2, 0.2])
    apart = np.linalg.norm(PROBLEM.objective.grad(X) - PROBLEM.objective.grad(y)) / np.linalg.norm(X - y)
    assert Verifier.least_smoothness(a_run(), Certificate(X, y, 0.1, 0.0)) == pytest.approx(apart / 10)


# --------------------------------------------------------------------------------------------------------------- the audit


def test_the_largest_error_of_the_oracle_is_that_of_the_step() -> None:
    reports = [Inexact(0.1, ""), Inexact(0.5, ""), Inexact(0.2, "")]
    run = SimpleNamespace(problem=PROBLEM, reports=reports, reached=SimpleNamespace(findings=None))
    assert Audit.collect(run) == 0.5 and not reports  # type: ignore[arg-type]


@pytest.mark.parametrize(("new", "rises"), [(-0.1, True), (-0.95, False)])
def test_F_may_come_to_what_its_gradient_and_L_allow_and_not_above(new: float, rises: bool) -> None:
    """From F = 0 along d with <grad, d> = -1 and L/2 |d|^2 = 0.1 at most to -0.9."""
    notes: dict[str, Any] = {}
    problem = SimpleNamespace(objective=None)
    run = SimpleNamespace(
        note=notes.update,
        rounding=lambda x, grad, L: 0.0,
        first_rounding=lambda: 0.0,
        scatter=lambda x, d: 0.0,
        problem=problem,
    )
    after = SimpleNamespace(x=np.array([1.0, 0.0]), L=0.2, k=3)
    Audit.compare(run, np.zeros(2), np.array([-1.0, 0.0]), after, 0.0, new)  # type: ignore[arg-type]
    assert ("rise" in notes) == rises


# ------------------------------------------------------------------------------------------- probes of a user's oracle


def test_the_error_that_probes_show_is_returned() -> None:
    """The oracle is exact but for one direction, where it answers with a vertex that is worse by 1e-8."""
    direction = np.array([0.0, 1e-8, 1.0])

    def lmo(asked: np.ndarray) -> np.ndarray:
        return np.eye(3)[1 if np.array_equal(asked, direction) else np.argmin(asked)]

    with receiving():
        error = probe(Compared(cg.user_set(lmo, 3)), direction, (np.full(3, 1 / 3),))
    assert error == pytest.approx(1e-8, rel=1e-3)


def test_probes_favour_an_answer_over_a_known_point() -> None:
    asked: list[np.ndarray] = []

    def lmo(direction: np.ndarray) -> np.ndarray:
        asked.append(np.array(direction))
        return np.eye(3)[np.argmin(direction)]

    direction, vertex, point = np.array([0.0, 1.0, 2.0]), np.eye(3)[0], np.eye(3)[1]
    list(vertices._probe_answers(Compared(cg.user_set(lmo, 3)), direction, vertex, (point,), brief=True))
    changes = [(one - direction) @ (vertex - point) for one in asked[-len(vertices.FAVOURS) :]]
    assert all(np.diff(changes) < 0) and changes[0] < 0
