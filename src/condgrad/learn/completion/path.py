"""A robust low-rank fit along a path of radii, judged on entries that are held out.

Each radius begins where the last one ended, with a few steps of the engine and biases refitted in between. The scale of the
loss is that of the held-out residuals, which no fit has seen: it falls as the model gets better, down to the noise.

A ball shrinks all singular values, the large ones too. Where there is a gap between them, those above it are not shrunk at the
end of the path if that reduces the held-out error; the radius is then the sum of the singular values.

A loss that gives up what is far off has bad minima, in which whole rows are given up: one that never quite does leads the way,
and rows that are given up all the same are fitted by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from condgrad.domains import NuclearBall
from condgrad.driver import Mapping, Steps, minimize, run
from condgrad.inner import Subspace
from condgrad.learn.completion.biases import Biases, beliefs, refitted
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.rescue import rescued
from condgrad.learn.completion.robust_scale import bounds, coarseness, loss_for, spread
from condgrad.learn.completion.validation import BETTER, Held, Judged, Radius
from condgrad.objectives import Completion
from condgrad.objectives.losses import Loss
from condgrad.points import LowRank
from condgrad.protocols import Problem
from condgrad.solvers import practical
from condgrad.solvers.ncgs import NCGS, NCGSState

HELD = 0.1
"""The share of entries that is held out."""
GROWTH = 1.3
"""From radius to radius."""
HASTE = 2.0
"""The same where the radius is known, and those before it are judged by nobody."""
STEPS = 2
"""Of the engine at each radius."""
MOVING = 0.95
"""Where the held-out error falls below this part of the last one, as many steps follow at the same radius."""
EVEN, SHY = "huber", ("welsch", "geman-mcclure", "cauchy")
"""The loss that hears large rows as well as others, for those that do not."""
LEADER, LED = "cauchy", ("welsch", "geman-mcclure")
"""The loss that leads the way for those that give up what is far off."""
PATIENCE, UNSURE, FEW = 2, 4, 1000
"""Number of radii in a row without improvement that end the path; the second number if few entries are held out."""
LONGEST = 60
"""Rounds or radii at most, wherever something is tried again."""
LEAST = 1e-2
"""The scale of the loss never falls below this part of the first one, where there is nothing left to be robust against."""
STEP = 0.5
"""Nor below this part of a step, where values are on steps."""
EXACT = 0.01
"""Errors of this part of the least scale are none."""
WIDE = 2.0
"""Factor by which the loss is wider on the path than at its end, so that large entries are not treated as outliers too early."""
GAP, FLOOR = 5.0, 3
"""A singular value at least GAP times the next one is the last of the signal, if at least as many and FLOOR more follow it."""
FAINT = 0.03
"""Singular values below this part of the largest count as this part: the ball cuts the last ones to any size."""
TURNS = 2
"""Rounds between two evaluations on held-out entries once singular values are no longer shrunk: each round changes more."""
ENOUGH, SETTLED = 0.01, 0.95
"""A fit with unshrunk singular values has converged when the held-out loss falls by less than the share ENOUGH and the scale
stays above the share SETTLED of the last one; one more singular value is kept if the held-out loss falls by more than ENOUGH."""


@dataclass(eq=False)
class Fit:
    """What is fixed for a fit: the entries, all and without those held out, and the loss as it was asked for."""

    everything: Completion
    loss: str | Loss
    sigma: float | None
    """As given; None where it is estimated."""
    biases: str | None
    """Which there are: "both", "columns" or none."""
    rng: np.random.Generator
    tell: Callable[[str, int], None] = lambda line, rounds: None
    """Told after each round what it was, and how many more are expected."""
    path: list[Radius] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    """After each round of the last fit."""
    floor: float = 0.0
    """Of the scale."""
    leader: str | None = None
    """The loss that stands in for the one that was asked for, while it leads."""
    clip: bool = False
    """Whether predictions are clipped to the range of the inliers, as the estimator's are."""
    chosen: int | None = None
    """Which fit of the path was chosen; None where nothing was held out."""
    held_out: int = 0
    """How many entries were held out."""
    reached: Model | None = None
    """The best model of the path so far, or the last one on all entries: what there is when a fit is interrupted."""

    def by_name(self, sigma: float) -> Loss | None:
        """The loss that is used now, for errors of this size, where it was asked for by name."""
        name = self.leader or self.loss
        return loss_for(name, sigma) if isinstance(name, str) else None

    def wide(self, model: Model) -> Model:
        """The model with a wider loss, as it is on the path."""
        return replace(model, loss=self.by_name(WIDE * model.sigma) or model.loss)

    def scaled(self, model: Model, deviation: float) -> Model:
        """The model with the loss for residuals of this size, or of the size that is given if that is larger: a loss as narrow
        as the noise does not see data that are not fitted yet."""
        sigma = max(deviation, self.sigma or 0.0)
        loss = self.by_name(sigma)
        return replace(model, loss=loss, sigma=sigma) if loss else model

    def start(self, objective: Completion) -> Model:
        """Biases alone, fitted and scaled by turns."""
        values, pattern = objective.values, objective.pattern
        (m, n), mean = pattern.shape, float(np.median(values)) if self.biases else 0.0
        given = loss_for("squared", 1.0) if isinstance(self.loss, str) else self.loss
        unit = spread(values - mean) or float(np.abs(values - mean).mean()) or 1.0
        model = Model(LowRank.zeros((m, n)), Biases(mean, np.zeros(m), np.zeros(n)), given, unit)
        model = self.scaled(model, unit)
        if self.biases:
            left = self.left(objective, model)
            for _ in range(4):
                biases = refitted(model.biases, pattern, left, model.loss, self.biases, turns=2)[0]
                model = replace(model, biases=biases)
                left = self.left(objective, model)
                model = self.scaled(model, max(spread(left), LEAST * unit, self.floor))
        return model

    def first_radius(self, objective: Completion, model: Model) -> float:
        """A part of where the best matrix of rank one would lie, were it spread evenly."""
        objective = objective.replaced(self.left(objective, model), model.loss)
        gradient: Any = objective.grad(model.x)
        (m, n), size = objective.pattern.shape, float(np.linalg.norm(gradient.values))
        top = NuclearBall((m, n), 1.0).lmo_near(gradient, None, 0.1 * size)[0]
        found = 0.25 * abs(gradient.inner(top)) * m * n / (objective.n_terms * objective.smoothness)
        return found or model.sigma

    def left(self, objective: Completion, model: Model) -> np.ndarray:
        """What the biases leave over of the values."""
        if not self.biases:
            return objective.values
        left = objective.pattern.sample(*model.biases.factors())
        return np.subtract(objective.values, left, out=left)

    def improve(self, objective: Completion, model: Model, radius: float) -> Model:
        """A few steps within this radius, on what the biases leave over; then the biases, on what the steps leave over.

        The engine goes on from the state it was in, step size and singular vectors included: a state is a value, and what has
        changed of the problem since is no more than one step would change.
        """
        current = objective.replaced(self.left(objective, model), model.loss)
        problem, solver = Problem(current, NuclearBall(objective.pattern.shape, radius)), engine(model)
        state = model.begun(solver, problem)
        for _ in range(STEPS):
            state = solver.step(problem, state)
        state = replace(state, certificate=None, descent=None)
        model = replace(model, x=state.x, radius=radius, state=state)
        if not self.biases:
            return replace(model, value=current.value(state.x))
        left = current.values - state.x.at(objective.pattern)
        biases, value = refitted(model.biases, objective.pattern, left, model.loss, self.biases)
        return replace(model, biases=biases, value=value)

    def approach(self, radius: float) -> Model:
        """Along the path to this radius, on all entries: a loss that has its own width needs none to be held out."""
        model = self.start(self.everything)
        now = self.first_radius(self.everything, model)
        while now < radius:
            model = self.reached = self.improve(self.everything, model, now)
            self.tell(f"radius {now:.4g}, loss {model.value:.6g}", 3)
            now *= HASTE
        return replace(model, radius=radius)

    def settled(self, train: Completion, held: Held, now: Judged) -> Judged:
        """More rounds at the last radius, as long as the scale falls."""
        if not isinstance(self.loss, str) or self.loss == "squared":
            return now
        for _ in range(LONGEST):
            before = now.model.sigma
            now = held.judged(self, self.improve(train, self.wide(now.model), now.model.radius))
            if now.model.sigma > SETTLED * before:
                break
        return now

    def follow(self, up_to: float = np.inf) -> Model:
        """The best model of the path, with the scale that its held-out residuals have."""
        train, held = self.split()
        led = self.loss in LED
        self.leader = LEADER if led else None
        self.floor = STEP * coarseness(self.everything.values) if self.loss != "squared" else 0.0
        model = self.start(train)
        self.floor = max(self.floor, LEAST * model.sigma)
        first = min(self.first_radius(train, model), up_to)
        best = self.along(train, held, held.judged(self, model), first, up_to)
        if led:
            self.leader = None
            best = held.judged(self, best.model)
            self.tried(train, held, best, PATIENCE + 3)
            if best.model.rank is None:
                best = self.along(train, held, best, best.model.radius or first, up_to)
            else:
                best = self.freed(train, held, best.model, best)
        if np.isfinite(up_to):
            best = self.settled(train, held, best)
        self.choose(train, held, best)
        return best.model

    def choose(self, train: Completion, held: Held, best: Judged) -> None:
        """Note which point of the path was chosen, so that its errors are those of the model that goes on to all entries."""
        if train is self.everything:  # a single entry: nothing was held out
            return
        point = self.point(train, held, best)
        if point not in self.path:
            self.path.append(point)
        self.chosen, self.held_out = self.path.index(point), len(held.values)

    def along(self, train: Completion, held: Held, begin: Judged, radius: float, up_to: float) -> Judged:
        """The best from this radius on; or the last, where it is known how far."""
        model, error, worse, since = begin.model, begin.error, 0, len(self.path)
        patience = PATIENCE if len(held.values) >= FEW else UNSURE
        best = best_in_ball = begin
        while np.isfinite(up_to) or (worse < patience and len(self.path) - since < LONGEST):
            model = self.improve(train, self.wide(model), radius)
            now = held.judged(self, model)
            if now.error < MOVING * error:
                now = held.judged(self, self.improve(train, model, radius))
            model, error = now.model, now.error
            self.tried(train, held, now, patience - worse + 3)
            if radius >= up_to:
                return now
            before = best
            if now.beats(best):
                best = now
            if now.beats(best_in_ball):
                best_in_ball = now
                if np.isinf(up_to):
                    best = self.let_go(train, held, now, best, GAP)
            worse = worse + 1 if best is before else 0
            radius = min(GROWTH * radius, up_to)
        return self.let_go(train, held, best_in_ball, best, 0.0)

    def tried(self, train: Completion, held: Held, now: Judged, rounds: int) -> None:
        """Note a point of the path, and about how many rounds remain."""
        point = self.point(train, held, now)
        self.path.append(point)
        if point.error <= min(tried.error for tried in self.path):
            self.reached = now.model
        where = f"rank {now.model.rank}" if point.free else f"radius {point.radius:.4g}"
        self.tell(f"{where}, RMSE {point.rmse:.4g} and MAE {point.mae:.4g} on held-out entries", rounds)

    def point(self, train: Completion, held: Held, now: Judged) -> Radius:
        """A fit as a point of the path, with the errors of its predictions at the held-out entries."""
        model, name = now.model, self.leader or self.loss
        loss = name if isinstance(name, str) else type(name).__name__
        errors = held.errors(now, self.range_of(train, model))
        return Radius(model.radius, now.error, model.x.rank, loss, model.rank is not None, *errors)

    def range_of(self, train: Completion, model: Model) -> tuple[float, float]:
        """What predictions of this model are clipped to, by the entries that it was fitted to alone."""
        if not self.clip or not self.repeated:
            return -np.inf, np.inf
        residuals = train.values - train.pattern.sample(*model.factors())
        return bounds(train.values, beliefs(model.loss, train.pattern, residuals)[1] >= 0.5)

    @cached_property
    def repeated(self) -> bool:
        """Whether any value occurs more than once: values without repetitions have no range to clip to."""
        return bool((np.diff(np.sort(self.everything.values)) == 0).any())

    def let_go(self, train: Completion, held: Held, now: Judged, best: Judged, gap: float) -> Judged:
        """The singular values above the largest gap, free of the ball, if the held-out entries like it better; then one more."""
        left, values, right = now.model.x.svd()
        ratios = values / (np.append(values[1:], 0.0) + FAINT * values.max(initial=0.0))
        k = 1 + int(np.argmax(ratios)) if len(ratios) else 0
        if k == 0 or (gap > 0 and (ratios[k - 1] < gap or len(values) < 2 * k + FLOOR)):
            return best
        model = replace(now.model, x=LowRank(left[:, :k] * values[:k], right[:, :k]), rank=k, state=None)
        enough = BETTER
        while (freed := self.freed(train, held, model, best)).beats(best, enough):
            best, enough = self.evened(train, held, freed), ENOUGH
            model = replace(best.model, rank=best.model.x.rank + 1)
        return best

    def evened(self, train: Completion, held: Held, best: Judged) -> Judged:
        """The model after some rounds with a convex loss, if the held-out entries like it better: rows that are large are then
        heard as well as others, and what they know of the columns is known best."""
        if self.loss not in SHY:
            return best
        leader, self.leader = self.leader, EVEN
        even = self.freed(train, held, best.model, held.judged(self, best.model))
        self.leader = leader
        even = held.judged(self, even.model)
        return even if even.beats(best) else best

    def freed(self, train: Completion, held: Held, model: Model, best: Judged) -> Judged:
        """The model of its rank, in a ball that does not bind, if the held-out entries like it better than the best."""
        sigma, room = best.model.sigma, 0.0
        for _ in range(LONGEST):
            model = rescued(train, self.wide(model), self.biases)
            room = max(room, 4 * float(model.x.svd()[1].sum()))
            for _ in range(TURNS):
                model = self.improve(train, self.wide(model), room)
            now = held.judged(self, replace(model, radius=float(model.x.svd()[1].sum())))
            narrower, better = now.model.sigma < SETTLED * sigma, now.beats(best)
            if not narrower and not better:
                break
            enough = not narrower and (now.error < EXACT * self.floor or not now.beats(best, ENOUGH))
            best, model, sigma = now if better else best, now.model, now.model.sigma
            self.tried(train, held, now, 4)
            if enough:
                break
        return best

    def split(self) -> tuple[Completion, Held]:
        """The entries to fit, and those held out; of a single entry, all are both."""
        everything, count = self.everything, self.everything.n_terms
        out = np.zeros(count, dtype=bool)
        out[self.rng.choice(count, max(int(HELD * count), 1), replace=False)] = True
        rows, cols, values = everything.pattern.rows, everything.pattern.cols, everything.values
        held = Held(rows[out], cols[out], values[out])
        if count == 1:
            return everything, held
        return Completion(rows[~out], cols[~out], values[~out], everything.pattern.shape), held

    def finish(self, model: Model, steps: int, tol: float) -> Model:
        """On all entries, until a round of steps brings the loss down by less than ``tol`` of itself; the last is recorded."""
        if self.sigma is not None and isinstance(self.loss, str):
            model = replace(model, loss=loss_for(self.loss, self.sigma), sigma=self.sigma)
        before, radius = np.inf, model.radius
        room = radius if model.rank is None else 4 * radius
        for _ in range(STEPS, steps, STEPS):
            if model.rank is not None:
                model = rescued(self.everything, model, self.biases)
                room = max(room, 4 * float(model.x.svd()[1].sum()))
            model = self.improve(self.everything, model, room)
            self.reached = replace(model, radius=radius)
            self.losses.append(model.value)
            self.tell(f"all entries, loss {model.value:.6g}", 2)
            if model.value > (1 - tol) * before:
                break
            before = model.value
        current = self.everything.replaced(self.left(self.everything, model), model.loss)
        problem, solver = Problem(current, NuclearBall(current.pattern.shape, room)), engine(model)
        begun = Continued(solver, model.begun(solver, problem))
        steps = min(STEPS, steps)
        result = run(problem, begun, model.x, Steps(steps), name="ncgs", output="last", on_interrupt="raise")
        self.losses.append(result.fun)
        assert isinstance(result.x, LowRank)
        radius = radius if model.rank is None else float(result.x.svd()[1].sum())
        return replace(model, x=result.x, radius=radius, state=None, result=result)

    def certified(self, model: Model, tol: float, steps: int) -> Model:
        """Go on within the radius, with biases as they are, until the engine proves that x is nearly stationary."""
        current = self.everything.replaced(self.left(self.everything, model), model.loss)
        domain = NuclearBall(current.pattern.shape, model.radius)
        stop = Mapping(tol) | Steps(steps)
        result = minimize(current, domain, domain.project(model.x), stop=stop, progress=False, on_interrupt="raise")
        assert isinstance(result.x, LowRank)
        return replace(model, x=result.x, result=result)


def engine(model: Model) -> NCGS:
    return NCGS(practical(), Subspace(model.rank), adaptive=True, certify=False)


@dataclass(frozen=True)
class Continued:
    """The solver, from a state that it was in before."""

    solver: NCGS
    state: NCGSState

    def init(self, problem: Problem, x0: Any) -> NCGSState:
        return self.state

    def step(self, problem: Problem, state: NCGSState) -> NCGSState:
        return self.solver.step(problem, state)
