"""The radius of a ball and the size of errors, found on held-out data along a path of radii."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from condgrad.driver import Result
from condgrad.learn.completion.robust_scale import CONVEX, loss_for, spread
from condgrad.learn.robust_start import clipped_scale
from condgrad.objectives import Loss
from condgrad.protocols import Point

RATIO, PATIENCE, LONGEST = 1.5, 5, 40
"""Of the path of radii: how they grow, after how many that are worse, or do not bind, it ends, and at the latest."""
WORSE = 2e-3
"""By this share a held-out loss must be above the best to count as worse: of those that do not, the smallest radius is taken."""
ROUNDS = 3
"""So often the path is refined about the radius chosen."""
ROUGH = 10.0
"""Fits on the path are made to a tolerance so many times larger."""
NOISELESS = 1e-2
"""Errors are taken to be at least this share of the spread of the data: below, there is nothing to be robust against."""
SETTLED = 0.95
"""Sigma is found when another fit with it would make it no smaller than this share."""


NEAR = 1
"""So many radii on each side of the best are tried again with a smaller sigma."""


class Fit(NamedTuple):
    x: Point
    result: Result
    binding: bool
    """Whether the constraint holds x back."""


class Data(Protocol):
    """What can be fitted under a constraint and looked at afterwards."""

    @property
    def weights(self) -> np.ndarray | None:
        """Of the rows; None where all are equal."""

    def at(self, loss: Loss, radius: Any, start: Point, scale: float) -> Fit:
        """The fit of the data / scale, times the scale."""

    def errors(self, x: Point) -> np.ndarray:
        """Those of x, a column for each task."""

    def spread(self) -> float:
        """Of the data, never 0: the unit to begin with."""

    def first_radius(self, scale: float) -> float:
        """Where least squares would end along the first vertex, of the data cut at the scale."""

    def robust_start(self) -> Point | None:
        """Coefficients from which a redescending loss can begin; None where the data have too few rows for one."""

    def norm(self, x: Point) -> float:
        """Radius of the smallest ball that holds x."""

    def coarseness(self) -> float:
        """The step between values of the data, as the 1 of counts; 0 where there is none."""


@dataclass(frozen=True, eq=False)
class Step:
    radius: Any
    score: float
    fit: Fit


class Found(NamedTuple):
    fit: Fit
    radius: Any
    sigma: float
    steps: list[Step]


Scored = Callable[[Any, Point], tuple[Fit, float]]
"""(radius, start) -> the fit and its held-out loss."""


def robust_fit(
    data: Data,
    split: Callable[[], tuple[Data, Data]],
    loss: str,
    radius: Any,
    sigma: float | None,
    zero: Point,
    unconstrained: bool = False,
) -> Found:
    """The fit, with the radius found where it is "auto", and sigma where it is None and the loss has one.

    With ``unconstrained`` the fit without a ball is a candidate beside the radii.
    """
    steps: list[Step] = []
    start, scale = zero, sigma or data.spread()
    if radius == "auto" or (sigma is None and loss != "squared"):
        train, held = split()
        begin = None if loss in CONVEX else train.robust_start()
        if begin is None:
            steps, scale = _search(train, held, loss, radius, sigma, scale, zero)
            best = chosen(steps)
        else:
            least = max(NOISELESS * scale, data.coarseness() / 2)
            steps, best, scale = _search_from(begin, train, held, loss, radius, sigma, least, unconstrained)
        radius, start = best.radius, best.fit.x
    elif loss not in CONVEX:
        begin = data.robust_start()
        start = data.at(loss_for("huber", 1.0), radius, zero, scale).x if begin is None else begin
    return Found(data.at(loss_for(loss, 1.0), radius, start, scale), radius, scale, steps)


def _search(
    train: Data, held: Data, name: str, radius: Any, sigma: float | None, scale: float, zero: Point
) -> tuple[list[Step], float]:
    """Along the radii with Huber's loss, which has no bad minima and finds sigma; then with the loss, from each of its fits, and,
    while its errors are smaller still, near the best of them again."""
    auto = radius == "auto"
    radii = rising(train.first_radius(scale)) if auto else [radius]
    pilot_name = "squared" if name == "squared" else "huber"
    fixed = sigma or (scale if name == "squared" else None)
    spreads = [scale]

    def pilot(radius: Any, start: Point) -> tuple[Fit, float]:
        width = fixed or min(spreads)
        fit = train.at(loss_for(pilot_name, 1.0), radius, start, width)
        errors = held.errors(fit.x)
        if fixed:
            return fit, mean_loss(loss_for(pilot_name, width), errors, held.weights)
        spreads.append(max(spread(errors, held.weights), NOISELESS * scale))
        return fit, spreads[-1]

    steps = path(radii, pilot, zero)
    if name in CONVEX and fixed:
        return (refined(steps, pilot) if auto else steps), fixed
    starts, best = {step.radius: step.fit.x for step in steps}, chosen(steps).radius
    while not fixed:
        before = min(spreads)
        starts[best] = pilot(best, starts[best])[0].x
        if spreads[-1] > SETTLED * before:
            fixed = min(spreads)

    def again(starts: dict[Any, Point], width: float) -> tuple[list[Step], float]:
        """Along these radii with the loss, and the spread of the errors that are left."""

        def robust(radius: Any, start: Point) -> tuple[Fit, float]:
            if radius not in starts:  # a fit at a smaller radius may be a bad place to begin: Huber's never is
                starts[radius] = train.at(loss_for("huber", 1.0), radius, start, width).x
            fit = train.at(loss_for(name, 1.0), radius, starts[radius], width)
            return fit, mean_loss(loss_for(name, width), held.errors(fit.x), held.weights)

        steps = path(list(starts), robust, zero)
        steps = refined(steps, robust) if auto else steps
        return steps, max(spread(held.errors(chosen(steps).fit.x), held.weights), NOISELESS * scale)

    steps, left = again(starts, fixed)
    while sigma is None and left < SETTLED * fixed:
        narrower, still_left = again(_near(steps), left)
        if still_left > left:  # too narrow to see the data
            break
        steps, fixed, left = narrower, left, still_left
    return steps, fixed


def _search_from(
    start: Point,
    train: Data,
    held: Data,
    name: str,
    radius: Any,
    sigma: float | None,
    least: float,
    unconstrained: bool,
) -> tuple[list[Step], Step, float]:
    """From a robust start: fits at falling radii, each begun at the next larger one, and scored with one width of the loss.

    Returns the path, the step that is chosen (without a radius where that is not clearly worse), and the scale.
    """
    width = sigma or max(_scale_at(start, train, held), least)
    begun_at: dict[float, Point] = {}

    def fit(radius: Any, _: Point) -> tuple[Fit, float]:
        size = math.inf if radius is None else radius
        larger = min((other for other in begun_at if other >= size), default=None)
        found = train.at(loss_for(name, 1.0), radius, start if larger is None else begun_at[larger], width)
        begun_at[size] = found.x
        return found, mean_loss(loss_for(name, width), held.errors(found.x), held.weights)

    if radius != "auto":
        steps = path([radius], fit, start)
        best = steps[0]
    else:
        largest = train.norm(start) * RATIO or 1.0
        steps = path([largest / RATIO**k for k in range(LONGEST)], fit, start)[::-1]
        steps = refined(steps, fit)
        best = ball = chosen(steps)
        if unconstrained:
            (free,) = path([None], fit, start)
            losses = [row_losses(loss_for(name, width), held.errors(step.fit.x)) for step in (ball, free)]
            # the ball is kept only where it is better by more than chance
            best = ball if clearly_positive(losses[1] - losses[0], held.weights) else free
    if sigma is None:
        width = max(_scale_at(best.fit.x, train, held), least)
    return steps, best, width


def _scale_at(x: Point, train: Data, held: Data) -> float:
    """Scale of the inliers' errors on all rows; training errors are enlarged by what fitting has taken from them.

    The held-out rows alone are too few: among 40 of them there may be 21 outliers where 45 % of all rows are.
    """
    shrunk = math.sqrt(1 - min(len(x) / len(train.errors(x)), 0.5))
    errors = np.concatenate([held.errors(x), train.errors(x) / shrunk])
    weights = None if held.weights is None or train.weights is None else np.concatenate([held.weights, train.weights])
    return clipped_scale(errors, weights)


def _near(steps: list[Step]) -> dict[Any, Point]:
    """The radii about the chosen one, with their fits to begin at."""
    at = steps.index(chosen(steps))
    return {step.radius: step.fit.x for step in steps[max(at - NEAR, 0) : at + NEAR + 1]}


def row_losses(loss: Loss, errors: np.ndarray) -> np.ndarray:
    return loss.value(errors, np.zeros_like(errors)).sum(axis=1)


def mean_loss(loss: Loss, errors: np.ndarray, weights: np.ndarray | None) -> float:
    return float(np.average(row_losses(loss, errors), weights=weights))


def clearly_positive(differences: np.ndarray, weights: np.ndarray | None) -> bool:
    """Whether the mean is above 1.5 times its standard error: by chance it is in one case of fifteen."""
    weights = np.ones(len(differences)) if weights is None else weights
    mean = np.average(differences, weights=weights)
    variance = np.average((differences - mean) ** 2, weights=weights)
    return bool(mean > 1.5 * math.sqrt(variance * (weights @ weights)) / weights.sum())


def path(radii: Iterable[Any], fit: Scored, start: Point) -> list[Step]:
    """Fits along rising radii, each begun where the last one ended, until larger ones help no more."""
    steps: list[Step] = []
    best, since = math.inf, 0
    for radius in radii:
        found, score = fit(radius, start)
        start = found.x
        steps.append(Step(radius, score, found))
        since = 0 if score < best else since
        since += score > best * (1 + WORSE) or not found.binding
        best = min(best, score)
        if since >= PATIENCE:
            break
    return steps


def chosen(steps: list[Step]) -> Step:
    """The smallest radius that is not worse than the best."""
    best = min(step.score for step in steps)
    return next(step for step in steps if step.score <= best * (1 + WORSE))


def refined(steps: list[Step], fit: Scored) -> list[Step]:
    """The path with more radii about the chosen one: on each side halfway to its neighbour, then once more, and again."""
    for _ in range(ROUNDS):
        at = steps.index(chosen(steps))
        for above in (at + 1, at):
            if 0 < above < len(steps):
                below = steps[above - 1]
                radius = math.sqrt(below.radius * steps[above].radius)
                found, score = fit(radius, below.fit.x)
                steps = [*steps[:above], Step(radius, score, found), *steps[above:]]
    return steps


def rising(first: float) -> list[float]:
    return [first / 4 * RATIO**k for k in range(LONGEST)]
