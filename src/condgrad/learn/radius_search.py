"""Chooses the radius of the ball and the scale of the errors of a robust fit, by the held-out loss along a path of radii."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from condgrad.driver import Result
from condgrad.learn.completion.robust_scale import AUTO, CONVEX_LOSSES, loss_for, median_scale
from condgrad.learn.loss_choice import AUTO_LOSSES, preferred
from condgrad.learn.robust_start import clipped_scale
from condgrad.objectives import Loss
from condgrad.protocols import Point

RADIUS_RATIO, PATIENCE, MAX_RADII = 1.5, 5, 40
"""RADIUS_RATIO is the ratio of neighbouring radii of the path. The path ends after MAX_RADII radii. It ends earlier once PATIENCE
fits since the best fit are not useful. A fit is not useful if it is worse than the best fit (WORSE_SHARE), or if the ball does
not limit it."""
WORSE_SHARE = 2e-3
"""A fit is worse if its held-out loss is larger than the smallest held-out loss by more than this share. The smallest radius with
a fit that is not worse is chosen."""
REFINEMENT_ROUNDS = 3
"""Number of times the path is refined around the chosen radius."""
PATH_TOLERANCE_FACTOR = 10.0
"""The tolerance of the fits of the path is larger by this factor, because they need not be accurate."""
MIN_SCALE_SHARE = 1e-2
"""Lower bound on the scale of the errors, relative to the scale of the data. Smaller errors need no robust loss."""
SETTLED_SCALE = 0.95
"""The search for sigma ends when the ratio of the new sigma to the old sigma is above this number."""

NEIGHBOURS = 1
"""Number of radii on each side of the best radius that are fitted again with a smaller sigma."""


class Fit(NamedTuple):
    """One fit: the coefficients, and the result of the run of the solver."""

    x: Point
    """The coefficients."""
    result: Result
    binding: bool
    """Whether the constraint is active, that is, x is on the boundary of the ball."""


class Data(Protocol):
    """Interface of data (rows with targets) to which coefficients can be fitted."""

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the rows; None if all weights are equal."""

    def fit(self, loss: Loss, radius: Any, start: Point, scale: float) -> Fit:
        """Fit the targets divided by the scale. The returned coefficients are multiplied by the scale."""

    def errors(self, x: Point) -> np.ndarray:
        """Errors of the rows with the coefficients x. They have a column for each task (target)."""

    def median_scale(self) -> float:
        """Robust scale of the data, never 0. It is the first estimate of the scale of the errors."""

    def first_radius(self, scale: float) -> float:
        """Length of the first Frank-Wolfe step of least squares, for targets clipped to [-scale, scale]."""

    def robust_start(self) -> Point | None:
        """Coefficients from which a fit with a redescending loss can start; None if there are too few rows."""

    def norm(self, x: Point) -> float:
        """Radius of the smallest ball that contains x."""

    def quantization_step(self) -> float:
        """The quantization step of the targets, such as 1 for counts; 0 if they are not quantized."""


@dataclass(frozen=True, eq=False)
class Step:
    """One fit of the path."""

    radius: Any
    score: float
    """Held-out loss of the fit."""
    fit: Fit


class Searched(NamedTuple):
    """The radius and the scale that were chosen with one loss, the start of the final fit, and the path."""

    radius: Any
    sigma: float
    start: Point
    steps: list[Step]


class RobustFit(NamedTuple):
    """The final fit, its loss, the chosen radius and scale, the path, and the losses that were compared."""

    fit: Fit
    loss: str
    radius: Any
    sigma: float
    steps: list[Step]
    candidates: dict[str, float]
    """Mean absolute held-out error for each loss that was compared."""


FitAndScore = Callable[[Any, Point], tuple[Fit, float]]
"""Function ``f(radius, start)`` that returns a fit and its held-out loss."""


def robust_fit(
    data: Data,
    split: Callable[[], tuple[Data, Data]],
    loss: str,
    radius: Any,
    sigma: float | None,
    zero: Point,
    unconstrained: bool = False,
) -> RobustFit:
    """Fit the data with a robust loss.

    If the radius is "auto", it is chosen on held-out data. If sigma is None and the loss depends on sigma, it is estimated. If
    the loss is "auto", a convex loss is used unless held-out data prefer a redescending loss. With ``unconstrained``, a fit
    without a ball is also a candidate.
    """
    candidates: dict[str, float] = {}
    if loss == AUTO:
        parts, scale = split(), data.median_scale()
        errors: dict[str, np.ndarray] = {}
        found: dict[str, Searched] = {}
        for name in AUTO_LOSSES:
            found[name] = _search(data, *parts, name, radius, sigma, zero, unconstrained)
            errors[name] = parts[1].errors(found[name].start)
            candidates[name] = float(np.average(np.abs(errors[name]).mean(axis=1), weights=parts[1].weights))
            if loss == AUTO or preferred(name, errors[name], errors[loss], parts[1].weights, scale):
                loss = name
        searched = found[loss]
    elif radius == "auto" or (sigma is None and loss != "squared"):
        searched = _search(data, *split(), loss, radius, sigma, zero, unconstrained)
    else:
        scale, begin = sigma or data.median_scale(), zero
        if loss not in CONVEX_LOSSES:
            start = data.robust_start()
            begin = data.fit(loss_for("huber", 1.0), radius, zero, scale).x if start is None else start
        searched = Searched(radius, scale, begin, [])
    fit = data.fit(loss_for(loss, 1.0), searched.radius, searched.start, searched.sigma)
    return RobustFit(fit, loss, searched.radius, searched.sigma, searched.steps, candidates)


