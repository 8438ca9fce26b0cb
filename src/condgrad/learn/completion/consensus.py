"""Consensus: a refit of rows and columns in which most entries are wrong, but a minority of the entries agree with a fit.

A regression by medians fails if most entries of a row are wrong. If wrong entries do not agree with each other, the right entries
can still be found: they are the largest set of entries that one fit explains within the scale of the errors. The set is searched
from many random subsets of the entries of the row. The other rows determine the column factors, which stay fixed.

A set of this size may also occur by chance, since many subsets are tried. The number of entries near the fit that are expected by
chance is therefore estimated from the entries a little further away. A refit is kept only if the expected number of sets of this
size is small (:func:`expected_by_chance`), and if the present fit does not explain the other entries of the row. In addition, the
errors of all refitted rows must be either small or gross. In a row of another kind, such as a holiday among working days, they
are not: some of its entries agree with the other rows, and the errors of the others have all sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import betaln, gammainc

from condgrad.learn.completion.biases import inlier_weights
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.observed import Observed
from condgrad.learn.completion.rescue import RIDGES, outlying_rows, with_rows
from condgrad.learn.completion.robust_scale import OUTLIER_THRESHOLD, loss_for

LOSS = "welsch"
SUBSETS, CONCENTRATIONS, REFINEMENTS = 3000, 3, 10
"""Number of random subsets of the entries of a row; of steps from each of them, in which the entries with the smallest errors are
fitted again; and of iterations of the best fit with Welsch's loss."""
CONCENTRATED_SHARE = 0.2
"""Share of the entries of the row that is fitted in a step (at least twice the number of parameters)."""
MAX_ENTRIES, MAX_PARAMETERS = 200, 20
"""If a row has more entries, a random sample of them is used. If it has more parameters, no row is refitted, because hardly any
random subset has right entries only."""
MAX_SHARE = 0.2
"""If more than this share of the rows have mostly outliers, the loss is too narrow for the data, and no row is refitted."""
RING = 4.0
"""Entries with errors between OUTLIER_THRESHOLD times the scale and RING times this limit tell how many errors are small by
chance."""
MAX_EXPECTED = 0.1
"""A refit is kept only if fewer sets of this size are expected by chance."""
MIN_PENALTY = 1e-9
"""Ridge penalty of a bias that has none otherwise, which makes the solution unique."""
GAP_SHARE = 0.05
"""The refits are kept only if the errors between OUTLIER_THRESHOLD times the scale and twice this limit are at most this share of
the smaller errors. In data with a heavy tail, or with rows of another kind, more errors are in between."""
EXPLAINED = 0.8
"""If the present fit explains this share of the variance of the entries outside the set, they are structure, not errors."""


def refit_by_consensus(
    objective: Any, model: Model, which: str | None, entries: Observed, rng: np.random.Generator
) -> Model:
    """Refit rows, then columns, in which most entries are outliers, to the largest set of entries that agree with a fit.

    ``which`` names the biases of the model: "both", "columns" or None. ``entries`` has the operations on the objective.
    """
    for axis, ridge in enumerate(RIDGES[which]):
        judged = replace(model, loss=loss_for(LOSS, model.sigma))
        parameters = int(np.count_nonzero(_strong(model))) + 1
        outlying = outlying_rows(entries, objective, judged, axis, which is not None, parameters)
        if parameters <= MAX_PARAMETERS and 0 < len(outlying) <= MAX_SHARE * objective.pattern.shape[axis]:
            model = _refit(entries, objective, model, axis, outlying, ridge, rng)
    return model


def _refit(
    entries: Observed,
    objective: Any,
    model: Model,
    axis: int,
    outlying: np.ndarray,
    ridge: float | None,
    rng: np.random.Generator,
) -> Model:
    """Search a set of agreeing entries in each of the rows (or columns) ``outlying``. ``ridge`` is the penalty of their biases;
    None if they have no bias."""
    across_axis, biases = 1 - axis, (model.biases.rows, model.biases.cols)
    P, values, Q = model.x.svd()
    sides, used = (P, Q), np.append(ridge is not None, _strong(model))
    columns = sides[across_axis] * values
    own, other, targets = entries.select(objective, axis, outlying)
    order = np.lexsort((other, own))  # the order of the entries differs on a cluster, and random subsets depend on it
    own, other, targets = own[order], other[order], targets[order]
    targets = (targets - model.biases.mean - biases[across_axis][other]) / model.sigma
    present = biases[axis][outlying][own] + np.einsum("ij,ij->i", sides[axis][outlying][own], columns[other])
    present /= model.sigma
    design = np.column_stack([np.full(len(columns), float(ridge is not None)), columns])[:, used] / model.sigma
    penalties = np.append(ridge or MIN_PENALTY, np.full(len(values), float(len(sides[axis]))))[used]
    found = np.zeros((len(outlying), len(used)))
    kept, errors = np.zeros(len(outlying), dtype=bool), np.zeros(len(targets))
    for k in range(len(outlying)):
        its = np.flatnonzero(own == k)
        u = consensus(design[other[its]], targets[its], present[its], penalties, rng)
        if u is not None:
            kept[k], found[k, used], errors[its] = True, u, np.abs(targets[its] - design[other[its]] @ u)
    if not kept.any() or not _has_gap(errors[kept[own]]):
        return model
    return with_rows(model, axis, outlying[kept], found[kept, 0], found[kept, 1:] * values)


