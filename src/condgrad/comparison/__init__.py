"""Comparisons: several methods on one problem, run and counted by the same driver, with tables, profiles and a report."""

from condgrad.comparison.costs import Comparison
from condgrad.comparison.performed import ComparedRun
from condgrad.comparison.run_all import compare

__all__ = ["ComparedRun", "Comparison", "compare"]
