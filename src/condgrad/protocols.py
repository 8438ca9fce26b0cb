"""The contracts, on one page.

A **point** is anything with ``+``, ``-``, scalar ``*`` and :func:`condgrad.points.inner`: a numpy array of any shape,
or a structured matrix. Points are values: nothing in the library changes one in place.

Everything else here is a ``Protocol``: a class belongs to a contract by having its members, not by inheriting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from condgrad.storage.stored import stored

Point = Any
"""A numpy array, or a structured point with ``+``, ``-``, scalar ``*`` and ``inner``."""

Batch = Any
"""What ``draw`` returns: a numpy array whose first axis runs over the samples (indices, for a finite sum)."""


# ---------------------------------------------------------------------------------------------------- the problem


class Objective(Protocol):
    """F, to be minimised: its value and its gradient.

    It may have ``value_and_grad(x) -> (value, gradient)`` too, for methods that need both at one point; None stands for no such
    method. A call counts as one value and one gradient.

    It may have ``grad_scale(x) -> float`` too: an upper bound of the norm of the terms whose sum the gradient at x is, such as
    |A| |r| / n for A'r / n. Where they nearly cancel, the gradient errs by their last digits, which certificates add. It is asked
    for each certificate and so should cost far less than a gradient.
    """

    shape: tuple[int, ...] | None
    """Shape of the points, or None where any shape will do."""
    smoothness: float | None
    """L: the gradient is L-Lipschitz. None: not known, it will be estimated by backtracking."""

    def value(self, x: Point) -> float: ...

    def grad(self, x: Point) -> Point: ...


class Expectation(Protocol):
    """F(x) = E f(x, xi), seen through samples of xi."""

    shape: tuple[int, ...] | None
    smoothness: float | None

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """``size`` independent samples; ``batch[indices]`` is again a batch."""

    def grad_terms(self, x: Point, batch: Batch) -> Point:
        """The mean of the samples' gradients at x."""

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        """One row a sample: the least that must be remembered of its gradient at x (a scalar where terms are ridge functions)."""

    def assemble(self, rows: np.ndarray, batch: Batch) -> Point:
        """The mean gradient that the rows stand for; linear in the rows."""


class FiniteSum(Objective, Expectation, Protocol):
    """F(x) = (1/n) sum_i f_i(x): a batch is an array of term numbers, drawn uniformly with replacement."""

    n_terms: int
    term_smoothness: float | None
    """A smoothness that every single f_i has."""
    mean_square_smoothness: float | None
    """K with (1/n) sum_i |grad f_i(x) - grad f_i(y)|^2 <= K^2 |x - y|^2; never more than term_smoothness."""


class Domain(Protocol):
    """A convex, compact set, known through its linear minimisation oracle."""

    shape: tuple[int, ...]
    diameter: float
    """max |x - y| over the set."""
    max_norm: float
    """M: max |x| over the set."""

    def lmo(self, direction: Point) -> Point:
        """A minimiser of <direction, x> over the set. Total: a zero direction gets a point of the set too."""

    def start(self) -> Point:
        """A point of the set from which to begin."""

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool: ...


class Projectable(Domain, Protocol):
    """A set on which projecting is affordable."""

    def project(self, x: Point) -> Point: ...


class SpectralSet(Domain, Protocol):
    """A set of matrices that only looks at singular values (or eigenvalues), and whose projections have low rank."""

    spectrum: str
    """singular or eigen"""
    narrowest: int
    """The fewest values that ``shrink`` makes sense of."""
    trace: float
    """The largest sum of a point's values."""
    floor: float
    """What a direction's value must exceed to be worth anything: 0 where the sum may be smaller, else minus infinity."""

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The values of the projection of a matrix with these values, falling."""

    def low_rank_start(self) -> Point:
        """A point from which to begin, as a LowRank."""

    def lmo_near(self, direction: Point, block: np.ndarray, accuracy: float) -> tuple[Point, np.ndarray]:
        """lmo, to an accuracy in <direction, .> that is an estimate, warm-started with a block of vectors; and what it saw."""

    def beyond(
        self, z: Point, left: np.ndarray, right: np.ndarray, needed: float, size: float
    ) -> tuple[float, np.ndarray]:
        """A bound on the values of z, which has the ``size``, outside of some of its Ritz vectors, and vectors that it saw there;
        sought as far as to show that it is at most ``needed``. The linear oracle's value, without its vertex."""


