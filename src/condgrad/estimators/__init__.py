"""Gradient estimators of the stochastic methods."""

from condgrad.estimators.minibatch import Minibatch, growing
from condgrad.estimators.saga import SAGA
from condgrad.estimators.svrg import SVRG

__all__ = ["SAGA", "SVRG", "Minibatch", "growing"]
