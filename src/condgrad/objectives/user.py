"""Objectives given by plain functions, whose answers are checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.objectives.sums import Sampled, Sum
from condgrad.points.blocks import Blocks
from condgrad.points.rounding import TracksPrecision
from condgrad.protocols import Batch, Point

Value = Callable[[Point], Any]
Grad = Callable[[Point], Any]
ValueAndGrad = Callable[[Point], Any]
"""x -> (F(x), grad F(x)), a pair."""
TermGrads = Callable[[Point, Batch], Any]
"""(x, batch) -> the gradients of the batch at x, stacked: an array of shape (len(batch), *x.shape)."""
MeanGrad = Callable[[Point, Batch], Any]
"""(x, batch) -> the mean of the batch's gradients at x, an array of x's shape."""
Draw = Callable[[int, np.random.Generator], Any]


def _precision(wrapped: Any) -> float:
    return wrapped.precision


@final
@dataclass(frozen=True, eq=False)
class Function:
    """F given by plain functions; every answer is checked.

    Parameters
    ----------
    value : callable, default None
        ``value(x) -> float``. May be left out where ``value_and_grad`` is given.
    grad : callable, default None
        ``grad(x) -> array`` of x's shape. May be left out where ``value_and_grad`` is given. On a :class:`condgrad.Product` x is
        a :class:`condgrad.Blocks`, and the answer a ``Blocks``, a tuple of blocks, or a dict of them by their names.
    shape : int or tuple of int, default None
        Shape of the points. None: any.
    smoothness : float, default None
        L: the gradient is L-Lipschitz. None: found by backtracking (deterministic methods); see also
        :func:`condgrad.estimate_smoothness`.
    lower_smoothness : float, default None
        l: F + l/2 |x|^2 is convex. None: not used.
    lower_bound : float, default None
        A number below every value of F. None: not used.
    value_and_grad : callable, default None
        ``value_and_grad(x) -> (float, array)``: both in one call, as automatic differentiation gives them. Methods that need
        the value and the gradient at one point then make one call there, which counts as one of each.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> centre = np.array([0.7, 0.2, 0.9])
    >>> def value_and_grad(x):
    ...     residual = x - centre
    ...     return residual @ residual / 2, residual
    >>> F = cg.Function(value_and_grad=value_and_grad, shape=3, smoothness=1.0)
    >>> result = cg.minimize(F, cg.Simplex(3))
    >>> result.status, result.x.round(3)
    ('converged', array([0.4, 0. , 0.6]))
    """

    value: Value | None = None
    grad: Grad | None = None
    shape: Any = None
    smoothness: float | None = None
    lower_smoothness: float | None = None
    lower_bound: float | None = None
    value_and_grad: ValueAndGrad | None = None

    def __post_init__(self) -> None:
        _settle(self)
        both = self.value_and_grad and _ValueAndGrad(_function(self.value_and_grad, "value_and_grad"), self.shape)
        if both is None and (missing := [name for name in ("value", "grad") if getattr(self, name) is None]):
            raise TypeError(f"Function has no {' and no '.join(missing)}: give value= and grad=, or value_and_grad=.")
        value = _First(both) if self.value is None else _Value(_function(self.value, "value"), self.shape)
        grad = _Second(both) if self.grad is None else _Grad(_function(self.grad, "grad"), self.shape)
        checks.settle(self, value=value, grad=grad, value_and_grad=both)

    @property
    def precision(self) -> float:
        """The relative distance of two numbers of the type in which ``grad`` has answered so far."""
        return _precision(self.grad)


@final
@dataclass(frozen=True, eq=False)
class FunctionSum(Sum):
    """F = (1/n) sum_i f_i, given by plain functions; every answer is checked.

    Parameters
    ----------
    value : callable
        ``value(x) -> float``: F(x), the mean over all terms.
    term_grads : callable
        ``term_grads(x, batch) -> array`` of shape ``(len(batch), *x.shape)``: the gradients of the terms with these numbers
        (from 0 to n_terms - 1, a term may occur more than once).
    n_terms : int
        Number of terms.
    shape : int or tuple of int, default None
        Shape of the points. None: any.
    smoothness : float, default None
        L of F. None: ``mean_square_smoothness``, which is one.
    lower_smoothness, lower_bound : float, default None
        As for :class:`Function`.
    term_smoothness : float, default None
        A smoothness that each term has; it alone will do. :func:`condgrad.estimate_smoothness` estimates all three.
    mean_square_smoothness : float, default None
        K with (1/n) sum_i |grad f_i(x) - grad f_i(y)|^2 <= K^2 |x - y|^2. None: ``term_smoothness``.
    grad : callable, default None
        ``grad(x) -> array``: the gradient of F where that is cheaper than all gradients of terms. None: their mean. It counts
        as one full gradient and n term gradients, like any other.
    mean_grad : callable, default None
        ``mean_grad(x, batch) -> array`` of x's shape: the mean of the batch's gradients, without the stacked array. None:
        the mean of ``term_grads``. ``term_grads`` is then only asked where single gradients are kept (SAGA, ``store=True``).

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> centres = np.random.default_rng(0).normal(size=(100, 3))
    >>> F = cg.FunctionSum(
    ...     value=lambda x: np.mean(np.sum((x - centres) ** 2, axis=1)) / 2,
    ...     term_grads=lambda x, batch: x - centres[batch],
    ...     mean_grad=lambda x, batch: x - centres[batch].mean(axis=0),
    ...     grad=lambda x, mean=centres.mean(axis=0): x - mean,
    ...     n_terms=100, shape=3, term_smoothness=1.0,
    ... )
    >>> cg.minimize(F, cg.L2Ball(3, 10.0), method="ncgs-vr").status
    'converged'
    """

    value: Value
    term_grads: TermGrads
    n_terms: int
    shape: Any = None
    smoothness: float | None = None
    lower_smoothness: float | None = None
    lower_bound: float | None = None
    term_smoothness: float | None = None
    mean_square_smoothness: float | None = None
    grad: Grad | None = None
    mean_grad: MeanGrad | None = None

    def __post_init__(self) -> None:
        if self.mean_square_smoothness is None:
            checks.settle(self, mean_square_smoothness=self.term_smoothness)
        if self.smoothness is None:
            checks.settle(self, smoothness=self.mean_square_smoothness)
        _settle(self)
        n_terms = checks.whole(self.n_terms, "The n_terms of FunctionSum")
        mean = self.mean_grad and _MeanGrad(_function(self.mean_grad, "mean_grad"), self.shape)
        checks.settle(self, n_terms=n_terms, value=_Value(_function(self.value, "value"), self.shape), mean_grad=mean)
        # not self.grad_terms: a bound method here would be a reference cycle, which only the garbage collector frees
        rows = _TermRows(self.term_grads, self.shape)
        every = _MeanOfAll(mean or _MeanOfTerms(rows), n_terms)
        grad = every if self.grad is None else _Grad(_function(self.grad, "grad"), self.shape)
        checks.settle(self, grad=grad, term_grads=rows)

    def grad_terms(self, x: Point, batch: Batch) -> np.ndarray:
        return super().grad_terms(x, batch) if self.mean_grad is None else self.mean_grad(x, batch)

    @property
    def precision(self) -> float:
        """The relative distance of two numbers of the coarsest type in which gradients have been answered so far."""
        return max(_precision(self.grad), _precision(self.term_grads))

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        return self.term_grads(x, batch)

    def assemble(self, rows: np.ndarray, batch: Batch) -> np.ndarray:
        return rows.mean(axis=0)


@final
@dataclass(frozen=True, eq=False)
class FunctionExpectation(Sampled):
    """F = E f(., xi), given by samples ``draw(size, rng)`` of xi and the gradients ``term_grads(x, batch)`` at them.

    It has neither a value nor a gradient of F: nobody could compute them.
    """

    draw: Draw
    term_grads: TermGrads
    shape: Any = None
    smoothness: float | None = None
    lower_smoothness: float | None = None
    lower_bound: float | None = None

    def __post_init__(self) -> None:
        _settle(self)
        checks.settle(self, draw=_Draw(self.draw), term_grads=_TermRows(self.term_grads, self.shape))

    @property
    def precision(self) -> float:
        """The relative distance of two numbers of the coarsest type in which gradients have been answered so far."""
        return _precision(self.term_grads)

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        return self.term_grads(x, batch)

    def assemble(self, rows: np.ndarray, batch: Batch) -> np.ndarray:
        return rows.mean(axis=0)


def _argument(x: Point, shape: tuple[int, ...] | None, function: str) -> Point:
    """The point as a user's function sees it: a point of a product as ``Blocks``, any other one as an array."""
    if not isinstance(x, Blocks):
        return checks.point(x, shape, function)
    if shape is not None:
        checks.same_shape(x.shape, shape, f"The point given to {function}")
    return x


