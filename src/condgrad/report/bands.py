"""Median and quartiles over seeds of best-so-far curves, as the page and the figures draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from condgrad.report.blocks import Column, Curve, Plot

GRID_POINTS = 200
"""Number of x values of a median curve."""


@dataclass(frozen=True)
class Band:
    """Median, lower and upper quartile of one curve against one unit of cost."""

    x: np.ndarray
    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray
    runs: int


def bands(plot: Plot, unit: str) -> list[Band | None]:
    """Band of each curve of a plot; None for a curve without points in this unit."""
    if plot.as_given:
        return [points_as_given(curve, unit, plot.scales) for curve in plot.curves]
    values = [np.asarray(run["y"], dtype=float) for curve in plot.curves for run in curve.runs]
    above = [float(y[np.isfinite(y) & (y > 0)].min(initial=np.inf)) for y in values]
    floor = min(above, default=np.inf)
    floor = floor if np.isfinite(floor) else 1.0
    return [band(curve, unit, tuple(plot.units), floor) for curve in plot.curves]


def band(curve: Curve, unit: str, units: Sequence[str], floor: float) -> Band | None:
    """Quartiles of the best-so-far step functions of all runs, on a common logarithmic grid.

    A run that has ended keeps its last value, and a run without a point yet counts with its first, so the median never rises.
    The band begins where half of the runs have a point and ends where fewer than half still continue. Values below ``floor``,
    such as 0, are raised to ``floor``.
    """
    steps = [best_so_far(run, unit, units) for run in curve.runs]
    steps = [(x, y) for x, y in steps if len(x)]
    if not steps:
        return None
    half = ceil(len(steps) / 2)
    begin = sorted(x[0] for x, _ in steps)[half - 1]
    end = sorted((x[-1] for x, _ in steps), reverse=True)[half - 1]
    grid = np.geomspace(begin, end, GRID_POINTS) if begin < end else np.array([begin])
    if all((x == np.round(x)).all() for x, _ in steps):
        grid = np.unique(np.round(grid))  # counts of calls are integers
    logs = np.array([_step_values(grid, x, np.log10(np.maximum(y, floor))) for x, y in steps])
    low, middle, high = 10 ** quartiles(logs)
    return Band(grid, low, middle, high, len(steps))


def points_as_given(curve: Curve, unit: str, scales: tuple[str, str]) -> Band | None:
    """Points of the only run of the curve, without those that the scales cannot show."""
    (run,) = curve.runs
    if unit not in run:
        return None
    x, y = np.asarray(run[unit], dtype=float), np.asarray(run["y"], dtype=float)
    shown = np.isfinite(x) & np.isfinite(y)
    for values, scale in zip((x, y), scales, strict=True):
        shown &= (scale == "linear") | (values > 0)
    x, y = x[shown], y[shown]
    return Band(x, y, y, y, 1) if len(x) else None


def quartiles(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Lower quartile, median and upper quartile over the first axis, without interpolation.

    Each is one of the values: of two neighbours the larger, for the lower quartile the smaller. So infinite values, such as
    the time to a target that was not reached, are handled correctly.

    Parameters
    ----------
    values : array_like of shape (n, ...)

    Returns
    -------
    ndarray of shape (3, ...)
    """
    rules = ((0.25, "lower"), (0.5, "higher"), (0.75, "higher"))
    return np.array([np.quantile(values, share, axis=0, method=rule) for share, rule in rules])  # type: ignore[call-overload]


def best_so_far(run: Mapping[str, Column], unit: str, units: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Costs x and the smallest y at a cost of at most x, without rows that have no measurement or no cost.

    The row of the start has no cost: some time has passed, but no oracle was called.
    """
    if unit not in run:
        return np.empty(0), np.empty(0)
    x, y = np.asarray(run[unit], dtype=float), np.asarray(run["y"], dtype=float)
    others = [np.asarray(run[other], dtype=float) > 0 for other in units if other != unit and other in run]
    paid = (x > 0) & np.isfinite(x) & (np.any(others, axis=0) if others else True)
    order = np.argsort(x, kind="stable")
    best = np.fmin.accumulate(np.where(np.isfinite(y), y, np.nan)[order])
    shown = paid[order] & np.isfinite(best)
    return x[order][shown], best[shown]


def _step_values(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values of the step function (x, y) at the grid points."""
    return y[np.maximum(np.searchsorted(x, grid, side="right") - 1, 0)]
