"""What a report is made of: plain values that say what to show and leave the drawing to the page and to the figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.checks import choice, positive

Column = Sequence[float] | np.ndarray


Node = tuple[Any, ...]
"""An element of MathML: its name, then its text or its elements, such as ("msup", ("mi", "x"), ("mn", "2"))."""
MATHML = {"mrow", "mi", "mn", "mo", "mtext", "msub", "msup", "msubsup", "munder", "mover", "mfrac", "msqrt"}


@dataclass(frozen=True)
class Opening:
    """The top of a report: the finding, the work that the report is about, and its problem as a formula.

    Parameters
    ----------
    finding : str
        One sentence; may be empty.
    work : str
        Authors and title of the work.
    address : str
        Where it is found, beginning with https://.
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
    """A heading with paragraphs under it."""

    heading: str
    paragraphs: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Rows under a header; None is shown as a dash."""

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
    """One method: a run for each seed, its keys the units of cost and ``y``. A note says that it ended early, and is drawn.

    A headline has a colour that it shares with no other curve, as long as there are colours.
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
    """Curves against each of the units (key -> axis label): the best so far, median and quartiles over their runs.

    With ``as_given`` a curve is what its one run says, from point to point, as for what is no progress. ``scales`` are those of
    x and y, "log" or "linear".
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
                f"The plot '{self.name}' shows runs as given, but a curve has not one run: give each its own."
            )
        if self.target is not None:
            positive(self.target, f"The target of the plot '{self.name}'")
        if not self.units:
            raise ValueError(f"The plot '{self.name}' has no units to draw against: give at least one, such as cpu.")


@dataclass(frozen=True)
class Picture:
    """Matrices side by side on one colour scale, that of the matrix ``scaled_by`` or of all; NaN is an entry not known."""

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
        """The colours reach from minus this to this: the 99.5th percentile, so that no outlier bleaches all the rest."""
        images = [image for label, image in self.images.items() if self.scaled_by in (None, label)]
        entries = np.concatenate([np.abs(image[np.isfinite(image)]) for image in map(np.asarray, images)])
        return float(np.quantile(entries, 0.995)) or 1.0


Block = Opening | Text | Table | Plot | Picture


def _mathml(node: Any) -> None:
    """Refuse what is not an element of MathML that a formula may have."""
    if isinstance(node, str):
        return
    if not isinstance(node, tuple) or len(node) < 2 or node[0] not in MATHML:
        raise ValueError(
            f"A formula has {node!r}, but each element must be a tuple that begins with one of {sorted(MATHML)}."
        )
    for child in node[1:]:
        _mathml(child)


def _file_name(name: str, what: str) -> None:
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(
            f"The name of a {what} is {name!r}, but it names files: use letters, digits, '-', '_' and '.'."
        )
