"""Losses of classification with several classes, for the scores of all classes of a row together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from condgrad.storage.stored import stored


@stored
@final
@dataclass(frozen=True)
class CrossEntropy:
    r"""The multinomial logistic loss :math:`-\log p_y(z)`, where :math:`p(z)` is the softmax of the scores of a row.

    A row of the labels is 1 for the class of the row, and -1 for all other classes. The loss is a number for each row.
    """

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "one-hot"
    smoothness: ClassVar[float] = 0.5
    lower_smoothness: ClassVar[float] = 0.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -log_softmax(z)[y > 0]

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.exp(log_softmax(z)) - (y > 0)


@stored
@final
@dataclass(frozen=True)
class SoftmaxError:
    r"""The loss :math:`1 - p_y(z)`, where :math:`p(z)` is the softmax of the scores of a row: a smoothed 0-1 loss.

    It is the sigmoid loss for several classes: with two classes, it is the sigmoid loss of the difference of their scores. Labels
    are those of :class:`CrossEntropy`.

    Notes
    -----
    The Hessian is :math:`p_y (\operatorname{diag}(p) - p p^T - v v^T)` with :math:`v = e_y - p`. By Gershgorin's theorem, its
    largest eigenvalue is at most :math:`p_y \min(1/2, 2 p_y (1 - p_y))` for :math:`p_y \ge 1/2`. Along u, its quadratic form is
    :math:`p_y (1 - p_y) (s^2 + (2 p_y - 1) a^2)`, where :math:`s^2` is the variance of u over the other classes, and a is the
    difference of :math:`u_y` and their mean, so that :math:`a^2 \le 2 |u|^2`.
    """

    lower_bound: ClassVar[float] = 0.0
    labels: ClassVar[str] = "one-hot"
    smoothness: ClassVar[float] = 8 / 27
    lower_smoothness: ClassVar[float] = 1 / (3 * math.sqrt(3))

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.expm1(log_softmax(z)[y > 0])

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        chances, right = np.exp(log_softmax(z)), y > 0
        return chances[right][:, None] * (chances - right)


def log_softmax(z: np.ndarray) -> np.ndarray:
    """Logarithms of the softmax of each row."""
    shifted = z - z.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
