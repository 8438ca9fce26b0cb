"""The contracts, on one page.

A **point** is anything with ``+``, ``-``, scalar ``*`` and :func:`condgrad.points.inner`: a numpy array of any shape,
or a structured matrix. Points are immutable: nothing in the library changes their entries.

The other contracts here are ``Protocol`` classes: a class fits a contract if it has the members of the contract. It need not
inherit from the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from condgrad.checks import NotGiven
from condgrad.storage.stored import stored

Point = Any
"""A numpy array, or a structured point with ``+``, ``-``, scalar ``*`` and ``inner``."""

Batch = Any
"""The result of ``draw``: a numpy array with one entry or row for each sample (for a finite sum, the index of a term)."""


# ---------------------------------------------------------------------------------------------------- the problem


class Objective(Protocol):
    """The function F to be minimised: its value and its gradient. :data:`EXTRAS` lists its optional members."""

    def value(self, x: Point) -> float: ...

    def grad(self, x: Point) -> Point: ...


class Expectation(Protocol):
    """F(x) = E f(x, xi), known through samples of xi."""

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """``size`` independent samples; ``batch[indices]`` is again a batch."""

    def grad_terms(self, x: Point, batch: Batch) -> Point:
        """The mean of the samples' gradients at x."""

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        """One row for each sample, with the numbers from which ``assemble`` computes the gradient of the sample at x again. If
        the terms are ridge functions, a row has one number."""

    def assemble(self, rows: np.ndarray, batch: Batch) -> Point:
        """The mean gradient of the samples, computed from the rows that ``term_rows`` returned. It is linear in the rows."""


class FiniteSum(Objective, Expectation, Protocol):
    """F(x) = (1/n) sum_i f_i(x). A batch is an array of indices of terms, drawn uniformly with replacement."""

    n_terms: int


class Domain(Protocol):
    """A convex, compact set, known through its linear minimisation oracle. :data:`EXTRAS` lists its optional members."""

    shape: tuple[int, ...]

    def lmo(self, direction: Point) -> Point:
        """A minimiser of <direction, x> over the set; for a zero direction, any point of the set."""


class Projectable(Domain, Protocol):
    """A set with an affordable projection."""

    def project(self, x: Point) -> Point: ...


class SpectralSet(Domain, Protocol):
    """A set of matrices that is defined by the values of a matrix: its singular values or its eigenvalues.

    Projections onto the set have low rank.
    """

    spectrum: str
    """Kind of the values: "singular" or "eigen"."""
    narrowest: int
    """Minimum number of values that ``shrink`` accepts."""
    trace: float
    """Largest sum of the values of a point."""
    floor: float
    """Values of ``-direction`` below this number do not change the minimum that the linear oracle finds. The number is 0 if the
    sum of the values of a point may be smaller than ``trace``, else minus infinity."""

    def shrink(self, values: np.ndarray) -> np.ndarray:
        """The values of the projection of a matrix that has the given values. Argument and result are in decreasing order."""

    def low_rank_start(self) -> Point:
        """A starting point, as a LowRank."""

    def lmo_near(self, direction: Point, block: np.ndarray, accuracy: float) -> tuple[Point, np.ndarray]:
        """The answer of ``lmo``, and the vectors found on the way.

        The estimated error of <direction, answer> is at most ``accuracy``.

        The search starts from the vectors in ``block``.
        """

    def beyond(
        self, z: Point, left: np.ndarray, right: np.ndarray, needed: float, size: float
    ) -> tuple[float, np.ndarray]:
        """An upper bound on the values of z on the orthogonal complement of the given Ritz vectors.

        The Ritz vectors that were found on the complement are returned too.

        The search stops as soon as the bound is at most ``needed``. ``size`` is the norm of z. In a Frank-Wolfe gap, the bound is
        used instead of the minimum that the linear oracle finds; no vertex is needed.
        """


