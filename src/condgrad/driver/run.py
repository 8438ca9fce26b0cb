"""The loop that runs every method (class `Loop`), and the functions `run` and `iterate`, which start it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from signal import SIGTERM
from typing import Any

from condgrad.checks import FAULTS, BadOracle, choice, read_only
from condgrad.driver.asked import OUTPUTS, Asked, Callback
from condgrad.driver.audit import Audit, audited
from condgrad.driver.checkpoint import Checkpoint, Saving
from condgrad.driver.counting import count
from condgrad.driver.ending import finish, interrupted
from condgrad.driver.fingerprint import digest, fingerprint
from condgrad.driver.metrics import validation
from condgrad.driver.observation import Observer
from condgrad.driver.reached import Reached
from condgrad.driver.resolve import checked_answers, completed, uncached
from condgrad.driver.result import Result
from condgrad.driver.stopping import Rule
from condgrad.driver.verification import Verifier
from condgrad.protocols import BudgetEnd, Listener, Objective, Point, Problem, Reason, Record, Solver, fits
from condgrad.runtime.cache import Cache, caching, in_run, outside_of_runs
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
from condgrad.solvers.smoothness import estimates_smoothness
from condgrad.solvers.states import without_descent

SECONDS_BETWEEN_REPORTS = 0.5
"""Seconds between two progress updates within a long step."""
MAX_IDLE_STEPS = 100
"""The run ends after this number of steps in a row that leave the iterate unchanged and use up no budget."""


def iterate(problem: Problem, solver: Solver, x0: Point, state: Any = None) -> Generator[Any, Any, None]:
    """Yield the states of a method, one for each step, without end.

    Parameters
    ----------
    problem : Problem
        The objective and the set.
    solver : Solver
        Has ``init(problem, x0)`` and ``step(problem, state)``; see :mod:`condgrad.solvers`.
    x0 : Point
        Starting point.
    state : State, default None
        State from which the method continues. By default the method starts at ``x0``.

    Yields
    ------
    State
        First the state at the start (or the given ``state``), then the state after each step. The step number ``k`` of the state
        at the start is 0, or negative with a warm start.

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


def _states(problem: Problem, solver: Solver, x0: Point, state: Any) -> Generator[Any, Any, None]:
    """Yield the states. A state that is sent to the generator replaces the last state."""
    cache = None if in_run() else Cache()  # a user's own loop over the iterates needs a cache too
    if state is None:
        with caching(cache):
            state = solver.init(problem, x0 if cache is None else uncached(x0))
    while True:
        sent = yield state
        state, sent = (
            state if sent is None else sent,
            None,
        )  # a second reference would keep the state alive during the step
        with caching(cache):
            state = solver.step(problem, state)


def check_order(problem: Any, solver: Any) -> None:
    """Raise TypeError if the arguments are in the wrong order, before the first step."""
    if not isinstance(problem, Problem):
        raise TypeError(
            f"The first argument is of type {type(problem).__name__}, a Problem(objective, domain) was expected."
        )
    if missing := [name for name in ("init", "step") if not callable(getattr(solver, name, None))]:
        raise TypeError(
            f"The solver is of type {type(solver).__name__}, which has no {' and no '.join(missing)}: "
            "give one with init(problem, x0) and step(problem, state)."
        )


