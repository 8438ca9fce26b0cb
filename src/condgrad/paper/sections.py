"""What a part of the reproduction is: the runs that it needs, and what it reports of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from condgrad.paper.pool import Outcomes
from condgrad.paper.runs import Run
from condgrad.report import Block, Plot, Text


@dataclass(frozen=True)
class Told:
    """What goes into the report, and the same as plain data.

    Parameters
    ----------
    name : str
        Of the part.
    heading : Text
        Heading and text of its section of the page.
    blocks : list of Block
        The rest of the section.
    facts : dict
        Its numbers.
    telling : str, optional
        Its most telling number, as a sentence for the terminal.
    first : tuple of Plot, optional
        Its main figure: at the top of the page if this is the first part that has one, else before ``blocks``.
    """

    name: str
    heading: Text
    blocks: list[Block]
    facts: dict[str, Any]
    telling: str = ""
    first: tuple[Plot, ...] = ()


class Section(Protocol):
    def runs(self) -> list[Run]: ...

    def more(self, made: Outcomes) -> list[Run]:
        """The runs that follow from those; often none."""

    def tell(self, made: Outcomes) -> Told: ...
