"""Median and quartiles over seeds of best-so-far curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from condgrad.report.blocks import Column, Curve, Plot

POINTS = 200


@dataclass(frozen=True)
class Band:
    """What is drawn of one curve against one unit."""

    x: np.ndarray
    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray
    runs: int


def bands(plot: Plot, unit: str) -> list[Band | None]:
    """One for each curve; None where a curve has nothing to show in this unit."""
    if plot.as_given:
        return [as_given(curve, unit, plot.scales) for curve in plot.curves]
    values = [np.asarray(run["y"], dtype=float) for curve in plot.curves for run in curve.runs]
    above = [float(y[np.isfinite(y) & (y > 0)].min(initial=np.inf)) for y in values]
    floor = min(above, default=np.inf)
    floor = floor if np.isfinite(floor) else 1.0
    return [band(curve, unit, tuple(plot.units), floor) for curve in plot.curves]


def band(curve: Curve, unit: str, units: Sequence[str], floor: float) -> Band | None:
    """Step functions on a common logarithmic grid, and the quartiles of y; a zero is drawn at ``floor``.

    A run that has ended keeps its last value and one that has not begun counts with its first, so a median never rises;
    but the line begins where half of the runs have begun and ends where fewer than half still go on: beyond that it
    would speak of runs that are not there.
    """
    steps = [best_so_far(run, unit, units) for run in curve.runs]
    steps = [(x, y) for x, y in steps if len(x)]
    if not steps:
        return None
    half = ceil(len(steps) / 2)
    begin = sorted(x[0] for x, _ in steps)[half - 1]
    end = sorted((x[-1] for x, _ in steps), reverse=True)[half - 1]
    grid = np.geomspace(begin, end, POINTS) if begin < end else np.array([begin])
    if all((x == np.round(x)).all() for x, _ in steps):
        grid = np.unique(np.round(grid))  # there is no half of a call
    logs = np.array([_at(grid, x, np.log10(np.maximum(y, floor))) for x, y in steps])
    low, middle, high = 10 ** quartiles(logs)
    return Band(grid, low, middle, high, len(steps))


def as_given(curve: Curve, unit: str, scales: tuple[str, str]) -> Band | None:
    """The points of the curve's run, without those that its scales can't show."""
    (run,) = curve.runs
    if unit not in run:
        return None
    x, y = np.asarray(run[unit], dtype=float), np.asarray(run["y"], dtype=float)
    kept = np.isfinite(x) & np.isfinite(y)
    for values, scale in zip((x, y), scales, strict=True):
        kept &= (scale == "linear") | (values > 0)
    x, y = x[kept], y[kept]
    return Band(x, y, y, y, 1) if len(x) else None


def quartiles(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """25, 50 and 75 % over the first axis, always one of the values: of two neighbours the larger, for 25 % the smaller.

    So they are sound where a value is infinite, as the time to a target that was not reached is.
    """
    rules = ((0.25, "lower"), (0.5, "higher"), (0.75, "higher"))
    return np.array([np.quantile(values, share, axis=0, method=rule) for share, rule in rules])  # type: ignore[call-overload]


def best_so_far(run: Mapping[str, Column], unit: str, units: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """(x, the smallest y at a cost of at most x), without rows where nothing is measured or nothing was paid yet.

    The start is such a row: its clock has ticked but no oracle was called.
    """
    if unit not in run:
        return np.empty(0), np.empty(0)
    x, y = np.asarray(run[unit], dtype=float), np.asarray(run["y"], dtype=float)
    others = [np.asarray(run[other], dtype=float) > 0 for other in units if other != unit and other in run]
    paid = (x > 0) & np.isfinite(x) & (np.any(others, axis=0) if others else True)
    order = np.argsort(x, kind="stable")
    best = np.fmin.accumulate(np.where(np.isfinite(y), y, np.nan)[order])
    kept = paid[order] & np.isfinite(best)
    return x[order][kept], best[kept]


def _at(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The step function at the grid's points."""
    return y[np.maximum(np.searchsorted(x, grid, side="right") - 1, 0)]
