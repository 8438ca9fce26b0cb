"""The loop, once. It owns the clock, the counters, the budget, the trace, interruption, and the choice of what to return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from math import inf, isfinite, nan, sqrt
from signal import SIGTERM
from typing import Any, NamedTuple

from condgrad.certificate import Certificate, linear_gap, witness
from condgrad.checks import FAULTS, BadOracle, NonFinite, choice, read_only
from condgrad.driver.audit import Lookout, Noticed, later
from condgrad.driver.checkpoint import Checkpoint, Saving
from condgrad.driver.counting import Counts, count
from condgrad.driver.ending import answer, out_of_precision, result, unchecked
from condgrad.driver.fingerprint import digest, fingerprint
from condgrad.driver.metrics import function_name, mapping, validation, value
from condgrad.driver.resolve import checked_answers, completed
from condgrad.driver.result import Lowest, Result
from condgrad.driver.stopping import Rule, Seconds
from condgrad.driver.trace import Trace
from condgrad.driver.vertices import Compared, probe
from condgrad.points import norm2
from condgrad.points.rounding import grad_scale, mapping_rounding, precision
from condgrad.protocols import Listener, Objective, Point, Problem, Reason, Record, Solver, fits
from condgrad.runtime.clock import Watch
from condgrad.runtime.interruption import (
    ACTIONS,
    Terminated,
    attach,
    default_action,
    defer_signals,
    describe_interruption,
    raise_on_sigterm,
)
from condgrad.runtime.signals import receiving
from condgrad.solvers.evaluation import same_point
from condgrad.solvers.smoothness import Backtracking

HEARTBEAT = 0.5
"""Seconds between two progress updates within a long step."""


DONE = ("converged", "failed", "interrupted")
"""Endings after which nothing more is measured: it is known, can't be, or somebody waits."""


IDLE = 100
"""After this number of steps in a row that move nothing and use up no budget, a run ends."""
ROOM = 10.0
"""So many times the step that two gradients allow is still a step."""
OUTPUTS = ("best", "last", "lowest")
"""What a run may be asked to return."""
DIGITS = 1e-15
"""A tolerance below this, relative to the first squared mapping, is beyond float64."""
GAP_ROUNDING = 3
"""A gap of at most this many times its rounding error is no larger than rounding, as in ``Certificate.exhausted``."""
GRACE = 0.1
"""The share of a deadline that the last measurement may take beyond it."""


class Gap(NamedTuple):
    """A Frank-Wolfe gap, rounded up, and the part of it that stands for rounding."""

    value: float
    noise: float


class _End(Exception):
    """Raised inside a step by an oracle call that a budget no longer allows."""

    def __init__(self, reason: Reason):
        self.reason = reason


def iterate(problem: Problem, solver: Solver, x0: Point, state: Any = None) -> Iterator[Any]:
    """Yield the states of a method, one for each step, without end.

    Parameters
    ----------
    problem : Problem
        The objective and the set.
    solver : Solver
        Has ``init(problem, x0)`` and ``step(problem, state)``; see :mod:`condgrad.solvers`.
    x0 : Point
        Where to start.
    state : State, default None
        A state to continue from. By default the method starts at ``x0``.

    Yields
    ------
    State
        First the start (``k = 0``, or ``state``), then the state after each step.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> from condgrad.solvers import ProjectedGradient
    >>> problem = cg.Problem(cg.Quadratic(np.eye(2)), cg.Box(np.ones(2), np.full(2, 3.0)))
    >>> states = cg.iterate(problem, ProjectedGradient(), np.array([3.0, 2.0]))
    >>> [next(states).x.tolist() for _ in range(3)]
    [[3.0, 2.0], [1.5, 1.0], [1.0, 1.0]]
    """
    check_order(problem, solver)
    problem = completed(problem)
    return _states(problem, solver, x0, state)


def _states(problem: Problem, solver: Solver, x0: Point, state: Any) -> Iterator[Any]:
    state = solver.init(problem, x0) if state is None else state
    while True:
        yield state
        state = solver.step(problem, state)


def check_order(problem: Any, solver: Any) -> None:
    """Refuse arguments in another order, at once and not in the first step."""
    if not isinstance(problem, Problem):
        raise TypeError(
            f"The first argument is of type {type(problem).__name__}, a Problem(objective, domain) was expected."
        )
    if missing := [name for name in ("init", "step") if not callable(getattr(solver, name, None))]:
        raise TypeError(
            f"The solver is of type {type(solver).__name__}, which has no {' and no '.join(missing)}: "
            "give one with init(problem, x0) and step(problem, state)."
        )


