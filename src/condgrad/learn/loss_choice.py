"""Chooses the loss of a regression: a redescending loss replaces a convex loss only if held-out rows prefer it.

The squared errors of a fit that ignores outliers are large. So are those of a fit that ignores the tail of real structure, such
as the large values of counts. The two cases differ in the sizes of the errors: gross errors are far from all others.
"""

from __future__ import annotations

import numpy as np

from condgrad.learn.completion.choice import LESS_ACCURATE, LIMIT, t_statistic
from condgrad.learn.completion.pursuit import GAP, GAP_SHARE, MUCH_SMALLER
from condgrad.learn.completion.robust_scale import CONVEX_LOSSES
from condgrad.learn.robust_start import clipped_scale

AUTO_LOSSES = ("squared", "huber", "welsch")
"""Losses that are compared, in the order in which they are tried."""
REDESCENDING_EVIDENCE = 2.0
"""Evidence that a redescending loss needs if there is no gap in its errors, so that they may be the tail of real structure."""
LARGE, SKEWED_ERRORS = 2.0, 3.0
"""Errors above LARGE times the scale of the inliers are large. Errors are skewed if the sum of the signs of large ones is more
than SKEWED_ERRORS standard deviations from 0."""


def preferred(name: str, new: np.ndarray, old: np.ndarray, weights: np.ndarray | None, scale: float) -> bool:
    """Whether a fit with the loss of this name is preferred to the best fit so far.

    A redescending loss is preferred if its errors have a gap between small and gross ones (:func:`has_gap`), or if its median
    error is much smaller and its mean error is not larger. Otherwise there must be evidence (:func:`evidence`). A redescending
    loss needs more evidence.

    If many more errors are large on one side than on the other (:func:`is_skewed`), absolute errors are no evidence. They are
    smallest at the median of the targets, but the mean is sought. Then every loss needs the evidence of squared errors alone, and
    as much of it as a redescending loss.

    Parameters
    ----------
    name : str
        The loss of the new fit.
    new, old : ndarray of shape (rows, tasks)
        Held-out errors of the new fit and of the best fit so far.
    weights : ndarray of shape (rows,) or None
        Weights of the rows; None: all are equal.
    scale : float
        Scale of the data.
    """
    redescending = name not in CONVEX_LOSSES
    if redescending:
        sizes, before = np.abs(new), np.abs(old)
        much_smaller = np.median(sizes) < MUCH_SMALLER * np.median(before)
        if has_gap(sizes, weights) or (much_smaller and sizes.mean() <= before.mean()):
            return True
    if is_skewed(new, weights):
        return squared_evidence(new, old, weights, scale) > REDESCENDING_EVIDENCE
    return evidence(new, old, weights, scale) > (REDESCENDING_EVIDENCE if redescending else 0.0)


def evidence(new: np.ndarray, old: np.ndarray, weights: np.ndarray | None, scale: float) -> float:
    """Evidence that the errors ``new`` are smaller than the errors ``old`` of another fit to the same rows.

    It is the sum of the t statistics of the differences of the absolute errors and of the squared errors.
    """
    squared = squared_evidence(new, old, weights, scale)
    total = t_statistic((_shares(new, weights) * (np.abs(old) - np.abs(new))).sum(axis=1)) + squared
    return total if squared > -LESS_ACCURATE else min(total, squared)


def squared_evidence(new: np.ndarray, old: np.ndarray, weights: np.ndarray | None, scale: float) -> float:
    """The t statistic of the differences of squared errors. Errors are first limited to a multiple of the scale of the data."""
    limited = [np.square(np.minimum(np.abs(errors), LIMIT * scale)) for errors in (new, old)]
    return t_statistic((_shares(new, weights) * (limited[1] - limited[0])).sum(axis=1))


def is_skewed(errors: np.ndarray, weights: np.ndarray | None) -> bool:
    """Whether many more errors are large and positive than large and negative, or the reverse.

    An error is large if it is more than twice the scale of the inliers. Signs are counted, because the sizes of a few errors say
    little.
    """
    signs = np.where(np.abs(errors) > LARGE * clipped_scale(errors, weights), np.sign(errors), 0.0)
    signs = _shares(errors, weights) * signs
    return bool(abs(signs.sum()) > SKEWED_ERRORS * np.linalg.norm(signs))


def _shares(errors: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Weights of the rows, divided by their mean."""
    return np.ones((len(errors), 1)) if weights is None else (weights / weights.mean())[:, None]


def has_gap(errors: np.ndarray, weights: np.ndarray | None) -> bool:
    """Whether some absolute errors are gross, and few of the others are large. Tails of real structure have no such gap."""
    scale = clipped_scale(errors, weights)
    gross = np.count_nonzero(errors > GAP[1] * scale)
    return bool(np.count_nonzero(errors > GAP[0] * scale) - gross < GAP_SHARE * gross)
