"""Completion of matrices with missing entries and outliers: the estimator and its parts."""
