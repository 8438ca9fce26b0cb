"""Chooses between candidate models (losses, averages over the posterior, tensor views) by their errors on held-out entries.

The candidates are tried in this order:

1. A fit with each convex loss, then with a redescending loss, which ignores large errors.
2. A fit that starts from a principal component pursuit, for data in which a third of the entries may be wrong (pursuit.py).
3. The average of the best fit over its posterior, then an average with a loss whose width follows the residuals, then an average
   with features that are computed from which entries are observed.
4. Tensor views, if a period is given.

A candidate replaces the best candidate so far if the held-out entries give enough evidence (:func:`evidence`). The evidence is
the sum of two t statistics: of the differences of the absolute errors, and of the differences of the squared errors. Outliers
hardly change the first statistic, because the difference of two absolute errors is at most the difference of the predictions. For
the second statistic, errors are limited to a multiple of the scale of the data. This limit is so large that it does not hide a
heavy tail of real structure. Fits from a pursuit are compared by other criteria (pursuit.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condgrad.learn.completion.biases import inlier_weights
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.path import MIN_SCALE_SHARE, RADIUS_GROWTH, Fit
from condgrad.learn.completion.posterior import SETTINGS, Chain, rank_for
from condgrad.learn.completion.pursuit import LOSS as PURSUIT_LOSS
from condgrad.learn.completion.pursuit import preferred, pursued_fit
from condgrad.learn.completion.robust_scale import CONVEX_LOSSES, data_scale, loss_for
from condgrad.learn.completion.tensor_view import search_views, split_like_holes
from condgrad.learn.completion.validation import Averaging, Candidate, HeldOut, TensorView, Validated
from condgrad.objectives import Completion

AUTO_LOSSES = ("squared", "huber", "welsch")
"""Losses that are compared, in the order in which they are tried: first the convex losses, last the narrowest loss."""
NARROWEST = AUTO_LOSSES[-1]
LIMIT = 5.0
"""Before errors are squared, they are limited to this multiple of the scale of the data (``data_scale``)."""
UNPREDICTED = 3.0
"""An entry is not predicted by a model if its error is more than this multiple of the scale of the data."""
UNPREDICTED_MEAN = 2.0
"""A row or a column is not predicted by a model if its mean absolute error is more than this multiple of the scale."""
NARROWER_EVIDENCE = 5.0
"""Evidence that a redescending loss needs to replace a convex loss. In data with a heavy tail of real structure, a loss that
ignores the tail predicts most held-out entries better (an evidence of up to 4.6 was found), but it predicts other unseen entries
worse."""
ADAPTIVE_EVIDENCE = 1.0
"""Evidence that an average with a redescending loss needs to replace an average with a convex loss."""
MAX_RATIO = 1.05
"""The fit with the narrowest loss is averaged too, if its mean absolute error is at most this factor times the error of the best
fit."""
OUTLIERS_PER_FACTOR = 0.25
"""A fit of smaller rank has fewer parameters (entries of its factors), but may have more outliers. The fit of smaller rank is
called simpler if it has less than OUTLIERS_PER_FACTOR outliers for each parameter that it saves."""
GROSS_WEIGHT = 0.05
"""If ranks are compared, entries with an inlier weight below GROSS_WEIGHT are counted as outliers. Normal errors have larger
weights."""
LESS_ACCURATE = 2.0
"""A fit is not chosen if there is this much evidence that its squared errors are larger. A simpler fit is not chosen if there is
this much evidence that it predicts its own inliers worse."""
ROUNDS_WITHOUT_RANK = 3
"""If a fit has no low-rank part, this number of solver rounds, at increasing radii, comes before the sampler starts."""
MAX_AVERAGED_ENTRIES = 2_000_000
"""With more entries than this, averages are tried only if the user asks for them, because a sweep takes longer than a fit at one
radius."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate: a fit with its held-out residuals, and the settings of its average (None for a single fit)."""

    validated: Validated
    loss: str
    averaging: Averaging | None = None
    chain: Chain | None = None
    pursued: bool = False
    """Whether the fit started from a principal component pursuit (pursuit.py)."""
    view: TensorView | None = None

    def mean_absolute(self) -> float:
        """Mean absolute error on held-out entries."""
        return float(np.abs(self.validated.residuals).mean())


