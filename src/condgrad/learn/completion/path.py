"""A robust low-rank fit along a path of radii, chosen by the error on held-out entries.

The fit at each radius starts from the model of the previous one and takes a few steps of the solver, with refits of the biases in
between. The scale of the loss is that of the held-out residuals: it decreases as the model improves, down to the noise.

A nuclear ball shrinks all singular values, the large ones too. If the singular values have a gap, those above the gap are
debiased: the model is refitted with the rank fixed and a ball that is not active. It is kept if the held-out error decreases;
the radius is then the sum of the singular values. Singular values that were refitted in this way are called unshrunk below.

A bounded loss has bad local minima in which whole rows are outliers. So the path is first followed with Cauchy's loss, which
gives every entry some weight. Rows that are mostly outliers even with that loss are refitted separately (see rescue.py).
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
from condgrad.solvers import practical
from condgrad.solvers.ncgs import NCGS, NCGSState

HELD_OUT_SHARE = 0.1
"""Share of the entries that is held out."""
RADIUS_GROWTH = 1.3
"""Ratio of each radius to the previous one."""
FAST_RADIUS_GROWTH = 2.0
"""The same ratio on the way to a given radius, where the fits are not compared."""
STEPS_PER_ROUND = 2
"""Steps of the solver in a round, which ends with a refit of the biases."""
REPEAT_BELOW = 0.95
"""A second round at the same radius follows if the ratio of the held-out error to the previous one is below this."""
CONVEX_LOSS, REDESCENDING_LOSSES = "huber", ("welsch", "geman-mcclure", "cauchy")
"""A fit with a redescending loss may ignore rows of large magnitude, so it is followed by a refit with the convex loss."""
PILOT_LOSS, BOUNDED_LOSSES = "cauchy", ("welsch", "geman-mcclure")
"""Loss with which the path is followed first, before a bounded loss."""
PATIENCE, PATIENCE_IF_FEW, FEW_HELD_OUT = 2, 4, 1000
"""The path ends after PATIENCE radii in a row without improvement; if fewer than FEW_HELD_OUT entries are held out, after
PATIENCE_IF_FEW, because the error on few entries is noisy."""
PATIENCE_AT_START = 9
"""At the start of the path, radii may be too small for any gain over a model that has biases only. As long as there is no gain,
the radius is doubled, at most this many times. The best radius may be a hundred times the first one."""
MAX_ROUNDS = 60
"""Maximum number of rounds at one radius, and of radii on the path."""
MIN_SCALE_SHARE = 1e-2
"""Lower bound on the scale of the loss, relative to that of the first model: smaller errors need no robust loss."""
MIN_SCALE_IN_STEPS = 0.5
"""Lower bound on the scale of the loss, relative to the quantization step of the values."""
EXACT_ERROR = 0.01
"""Held-out errors below this share of the smallest scale count as 0."""
PATH_LOSS_WIDTH = 2.0
"""Factor by which the loss is wider on the path than at its end, so that large entries are not treated as outliers too early."""
MIN_GAP, MIN_EXTRA_VALUES = 5.0, 3
"""The k-th singular value is the last of the signal if it is at least MIN_GAP times the next one, and at least
k + MIN_EXTRA_VALUES others follow it."""
MIN_RELATIVE_VALUE = 0.03
"""Number, relative to the largest singular value, that is added to the divisor in ratios of singular values. Without it, a ratio
could have any size, because the ball may shrink the last singular values to nearly 0."""
ROUNDS_PER_VALIDATION = 2
"""Rounds between two validations of a model with unshrunk singular values."""
MIN_UNSHRUNK_IMPROVEMENT, SETTLED_SCALE = 0.01, 0.95
"""A fit with unshrunk singular values has converged when the relative decrease of the held-out error is below
MIN_UNSHRUNK_IMPROVEMENT and the ratio of the scale to the previous one is above SETTLED_SCALE. One more singular value is kept if
it decreases the held-out error by more than MIN_UNSHRUNK_IMPROVEMENT."""


ALL_ENTRIES, CERTIFICATE = "all entries", "certificate"
"""Names of the phases after the path: all entries are fitted, then the fit is certified."""


def path_phase(model: Model, radius: float) -> str:
    """Name under which the trace lists a fit on the path: by its radius, or by its rank if that is fixed."""
    return f"path, radius {radius:.4g}" if model.rank is None else f"path, rank {model.rank}"


@dataclass(eq=False)
class Fit:
    """One fit of a completion: the given entries and loss, and what the path has found so far."""

    all_entries: Any
    """The objective of all entries: a Completion, or another class of objectives that ``entries`` can work on."""
    loss: str | Loss
    """As given by the user."""
    sigma: float | None
    """Scale of ordinary errors, as given; None: estimated."""
    biases: str | None
    """Biases of the model: "both", "columns" or None."""
    rng: np.random.Generator
    report: Callable[[str, int], None] = lambda line, rounds: None
    """Called after each round with a line of progress and the expected number of remaining rounds."""
    entries: Observed = field(default_factory=InMemory)
    """What is computed from the entries of an objective."""
    path: list[Radius] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    """Loss on all entries after each round of the last fit."""
    min_sigma: float = 0.0
    """Lower bound on the scale of the loss."""
    substitute: str | None = None
    """Loss that is used at present in place of the given one; None: the given one."""
    clip: bool = False
    """Whether predictions are clipped to the range of the inliers, by the estimator and for the errors on held-out entries."""
    best_index: int | None = None
    """Index into ``path`` of the chosen fit; None if nothing was held out."""
    n_held_out: int = 0
    """Number of held-out entries."""
    session: Session = field(default_factory=Session)
    """Trace and counts of all runs of the solver."""
    average: bool | None = False
    """Whether the model is averaged over its posterior; None: if that reduces the held-out error."""
    implicit: bool | None = None
    """Whether the pattern of the entries gives features; None: if that reduces the held-out error."""
    candidates: list[Candidate] = field(default_factory=list)
    """Losses, and averages, that were compared on held-out entries."""
    averaging: Averaging | None = None
    """How the model is averaged; None: it is not."""
    chain: Any = None
    """The posterior sampler that ran without the held-out entries. The sampler on all entries starts from its state."""
    period: int | None = None
    """Number of columns in a period, if the table is also tried as a tensor."""
    view: TensorView | None = None
    """How the table is completed as a tensor; None: it is not."""
    partial_model: Model | None = None
    """The best model of the path so far, or the last one on all entries: returned if the fit is interrupted."""

    def named_loss(self, sigma: float) -> Loss | None:
        """The loss that is used at present, for errors of scale sigma; None if the given loss is an object with its own width."""
        name = self.substitute or self.loss
        return loss_for(name, sigma) if isinstance(name, str) else None

    def with_wider_loss(self, model: Model) -> Model:
        """The model with the wider loss that is used on the path."""
        return replace(model, loss=self.named_loss(PATH_LOSS_WIDTH * model.sigma) or model.loss)

    def with_scale(self, model: Model, deviation: float) -> Model:
        """The model with the loss for residuals of this standard deviation, or of the given sigma if that is larger.

        The given sigma alone is not used: a loss as narrow as the noise would ignore data that are not fitted yet.
        """
        sigma = max(deviation, self.sigma or 0.0)
        loss = self.named_loss(sigma)
        return replace(model, loss=loss, sigma=sigma) if loss else model

    def biases_only(self, objective: Any) -> Model:
        """The model to start from, without a low-rank part: biases and scale, fitted alternately."""
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
                current = self.target(objective, model)
                residuals = self.entries.values(current)
                model = self.with_scale(model, max(median_scale(residuals), MIN_SCALE_SHARE * unit, self.min_sigma))
        return model

    def first_radius(self, objective: Any, model: Model) -> float:
        """A quarter of the estimated norm of the best rank-one matrix. The estimate assumes entries of the same magnitude."""
        objective = self.target(objective, model)
        m, n = objective.pattern.shape
        counted = self.session.counted(Problem(objective, NuclearBall((m, n), 1.0)))
        gradient: Any = counted.objective.grad(model.x)
        top = counted.domain.lmo_near(gradient, None, 0.1 * gradient.inner(gradient) ** 0.5)[0]
        radius = 0.25 * abs(gradient.inner(top)) * m * n / (objective.pattern.size * objective.smoothness)
        return radius or model.sigma

    def target(self, objective: Any, model: Model) -> Any:
        """The objective of the low-rank part: with the loss of the model, and with the values minus its biases."""
        return self.entries.minus(objective, model.biases if self.biases else None, model.loss)

    def improve(self, objective: Any, model: Model, radius: float, phase: str | None = None) -> Model:
        """One round: a few steps of the solver within this radius, with the biases fixed, then a refit of the biases.

        The solver continues from its last state, step size and singular vectors included. That is possible because the problem
        changes little from one round to the next.
        """
        current = self.target(objective, model)
        problem, solver = Problem(current, NuclearBall(objective.pattern.shape, radius)), solver_for(model)
        start = model.solver_state(solver, self.session.counted(problem))
        state = self.session.advance(problem, solver, start, STEPS_PER_ROUND, phase or path_phase(model, radius))
        state = replace(state, certificate=None, descent=None)
        model = replace(model, x=state.x, radius=radius, state=state)
        if not self.biases:
            return replace(model, value=state.fun)
        reweighted = self.entries.reweighted(current, state.x, model.loss)
        return replace(model, biases=refit_biases(model.biases, reweighted, self.biases), value=reweighted.value)

    def fit_up_to(self, radius: float) -> Model:
        """Follow the path to this radius on all entries. None are held out, as the width of the loss is given."""
        model = self.biases_only(self.all_entries)
        now = self.first_radius(self.all_entries, model)
        while now < radius:
            model = self.partial_model = self.improve(self.all_entries, model, now)
            self.report(f"radius {now:.4g}, loss {model.value:.6g}", 3)
            now *= FAST_RADIUS_GROWTH
        return replace(model, radius=radius)

    def settle_scale(self, train: Any, held_out: HeldOut, now: Validated) -> Validated:
        """Add rounds at the last radius as long as the scale of the loss decreases."""
        if not isinstance(self.loss, str) or self.loss == "squared":
            return now
        for _ in range(MAX_ROUNDS):
            before = now.model.sigma
            now = held_out.validate(self, self.improve(train, self.with_wider_loss(now.model), now.model.radius))
            if now.model.sigma > SETTLED_SCALE * before:
                break
        return now

    def follow(self, up_to: float = np.inf) -> Model:
        """The best model of the path, or the one at the radius ``up_to``, with the scale of its held-out residuals."""
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
        """The best fit of the path with the given loss, or the one at the radius ``up_to``."""
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
        """Record which point of the path was chosen: its errors are reported as the validation errors of the model."""
        if train is self.all_entries:  # a single entry: nothing was held out
            return
        point = self.path_point(train, held_out, best, averaged)
        if point not in self.path:
            self.path.append(point)
        self.best_index, self.n_held_out = self.path.index(point), len(held_out.values)

    def search_radii(self, train: Any, held_out: HeldOut, start: Validated, radius: float, up_to: float) -> Validated:
        """The best fit at increasing radii from this one on; or the fit at the radius ``up_to``, if that is finite."""
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
            # the path also goes on if only the fits within the ball improve, and ``best`` has unshrunk singular values
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
        """A fit as a point of the path, with the errors of its predictions at the held-out entries."""
        model, name = now.model, self.substitute or self.loss
        loss = name if isinstance(name, str) else type(name).__name__
        errors = held_out.errors(now, self.prediction_range(train, model))
        return Radius(model.radius, now.error, model.x.rank, loss, model.rank is not None, *errors, averaged)

    def prediction_range(self, train: Any, model: Model) -> tuple[float, float]:
        """The range to which predictions of this model are clipped, found from its training entries only."""
        if not self.clip or not self.has_equal_values:
            return -np.inf, np.inf
        return self.entries.inlier_range(train, model)

    @cached_property
    def has_equal_values(self) -> bool:
        """Whether any value occurs more than once. Only then can the values have a hard limit, as ratings have."""
        return bool((np.diff(np.sort(self.entries.values(self.all_entries))) == 0).any())

    def unshrink(self, train: Any, held_out: HeldOut, now: Validated, best: Validated, min_gap: float) -> Validated:
        """Debias the singular values above the largest gap, then one more at a time, as long as the held-out error decreases.

        Returns ``best`` if nothing is better. With ``min_gap`` 0 the largest gap may have any size.
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
        """The model after some rounds with a convex loss, if that reduces the held-out error; else ``best``.

        With a convex loss, rows of large magnitude contribute to the column factors, which they determine most accurately.
        """
        if self.loss not in REDESCENDING_LOSSES:
            return best
        substitute, self.substitute = self.substitute, CONVEX_LOSS
        refit = self.refit_unshrunk(train, held_out, best.model, held_out.validate(self, best.model))
        self.substitute = substitute
        refit = held_out.validate(self, refit.model)
        return refit if refit.beats(best) else best

    def refit_unshrunk(self, train: Any, held_out: HeldOut, model: Model, best: Validated) -> Validated:
        """Refit the model with its rank fixed, in a ball that is not active. Returns ``best`` if nothing is better."""
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
        """The entries to fit, and those held out. If there is only one entry, it is both."""
        return self.entries.split(self.all_entries, HELD_OUT_SHARE, self.rng)

    def finish(self, model: Model, steps: int, tol: float) -> Model:
        """Fit all entries until a round reduces the loss by less than the share ``tol``, or after ``steps`` steps.

        The last steps are a run of the driver, so that there is a result with a trace and counts.
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
        """Continue within the radius, with fixed biases, until the squared gradient mapping is proven to be at most ``tol``."""
        current = self.target(self.all_entries, model)
        domain = NuclearBall(current.pattern.shape, model.radius)
        stop = Mapping(tol) | Steps(steps)
        result = minimize(current, domain, domain.project(model.x), stop=stop, progress=False, on_interrupt="raise")
        self.session.add(result, CERTIFICATE)
        assert isinstance(result.x, LowRank)
        return replace(model, x=result.x, result=self.session.whole(result))


def solver_for(model: Model) -> NCGS:
    """The solver of all fits: steps without certificates, in a subspace of the model's rank if that is fixed."""
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
