"""What every loss in the registry must do."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condgrad.objectives import (
    LOSSES,
    MCP,
    SCAD,
    Cauchy,
    Function,
    FunctionExpectation,
    GemanMcClure,
    Huber,
    Penalized,
    SmoothedAbsolute,
    SmoothedHinge,
    Squared,
    Welsch,
)
from condgrad.testing import check_loss

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
every_loss = pytest.mark.parametrize("entry", LOSSES.values(), ids=LOSSES.keys())


@every_loss
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_loss_constants_are_the_extremes_of_the_second_derivative(entry, y):
    for loss in (entry.factory(), *([entry.factory(0.2), entry.factory(30.0)] if fields(entry.factory) else [])):
        z, h = np.linspace(-150, 150, 300_001), 1e-5
        second = (loss.deriv(z + h, y) - loss.deriv(z - h, y)) / (2 * h)
        assert np.abs(second).max() == pytest.approx(loss.smoothness, rel=1e-4)
        assert np.abs(second).max() <= loss.smoothness * (1 + 1e-8)
        assert max(0.0, -second.min()) == pytest.approx(loss.lower_smoothness, rel=1e-4, abs=1e-9)
        assert -second.min() <= loss.lower_smoothness * (1 + 1e-8) + 1e-9


@every_loss
def test_loss_registry_says_what_is_so(entry):
    loss = entry.factory()
    assert LOSSES[entry.name] is entry and entry.formula and entry.smoothness
    assert ("l =" in entry.smoothness) == (not entry.convex) and entry.labels == loss.labels


@every_loss
def test_every_loss_keeps_its_contract(entry):
    for loss in (entry.factory(), *([entry.factory(0.2), entry.factory(30.0)] if fields(entry.factory) else [])):
        report = check_loss(loss, exact=entry.exact if loss == entry.factory() else None)
        assert report.passed and not report.notes, str(report)


@every_loss
@quick
@given(z=st.floats(-20, 20), y=st.sampled_from([-1.0, 1.0]))
def test_loss_value_and_derivative(entry, z, y):
    loss, h = entry.factory(), 1e-5
    assert loss.value(z, y) == pytest.approx(entry.exact(z, y), rel=1e-9, abs=1e-15)
    slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    assert loss.deriv(z, y) == pytest.approx(slope, rel=1e-5, abs=1e-8)


@every_loss
def test_losses_at_the_ends_of_the_floats(entry):
    loss = entry.factory()
    z, y = np.array([1e300, -1e300, 1e160, 800.0, -800.0, 0.0]), np.array([1.0, 1.0, -1.0, 1.0, 1.0, -1.0])
    value, deriv = loss.value(z, y), loss.deriv(z, y)  # a warning is an error here
    assert not np.isnan(value).any() and (value >= loss.lower_bound).all()
    assert np.isfinite(deriv).all()
    assert entry.name == "squared" or np.isfinite(value).all()


@pytest.mark.parametrize(
    ("loss", "value", "deriv"),
    [
        (Huber(1e-20), 1e280, -1e-20),
        (Welsch(1e-20), 1.0, 0.0),
        (Cauchy(1e-20), 620 * math.log(10), -2e-300),
        (GemanMcClure(1e-20), 1.0, 0.0),
    ],
    ids=repr,
)
def test_narrow_losses_do_not_overflow(loss, value, deriv):
    assert loss.value(np.array([-1e300]), 0.0) == pytest.approx(value, rel=1e-12)
    assert loss.deriv(np.array([-1e300]), 0.0) == pytest.approx(deriv, rel=1e-12, abs=0)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.3), Welsch(0.3), Cauchy(0.3), GemanMcClure(0.3)], ids=repr)
def test_real_losses_lose_no_digits_near_their_zero(loss):
    t = np.array([-1e-9, 1e-12, 1e-100])
    assert loss.value(1.0, 1.0) == loss.deriv(1.0, 1.0) == 0.0
    assert loss.value(t, 0.0) == pytest.approx(loss.smoothness / 2 * t**2, rel=1e-12, abs=0)
    assert loss.deriv(t, 0.0) == pytest.approx(loss.smoothness * t, rel=1e-12, abs=0)


# ----------------------------------------------------------------------------------------------------------- envelopes


def mcp(t, lam, gamma):
    t = np.minimum(np.abs(t), gamma * lam)
    return lam * t - t**2 / (2 * gamma)


def scad(t, lam, a):
    t = np.minimum(np.abs(t), a * lam)
    return np.where(t <= lam, lam * t, (2 * a * lam * t - t**2 - lam**2) / (2 * (a - 1)))


ENVELOPES = [
    (SmoothedAbsolute(0.3), np.abs),
    (SmoothedHinge(0.7), lambda z: np.maximum(0.0, 1 - z)),
    (MCP(0.8, 2.0, 0.6), lambda t: mcp(t, 0.8, 2.0)),
    (MCP(2.0, 1.5, 1.4), lambda t: mcp(t, 2.0, 1.5)),
    (SCAD(0.8, 3.0, 0.6), lambda t: scad(t, 0.8, 3.0)),
    (SCAD(1.5, 2.5, 1.2), lambda t: scad(t, 1.5, 2.5)),
]


@pytest.mark.parametrize(("loss", "p"), ENVELOPES, ids=lambda part: str(part) if hasattr(part, "mu") else "")
def test_an_envelope_is_the_least_value_nearby_and_its_error_is_attained(loss, p):
    """min_s p(s) + (s - t)^2/(2 mu) on a fine grid of s; for the hinge loss t is z, with y = 1."""
    y = 1.0 if loss.labels == "+-1" else 0.0
    s, t = np.linspace(-8, 8, 160_001), np.linspace(-7, 7, 57)
    least = [np.min(p(s) + (s - z) ** 2 / (2 * loss.mu)) for z in t]
    assert np.allclose(loss.value(t, y), least, rtol=0, atol=1e-7)
    error = p(s) - loss.value(s, y)
    assert error.min() >= -1e-12 and error.max() <= loss.smoothing_error * (1 + 1e-9)
    exact = not isinstance(loss, SCAD) or loss.mu <= 1
    assert error.max() == pytest.approx(loss.smoothing_error, rel=1e-6 if exact else 0.02)


def test_the_envelope_of_the_absolute_value_is_a_scaled_huber_loss():
    z = np.linspace(-3, 3, 101)
    assert np.allclose(SmoothedAbsolute(0.4).value(z, 0.1), Huber(0.4).value(z, 0.1) / 0.4, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MCP(1.0, 0.5, 0.5), "The mu of MCP is 0.5, a number below 0.5 was expected"),
        (lambda: SCAD(1.0, 2.0, 1.5), "The mu of SCAD is 1.5, a number below 1 was expected"),
        (lambda: SmoothedHinge(0.0), "The mu of SmoothedHinge must be positive"),
        (lambda: MCP(-1.0), "The lam of MCP must be positive"),
        (lambda: Penalized(Function(np.sum, np.ones_like), SmoothedHinge()), "a penalty of each variable was expected"),
        (lambda: Penalized(Function(np.sum, np.ones_like), MCP(), 0.0), "The strength of Penalized must be positive"),
        (lambda: Penalized(FunctionExpectation(len, len), MCP()), "FunctionExpectation has no value"),
        (lambda: Penalized(Function(np.sum, np.ones_like), MCP), "must be an object such as Squared"),
    ],
)
def test_envelopes_and_penalized_refuse(make, said):
    with pytest.raises((TypeError, ValueError), match=said):
        make()


def test_the_constants_of_a_penalized_function_of_unknown_smoothness_are_unknown():
    F = Penalized(
        Function(lambda x: float(x @ x), lambda x: 2 * x, 3, lower_smoothness=0.0, lower_bound=-1.0), MCP(), 2.0
    )
    assert (F.smoothness, F.lower_smoothness, F.lower_bound, F.shape) == (None, 0.8, -1.0, (3,))
