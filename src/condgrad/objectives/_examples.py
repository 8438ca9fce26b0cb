"""One small, seeded instance of each objective, for the contract tests."""

from __future__ import annotations

import numpy as np

from condgrad.objectives.completion import Completion
from condgrad.objectives.envelopes import MCP
from condgrad.objectives.graph_matching import GraphMatching
from condgrad.objectives.linear_model import LinearModel
from condgrad.objectives.losses import Sigmoid, Welsch
from condgrad.objectives.penalized import Penalized
from condgrad.objectives.quadratic import Quadratic
from condgrad.objectives.synthetic import paper_data
from condgrad.objectives.user import Function, FunctionExpectation, FunctionSum
from condgrad.objectives.values import FunctionValues, FunctionValuesExpectation, FunctionValuesSum


def quadratic() -> Quadratic:
    rng = np.random.default_rng(1)
    Q = rng.standard_normal((6, 6))
    return Quadratic((Q + Q.T) / 2 + np.eye(6), rng.standard_normal(6), 3.0)


def linear_model() -> LinearModel:
    rng = np.random.default_rng(2)
    return LinearModel(rng.standard_normal((12, 5)), rng.choice([-1.0, 1.0], 12), Sigmoid())


def completion() -> Completion:
    data = paper_data(5, 4, 2, seed=3, generator="gaussian", observe=0.6, corrupt=0.2)
    return Completion(data.rows, data.cols, data.values, (5, 4), Welsch(2.0))


def graph_matching() -> GraphMatching:
    """Directed, weighted graphs, half way between the convex and the indefinite relaxation."""
    A, B, similarity = np.random.default_rng(4).random((3, 4, 4))
    return GraphMatching(A, B, similarity, convexity=0.5)


def function() -> Function:
    """sum cos(x_i)"""
    return Function(
        lambda x: np.cos(x).sum(), lambda x: -np.sin(x), (3,), smoothness=1.0, lower_smoothness=1.0, lower_bound=-3.0
    )


def function_sum() -> FunctionSum:
    """(1/4) sum_i s_i sum_j cos(x_ij + i): terms of different sizes, on matrices."""
    sizes = np.array([1.0, 2.0, 0.5, 3.0])

    def value(x: np.ndarray) -> float:
        return float(np.mean([s * np.cos(x + i).sum() for i, s in enumerate(sizes)]))

    def term_grads(x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return np.stack([-sizes[i] * np.sin(x + i) for i in batch])

    mean_square = float(np.sqrt(np.mean(sizes**2)))
    return FunctionSum(
        value, term_grads, 4, (3, 2), sizes.mean(), sizes.mean(), -6 * sizes.mean(), sizes.max(), mean_square
    )


def penalized() -> Penalized:
    """A quadratic with a penalty on each of its three variables"""
    return Penalized(Quadratic(np.diag([1.0, 2.0, -1.0]), np.ones(3)), MCP(0.5, 3.0, 0.4), 2.0)


def function_values() -> FunctionValues:
    """A quadratic, of which only values are known"""
    return FunctionValues(lambda x: float(x @ x) / 2 - x[0], (2,), 1.0, 0.0)


def function_values_sum() -> FunctionValuesSum:
    """(1/4) sum_i |x - c_i|^2 s_i / 2, of which only the values of the terms are known"""
    sizes, centres = np.array([1.0, 2.0, 0.5, 3.0]), np.arange(8.0).reshape(4, 2) / 4

    def term_values(x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return sizes[batch] * np.sum((x - centres[batch]) ** 2, axis=1) / 2

    constants = 1.001 * np.array(
        [sizes.mean(), sizes.max(), np.sqrt(np.mean(sizes**2))]
    )  # differences have rounding errors
    return FunctionValuesSum(term_values, 4, (2,), constants[0], 0.0, 0.0, constants[1], constants[2])


def function_values_expectation() -> FunctionValuesExpectation:
    """E |x - xi|^2 / 2 for normal xi around (1, 2), of which only the values of samples are known"""
    return FunctionValuesExpectation(
        lambda size, rng: rng.normal((1.0, 2.0), size=(size, 2)),
        lambda x, xi: float((x - xi) @ (x - xi)) / 2,
        (2,),
        1.0,
        0.0,
    )


def function_expectation() -> FunctionExpectation:
    """E |x - xi|^2 / 2 for normal xi around (1, 2)"""
    return FunctionExpectation(
        lambda size, rng: rng.normal((1.0, 2.0), size=(size, 2)), lambda x, batch: x - batch, (2,), 1.0, 0.0
    )
