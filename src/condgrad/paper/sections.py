"""Interface of a part of the reproduction: the runs that it needs, and its section of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from condgrad.paper.pool import Outcomes
from condgrad.paper.runs import Run
from condgrad.report import Block, Plot, Text


@dataclass(frozen=True)
class SectionReport:
    """One section of the report, and the same as plain data.

    Parameters
    ----------
    name : str
        Name of the part.
    heading : Text
        Heading and text of the section.
    blocks : list of Block
        The other blocks of the section.
    facts : dict
        All numbers of the section, as plain data.
    headline : str, default ""
        Main result, as a sentence for the top of the page and the terminal.
    main_figure : tuple of Plot, default ()
        Main figure: at the top of the page for the first part that has one, else before ``blocks``.
    """

    name: str
    heading: Text
    blocks: list[Block]
    facts: dict[str, Any]
    headline: str = ""
    main_figure: tuple[Plot, ...] = ()


class Section(Protocol):
    """A part of the reproduction."""

    def runs(self) -> list[Run]:
        """Runs that are known in advance."""

    def follow_up_runs(self, finished: Outcomes) -> list[Run]:
        """Runs that depend on the outcomes of ``runs()``, such as those of tuned settings."""

    def report(self, finished: Outcomes) -> SectionReport:
        """Evaluate the finished runs."""
