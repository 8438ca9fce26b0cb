"""Repetitions of one promise: the default suite tries some of them, `make test-slow` the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def first(values: Iterable[Any], quick: int = 1) -> list[Any]:
    """The values as parameters of a test: those after the first ``quick`` are slow."""
    return [pytest.param(value, marks=pytest.mark.slow if i >= quick else ()) for i, value in enumerate(values)]


def slow_unless(quick: Callable[..., bool], parameters: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The tuples as parameters of a test: those of which ``quick`` is not true are slow."""
    return [pytest.param(*one, marks=() if quick(*one) else pytest.mark.slow) for one in parameters]
