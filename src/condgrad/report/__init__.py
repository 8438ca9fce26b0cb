"""Reports: one HTML page that opens offline, with interactive plots, tables and the raw data, and figure files for print."""

from condgrad.driver.environment import environment
from condgrad.report.bands import quartiles
from condgrad.report.blocks import Block, Curve, Opening, Picture, Plot, Table, Text
from condgrad.report.folder import NoFigures, write

__all__ = [
    "Block",
    "Curve",
    "NoFigures",
    "Opening",
    "Picture",
    "Plot",
    "Table",
    "Text",
    "environment",
    "quartiles",
    "write",
]
