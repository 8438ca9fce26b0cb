"""Checks of the contract of a method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import islice
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

from condgrad.checks import NotGiven
from condgrad.domains import L1Ball, Simplex
from condgrad.driver import Mapping as Tolerance
from condgrad.driver import Steps, iterate, minimize, run
from condgrad.driver.resolve import completed, unwrapped, with_smoothness
from condgrad.inner import CondG, Spectral
from condgrad.objectives import FunctionExpectation, LinearModel, Quadratic, Squared, Welsch
from condgrad.points import LowRank, SparsePlusLowRank, inner, norm2
from condgrad.protocols import COUNTERS, FiniteSum, Problem, Solver, fits, missing
from condgrad.registration import known
from condgrad.solvers import Method, Setup, build, practical
from condgrad.solvers.registry import CONTRACTS
from condgrad.testing.report import Check, CheckReport, Noted, Skipped, report, require


def check_method(
    method: Any,
    problems: Mapping[str, Problem] | None = None,
    *,
    x0: Any = None,
    inner: Any = None,
    steps: int = 12,
    seed: int = 0,
    strict: bool = False,
) -> CheckReport:
    """Check a method against the contract of methods.

    Parameters
    ----------
    method : str, Method or Solver
        The name of a registered method, its registry entry, or a solver with ``init(problem, x0)`` and ``step(problem, state)``.
    problems : mapping of str to Problem, default None
        Problems on which the method is tried. None: those of :func:`small_problems` that the method accepts.
    x0 : Point, default None
        Start for all problems. None: ``domain.start()``.
    inner : Inner, default None
        The inner solver of a sliding method. None: ``CondG(30)``.
    steps : int, default 12
        Number of steps.
    seed : int, default 0
        Seed of the method.
    strict : bool, default False
        Raise ContractError if a check fails.

    Returns
    -------
    CheckReport
        The result of each check. ``print(report)`` shows it as a table.

    Examples
    --------
    >>> from condgrad.testing import check_method
    >>> check_method("frank-wolfe").passed
    True
    """
    name = method if isinstance(method, str) else getattr(method, "name", type(method).__name__)
    return report(f"Method {name}", _Method(method, problems, x0, inner or CondG(30), steps, seed).checks(), strict)


def small_problems() -> dict[str, Problem]:
    """Small problems of each kind: convex and indefinite quadratic, non-convex and convex finite sum, expectation."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((6, 6))
    Q = A + A.T
    lowest = float(np.linalg.eigvalsh(Q)[0])
    features, labels = 1.5 * rng.standard_normal((20, 5)), rng.standard_normal(20)
    centre = np.array([0.5, 1.0, -1.0, 0.2, -0.7])
    expectation = FunctionExpectation(
        lambda size, generator: generator.normal(centre, 1.0, (size, 5)), lambda x, batch: x - batch, 5, 1.0, 0.0
    )
    return {
        "convex quadratic": Problem(Quadratic(Q + (1 - lowest) * np.eye(6), rng.standard_normal(6)), Simplex(6, 2.0)),
        "indefinite quadratic": Problem(Quadratic(Q, rng.standard_normal(6)), Simplex(6, 2.0)),
        "finite sum": Problem(LinearModel(features, labels, Welsch(2.0)), L1Ball(5, 2.0)),
        "convex finite sum": Problem(LinearModel(features, labels, Squared()), L1Ball(5, 2.0)),
        "expectation": Problem(expectation, Simplex(5, 2.0)),
    }