def _search(
    data: Data,
    train: Data,
    held_out: Data,
    loss: str,
    radius: Any,
    sigma: float | None,
    zero: Point,
    unconstrained: bool,
) -> Searched:
    """Choose radius and scale with this loss."""
    scale = sigma or data.median_scale()
    begin = train.robust_start() if unconstrained or loss not in CONVEX_LOSSES else None
    if begin is None:
        steps, scale = _search_with_pilot(train, held_out, loss, radius, sigma, scale, zero)
        best = best_step(steps)
    else:
        least = max(MIN_SCALE_SHARE * scale, data.quantization_step() / 2)
        steps, best, scale = _search_from_robust_start(
            begin, train, held_out, loss, radius, sigma, least, unconstrained
        )
    return Searched(best.radius, scale, best.fit.x, steps)


def _search_with_pilot(
    train: Data, held_out: Data, name: str, radius: Any, sigma: float | None, scale: float, zero: Point
) -> tuple[list[Step], float]:
    """Follow the path with a convex pilot loss, then with the given loss. Returns the path and the scale.

    The pilot loss is the squared loss if this is the given loss, else Huber's loss. The fits with the pilot loss determine sigma.
    The fits with the given loss start from them. As long as the held-out errors are smaller than sigma, the radii around the best
    radius are fitted again with a smaller sigma.
    """
    auto = radius == "auto"
    radii = increasing_radii(train.first_radius(scale)) if auto else [radius]
    pilot_name = "squared" if name == "squared" else "huber"
    fixed = sigma or (scale if name == "squared" else None)
    scales = [scale]

    def pilot(radius: Any, start: Point) -> tuple[Fit, float]:
        width = fixed or min(scales)
        fit = train.fit(loss_for(pilot_name, 1.0), radius, start, width)
        errors = held_out.errors(fit.x)
        if fixed:
            return fit, mean_loss(loss_for(pilot_name, width), errors, held_out.weights)
        scales.append(max(median_scale(errors, held_out.weights), MIN_SCALE_SHARE * scale))
        return fit, scales[-1]

    steps = fit_path(radii, pilot, zero)
    if name in CONVEX_LOSSES and fixed:
        return (refine_path(steps, pilot) if auto else steps), fixed
    starts, best = {step.radius: step.fit.x for step in steps}, best_step(steps).radius
    while not fixed:
        before = min(scales)
        starts[best] = pilot(best, starts[best])[0].x
        if scales[-1] > SETTLED_SCALE * before:
            fixed = min(scales)

    def fit_radii(starts: dict[Any, Point], width: float) -> tuple[list[Step], float]:
        """Fit at the radii that are the keys of ``starts``, with the given loss of this width. Returns the path, and the scale of
        the held-out errors of its best fit."""

        def robust(radius: Any, start: Point) -> tuple[Fit, float]:
            if radius not in starts:  # a fit with the convex loss is a better start than the fit at a smaller radius
                starts[radius] = train.fit(loss_for("huber", 1.0), radius, start, width).x
            fit = train.fit(loss_for(name, 1.0), radius, starts[radius], width)
            return fit, mean_loss(loss_for(name, width), held_out.errors(fit.x), held_out.weights)

        steps = fit_path(list(starts), robust, zero)
        steps = refine_path(steps, robust) if auto else steps
        return steps, max(
            median_scale(held_out.errors(best_step(steps).fit.x), held_out.weights), MIN_SCALE_SHARE * scale
        )

    steps, error_scale = fit_radii(starts, fixed)
    while sigma is None and error_scale < SETTLED_SCALE * fixed:
        narrower, new_scale = fit_radii(_neighbours(steps), error_scale)
        if new_scale > error_scale:  # the loss has become so narrow that it ignores most of the data
            break
        steps, fixed, error_scale = narrower, error_scale, new_scale
    return steps, fixed