def _gradient(given: Any, x: Point, function: str) -> Point:
    """The answer of a user's function as a finite point like x; at a ``Blocks``, blocks or a vector of all entries will do."""
    if not isinstance(x, Blocks):
        return checks.answer(given, x.shape, function)
    what, advice = f"The answer of {function}", f"check what {function} computes at this point"
    return x.like(given, what).map(lambda b: checks.finite_array(b, what, advice) if isinstance(b, np.ndarray) else b)


@dataclass(frozen=True)
class _Value:
    function: Value
    shape: tuple[int, ...] | None

    def __call__(self, x: Point) -> float:
        return float(checks.answer(self.function(_argument(x, self.shape, "value")), (), "value"))


@dataclass(frozen=True)
class _Grad(TracksPrecision):
    function: Grad
    shape: tuple[int, ...] | None

    def __call__(self, x: Point) -> Point:
        x = _argument(x, self.shape, "grad")
        return _gradient(self._record_precision(self.function(x)), x, "grad")


@dataclass(frozen=True)
class _ValueAndGrad(TracksPrecision):
    function: ValueAndGrad
    shape: tuple[int, ...] | None

    def __call__(self, x: Point) -> tuple[float, Point]:
        x = _argument(x, self.shape, "value_and_grad")
        pair = checks.pair(self.function(x))
        value = checks.answer(pair[0], (), "value_and_grad, its value,")
        return float(value), _gradient(self._record_precision(pair[1]), x, "value_and_grad, its gradient,")