class FactoredForm(Protocol):
    """A map x(w) from vectors w other than 0 to points of a set. Its image is the set of all points up to some rank."""

    start: np.ndarray
    """The vector w for which x(w) is, up to rounding, the point at which the form was requested."""

    def point(self, w: np.ndarray) -> Point:
        """x(w), a point of the set for every w."""

    def pull_back(self, w: np.ndarray, grad: Point) -> np.ndarray:
        """The gradient of F(x(w)) with respect to w, computed from ``grad``, the gradient of F at x(w)."""

    def squared_mapping(self, w: np.ndarray, pulled: np.ndarray, gamma: float, rotate: bool = False) -> float:
        """An estimate of the squared gradient mapping at x(w), restricted to the image, with step size gamma.

        ``pulled`` is the gradient with respect to w, as ``pull_back`` returns it. The columns of the factors are assumed to be
        orthogonal. With ``rotate`` they need not be: the estimate then takes more time.
        """


@cache
def members(contract: type) -> tuple[str, ...]:
    """Names of the members that a contract requires. The members of its bases come first."""
    bases = reversed(contract.__mro__)  # object and Protocol have private names only
    named = [name for cls in bases for name in (*vars(cls).get("__annotations__", {}), *vars(cls))]
    return tuple(dict.fromkeys(name for name in named if not name.startswith("_")))


def missing(thing: Any, *contracts: type) -> list[str]:
    """Return the members that ``thing`` lacks to fit one of the contracts.

    Parameters
    ----------
    thing : object
        An objective, a set or another part. A wrapper that forwards attributes has the members of the object that it wraps.
    *contracts : type
        Protocols of this module. If there are several, the result is for the contract with the fewest missing members.

    Returns
    -------
    list of str
        The missing members, in the order in which the contract names them; empty if ``thing`` fits.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> missing(SimpleNamespace(shape=(3,)), Domain)
    ['lmo']
    """
    return min(([name for name in members(contract) if not has(thing, name)] for contract in contracts), key=len)


def fits(thing: Any, contract: type) -> bool:
    """Whether ``thing`` has all members of the contract."""
    return all(has(thing, name) for name in members(contract))


def has(thing: Any, name: str) -> bool:
    """Whether ``thing`` has a member ``name``. A property that raises NotGiven counts as a member."""
    try:
        return hasattr(thing, name)
    except NotGiven:
        return True


EXTRAS: dict[type, dict[str, str]] = {
    Objective: {
        "shape": (
            "Shape of the points. A set of another shape is refused at once. A spec builds the set with this shape."
        ),
        "smoothness": (
            "The constant L, a Lipschitz constant of the gradient. Backtracking is not needed. Stochastic methods "
            "need L."
        ),
        "lower_bound": (
            "Lower bound on F. It gives the first step size of `sfw`, `svfw`, `sagafw` and their variants without a "
            "linear minimisation."
        ),
        "value_and_grad": (
            "`value_and_grad(x)` is called where a method needs both at one point. The call is counted as one value "
            "and one gradient. May be None."
        ),
        "grad_scale": (
            "`grad_scale(x)` is an upper bound on the norm of the terms whose sum is the gradient. It must cost far "
            "less than a gradient. With it, certificates account for rounding errors if the terms nearly cancel."
        ),
        "precision": (
            "Machine epsilon of the type in which gradients are computed, if this is coarser than float64. "
            "Certificates then account for its rounding errors."
        ),
        "low_rank": "If True, iterates on a spectral set are `LowRank`. `value` and `grad` must accept this type.",
        "remembered, remember": (
            "Checkpoints save what the objective keeps between calls: `remembered()` returns it, and "
            "`remember(saved)` restores it."
        ),
        "draw, grad_terms, term_rows, assemble": (
            "The objective is an expectation, or a finite sum if it also has `n_terms`. Stochastic methods can be used."
        ),
        "n_terms": (
            "The objective is a finite sum: `ncgs-vr`, `svfw` and `sagafw` can be used. A gradient is counted as "
            "`n_terms` term gradients."
        ),
        "term_smoothness, mean_square_smoothness": (
            "Smoothness constants of the terms, from which `ncgs-vr`, `svfw` and `sagafw` compute their step sizes."
        ),
        "mean_grad": (
            "If it is not None, `grad_terms` computes the mean gradient of a batch without a stack of term gradients."
            " `ncgs-vr` and `svfw` then call `grad_terms` instead of `term_rows`."
        ),
    },
    Domain: {
        "start": "`start()` is the default starting point. Without it, the run starts at `lmo(ones)`.",
        "contains": (
            "`contains(x, tolerance)` checks that x0, the iterates and the result are in the set. Without it, they "
            "are checked by `project`; without both, x0 and the result are checked by a few linear minimisations."
        ),
        "diameter": (
            "The largest distance of two points, or an upper bound. The step sizes of `sfw`, `svfw`, `sagafw` and "
            'their variants, `frank-wolfe` with `rule="bounded"`, and `cgs` with `schedule="theory"` need it. Other '
            "methods do not."
        ),
        "max_norm": (
            "The largest norm of a point. Certificates then account for a witness that is slightly outside of the set."
        ),
        "project": (
            '`project(x)` allows `projected-gradient`, `accelerated-gradient`, `inner="exact"` (which `inner="auto"` '
            "then chooses), and exact measurements of the gradient mapping."
        ),
        "atom": (
            "`atom(direction)` returns the answer of `lmo` as a structured point (`SparseArray`, `LowRank`). "
            "`corrective`, `condg` and the Frank-Wolfe methods keep this structure, so that time and memory of a step"
            " are proportional to the stored entries. Counted as `lmo`."
        ),
        "spectrum, narrowest, trace, floor, shrink, low_rank_start, lmo_near, beyond": (
            'The set is a spectral set: `inner="spectral"`, `warm_start` and low-rank iterates can be used.'
        ),
        "factored": (
            "`factored(x, grad)` returns the set near x as the image of factors (a `FactoredForm`). `polish` can then"
            " decrease F within the rank of an iterate."
        ),
    },
}
"""The optional members of each contract, and what each member is used for. `docs/extending.md` has the same table."""


