"""Counts of oracle calls. The objective and the set are wrapped in objects that count, so that no solver has to count."""

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
    """Number of oracle calls so far, including the calls of inner solvers."""

    fo: int = 0
    """Full gradients."""
    sfo: int = 0
    """Sample gradients of an expectation."""
    ifo: int = 0
    """Term gradients of a finite sum. A full gradient counts as n term gradients."""
    lo: int = 0
    """Linear minimisations."""
    ub: int = 0
    """Upper bounds on singular values outside of a subspace. A bound takes a few matrix products, far fewer than
    a linear minimisation."""
    po: int = 0
    """Projections."""
    values: int = 0
    """Values of F, used by backtracking and line search. Qu, Li and Xu (arXiv 1708.04783) do not count them."""

    def add(self, price: dict[str, int]) -> None:
        """Add the counts of one oracle call."""
        counts = vars(self)
        for oracle, calls in price.items():
            counts[oracle] += calls


Allow = Callable[[dict[str, int]], None]
"""Called before each oracle call with the counts that the call adds; raises an exception to refuse the call."""


class Counted:
    """Wrapper of an objective or a set (``target``). It counts the oracle calls, and checks that the answers are finite.

    The counting functions are made once and are attributes of the instance, so that no oracle call goes through ``__getattr__``.
    They do not refer to the instance, because this would form a reference cycle.
    """

    def __init__(self, target: Any, counts: Counts, allow: Allow):
        self._target = target
        for name, oracle in ORACLES.items():
            if name in ("atom", "atoms") and not has_own(target, name):
                vars(self)[name] = None
            elif (ask := getattr(target, name, None)) is not None:
                vars(self)[name] = counted(ask, oracle, target, counts, allow)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def has_own(domain: Any, name: str) -> bool:
    """Whether a set itself defines the member ``name``, which is ``atom`` or ``atoms``.

    A user's class may define ``lmo`` and forward all other attributes to another set. Then ``lmo`` is used, not the ``atom`` of
    the other set.
    """
    given = unwrapped(domain)
    given = unwrapped(given._domain) if isinstance(given, Compared) else given
    ours = type(given).__module__.startswith("condgrad.")
    return ours or hasattr(type(given), name) or name in getattr(given, "__dict__", ())


def counted(ask: Callable[..., Any], oracle: Oracle, target: Any, counts: Counts, allow: Allow) -> Callable[..., Any]:
    """Make a function that calls the oracle ``ask`` of ``target`` if ``allow`` permits it, counts the call and checks the
    answer."""
    owner, finite = type(target).__name__, oracle.finite
    foreign = not type(unwrapped(target)).__module__.startswith("condgrad.")
    terms = ("ifo" if has(target, "n_terms") else "sfo") if "terms" in oracle.counters else None
    users_set = (foreign or isinstance(target, Compared)) and not {"lo", "po"}.isdisjoint(oracle.counters)
    shape = getattr(target, "shape", None) if users_set else None
    each = 1
    if terms and has(target, "values_per_sample"):  # the sample gradients of this objective are differences of values
        terms, each = "values", target.values_per_sample
    fixed = {counter: 1 for counter in oracle.counters if counter != "terms"}
    if has(target, "n_terms"):
        # a call of F or of its gradient counts as the values of terms that it computes
        if has(target, "values_per_sample"):
            fixed = {"values": target.n_terms * (target.values_per_sample if "fo" in fixed else 1)}
        elif "fo" in fixed:
            fixed["ifo"] = target.n_terms

    def call(*args: Any) -> Any:
        price = fixed if terms is None else {terms: each * len(args[1])}
        allow(price)
        counts.add(price)
        answer = ask(*map(read_only, args)) if foreign else ask(*args)  # a user's oracle must not change points
        for noun, of in finite:
            part = of(answer)
            if isinstance(part, float):
                size = part
            else:
                if shape is not None or not (isinstance(part, np.ndarray) and part.dtype.kind == "f"):
                    check_point(part, f"{noun} of {owner}", shape)
                size = norm2(part)
            if not isfinite(size):
                raise NonFinite(f"{noun} of {owner} {describe_non_finite(part)}.")
        return answer

    return call


def describe_non_finite(answer: Any) -> str:
    """Describe why the squared norm of an answer is not finite.

    The text names an entry by its index. The index refers to ``values`` if the answer is a structured matrix.
    """
    numbers = getattr(answer, "values", answer)
    if not isinstance(numbers, np.ndarray | float):
        return "holds NaN or Inf, or is too large to square"
    array = np.atleast_1d(numbers)
    if not np.isfinite(array).all():
        return f"holds NaN or Inf ({not_finite(array)})" if array.size > 1 else f"is {array.flat[0]}"
    at = np.unravel_index(int(np.argmax(np.abs(array))), array.shape)
    return f"is too large to square: its largest entry is {array[at]:.3g}, at index {tuple(int(i) for i in at)}"


def count(problem: Problem, counts: Counts, allow: Allow) -> Problem:
    """Wrap the problem, so that its oracle calls are counted in ``counts``."""
    return Problem(Counted(problem.objective, counts, allow), Counted(problem.domain, counts, allow))
