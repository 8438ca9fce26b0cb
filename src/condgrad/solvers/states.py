"""What every solver's state has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from condgrad.certificate import Certificate
from condgrad.protocols import Point


class Descent(NamedTuple):
    """Where a step took the gradient of F, and the y for which it relied on F(y) <= F(x) + <grad, y - x> + L/2 |y - x|^2."""

    x: Point
    grad: Point
    y: Point | None = None


@dataclass(frozen=True, kw_only=True)
class State:
    """After ``k`` steps the method reports ``x``. Methods add what else they carry."""

    k: int = 0
    x: Point
    L: float
    certificate: Certificate | None = None
    """What the last step proved on the way, at the point where it took the gradient."""
    descent: Descent | None = None