Callback = Callable[[Record, Point], bool | None]
"""Told of each step; returning True ends the run."""


def run(
    problem: Problem,
    solver: Solver,
    x0: Point,
    stop: Rule,
    *,
    name: str = "",
    every: int = 1,
    output: str = "best",
    measure: bool = False,
    validate: int = 10_000,
    seed: int = 0,
    callback: Callback | None = None,
    listeners: Sequence[Listener] = (),
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
    options: Mapping[str, Any] | None = None,
    on_interrupt: str | None = None,
) -> Result:
    """Run ``solver`` until ``stop``; return the iterate that ``output`` names.

    Parameters
    ----------
    problem : Problem
        The objective and the set.
    solver : Solver
        Has ``init(problem, x0)`` and ``step(problem, state)``.
    x0 : Point
        Where to start; a point of the set.
    stop : Rule
        When to end, such as ``Mapping(1e-6) | Steps(1000)``.
    name : str, default ""
        The method's name in the result and in progress lines. By default the solver's class name.
    every : int, default 1
        Record every ``every``-th step.
    output : {"best", "last", "lowest"}, default "best"
        Return the iterate with the smallest certified mapping, the last one, or the one with the lowest F among those whose
        value is known (of every ``every``-th step).
    measure : bool, default False
        Measure the mapping from outside, at the iterate that the method reports, in place of what the method proves itself
        (Frank-Wolfe's own bound, gap/gamma, is a loose one). A method that proves nothing is always measured from
        outside, at steps with growing distance.
    validate : int, default 10_000
        Number of samples on which an expectation is measured.
    seed : int, default 0
        Seed of that batch.
    callback : callable, default None
        ``callback(record, x)`` at the start and after each step; True ends the run.
    listeners : sequence of callables, default ()
        Called as ``listener(record, trace)`` after each step, and during long ones.
    checkpoint : Checkpoint, default None
        Where and how often the run is saved.
    resume : bool, default False
        Continue from the checkpoint, if there is one.
    options : mapping, default None
        What else the solver was built from: a checkpoint of a run with other options is refused.
    on_interrupt : {"raise", "return"} or None, default None
        As in :func:`condgrad.minimize`.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> from condgrad.solvers import FrankWolfe
    >>> problem = cg.Problem(cg.Quadratic(np.eye(3)), cg.Simplex(3))
    >>> cg.run(problem, FrankWolfe("line-search"), np.eye(3)[0], cg.Gap(1e-6) | cg.Steps(100)).status
    'converged'
    """
    check_order(problem, solver)
    problem = completed(problem)
    action = default_action() if on_interrupt is None else choice(on_interrupt, ACTIONS, "on_interrupt")
    name = name or type(solver).__name__
    choice(output, OUTPUTS, "output")
    asked = {
        "every": every,
        "output": output,
        "measure": measure,
        "validate": validate,
        "seed": seed,
        **(options or {}),
    }
    asked |= {"watches": sorted(stop.watches()), "tolerance": stop.tolerance(), "name": name}
    spec = digest(fingerprint(problem, solver, x0, asked, probing=False))
    problem = Problem(checked_answers(problem.objective), problem.domain)
    going = _Run(problem, solver, x0, stop, name, every, output, measure, listeners, seed, spec)
    if not going.has_value:
        going.measured = validation(going.problem, validate, seed)
    if checkpoint:
        going.saving = Saving(checkpoint, fingerprint(problem, solver, x0, asked), resume)
        going.saving.restore(going)
    with raise_on_sigterm(deliver=True):
        return going.to_the_end(callback, action)


