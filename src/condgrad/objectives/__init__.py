"""Smooth functions to minimise, one family a file. One line in :data:`OBJECTIVES` buys a family every contract test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from condgrad.objectives import _examples
from condgrad.objectives.completion import Completion
from condgrad.objectives.linear_model import LinearModel
from condgrad.objectives.losses import (
    LOSSES,
    Cauchy,
    GemanMcClure,
    Huber,
    Logistic,
    Loss,
    LossEntry,
    Sigmoid,
    Squared,
    Welsch,
)
from condgrad.objectives.quadratic import Quadratic
from condgrad.objectives.sums import Sampled, Sum
from condgrad.objectives.synthetic import PaperData, paper_data
from condgrad.objectives.user import Function, FunctionExpectation, FunctionSum

__all__ = [
    "LOSSES",
    "OBJECTIVES",
    "Cauchy",
    "Completion",
    "Function",
    "FunctionExpectation",
    "FunctionSum",
    "GemanMcClure",
    "Huber",
    "LinearModel",
    "Logistic",
    "Loss",
    "LossEntry",
    "ObjectiveEntry",
    "PaperData",
    "Quadratic",
    "Sampled",
    "Sigmoid",
    "Squared",
    "Sum",
    "Welsch",
    "paper_data",
]


@dataclass(frozen=True)
class ObjectiveEntry:
    """A family of objectives as the documentation, the command line and the contract tests see it."""

    name: str
    factory: Callable[..., Any]
    formula: str
    kind: str
    """'objective', 'finite sum' or 'expectation'"""
    example: Callable[[], Any]


_ENTRIES = (
    ObjectiveEntry("quadratic", Quadratic, "x'Qx / 2 + b'x + c", "objective", _examples.quadratic),
    ObjectiveEntry("linear-model", LinearModel, "(1/n) sum_i phi(a_i'w, y_i)", "finite sum", _examples.linear_model),
    ObjectiveEntry(
        "completion", Completion, "sum over observed (i, j) of phi(X_ij, Y_ij)", "finite sum", _examples.completion
    ),
    ObjectiveEntry("function", Function, "value(x)", "objective", _examples.function),
    ObjectiveEntry("function-sum", FunctionSum, "(1/n) sum_i f_i(x)", "finite sum", _examples.function_sum),
    ObjectiveEntry(
        "function-expectation", FunctionExpectation, "E f(x, xi)", "expectation", _examples.function_expectation
    ),
)
OBJECTIVES: dict[str, ObjectiveEntry] = {entry.name: entry for entry in _ENTRIES}
