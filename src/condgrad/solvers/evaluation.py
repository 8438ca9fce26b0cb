"""Evaluations of F that avoid repeated calls: one call for value and gradient, and a cache for the duration of a step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.protocols import Point


class Evaluation(NamedTuple):
    """Value and gradient of F at x; None: not computed."""

    x: Point
    fun: Any = None
    grad: Any = None


def same_point(x: Point, y: Point) -> bool:
    """Return whether x and y are one object or equal arrays. Structured points are compared by identity only, which is cheap."""
    if x is y:
        return True
    arrays = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return arrays and x.shape == y.shape and bool((x == y).all())


def value_at(objective: Any, x: Point) -> Evaluation:
    """Return F(x), together with the gradient if the objective computes both in one call."""
    both = value_and_grad_at(objective, x)
    return both if both.fun is not None else Evaluation(x, fun=objective.value(x))


def grad_at(objective: Any, x: Point) -> Evaluation:
    """Return the gradient at x, together with F(x) if the objective computes both in one call."""
    both = value_and_grad_at(objective, x)
    return both if both.fun is not None else Evaluation(x, grad=objective.grad(x))


def value_and_grad_at(objective: Any, x: Point) -> Evaluation:
    """Return F(x) and the gradient if the objective computes both in one call, else neither."""
    both = getattr(objective, "value_and_grad", None)
    return Evaluation(x) if both is None else Evaluation(x, *both(x))


class CachedObjective:
    """Wrapper of ``objective`` for one step that returns known values and gradients without another call.

    It exists only for the duration of a step, so steps stay pure and objectives can be shared between threads.
    """

    def __init__(self, objective: Any, *known: Evaluation):
        self._objective, self._known = objective, list(known)

    @property
    def value_and_grad(self) -> Any:
        """The function that returns F(x) and the gradient in one call; None if the objective has none.

        As an attribute it would be a reference cycle, which keeps the gradients of past steps in memory.
        """
        return None if getattr(self._objective, "value_and_grad", None) is None else self._both

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def value(self, x: Point) -> float:
        """Return F(x)."""
        known = self._find(x, 1)
        return (self._keep(Evaluation(x, fun=self._objective.value(x))) if known is None else known).fun

    def grad(self, x: Point) -> Point:
        """Return the gradient at x."""
        known = self._find(x, 2)
        return (self._keep(Evaluation(x, grad=self._objective.grad(x))) if known is None else known).grad

    def forget(self, x: Point) -> None:
        """Drop what was computed at this point, so that its gradient need not be kept in memory."""
        self._known = [known for known in self._known if not same_point(x, known.x)]

    def _both(self, x: Point) -> tuple[float, Point]:
        known = self._find(x, 1, 2)
        return (self._keep(Evaluation(x, *self._objective.value_and_grad(x))) if known is None else known)[1:]

    def _find(self, x: Point, *parts: int) -> Evaluation | None:
        """Return an evaluation at x that has these parts; at x itself if there is one, which needs no comparison of entries."""
        complete = self._known
        for part in parts:
            complete = [known for known in complete if known[part] is not None]
        for known in complete:
            if known.x is x:
                return known
        return next((known for known in complete if same_point(x, known.x)), None)

    def _keep(self, evaluation: Evaluation) -> Evaluation:
        self._known.append(evaluation)
        return evaluation
