"""What every solver's state has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from condgrad.certificate import Certificate
from condgrad.protocols import Point


class Descent(NamedTuple):
    """The pair on which a step relied on smoothness: F(y) <= F(x) + <grad, y - x> + L/2 |y - x|^2, grad = grad F(x)."""

    x: Point
    grad: Point
    y: Point


@dataclass(frozen=True, kw_only=True)
class State:
    """After ``k`` steps the method reports ``x``. Methods add what else they carry."""

    k: int = 0
    x: Point
    L: float
    certificate: Certificate | None = None
    """What the last step proved on the way, at the point where it took the gradient."""
    descent: Descent | None = None
