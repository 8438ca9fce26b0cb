"""Objectives given by plain functions, whose answers are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.objectives.sums import Sampled, Sum
from condgrad.protocols import Batch, Point

Value = Callable[[Point], Any]
Grad = Callable[[Point], Any]
TermGrads = Callable[[Point, Batch], Any]
"""(x, batch) -> the gradients of the batch at x, stacked: an array of shape (len(batch), *x.shape)."""
Draw = Callable[[int, np.random.Generator], Any]


PRECISIONS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The relative distance of two numbers of a type, by the type's name in numpy, JAX and torch; all others count as float64."""
DOUBLE = 2.0**-52


class _Precise:
    """Remembers the coarsest type of number that a user's function has answered with: a certificate needs its precision.

    Not a field: what is remembered is no part of what was given.
    """

    @property
    def precision(self) -> float:
        """The relative distance of two numbers of that type."""
        return vars(self).get("_precision", DOUBLE)

    def _seen(self, answer: Any) -> Any:
        found = PRECISIONS.get(str(getattr(answer, "dtype", "")).rpartition(".")[2], DOUBLE)
        if found > self.precision:
            object.__setattr__(self, "_precision", found)
        return answer


@final
@dataclass(frozen=True, eq=False)
class Function:
    """F given by ``value(x)`` and ``grad(x)``. What is not known of it (None) is estimated, or not used."""

    value: Value
    grad: Grad
    shape: Any = None
    smoothness: float | None = None
    lower_smoothness: float | None = None
    lower_bound: float | None = None

    def __post_init__(self) -> None:
        _settle(self)
        checks.settle(self, value=_Value(self.value, self.shape), grad=_Grad(self.grad, self.shape))

    @property
    def precision(self) -> float:
        """The relative distance of two numbers of the type in which ``grad`` has answered so far."""
        return self.grad.precision  # type: ignore[attr-defined]


@final
@dataclass(frozen=True, eq=False)
class FunctionSum(_Precise, Sum):
    """F = (1/n) sum_i f_i, given by ``value(x)`` of F and the gradients ``term_grads(x, batch)`` of a batch of terms.

    A smoothness of the terms is one of F, so ``term_smoothness`` alone will do.
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

    def __post_init__(self) -> None:
        if self.mean_square_smoothness is None:
            checks.settle(self, mean_square_smoothness=self.term_smoothness)
        if self.smoothness is None:
            checks.settle(self, smoothness=self.mean_square_smoothness)
        _settle(self)
        n_terms = checks.whole(self.n_terms, "The n_terms of FunctionSum")
        checks.settle(self, n_terms=n_terms, value=_Value(self.value, self.shape))

    def grad(self, x: Point) -> np.ndarray:
        return self.grad_terms(x, np.arange(self.n_terms))

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        x = checks.point(x, self.shape, "term_grads")
        return checks.answer(self._seen(self.term_grads(x, batch)), (len(batch), *x.shape), "term_grads")

    def assemble(self, rows: np.ndarray, batch: Batch) -> np.ndarray:
        return rows.mean(axis=0)


@final
@dataclass(frozen=True, eq=False)
class FunctionExpectation(_Precise, Sampled):
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
        checks.settle(self, draw=_Draw(self.draw))

    def term_rows(self, x: Point, batch: Batch) -> np.ndarray:
        x = checks.point(x, self.shape, "term_grads")
        return checks.answer(self._seen(self.term_grads(x, batch)), (len(batch), *x.shape), "term_grads")

    def assemble(self, rows: np.ndarray, batch: Batch) -> np.ndarray:
        return rows.mean(axis=0)


@dataclass(frozen=True)
class _Value:
    function: Value
    shape: tuple[int, ...] | None

    def __call__(self, x: Point) -> float:
        return float(checks.answer(self.function(checks.point(x, self.shape, "value")), (), "value"))


@dataclass(frozen=True)
class _Grad(_Precise):
    function: Grad
    shape: tuple[int, ...] | None

    def __call__(self, x: Point) -> np.ndarray:
        x = checks.point(x, self.shape, "grad")
        return checks.answer(self._seen(self.function(x)), x.shape, "grad")


@dataclass(frozen=True)
class _Draw:
    function: Draw

    def __call__(self, size: int, rng: np.random.Generator) -> Batch:
        batch = np.asarray(self.function(size, rng))
        checks.same_shape(batch.shape[:1], (size,), "The first axis of the answer of draw")
        return batch


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
