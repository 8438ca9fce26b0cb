"""The contracts, on one page.

A **point** is anything with ``+``, ``-``, scalar ``*`` and :func:`condgrad.points.inner`: a numpy array of any shape,
or a structured matrix. Points are values: nothing in the library changes one in place.

Everything else here is a ``Protocol``: a class belongs to a contract by having its members, not by inheriting.
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
"""What ``draw`` returns: a numpy array whose first axis runs over the samples (indices, for a finite sum)."""


# ---------------------------------------------------------------------------------------------------- the problem


class Objective(Protocol):
    """F, to be minimised: its value and its gradient. :data:`EXTRAS` lists what it may have besides."""

    def value(self, x: Point) -> float: ...

    def grad(self, x: Point) -> Point: ...


class Expectation(Protocol):
    """F(x) = E f(x, xi), seen through samples of xi."""

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


class Domain(Protocol):
    """A convex, compact set, known through its linear minimisation oracle. :data:`EXTRAS` lists what it may have besides."""

    shape: tuple[int, ...]

    def lmo(self, direction: Point) -> Point:
        """A minimiser of <direction, x> over the set. Total: a zero direction gets a point of the set too."""


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


class FactoredForm(Protocol):
    """Points of a set as the image of vectors: x(w), defined for every w other than 0, onto the points of a rank."""

    start: np.ndarray
    """The vector of the point that the form was made for, up to rounding."""

    def point(self, w: np.ndarray) -> Point:
        """x(w), a point of the set for every w."""

    def pull_back(self, w: np.ndarray, grad: Point) -> np.ndarray:
        """The gradient of F(x(w)) by w, given the gradient of F at x(w)."""

    def squared_mapping(self, w: np.ndarray, pulled: np.ndarray) -> float:
        """An estimate of the squared gradient mapping at x(w), from the gradient by w, as far as the rank allows."""


@cache
def members(contract: type) -> tuple[str, ...]:
    """Names of the members that a contract requires, those of its bases first."""
    bases = reversed(contract.__mro__)  # object and Protocol have private names only
    named = [name for cls in bases for name in (*vars(cls).get("__annotations__", {}), *vars(cls))]
    return tuple(dict.fromkeys(name for name in named if not name.startswith("_")))


def missing(thing: Any, *contracts: type) -> list[str]:
    """Return the members that ``thing`` lacks to fit one of the contracts.

    Parameters
    ----------
    thing : object
        An objective, a set or another part; wrappers that pass attributes on count as what they wrap.
    *contracts : type
        Protocols of this module. Of several, the one that lacks least counts (the first one, if several lack as many).

    Returns
    -------
    list of str
        In the order in which the contract names them; empty if ``thing`` fits.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> missing(SimpleNamespace(shape=(3,)), Domain)
    ['lmo']
    """
    return min(([name for name in members(contract) if not has(thing, name)] for contract in contracts), key=len)


def fits(thing: Any, contract: type) -> bool:
    """Does ``thing`` have the members of the contract? Wrappers that pass attributes on fit what they wrap."""
    return all(has(thing, name) for name in members(contract))


def has(thing: Any, name: str) -> bool:
    """Whether ``thing`` has a member ``name``; a property that says that its value was not given counts."""
    try:
        return hasattr(thing, name)
    except NotGiven:
        return True


EXTRAS: dict[type, dict[str, str]] = {
    Objective: {
        "shape": "a set of another shape is refused at once; a spec builds the set for this shape",
        "smoothness": "L, the Lipschitz constant of the gradient: no backtracking; stochastic methods need it",
        "lower_bound": (
            "the first step size of `sfw`, `svfw`, `sagafw` and their variants, without a linear minimisation"
        ),
        "value_and_grad": (
            "one call where a method needs both at one point, counted as one value and one gradient (None: no "
            "such method)"
        ),
        "grad_scale": (
            "certificates add the rounding of a gradient whose terms nearly cancel: `grad_scale(x)` is an upper "
            "bound of the norm of these terms, and must cost far less than a gradient"
        ),
        "precision": (
            "certificates add the rounding of gradients that are computed in a coarser type than float64, whose "
            "machine epsilon this is"
        ),
        "low_rank": ("if True, iterates on a spectral set are `LowRank`, which `value` and `grad` then must accept"),
        "remembered, remember": (
            "checkpoints save what the objective keeps between calls: `remembered()` returns it, `remember(it)` "
            "restores it"
        ),
        "draw, grad_terms, term_rows, assemble": ("an expectation, or with `n_terms` a finite sum: stochastic methods"),
        "n_terms": (
            "with the four above, a finite sum: `ncgs-vr`, `svfw`, `sagafw`; a gradient counts as `n_terms` term "
            "gradients"
        ),
        "term_smoothness, mean_square_smoothness": "the step sizes of `ncgs-vr`, `svfw` and `sagafw`",
        "mean_grad": (
            "if not None, `grad_terms` needs no stack of term gradients, and `ncgs-vr` and `svfw` call it in "
            "place of `term_rows`"
        ),
    },
    Domain: {
        "start": ("`minimize` without `x0` begins at `start()`; else at the answer of `lmo` to a direction of ones"),
        "contains": (
            "`contains(x, tolerance)`: x0, iterates and the result are checked to lie in the set; without it by "
            "`project`, or else x0 and the result by a few linear minimisations"
        ),
        "diameter": (
            "the largest distance of two points, or an upper bound: the step sizes of `sfw`, `svfw`, `sagafw` and"
            ' their variants, `frank-wolfe` with `rule="bounded"`, and `cgs` with `schedule="theory"`; other methods '
            "do without"
        ),
        "max_norm": (
            "the largest norm of a point: certificates account for a witness that lies in the set to a few digits only"
        ),
        "project": (
            '`projected-gradient`, `accelerated-gradient`, `inner="exact"` (which `inner="auto"` then chooses), '
            "and exact measurements of the gradient mapping"
        ),
        "atom": (
            "`atom(direction)`, the answer of `lmo` as a structured point (`SparseArray`, `LowRank`): `corrective`, `condg` and "
            "the Frank-Wolfe methods keep it as it is, so that a step takes time and memory by its entries; counted as `lmo`"
        ),
        "spectrum, narrowest, trace, floor, shrink, low_rank_start, lmo_near, beyond": (
            'a spectral set: `inner="spectral"`, `warm_start` and iterates of low rank'
        ),
        "factored": (
            "`factored(x, grad)`, the set near x as the image of factors (a `FactoredForm`): `polish`, which decreases F "
            "within the rank of an iterate"
        ),
    },
}
"""What each member that a contract does not require switches on. `docs/extending.md` has the same table."""


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
"""What is counted in a run. Each is a field of Counts and of Record, a column of the trace, and a name for Calls."""


class Part(NamedTuple):
    """What must be finite in the answer of an oracle."""

    noun: str
    """Subject of the message about an answer that is not finite."""
    of: Callable[[Any], Any] = lambda answer: answer
    """Picks the float or the point out of the answer."""


class Oracle(NamedTuple):
    """A function of an objective or a set whose calls are counted and whose answers must be finite."""

    counters: tuple[str, ...]
    """Each grows by 1 in a call; "terms" by the length of the batch, as ifo of a finite sum and sfo of an expectation; fo of a
    finite sum also adds its n_terms to ifo."""
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
    "lmo_near": Oracle(("lo",), (Part("The linear oracle's answer", itemgetter(0)),)),
    "beyond": Oracle(("ub",), (Part("A vector of the upper bound", itemgetter(1)),)),
    "project": Oracle(("po",), (Part("The projection"),)),
}
"""The table of oracles, by the name of the member."""


def vertex_oracle(domain: Any) -> Callable[[Point], Point]:
    """Return ``atom`` of a set, the linear minimisation oracle that answers with structured points; ``lmo`` if it has none."""
    atom = getattr(domain, "atom", None)
    return domain.lmo if atom is None else atom


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
    """One row of the trace: what is known after ``k`` steps. NaN stands for what was not measured.

    The steps of a warm start, before step 0 of the method, have numbers below 0.
    """

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
    """Why a run ends: ``status`` for programs, ``message`` for people."""

    status: str
    message: str


class BudgetEnd(Exception):
    """Raised within a step by an oracle call that a budget does not allow.

    A step may attach the state that it has reached as ``unfinished`` and raise it again: the result then has that state, and a
    checkpoint the step before, so that a resumed run takes the whole step.
    """

    def __init__(self, reason: Reason):
        self.reason = reason


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
"""Called with each record and the rows before it."""