def evidence(held_out: HeldOut, new: np.ndarray, old: np.ndarray, scale: float, veto: float = 2.0) -> float:
    """Evidence that the residuals ``new`` are smaller than the residuals ``old`` of another model at the same held-out entries.

    The evidence is the sum of the t statistics of the differences of absolute errors and of squared errors. Entries, rows and
    columns that neither model predicts are left out. If the t statistic of the squared errors is -``veto`` or less (the new
    squared errors are larger), the evidence is at most this t statistic, however much smaller the new absolute errors are.
    """
    new, old = np.abs(new), np.abs(old)
    telling = np.minimum(new, old) <= UNPREDICTED * scale
    for places in (held_out.rows, held_out.cols):
        counts = np.maximum(np.bincount(places), 1)
        means = [np.bincount(places, sizes) / counts for sizes in (new, old)]
        telling &= (np.minimum(*means) <= UNPREDICTED_MEAN * scale)[places]
    if np.count_nonzero(telling) < 2:
        return 0.0
    new, old = new[telling], old[telling]
    limited = [np.square(np.minimum(sizes, LIMIT * scale), dtype=float) for sizes in (new, old)]
    squared = t_statistic(limited[1] - limited[0])
    total = t_statistic(old - new) + squared
    return total if squared > -veto else min(total, squared)


def t_statistic(differences: np.ndarray) -> float:
    """The mean divided by its standard error; 0 if all differences are equal, so that the standard error is 0."""
    error = float(differences.std() / np.sqrt(len(differences)))
    mean = float(differences.mean())
    return mean / error if error > 0 else 0.0


def choose(fit: Fit, up_to: float) -> Model:
    """Compare all candidates, and store the settings of the best candidate in ``fit``. Returns the model of the best fit.

    The model of an average or of a tensor view is computed later, from all entries. It starts from the returned model.
    """
    train, held_out = fit.split() if fit.period is None else split_like_holes(fit, fit.period)
    scale = data_scale(fit.entries.values(fit.all_entries))
    fits: list[Trial] = []
    best: Trial | None = None
    auto = fit.loss == "auto"

    def clipped(trial: Trial) -> np.ndarray:
        """Held-out residuals after the predictions are clipped as the estimator clips them."""
        predicted = held_out.values - trial.validated.residuals
        return held_out.values - np.clip(predicted, *fit.prediction_range(train, trial.validated.model))

    def better(trial: Trial, best: Trial | None, required: float) -> Trial:
        """Return the trial if the evidence that it is better exceeds ``required``, else ``best``. Record the trial in
        ``fit.candidates``."""
        found = np.inf
        if best is not None:
            veto = LESS_ACCURATE if trial.averaging is None else 0.0  # an average must reduce squared errors
            found = evidence(held_out, clipped(trial), clipped(best), scale, veto)
        fit.loss = trial.loss
        list_candidate(fit, train, held_out, trial, found if best is not None else 0.0)
        if best is not None and found <= required and not simpler(fit, train, held_out, trial, best, scale):
            # if the predictions are the same, take the new, narrower loss, which gives outliers less weight
            narrower = trial.averaging is None and np.array_equal(clipped(trial), clipped(best))
            if not narrower:
                return best
        fit.partial_model = trial.validated.model
        return trial

    for name in AUTO_LOSSES if auto else (fit.loss,):
        assert isinstance(name, str)
        fit.report(f"trying the {name} loss", 20)
        fit.loss = name
        fits.append(Trial(fit.search(train, held_out, up_to), name))
        best = better(fits[-1], best, 0.0 if name in CONVEX_LOSSES else NARROWER_EVIDENCE)
    assert best is not None
    pursuable = isinstance(train, Completion) and not np.isfinite(up_to)  # a fit from a pursuit is not within a ball
    if len(fits) > 1 and train is not fit.all_entries and pursuable:
        best = pursue(fit, train, held_out, fits, best, clipped, scale)
    wanted = fit.average if fit.average is not None else fit.all_entries.pattern.size <= MAX_AVERAGED_ENTRIES
    if wanted and train is not fit.all_entries:
        ball = best
        average = first_average(fit, train, held_out, ball)
        best = better(average, None if fit.average else ball, 0.0)
        adaptive = fits[-1].loss == NARROWEST and fit.sigma is None
        if adaptive and fits[-1].mean_absolute() <= MAX_RATIO * ball.mean_absolute():
            start = average if ball is fits[-1] else first_average(fit, train, held_out, fits[-1])
            assert start.averaging is not None
            narrower = next_average(fit, held_out, start, start.averaging._replace(adaptive=True))
            best = better(narrower, best, ADAPTIVE_EVIDENCE if ball is not fits[-1] else 0.0)
            average = narrower if narrower is best else average
        if fit.implicit is None:
            assert average.averaging is not None
            fit.report("averaging with features of which entries are observed", 3)
            best = better(next_average(fit, held_out, average, average.averaging._replace(implicit=True)), best, 0.0)
    plain = best
    if fit.period is not None and train is not fit.all_entries:
        fit.loss = plain.loss

        def found(new: Validated, old: Validated) -> float:
            return evidence(held_out, new.residuals, old.residuals, scale)

        model = plain.validated.model
        view, validated = search_views(fit, train, held_out, model, auto, found, NARROWER_EVIDENCE)
        best = better(Trial(validated, view.loss, view=view), plain, 0.0)
    fit.loss, fit.averaging, fit.chain, fit.view = best.loss, best.averaging, best.chain, best.view
    fit.record_choice(train, held_out, best.validated, best.averaging is not None)
    return plain.validated.model


