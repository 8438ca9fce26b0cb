"""Chooses loss, rank or radius, and scale of a large table on a sample of its rows and columns. Then all entries are fitted once.

Each path of radii takes dozens of passes over the entries, and several losses are compared. For more than MAX_SEARCHED_ENTRIES
entries, this would take ten times as long as a fit whose settings are known. Rows and columns are sampled with the same
probability, so that the sample has about the shape of the table. The nuclear norm of a matrix whose entries have the same
magnitude is proportional to the square root of its number of rows times its number of columns. The radius is extended in this
proportion.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from condgrad.learn.completion.choice import choose
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.path import (
    ALL_ENTRIES,
    BOUNDED_LOSSES,
    MAX_ROUNDS,
    MIN_SCALE_SHARE,
    PILOT_LOSS,
    REPEAT_BELOW,
    Fit,
)
from condgrad.learn.completion.robust_scale import median_scale
from condgrad.learn.completion.validation import HeldOut
from condgrad.objectives import Completion

MAX_SEARCHED_ENTRIES = 2_000_000
"""Maximum number of entries for which all entries are used to choose the settings."""
SAMPLED_ENTRIES = 500_000
"""Approximate number of entries of the sample."""
PROBED_ENTRIES = 100_000
"""Number of entries whose residuals determine the width of the loss while all entries are fitted."""


def choose_on_sample(fit: Fit) -> Model:
    """Choose all settings on a sample of rows and columns. Returns a first model of all entries with these settings."""
    entries: Completion = fit.all_entries
    pattern, (m, n) = entries.pattern, entries.pattern.shape
    share = np.sqrt(SAMPLED_ENTRIES / pattern.size)
    of_rows, of_cols = (np.sort(fit.rng.permutation(size)[: max(int(share * size), 1)]) for size in (m, n))
    at_row, at_col = np.full(m, -1), np.full(n, -1)
    at_row[of_rows], at_col[of_cols] = np.arange(len(of_rows)), np.arange(len(of_cols))
    inside = np.flatnonzero(at_row[pattern.rows] >= 0)
    inside = inside[at_col[pattern.cols[inside]] >= 0]
    if len(inside) < SAMPLED_ENTRIES / 10:  # the entries are concentrated on few rows or columns
        return choose(fit, np.inf)
    shape = len(of_rows), len(of_cols)
    sample = Completion(at_row[pattern.rows[inside]], at_col[pattern.cols[inside]], entries.values[inside], shape)
    fit.all_entries = sample
    chosen = replace(choose(fit, np.inf), state=None)
    fit.all_entries = entries
    del sample, inside
    return extended(fit, chosen, float(np.sqrt(m * n / (shape[0] * shape[1]))))


def extended(fit: Fit, chosen: Model, factor: float) -> Model:
    """Fit all entries with the settings of a model of a sample. The radius is multiplied by the factor.

    The fit starts with a wide loss, whose width follows the scale of the residuals, until the scale no longer decreases.
    """
    entries: Completion = fit.all_entries
    some = fit.rng.choice(entries.pattern.size, min(PROBED_ENTRIES, entries.pattern.size), replace=False)
    probe = HeldOut(entries.pattern.row_of(some), entries.pattern.cols[some], entries.values[some])
    radius = factor * chosen.radius
    model = fit.biases_only(entries)
    fit.min_sigma = max(fit.smallest_scale(), MIN_SCALE_SHARE * model.sigma)
    fit.substitute = PILOT_LOSS if fit.loss in BOUNDED_LOSSES else None
    now = probe.validate(fit, replace(model, rank=chosen.rank))
    ball_radius = radius if chosen.rank is None else 4 * radius
    for _ in range(MAX_ROUNDS):
        before = now
        model = fit.improve(entries, fit.with_wider_loss(now.model), ball_radius, ALL_ENTRIES)
        now = probe.validate(fit, model)
        fit.partial_model = replace(now.model, radius=radius)
        fit.report(f"all entries, scale {now.model.sigma:.4g}", 5)
        if now.error > REPEAT_BELOW * before.error:
            break
    fit.substitute = None
    x = now.model.x
    share = x.rank * (sum(entries.pattern.shape) - x.rank) / entries.pattern.size  # degrees of freedom of each entry
    sigma = median_scale(now.residuals) / np.sqrt(1 - min(share, 0.5))
    sigma = fit.sigma or min(chosen.sigma, max(sigma, fit.min_sigma))  # that of the sample is larger
    return replace(now.model, loss=fit.named_loss(sigma) or chosen.loss, sigma=sigma, radius=radius)
