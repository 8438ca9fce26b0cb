"""What every solver's state has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from condgrad.certificate import Certificate
from condgrad.checks import positive, whole
from condgrad.protocols import Point
from condgrad.solvers.evaluation import Evaluation
from condgrad.storage.stored import stored


@stored
class Descent(NamedTuple):
    """Where a step took the gradient of F, and the y for which it relied on F(y) <= F(x) + <grad, y - x> + L/2 |y - x|^2."""

    x: Point
    grad: Point
    y: Point | None = None


def _validate(state: State) -> None:
    whole(state.k, "k", least=0)
    positive(state.L, "L")
    if state.descent is None and state.descent_fun is not None:
        raise ValueError("descent_fun is F at a point that is not there")


@stored(validate=_validate)
@dataclass(frozen=True, kw_only=True)
class State:
    """After ``k`` steps the method reports ``x``. Methods add what else they carry."""

    k: int = 0
    x: Point
    L: float
    certificate: Certificate | None = None
    """What the last step proved on the way, at the point where it took the gradient."""
    descent: Descent | None = None
    fun: float | None = None
    """F(x), where the step has computed it: the driver records it, and the next step does not ask for it again."""
    grad: Point | None = None
    """The gradient at x, where one call of the objective gave it together with F(x)."""
    descent_fun: float | None = None
    """F where the step took its gradient (``descent.x``), likewise."""

    @property
    def known(self) -> Evaluation:
        """What is known of F at x."""
        return Evaluation(self.x, self.fun, self.grad)
