"""Completion of matrices with missing entries and outliers: the estimator and its parts."""

from condgrad.runtime.extras import needed_for

with needed_for("Estimators"):  # here too: this package stays imported where the import of condgrad.learn fails
    from condgrad.learn.completion.estimator import RobustCompletion

__all__ = ["RobustCompletion"]
