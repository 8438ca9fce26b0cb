"""`minimize`: checks the arguments, builds the solver and runs it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from condgrad.checks import BadOracle, choice, positive, whole, yes_or_no
from condgrad.driver import gradient_check
from condgrad.driver.asked import OUTPUTS, Callback
from condgrad.driver.checkpoint import Checkpoint, chosen_before
from condgrad.driver.chooser import Auto, Choice, choose, first_vertex
from condgrad.driver.progress import Progress
from condgrad.driver.resolve import check_problem, check_start, given_smoothness, not_vacuous, with_smoothness
from condgrad.driver.result import Result
from condgrad.driver.run import run
from condgrad.driver.smoothness_estimate import SmoothnessEstimate
from condgrad.driver.stopping import Mapping, Rule, Steps
from condgrad.inner import INNERS, Spectral, inner_solver, suits
from condgrad.points import LowRank
from condgrad.protocols import Inner, Objective, Point, Problem, Reason, Record, Solver, SpectralSet, fits
from condgrad.registration import known
from condgrad.runtime.interruption import ACTIONS, attach, default_action, raise_on_sigterm
from condgrad.runtime.progress import switched_off
from condgrad.solvers import METHODS, Schedule, Setup, build, practical, theory

logger = logging.getLogger(__name__)

WARM_START, WARM_START_OF_POLISH = 20, 10
"""Default numbers of Frank-Wolfe steps of a warm start: without the factored phase, and with it, which improves a rough start at
less cost."""
PRACTICAL_CALLS = 1000
"""Maximum number of linear oracle calls for a prox subproblem with the practical schedule; condg could need millions."""


def minimize(
    objective: Any,
    domain: Any,
    x0: Point | None = None,
    *,
    method: str | Solver | Auto = "ncgs",
    tol: float = 1e-6,
    max_steps: int = 1000,
    stop: Rule | None = None,
    schedule: str | Schedule = "practical",
    inner: str | Inner = "auto",
    warm_start: int | None = None,
    polish: bool | str = "auto",
    smoothness: float | str | None = None,
    output: str | None = None,
    seed: int = 0,
    every: int = 1,
    measure: bool | float = False,
    validate: int = 10_000,
    callback: Callback | None = None,
    progress: bool | None = None,
    check_gradient: bool = False,
    checkpoint: str | PathLike[str] | Checkpoint | None = None,
    resume: bool = False,
    on_interrupt: str | None = None,
    **options: Any,
) -> Result:
    r"""Minimise a smooth, possibly non-convex function over a convex set.

    Only ``projected-gradient`` and ``accelerated-gradient`` need a projection; all other methods use linear minimisations over
    the set. On a set with a cheap projection the default ``inner="auto"`` solves prox subproblems by projection, and
    ``result.inner`` says so.

    .. math:: \min_{x \in \Omega} F(x)

    Parameters
    ----------
    objective : Objective, FiniteSum or Expectation
        The function F: one of :mod:`condgrad.objectives`, or your own as ``Function(value, grad)``.
    domain : Domain
        The set: one of :mod:`condgrad.domains`, or your own as ``user_set(lmo, shape)``.
    x0 : Point of the shape of the set, default None
        Starting point; it is not changed. None: ``domain.start()``. For a ``user_set`` with neither ``contains`` nor
        ``project``, up to 10 linear oracle calls, which are not counted, check that x0 is not outside.
    method : str, Solver or Auto, default "ncgs"
        A name from ``condgrad.METHODS``, a solver object, or "auto". A solver object has ``init(problem, x0)`` and
        ``step(problem, state)``. It has its own schedule, inner solver and options, so that none of these may be given
        here. "auto": chosen by :func:`condgrad.driver.chooser.choose` from what the objective and the set offer and from
        the measured CPU time of their oracles, among all methods that fit the problem and accept the given options;
        ``result.choice`` and ``result.message`` say which, and why. A resumed run keeps the choice of its checkpoint.
        ``Auto(clock=False)`` measures no time, so that the choice is the same on every machine.
    tol : float, default 1e-6
        Stop when the squared gradient mapping |g|^2, for gamma = 1/(2L), is certified to be at most ``tol``. It has the
        unit F^2 / x^2 of a squared gradient: if F is multiplied by 10, it becomes 100 times as large; if x is multiplied
        by 10, it becomes 100 times as small.
    max_steps : int, default 1000
        Maximum number of steps. With ``schedule="theory"``, the N of the theorem.
    stop : Rule, default None
        Stopping rule in place of ``tol`` and ``max_steps``, such as ``Gap(1e-4) | Seconds(60) | Calls(10_000,
        "lo")``. Its mapping tolerance, if it has one, replaces ``tol`` in the accuracy of prox subproblems too.
    schedule : {"practical", "theory"} or Schedule, default "practical"
        Step sizes, accuracies and batch sizes; also a value such as ``practical(c=0.25)``.
    inner : {"auto", "spectral", "exact", "corrective", "condg"} or Inner, default "auto"
        How prox subproblems are solved; also an inner solver such as ``CondG(max_calls=100)``. "auto": spectral on
        spectral sets, exact on other sets with a projection, else corrective. With a name and the practical schedule,
        each prox subproblem takes at most 1000 linear oracle calls (spectral: 4, corrective: 5); its certificate states
        the accuracy that was reached.
    warm_start : int, default None
        Number of Frank-Wolfe steps before a sliding method begins on a spectral set. They are rows of the trace with
        the phase "warm-start" and numbers below 0; ``max_steps`` does not count them. None: 20, or 10 with
        ``polish``, with the practical schedule if x0 is None, else 0.
    polish : bool or "auto", default "auto"
        Whether each step is followed by a phase that minimises F over the factors of the iterate. This converges much faster than
        the steps alone; certificates are then computed on some steps only. Available for ``ncgs`` with the practical schedule, on
        sets that have a factored form (``NuclearBall``, ``Spectrahedron``). "auto": if iterates are ``LowRank``, as with
        ``Completion``. False: the steps alone, each with its certificate. True: also for iterates that are arrays; raises
        TypeError if there is no factored form.
    smoothness : float, SmoothnessEstimate or "estimate", default None
        The constant L to use in place of the objective's own: a number, or the result of
        :func:`condgrad.estimate_smoothness`, which also has the constants of the terms of a finite sum. "estimate": L is
        found by backtracking. None: the objective's own L; found by backtracking if the objective has none.
    output : {"best", "last", "lowest", "random"}, default None
        Which iterate is returned. "best": the one with the smallest certified mapping; the mapping of a stochastic
        method is measured by the driver, for an expectation on a batch of ``validate`` samples. "last": the last one.
        "lowest": the one with the lowest F among every ``every``-th step, certified at the end. "random": the paper's
        random index, for stochastic methods. None: "random" for stochastic methods with ``schedule="theory"``, else
        "best".
    seed : int, default 0
        Seed of all random numbers.
    every : int, default 1
        Record every ``every``-th step in the trace, with the value of F.
    measure : bool or float, default False
        Have the driver measure the mapping of the iterates, at growing intervals and with the clock paused, in place of
        the bound that the method computes. For comparisons of methods. Matrices of up to 512 x 512 are measured by a
        full SVD. A number is the constant L of the measured mapping, gamma = 1/(2L), the same for all methods that are
        compared; True: the L of the method, which differs between methods that estimate it.
    validate : int, default 10_000
        Number of samples of an expectation on which iterates are measured.
    callback : callable, default None
        ``callback(record, x)``, called at the start and after each step. A true return value stops the run. What it
        evaluates at x has no effect on the run.
    progress : bool, default None
        Show a progress line on stderr. None: on a terminal, if the run takes more than two seconds.
        ``CONDGRAD_PROGRESS=0`` in the environment disables it everywhere.
    check_gradient : bool, default False
        Before the run, compare the gradient with differences of values (:func:`condgrad.check_gradient`), and refuse
        one that does not match.
    checkpoint : path-like or Checkpoint, default None
        File to which the run is saved every 30 seconds and at its end; ``Checkpoint(path, seconds=...)`` or
        ``Checkpoint(path, steps=...)`` for other intervals. An existing file is not overwritten unless ``resume`` is
        True.
    resume : bool, default False
        Continue from the checkpoint, bit for bit as the interrupted run would have; start from the beginning if there
        is none yet. The problem and all settings must be the same, except that budgets may be larger.
    on_interrupt : {"raise", "return"}, default None
        What follows Ctrl-C or SIGTERM, after the checkpoint (if there is one) has been saved. "raise": Ctrl-C raises
        KeyboardInterrupt with the result so far as its attribute ``result``, and SIGTERM ends the process, so that one
        signal ends a program of many runs. "return": the result so far is returned, with the status ``interrupted``.
        None: "return" in an interactive session, "raise" in a script. Your own handler of SIGTERM takes precedence.
    **options : Any
        Options of the method, such as ``rule="short"``; ``condgrad methods`` lists them. The ``rule`` of Frank-Wolfe
        may be a function of a :class:`condgrad.solvers.Direction` that returns the step size t.

    Returns
    -------
    Result
        With attributes ``x, fun, status, message, certificate, counts, trace, inner, lowest, choice``.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, with ``on_interrupt="raise"``; its attribute ``result`` is the Result.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> Q = np.diag([1.0, -2.0, 3.0])
    >>> result = cg.minimize(cg.Quadratic(Q), cg.Simplex(3))
    >>> result.status, result.x.round(6)
    ('converged', array([0., 1., 0.]))
    """
    whole(every, "every")
    whole(validate, "validate")
    if callback is not None and not callable(callback):
        raise TypeError(f"The callback is {callback!r}, a function of (record, x) was expected.")
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    if resume and checkpoint is None:
        raise TypeError("resume=True continues from a checkpoint: give its path, checkpoint=PATH.")
    on_interrupt = default_action() if on_interrupt is None else choice(on_interrupt, ACTIONS, "on_interrupt")
    made = chosen_before(checkpoint.path) if resume and checkpoint is not None and is_auto(method) else None
    ready = plan(
        objective,
        domain,
        x0,
        method=method,
        tol=tol,
        max_steps=max_steps,
        stop=stop,
        schedule=schedule,
        inner=inner,
        warm_start=warm_start,
        polish=polish,
        smoothness=smoothness,
        output=output,
        seed=seed,
        measure=measure,
        options=options,
        chosen=made,
    )
    if yes_or_no(check_gradient, "check_gradient"):
        compared = gradient_check.check_gradient(ready.problem.objective, ready.problem.domain, ready.start, seed=seed)
        if not compared.matches:
            raise BadOracle(f"{compared} Correct {type(objective).__name__}, or leave check_gradient out.")

    shown = (sys.stderr.isatty() if progress is None else progress) and not switched_off()
    picked = {} if ready.choice is None else {"choice": ready.choice.summary()}
    bar = Progress(ready.name if ready.choice is None else f"{ready.name} (chosen)", ready.rule)
    with raise_on_sigterm(deliver=True), closing(bar), told(ready.choice):
        result = run(
            ready.problem,
            ready.solver,
            ready.start,
            ready.rule,
            name=ready.name,
            every=every,
            output="last" if ready.output == "random" else ready.output,
            measure=measure,
            validate=validate,
            seed=seed,
            callback=callback,
            listeners=[bar] if shown else [],
            checkpoint=checkpoint,
            resume=resume,
            options={"options": options, "output": ready.output, **picked},
            on_interrupt=on_interrupt,
        )
    result = with_choice(result, ready.choice)
    level = logging.DEBUG if progress is False else logging.INFO
    logger.log(level, "%s: %s after %d steps. %s", ready.name, result.status, result.steps, result.message)
    return result


@contextmanager
def told(made: Choice | None) -> Iterator[None]:
    """Context that adds the choice of the method to the result of an interrupted run."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        if made is not None and isinstance(found := vars(interruption).get("result"), Result):
            attach(interruption, result=with_choice(found, made))
        raise


