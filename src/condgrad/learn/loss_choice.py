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


def preferred(name: str, new: np.ndarray, old: np.ndarray, weights: np.ndarray | None, scale: float) -> bool:
    """Whether a fit with the loss of this name is preferred to the best fit so far.

    A redescending loss is preferred if its errors have a gap between small and gross ones (:func:`has_gap`), or if its median
    error is much smaller and its mean error is not larger. Otherwise, and for convex losses, there must be evidence: the sum of
    the t statistics of the differences of the absolute errors and of the squared errors. Before errors are squared, they are
    limited to a multiple of the scale of the data. A redescending loss needs more evidence.

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
    new, old = np.abs(new), np.abs(old)
    redescending = name not in CONVEX_LOSSES
    if redescending:
        much_smaller = np.median(new) < MUCH_SMALLER * np.median(old)
        if has_gap(new, weights) or (much_smaller and new.mean() <= old.mean()):
            return True
    limited = [np.square(np.minimum(errors, LIMIT * scale)) for errors in (new, old)]
    share = np.ones((len(new), 1)) if weights is None else (weights / weights.mean())[:, None]
    squared = t_statistic((share * (limited[1] - limited[0])).sum(axis=1))
    total = t_statistic((share * (old - new)).sum(axis=1)) + squared
    evidence = total if squared > -LESS_ACCURATE else min(total, squared)
    return evidence > (REDESCENDING_EVIDENCE if redescending else 0.0)


def has_gap(errors: np.ndarray, weights: np.ndarray | None) -> bool:
    """Whether some absolute errors are gross, and few of the others are large. Tails of real structure have no such gap."""
    scale = clipped_scale(errors, weights)
    gross = np.count_nonzero(errors > GAP[1] * scale)
    return bool(np.count_nonzero(errors > GAP[0] * scale) - gross < GAP_SHARE * gross)
