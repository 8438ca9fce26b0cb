"""The base class of the states of solvers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from condgrad.certificate import Certificate
from condgrad.checks import positive, whole
from condgrad.protocols import Point
from condgrad.solvers.evaluation import Evaluation
from condgrad.storage.stored import stored


@stored
class Descent(NamedTuple):
    """The point x and the gradient of a step, and the point y at which the step relies on the descent inequality, if it does.

    The inequality is F(y) <= F(x) + <grad, y - x> + L/2 |y - x|^2.
    """

    x: Point
    grad: Point
    y: Point | None = None


def _validate(state: State) -> None:
    whole(state.k, "k", least=0)
    positive(state.L, "L")
    if state.descent is None and state.descent_fun is not None:
        raise ValueError("descent_fun is given without descent")


@stored(validate=_validate)
@dataclass(frozen=True, kw_only=True)
class State:
    """State of a method after ``k`` steps; ``x`` is the point that the method reports. Subclasses add fields.

    Attributes
    ----------
    k : int, default 0
        Number of steps.
    x : Point
        The point that the method reports.
    L : float
        The smoothness constant in use.
    """

    k: int = 0
    x: Point
    L: float
    certificate: Certificate | None = None
    """Certificate of the point where the last step evaluated the gradient."""
    descent: Descent | None = None
    fun: float | None = None
    """F(x) if the step has computed it: the driver records it, and the next step reuses it."""
    grad: Point | None = None
    """The gradient at x if the objective has returned it together with F(x)."""
    descent_fun: float | None = None
    """F(descent.x) if the step has computed it."""

    @property
    def known(self) -> Evaluation:
        """The known value and gradient of F at x."""
        return Evaluation(self.x, self.fun, self.grad)


def gradient_at(state: Any) -> Descent | None:
    """Return the point that the state reports with the gradient there; None if the state has no such gradient."""
    grad = getattr(state, "grad", None)
    return None if grad is None else Descent(state.x, grad)


def without_descent(state: Any) -> Any:
    """Return the state that the next step starts from: without its descent if the gradient at x is known.

    The driver then compares the next gradient with the one at x. A gradient may be as large as the data, so the one of the
    descent is freed before the next step. Solvers do not read the descent of a state.
    """
    if not isinstance(state, State) or state.descent is None or gradient_at(state) is None:
        return state
    return replace(state, descent=None, descent_fun=None)
