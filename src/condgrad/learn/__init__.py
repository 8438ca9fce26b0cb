"""Estimators in the manner of scikit-learn; the only folder that imports it, and imported by name only."""

from condgrad.learn.linear import RobustLinearRegressor, SigmoidClassifier
from condgrad.learn.split import RobustPCA

__all__ = ["RobustLinearRegressor", "RobustPCA", "SigmoidClassifier"]
