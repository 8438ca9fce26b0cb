"""Estimators in the manner of scikit-learn; the only folder that imports it, and imported by name only."""

from condgrad.extras import needed_for

with needed_for("Estimators"):
    from condgrad.learn.completion import RobustCompletion
    from condgrad.learn.linear import RobustLinearRegressor, SigmoidClassifier
    from condgrad.learn.split import RobustPCA

__all__ = ["RobustCompletion", "RobustLinearRegressor", "RobustPCA", "SigmoidClassifier"]