def pursue(
    fit: Fit,
    train: Completion,
    held_out: HeldOut,
    fits: list[Trial],
    best: Trial,
    clipped: Callable[[Trial], np.ndarray],
    scale: float,
) -> Trial:
    """Try a fit that starts from a principal component pursuit. Returns it if it is preferred to ``best``, else ``best``."""
    fit.report("trying a start from a principal component pursuit", 10)
    others = [other.validated for other in fits]
    found = pursued_fit(fit, train, held_out, best.validated, others)
    if found is None:
        return best
    trial = Trial(found, PURSUIT_LOSS, pursued=True)
    new, old = clipped(trial), clipped(best)
    list_candidate(fit, train, held_out, trial, evidence(held_out, new, old, scale))
    if not preferred(new, found.model.x.rank, best.validated, others):
        return best
    fits.append(trial)
    fit.partial_model = found.model
    return trial


def simpler(fit: Fit, train: Any, held_out: HeldOut, trial: Trial, best: Trial, scale: float) -> bool:
    """Whether the trial has a smaller rank than ``best``, predicts its own inliers as well, and has few outliers.

    The outliers are few relative to the number of parameters that the trial saves (OUTLIERS_PER_FACTOR).

    The larger rank may be needed only because a few wrong entries agree with each other and form a component. Ranks are compared
    only if the singular values of both fits are unshrunk.
    """
    model, other = trial.validated.model, best.validated.model
    if trial.averaging is not None or model.rank is None or other.rank is None or model.rank >= other.rank:
        return False
    outliers = fit.entries.count_below(train, model, GROSS_WEIGHT)
    if outliers >= OUTLIERS_PER_FACTOR * (other.rank - model.rank) * sum(train.pattern.shape):
        return False
    new, old = trial.validated.residuals, best.validated.residuals
    inlier = inlier_weights(model.loss, new) >= 0.5
    among = HeldOut(held_out.rows[inlier], held_out.cols[inlier], held_out.values[inlier])
    return evidence(among, new[inlier], old[inlier], scale) > -LESS_ACCURATE


