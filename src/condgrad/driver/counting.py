"""Oracles are counted from outside, by wrapping the problem: a solver knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.checks import NonFinite, not_finite
from condgrad.points import norm2
from condgrad.protocols import Problem


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
    """Stands for ``target``: the same attributes, but its oracles are counted and their answers checked to be finite."""

    def __init__(self, target: Any, counts: Counts, allow: Allow):
        self._target, self._counts, self._allow = target, counts, allow

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        return self._oracle(name, attribute) if name in PRICES and attribute is not None else attribute

    def _oracle(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            price = PRICES[name](self._target, args)
            self._allow(price)
            self._counts.add(price)
            answer = ask(*args)
            for part, one in (
                zip(("value", "grad"), answer, strict=True) if name == "value_and_grad" else ((name, answer),)
            ):
                seen = SEEN.get(part, lambda point: point)(one)
                if not np.isfinite(seen if part == "value" else norm2(seen)):
                    raise NonFinite(f"{SAID[part]} of {type(self._target).__name__} {found(seen)}.")
            return answer

        return counted


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


def _terms(objective: Any, args: tuple[Any, ...]) -> dict[str, int]:
    return {"ifo" if hasattr(objective, "n_terms") else "sfo": len(args[1])}


def _full(objective: Any) -> dict[str, int]:
    return {"fo": 1, "ifo": getattr(objective, "n_terms", 0)}


PRICES: dict[str, Callable[[Any, tuple[Any, ...]], dict[str, int]]] = {
    "value": lambda objective, args: {"values": 1},
    "grad": lambda objective, args: _full(objective),
    "value_and_grad": lambda objective, args: {"values": 1, **_full(objective)},
    "grad_terms": _terms,
    "term_rows": _terms,
    "lmo": lambda domain, args: {"lo": 1},
    "lmo_near": lambda domain, args: {"lo": 1},
    "beyond": lambda domain, args: {"lo": 1},
    "project": lambda domain, args: {"po": 1},
}

SEEN: dict[str, Callable[[Any], Any]] = {
    "value": float,
    "lmo_near": lambda answer: answer[0],
    "beyond": lambda answer: answer.vectors,
}
"""What must be finite of an answer that is not a point."""

SAID = {
    "value": "The value",
    "grad": "The gradient",
    "grad_terms": "The batch gradient",
    "term_rows": "A term's gradient",
    "lmo": "The linear oracle's answer",
    "lmo_near": "The linear oracle's answer",
    "beyond": "The linear oracle's bound",
    "project": "The projection",
}


def count(problem: Problem, counts: Counts, allow: Allow) -> Problem:
    """The problem with its oracles counted into ``counts``."""
    return Problem(Counted(problem.objective, counts, allow), Counted(problem.domain, counts, allow))
