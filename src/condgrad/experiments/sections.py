"""What a part of the reproduction is: the runs that it needs, and what it has to tell of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from condgrad.experiments.pool import Outcomes
from condgrad.experiments.runs import Run
from condgrad.report import Block


@dataclass(frozen=True)
class Told:
    """What goes into the report, and the same as plain data."""

    name: str
    blocks: list[Block]
    facts: dict[str, Any]


class Section(Protocol):
    def runs(self) -> list[Run]: ...

    def more(self, made: Outcomes) -> list[Run]:
        """The runs that follow from those; often none."""

    def tell(self, made: Outcomes) -> Told: ...