ORACLES: dict[type, tuple[str, ...]] = {
    Objective: ("value", "grad"),
    Expectation: ("draw", "grad_terms", "term_rows", "assemble"),
    FiniteSum: ("value", "grad", "draw", "grad_terms", "term_rows", "assemble", "n_terms"),
    Domain: ("lmo", "start", "contains"),
    Projectable: ("lmo", "start", "contains", "project"),
    SpectralSet: ("lmo", "start", "contains", "shrink", "lmo_near", "beyond", "low_rank_start"),
}


def fits(thing: Any, contract: type) -> bool:
    """Does ``thing`` have the oracles of the contract? Wrappers that pass attributes on fit what they wrap."""
    return all(hasattr(thing, oracle) for oracle in ORACLES[contract])


@dataclass(frozen=True)
class Problem:
    """Minimise ``objective`` over ``domain``."""

    objective: Any
    domain: Any


# ---------------------------------------------------------------------------------------------------- the methods


class Estimator(Protocol):
    """What stands in for the gradient of F; its memory is carried by the solver's state."""

    def init(self, objective: Any, x: Point) -> Any: ...

    def estimate(self, objective: Any, x: Point, memory: Any, k: int, rng: np.random.Generator) -> tuple[Point, Any]:
        """The gradient to use in step k (counted from 1), and the memory after it."""


InnerStop = Callable[[float], float]
"""|u_t - u|^2 / gamma -> the largest gap with which a prox point is accurate enough."""


class Prox(NamedTuple):
    """An inexact prox point, with the Wolfe gap that was reached for it; infinite where it was not measured."""

    point: Point
    gap: float
    memory: Any


class Inner(Protocol):
    """Solves min <g, x> + |x - u|^2 / (2 gamma) over the set until its Wolfe gap satisfies ``stop``."""

    def init(self, domain: Any, x: Point) -> Any:
        """The memory kept between outer steps (None where there is none)."""

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: Any) -> Prox: ...


class State(Protocol):
    """What moves: the number of steps done and the iterate that the method reports after them.

    It may have ``fun``, which is F(x) or None: the driver then records that, and does not ask for it.
    """

    @property
    def k(self) -> int: ...

    @property
    def x(self) -> Point: ...

    @property
    def L(self) -> float:
        """The smoothness that the method works with."""

    @property
    def certificate(self) -> Any:
        """What the last step proved on its way (a Certificate), or None."""

    @property
    def descent(self) -> Any:
        """Where the last step took a full gradient, and where it relied on smoothness (a Descent); None in stochastic methods."""


class Solver(Protocol):
    """One method. Its parameters are frozen, ``step`` is pure: the loop, the clock and the counters are the driver's."""

    def init(self, problem: Problem, x0: Point) -> Any: ...

    def step(self, problem: Problem, state: Any) -> Any: ...


# ----------------------------------------------------------------------------------------------------- the driver


@stored
@dataclass(frozen=True)
class Record:
    """One row of the trace: what is known after ``k`` steps. NaN stands for what was not measured."""

    k: int
    seconds: float
    """By the run's own watch, which stands still while metrics are taken."""
    cpu: float
    """The same in CPU time of all threads."""
    wall: float
    """By the clock on the wall, metrics and all."""
    fo: int
    sfo: int
    ifo: int
    lo: int
    po: int
    values: int
    fun: float
    gap: float
    mapping: float
    mapping_lower: float
    smoothness: float


@stored
class Reason(NamedTuple):
    """Why a run ends: ``status`` for programs, ``message`` for people."""

    status: str
    message: str


class Stop(Protocol):
    """When to end. Combined with ``|`` (either) and ``&`` (both)."""

    def __call__(self, record: Record, trace: Sequence[Record]) -> Reason | None:
        """Why to stop after this record, or None to go on; ``trace`` holds the rows before it."""

    def progress(self, record: Record, trace: Sequence[Record]) -> float:
        """The share of the way that is done, from 0 to 1: a guess, for the time left."""

    def budgets(self) -> tuple[Any, ...]:
        """The budgets that end the run by themselves, so that a long step can be ended inside."""

    def watches(self) -> set[str]:
        """Which measures it looks at: ``mapping``, ``gap``."""

    def tolerance(self) -> float | None:
        """The smallest squared mapping that it asks for."""


Metric = Callable[[Problem, Point], float]
Listener = Callable[[Record, Sequence[Record]], None]
"""Told of each record, with the rows before it."""
