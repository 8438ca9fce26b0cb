"""`minimize`, the main function of the library: checks the arguments, builds the solver and runs it."""

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
from condgrad.driver.chooser import Auto, Choice, choose, chosen_start
from condgrad.driver.progress import Progress
from condgrad.driver.resolve import check_problem, check_start, given_smoothness, not_vacuous, with_smoothness
from condgrad.driver.result import Result
from condgrad.driver.run import run
from condgrad.driver.smoothness_estimate import SmoothnessEstimate
from condgrad.driver.stopping import Mapping, Rule, Steps
from condgrad.inner import INNERS, Corrective, Spectral, inner_solver, suits
from condgrad.points import LowRank
from condgrad.protocols import Inner, Objective, Point, Problem, Reason, Record, Solver, SpectralSet, fits
from condgrad.registration import known
from condgrad.runtime.interruption import ACTIONS, attach, default_action, raise_on_sigterm
from condgrad.runtime.progress import switched_off
from condgrad.solvers import METHODS, Schedule, Setup, build, practical, theory

logger = logging.getLogger(__name__)

WARM_START, WARM_START_OF_POLISH = 20, 1
"""Default numbers of Frank-Wolfe steps of a warm start, without and with the factored phase (``polish``). With the factored
phase, one Frank-Wolfe step is enough to leave the point 0. The factored phase then improves the point at less cost than further
Frank-Wolfe steps."""
PRACTICAL_CALLS = 1000
"""Maximum number of linear oracle calls for a prox subproblem with the practical schedule. Without a maximum, the inner solver
condg could take millions of calls."""


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

    Only ``projected-gradient`` and ``accelerated-gradient`` need a projection. All other methods use linear minimisations over
    the set. If the set has a cheap projection, the default ``inner="auto"`` solves prox subproblems by projection, and
    ``result.inner`` is "exact".

    .. math:: \min_{x \in \Omega} F(x)

    Parameters
    ----------
    objective : Objective, FiniteSum or Expectation
        The function F: one of :mod:`condgrad.objectives`, or your own as ``Function(value, grad)``.
    domain : Domain
        The set: one of :mod:`condgrad.domains`, or your own as ``user_set(lmo, shape)``.
    x0 : Point of the shape of the set, default None
        Starting point. The array is not changed. By default ``domain.start()``. If the set is a ``user_set`` with neither
        ``contains`` nor ``project``, up to 10 linear oracle calls check that x0 is in the set; they are not counted.
    method : str, Solver or Auto, default "ncgs"
        A name from ``condgrad.METHODS``, a solver object, or "auto".

        A solver object has ``init(problem, x0)`` and ``step(problem, state)``. The object has its own schedule, inner solver and
        options, so these can't be given here.

        "auto": :func:`condgrad.driver.chooser.choose` chooses among all methods that fit the problem and accept the given
        options. The choice depends on the oracles that the objective and the set have, such as ``project``, and on the measured
        CPU time of these oracles.
        ``result.choice`` and ``result.message`` name the chosen method and the reason. A resumed run keeps the choice of its
        checkpoint. ``Auto(clock=False)`` measures no time, so that the choice is the same on every machine.
    tol : float, default 1e-6
        Stop when the squared norm |g|^2 of the gradient mapping, for gamma = 1/(2L), is certified to be at most ``tol``. |g|^2
        has the unit of a squared gradient: if F is multiplied by 10, |g|^2 becomes 100 times as large; if the coordinates of x
        are given in a unit 10 times as small, |g|^2 becomes 100 times as small.
    max_steps : int, default 1000
        Maximum number of steps. With ``schedule="theory"``, this is the number N of steps in the theorem of the method.
    stop : Rule, default None
        Stopping rule in place of ``tol`` and ``max_steps``, such as ``Gap(1e-4) | Seconds(60) | Calls(10_000, "lo")``. If the
        rule has a tolerance on the mapping, the accuracy of prox subproblems depends on this tolerance instead of ``tol``.
    schedule : {"practical", "theory"} or Schedule, default "practical"
        How step sizes, accuracies and batch sizes are chosen: a name, or an object such as ``practical(c=0.25)``.
    inner : {"auto", "spectral", "exact", "corrective", "condg"} or Inner, default "auto"
        How prox subproblems are solved: a name, or an inner solver such as ``CondG(max_calls=100)``. "auto": spectral on spectral
        sets, exact on other sets with a projection, else corrective. If ``inner`` is a name and the schedule is practical, each
        prox subproblem takes at most 1000 linear oracle calls (spectral: 4, corrective: 5). The certificate states the accuracy
        that was reached.
    warm_start : int, default None
        Number of Frank-Wolfe steps before a sliding method begins on a spectral set. They are rows of the trace with the phase
        "warm-start" and numbers below 0; ``max_steps`` does not count them. By default 20 (with ``polish``: 1) if x0 is None, the
        schedule is practical and the inner solver is spectral; otherwise 0.
    polish : bool or "auto", default "auto"
        Whether each step is followed by a phase that minimises F over the factors of the iterate (the factored phase). Runs then
        converge in far fewer steps, and only some steps have a certificate. The phase is available for ``ncgs`` with the
        practical schedule, on sets that have a factored form (``NuclearBall``, ``Spectrahedron``).

        "auto": the phase is used if iterates are ``LowRank``, as with ``Completion``. True: the phase is also used if iterates
        are arrays; TypeError is raised if the set has no factored form. False: the phase is not used, and each step has a
        certificate.

        With ``inner="corrective"``, the phase instead minimises F over the convex hull of the atoms of the iterate. "auto" and
        True then use this phase, and each step has a certificate.
    smoothness : float, SmoothnessEstimate or "estimate", default None
        The constant L to use in place of the objective's own L: a number, or the result of :func:`condgrad.estimate_smoothness`,
        which also has the constants of the terms of a finite sum. "estimate": L is found by backtracking. By default the
        objective's own L; if the objective has none, L is found by backtracking.
    output : {"best", "last", "lowest", "random"}, default None
        Which iterate is returned. "best": the iterate with the smallest certified mapping. "last": the last iterate. "lowest":
        the iterate with the lowest F among the recorded steps (see ``every``), certified at the end. "random": the iterate after
        a random number of steps, as in the theorems for stochastic methods. By default "random" for stochastic methods with
        ``schedule="theory"``, else "best".

        For a stochastic method the driver measures the mapping. If F is an expectation, the mapping is measured on a batch of
        ``validate`` samples.
    seed : int, default 0
        Seed of all random numbers.
    every : int, default 1
        Number of steps from one record of the trace to the next. F is computed for each record.
    measure : bool or float, default False
        Whether the driver measures the gradient mapping of the iterates instead of using the bound that the method computes. Use
        this to compare methods. The driver measures at growing intervals, with the clock paused, and by a full SVD for matrices
        of up to 512 x 512. True: the mapping has gamma = 1/(2L) with the L that the method uses. Methods that estimate L use
        different L, so that their mappings can't be compared. A number: the mapping has gamma = 1/(2L) with this number as L, for
        all methods.
    validate : int, default 10_000
        Number of samples of an expectation on which iterates are measured.
    callback : callable, default None
        ``callback(record, x)``, called at the start and after each step. A true return value stops the run. Evaluations of F in
        the callback have no effect on the run.
    progress : bool, default None
        Whether a progress line is shown on stderr after two seconds. By default it is shown if stderr is a terminal.
        ``CONDGRAD_PROGRESS=0`` in the environment disables all progress lines.
    check_gradient : bool, default False
        Before the run, compare the gradient with difference quotients of F (:func:`condgrad.check_gradient`), and raise BadOracle
        if they do not match.
    checkpoint : path-like or Checkpoint, default None
        File to which the run is saved every 30 seconds and at its end. An object sets another interval:
        ``Checkpoint(path, seconds=...)`` or ``Checkpoint(path, steps=...)``. If the file has a checkpoint already and ``resume``
        is False, ValueError is raised.
    resume : bool, default False
        Continue from the checkpoint. The steps are the same, bit for bit, as those of a run without interruption. If there is no
        checkpoint yet, the run starts from the beginning. The problem and all settings must be the same, except that budgets may
        be larger.
    on_interrupt : {"raise", "return"}, default None
        What happens after Ctrl-C or SIGTERM. In both cases the checkpoint, if there is one, is saved first. "raise": Ctrl-C
        raises KeyboardInterrupt, whose attribute ``result`` is the result so far, and SIGTERM ends the process. One signal then
        ends a program of many runs. "return": the result so far is returned, with the status ``interrupted``. By default "return"
        in an interactive session, and "raise" in a script. Your own handler of SIGTERM takes precedence.
    **options : Any
        Options of the method, such as ``rule="short"``; ``condgrad methods`` lists them. The ``rule`` of Frank-Wolfe may be a
        function that takes a :class:`condgrad.solvers.Direction` and returns the step size t.

    Returns
    -------
    Result
        With attributes ``x, fun, status, message, certificate, counts, trace, inner, lowest, choice``.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, with ``on_interrupt="raise"``. The attribute ``result`` of the exception is the Result.

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
    with raise_on_sigterm(deliver=True), closing(bar), choice_added(ready.choice):
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
def choice_added(made: Choice | None) -> Iterator[None]:
    """Context that adds the choice of the method to the result of an interrupted run."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        if made is not None and isinstance(found := vars(interruption).get("result"), Result):
            attach(interruption, result=with_choice(found, made))
        raise


def with_choice(result: Result, made: Choice | None) -> Result:
    """Add the choice of the method to a result. The reason for the choice is appended to the message of the result."""
    return result if made is None else replace(result, choice=made, message=f"{result.message} {made.reason}")


# ----------------------------------------------------------------------------------------------- before the first step


@dataclass(frozen=True, eq=False)
class Plan:
    """A run that is ready to begin: everything that ``minimize`` determines before the first step."""

    problem: Problem
    solver: Solver
    start: Point
    rule: Rule
    name: str
    output: str
    choice: Choice | None
    """The choice of the method by ``method="auto"``; None if the user gave the method."""


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
    """Check the arguments of :func:`minimize` and build the run, without taking a step.

    ``chosen`` is the choice of ``method="auto"`` that a checkpoint has. It is used again. Raises TypeError or ValueError if the
    method does not fit the problem or the settings.
    """
    whole(seed, "The seed", least=0)
    whole(max_steps, "max_steps", least=0)
    positive(tol, "tol")
    if polish != "auto":
        yes_or_no(polish, "polish")
    if isinstance(measure, bool | str):
        yes_or_no(measure, "measure")
    else:
        positive(measure, "measure, a smoothness constant if it is not a bool,")
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
        own = type(domain).__name__
        raise TypeError(
            f"warm_start is for spectral sets such as NuclearBall, but {own} is not a spectral set: leave it out."
        )
    start = check_start(problem, x0)
    if polish == "auto" and not isinstance(start, LowRank) and not isinstance(inner, Corrective):
        polish = False
    from_nothing = x0 is None and isinstance(schedule, practical) and isinstance(inner, Spectral)
    warm = warm_start
    if warm is None:
        warm = WARM_START if from_nothing and fits(objective, Objective) else 0
        # only ncgs has the factored phase; on a set with a factored form, method="auto" always chooses ncgs
        warm = min(warm, WARM_START_OF_POLISH) if polish and (is_auto(method) or method == "ncgs") else warm
    watched = eps if stop is None or stop.tolerance() is not None else None
    gap = stop.gap_tolerance() if stop is not None else None
    setup = Setup(schedule, inner, max(steps, 1), seed, warm, polish, watched or 0.0, gap or 0.0, certify=not measure)
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
            made, start = chosen, chosen_start(problem, start, chosen)
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
    """Build the solver called ``name``. Returns the problem and the solver.

    If the L of the problem is so small that every point of the set would meet the tolerance ``eps``, the problem is returned
    without L. L is then found by backtracking.
    """
    entry, objective = METHODS[name], problem.objective
    if eps is not None and isinstance(setup.schedule, practical):
        problem = Problem(not_vacuous(objective, problem.domain, entry, eps), problem.domain)
    if warm_start and not entry.slides:
        raise TypeError(f"warm_start is for methods that slide, '{name}' does not: leave it out.")
    if warm_start and not fits(objective, Objective):
        raise TypeError(f"warm_start takes full gradients, {type(objective).__name__} has none: leave it out.")
    return problem, build(name, problem, setup, options)


def no_method(options: dict[str, Any], refusals: dict[str, str]) -> str:
    """Message if no method fits the problem and the settings. It names the options, or the reason why a method does not fit."""
    if options:
        return (
            f"No method that fits the problem has the options {', '.join(options)}: leave them out, or name a method."
        )
    return next(iter(refusals.values()))


def is_auto(method: Any) -> bool:
    """Whether ``method`` is "auto" or an :class:`Auto`, so that the library chooses."""
    return isinstance(method, Auto) or (isinstance(method, str) and method == "auto")


def check_solver(solver: Any, given: list[str]) -> None:
    """Raise TypeError if ``solver`` is not a solver object, or if the list ``given`` is not empty.

    ``given`` has the names of the settings that the caller gave. A solver object has its own settings.
    """
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
    """Stopping rule of ``output="random"``: stops after R of N steps. R is random, as in the theorems for stochastic methods."""

    R: int
    N: int

    def __call__(self, record: Record, trace: Any) -> Reason | None:
        if record.k >= self.R:
            return Reason("finished", f"The random stopping index, {self.R} of {self.N} steps, is reached.")
        return None

    def progress(self, record: Record, trace: Any) -> float:
        return min(record.k / max(self.R, 1), 1.0)
