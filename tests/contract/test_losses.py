"""What every loss in the registry must do."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condgrad.objectives import LOSSES, Cauchy, GemanMcClure, Huber, Squared, Welsch
from condgrad.testing import check_loss

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
every_loss = pytest.mark.parametrize("entry", LOSSES.values(), ids=LOSSES.keys())


@every_loss
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_loss_constants_are_the_extremes_of_the_second_derivative(entry, y):
    for loss in (entry.factory(), *([entry.factory(0.2), entry.factory(30.0)] if fields(entry.factory) else [])):
        z, h = np.linspace(-15, 15, 300_001), 1e-5
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
