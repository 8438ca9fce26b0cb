"""Blocks of a report: plain values that say what to show. The page and the figures draw them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.checks import choice, positive

Column = Sequence[float] | np.ndarray


Node = tuple[Any, ...]
"""MathML element: its name, followed by its text or its child elements, such as ("msup", ("mi", "x"), ("mn", "2"))."""
MATHML = {"mrow", "mi", "mn", "mo", "mtext", "msub", "msup", "msubsup", "munder", "mover", "mfrac", "msqrt"}
"""Names of elements that a formula may have."""


@dataclass(frozen=True)
class Opening:
    """Top of a report: the main result, the publication that the report is about, and its problem as a formula.

    Parameters
    ----------
    finding : str
        Main result as one sentence; may be empty.
    work : str
        Authors and title of the publication.
    address : str
        URL of the publication, beginning with https://.
    problem : str
        Name of the problem, such as "Problem (5)".
    formula : sequence of tuple
        The problem as MathML elements, see ``Node``. Text in them is escaped, and only elements in ``MATHML`` are accepted.
    """

    finding: str
    work: str
    address: str
    problem: str
    formula: Sequence[Node]

    def __post_init__(self) -> None:
        if not self.address.startswith("https://"):
            raise ValueError(f"The address of '{self.work}' is {self.address!r}, but must begin with https://.")
        for node in self.formula:
            _mathml(node)


@dataclass(frozen=True)
class Text:
    """Heading with paragraphs.

    Parameters
    ----------
    heading : str
    paragraphs : sequence of str
    """

    heading: str
    paragraphs: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Table with a header.

    Parameters
    ----------
    caption : str
    header : sequence of str
        Names of the columns.
    rows : sequence of sequence
        Cells, as many in each row as there are columns. None is shown as a dash.
    note : str, default ""
        Text below the table.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"A row of the table '{self.caption}' has {len(row)} cells, but its header has {len(self.header)}: "
                    "give one cell for each column."
                )


@dataclass(frozen=True)
class Curve:
    """Curve of one method in a plot.

    Parameters
    ----------
    label : str
        Name in the legend.
    runs : sequence of mapping of str to array_like of shape (n,)
        One run per seed. The keys are the units of cost, such as "cpu", and "y".
    group : str, default ""
        Curves of a group share their dashes.
    note : str, default ""
        Why the curve ended early; shown in the legend, and the end of the curve is marked with a cross.
    headline : bool, default False
        Give the curve a colour that no other curve has, as long as there are enough colours.
    """

    label: str
    runs: Sequence[Mapping[str, Column]]
    group: str = ""
    note: str = ""
    headline: bool = False

    def __post_init__(self) -> None:
        for run in self.runs:
            if "y" not in run:
                raise ValueError(f"A run of the curve '{self.label}' has no 'y', only {', '.join(run)}: add it.")
            if len({len(column) for column in run.values()}) != 1:
                lengths = ", ".join(f"{name} {len(column)}" for name, column in run.items())
                raise ValueError(
                    f"The columns of a run of '{self.label}' differ in length ({lengths}): make them equal."
                )


@dataclass(frozen=True)
class Plot:
    """Plot of curves: median and quartiles, over the runs of each curve, of the smallest y so far.

    Parameters
    ----------
    name : str
        Name of the figure files, without extension.
    title : str
    y : str
        Label of the y-axis.
    units : mapping of str to str
        Key of the runs and label of the x-axis, for each unit of cost.
    curves : sequence of Curve
    target : float, optional
        Value of y that is marked by a horizontal line.
    note : str, default ""
        Text below the plot.
    as_given : bool, default False
        Draw the points of each curve's only run, in place of the smallest y so far.
    scales : tuple of {"log", "linear"}, default ("log", "log")
        Scales of x and y.
    """

    name: str
    title: str
    y: str
    units: Mapping[str, str]
    curves: Sequence[Curve]
    target: float | None = None
    note: str = ""
    as_given: bool = False
    scales: tuple[str, str] = ("log", "log")

    def __post_init__(self) -> None:
        _file_name(self.name, "plot")
        for scale in self.scales:
            choice(scale, ("log", "linear"), "scale")
        if self.as_given and any(len(curve.runs) != 1 for curve in self.curves):
            raise ValueError(
                f"The plot '{self.name}' shows runs as given, but a curve does not have exactly one run: give one run per curve."
            )
        if self.target is not None:
            positive(self.target, f"The target of the plot '{self.name}'")
        if not self.units:
            raise ValueError(f"The plot '{self.name}' has no units to draw against: give at least one, such as cpu.")


@dataclass(frozen=True)
class Picture:
    """Matrices side by side on one colour scale.

    Parameters
    ----------
    name : str
        Name of the figure files, without extension.
    title : str
    images : mapping of str to ndarray of shape (m, n)
        Label and matrix; NaN is an unknown entry.
    note : str, default ""
        Text below the picture.
    scaled_by : str, optional
        Label of the matrix that determines the colour scale. By default all matrices do.
    """

    name: str
    title: str
    images: Mapping[str, np.ndarray]
    note: str = ""
    scaled_by: str | None = None

    def __post_init__(self) -> None:
        _file_name(self.name, "picture")
        if not self.images:
            raise ValueError(f"The picture '{self.name}' has no matrix in it: give at least one.")
        if self.scaled_by is not None:
            choice(self.scaled_by, self.images, "matrix to scale the colours by")
        for label, image in self.images.items():
            if np.ndim(image) != 2 or not np.isfinite(image).any():
                raise ValueError(
                    f"'{label}' in the picture '{self.name}' has shape {np.shape(image)}, but a matrix with some finite "
                    "entries was expected."
                )

    @property
    def scale(self) -> float:
        """Limit of the colour scale, which runs from -scale to scale.

        The 99.5th percentile of the absolute values, so that outliers do not make all other entries pale.
        """
        images = [image for label, image in self.images.items() if self.scaled_by in (None, label)]
        entries = np.concatenate([np.abs(image[np.isfinite(image)]) for image in map(np.asarray, images)])
        return float(np.quantile(entries, 0.995)) or 1.0


Block = Opening | Text | Table | Plot | Picture


def _mathml(node: Any) -> None:
    """Raise ValueError if a node is neither text nor an element in ``MATHML``."""
    if isinstance(node, str):
        return
    if not isinstance(node, tuple) or len(node) < 2 or node[0] not in MATHML:
        raise ValueError(
            f"A formula has {node!r}, but each element must be a tuple that begins with one of {sorted(MATHML)}."
        )
    for child in node[1:]:
        _mathml(child)


def _file_name(name: str, what: str) -> None:
    """Raise ValueError if a name cannot be used as a file name."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(
            f"The name of a {what} is {name!r}, but it names files: use letters, digits, '-', '_' and '.'."
        )
