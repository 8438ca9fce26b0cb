"""Readers of observed entries in CSV, Parquet, NPZ and Matrix Market files, and of labelled features in LIBSVM files.

A fault is a line or an entry of a file that can't be used as it is. With ``strict``, the first fault raises `BadData`. Otherwise
faults are cleaned up, and counted and listed with their line numbers in a `Cleanup`.
"""

from condgrad.checks import BadData
from condgrad.data.diagnostics import Cleanup, Fault, Limits
from condgrad.data.libsvm import Labelled, load_labelled
from condgrad.data.load import load
from condgrad.data.observations import Observations

__all__ = ["BadData", "Cleanup", "Fault", "Labelled", "Limits", "Observations", "load", "load_labelled"]
