"""Conversion of values to plain data for strict JSON, and to text for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Convert a value to lists, dicts, strings and finite numbers; NaN and infinite numbers become None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(
        f"The raw data hold a {type(value).__name__}, but only numbers, text, lists and dicts can be written."
    )


def format_number(value: float) -> str:
    """Number with three significant digits, in the same format as in the plots (page.js): 0.0123, 1.6, 18, 4.05e-5."""
    if not isfinite(value):
        return str(value)
    rounded = float(f"{value:.3g}")
    if rounded != 0 and not 1e-3 <= abs(rounded) < 1e5:
        mantissa, exponent = f"{rounded:.2e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{rounded:.12g}"


def format_value(value: Any, unknown: str = "–") -> str:  # noqa: RUF001
    """Text of a table cell: ``unknown`` for None, NaN and infinity, three significant digits of a float, commas in an integer."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return unknown
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format_number(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Sequence | Set) and not isinstance(value, str):
        return ", ".join(format_value(item, unknown) for item in value)
    return str(value)