# ---------------------------------------------------------------------------------------------------- the oracles


COUNTERS = {
    "fo": "full gradients",
    "sfo": "sample gradients",
    "ifo": "term gradients",
    "lo": "linear minimisations",
    "ub": "upper bounds",
    "po": "projections",
    "values": "values of F",
}
"""The counters of a run. Each is a field of Counts and of Record, a column of the trace, and a value of ``Calls.oracle``."""


class Part(NamedTuple):
    """A part of the answer of an oracle that must be finite."""

    noun: str
    """Subject of the message about an answer that is not finite."""
    of: Callable[[Any], Any] = lambda answer: answer
    """Function that takes the float or the point from the answer."""


class Oracle(NamedTuple):
    """A function of an objective or a set whose calls are counted and whose answers must be finite."""

    counters: tuple[str, ...]
    """Counters that increase by 1 with each call. "terms" stands for ``ifo`` if F is a finite sum and for ``sfo`` if F is an
    expectation; this counter increases by the length of the batch. For a finite sum, a call that increases ``fo`` also adds
    n_terms to ``ifo``."""
    finite: tuple[Part, ...]


ORACLES: dict[str, Oracle] = {
    "value": Oracle(("values",), (Part("The value", float),)),
    "grad": Oracle(("fo",), (Part("The gradient"),)),
    "value_and_grad": Oracle(
        ("values", "fo"), (Part("The value", lambda answer: float(answer[0])), Part("The gradient", itemgetter(1)))
    ),
    "grad_terms": Oracle(("terms",), (Part("The batch gradient"),)),
    "term_rows": Oracle(("terms",), (Part("A term's gradient"),)),
    "lmo": Oracle(("lo",), (Part("The linear oracle's answer"),)),
    "atom": Oracle(("lo",), (Part("The linear oracle's answer"),)),
    "atoms": Oracle(("lo",), (Part("The linear oracle's answer", itemgetter(0)),)),
    "lmo_near": Oracle(("lo",), (Part("The linear oracle's answer", itemgetter(0)),)),
    "beyond": Oracle(("ub",), (Part("A vector of the upper bound", itemgetter(1)),)),
    "project": Oracle(("po",), (Part("The projection"),)),
}
"""The oracles of objectives and sets, by the name of the member."""


def vertex_oracle(domain: Any) -> Callable[[Point], Point]:
    """Return ``atom`` of a set, the linear oracle that answers with structured points; ``lmo`` if the set has no ``atom``."""
    atom = getattr(domain, "atom", None)
    return domain.lmo if atom is None else atom


@dataclass(frozen=True)
class Problem:
    """Minimise ``objective`` over ``domain``."""

    objective: Any
    domain: Any


# ---------------------------------------------------------------------------------------------------- the methods