@dataclass(frozen=True)
class _First:
    both: Any

    def __call__(self, x: Point) -> float:
        return self.both(x)[0]


@dataclass(frozen=True)
class _Derived(ABC):
    """A gradient that is computed from another function's answers, and has their precision."""

    source: Any

    @property
    def precision(self) -> float:
        return self.source.precision

    @abstractmethod
    def __call__(self, x: Point, *batch: Batch) -> np.ndarray: ...


@final
@dataclass(frozen=True)
class _Second(_Derived):
    def __call__(self, x: Point, *batch: Batch) -> np.ndarray:
        return self.source(x)[1]


@dataclass(frozen=True)
class _MeanGrad(TracksPrecision):
    function: MeanGrad
    shape: tuple[int, ...] | None

    def __call__(self, x: Point, batch: Batch) -> Point:
        x = _argument(x, self.shape, "mean_grad")
        return _gradient(self._record_precision(self.function(x, batch)), x, "mean_grad")


@dataclass(frozen=True)
class _TermRows(TracksPrecision):
    """The gradients of single terms, as rows."""

    term_grads: TermGrads
    shape: tuple[int, ...] | None

    def __call__(self, x: Point, batch: Batch) -> np.ndarray:
        x = _argument(x, self.shape, "term_grads")
        return checks.answer(self._record_precision(self.term_grads(x, batch)), (len(batch), *x.shape), "term_grads")


@final
@dataclass(frozen=True)
class _MeanOfTerms(_Derived):
    def __call__(self, x: Point, *batch: Batch) -> np.ndarray:
        return self.source(x, *batch).mean(axis=0)


@final
@dataclass(frozen=True)
class _MeanOfAll(_Derived):
    n_terms: int

    def __call__(self, x: Point, *batch: Batch) -> np.ndarray:
        return self.source(x, np.arange(self.n_terms))


@dataclass(frozen=True)
class _Draw:
    function: Draw

    def __call__(self, size: int, rng: np.random.Generator) -> Batch:
        batch = np.asarray(self.function(size, rng))
        checks.same_shape(batch.shape[:1], (size,), "The first axis of the answer of draw")
        return batch


def _function(given: Any, name: str) -> Any:
    if not callable(given):
        raise TypeError(f"{name} is of type {type(given).__name__}, a function was expected: {name}={name}.")
    return given


def _settle(objective: Any) -> None:
    """The declared shape and constants in their final form."""
    owner = type(objective).__name__
    if objective.shape is not None:
        checks.settle(objective, shape=checks.as_shape(objective.shape, owner))
    for name, check in _CONSTANTS.items():
        if getattr(objective, name, None) is not None:
            checks.settle(objective, **{name: check(getattr(objective, name), f"The {name} of {owner}")})


_CONSTANTS = {
    "smoothness": checks.positive,
    "lower_smoothness": checks.not_negative,
    "lower_bound": checks.real,
    "term_smoothness": checks.positive,
    "mean_square_smoothness": checks.positive,
}
