"""Points: numpy arrays, and whatever else adds, subtracts, scales and has an ``inner``."""

from __future__ import annotations

from typing import Any

import numpy as np


def inner(x: Any, y: Any) -> float:
    """<x, y>: the sum of the products of the entries. A structured point answers for itself."""
    if isinstance(x, np.ndarray):
        return float(np.vdot(x, y)) if isinstance(y, np.ndarray) else float(y.inner(x))
    return float(x.inner(y))


def norm2(x: Any) -> float:
    """|x|^2."""
    return inner(x, x)
