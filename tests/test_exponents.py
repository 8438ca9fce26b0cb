"""Fits of how a cost grows find what was put in, and their intervals cover it as often as they say."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from condgrad.paper.exponents import Estimate, estimate, growth, slope
from condgrad.paper.tables import compare_with_bounds


@pytest.mark.parametrize(("p", "q"), [(1.0, 2 / 3), (2.0, 1.0), (10 / 3, 0.0)])
def test_known_exponents_are_found(p: float, q: float) -> None:
    eps, n = np.meshgrid([1e-1, 1e-2, 1e-3], [125.0, 1000.0, 8000.0])
    found = growth(eps.ravel(), 7 * (1 / eps.ravel()) ** p * n.ravel() ** q, n.ravel())
    assert np.allclose(found, (p, q))
    assert np.isclose(growth(eps[0], 3 / eps[0] ** p).in_eps, p)
    assert np.isclose(slope([1.0, 2.0, 4.0], [5.0, 5 * 2**p, 5 * 4**p]), p)


def test_noise_in_eps_does_not_flatten_the_exponent() -> None:
    """Explaining the cost by a noisy eps would, by a tenth here."""
    rng = np.random.default_rng(0)
    cost = np.repeat(10.0 ** np.arange(2, 6), 500)
    eps = cost**-0.5 * np.exp(rng.normal(0, 0.4, len(cost)))
    assert abs(growth(eps, cost).in_eps - 2) < 0.05
    assert -slope(eps, cost) < 1.85


def test_what_can_not_be_fitted_is_nan() -> None:
    assert isnan(slope([1.0, 2.0], [1.0, 2.0]))
    assert isnan(growth([0.1, 0.01], [10.0, 100.0]).in_eps)
    assert isnan(growth([0.1, 0.2, 0.3], [10.0, 100.0, 1000.0]).in_eps), "eps grows with the cost"
    assert isnan(growth([0.1, 0.01, 0.001], [10.0, 100.0, 1000.0]).in_n)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(1000):
        found = estimate(rng.normal(2.0, 0.3, 5))
        covered += abs(found.mean - 2.0) <= found.half
    assert 930 <= covered <= 970


def test_an_estimate_is_said_with_its_interval() -> None:
    assert str(estimate([1.0, 1.0, 1.3])) == "1.10±0.43"
    assert str(estimate([1.5, float("nan")])) == "1.50 (one seed)"
    assert str(estimate([])) == "-"


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ([(0.5, 0.1), (1.0, 0.1)], "below: they are upper bounds"),
        ([(0.95, 0.1), (1.0, 0.1)], "at the bounds or below"),
        ([(1.3, 0.1), (1.0, 0.1)], "above one, over this range"),
        ([(0.5, 0.6), (1.0, 0.1)], "too uncertain to say"),
        ([(0.5, float("nan")), (1.0, 0.1)], "no interval from one seed"),
    ],
)
def test_the_reading_of_a_row_follows_from_its_intervals(measured: list[tuple[float, float]], said: str) -> None:
    assert (
        compare_with_bounds([(Estimate(*found, 5), bound) for found, bound in zip(measured, (1.0, 2.0), strict=True)])
        == said
    )
