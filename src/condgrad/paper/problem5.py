"""Citation of the paper, and its problem (5) as a MathML formula."""

from __future__ import annotations

from condgrad.report.blocks import Node

PAPER = "Chao Qu, Yan Li, Huan Xu: Non-convex Conditional Gradient Sliding (arXiv 1708.04783)"
ADDRESS = "https://arxiv.org/abs/1708.04783"

MINUS, NORM, THETA, SIGMA = "\u2212", "\u2016", "\u03b8", "\u03c3"


def inside(left: str, *nodes: Node, right: str) -> Node:
    """Put nodes between two delimiters.

    The delimiters are text: as operators they would stretch, and too far if the browser has no suitable font.
    """
    return ("mrow", ("mtext", left), *nodes, ("mtext", right))


def entry(name: str) -> Node:
    """Matrix entry with the indices i and j."""
    return ("msub", ("mi", name), ("mrow", ("mi", "i"), ("mi", "j")))


_NUCLEAR_NORM = ("msub", inside(NORM, ("mi", THETA), right=NORM), ("mo", "*"))
_INDEX = inside("(", ("mi", "i"), ("mo", ","), ("mi", "j"), right=")")
_RESIDUAL = inside("(", entry(THETA), ("mo", MINUS), entry("Y"), right=")")
_EXPONENT = inside("(", ("mo", MINUS), ("msup", _RESIDUAL, ("mn", "2")), ("mtext", "/"), ("mi", SIGMA), right=")")
FORMULA: tuple[Node, ...] = (
    ("munder", ("mo", "min"), ("mrow", _NUCLEAR_NORM, ("mo", "\u2264"), ("mi", "R"))),
    ("munder", ("mo", "\u2211"), ("mrow", _INDEX, ("mo", "\u2208"), ("mi", "\u03a9"))),
    inside("(", ("mn", "1"), ("mo", MINUS), ("mi", "exp"), _EXPONENT, right=")"),
)
"""MathML: over the nuclear-norm ball of radius R, the sum over the observed entries of the smoothed l0 loss."""
