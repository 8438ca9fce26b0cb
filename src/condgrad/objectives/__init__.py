"""Smooth functions to minimise, one family a file. One entry in :data:`OBJECTIVES` gives a family the contract checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from condgrad.objectives import _examples
from condgrad.objectives.completion import Completion
from condgrad.objectives.envelopes import MCP, SCAD, SmoothedAbsolute, SmoothedHinge
from condgrad.objectives.graph_matching import GraphMatching
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
from condgrad.objectives.penalized import Penalized
from condgrad.objectives.quadratic import Quadratic
from condgrad.objectives.sums import Sampled, Sum
from condgrad.objectives.synthetic import PaperData, paper_data
from condgrad.objectives.user import Function, FunctionExpectation, FunctionSum
from condgrad.objectives.values import FunctionValues, FunctionValuesExpectation, FunctionValuesSum
from condgrad.protocols import FiniteSum, Objective, fits

__all__ = [
    "LOSSES",
    "MCP",
    "OBJECTIVES",
    "SCAD",
    "Cauchy",
    "Completion",
    "Function",
    "FunctionExpectation",
    "FunctionSum",
    "FunctionValues",
    "FunctionValuesExpectation",
    "FunctionValuesSum",
    "GemanMcClure",
    "GraphMatching",
    "Huber",
    "LinearModel",
    "Logistic",
    "Loss",
    "LossEntry",
    "ObjectiveEntry",
    "PaperData",
    "Penalized",
    "Quadratic",
    "Sampled",
    "Sigmoid",
    "SmoothedAbsolute",
    "SmoothedHinge",
    "Squared",
    "Sum",
    "Welsch",
    "paper_data",
]


@dataclass(frozen=True)
class ObjectiveEntry:
    """A family of objectives as the documentation, the command line, specs and the contract checks see it.

    Parameters
    ----------
    name : str
        Its name in specs and listings.
    factory : callable
        Builds the objective; its parameters are the keys of ``[problem]`` in a spec.
    formula : str
        F(x).
    example : callable
        ``example()``, a small instance that is checked.
    arrays : tuple of str, default ()
        Parameters that a spec gives as the name of a file that holds an array.
    in_specs : bool, default True
        Whether a spec may name it: not where a parameter is a function.
    """

    name: str
    factory: Callable[..., Any]
    formula: str
    example: Callable[[], Any]
    arrays: tuple[str, ...] = ()
    in_specs: bool = True

    @property
    def kind(self) -> str:
        """'objective', 'finite sum' or 'expectation'"""
        example = self.example()
        if fits(example, FiniteSum):
            return "finite sum"
        return "objective" if fits(example, Objective) else "expectation"


_ENTRIES = (
    ObjectiveEntry("quadratic", Quadratic, "x'Qx / 2 + b'x + c", _examples.quadratic),
    ObjectiveEntry("linear-model", LinearModel, "(1/n) sum_i phi(a_i'w, y_i)", _examples.linear_model),
    ObjectiveEntry("completion", Completion, "sum over observed (i, j) of phi(X_ij, Y_ij)", _examples.completion),
    ObjectiveEntry(
        "graph-matching",
        GraphMatching,
        "t (|AP|^2 + |PB|^2) / 2 - <AP, PB> - <C, P>",
        _examples.graph_matching,
        arrays=("A", "B", "similarity"),
    ),
    ObjectiveEntry("penalized", Penalized, "F(x) + strength sum_j phi(x_j, 0)", _examples.penalized, in_specs=False),
    ObjectiveEntry("function", Function, "value(x)", _examples.function, in_specs=False),
    ObjectiveEntry("function-sum", FunctionSum, "(1/n) sum_i f_i(x)", _examples.function_sum, in_specs=False),
    ObjectiveEntry(
        "function-expectation", FunctionExpectation, "E f(x, xi)", _examples.function_expectation, in_specs=False
    ),
    ObjectiveEntry(
        "function-values", FunctionValues, "value(x), no gradient", _examples.function_values, in_specs=False
    ),
    ObjectiveEntry(
        "function-values-sum",
        FunctionValuesSum,
        "(1/n) sum_i f_i(x), no gradients",
        _examples.function_values_sum,
        in_specs=False,
    ),
    ObjectiveEntry(
        "function-values-expectation",
        FunctionValuesExpectation,
        "E f(x, xi), no gradients",
        _examples.function_values_expectation,
        in_specs=False,
    ),
)
OBJECTIVES: dict[str, ObjectiveEntry] = {entry.name: entry for entry in _ENTRIES}
