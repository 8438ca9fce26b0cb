"""What the checks of combined sets compare with: random points and minima of the sets that they are made from."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from condgrad.domains.entry import DomainEntry


@cache
def _entry(kind: Any) -> DomainEntry:
    from condgrad.domains import DOMAINS  # which is made of these files

    return next(entry for entry in DOMAINS.values() if kind is type(entry.example()))


def _entry_of(domain: Any) -> DomainEntry:
    kind: Any = type(domain)
    return _entry(kind)


def a_point_of(domain: Any, rng: np.random.Generator) -> np.ndarray:
    """A random point of one of the library's sets, made without its oracle."""
    sample = _entry_of(domain).sample
    if sample is None:
        raise TypeError(f"{type(domain).__name__} has no sampler of random points.")
    return np.asarray(sample(domain, rng), dtype=float)


def known_minimum(domain: Any, g: np.ndarray) -> float:
    """The minimum of <g, x> over one of the library's sets, in closed form or from its vertices."""
    entry = _entry_of(domain)
    if entry.least is not None:
        return float(entry.least(domain, g))
    return min(float(np.vdot(g, vertex)) for vertex in vertices_of(domain))


def vertices_of(domain: Any) -> np.ndarray:
    """All vertices of one of the library's polytopes."""
    vertices = _entry_of(domain).vertices
    if vertices is None:
        raise TypeError(f"{type(domain).__name__} has no known vertices.")
    return vertices(domain)
