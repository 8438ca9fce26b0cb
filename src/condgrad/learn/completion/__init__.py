"""The estimator `RobustCompletion`, which completes matrices with missing entries and outliers, and its parts."""

from condgrad.runtime.extras import needed_for

# also here: Python keeps this package in sys.modules if the import of condgrad.learn fails
with needed_for("Estimators"):
    from condgrad.learn.completion.estimator import RobustCompletion

__all__ = ["RobustCompletion"]
