"""`compare`: runs several methods on one problem."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from condgrad.checks import choice, positive, whole
from condgrad.comparison.costs import Comparison
from condgrad.comparison.performed import ComparedRun, Setting, perform
from condgrad.comparison.requested import Methods, Requested, requested
from condgrad.comparison.source import Given, Source
from condgrad.driver.minimize import plan
from condgrad.driver.stopping import Rule
from condgrad.protocols import Point
from condgrad.runtime.interruption import ACTIONS, attach, default_action, raise_on_sigterm
from condgrad.runtime.progress import switched_off
from condgrad.runtime.workers import Progress, answers_of, cores, error_message, start_worker
from condgrad.solvers import METHODS

logger = logging.getLogger(__name__)

CHOSEN_TARGETS = (1e-2, 1e-4, 1e-6)
"""Targets that are chosen where none is given, relative to the squared mapping at the start."""
CPU_BUDGET = 10.0
"""Default budget of a run, in CPU seconds."""
EXPECTED_SECONDS = 0.5
"""Guess of the duration of a run whose budget is not a time, until one of its method is finished."""


def compare(
    problem: Given,
    methods: Methods = "all",
    seeds: int | Sequence[int] = 5,
    *,
    targets: float | Sequence[float] | None = None,
    budget: float | Rule | None = None,
    x0: Point | None = None,
    smoothness: float | None = None,
    all_seeds: bool = True,
    jobs: int = 1,
    progress: bool | None = None,
    on_interrupt: str | None = None,
    **settings: Any,
) -> Comparison:
    """Run several methods on one problem, with the same driver, and count and time what each needs to reach given accuracies.

    Every iterate is measured by the driver, with the clock paused, at steps whose distance grows by a tenth, and for all methods
    with the same step size gamma = 1/(2L) of the gradient mapping.

    Parameters
    ----------
    problem : Problem, tuple (objective, set), callable or path-like
        The problem; a function of the seed that returns one, so that the data differ between seeds; or the path of a spec,
        whose ``[method]`` has settings for all methods and whose ``[stop]`` has the target and the budget, unless they are
        given here.
    methods : str, sequence or mapping, default "all"
        The methods: names from ``condgrad.METHODS`` or "auto", with options as ``"frank-wolfe:rule=short"`` or
        ``("frank-wolfe", {"rule": "short"})``; a string of names separated by commas; a mapping from labels to these. "all":
        every registered method that fits, except that methods for convex F take part only if F is known to be convex.
    seeds : int or sequence of int, default 5
        Number of runs of each method, with the seeds 0, 1, ..., or the seeds themselves.
    targets : float or sequence of float, default None
        Squared gradient mappings to reach. A run ends at the smallest. None: 1e-2, 1e-4 and 1e-6 times that at the start.
    budget : float or Rule, default None
        Budget of each run, in CPU seconds, or a rule such as ``Calls(1000, "lo")``. None: 10 CPU seconds.
    x0 : Point, default None
        Starting point; None: that of the set.
    smoothness : float, default None
        The constant L of the measured mapping. None: the objective's own, or an estimate. Methods are not told it.
    all_seeds : bool, default True
        False: a method that has missed the last target on more than half of the seeds is not run on the others, as its median
        is "not reached" whatever they give. With ``jobs`` above 1 all are run.
    jobs : int, default 1
        Number of processes of one thread each, at most one for each core. The problem is sent to them by pickle.
    progress : bool, default None
        Show the number of finished runs and the remaining time on stderr. None: on a terminal.
    on_interrupt : {"raise", "return"}, default None
        What follows Ctrl-C or SIGTERM: KeyboardInterrupt, with the comparison of the finished runs as its attribute
        ``comparison``, or that comparison. None: "return" in an interactive session, else "raise".
    **settings : Any
        Keywords of :func:`condgrad.minimize` for all methods: ``inner``, ``schedule``, ``warm_start``, ``polish``, ``output``,
        ``max_steps`` and ``validate``. Options of one method belong to its entry in ``methods``.

    Returns
    -------
    Comparison
        With ``runs``, ``skipped`` (each method that does not fit, with the reason), tables, performance profiles, and the
        methods ``to_csv``, ``to_json``, ``to_dataframe`` and ``report``.

    Raises
    ------
    ValueError
        If no method fits, or a name or an option is not known.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> rng = np.random.default_rng(0)
    >>> F = cg.LinearModel(rng.normal(size=(100, 8)), rng.normal(size=100), cg.Welsch())
    >>> found = cg.compare((F, cg.L1Ball(8)), "ncgs,frank-wolfe:rule=short,projected-gradient", seeds=1, targets=1e-6)
    >>> sorted(found.labels), found.skipped
    (['frank-wolfe:rule=short', 'ncgs', 'projected-gradient'], {})
    >>> all(found.cost(label, 1e-6, "fo")[0] > 0 for label in found.labels)
    True
    """
    for name in settings:
        choice(name, (*PLANNED, "validate"), "setting for all methods")
    source = Source.of(problem, x0, None if smoothness is None else positive(smoothness, "smoothness"))
    numbers = list(range(whole(seeds, "The number of seeds"))) if isinstance(seeds, int) else list(seeds)
    for seed in numbers:
        whole(seed, "Each seed", least=0)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"The seeds are {numbers}: give at least one, and each once.")
    action = default_action() if on_interrupt is None else choice(on_interrupt, ACTIONS, "on_interrupt")
    if budget is None:
        budget = source.stop if source.stop is not None and source.stop.budgets() else CPU_BUDGET
    elif not isinstance(budget, Rule):
        positive(budget, "The budget, in CPU seconds,")
    aims = chosen_targets(source, targets, numbers[0], settings)
    keywords = {**source.keywords, **settings}
    setting = Setting(min(aims), budget, {"tol": min(aims), **keywords})
    explicit = not (isinstance(methods, str) and methods == "all")
    asked = requested(methods)
    taking_part, skipped = fitting(source, asked, setting, numbers[0], explicit)
    if not taking_part:
        raise ValueError(f"No method fits the problem: {next(iter(skipped.values()))}")
    found = Comparison(
        [each.label for each in taking_part], numbers, aims, [], skipped, source.smoothness(numbers[0]), False
    )
    jobs = min(whole(jobs, "jobs"), cores())
    shown = (sys.stderr.isatty() if progress is None else progress) and not switched_off()
    try:
        with raise_on_sigterm(deliver=True):
            for run in performing(source, taking_part, numbers, setting, jobs, all_seeds, shown):
                if isinstance(run, ComparedRun):
                    found.runs.append(run)
                else:
                    found.failed[run[0]] = run[1]
    except KeyboardInterrupt as interruption:
        found.interrupted = True
        attach(interruption, comparison=found)
        if action == "raise":
            raise
    logger.info("Compared %d methods in %d runs.", len(found.labels), len(found.runs))
    return found


def chosen_targets(
    source: Source, targets: float | Sequence[float] | None, seed: int, settings: Mapping[str, Any]
) -> list[float]:
    """The targets in decreasing order: those given, that of the spec, or shares of the mapping at the start."""
    if targets is None and source.stop is not None and (tolerance := source.stop.tolerance()) is not None:
        targets = tolerance
    if targets is None:
        start = source.mapping_at_start(seed, settings.get("validate", 10_000))
        if not start > 0 or not isfinite(start):
            raise ValueError(
                f"The squared mapping at the start is {start:g}, of which no targets follow: give targets=."
            )
        targets = [float(f"{share * start:.1g}") for share in CHOSEN_TARGETS]
    several = [targets] if isinstance(targets, int | float) else list(targets)
    if not several:
        raise ValueError("There is no target: give at least one squared mapping.")
    return sorted((float(positive(target, "A target")) for target in several), reverse=True)


def fitting(
    source: Source, asked: Sequence[Requested], setting: Setting, seed: int, explicit: bool
) -> tuple[list[Requested], dict[str, str]]:
    """The methods that fit the problem, and for each other one a sentence why it does not.

    With ``explicit``, an option that a method does not have is an error of the user, which is raised.
    """
    problem = source.problem(seed)
    convex = getattr(problem.objective, "lower_smoothness", None) == 0
    taking_part, skipped = [], {}
    for each in asked:
        entry = METHODS.get(each.method)
        if entry is not None and entry.convex and not explicit and not convex:
            skipped[each.label] = "It is made for convex F, and F is not known to be convex: name it to include it."
            continue
        own = {key: value for key, value in each.settings.items() if key not in PLANNED}
        shared = {key: value for key, value in {**setting.keywords, **each.settings}.items() if key in PLANNED}
        for name in own:
            if entry is not None and name not in entry.options:
                known = ", ".join([*entry.options, *PLANNED])
                raise ValueError(f"Method '{each.method}' has no option '{name}': it takes {known}.")
        try:
            plan(
                problem.objective,
                problem.domain,
                source.x0,
                method=each.method,
                stop=setting.stop,
                measure=source.smoothness(seed),
                options=own,
                **shared,
            )
            taking_part.append(each)
        except (TypeError, ValueError) as error:
            skipped[each.label] = str(error)
    return taking_part, skipped


PLANNED = ("tol", "max_steps", "schedule", "inner", "warm_start", "polish", "smoothness", "output")
"""Keywords of ``minimize`` that decide whether a method fits."""


def performing(
    source: Source,
    asked: Sequence[Requested],
    seeds: Sequence[int],
    setting: Setting,
    jobs: int,
    all_seeds: bool,
    shown: bool,
) -> Iterator[ComparedRun | tuple[str, str]]:
    """Yield the runs as they are finished, or the label and the message of one that could not be performed.

    All methods run with the first seed, then with the second, so that an interruption leaves complete rows.
    """
    tasks = [(each, seed) for seed in seeds for each in asked]
    expected = 2 * setting.budget if isinstance(setting.budget, int | float) else EXPECTED_SECONDS
    progress = Progress("compare", len(tasks), list(tasks), jobs, lambda task: task[0].label, lambda task: expected)
    missed = dict.fromkeys((each.label for each in asked), 0)
    out: set[str] = set()
    with ExitStack() as closing:
        closing.callback(progress.close)
        answers = in_workers(source, tasks, setting, jobs, closing) if jobs > 1 else here(source, tasks, setting, out)
        for task, run in answers:
            label = task[0].label
            if isinstance(run, ComparedRun):
                missed[label] += run.best > setting.target
            if isinstance(run, tuple) or (not all_seeds and 2 * missed[label] > len(seeds)):
                out.add(label)
            if run is not None:
                yield run
            if shown:
                progress.done(task)


Task = tuple[Requested, int]


def here(source: Source, tasks: Sequence[Task], setting: Setting, out: set[str]) -> Iterator[tuple[Task, Any]]:
    """Perform the runs in this process, except those of methods in ``out``, for which it yields None."""
    for asked, seed in tasks:
        try:
            yield (asked, seed), None if asked.label in out else perform(source, asked, seed, setting)
        except Exception as error:  # also one of the user's own functions, as in a worker
            yield (asked, seed), (asked.label, error_message(error))


def in_workers(
    source: Source, tasks: Sequence[Task], setting: Setting, jobs: int, closing: ExitStack
) -> Iterator[tuple[Task, Any]]:
    """Perform the runs in processes. The problem is stored in a temporary folder, from which they load it."""
    file = source.spec
    if file is None:
        file = Path(closing.enter_context(TemporaryDirectory(prefix="condgrad-compare-"))) / "problem.pickle"
        try:
            file.write_bytes(pickle.dumps(source))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise ValueError(
                f"The problem can't be sent to other processes ({error}): use jobs=1, or define its functions in a module."
            ) from None
    by_line = {pickle.dumps((asked, seed, setting)).hex(): (asked, seed) for asked, seed in tasks}
    workers = [start_worker("condgrad.comparison.worker", str(file)) for _ in range(min(jobs, len(tasks)))]
    for line, answer in answers_of(workers, [{"task": line} for line in by_line]):
        task = by_line[line["task"]]
        yield task, (task[0].label, answer["error"]) if "error" in answer else ComparedRun.of(answer["run"])