class _Method:
    def __init__(self, method: Any, problems: Mapping[str, Problem] | None, x0: Any, inner: Any, steps: int, seed: int):
        if isinstance(method, str):
            method = known("method", method).get(method, method)
        self.entry = method if isinstance(method, Method) else None
        self.solver, self.x0, self.inner, self.steps, self.seed = method, x0, inner, steps, seed
        self._states: dict[str, list[Any]] = {}
        self._runs: dict[str, tuple[list[bytes], Any]] = {}
        tried = small_problems() if problems is None else problems
        self.problems = {label: completed(problem) for label, problem in tried.items()}
        if problems is None:
            self.problems = {label: problem for label, problem in self.problems.items() if self.suits(label, problem)}

    def suits(self, label: str, problem: Problem) -> bool:
        if self.entry is None:
            return label != "expectation"
        convex = not self.entry.convex or label.startswith("convex")
        return convex and fits(problem.objective, CONTRACTS[self.entry.sees])

    def built(self, problem: Problem, options: dict[str, Any] | None = None) -> Any:
        if self.entry is None:
            return self.solver
        return build(self.entry.name, problem, Setup(practical(1e-2), self.inner, self.steps, self.seed), options or {})

    def start(self, problem: Problem) -> Any:
        return problem.domain.start() if self.x0 is None else self.x0

    def walk(self, problem: Problem, options: dict[str, Any] | None = None) -> list[Any]:
        return list(islice(iterate(problem, self.built(problem, options), self.start(problem)), self.steps + 1))

    def states(self, label: str) -> list[Any]:
        """The first states of the method on one of the problems. They are computed once, for several checks."""
        if label not in self._states:
            self._states[label] = self.walk(self.problems[label])
        return self._states[label]

    def first_run(self, label: str) -> tuple[list[bytes], Any]:
        """A run of `minimize` on one of the problems. It is made once, and other runs are compared with it."""
        if label not in self._runs:
            self._runs[label] = self.minimized(self.problems[label])
        return self._runs[label]

    def checks(self) -> Iterator[Check]:
        yield "members", self.members
        if isinstance(self.solver, str) or (self.entry is None and missing(self.solver, Solver)):
            return
        yield "there is a problem that it can see", self.seen
        for label, problem in self.problems.items():
            yield f"{label}: states count steps from the start", partial(self.count, label)
            yield f"{label}: a step is pure", partial(self.pure, problem)
            yield f"{label}: steps lead away from a start that is not stationary", partial(self.moves, label)
            yield f"{label}: iterates stay in the set", partial(self.inside, label)
            yield f"{label}: certificates are true", partial(self.certificates, label)
            yield f"{label}: it calls the oracles of its entry only", partial(self.oracles, problem)
            yield f"{label}: L need not be known", partial(self.without_smoothness, problem)
            yield f"{label}: runs repeat", partial(self.repeats, label)
            yield f"{label}: a run that is cut and resumed is the same", partial(self.resumes, label)
        yield "solver and states are frozen dataclasses", self.frozen

    # -------------------------------------------------------------------------------------------------------- checks

    def members(self) -> None:
        require(not isinstance(self.solver, str), f"there is no method {self.solver!r}: register it first")
        lacking = [] if self.entry else missing(self.solver, Solver)
        require(not lacking, f"it has no {' and no '.join(lacking)}")

    def seen(self) -> str:
        require(self.problems, "none of the problems fits its entry: give problems=")
        return ", ".join(self.problems)

    def count(self, label: str) -> None:
        problem, states = self.problems[label], self.states(label)
        found = [state.k for state in states]
        require(found == list(range(self.steps + 1)), f"k runs {found}")
        require(np.array_equal(np.asarray(states[0].x), np.asarray(self.start(problem))), "the first x is not x0")
        for state in states:
            x = np.asarray(state.x, dtype=float)
            require(x.shape == tuple(problem.domain.shape) and np.isfinite(x).all(), f"after step {state.k} x is {x}")
            require(state.L > 0, f"after step {state.k} L is {state.L!r}")
            _ = state.certificate, state.descent

    def pure(self, problem: Problem) -> None:
        guarded = Problem(_read_only(problem.objective), _read_only(problem.domain))
        solver = self.built(guarded)
        state = solver.init(guarded, _frozen(np.array(self.start(problem))))
        for k in range(self.steps):
            _frozen(state)
            before = _bits(state)
            one, two = solver.step(guarded, state), solver.step(guarded, state)
            require(_bits(state) == before, f"step {k + 1} changed the state that it was given")
            require(_bits(one) == _bits(two), f"step {k + 1}, made twice from one state, leads to two states")
            state = one

    def moves(self, label: str) -> None:
        problem = self.problems[label]
        f, x0 = problem.objective, self.start(problem)
        grad = f.grad(x0) if hasattr(f, "grad") else f.grad_terms(x0, f.draw(1000, np.random.default_rng(self.seed)))
        gap = inner(grad, x0 - problem.domain.lmo(grad))
        if gap <= 1e-9 * sqrt(norm2(grad) * norm2(x0)):
            raise Skipped("the start is stationary")
        draws = self.entry is not None and not self.entry.deterministic and "batch" in self.entry.options
        # with single samples, noise may dominate all steps
        states = self.walk(problem, {"batch": 100}) if draws else self.states(label)
        moved = any(norm2(state.x - x0) > 0 for state in states[1:])
        require(moved, f"x is still x0 after {self.steps} steps, where the Wolfe gap is {gap:.3g}")
        if hasattr(f, "value") and min(f.value(state.x) for state in states[1:]) >= f.value(x0):
            raise Noted(f"no one of {self.steps} steps leads to a lower F than that of x0")

    def inside(self, label: str) -> None:
        problem = self.problems[label]
        for state in self.states(label):
            require(problem.domain.contains(state.x, 1e-9), f"after step {state.k} x is outside of the set")

    def certificates(self, label: str) -> str:
        problem = self.problems[label]
        if not hasattr(problem.objective, "grad"):
            raise Skipped("the objective has no gradient to verify them with")
        proven = [state for state in self.states(label) if state.certificate is not None]
        for state in proven:
            said, found = state.certificate.gap, state.certificate.verify(problem).gap
            require(
                found <= said + 1e-9, f"after step {state.k} it says a gap of {said:.6g}, the true one is {found:.6g}"
            )
        return "" if proven else "its steps prove nothing; the driver measures them"

    def oracles(self, problem: Problem) -> None:
        if self.entry is None:
            raise Skipped("a solver object has no entry")
        result = run(problem, self.built(problem), self.start(problem), Steps(self.steps), validate=20)
        used = {name.upper() for name in COUNTERS if result.counts[name] and name != "values"}
        allowed = {word.strip() for word in self.entry.oracles.split(",")}
        allowed |= {"IFO"} if fits(problem.objective, FiniteSum) else set()  # a full gradient is n term gradients
        allowed |= {"UB"} if isinstance(self.inner, Spectral) else set()  # by which it certifies its gaps
        allowed |= set() if self.entry.deterministic else {"FO"}  # for the first step size
        require(used <= allowed, f"it calls {', '.join(sorted(used - allowed))}, its entry says {self.entry.oracles}")

    def without_smoothness(self, problem: Problem) -> None:
        if self.entry is None or not self.entry.deterministic:
            raise Skipped("only registered, deterministic methods are run with backtracking")
        unknown = Problem(with_smoothness(problem.objective, None), problem.domain)
        for state in self.walk(unknown):
            require(state.L is not None and state.L > 0, f"after step {state.k} L is {state.L!r}")

    def minimized(self, problem: Problem, **more: Any) -> tuple[list[bytes], Any]:
        path: list[bytes] = []
        asked: dict[str, Any] = {"seed": self.seed} if self.entry else {}
        if self.entry and self.entry.slides:
            asked["inner"] = self.inner
        result = minimize(
            problem.objective,
            problem.domain,
            self.start(problem),
            method=self.entry.name if self.entry else self.solver,
            max_steps=self.steps,
            tol=1e-12,
            validate=50,
            progress=False,
            callback=lambda record, x: path.append(np.asarray(x).tobytes()),
            **asked,
            **more,
        )
        return path, result

    def repeats(self, label: str) -> None:
        (one, first), (two, second) = self.first_run(label), self.minimized(self.problems[label])
        require(one == two and first.counts == second.counts, "two runs from one seed differ")

    def resumes(self, label: str) -> None:
        problem, (whole, expected) = self.problems[label], self.first_run(label)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "run.ckpt"
            cut = Tolerance(1e-12) | Steps(self.steps // 2)
            self.minimized(problem, checkpoint=path, stop=cut)
            found, result = self.minimized(problem, checkpoint=path, resume=True)
        require(not found or found == whole[-len(found) :], "the resumed run takes other steps")
        require(result.counts == expected.counts, f"counts are {result.counts}, not {expected.counts}")
        require(np.array_equal(np.asarray(result.x), np.asarray(expected.x)), "another answer")

    def frozen(self) -> None:
        problem = next(iter(self.problems.values()))
        solver = self.built(problem)
        for thing in (solver, solver.init(problem, self.start(problem))):
            fixed = is_dataclass(thing) and getattr(type(thing), "__dataclass_params__").frozen  # noqa: B009
            if not fixed:
                raise Noted(f"{type(thing).__name__} is no frozen dataclass: nothing keeps it from being changed")


def _leaves(thing: Any) -> list[Any]:
    """All arrays and numbers in a state, in a fixed order."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return [leaf for field in fields(thing) for leaf in _leaves(getattr(thing, field.name))]
    if isinstance(thing, tuple | list):
        return [leaf for part in thing for leaf in _leaves(part)]
    if isinstance(thing, SparsePlusLowRank):
        return [thing.values, thing.scale, *_leaves(thing.low)]
    if isinstance(thing, LowRank):
        return [leaf for c, factors in thing.terms for leaf in (c, factors.U, factors.V)]
    return [thing]


def _bits(state: Any) -> list[Any]:
    return [leaf.tobytes() if isinstance(leaf, np.ndarray) else leaf for leaf in _leaves(state)]


def _frozen(answer: Any) -> Any:
    for leaf in _leaves(answer):
        if isinstance(leaf, np.ndarray):
            leaf.setflags(write=False)
    return answer


def _read_only(target: Any) -> Any:
    """A copy of the object whose methods return read-only arrays, so that a method that writes into one fails."""
    names = {name for part in (target, unwrapped(target)) for name in dir(part) if not name.startswith("_")}
    found = {}
    for name in names:
        with suppress(NotGiven):  # a member without a value
            found[name] = _guarded(getattr(target, name))
    return SimpleNamespace(**found)


def _guarded(member: Any) -> Any:
    return (lambda *args: _frozen(member(*args))) if callable(member) else member