def _search_from_robust_start(
    start: Point,
    train: Data,
    held_out: Data,
    name: str,
    radius: Any,
    sigma: float | None,
    least: float,
    unconstrained: bool,
) -> tuple[list[Step], Step, float]:
    """Follow the path with decreasing radii from a robust start. Each fit starts from the fit at the next larger radius.

    The held-out losses of all fits are computed with the same sigma. With ``unconstrained``, the fit without a ball is chosen,
    unless the best ball is clearly better. Returns the path, the chosen step and the scale.
    """
    width = sigma or max(_inlier_scale(start, train, held_out), least)
    fitted: dict[float, Point] = {}

    def fit(radius: Any, _: Point) -> tuple[Fit, float]:
        size = math.inf if radius is None else radius
        larger = min((other for other in fitted if other >= size), default=None)
        found = train.fit(loss_for(name, 1.0), radius, start if larger is None else fitted[larger], width)
        fitted[size] = found.x
        return found, mean_loss(loss_for(name, width), held_out.errors(found.x), held_out.weights)

    if radius != "auto":
        steps = fit_path([radius], fit, start)
        best = steps[0]
    else:
        largest = train.norm(start) * RADIUS_RATIO or 1.0
        steps = fit_path([largest / RADIUS_RATIO**k for k in range(MAX_RADII)], fit, start)[::-1]
        steps = refine_path(steps, fit)
        best = ball = best_step(steps)
        if unconstrained:
            (free,) = fit_path([None], fit, start)
            losses = [row_losses(loss_for(name, width), held_out.errors(step.fit.x)) for step in (ball, free)]
            # the ball is kept only if it is significantly better
            best = ball if clearly_positive(losses[1] - losses[0], held_out.weights) else free
    if sigma is None:
        width = max(_inlier_scale(best.fit.x, train, held_out), least)
    return steps, best, width


def _inlier_scale(x: Point, train: Data, held_out: Data) -> float:
    """Scale of the errors of the inliers among all rows. Training errors are corrected for the degrees of freedom of the fit.

    The held-out rows alone would be too few: if 45 % of all rows are outliers, 21 of 40 held-out rows may be outliers by chance.
    """
    shrunk = math.sqrt(1 - min(len(x) / len(train.errors(x)), 0.5))
    errors = np.concatenate([held_out.errors(x), train.errors(x) / shrunk])
    weights = (
        None if held_out.weights is None or train.weights is None else np.concatenate([held_out.weights, train.weights])
    )
    return clipped_scale(errors, weights)


def _neighbours(steps: list[Step]) -> dict[Any, Point]:
    """Dictionary of the chosen radius and its neighbours on the path. The values are the coefficients fitted at these radii."""
    at = steps.index(best_step(steps))
    return {step.radius: step.fit.x for step in steps[max(at - NEIGHBOURS, 0) : at + NEIGHBOURS + 1]}


def row_losses(loss: Loss, errors: np.ndarray) -> np.ndarray:
    """Loss of each row, summed over the tasks."""
    return loss.value(errors, np.zeros_like(errors)).sum(axis=1)


def mean_loss(loss: Loss, errors: np.ndarray, weights: np.ndarray | None) -> float:
    """Weighted mean of the losses of the rows."""
    return float(np.average(row_losses(loss, errors), weights=weights))


def clearly_positive(differences: np.ndarray, weights: np.ndarray | None) -> bool:
    """Whether the weighted mean is more than 1.5 standard errors above 0. If the true mean is 0, the probability of this is
    1/15."""
    weights = np.ones(len(differences)) if weights is None else weights
    mean = np.average(differences, weights=weights)
    variance = np.average((differences - mean) ** 2, weights=weights)
    return bool(mean > 1.5 * math.sqrt(variance * (weights @ weights)) / weights.sum())


def fit_path(radii: Iterable[Any], fit: FitAndScore, start: Point) -> list[Step]:
    """Fit at one radius after the other, each from the previous fit, until the path ends (PATIENCE, MAX_RADII)."""
    steps: list[Step] = []
    best, since = math.inf, 0
    for radius in radii:
        found, score = fit(radius, start)
        start = found.x
        steps.append(Step(radius, score, found))
        since = 0 if score < best else since
        since += score > best * (1 + WORSE_SHARE) or not found.binding
        best = min(best, score)
        if since >= PATIENCE:
            break
    return steps


def best_step(steps: list[Step]) -> Step:
    """The first step of the path that is not worse than the best step (WORSE_SHARE)."""
    best = min(step.score for step in steps)
    return next(step for step in steps if step.score <= best * (1 + WORSE_SHARE))


def refine_path(steps: list[Step], fit: FitAndScore) -> list[Step]:
    """Add radii to the path: in each round, the geometric means of the chosen radius and its two neighbours."""
    for _ in range(REFINEMENT_ROUNDS):
        at = steps.index(best_step(steps))
        for above in (at + 1, at):
            if 0 < above < len(steps):
                below = steps[above - 1]
                radius = math.sqrt(below.radius * steps[above].radius)
                found, score = fit(radius, below.fit.x)
                steps = [*steps[:above], Step(radius, score, found), *steps[above:]]
    return steps


def increasing_radii(first: float) -> list[float]:
    """Radii of the path in increasing order, starting at a quarter of ``first``."""
    return [first / 4 * RADIUS_RATIO**k for k in range(MAX_RADII)]
