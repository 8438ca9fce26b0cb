"""What is known of F at a point, so that no value is asked for twice and one call gives both where it can."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.protocols import Point


class Evaluation(NamedTuple):
    """F and its gradient at x; None: not computed."""

    x: Point
    fun: Any = None
    grad: Any = None


def same_point(x: Point, y: Point) -> bool:
    """One object, or arrays with equal entries. Structured points are only compared by identity: anything else costs more."""
    return x is y or (isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and np.array_equal(x, y))


def value_at(objective: Any, x: Point) -> Evaluation:
    """F(x); with the gradient where the objective computes both in one call."""
    both = both_at(objective, x)
    return both if both.fun is not None else Evaluation(x, fun=objective.value(x))


def grad_at(objective: Any, x: Point) -> Evaluation:
    """The gradient at x; with F(x) where the objective computes both in one call."""
    both = both_at(objective, x)
    return both if both.fun is not None else Evaluation(x, grad=objective.grad(x))


def both_at(objective: Any, x: Point) -> Evaluation:
    """F and its gradient at x where the objective computes both in one call, else neither."""
    both = getattr(objective, "value_and_grad", None)
    return Evaluation(x) if both is None else Evaluation(x, *both(x))


class Remembering:
    """Stands for ``objective`` within one step: a value or a gradient that is known is not computed again.

    It lives no longer than the step, so that steps stay pure and objectives can be shared between threads.
    """

    def __init__(self, objective: Any, *known: Evaluation):
        self._objective, self._known = objective, list(known)
        self.value_and_grad = None if getattr(objective, "value_and_grad", None) is None else self._both

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def value(self, x: Point) -> float:
        for known in self._known:
            if known.fun is not None and same_point(x, known.x):
                return known.fun
        return self._keep(Evaluation(x, fun=self._objective.value(x))).fun

    def grad(self, x: Point) -> Point:
        for known in self._known:
            if known.grad is not None and same_point(x, known.x):
                return known.grad
        return self._keep(Evaluation(x, grad=self._objective.grad(x))).grad

    def _both(self, x: Point) -> tuple[float, Point]:
        for known in self._known:
            if known.fun is not None and known.grad is not None and same_point(x, known.x):
                return known.fun, known.grad
        return self._keep(Evaluation(x, *self._objective.value_and_grad(x)))[1:]

    def _keep(self, evaluation: Evaluation) -> Evaluation:
        self._known.append(evaluation)
        return evaluation
