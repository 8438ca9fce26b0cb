"""Chooses the loss and the radius of a classifier by the mistakes on held-out rows, in several folds.

At each radius, the fit with the bounded loss starts from the fit with the convex loss. Losses are compared by a smooth count of
the mistakes, which is the bounded loss of scores that are scaled to a common size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from condgrad.learn.folds import Folds
from condgrad.learn.linear_problem import Fit
from condgrad.learn.radius_search import Step, best_step, fit_path, increasing_radii, refine_path
from condgrad.objectives import Logistic, Loss, Sigmoid
from condgrad.objectives._matrices import times
from condgrad.objectives.softmax import CrossEntropy, SoftmaxError

CONVEX, BOUNDED = "logistic", "sigmoid"
MEDIAN_MARGIN = 6.0
"""Held-out scores are scaled to this median margin before mistakes are counted. A small radius makes all scores small, and the
bounded loss of scores near 0 hardly depends on the label. With a median margin of 3, the count depended much on the margins of
rows without mistakes; results hardly change between 5 and 12."""


def losses_for(columns: int) -> dict[str, Loss]:
    """The losses by name, for labels with one column (two classes) or with a column for each class."""
    return (
        {CONVEX: Logistic(), BOUNDED: Sigmoid()} if columns == 1 else {CONVEX: CrossEntropy(), BOUNDED: SoftmaxError()}
    )


def scale_margins(scores: np.ndarray) -> np.ndarray:
    """Scale the scores so that the median margin is MEDIAN_MARGIN.

    The margin of a row is the difference of its two largest scores; with one column, the absolute value of the score.
    """
    top = np.sort(scores, axis=1)[:, -2:]
    margin = float(np.median(np.abs(scores[:, 0]) if scores.shape[1] == 1 else top[:, 1] - top[:, 0]))
    return scores * (MEDIAN_MARGIN / (margin or 1.0))


@dataclass(frozen=True, eq=False)
class LabelSearch:
    """Fits of all folds, of the labels of one design matrix."""

    train: Folds
    held_out: Folds
    names: tuple[str, ...]
    """Losses to be compared, the convex loss first. If only the convex loss is fitted, it is the held-out loss too: it measures
    probabilities. Otherwise the held-out loss is the smooth count of the mistakes."""
    convex: dict[float, Fit] = field(default_factory=dict)
    """Fits with the convex loss, by radius."""

    def path(self, name: str, radii: list[float] | None) -> list[Step]:
        """Follow a path of radii with this loss. None: the radii are chosen by the data."""

        def fit(radius: float, _: Any) -> tuple[Fit, float]:
            return self._fit(name, radius)

        radii = radii or increasing_radii(self.train.first_radius(1.0))
        return refine_path(fit_path(radii, fit, self.train.zero()), fit)

    def _fit(self, name: str, radius: float) -> tuple[Fit, float]:
        """Fit all folds. Returns the fit, and the mean loss of the held-out rows."""
        losses = losses_for(self.train.problems[0].Y.shape[1])
        found = self._convex(losses[CONVEX], radius)
        if name == BOUNDED:
            found = self.train.fit(losses[BOUNDED], radius, found.x)
        loss, scaled = (losses[BOUNDED], scale_margins) if BOUNDED in self.names else (losses[CONVEX], np.asarray)
        each = [
            loss.value(scaled(times(rows.design.A, W)), rows.Y).reshape(len(rows.Y))
            for rows, W in zip(self.held_out.problems, found.x, strict=True)
        ]
        return found, float(np.average(np.concatenate(each), weights=self.held_out.weights))

    def _convex(self, loss: Loss, radius: float) -> Fit:
        """The fit with the convex loss, which starts from that of the next smaller radius."""
        if radius not in self.convex:
            smaller = max((other for other in self.convex if other < radius), default=None)
            start = self.train.zero() if smaller is None else self.convex[smaller].x
            self.convex[radius] = self.train.fit(loss, radius, start)
        return self.convex[radius]


def choose(searches: list[LabelSearch], radii: list[float] | None) -> tuple[int, dict[str, list[Step]]]:
    """Choose the design matrix by its held-out loss with the first loss. Returns its index, and the paths with all losses."""
    first, *others = searches[0].names
    paths = [search.path(first, radii) for search in searches]
    best = min(range(len(paths)), key=lambda index: best_step(paths[index]).score)
    return best, {first: paths[best]} | {name: searches[best].path(name, radii) for name in others}
