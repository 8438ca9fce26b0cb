"""The paper, reproduced: both panels of Figure 1, Tables 1 to 3 and, beyond it, recovery, in one report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from condgrad.checks import choice, whole
from condgrad.driver.progress import duration
from condgrad.experiments.figures import FIGURE_1A, FIGURE_1B, ORACLES, RECIPE, Figure
from condgrad.experiments.pool import allowed, make_all
from condgrad.experiments.recovery import Recovery
from condgrad.experiments.sections import Section, Told
from condgrad.experiments.tables import Tables
from condgrad.experiments.text import table
from condgrad.experiments.verdicts import Claim
from condgrad.report import Block, Table, Text, surroundings, write

CLAIM_1A = Claim(
    "NCGS",
    "the best Frank-Wolfe rule",
    2.0,
    "The paper: NCGS is much better than non-convex Frank-Wolfe. No number is given; here twice as fast is taken for 'much'.",
    ORACLES,
)
CLAIM_1B = Claim(
    "NCGS-VR",
    "the best of SVFW and SAGAFW",
    6.0,
    "The paper: NCGS-VR reaches 1e-3 in about 50 units of CPU time where SVFW takes more than 300: a factor of 6.",
)


@dataclass(frozen=True)
class Form:
    """How much of it is done: sizes, seeds and budgets."""

    name: str
    seeds: int
    """Of the figures."""
    fig1a: tuple[int, int]
    """Size and rank."""
    fig1b: tuple[int, int]
    budget_1a: dict[str, Any]
    budget_1b: dict[str, Any]
    settings: int
    """That are tried for each curve that is tuned."""
    table_seeds: int
    steps: dict[str, tuple[int, ...]]
    recovery: tuple[int, int]
    recovery_seeds: int
    recovery_stop: dict[str, Any]

    def sections(self, seed: int, seeds: int | None = None) -> dict[str, Section]:
        """The first seed, and how many where it is not as the form has it."""

        def first(count: int) -> range:
            return range(seed, seed + (seeds or count))

        data = first(self.seeds)
        return {
            "fig1a": Figure("fig1a", *self.fig1a, FIGURE_1A, CLAIM_1A, self.budget_1a, data, self.settings, "fo"),
            "fig1b": Figure("fig1b", *self.fig1b, FIGURE_1B, CLAIM_1B, self.budget_1b, data, self.settings, "ifo"),
            "tables": Tables(first(self.table_seeds), self.steps),
            "recovery": Recovery(*self.recovery, first(self.recovery_seeds), self.recovery_stop),
        }


FULL = Form(
    "full",
    seeds=5,
    fig1a=(200, 5),
    fig1b=(400, 8),
    budget_1a={"cpu": 5.0},
    budget_1b={"cpu": 8.0},
    settings=10,
    table_seeds=5,
    steps={
        "sliding": (64, 128, 256, 512, 1024),
        "frank-wolfe": (256, 512, 1024, 2048, 4096),
        "growing": (16, 32, 64, 128, 256),
        "sampling": (512, 1024, 2048, 4096, 8192),
        "sum": (128, 256, 512, 1024),
        "sum, Frank-Wolfe": (512, 1024, 2048, 4096),
    },
    recovery=(200, 5),
    recovery_seeds=3,
    recovery_stop={"mapping": 1e-3, "cpu": 10.0},
)
QUICK = Form(
    "quick",
    seeds=1,
    fig1a=(200, 5),
    fig1b=(400, 8),
    budget_1a={"cpu": 1.8},
    budget_1b={"cpu": 1.5},
    settings=2,
    table_seeds=3,
    steps={
        "sliding": (64, 128, 256),
        "frank-wolfe": (128, 256, 512),
        "growing": (16, 32, 64),
        "sampling": (128, 256, 512),
        "sum": (64, 128),
        "sum, Frank-Wolfe": (128, 512),
    },
    recovery=(100, 3),
    recovery_seeds=1,
    recovery_stop={"mapping": 1e-2, "cpu": 2.0},
)
PARTS = ("fig1a", "fig1b", "tables", "recovery")


def reproduce(
    out: Path,
    form: Form = FULL,
    parts: Sequence[str] = PARTS,
    seed: int = 0,
    seeds: int | None = None,
    jobs: int = 1,
    fresh: bool = False,
    command: str = "",
) -> tuple[Path, list[Told]]:
    """Make what is not there yet, and write the report into ``out``; its path, and what it says."""
    for part in parts:
        choice(part, PARTS, "part of the reproduction")
    whole(seed, "The seed", least=0)
    if seeds is not None:
        whole(seeds, "The number of seeds")
    allowed(jobs)
    begun = monotonic()
    sections = [section for name, section in form.sections(seed, seeds).items() if name in parts]
    folder = out / "runs"
    runs = [run for section in sections for run in section.runs()]
    made = make_all(runs, folder, jobs, "reproduce", fresh=fresh)
    more = [run for section in sections for run in section.more(made)]
    made = make_all([*runs, *more], folder, jobs, "reproduce, tuned settings on the other seeds", made, fresh)
    told = [section.tell(made) for section in sections]
    facts = {
        **{name: value for name, value in surroundings().items() if name not in ("machine", "date")},
        **made.circumstances(),
        "threads": "one in each run; CPU seconds are of the run's process, which shares caches and memory with those beside it",
        "command": command,
        "form": form.name,
        "seeds": ", ".join(f"{part.name} {part.facts['seeds'][0]} to {part.facts['seeds'][-1]}" for part in told),
        "runs": len(made.known),
        "report written": surroundings()["date"],
        "time": f"{duration(monotonic() - begun)}, without what was there already",
    }
    blocks: list[Block] = [Text("Problem (5)", RECIPE)] if {"fig1a", "fig1b"} & set(parts) else []
    blocks += [block for part in told for block in part.blocks]
    raw = {"facts": facts, **{part.name: part.facts for part in told}}
    return write(out, TITLE, blocks, facts, raw), told


TITLE = "Non-convex conditional gradient sliding: the paper, reproduced"


def in_text(blocks: Sequence[Block]) -> Iterator[str]:
    """The tables and the findings, for a terminal."""
    for block in blocks:
        if isinstance(block, Table):
            yield f"{block.caption}\n\n{table(block.header, block.rows)}\n"
        elif isinstance(block, Text) and block.heading.endswith("what is seen"):
            yield "\n".join([block.heading, *(f"- {sentence}" for sentence in block.paragraphs), ""])


def without_curves(facts: Any) -> Any:
    """Plain data without the points of the curves and of the fits, which fill screens."""
    if isinstance(facts, dict):
        return {key: without_curves(value) for key, value in facts.items() if key not in ("curves", "points")}
    return [without_curves(value) for value in facts] if isinstance(facts, list) else facts
