"""Chooses the loss and the radius of a classifier by the mistakes on held-out rows, in several folds.

At each radius, the fit with the bounded loss starts from the fit with the convex loss. Losses are compared by a smooth count of
the mistakes, which is the bounded loss of scores that are scaled to a common size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from condgrad.learn.linear_problem import LinearProblem
from condgrad.learn.radius_search import Fit, Step, best_step, fit_path, increasing_radii, refine_path
from condgrad.objectives import Logistic, Loss, Sigmoid
from condgrad.objectives._matrices import times
from condgrad.objectives.softmax import CrossEntropy, SoftmaxError

CONVEX, BOUNDED = "logistic", "sigmoid"
MEDIAN_MARGIN = 3.0
"""Held-out scores are scaled to this median margin before mistakes are counted. A small radius makes all scores small, and the
bounded loss of scores near 0 hardly depends on the label."""


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

    folds: list[tuple[LinearProblem, LinearProblem]]
    """Problems of the training rows and of the held-out rows of each fold."""
    names: tuple[str, ...]
    """Losses to be compared, the convex loss first. If only the convex loss is fitted, it is the held-out loss too: it measures
    probabilities. Otherwise the held-out loss is the smooth count of the mistakes."""
    convex: dict[float, list[Fit]] = field(default_factory=dict)
    """Fits of all folds with the convex loss, by radius."""

    def path(self, name: str, radii: list[float] | None) -> list[Step]:
        """Follow a path of radii with this loss. None: the radii are chosen by the data."""

        def fit(radius: float, _: Any) -> tuple[Fit, float]:
            return self._fit(name, radius)

        train = self.folds[0][0]
        return refine_path(fit_path(radii or increasing_radii(train.first_radius(1.0)), fit, train.zero()), fit)

    def _fit(self, name: str, radius: float) -> tuple[Fit, float]:
        """Fit all folds. Returns the fit of the first fold, and the mean loss of the held-out rows of all folds."""
        losses = losses_for(self.folds[0][0].Y.shape[1])
        fits = self._convex(losses[CONVEX], radius)
        if name == BOUNDED:
            fits = [train.fit(losses[BOUNDED], radius, fit.x) for (train, _), fit in zip(self.folds, fits, strict=True)]
        each, weights = [], []
        for (_, rows), fit in zip(self.folds, fits, strict=True):
            scores = times(rows.design.A, fit.x)
            if BOUNDED in self.names:
                found = losses[BOUNDED].value(scale_margins(scores), rows.Y)
            else:
                found = losses[CONVEX].value(scores, rows.Y)
            each.append(found.reshape(len(scores)))
            weights.append(np.ones(len(scores)) if rows.weights is None else rows.weights)
        return fits[0], float(np.average(np.concatenate(each), weights=np.concatenate(weights)))

    def _convex(self, loss: Loss, radius: float) -> list[Fit]:
        """Fits of all folds with the convex loss, which start from those of the next smaller radius."""
        if radius not in self.convex:
            smaller = max((other for other in self.convex if other < radius), default=None)
            starts = [train.zero() for train, _ in self.folds]
            if smaller is not None:
                starts = [fit.x for fit in self.convex[smaller]]
            self.convex[radius] = [
                train.fit(loss, radius, start) for (train, _), start in zip(self.folds, starts, strict=True)
            ]
        return self.convex[radius]


def choose(searches: list[LabelSearch], radii: list[float] | None) -> tuple[int, dict[str, list[Step]]]:
    """Choose the design matrix by its held-out loss with the first loss. Returns its index, and the paths with all losses."""
    first, *others = searches[0].names
    paths = [search.path(first, radii) for search in searches]
    best = min(range(len(paths)), key=lambda index: best_step(paths[index]).score)
    return best, {first: paths[best]} | {name: searches[best].path(name, radii) for name in others}