def _has_gap(errors: np.ndarray) -> bool:
    """Whether the errors are either small or gross, with few in between."""
    inside = np.count_nonzero(errors <= OUTLIER_THRESHOLD)
    return bool(np.count_nonzero(errors <= 2 * OUTLIER_THRESHOLD) - inside <= GAP_SHARE * inside)


def _strong(model: Model) -> np.ndarray:
    """Which components of the model have singular values larger than that of noise. The others may be noise."""
    return model.x.svd()[1] > model.sigma * sum(np.sqrt(model.x.shape))


def consensus(
    design: np.ndarray, targets: np.ndarray, present: np.ndarray, penalties: np.ndarray, rng: np.random.Generator
) -> np.ndarray | None:
    """The coefficients of the fit with the largest set of agreeing entries; None if it is not to be kept.

    ``present`` has the predictions of the present fit. All entries are in units of the scale of the errors. ``penalties`` are
    the ridge penalties of the coefficients.
    """
    if len(targets) > MAX_ENTRIES:
        some = rng.choice(len(targets), MAX_ENTRIES, replace=False)
        design, targets, present = design[some], targets[some], present[some]
    n, p = design.shape
    before = np.abs(targets - present)
    count_before = np.count_nonzero(before <= OUTLIER_THRESHOLD)
    if expected_by_chance(*_counts(before), n, p) <= MAX_EXPECTED:
        return None
    weights = np.zeros((SUBSETS, n))  # 1 for the entries of a subset
    np.put_along_axis(weights, np.argpartition(rng.random((SUBSETS, n)), p, axis=1)[:, :p], 1.0, axis=1)
    size = max(2 * p, int(CONCENTRATED_SHARE * n))
    for step in range(CONCENTRATIONS + 1):
        errors = np.abs(targets - _regressions(weights, design, targets, penalties) @ design.T)
        if step < CONCENTRATIONS:
            weights = (errors <= np.partition(errors, size - 1, axis=1)[:, size - 1 : size]).astype(float)
    best = errors[np.argmin(expected_by_chance(*_counts(errors), n, p))]
    loss = loss_for(LOSS, 1.0)
    for _ in range(REFINEMENTS):
        u = _regressions(inlier_weights(loss, best)[None], design, targets, penalties)[0]
        best = np.abs(targets - design @ u)
    outside = best > OUTLIER_THRESHOLD
    if expected_by_chance(*_counts(best), n, p) > MAX_EXPECTED or n - np.count_nonzero(outside) <= count_before:
        return None
    rest, left = targets[outside], (targets - present)[outside]
    degrees = max(len(rest) - p, 1) / max(len(rest) - 1, 1)
    explained = np.mean(left**2) <= (1 - EXPLAINED) * degrees * np.var(rest)
    return None if explained else u


def _counts(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number of the errors up to OUTLIER_THRESHOLD, and in the ring above it."""
    inside = np.count_nonzero(errors <= OUTLIER_THRESHOLD, axis=-1)
    return inside, np.count_nonzero(errors <= RING * OUTLIER_THRESHOLD, axis=-1) - inside


def expected_by_chance(inside: np.ndarray, ring: np.ndarray, n: int, p: int) -> np.ndarray:
    """Upper bound on the expected number of fits through p of n entries that have ``inside`` entries near them by chance.

    There are at most n! / (p! (n - p)!) such fits. The number of the other entries near a fit has a Poisson distribution whose
    mean is estimated by the number of entries in the ring, which is RING - 1 times as wide.
    """
    fits = np.exp(-betaln(n - p + 1, p + 1)) / (n + 1)
    return fits * gammainc(np.maximum(inside - p, 1e-9), (ring + 1) / (RING - 1))


def _regressions(weights: np.ndarray, design: np.ndarray, targets: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    """Ridge regressions with each row of the weights."""
    n, p = design.shape
    normal = (weights @ (design[:, :, None] * design[:, None, :]).reshape(n, p * p)).reshape(-1, p, p)
    return np.linalg.solve(normal + np.diag(penalties), ((weights * targets) @ design)[:, :, None])[:, :, 0]
