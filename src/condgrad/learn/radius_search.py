"""Chooses the radius of the ball and the scale of the errors of a robust fit, by the held-out loss along a path of radii."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from condgrad.learn.completion.robust_scale import AUTO, CONVEX_LOSSES, loss_for, median_scale
from condgrad.learn.folds import Coefficients, Folds
from condgrad.learn.linear_problem import Fit, LinearProblem
from condgrad.learn.loss_choice import AUTO_LOSSES, evidence, preferred
from condgrad.learn.robust_start import clipped_scale
from condgrad.objectives import Loss

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


@dataclass(frozen=True, eq=False)
class Step:
    """One fit of the path."""

    radius: Any
    score: float
    """Held-out loss of the fit."""
    fit: Fit


class Searched(NamedTuple):
    """The constraint, the radius and the scale that were chosen with one loss, the coefficients, and the path."""

    constraint: str | None
    radius: Any
    sigma: float
    x: Coefficients
    """Coefficients of each fold."""
    steps: list[Step]


class RobustFit(NamedTuple):
    """The final fit, its loss, the chosen constraint, radius and scale, the path, and the losses that were compared."""

    fit: Fit
    loss: str
    constraint: str | None
    radius: Any
    sigma: float
    steps: list[Step]
    candidates: dict[str, float]
    """Mean absolute held-out error for each loss that was compared."""


FitAndScore = Callable[[Any, Any], tuple[Fit, float]]
"""Function ``f(radius, start)`` that returns a fit and its held-out loss."""


def robust_fit(
    data: LinearProblem,
    split: Callable[[], tuple[Folds, Folds]],
    loss: str,
    constraints: tuple[str | None, ...],
    radius: Any,
    sigma: float | None,
    unconstrained: bool = False,
) -> RobustFit:
    """Fit the data with a robust loss.

    If the radius is "auto", it is chosen on held-out data. If sigma is None and the loss depends on sigma, it is estimated. If
    there are several constraints, held-out data decide. With ``unconstrained``, a fit without a ball is also a candidate. If the
    loss is "auto", a convex loss is used unless held-out data prefer a redescending loss.
    """
    names = AUTO_LOSSES if loss == AUTO else (loss,)
    candidates: dict[str, float] = {}
    if loss == AUTO or radius == "auto" or (sigma is None and loss != "squared"):
        search = _Search(data, *split(), radius, sigma)
        start = search.train.robust_start() if unconstrained or names[-1] not in CONVEX_LOSSES else None
        best: Searched | None = None
        for name in names:
            if unconstrained and start is not None:
                found = search.without_ball(name, start)
            else:
                # a redescending loss takes the constraint of the best convex fit, because it starts from such a fit
                tried = constraints if best is None or name in CONVEX_LOSSES else (best.constraint,)
                found = search.best_constraint(name, tried, None if name in CONVEX_LOSSES else start)
            errors = search.held_out.errors(found.x)
            if loss == AUTO:
                candidates[name] = float(np.average(np.abs(errors).mean(axis=1), weights=search.held_out.weights))
            if best is None or search.preferred(name, found, best):
                best, chosen = found, name
        assert best is not None
        if unconstrained and start is not None and radius == "auto":
            best = search.with_ball(chosen, best, constraints)
        constraint, radius, sigma, (x, *_), steps = best
    else:
        chosen, constraint, sigma, x, steps = loss, constraints[0], sigma or data.median_scale(), data.zero(), []
        if loss not in CONVEX_LOSSES:
            robust = data.robust_start()
            x = data.fit(loss_for("huber", 1.0), radius, x, sigma).x if robust is None else robust
    fit = data.with_constraint(constraint).fit(loss_for(chosen, 1.0), radius, x, sigma)
    return RobustFit(fit, chosen, constraint, radius, sigma, steps, candidates)


class _Pilot(NamedTuple):
    """A path with a convex pilot loss, the scale of the errors, and the coefficients at each radius."""

    steps: list[Step]
    scale: float
    starts: dict[Any, Coefficients]


@dataclass(frozen=True, eq=False)
class _Search:
    """Fits to the training rows of all folds, which are compared on the held-out rows."""

    data: LinearProblem
    """All rows. They are not fitted here."""
    train: Folds
    held_out: Folds
    radius: Any
    """The given radius, "auto", or None for no ball."""
    sigma: float | None
    """The given scale of the errors, or None."""
    pilots: dict[str | None, _Pilot] = field(default_factory=dict)
    """Paths with Huber's loss, by constraint."""

    @cached_property
    def scale(self) -> float:
        """Scale of the data."""
        return self.data.median_scale()

    @cached_property
    def least(self) -> float:
        """Lower bound on the scale of the errors."""
        return max(MIN_SCALE_SHARE * (self.sigma or self.scale), self.data.quantization_step() / 2)

    def preferred(self, name: str, new: Searched, old: Searched) -> bool:
        """Whether held-out rows prefer a fit with the loss of this name to the best fit so far."""
        errors = self.held_out.errors(new.x), self.held_out.errors(old.x)
        return preferred(name, *errors, self.held_out.weights, self.scale)

    def without_ball(self, name: str, start: Coefficients) -> Searched:
        """Fit with this loss from a robust start, in the given ball or without one."""
        width = self.sigma or self._inlier_scale(start)
        radius = None if self.radius == "auto" else self.radius
        fit = self.train.fit(loss_for(name, 1.0), radius, start, width)
        constraint = None if radius is None else self.data.constraint
        return Searched(constraint, radius, self.sigma or self._inlier_scale(fit.x), fit.x, [])

    def with_ball(self, name: str, free: Searched, constraints: tuple[str | None, ...]) -> Searched:
        """The best fit in a ball, if it is clearly better than the fit without a ball; else the fit without a ball."""
        found = self._best([self._decreasing(name, constraint, free.x, free.sigma) for constraint in constraints])
        losses = [row_losses(loss_for(name, free.sigma), self.held_out.errors(each.x)) for each in (free, found)]
        # a difference below WORSE_SHARE may come from the tolerance of the fits
        if clearly_positive(losses[0] - (1 + WORSE_SHARE) * losses[1], self.held_out.weights):
            return found
        return free._replace(steps=found.steps)

    def best_constraint(self, name: str, constraints: tuple[str | None, ...], start: Coefficients | None) -> Searched:
        """Choose radius and scale with this loss and each constraint. Returns those with the smallest held-out errors."""
        if start is None:
            return self._best([self._from_pilot(name, constraint) for constraint in constraints])
        width = self.sigma or self._inlier_scale(start)
        return self._best([self._decreasing(name, constraint, start, width) for constraint in constraints])

    def _best(self, found: list[Searched]) -> Searched:
        """The fit with the smallest held-out errors."""
        best = found[0]
        for other in found[1:]:
            errors = self.held_out.errors(other.x), self.held_out.errors(best.x)
            if evidence(*errors, self.held_out.weights, self.scale) > 0:
                best = other
        return best

    def _decreasing(self, name: str, constraint: str | None, start: Coefficients, width: float) -> Searched:
        """Follow the path with decreasing radii from a robust start. Each fit starts from the fit at the next larger radius.

        The held-out losses of all fits are computed with the same sigma.
        """
        train = self.train.with_constraint(constraint)
        fitted: dict[float, Coefficients] = {}

        def fit(radius: Any, _: Any) -> tuple[Fit, float]:
            larger = min((other for other in fitted if other >= radius), default=None)
            found = train.fit(loss_for(name, 1.0), radius, start if larger is None else fitted[larger], width)
            fitted[radius] = found.x
            return found, self._mean_loss(name, width, found)

        if self.radius == "auto":
            largest = train.norm(start) * RADIUS_RATIO or 1.0
            steps = fit_path([largest / RADIUS_RATIO**k for k in range(MAX_RADII)], fit, start)[::-1]
            steps = refine_path(steps, fit)
        else:
            steps = fit_path([self.radius], fit, start)
        best = best_step(steps)
        return Searched(constraint, best.radius, self.sigma or self._inlier_scale(best.fit.x), best.fit.x, steps)

    def _from_pilot(self, name: str, constraint: str | None) -> Searched:
        """Follow the path with a convex pilot loss, then with the given loss.

        The pilot loss is the squared loss if this is the given loss, else Huber's loss. The fits with the pilot loss determine
        sigma. The fits with the given loss start from them. As long as the held-out errors are smaller than sigma, the radii
        around the best radius are fitted again with a smaller sigma.
        """
        auto, train = self.radius == "auto", self.train.with_constraint(constraint)
        if name == "squared" or (name == "huber" and self.sigma):
            width = self.sigma or self.scale

            def convex(radius: Any, start: Coefficients) -> tuple[Fit, float]:
                fit = train.fit(loss_for(name, 1.0), radius, start, width)
                return fit, self._mean_loss(name, width, fit)

            steps = fit_path(self._radii(train), convex, train.zero())
            steps = refine_path(steps, convex) if auto else steps
            best = best_step(steps)
            return Searched(constraint, best.radius, width, best.fit.x, steps)
        if constraint not in self.pilots:
            self.pilots[constraint] = self._pilot(train)
        fixed, starts = self.pilots[constraint].scale, dict(self.pilots[constraint].starts)

        def fit_radii(starts: dict[Any, Coefficients], width: float) -> tuple[list[Step], float]:
            """Fit at the radii that are the keys of ``starts``, with the given loss of this width. Returns the path, and the
            scale of the held-out errors of its best fit."""

            def robust(radius: Any, start: Coefficients) -> tuple[Fit, float]:
                if (
                    radius not in starts
                ):  # a fit with the convex loss is a better start than the fit at a smaller radius
                    starts[radius] = train.fit(loss_for("huber", 1.0), radius, start, width).x
                fit = train.fit(loss_for(name, 1.0), radius, starts[radius], width)
                return fit, self._mean_loss(name, width, fit)

            steps = fit_path(list(starts), robust, train.zero())
            steps = refine_path(steps, robust) if auto else steps
            return steps, self._median_scale(best_step(steps).fit)

        steps, error_scale = fit_radii(starts, fixed)
        while self.sigma is None and error_scale < SETTLED_SCALE * fixed:
            narrower, new_scale = fit_radii(_neighbours(steps), error_scale)
            if new_scale > error_scale:  # the loss has become so narrow that it ignores most of the data
                break
            steps, fixed, error_scale = narrower, error_scale, new_scale
        best = best_step(steps)
        return Searched(constraint, best.radius, fixed, best.fit.x, steps)

    def _pilot(self, train: Folds) -> _Pilot:
        """Follow the path with Huber's loss, whose width is the smallest scale of held-out errors so far."""
        scales = [self.scale]

        def fit_huber(radius: Any, start: Coefficients) -> tuple[Fit, float]:
            fit = train.fit(loss_for("huber", 1.0), radius, start, self.sigma or min(scales))
            if self.sigma:
                return fit, self._mean_loss("huber", self.sigma, fit)
            scales.append(self._median_scale(fit))
            return fit, scales[-1]

        steps = fit_path(self._radii(train), fit_huber, train.zero())
        starts, best = {step.radius: step.fit.x for step in steps}, best_step(steps).radius
        fixed = self.sigma
        while not fixed:
            before = min(scales)
            starts[best] = fit_huber(best, starts[best])[0].x
            if scales[-1] > SETTLED_SCALE * before:
                fixed = min(scales)
        return _Pilot(steps, fixed, starts)

    def _radii(self, train: Folds) -> list[Any]:
        """Radii of a path from small to large ones; the given radius if there is one."""
        return (
            increasing_radii(train.first_radius(self.sigma or self.scale)) if self.radius == "auto" else [self.radius]
        )

    def _mean_loss(self, name: str, width: float, fit: Fit) -> float:
        """Held-out loss."""
        return mean_loss(loss_for(name, width), self.held_out.errors(fit.x), self.held_out.weights)

    def _median_scale(self, fit: Fit) -> float:
        """Scale of the held-out errors."""
        found = median_scale(self.held_out.errors(fit.x), self.held_out.weights)
        return max(found, MIN_SCALE_SHARE * self.scale)

    def _inlier_scale(self, x: Coefficients) -> float:
        """Scale of the errors of the inliers: the geometric mean of those of the training errors and of the held-out errors.

        Training errors are too small, because x fits their noise too. Held-out errors are too large by nearly the same factor.
        """
        scales = [clipped_scale(rows.errors(x), rows.weights) for rows in (self.train, self.held_out)]
        return max(math.sqrt(scales[0] * scales[1]), self.least)


def _neighbours(steps: list[Step]) -> dict[Any, Coefficients]:
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
    """Whether the weighted mean is more than 2 standard errors above 0. By chance, this has a probability of 1/44."""
    weights = np.ones(len(differences)) if weights is None else weights
    mean = np.average(differences, weights=weights)
    variance = np.average((differences - mean) ** 2, weights=weights)
    return bool(mean > 2 * math.sqrt(variance * (weights @ weights)) / weights.sum())


def fit_path(radii: Iterable[Any], fit: FitAndScore, start: Any) -> list[Step]:
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