class Estimator(Protocol):
    """An estimator of the gradient of F. Its memory (what it keeps between steps) is part of the solver's state."""

    def init(self, objective: Any, x: Point) -> Any: ...

    def estimate(self, objective: Any, x: Point, memory: Any, k: int, rng: np.random.Generator) -> tuple[Point, Any]:
        """The gradient to use in step k (counted from 1), and the memory after this step."""


InnerStop = Callable[[float], float]
"""Function of |u_t - u|^2 / gamma. It returns the largest gap with which the prox point u_t of the point u is accurate enough."""


class Prox(NamedTuple):
    """An inexact prox point, with its Frank-Wolfe gap in the prox subproblem. The gap is infinite if it was not computed."""

    point: Point
    gap: float
    memory: Any


class Inner(Protocol):
    """Solves min <g, x> + |x - u|^2 / (2 gamma) over the set until the Frank-Wolfe gap is at most what ``stop`` allows."""

    def init(self, domain: Any, x: Point) -> Any:
        """The memory that is kept between outer steps; None if the solver needs none."""

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: Any) -> Prox: ...


class State(Protocol):
    """The state of a method after ``k`` steps: everything that changes from step to step. ``x`` is the iterate to report.

    A state may have the member ``fun``, which is F(x) or None. If ``fun`` is a number, the driver records it and does not call
    ``value``.
    """

    @property
    def k(self) -> int: ...

    @property
    def x(self) -> Point: ...

    @property
    def L(self) -> float:
        """The smoothness constant that the method uses."""

    @property
    def certificate(self) -> Any:
        """The Certificate that the last step computed, or None."""

    @property
    def descent(self) -> Any:
        """A ``Descent``: the point at which the last step relied on smoothness, and the full gradient there.

        None for a stochastic method.
        """


class Solver(Protocol):
    """One method. Its parameters do not change, and ``step`` has no side effects. The driver has the loop, the clock and the
    counters."""

    def init(self, problem: Problem, x0: Point) -> Any: ...

    def step(self, problem: Problem, state: Any) -> Any: ...


# ----------------------------------------------------------------------------------------------------- the driver


@stored
@dataclass(frozen=True)
class Record:
    """One row of the trace: the measurements after ``k`` steps. A number that was not measured is NaN.

    The steps of a warm start, before step 0 of the method, have numbers below 0.
    """

    k: int
    seconds: float
    """Wall-clock time of the run, without the time for metrics."""
    cpu: float
    """CPU time of all threads, without the time for metrics."""
    wall: float
    """Wall-clock time of the run, including metrics."""
    fo: int
    sfo: int
    ifo: int
    lo: int
    ub: int
    po: int
    values: int
    fun: float
    gap: float
    mapping: float
    mapping_lower: float
    smoothness: float
    phase: str = "main"
    """The part of the run that the step belongs to, such as ``warm-start``."""


@stored
class Reason(NamedTuple):
    """The reason why a run ends: ``status`` is for programs, ``message`` for people."""

    status: str
    message: str


class BudgetEnd(Exception):
    """Raised within a step by an oracle call that a budget does not allow.

    A step may attach the state that it has reached to the exception, as ``unfinished``, and raise it again. Then the run returns
    this unfinished state. A checkpoint has the state before the step, so that a resumed run takes the whole step.
    """

    def __init__(self, reason: Reason):
        self.reason = reason


class Stop(Protocol):
    """A stopping rule. Rules are combined with ``|`` (either) and ``&`` (both)."""

    def __call__(self, record: Record, trace: Sequence[Record]) -> Reason | None:
        """The reason to stop after this record, or None to continue; ``trace`` has the rows before this record."""

    def progress(self, record: Record, trace: Sequence[Record]) -> float:
        """Estimated progress, from 0 to 1, from which the remaining time is estimated."""

    def budgets(self) -> tuple[Any, ...]:
        """The budgets, which are also checked before each oracle call, so that they can end a long step."""

    def watches(self) -> set[str]:
        """Names of the measures that the rule uses: ``mapping``, ``gap``, both or none."""

    def tolerance(self) -> float | None:
        """The smallest tolerance on the squared gradient mapping; None if the rule has no such tolerance."""


Listener = Callable[[Record, Sequence[Record]], None]
"""Called with each record and the rows of the trace before this record."""