def list_candidate(fit: Fit, train: Any, held_out: HeldOut, trial: Trial, found: float) -> None:
    """Add a trial to the list of candidates, with its errors and the evidence that it is better than the previous best."""
    averaging = trial.averaging
    point = fit.path_point(train, held_out, trial.validated, averaging is not None)
    implicit, adaptive = (averaging.implicit, averaging.adaptive) if averaging else (False, False)
    fit.candidates.append(
        Candidate(
            trial.loss,
            averaging is not None,
            adaptive,
            implicit,
            found,
            point.rmse,
            point.mae,
            point.median_error,
            trial.pursued,
            trial.view is not None,
        )
    )


def first_average(fit: Fit, train: Completion, held_out: HeldOut, start: Trial) -> Trial:
    """Average a fit over its posterior, with its own loss."""
    model, fit.loss = start.validated.model, start.loss
    for _ in range(ROUNDS_WITHOUT_RANK if model.x.rank == 0 else 0):
        # the best fit has biases only, but the sampler must start from a low-rank part
        model = fit.improve(train, model, RADIUS_GROWTH * (model.radius or fit.path[0].radius))
    averaging = Averaging(rank_for(model), bool(fit.implicit), False, model.radius)
    rng = np.random.default_rng(fit.rng.integers(2**63))
    fit.report(f"averaging over the posterior with the {start.loss} loss", 5)
    chain = Chain(train, model, fit.biases, averaging.rank, averaging.implicit, rng)
    for _ in range(SETTINGS.first_sweeps):
        chain.sweep()
    return next_average(fit, held_out, replace(start, chain=chain), averaging)


def next_average(fit: Fit, held_out: HeldOut, start: Trial, averaging: Averaging) -> Trial:
    """Continue the chain of a trial with other settings, and validate the average of its predictions."""
    chain, model = start.chain, start.validated.model
    assert chain is not None
    fit.loss = start.loss
    if start.averaging is not None and averaging.implicit != start.averaging.implicit:
        chain.use_features(averaging.implicit)
    set_loss(fit, chain, model, averaging)
    for _ in range(SETTINGS.burn_in):
        chain.sweep()
    predictions = np.zeros(len(held_out.values))
    for _ in range(SETTINGS.trial_sweeps):
        predictions += chain.sweep().at(held_out.rows, held_out.cols)
    residuals = held_out.values - predictions / SETTINGS.trial_sweeps
    return Trial(held_out.scaled(fit, model, residuals), start.loss, averaging, chain)


def set_loss(fit: Fit, chain: Chain, model: Model, averaging: Averaging) -> None:
    """Let the chain use the loss of the model; or, if ``averaging.adaptive``, a loss whose width follows the residuals."""
    name, floor = fit.loss, max(fit.min_sigma, MIN_SCALE_SHARE * model.sigma)
    if averaging.adaptive and isinstance(name, str):
        chain.use_loss(model.loss, lambda scale: loss_for(name, max(scale, floor)))
    else:
        chain.use_loss(model.loss, None)


def average_all(fit: Fit, model: Model) -> Model:
    """Average over the posterior on all entries, starting from the model."""
    averaging = fit.averaging
    assert averaging is not None
    rng = np.random.default_rng(fit.rng.integers(2**63))
    chain = Chain(fit.all_entries, model, fit.biases, averaging.rank, averaging.implicit, rng)
    if fit.chain is not None:
        chain.continue_from(fit.chain)
    set_loss(fit, chain, model, averaging)
    burn_in = SETTINGS.first_sweeps if fit.chain is None else SETTINGS.burn_in
    for number in range(burn_in + SETTINGS.sweeps):
        chain.sweep(keep=number >= burn_in)
        fit.report(f"all entries, draw {number + 1} of {burn_in + SETTINGS.sweeps}", 1)
    x, biases = chain.average()
    return replace(model, x=x, biases=biases, radius=float(x.svd()[1].sum()), state=None)
