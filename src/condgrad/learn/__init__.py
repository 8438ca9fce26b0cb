"""Estimators with the interface of scikit-learn. Only this package imports scikit-learn; ``import condgrad`` does not."""

from condgrad.runtime.extras import needed_for

with needed_for("Estimators"):
    from condgrad.learn.completion import RobustCompletion
    from condgrad.learn.linear import RobustLinearRegressor, SigmoidClassifier
    from condgrad.learn.matching import GraphMatcher
    from condgrad.learn.pca import RobustPCA

__all__ = ["GraphMatcher", "RobustCompletion", "RobustLinearRegressor", "RobustPCA", "SigmoidClassifier"]
