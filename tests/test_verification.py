"""Parts of the verification of a claim, each alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.certificate import Certificate
from condgrad.driver import verification
from condgrad.driver.verification import Verifier
from condgrad.driver.vertices import Compared

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