def with_choice(result: Result, made: Choice | None) -> Result:
    """The result with the choice of its method, and with the reason as the last sentence of its message."""
    return result if made is None else replace(result, choice=made, message=f"{result.message} {made.reason}")


# ----------------------------------------------------------------------------------------------- before the first step


@dataclass(frozen=True, eq=False)
class Plan:
    """A run that is ready to begin: what ``minimize`` finds out before the first step."""

    problem: Problem
    solver: Solver
    start: Point
    rule: Rule
    name: str
    output: str
    choice: Choice | None
    """The choice of the method, if it was left to the library."""


def plan(
    objective: Any,
    domain: Any,
    x0: Point | None = None,
    *,
    method: str | Solver | Auto = "ncgs",
    tol: float = 1e-6,
    max_steps: int = 1000,
    stop: Rule | None = None,
    schedule: str | Schedule = "practical",
    inner: str | Inner = "auto",
    warm_start: int | None = None,
    polish: bool | str = "auto",
    smoothness: float | str | None = None,
    output: str | None = None,
    seed: int = 0,
    measure: bool | float = False,
    options: dict[str, Any] | None = None,
    chosen: Choice | None = None,
) -> Plan:
    """Check the arguments of :func:`minimize` and build the run, without a step.

    ``chosen`` is an earlier choice of the method to repeat, with ``method="auto"``. Raises TypeError or ValueError, with one
    sentence, if the method does not fit the problem or the settings.
    """
    whole(seed, "The seed", least=0)
    whole(max_steps, "max_steps", least=0)
    positive(tol, "tol")
    if polish != "auto":
        yes_or_no(polish, "polish")
    if isinstance(measure, bool | str):
        yes_or_no(measure, "measure")
    else:
        positive(measure, "measure, where it is a smoothness constant,")
    if stop is not None and not isinstance(stop, Rule):
        raise TypeError(f"stop is {stop!r}, a rule was expected, such as Mapping(1e-6) | Seconds(60).")
    options = options or {}
    problem = check_problem(Problem(objective, domain))
    objective, domain = problem.objective, problem.domain
    if smoothness is not None:
        of_terms = smoothness.of_terms if isinstance(smoothness, SmoothnessEstimate) else {}
        objective = with_smoothness(objective, given_smoothness(smoothness), **of_terms)
    problem = Problem(objective, domain)
    if not isinstance(method, str | Auto):
        settings = {"schedule": schedule != "practical", "inner": inner != "auto", "warm_start": warm_start is not None}
        settings |= {"polish": polish != "auto"}
        settings |= {"smoothness='estimate'": smoothness == "estimate", "output='random'": output == "random"}
        check_solver(method, [*(name for name, given in settings.items() if given), *options])
    elif not is_auto(method):
        choice(method, [*known("method", method), "auto"], "method")
    if isinstance(inner, str) and inner != "auto":
        known("inner", inner)

    eps = (stop.tolerance() if stop is not None else None) or tol
    if isinstance(schedule, str):
        choice(schedule, ("practical", "theory"), "schedule")
        schedule = practical(eps=eps) if schedule == "practical" else theory(max(max_steps, 1))
    elif not isinstance(schedule, Schedule):
        raise TypeError(f"The schedule is {schedule!r}: give 'practical', 'theory', practical(...) or theory(N).")
    steps = schedule.steps if isinstance(schedule, theory) else max_steps
    if isinstance(inner, str):
        inner = inner_solver(inner, domain, max_calls=None if isinstance(schedule, theory) else PRACTICAL_CALLS)
    elif not hasattr(inner, "solve"):
        raise TypeError(f"inner is {inner!r}: give 'auto', one of {', '.join(INNERS)}, or an inner solver.")
    else:
        suits(inner, domain)
    if warm_start is not None and whole(warm_start, "warm_start", least=0) and not fits(domain, SpectralSet):
        raise TypeError(
            f"warm_start is for spectral sets such as NuclearBall, {type(domain).__name__} is none: leave it out."
        )
    start = check_start(problem, x0)
    if polish == "auto" and not isinstance(start, LowRank):
        polish = False
    from_nothing = x0 is None and isinstance(schedule, practical) and isinstance(inner, Spectral)
    warm = warm_start
    if warm is None:
        warm = WARM_START if from_nothing and fits(objective, Objective) else 0
        # also for a choice among methods: the factored phase is that of ncgs, which is chosen on every set that has one
        warm = min(warm, WARM_START_OF_POLISH) if polish and (is_auto(method) or method == "ncgs") else warm
    setup = Setup(schedule, inner, max(steps, 1), seed, warm, polish, certify=not measure)
    watched = eps if stop is None or stop.tolerance() is not None else None
    built = partial(build_checked, problem=problem, setup=setup, options=options, eps=watched, warm_start=warm_start)
    made = None
    if is_auto(method):
        fitting, refusals = {}, {}
        for entry in known("method").values():
            try:
                fitting[entry.name] = built(entry.name)
            except (TypeError, ValueError) as error:
                refusals[entry.name] = str(error)
        if fitting and output == "random":
            fitting = {name: found for name, found in fitting.items() if METHODS[name].output_law is not None}
            refusals = {
                "random": "No method that fits has a random output in its theorem: use output='best' or 'last'."
            }
        if not fitting:
            raise ValueError(no_method(options, refusals))
        clock = method.clock if isinstance(method, Auto) else True
        if chosen is None:
            entries = [METHODS[name] for name in fitting]
            made, start = choose(problem, start, eps, entries, clock, free_start=x0 is None)
        else:
            made, start = chosen, first_vertex(problem, start) if chosen.at_vertex else start
        choice(made.method, fitting, "method")
        problem, solver = fitting[made.method]
        method = made.method
    elif isinstance(method, str):
        problem, solver = built(method)
    else:
        assert not isinstance(method, Auto)
        solver = method
    name = method if isinstance(method, str) else type(method).__name__
    law = METHODS[method].output_law if isinstance(method, str) else None

    output = output or ("random" if law and isinstance(schedule, theory) else "best")
    choice(output, (*OUTPUTS, "random"), "output")
    if output == "lowest" and not fits(objective, Objective):
        raise TypeError(
            f"output='lowest' compares values of F, {type(objective).__name__} has none: use output='best' or 'last'."
        )
    rule: Rule = stop if stop is not None else Mapping(tol) | Steps(steps)
    if output == "random":
        if law is None:
            raise ValueError(f"Method '{method}' has no random output in its theorem: use output='best' or 'last'.")
        R = law(max(steps, 1), np.random.default_rng((seed, 0, 1)))
        rule = RandomIndex(R, steps) if stop is None else stop | RandomIndex(R, steps)
    return Plan(problem, solver, start, rule, name, output, made)