def run(
    problem: Problem,
    solver: Solver,
    x0: Point,
    stop: Rule,
    *,
    name: str = "",
    every: int = 1,
    output: str = "best",
    measure: bool | float = False,
    validate: int = 10_000,
    seed: int = 0,
    callback: Callback | None = None,
    listeners: Sequence[Listener] = (),
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
    options: Mapping[str, Any] | None = None,
    on_interrupt: str | None = None,
) -> Result:
    """Run ``solver`` until the rule ``stop`` is met, and return the iterate that ``output`` names.

    Parameters
    ----------
    problem : Problem
        The objective and the set.
    solver : Solver
        Has ``init(problem, x0)`` and ``step(problem, state)``.
    x0 : Point
        Starting point, a point of the set.
    stop : Rule
        Stopping rule, such as ``Mapping(1e-6) | Steps(1000)``.
    name : str, default ""
        The method's name in the result and in progress lines. By default the solver's class name.
    every : int, default 1
        Number of steps from one record of the trace to the next.
    output : {"best", "last", "lowest"}, default "best"
        Which iterate is returned. "best": the iterate with the smallest certified mapping. "last": the last iterate. "lowest":
        the iterate with the lowest F among the recorded steps (see ``every``).
    measure : bool or float, default False
        Whether the driver measures the gradient mapping of the iterates, at growing intervals, instead of using the bound that
        the method computes. The bound of a method may be loose: the bound of Frank-Wolfe is gap/gamma. If a method computes no
        bound, the driver always measures. A number is the L of the measured mapping, as in :func:`condgrad.minimize`.
    validate : int, default 10_000
        Number of samples of an expectation on which iterates are measured.
    seed : int, default 0
        Seed with which the ``validate`` samples are drawn.
    callback : callable, default None
        ``callback(record, x)`` is called at the start and after each step. If it returns True, the run ends.
    listeners : sequence of callables, default ()
        Called as ``listener(record, trace)`` after each step, and within a long step.
    checkpoint : Checkpoint, default None
        Where and how often the run is saved.
    resume : bool, default False
        Continue from the checkpoint, if there is one.
    options : mapping, default None
        Further settings from which the solver was built. A checkpoint of a run with other options is refused.
    on_interrupt : {"raise", "return"} or None, default None
        What happens after Ctrl-C or SIGTERM, as in :func:`condgrad.minimize`.

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
    settings = {
        "every": every,
        "output": output,
        "measure": measure,
        "validate": validate,
        "seed": seed,
        **(options or {}),
    }
    settings |= {"watches": sorted(stop.watches()), "tolerance": stop.tolerance(), "name": name}
    spec = digest(fingerprint(problem, solver, x0, settings, probing=False))
    problem = Problem(checked_answers(problem.objective), problem.domain)
    uncounted = measured = audited(problem, x0)
    if not fits(problem.objective, Objective):
        measured = validation(uncounted, validate, seed)
    asked = Asked(uncounted, measured, solver, x0, stop, name, every, output, measure, listeners, callback, seed, spec)
    loop = Loop(asked)
    if checkpoint:
        loop.saving = Saving(checkpoint, fingerprint(problem, solver, x0, settings), resume)
        if loop.saving.restore(asked, loop.reached, loop.cache):
            loop.audit.resume()
    with raise_on_sigterm(deliver=True):
        return loop.to_the_end(action)


class Loop:
    """The loop of one run: takes steps, observes each of them, and handles budgets, faults, signals and checkpoints."""

    def __init__(self, asked: Asked, reached: Reached | None = None):
        self.asked, self.reached = asked, Reached() if reached is None else reached
        self.cache = Cache()
        self.audit = Audit(asked.problem, not estimates_smoothness(asked.solver), self.reached)
        self.observer = Observer(asked, self.reached, self.audit)
        self.verifier = Verifier(asked, self.reached, self.audit, self.observer)
        self.saving: Saving | None = None
        self.next_report = 0.0
        """Time of the next progress report within a step."""
        self.deadline: float | None = None
        """Time at which the measurements after the end of the run must be finished; None during the run."""
        self.interruption: KeyboardInterrupt | None = None
        """Ctrl-C or SIGTERM, once received."""

    def to_the_end(self, action: str) -> Result:
        """Run the loop, check the point to return, and return the result.

        With the action "raise", a signal that ended the run is raised as an exception, with the result as its attribute.
        """
        with receiving(self.alive, self.audit.reports, alone=True), caching(self.cache):
            try:
                reason = self.run()
                if action == "raise" and isinstance(self.interruption, Terminated):
                    # a process that is asked to end has no time for a check
                    found = interrupted(self, self.interruption)
                else:
                    with self.reached.watch.paused():
                        found = finish(self, reason)
            except KeyboardInterrupt as interruption:  # during the check of the result: return it unchecked
                with defer_signals() as waiting:
                    if self.interruption is None or isinstance(interruption, Terminated):
                        self.interruption = interruption
                    found = interrupted(self, interruption)
                    if SIGTERM in waiting:
                        self.interruption = Terminated()
                    waiting.clear()
        # removed from self: the traceback refers to this loop, so that there would be a reference cycle
        cause, self.interruption = self.interruption, None
        if action == "raise" and cause is not None:
            attach(cause, result=found)
            raise cause
        return found

    def run(self) -> Reason:
        """Take steps until the stopping rule, the callback, a budget, a fault or a signal ends the run. Returns the reason."""
        asked, reached = self.asked, self.reached
        # a local variable on purpose: as an attribute, it would form a reference cycle, which only the garbage collector frees
        counted = count(asked.problem, reached.counts, self.allow)
        try:
            states, state = iterate(counted, asked.solver, asked.x0, reached.state), None
            while True:
                state = states.send(state)
                with reached.watch.paused():
                    ending = self.after(state)
                if ending:
                    return ending
                state = reached.state
        except KeyboardInterrupt as interruption:
            self.interruption = interruption
            self.take_over(interruption)
            return Reason("interrupted", describe_interruption(interruption))
        except BudgetEnd as end:
            self.take_over(end)
            return end.reason
        except (*FAULTS, MemoryError) as error:
            step = 0 if reached.state is None else reached.state.k + 1
            within = self.take_over(error)
            if not asked.checked or reached.state is None or reached.state.k <= 0:
                raise
            what = str(error) if isinstance(error, BadOracle) else f"{type(error).__name__}: {error}."
            if isinstance(error, MemoryError):
                what = f"Memory ran out ({error})."
            stood = "the point that this step had reached" if within else "the iterate before this step"
            return Reason("failed", f"In step {step}: {what} The result is {stood}.")
        finally:  # also if a callback or a user's function raises, so that the steps so far are not lost
            self.deadline = inf
            if self.saving:
                with defer_signals():
                    self.saving.save(reached.trace)

    def take_over(self, end: BaseException) -> bool:
        """If a step did not finish, but attached its state to the exception ``end``, make this state the last state of the run.

        Returns whether the exception had a state.

        If a budget ended the step, the state is observed like any other. After a signal nothing is computed, because there is no
        time. After a fault nothing is computed, because the objective may have no valid answer. The checkpoint still has the
        state before the step.
        """
        state, reached = vars(end).pop("unfinished", None), self.reached
        if state is None or reached.record is None:
            return False
        record = None
        if isinstance(end, BudgetEnd):
            try:
                with reached.watch.paused():
                    record = self.observer.observe(state)
            except (*FAULTS, MemoryError, BudgetEnd):
                pass  # the record below then has no measures
        if record is None:
            reached.current = None
            self.observer.learn(state)
            reached.keep_lowest(state.x, float(state.fun), state.k)
            unmeasured = {"gap": nan, "mapping": nan, "mapping_lower": nan, **reached.spent()}
            record = replace(reached.record, k=state.k, fun=float(state.fun), smoothness=state.L, **unmeasured)
        reached.state, reached.record = state, record
        reached.trace.append(record)
        return True

    def after(self, state: Any) -> Reason | None:
        """Observe the state after a step. Returns the reason to end the run, if there is one.

        A state restored from a checkpoint is not observed again.
        """
        asked, reached = self.asked, self.reached
        last, before = reached.record, reached.state
        new = state is not before
        if not new and last is not None and state.k != last.k:
            raise TypeError(f"{type(asked.solver).__name__}.step changes its state in place: return a new state.")
        if last is None or new:
            if asked.checked:
                self.audit.check_point(state)
            record = self.observer.observe(state)
            reached.state, reached.record = state, record
            if asked.checked:
                self.audit.check_step(before, state, last, record, self.observer.look_up)
            reached.state = without_descent(state)
            reached.forget()
            reached.idle = reached.idle + 1 if self.stands_still(before, last) else 0
        else:
            record = last
        ending = self.verifier.confirmed(asked.stop(record, reached.trace), state.k) or self.verifier.exhausted(state.k)
        if ending is None and reached.idle >= MAX_IDLE_STEPS:
            message = f"{MAX_IDLE_STEPS} steps in a row left the point where it was and used up no budget."
            ending = Reason("stalled", message)
        self.audit.collect()  # so that reports of measurements are not attributed to the next step
        if new:
            if asked.callback and self.callback_stops(asked.callback, record, state.x):
                ending = ending or Reason("stopped", "The callback asked to stop.")
            self.report(record)
            if self.saving:
                self.saving.after(asked.problem.objective, reached, self.cache)
        if state.k % asked.every == 0 or ending:
            reached.trace.append(record)
        return ending

    def callback_stops(self, callback: Callback, record: Record, x: Point) -> bool:
        """Call the user's callback, and return whether it asks to stop. Evaluations of F in the callback do not affect the run.

        The callback gets a copy of the point, because later steps may change how the run's point is stored.
        """
        with outside_of_runs():
            return bool(callback(record, read_only(uncached(x))))

    def stands_still(self, before: Any, last: Record | None) -> bool:
        """Whether the step left the point unchanged and used up no budget. Such steps could be repeated for ever."""
        now, stop, trace = self.reached.record, self.asked.stop, self.reached.trace
        if before is None or last is None or now is None or not same_point(before.x, self.reached.state.x):
            return False
        # without the measures, ``progress`` depends on the budgets only
        now, last = (replace(record, mapping=nan, gap=nan) for record in (now, last))
        return stop.progress(now, trace) <= stop.progress(last, trace)

    def allow(self, price: dict[str, int]) -> None:
        """Called before each oracle call. Raises BudgetEnd if the call would exceed a budget, and reports progress.

        A budget can therefore end a long step.
        """
        reached = self.reached
        for budget in self.asked.budgets:
            if budget.exceeded(reached.counts, price, reached.watch):
                raise BudgetEnd(budget.reason())
        if self.asked.listeners and reached.record and reached.watch.seconds > self.next_report:
            self.next_report = reached.watch.seconds + SECONDS_BETWEEN_REPORTS
            with reached.watch.paused():
                self.report(replace(reached.record, **reached.spent()))

    def alive(self) -> None:
        """Called within long computations, between two oracle calls. Raises BudgetEnd if a budget is used up."""
        if self.deadline is None:
            self.allow({})
        elif self.reached.watch.wall > self.deadline:
            raise BudgetEnd(Reason("out_of_budget", ""))

    def report(self, record: Record) -> None:
        """Call the listeners."""
        for listener in self.asked.listeners:
            listener(record, self.reached.trace)
