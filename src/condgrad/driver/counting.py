"""Oracles are counted from outside, by wrapping the problem: a solver knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from condgrad.checks import NonFinite, not_finite, read_only
from condgrad.driver.resolve import check_point, unwrapped
from condgrad.driver.vertices import Compared
from condgrad.points import norm2
from condgrad.protocols import ORACLES, Oracle, Problem, has


@dataclass
class Counts:
    """Oracle calls so far, inner ones included."""

    fo: int = 0
    """Full gradients."""
    sfo: int = 0
    """Sample gradients of an expectation."""
    ifo: int = 0
    """Term gradients of a finite sum; a full gradient is n of them."""
    lo: int = 0
    """Linear minimisations."""
    ub: int = 0
    """Upper bounds on the values of a matrix outside of some vectors: a few products, where a linear minimisation takes many."""
    po: int = 0
    """Projections."""
    values: int = 0
    """Values of F: not an oracle of the paper's, but what backtracking and line search pay with."""

    def add(self, price: dict[str, int]) -> None:
        for oracle, calls in price.items():
            setattr(self, oracle, getattr(self, oracle) + calls)


Allow = Callable[[dict[str, int]], None]
"""Asked before each call with its price; raises to refuse it."""


class Counted:
    """Stands for ``target``: the same attributes, but its oracles are counted and their answers checked to be finite.

    The wrappers are made once, as attributes of the instance, which a step then finds without a detour. They do not refer to
    the instance: that would be a reference cycle.
    """

    def __init__(self, target: Any, counts: Counts, allow: Allow):
        self._target = target
        for name, oracle in ORACLES.items():
            if name == "atom" and not has_own_atom(target):
                vars(self)[name] = None
            elif (ask := getattr(target, name, None)) is not None:
                vars(self)[name] = counted(ask, oracle, target, counts, allow)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def has_own_atom(domain: Any) -> bool:
    """Whether a set itself defines ``atom``.

    A user's class that passes unknown attributes on to another set, and has an ``lmo`` of its own, is asked by that ``lmo``.
    """
    given = unwrapped(domain)
    given = unwrapped(given._domain) if isinstance(given, Compared) else given
    ours = type(given).__module__.startswith("condgrad.")
    return ours or hasattr(type(given), "atom") or "atom" in getattr(given, "__dict__", ())


def counted(ask: Callable[..., Any], oracle: Oracle, target: Any, counts: Counts, allow: Allow) -> Callable[..., Any]:
    """``ask`` with its calls counted, once they are allowed, and its answers checked."""
    owner, finite = type(target).__name__, oracle.finite
    foreign = not type(unwrapped(target)).__module__.startswith("condgrad.")
    terms = ("ifo" if has(target, "n_terms") else "sfo") if "terms" in oracle.counters else None
    fixed = {counter: 1 for counter in oracle.counters if counter != "terms"}
    if "fo" in fixed and has(target, "n_terms"):
        fixed["ifo"] = target.n_terms

    def call(*args: Any) -> Any:
        price = fixed if terms is None else {terms: len(args[1])}
        allow(price)
        counts.add(price)
        answer = ask(*map(read_only, args)) if foreign else ask(*args)  # points are values
        for noun, of in finite:
            part = of(answer)
            if not isinstance(part, float):
                check_point(part, f"{noun} of {owner}")
            if not isfinite(part if isinstance(part, float) else norm2(part)):
                raise NonFinite(f"{noun} of {owner} {found(part)}.")
        return answer

    return call


def found(answer: Any) -> str:
    """What is wrong with an answer whose square is not finite, and where; of a structured matrix, in the numbers it keeps."""
    numbers = getattr(answer, "values", answer)
    if not isinstance(numbers, np.ndarray | float):
        return "holds NaN or Inf, or is too large to square"
    array = np.atleast_1d(numbers)
    if not np.isfinite(array).all():
        return f"holds NaN or Inf ({not_finite(array)})" if array.size > 1 else f"is {array.flat[0]}"
    at = np.unravel_index(int(np.argmax(np.abs(array))), array.shape)
    return f"is too large to square: its largest entry is {array[at]:.3g}, at index {tuple(int(i) for i in at)}"


def count(problem: Problem, counts: Counts, allow: Allow) -> Problem:
    """The problem with its oracles counted into ``counts``."""
    return Problem(Counted(problem.objective, counts, allow), Counted(problem.domain, counts, allow))