def build_checked(
    name: str, problem: Problem, setup: Setup, options: dict[str, Any], eps: float | None, warm_start: int | None
) -> tuple[Problem, Solver]:
    """The solver called ``name``, and the problem without its L if that is so small that every point would meet ``eps``."""
    entry, objective = METHODS[name], problem.objective
    if eps is not None and isinstance(setup.schedule, practical):
        problem = Problem(not_vacuous(objective, problem.domain, entry, eps), problem.domain)
    if warm_start and not entry.slides:
        raise TypeError(f"warm_start is for methods that slide, '{name}' does not: leave it out.")
    if warm_start and not fits(objective, Objective):
        raise TypeError(f"warm_start takes full gradients, {type(objective).__name__} has none: leave it out.")
    return problem, build(name, problem, setup, options)


def no_method(options: dict[str, Any], refusals: dict[str, str]) -> str:
    """Sentence for settings with which no method fits the problem; it names the options, or the refusal of ncgs."""
    if options:
        return (
            f"No method that fits the problem has the options {', '.join(options)}: leave them out, or name a method."
        )
    return next(iter(refusals.values()))


def is_auto(method: Any) -> bool:
    """Whether the choice of the method is left to the library."""
    return isinstance(method, Auto) or (isinstance(method, str) and method == "auto")


def check_solver(solver: Any, given: list[str]) -> None:
    """Raise TypeError if ``solver`` is not a solver object, or if settings are given, because a solver object has its own."""
    if isinstance(solver, type):
        raise TypeError(f"method is the class {solver.__name__}, an instance was expected: {solver.__name__}(...).")
    missing = [name for name in ("init", "step") if not callable(getattr(solver, name, None))]
    if missing:
        raise TypeError(
            f"method is of type {type(solver).__name__}, which has no {' and no '.join(missing)}: give a name from "
            "condgrad.METHODS, or a solver with init(problem, x0) and step(problem, state)."
        )
    if given:
        raise TypeError(
            f"method is a solver object of type {type(solver).__name__}, which has its own settings: "
            f"leave out {', '.join(given)}."
        )


@dataclass(frozen=True)
class RandomIndex(Rule):
    """The paper's random output: stop after R of N steps, where R is random, and return the last iterate."""

    R: int
    N: int

    def __call__(self, record: Record, trace: Any) -> Reason | None:
        if record.k >= self.R:
            return Reason("finished", f"The random stopping index, {self.R} of {self.N} steps, is reached.")
        return None

    def progress(self, record: Record, trace: Any) -> float:
        return min(record.k / max(self.R, 1), 1.0)
