"""Gradient estimators of the stochastic methods. Each estimates the gradient of F from samples or terms of F."""

from condgrad.estimators.by_name import ESTIMATORS, check_estimator, estimator_for
from condgrad.estimators.clipped import Clipped
from condgrad.estimators.minibatch import Minibatch, growing
from condgrad.estimators.momentum import Momentum
from condgrad.estimators.saga import SAGA
from condgrad.estimators.spider import SPIDER
from condgrad.estimators.svrg import SVRG
from condgrad.estimators.transport import Transport
from condgrad.estimators.zero_sarah import ZeroSARAH

__all__ = [
    "ESTIMATORS",
    "SAGA",
    "SPIDER",
    "SVRG",
    "Clipped",
    "Minibatch",
    "Momentum",
    "Transport",
    "ZeroSARAH",
    "check_estimator",
    "estimator_for",
    "growing",
]
