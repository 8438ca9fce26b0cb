"""The class `Fit`: fits a robust low-rank model along a path of increasing radii, and chooses the radius by the held-out error.

The fit at each radius starts from the model of the previous radius. It takes a few steps of the solver, and refits the biases in
between. The scale of the loss is computed from the held-out residuals. It decreases as the model improves, down to the scale of
the noise.

A nuclear ball shrinks all singular values, including the large ones. If there is a gap between the singular values, the values
above the gap are debiased: the model is refitted with its rank fixed, in a ball so large that it does not limit the singular
values. The refit is kept if the held-out error decreases. Its singular values are called *unshrunk*, and its radius is their sum.

A bounded loss has bad local minima, in which whole rows are outliers. Therefore the path is first followed with Cauchy's loss,
which gives every entry some weight. Rows that are mostly outliers with this loss too are refitted separately (rescue.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from condgrad.domains import NuclearBall
from condgrad.driver import Mapping, Session, Steps, minimize, run
from condgrad.inner import Subspace
from condgrad.learn.completion.biases import Biases, refit_biases
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.observed import InMemory, Observed
from condgrad.learn.completion.rescue import rescue
from condgrad.learn.completion.robust_scale import loss_for, median_scale, quantization_step
from condgrad.learn.completion.validation import (
    MIN_IMPROVEMENT,
    Averaging,
    Candidate,
    HeldOut,
    Radius,
    TensorView,
    Validated,
)
from condgrad.objectives.losses import Loss
from condgrad.points import LowRank
from condgrad.protocols import Problem
from condgrad.runtime.cache import active
from condgrad.solvers import practical
from condgrad.solvers.ncgs import NCGS, NCGSState

HELD_OUT_SHARE = 0.1
"""Share of the entries that is held out."""
RADIUS_GROWTH = 1.3
"""Factor from each radius of the path to the next."""
FAST_RADIUS_GROWTH = 2.0
"""Factor from each radius to the next on the way to a radius that the user gave. The fits on the way are not compared."""
STEPS_PER_ROUND = 2
"""Number of steps of the solver in a round. A round ends with a refit of the biases."""
REPEAT_BELOW = 0.95
"""If a round multiplies the held-out error by less than this factor, a second round follows at the same radius."""
CONVEX_LOSS, REDESCENDING_LOSSES = "huber", ("welsch", "geman-mcclure", "cauchy")
"""A fit with a redescending loss may ignore rows of large magnitude. It is therefore followed by a refit with the convex loss."""
PILOT_LOSS, BOUNDED_LOSSES = "cauchy", ("welsch", "geman-mcclure")
"""If the loss is bounded, the path is first followed with the pilot loss."""
PATIENCE, PATIENCE_IF_FEW, FEW_HELD_OUT = 2, 4, 1000
"""The path ends after PATIENCE radii in a row without improvement. If fewer than FEW_HELD_OUT entries are held out, it ends after
PATIENCE_IF_FEW radii, because the error on few entries is noisy."""
PATIENCE_AT_START = 9
"""At the start of the path, radii may be too small for any gain over a model that has biases only. As long as there is no gain,
the radius is doubled, up to this number of times. The best radius may be a hundred times the first radius."""
MAX_ROUNDS = 60
"""Maximum number of rounds at one radius, and of radii on the path."""
MIN_SCALE_SHARE = 1e-2
"""Lower bound on the scale of the loss, relative to the scale of the first model. Smaller errors need no robust loss."""
MIN_SCALE_IN_STEPS = 0.5
"""Lower bound on the scale of the loss, relative to the quantization step of the values."""
EXACT_ERROR = 0.01
"""Held-out errors below this share of the lower bound on the scale (``min_sigma``) are treated as 0."""
PATH_LOSS_WIDTH = 2.0
"""On the path, the loss is wider by this factor than at the end, so that large entries are not treated as outliers too early."""
MIN_GAP, MIN_EXTRA_VALUES = 5.0, 3
"""There is a gap after the k-th singular value if it is at least MIN_GAP times the next singular value, and if there are at least
k + MIN_EXTRA_VALUES further singular values."""
MIN_RELATIVE_VALUE = 0.03
"""In ratios of singular values, this share of the largest singular value is added to the divisor. Without it, ratios could be
arbitrarily large, because the ball may shrink the last singular values to nearly 0."""
ROUNDS_PER_VALIDATION = 2
"""Number of rounds from one validation of a model with unshrunk singular values to the next."""
MIN_UNSHRUNK_IMPROVEMENT = 0.01
"""A refit with unshrunk singular values continues as long as the held-out error decreases by more than this share, or the scale
still decreases (SETTLED_SCALE). The rank is increased by 1 if the larger rank decreases the held-out error by more than this
share."""
SETTLED_SCALE = 0.95
"""The scale still decreases if a round multiplies it by less than this factor."""


ALL_ENTRIES, CERTIFICATE = "all entries", "certificate"
"""Names of the phases after the path. In the first, all entries are fitted. In the second, the fit is certified."""


def path_phase(model: Model, radius: float) -> str:
    """Name of a fit on the path, for the trace. The name states the rank if the rank is fixed, else the radius."""
    return f"path, radius {radius:.4g}" if model.rank is None else f"path, rank {model.rank}"


@dataclass(eq=False)
class Fit:
    """One fit of a completion: the entries and settings, and the results so far."""

    all_entries: Any
    """The objective of all entries: a Completion, or the objective of entries on a cluster."""
    loss: str | Loss
    """The loss, as the user gave it."""
    sigma: float | None
    """Scale of the errors of inliers, as the user gave it; None if it is to be estimated."""
    biases: str | None
    """Biases of the model: "both", "columns" or None."""
    rng: np.random.Generator
    report: Callable[[str, int], None] = lambda line, rounds: None
    """Called after each round with a line of progress and the expected number of remaining rounds."""
    entries: Observed = field(default_factory=InMemory)
    """The operations on the entries of an objective: in memory or on a cluster."""
    path: list[Radius] = field(default_factory=list)
    """All fits of the path."""
    losses: list[float] = field(default_factory=list)
    """Loss on all entries after each round of ``finish``, which fits all entries after the path."""
    min_sigma: float = 0.0
    """Lower bound on the scale of the loss."""
    substitute: str | None = None
    """Loss that is used at present instead of ``loss``; None if ``loss`` is used."""
    clip: bool = False
    """Whether predictions are clipped to the range of the inliers. If they are, the reported held-out RMSE, mean
    and median absolute error are those of clipped predictions. The error that compares the fits of the path is never clipped."""
    best_index: int | None = None
    """Index into ``path`` of the chosen fit; None if nothing was held out."""
    n_held_out: int = 0
    """Number of held-out entries."""
    session: Session = field(default_factory=Session)
    """Trace and counts of all runs of the solver."""
    average: bool | None = False
    """Whether the model is averaged over its posterior. None: if this reduces the held-out error."""
    implicit: bool | None = None
    """Whether the average also uses singular vectors of the pattern of observed entries as features (posterior.py). None: if this
    reduces the held-out error."""
    candidates: list[Candidate] = field(default_factory=list)
    """The candidates (losses, averages, tensor views) that were compared on held-out entries."""
    averaging: Averaging | None = None
    """Settings of the average; None for a single fit."""
    chain: Any = None
    """The posterior sampler that ran without the held-out entries. The sampler on all entries starts from its state."""
    period: int | None = None
    """Number of columns in a period, if the user gave it. The table is then also completed as a tensor."""
    view: TensorView | None = None
    """Settings of the tensor view; None if the table is completed as a matrix."""
    partial_model: Model | None = None
    """The model to return if the fit is interrupted: the best model of the path so far, or the last model on all entries."""

    def named_loss(self, sigma: float) -> Loss | None:
        """The present loss for errors of scale sigma. None if the user gave a loss object, which has its own width."""
        name = self.substitute or self.loss
        return loss_for(name, sigma) if isinstance(name, str) else None

    def with_wider_loss(self, model: Model) -> Model:
        """Replace the loss of a model by the wider loss that is used on the path."""
        return replace(model, loss=self.named_loss(PATH_LOSS_WIDTH * model.sigma) or model.loss)

    def with_scale(self, model: Model, deviation: float) -> Model:
        """Replace the loss of a model by the loss for residuals of this standard deviation.

        If the user gave a larger sigma, the loss is for this sigma. A smaller sigma is not used here: a loss as narrow as the
        noise would ignore data that the model does not explain yet.
        """
        sigma = max(deviation, self.sigma or 0.0)
        loss = self.named_loss(sigma)
        return replace(model, loss=loss, sigma=sigma) if loss else model

    def biases_only(self, objective: Any) -> Model:
        """Fit the first model, which has no low-rank part. Its biases and its scale are fitted alternately."""
        values, (m, n) = self.entries.values(objective), objective.pattern.shape
        mean = float(np.median(values)) if self.biases else 0.0
        loss = loss_for("squared", 1.0) if isinstance(self.loss, str) else self.loss
        unit = median_scale(values - mean) or float(np.abs(values - mean).mean()) or 1.0
        model = Model(LowRank.zeros((m, n)), Biases(mean, np.zeros(m), np.zeros(n)), loss, unit)
        model = self.with_scale(model, unit)
        if self.biases:
            current = self.target(objective, model)
            for _ in range(4):
                reweighted = self.entries.reweighted(current, model.x, model.loss)
                model = replace(model, biases=refit_biases(model.biases, reweighted, self.biases, iterations=2))
                del reweighted, current  # frees three arrays with one number for each entry
                current = self.target(objective, model)
                residuals = self.entries.values(current)
                model = self.with_scale(model, max(median_scale(residuals), MIN_SCALE_SHARE * unit, self.min_sigma))
        return model

    def first_radius(self, objective: Any, model: Model) -> float:
        """The first radius of the path: a quarter of the estimated norm of the best rank-one matrix.

        The estimate assumes that all entries have the same magnitude.
        """
        objective = self.target(objective, model)
        m, n = objective.pattern.shape
        counted = self.session.counted(Problem(objective, NuclearBall((m, n), 1.0)))
        gradient: Any = counted.objective.grad(model.x)
        top = counted.domain.lmo_near(gradient, None, 0.1 * gradient.inner(gradient) ** 0.5)[0]
        radius = 0.25 * abs(gradient.inner(top)) * m * n / (objective.pattern.size * objective.smoothness)
        return radius or model.sigma

    def target(self, objective: Any, model: Model) -> Any:
        """The objective of the low-rank part: ``objective`` with the biases subtracted from its values, and with the loss of the
        model."""
        return self.entries.minus(objective, model.biases if self.biases else None, model.loss)

    def improve(self, objective: Any, model: Model, radius: float, phase: str | None = None) -> Model:
        """Take one round: a few steps of the solver within this radius and with fixed biases, and then a refit of the biases.

        The solver continues from its last state, with its step size and singular vectors, because the problem changes little from
        round to round.
        """
        current = self.target(objective, model)
        problem, solver = Problem(current, NuclearBall(objective.pattern.shape, radius)), solver_for(model)
        start = model.solver_state(solver, self.session.counted(problem))
        state = self.session.advance(problem, solver, start, STEPS_PER_ROUND, phase or path_phase(model, radius))
        state = replace(state, certificate=None, descent=None, grad=None)
        active().evaluations(current).release()  # a gradient takes as much memory as the entries, and is not used again
        model = replace(model, x=state.x, radius=radius, state=state)
        if not self.biases:
            return replace(model, value=state.fun)
        reweighted = self.entries.reweighted(current, state.x, model.loss)
        return replace(model, biases=refit_biases(model.biases, reweighted, self.biases), value=reweighted.value)

    def fit_up_to(self, radius: float) -> Model:
        """Follow the path to this radius on all entries. No entries are held out, because radius and loss are given."""
        model = self.biases_only(self.all_entries)
        now = self.first_radius(self.all_entries, model)
        while now < radius:
            model = self.partial_model = self.improve(self.all_entries, model, now)
            self.report(f"radius {now:.4g}, loss {model.value:.6g}", 3)
            now *= FAST_RADIUS_GROWTH
        return replace(model, radius=radius)

    def settle_scale(self, train: Any, held_out: HeldOut, now: Validated) -> Validated:
        """Take further rounds at the last radius as long as the scale of the loss decreases."""
        if not isinstance(self.loss, str) or self.loss == "squared":
            return now
        for _ in range(MAX_ROUNDS):
            before = now.model.sigma
            now = held_out.validate(self, self.improve(train, self.with_wider_loss(now.model), now.model.radius))
            if now.model.sigma > SETTLED_SCALE * before:
                break
        return now

    def follow(self, up_to: float = np.inf) -> Model:
        """Follow the path without the held-out entries. Returns the best model, or the model at ``up_to`` if this is finite."""
        train, held_out = self.split()
        best = self.search(train, held_out, up_to)
        self.record_choice(train, held_out, best)
        return best.model

    def smallest_scale(self) -> float:
        """Lower bound on the scale of the loss, from the quantization step of the values."""
        return (
            MIN_SCALE_IN_STEPS * quantization_step(self.entries.values(self.all_entries))
            if self.loss != "squared"
            else 0.0
        )

    def search(self, train: Any, held_out: HeldOut, up_to: float) -> Validated:
        """Follow the path with the loss ``self.loss``. Returns the best fit, or the fit at ``up_to`` if this is finite."""
        self.min_sigma = self.smallest_scale()
        with_pilot = self.loss in BOUNDED_LOSSES
        self.substitute = PILOT_LOSS if with_pilot else None
        model = self.biases_only(train)
        self.min_sigma = max(self.min_sigma, MIN_SCALE_SHARE * model.sigma)
        first = min(self.first_radius(train, model), up_to)
        best = self.search_radii(train, held_out, held_out.validate(self, model), first, up_to)
        if with_pilot:
            self.substitute = None
            best = held_out.validate(self, best.model)
            self.record(train, held_out, best, PATIENCE + 3)
            if best.model.rank is None:
                best = self.search_radii(train, held_out, best, best.model.radius or first, up_to)
            else:
                best = self.refit_unshrunk(train, held_out, best.model, best)
        return self.settle_scale(train, held_out, best) if np.isfinite(up_to) else best

    def record_choice(self, train: Any, held_out: HeldOut, best: Validated, averaged: bool = False) -> None:
        """Record which point of the path was chosen. Its errors are reported as the validation errors of the model."""
        if train is self.all_entries:  # a single entry: nothing was held out
            return
        point = self.path_point(train, held_out, best, averaged)
        if point not in self.path:
            self.path.append(point)
        self.best_index, self.n_held_out = self.path.index(point), len(held_out.values)

    def search_radii(self, train: Any, held_out: HeldOut, start: Validated, radius: float, up_to: float) -> Validated:
        """Fit at increasing radii, beginning with ``radius``. Returns the best fit, or the fit at ``up_to`` if this is finite."""
        model, error, worse, before_search = start.model, start.error, 0, len(self.path)
        usual_patience = PATIENCE if len(held_out.values) >= FEW_HELD_OUT else PATIENCE_IF_FEW
        patience, best, best_in_ball = PATIENCE_AT_START, start, start
        while np.isfinite(up_to) or (worse < patience and len(self.path) - before_search < MAX_ROUNDS):
            model = self.improve(train, self.with_wider_loss(model), radius)
            now = held_out.validate(self, model)
            if now.error < REPEAT_BELOW * error:
                now = held_out.validate(self, self.improve(train, model, radius))
            model, error = now.model, now.error
            self.record(train, held_out, now, patience - worse + 3)
            if radius >= up_to:
                return now
            before = best, best_in_ball
            if now.beats(best):
                best = now
            if now.beats(best_in_ball):
                best_in_ball = now
                if np.isinf(up_to):
                    best = self.unshrink(train, held_out, now, best, MIN_GAP)
            # the path continues while ``best`` improves, which may be a refit with unshrunk singular values, and also while
            # ``best_in_ball`` improves, the best fit that is not such a refit
            worse = 0 if best is not before[0] or best_in_ball is not before[1] else worse + 1
            if best is start and start.model.x.rank == 0:
                patience, growth = PATIENCE_AT_START, FAST_RADIUS_GROWTH
            else:
                patience, growth = usual_patience, RADIUS_GROWTH
            radius = min(growth * radius, up_to)
        return self.unshrink(train, held_out, best_in_ball, best, 0.0)

    def record(self, train: Any, held_out: HeldOut, now: Validated, rounds: int) -> None:
        """Add a point to the path and report it, with the expected number of remaining rounds."""
        point = self.path_point(train, held_out, now)
        self.path.append(point)
        if point.error <= min(other.error for other in self.path):
            self.partial_model = now.model
        where = f"rank {now.model.rank}" if point.free else f"radius {point.radius:.4g}"
        self.report(f"{where}, RMSE {point.rmse:.4g} and MAE {point.mae:.4g} on held-out entries", rounds)

    def path_point(self, train: Any, held_out: HeldOut, now: Validated, averaged: bool = False) -> Radius:
        """The record of a fit for the path, with the errors of its predictions at the held-out entries."""
        model, name = now.model, self.substitute or self.loss
        loss = name if isinstance(name, str) else type(name).__name__
        errors = held_out.errors(now, self.prediction_range(train, model))
        return Radius(model.radius, now.error, model.x.rank, loss, model.rank is not None, *errors, averaged)

    def prediction_range(self, train: Any, model: Model) -> tuple[float, float]:
        """The range to which predictions of this model are clipped. It is found from the training entries only."""
        if not self.clip or not self.has_equal_values:
            return -np.inf, np.inf
        return self.entries.inlier_range(train, model)

    @cached_property
    def has_equal_values(self) -> bool:
        """Whether some value occurs more than once. Otherwise the values have no hard limit such as the limits of ratings."""
        return bool((np.diff(np.sort(self.entries.values(self.all_entries))) == 0).any())

    def unshrink(self, train: Any, held_out: HeldOut, now: Validated, best: Validated, min_gap: float) -> Validated:
        """Debias the singular values above the largest gap. Then increase the rank by 1 as long as the held-out error decreases.

        Returns the best refit, or ``best`` if no refit is better. If the largest gap is below ``min_gap``, nothing is refitted
        and ``best`` is returned. If ``min_gap`` is 0, the largest gap may have any size.
        """
        left, values, right = now.model.x.svd()
        ratios = values / (np.append(values[1:], 0.0) + MIN_RELATIVE_VALUE * values.max(initial=0.0))
        k = 1 + int(np.argmax(ratios)) if len(ratios) else 0
        if k == 0 or (min_gap > 0 and (ratios[k - 1] < min_gap or len(values) < 2 * k + MIN_EXTRA_VALUES)):
            return best
        model = replace(now.model, x=LowRank(left[:, :k] * values[:k], right[:, :k]), rank=k, state=None)
        required = MIN_IMPROVEMENT
        while (unshrunk := self.refit_unshrunk(train, held_out, model, best)).beats(best, required):
            best, required = self.refit_with_convex_loss(train, held_out, unshrunk), MIN_UNSHRUNK_IMPROVEMENT
            model = replace(best.model, rank=best.model.x.rank + 1)
        return best

    def refit_with_convex_loss(self, train: Any, held_out: HeldOut, best: Validated) -> Validated:
        """Refit a model with a convex loss. Returns the refit if it reduces the held-out error, else ``best``.

        With a convex loss, rows of large magnitude contribute to the fit. They determine the column factors most accurately.
        """
        if self.loss not in REDESCENDING_LOSSES:
            return best
        substitute, self.substitute = self.substitute, CONVEX_LOSS
        refit = self.refit_unshrunk(train, held_out, best.model, held_out.validate(self, best.model))
        self.substitute = substitute
        refit = held_out.validate(self, refit.model)
        return refit if refit.beats(best) else best

    def refit_unshrunk(self, train: Any, held_out: HeldOut, model: Model, best: Validated) -> Validated:
        """Refit the model with its rank fixed, in a ball that does not limit it. Returns ``best`` if the refit is not better."""
        sigma, radius = best.model.sigma, 0.0
        for _ in range(MAX_ROUNDS):
            model = rescue(train, self.with_wider_loss(model), self.biases, self.entries)
            radius = max(radius, 4 * float(model.x.svd()[1].sum()))
            for _ in range(ROUNDS_PER_VALIDATION):
                model = self.improve(train, self.with_wider_loss(model), radius)
            now = held_out.validate(self, replace(model, radius=float(model.x.svd()[1].sum())))
            narrower, better = now.model.sigma < SETTLED_SCALE * sigma, now.beats(best)
            if not narrower and not better:
                break
            converged = not narrower and (
                now.error < EXACT_ERROR * self.min_sigma or not now.beats(best, MIN_UNSHRUNK_IMPROVEMENT)
            )
            best, model, sigma = now if better else best, now.model, now.model.sigma
            self.record(train, held_out, now, 4)
            if converged:
                break
        return best

    def split(self) -> tuple[Any, HeldOut]:
        """Hold out a share of the entries. Returns the objective of the other entries, and the held-out entries."""
        return self.entries.split(self.all_entries, HELD_OUT_SHARE, self.rng)

    def finish(self, model: Model, steps: int, tol: float) -> Model:
        """Fit all entries until a round reduces the loss by less than the share ``tol``, or after ``steps`` steps.

        The last round is a run of the driver, which returns a result with a trace and counts.
        """
        if self.sigma is not None and isinstance(self.loss, str):
            model = replace(model, loss=loss_for(self.loss, self.sigma), sigma=self.sigma)
        before, radius = np.inf, model.radius
        ball_radius = radius if model.rank is None else 4 * radius
        for _ in range(STEPS_PER_ROUND, steps, STEPS_PER_ROUND):
            if model.rank is not None:
                model = rescue(self.all_entries, model, self.biases, self.entries)
                ball_radius = max(ball_radius, 4 * float(model.x.svd()[1].sum()))
            model = self.improve(self.all_entries, model, ball_radius, ALL_ENTRIES)
            self.partial_model = replace(model, radius=radius)
            self.losses.append(model.value)
            self.report(f"all entries, loss {model.value:.6g}", 2)
            if model.value > (1 - tol) * before:
                break
            before = model.value
        current = self.target(self.all_entries, model)
        problem, solver = Problem(current, NuclearBall(current.pattern.shape, ball_radius)), solver_for(model)
        resumed = ResumedSolver(solver, model.solver_state(solver, self.session.counted(problem)))
        steps = min(STEPS_PER_ROUND, steps)
        result = run(problem, resumed, model.x, Steps(steps), name="ncgs", output="last", on_interrupt="raise")
        self.session.add(result, ALL_ENTRIES)
        self.losses.append(result.fun)
        assert isinstance(result.x, LowRank)
        radius = radius if model.rank is None else float(result.x.svd()[1].sum())
        return replace(model, x=result.x, radius=radius, state=None, result=self.session.whole(result))

    def certify(self, model: Model, tol: float, steps: int) -> Model:
        """Continue within the radius and with fixed biases, until the squared mapping is certified to be at most ``tol``."""
        current = self.target(self.all_entries, model)
        domain = NuclearBall(current.pattern.shape, model.radius)
        stop = Mapping(tol) | Steps(steps)
        result = minimize(current, domain, domain.project(model.x), stop=stop, progress=False, on_interrupt="raise")
        self.session.add(result, CERTIFICATE)
        assert isinstance(result.x, LowRank)
        return replace(model, x=result.x, result=self.session.whole(result))


def solver_for(model: Model) -> NCGS:
    """The solver of all fits. It computes no certificates. If the rank of the model is fixed, iterates have at most this rank."""
    return NCGS(practical(), Subspace(model.rank), adaptive=True, certify=False)


@dataclass(frozen=True)
class ResumedSolver:
    """A solver that starts from a given state."""

    solver: NCGS
    state: NCGSState

    def init(self, problem: Problem, x0: Any) -> NCGSState:
        return self.state

    def step(self, problem: Problem, state: NCGSState) -> NCGSState:
        return self.solver.step(problem, state)
