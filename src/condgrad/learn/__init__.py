"""Estimators with the manners of scikit-learn, which condgrad itself does not import."""

from condgrad.learn.completion import RobustCompletion

__all__ = ["RobustCompletion"]