@dataclass
class _Run:
    """What is fixed for one run, and what moves during it."""

    problem: Problem
    solver: Solver
    x0: Point
    stop: Rule
    name: str
    every: int
    output: str
    measure: bool
    listeners: Sequence[Listener]
    seed: int
    spec: str

    state: Any = None
    record: Record | None = None
    current: Certificate | None = None
    """What the last record's measures speak of."""
    current_k: int = 0
    """The step after which the method reported the point of ``current``; or in which it looked at it, of a point in between."""
    best: Certificate | None = None
    best_k: int = 0
    lowest: Lowest | None = None
    unconfirmed: Reason | None = None
    """A claim of convergence that its check did not confirm."""
    verified: Certificate | None = None
    """The check of a claim that it confirmed, on which the run ends."""
    known: list[tuple[Point, float]] = field(default_factory=list)
    """Points and F there, computed by the solver or for a record."""
    idle: int = 0
    """Steps in a row that changed nothing."""
    next_check: int = 0
    next_measure: int = 0
    next_gap: int = 0
    next_beat: float = 0.0
    gap_noise: float = 0.0
    """The rounding in the gap that was measured last."""
    late: float | None = None
    """By when the last measurement must be done, once the run has ended."""
    watch: Watch = field(default_factory=Watch)
    counts: Counts = field(default_factory=Counts)
    trace: Trace = field(default_factory=Trace)
    saving: Saving | None = None
    interruption: KeyboardInterrupt | None = None
    """Ctrl-C or SIGTERM, once it has come."""

    def __post_init__(self) -> None:
        self.has_value = fits(self.problem.objective, Objective)
        self.lookout = Lookout(self.problem, given=not isinstance(self.solver, Backtracking), start=self.x0)
        self.measured = self.problem = self.lookout.problem
        self.budgets = self.stop.budgets()
        self.watches = self.stop.watches()
        self.by_gap = self.watches == {"gap"}
        self.eps, self.gap_eps = self.stop.tolerance(), self.stop.gap_tolerance()
        self.keep_best = self.output == "best"

    def allow(self, price: dict[str, int]) -> None:
        """Refuse an oracle call that would break a budget, so that a long step ends inside; show that it is alive."""
        for budget in self.budgets:
            if budget.exceeded(self.counts, price, self.watch):
                raise _End(budget.reason())
        if self.listeners and self.record and self.watch.seconds > self.next_beat:
            self.next_beat = self.watch.seconds + HEARTBEAT
            with self.watch.paused():
                self.tell(self.spent(self.record))

    def tell(self, record: Record) -> None:
        for listener in self.listeners:
            listener(record, self.trace)

    def spent(self, record: Record) -> Record:
        """The record, with what has been spent until now."""
        return replace(
            record, seconds=self.watch.seconds, cpu=self.watch.cpu, wall=self.watch.wall, **asdict(self.counts)
        )

    @property
    def noticed(self) -> Noticed:
        return self.lookout.noticed._replace(vertices=self.lookout.vertices)

    @noticed.setter
    def noticed(self, noticed: Noticed) -> None:
        self.lookout.noticed, self.lookout.vertices = noticed, noticed.vertices

    def alive(self) -> None:
        """Asked by long computations between two oracle calls: is there time for more?"""
        if self.late is None:
            self.allow({})
        elif self.watch.wall > self.late:
            raise _End(Reason("out_of_budget", ""))

    def to_the_end(self, callback: Callback | None, action: str) -> Result:
        with receiving(self.alive, self.lookout.heard, alone=True):
            try:
                reason = self.loop(callback)
                if action == "raise" and isinstance(self.interruption, Terminated):
                    # a process that is asked to end has no time for a check
                    found = self.as_it_stands(self.interruption)
                else:
                    with self.watch.paused():
                        reason = self.look_at_the_last(reason)
                        self.close()
                        found = result(self, *self.answered(reason))
            except KeyboardInterrupt as interruption:  # while the result was checked: it is given back as it stands
                with defer_signals() as waiting:
                    if self.interruption is None or isinstance(interruption, Terminated):
                        self.interruption = interruption
                    found = self.as_it_stands(interruption)
                    if SIGTERM in waiting:
                        self.interruption = Terminated()
                    waiting.clear()
        # taken off: its traceback refers to this run, which would be a reference cycle
        cause, self.interruption = self.interruption, None
        if action == "raise" and cause is not None:
            attach(cause, result=found)
            raise cause
        return found

    def as_it_stands(self, interruption: KeyboardInterrupt) -> Result:
        """The best iterate without the check of it."""
        self.close()
        return result(
            self, *unchecked(self, Reason("interrupted", describe_interruption(interruption)), "that was interrupted")
        )

    def answered(self, reason: Reason) -> tuple[Point, float, Certificate | None, Reason]:
        """The checked answer; where the check runs out of memory, what stood before it."""
        try:
            return answer(self, reason)
        except MemoryError:
            return unchecked(self, Reason("failed", reason.message), "memory ran out")

    def loop(self, callback: Callback | None) -> Reason:
        """Step by step until something ends it, and what that was."""
        # local on purpose: stored on self it would form a reference cycle, which only the garbage collector frees
        counted = count(self.problem, self.counts, self.allow)
        try:
            for state in iterate(counted, self.solver, self.x0, self.state):
                with self.watch.paused():
                    ending = self.after(state, callback)
                if ending:
                    return ending
        except KeyboardInterrupt as interruption:
            self.interruption = interruption
            return Reason("interrupted", describe_interruption(interruption))
        except _End as end:
            return end.reason
        except (*FAULTS, MemoryError) as error:
            if self.state is None or self.state.k == 0:
                raise
            what = str(error) if isinstance(error, BadOracle) else f"{type(error).__name__}: {error}."
            if isinstance(error, MemoryError):
                what = f"Memory ran out ({error})."
            return Reason("failed", f"In step {self.state.k + 1}: {what} The result is what stood before it.")
        finally:  # also where a callback raises, or a user's function: that is theirs, but what was reached is not lost
            self.late = inf
            if self.saving:
                with defer_signals():
                    self.saving.save(self.trace)
        return Reason("stopped", "")

    def after(self, state: Any, callback: Callback | None) -> Reason | None:
        """Look at the state after a step, and say why to end, if so. A state that was restored has been looked at."""
        earlier = record = self.record
        new = state is not self.state
        if not new and record is not None and state.k != record.k:
            raise TypeError(f"{type(self.solver).__name__}.step changes its state in place: return a new state.")
        if record is None or new:
            self.lookout.at(state)
            before = self.state
            self.state, self.record = state, (now := self.observe(state))
            self.lookout.between(before, state, record, now, self.look_up)
            record = now
            self.forget()
            self.idle = self.idle + 1 if self.stands_still(before, earlier, now) else 0
        ending = self.confirmed(self.stop(record, self.trace), state.k) or self.exhausted(state.k)
        if ending is None and self.idle >= IDLE:
            ending = Reason("stalled", f"{IDLE} steps in a row left the point where it was and used up no budget.")
        self.lookout.listen()  # what was heard while measuring is not of the next step
        if new:
            if callback and callback(record, read_only(state.x)):
                ending = ending or Reason("stopped", "The callback asked to stop.")
            self.tell(record)
            if self.saving:
                self.saving.after(self)
        if state.k % self.every == 0 or ending:
            self.trace.append(record)
        return ending

    def close(self) -> None:
        """A last row where the run ended inside a step, so that the trace has all that was spent."""
        if self.record is None:
            return
        if not self.trace or asdict(self.counts) != {
            name: getattr(self.trace[-1], name) for name in asdict(self.counts)
        }:
            self.trace.append(replace(self.spent(self.record), gap=nan, mapping=nan, mapping_lower=nan))

    def observe(self, state: Any) -> Record:
        """What is known after this step; the best certificate so far is kept."""
        self.learn(state)
        fun = self.value(state.x) if state.k % self.every == 0 else nan
        self.keep_lowest(state.x, fun, state.k)
        if getattr(state, "fun", None) is not None:  # known without a call, also between two records
            self.keep_lowest(state.x, float(state.fun), state.k)
        self.current = certificate = self.certify(state)
        gap = upper = lower = nan
        if certificate is not None:
            gap, upper, lower = self.gap(certificate, state.k), certificate.upper, certificate.lower
            before = self.state is not None and certificate.x is self.state.x  # a step certifies where it started
            self.current_k = self.state.k if before else state.k
            if self.best is None or self.rank(certificate) < self.rank(self.best):
                self.best, self.best_k = certificate, self.current_k
        return Record(
            k=state.k,
            seconds=self.watch.seconds,
            cpu=self.watch.cpu,
            wall=self.watch.wall,
            **asdict(self.counts),
            fun=fun,
            gap=gap,
            mapping=upper,
            mapping_lower=lower,
            smoothness=state.L,
        )

    def keep_lowest(self, x: Point, fun: float, k: int) -> None:
        """The iterate with the lowest F so far, by reference: points are values."""
        if isfinite(fun) and (self.lowest is None or fun < self.lowest.fun):
            self.lowest = Lowest(x, fun, k)

    def value(self, x: Point) -> float:
        """F(x), refused where it is not a number; NaN where F is an expectation."""
        fun = self.look_up(x) if self.has_value else nan
        if self.has_value and not isfinite(fun):
            raise NonFinite(f"The value of {type(self.problem.objective).__name__} is {fun}.")
        return fun

    def look_up(self, x: Point) -> float:
        """F(x), not computed again where it is known."""
        found = (fun for point, fun in self.known if same_point(point, x))
        fun = next(found, None)
        fun = value(self.problem, x) if fun is None else fun
        self.known.append((x, fun))  # also where an equal point was found, which may not be held much longer
        return fun

    def learn(self, state: Any) -> None:
        """Take over the values that the solver has computed; a user's own state need not have any."""
        if getattr(state, "fun", None) is not None:
            self.known.append((state.x, float(state.fun)))
        if getattr(state, "descent_fun", None) is not None:
            self.known.append((state.descent.x, float(state.descent_fun)))

    def stands_still(self, before: Any, last: Record | None, now: Record) -> bool:
        """The step left the point where it was and brought no budget closer to its end: it could go on so for ever."""
        if before is None or last is None or not same_point(before.x, self.state.x):
            return False
        # without the measures: progress towards a tolerance would hide that of the steps
        now, last = (replace(record, mapping=nan, gap=nan) for record in (now, last))
        return self.stop.progress(now, self.trace) <= self.stop.progress(last, self.trace)

    def forget(self) -> None:
        """Of the values that are known, keep those at the points that the run still holds."""
        held = [self.state.x, *(certificate.x for certificate in (self.current, self.best) if certificate)]
        self.known = [(point, fun) for point, fun in self.known if any(point is x for x in held)]

    def gap(self, certificate: Certificate, k: int) -> float:
        """The Frank-Wolfe gap at the certificate's point: its own, or measured where the stopping rule asks for it."""
        if "gap" not in self.watches or certificate.prox is certificate.x or k < self.next_gap:
            return certificate.wolfe_gap
        self.next_gap = later(k)
        gap, self.gap_noise = self.gap_at(certificate)
        return gap

    def certify(self, state: Any) -> Certificate | None:
        """The step's own certificate, or a measured one when it is due."""
        own = state.certificate
        if own is not None and not self.measure and not (self.by_gap and own.prox is not own.x):
            return self.rounded(own, state.descent)
        if state.k < self.next_measure or (state.k == 0 and not self.measure):
            return None
        self.next_measure = later(state.k)
        gamma = 1 / (2 * state.L)
        if self.by_gap:
            return witness(self.measured, state.x, state.x, gamma, function_name(self.measured))
        return mapping(self.measured, state.x, gamma, self.eps, exact=self.measure)

    def rounded(self, own: Certificate, descent: Any) -> Certificate:
        """A step's own certificate, with the linear oracle's error in this step and what rounding can do to the mapping."""
        rounding = own.rounding
        if descent is not None and descent.x is own.x:
            known = precision(self.problem.objective, descent.grad)
            terms, gamma = grad_scale(self.problem.objective, own.x), min(own.gamma, own.step or own.gamma)
            rounding = mapping_rounding(descent.grad, own.x, own.prox, gamma, known, terms)
        return replace(own, gap=own.gap + self.lookout.error, rounding=rounding)

    def rank(self, certificate: Certificate) -> float:
        return certificate.gap if self.by_gap else certificate.upper

    def look_at_the_last(self, reason: Reason) -> Reason:
        """A method that is measured on some steps only is measured once more where it ended."""
        measured = self.measure or self.state is None or self.state.certificate is None
        if not measured or not self.keep_best or self.current is not None or reason.status in DONE:
            return reason
        if self.state is None or self.state.k == 0:
            return reason
        self.next_measure = 0
        try:
            with self.grace():
                self.record = self.observe(self.state)
        except (*FAULTS, MemoryError, _End):
            return reason
        self.trace.amend(self.record)
        ending = self.stop(self.record, self.trace)
        return ending if ending is not None and ending.status == "converged" else reason

    @contextmanager
    def grace(self) -> Iterator[None]:
        """The time after a deadline in which the last point may still be measured."""
        deadlines = [budget.limit for budget in self.budgets if isinstance(budget, Seconds)]
        self.late = self.watch.wall + GRACE * min(deadlines, default=inf)
        try:
            yield
        finally:
            self.late = inf

    def certify_at_the_end(self, x: Point, reason: Reason) -> Certificate:
        """Measure a point that was never certified; where somebody waits or time is up, by its Frank-Wolfe gap, which is one
        linear oracle call."""
        gamma = 1 / (2 * self.state.L)
        if reason.status != "interrupted":
            try:
                with self.grace():
                    claim = mapping(self.measured, x, gamma, self.eps)
                if reason.status == "converged":
                    self.lookout.alone(claim)
                return self.probed(self.verify(claim), self.hurried(reason))
            except _End:
                pass
        claim = Certificate(x, x, gamma, inf, on=function_name(self.measured))
        return self.probed(self.verify(claim), brief=True)

    def hurried(self, reason: Reason) -> bool:
        """Whether somebody waits, or a deadline has passed."""
        late = any(isinstance(budget, Seconds) and self.watch.wall > budget.limit for budget in self.budgets)
        return late or reason.status == "interrupted"

    def last(self) -> Point:
        """What is returned where no certificate decides."""
        if self.output == "lowest" and self.lowest is not None:
            return self.lowest.x
        return self.x0 if self.state is None else self.state.x

    def verify(self, claim: Certificate) -> Certificate:
        """The claim's certificate, computed again by the problem's own oracles, which no solver has wrapped.

        The step size is that of the problem's own L, or of the larger L that the run has shown to be needed: with a longer step
        the mapping of any point is small.
        """
        L = self.problem.objective.smoothness
        L = self.lookout.smoothness(L) if L else self.least_smoothness(claim)
        if L and claim.gamma > (1 + 1e-9) / (2 * L):
            claim = replace(claim, gamma=1 / (2 * L), step=claim.step or claim.gamma)
        verified = self.lookout.with_slack(claim.verify(self.measured))
        if claim.step is None or verified.upper <= (self.eps or 0.0):
            return verified
        # a point of the set is a witness for every step size, and a long one magnifies rounding
        short = self.lookout.with_slack(replace(claim, step=None).verify(self.measured))
        return min(verified, short, key=self.rank)

    def least_smoothness(self, claim: Certificate) -> float:
        """Lower bound on L from the gradients at the two points of a certificate; if these are equal, at the point and at the
        linear oracle's answer. Used where L is not given, so that a solver's tiny L does not make the step size too long. It is
        divided by ROOM, because solvers estimate L from values."""
        x, y, grad = claim.x, claim.prox, self.measured.objective.grad
        here = grad(x)
        if same_point(x, y):  # as of Frank-Wolfe's certificate
            y = self.measured.domain.lmo(here)
        apart = sqrt(norm2(x - y))
        found = sqrt(norm2(here - grad(y))) / apart if apart else 0.0
        return found / ROOM if isfinite(found) else 0.0

    def confirmed(self, ending: Reason | None, k: int) -> Reason | None:
        """A claim of convergence is checked before the run ends on it; where the check does not confirm it, go on."""
        if ending is None or ending.status != "converged" or self.current is None or not self.keep_best:
            return ending
        if k >= self.next_check:
            self.lookout.alone(self.current)
            verified = self.verify(self.current)
            if self.satisfied(verified):
                verified = self.probed(verified)
            if self.satisfied(verified):
                self.verified = verified
                return ending
            self.best, self.best_k = verified, self.current_k
            self.unconfirmed, self.next_check = ending, later(k)
            if beyond := self.beyond_precision(verified):
                return beyond
        return self.stop(replace(self.record, mapping=nan, gap=nan), self.trace) if self.record else None

    def probed(self, certificate: Certificate, brief: bool = False) -> Certificate:
        """Ask a user's linear oracle some more, near the direction that the certificate rests on; with the error found."""
        if not isinstance(self.problem.domain, Compared):
            return certificate
        x, prox, taken = certificate.x, certificate.prox, certificate.step or certificate.gamma
        direction = self.measured.objective.grad(x) + (1 / taken) * (prox - x)
        error = probe(self.problem.domain, direction, (x,) if prox is x else (x, prox), brief)
        return replace(certificate, gap=certificate.gap + error) if error else certificate

    def sensible(self, measure: str, eps: float | None) -> float | None:
        """The tolerance for a measure, where float64 can speak of it, compared with where the run began. One below is a way to
        say that only budgets end the run."""
        if eps is None:
            return None
        rows = chain(self.trace, (self.record,))  # the present record joins the trace later
        values = (getattr(row, measure) for row in rows if row is not None)
        first = next((value for value in values if isfinite(value)), nan)
        return None if eps < DIGITS * first else eps

    def exhausted(self, k: int) -> Reason | None:
        """Recognises a point that is stationary as far as float64 can tell, where it can't tell as much as was asked for."""
        claim = self.current
        if claim is None or not self.keep_best or k < self.next_check:
            return None
        if not self.near_rounding(claim) and not self.gap_near_rounding(claim):
            return None
        verified = self.verify(claim)
        if beyond := self.beyond_precision(verified):
            self.best, self.best_k = verified, self.current_k
            return beyond
        self.next_check = later(k)
        return None

    def near_rounding(self, claim: Certificate) -> bool:
        """Whether the claimed mapping is above its tolerance, and no more so than rounding may explain: worth a check."""
        if self.by_gap or (eps := self.sensible("mapping", self.eps)) is None:
            return False
        rough = claim.stretch / claim.gamma * claim.rounding * sqrt(norm2(claim.prox))
        close = claim.stretch * claim.norm <= sqrt(eps) + claim.stretch * claim.rounding
        return claim.upper > eps and rough > eps and close

    def gap_near_rounding(self, claim: Certificate) -> bool:
        """The same for the Frank-Wolfe gap."""
        if self.record is None or not isfinite(self.record.gap):
            return False
        if (eps := self.sensible("gap", self.gap_eps)) is None or self.record.gap <= eps:
            return False
        noise = claim.noise if claim.prox is claim.x else self.gap_noise
        return noise > eps and self.record.gap <= GAP_ROUNDING * noise

    def beyond_precision(self, certificate: Certificate, mostly: bool = False) -> Reason | None:
        """Why float64 can't tell whether the stopping rule is met at a verified point; None where it can.

        Parameters
        ----------
        certificate : Certificate
            A verified one.
        mostly : bool, default False
            Also where a quarter of the bound (half of the norm of the mapping) is rounding: a run that ends anyhow says so.
        """
        found: dict[str, Reason] = {}
        eps, floor = self.sensible("mapping", self.eps), certificate.floor
        if eps is not None and (certificate.exhausted(eps) or (mostly and eps < floor >= certificate.upper / 4)):
            found["mapping"] = out_of_precision("squared mapping", floor, eps)
        gap_eps = self.sensible("gap", self.gap_eps)
        if gap_eps is not None:
            gap, noise = self.gap_at(certificate)
            if gap_eps < noise and gap <= (4 if mostly else GAP_ROUNDING) * noise:
                found["gap"] = out_of_precision("Frank-Wolfe gap", noise, gap_eps)
        if not found or self.record is None:
            return None
        mapping = 0.0 if eps is not None and "mapping" not in found else inf
        gap = 0.0 if gap_eps is not None and "gap" not in found else inf
        hope = self.stop(replace(self.record, mapping=mapping, gap=gap), self.trace)
        if hope is not None and hope.status == "converged":  # by the other measure, which is not exhausted
            return None
        return next(iter(found.values()))

    def gap_at(self, certificate: Certificate) -> Gap:
        """The Frank-Wolfe gap at the certificate's point: its own, or computed by one gradient and one linear oracle call."""
        if certificate.prox is certificate.x:
            return Gap(certificate.gap, certificate.noise)
        return Gap(*linear_gap(self.measured.domain, self.measured.objective.grad(certificate.x), certificate.x))

    def satisfied(self, certificate: Certificate) -> bool:
        """Does the stopping rule say ``converged`` of these verified numbers too?"""
        if self.record is None:
            return False
        gap = self.gap_at(certificate).value if "gap" in self.watches else nan
        seen = replace(self.record, mapping=certificate.upper, gap=gap)
        unseen = replace(self.record, mapping=inf, gap=inf)
        again, blind = self.stop(seen, self.trace), self.stop(unseen, self.trace)
        return again is not None and again.status == "converged" and (blind is None or blind.status != "converged")

    def restated(self, reason: Reason, certificate: Certificate) -> Reason:
        """Why the rule is met, with the numbers of the check in place of those of the claim: one bound for one point."""
        if self.record is None:
            return reason
        gap = self.gap_at(certificate).value if "gap" in self.watches else nan
        checked = self.stop(replace(self.record, mapping=certificate.upper, gap=gap), self.trace)
        return checked if checked is not None and checked.status == "converged" else reason
