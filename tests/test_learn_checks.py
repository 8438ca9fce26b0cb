"""scikit-learn's own checks, on every estimator of ours."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from condgrad.learn import RobustLinearRegressor, RobustPCA, SigmoidClassifier, radius_search

pytestmark = pytest.mark.filterwarnings("default")  # the checks try what warns, and look at the warnings themselves

DO_NOT_APPLY: dict[str, dict[str, str]] = {}
"""Estimator -> check -> why it does not apply."""


def why_not(estimator: Any) -> dict[str, str]:
    return DO_NOT_APPLY.get(type(estimator).__name__, {})


@pytest.fixture(autouse=True)
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few radii far apart, without refinement: the checks fit hundreds of times, and none is about the radius."""
    for name, value in {"RADIUS_RATIO": 4.0, "PATIENCE": 1, "REFINEMENT_ROUNDS": 0}.items():
        monkeypatch.setattr(radius_search, name, value)


# scikit-learn shortens its own estimators for these checks too: a larger tol ends every fit earlier.
ESTIMATORS = [
    RobustLinearRegressor(tol=1e-4),
    RobustLinearRegressor("huber", constraint="nuclear", radius=3.0),
    RobustLinearRegressor("squared", constraint=None),
    SigmoidClassifier(tol=1e-3),
    SigmoidClassifier("logistic", constraint="l1", radius=2.0),
    RobustPCA(),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=why_not)
def test_as_scikit_learn_wants_it(estimator: Any, check: Any) -> None:
    check(estimator)
