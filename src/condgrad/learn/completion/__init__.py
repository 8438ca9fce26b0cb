"""The estimator `RobustCompletion`, which completes matrices with missing entries and outliers, and its parts."""

from condgrad.runtime.extras import needed_for

# repeated here, because Python may keep this package in sys.modules although the import of condgrad.learn has failed
with needed_for("Estimators"):
    from condgrad.learn.completion.estimator import RobustCompletion

__all__ = ["RobustCompletion"]
