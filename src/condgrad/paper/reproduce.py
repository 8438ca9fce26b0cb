"""The paper, reproduced: both panels of Figure 1, Tables 1 to 3 and, beyond it, recovery, in one report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from condgrad.checks import choice, whole
from condgrad.driver.progress import duration
from condgrad.paper.figure1_methods import (
    CLAIM_1A,
    CLAIM_1B,
    FIGURE_1A,
    FIGURE_1B,
    GENERATORS,
    PRESET,
    RECIPE,
    TUNED_ON,
    Line,
)
from condgrad.paper.figures import Figure
from condgrad.paper.pool import allowed, make_all
from condgrad.paper.problem5 import ADDRESS, FORMULA, PAPER
from condgrad.paper.recovery import Recovery
from condgrad.paper.sections import Section, Told
from condgrad.paper.tables import Tables
from condgrad.paper.verdicts import ONE_SEED, RULE, Claim
from condgrad.report import Block, Opening, Table, Text, environment, write
from condgrad.report.plain import shown
from condgrad.report.text_table import table


@dataclass(frozen=True)
class Form:
    """How much of it is done: sizes, seeds and budgets."""

    name: str
    seeds: int
    """Of the figures."""
    tuning: bool
    """Whether settings are tuned, on a seed of their own; if not, presets are used and methods that are not drawn left out."""
    generators: tuple[str, ...]
    """Of the figures' data."""
    fig1a: tuple[int, int]
    """Size and rank."""
    fig1b: tuple[int, int]
    budget_1a: dict[str, Any]
    budget_1b: dict[str, Any]
    table_seeds: int
    steps: dict[str, tuple[int, ...]]
    recovery: tuple[int, int]
    recovery_seeds: int
    recovery_stop: dict[str, Any]

    def sections(self, seed: int, seeds: int | None = None) -> dict[str, Section]:
        """The first seed, and how many where it is not as the form has it."""

        def first(count: int) -> range:
            return range(seed, seed + (seeds or count))

        def figure(name: str, shape: tuple[int, int], every: tuple[Line, ...], claim: Claim, **more: Any) -> Figure:
            shown = every if self.tuning else tuple(line for line in every if line.drawn)
            size, rank = shape
            return Figure(name, size, rank, shown, claim, **more, **shared)

        tuning_seed = seed + MAX_SEEDS if self.tuning else None
        shared: dict[str, Any] = {"seeds": first(self.seeds), "tuning_seed": tuning_seed, "generators": self.generators}
        return {
            "fig1a": figure("fig1a", self.fig1a, FIGURE_1A, CLAIM_1A, stop=self.budget_1a, gradients="fo"),
            "fig1b": figure("fig1b", self.fig1b, FIGURE_1B, CLAIM_1B, stop=self.budget_1b, gradients="ifo"),
            "tables": Tables(first(self.table_seeds), self.steps),
            "recovery": Recovery(*self.recovery, first(self.recovery_seeds), self.recovery_stop),
        }


MAX_SEEDS = 1000
"""Settings are tuned on the first seed plus this, so that the tuning seed is never one of those shown."""

FULL = Form(
    "full",
    seeds=5,
    tuning=True,
    generators=GENERATORS,
    fig1a=(200, 5),
    fig1b=(400, 8),
    budget_1a={"cpu": 8.0},
    budget_1b={"cpu": 10.0},
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
    tuning=False,
    generators=GENERATORS[:1],
    fig1a=(200, 5),
    fig1b=(400, 8),
    budget_1a={"cpu": 5.0},
    budget_1b={"cpu": 3.0},
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
        if seeds > MAX_SEEDS:
            raise ValueError(f"The number of seeds is {seeds}, but at most {MAX_SEEDS} were expected: give fewer.")
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
        **{name: value for name, value in environment().items() if name not in ("machine", "date")},
        **made.circumstances(),
        "threads": "one in each run; CPU seconds are of the run's process, which shares caches and memory with those beside it",
        "command": command,
        "form": form.name,
        "seeds": ", ".join(f"{part.name} {part.facts['seeds'][0]} to {part.facts['seeds'][-1]}" for part in told),
        "runs": len(made.known),
        "report written": environment()["date"],
        "time": f"{duration(monotonic() - begun)}, without what was there already",
    }
    raw = {"facts": facts, **{part.name: part.facts for part in told}}
    return write(out, TITLE, page_of(told), facts, raw), told


TITLE = "Non-convex conditional gradient sliding, reproduced"


def page_of(told: Sequence[Told]) -> list[Block]:
    """First the paper, its problem, the finding, one figure and the verdicts; then the parts, then how it was done."""
    figures = [part for part in told if part.first]
    finding = next((part.telling for part in told if part.telling), "")
    blocks: list[Block] = [Opening(finding, PAPER, ADDRESS, "Problem (5)", FORMULA)]
    if figures:
        blocks += [*figures[0].first, verdict_table([part.facts for part in figures])]
    for part in told:
        if figures and part is figures[0]:  # its sentence and its figure are at the top
            blocks += [Text(part.heading.heading, []), *part.blocks]
        else:
            blocks += [part.heading, *part.first, *part.blocks]
    if figures:
        seed = figures[0].facts["tuning seed"]
        blocks.append(Text("How it was done", [*RECIPE, PRESET if seed is None else TUNED_ON.format(seed=seed)]))
    return blocks


def verdict_table(figures: Sequence[dict[str, Any]]) -> Table:
    """What the paper claims, how it can be read, and what is seen."""
    generators = [g for g in GENERATORS if g in figures[0]]
    columns = [
        head for g in generators for head in ((g, "by how much") if len(generators) > 1 else ("seen", "by how much"))
    ]
    rows = []
    for facts in figures:
        for i, verdict in enumerate(facts[generators[0]]["verdicts"]):
            found = [facts[g]["verdicts"][i] for g in generators]
            cells = [cell for v in found for cell in (v["seen"], v["by"])]
            rows.append([facts["claim"] if i == 0 else "", verdict["reading"], *cells])
    one = all(len(facts["seeds"]) == 1 for facts in figures)
    data = "" if len(generators) > 1 else f" ({generators[0]} data)"
    caption = f"What the paper claims of Figure 1, and what is seen{data}"
    return Table(caption, ["claim of the paper", "reading", *columns], rows, ONE_SEED if one else RULE)


def in_text(told: Sequence[Told]) -> Iterator[str]:
    """For a terminal: the tables, the verdicts, and last the most telling numbers."""
    figures = [part.facts for part in told if part.first]
    tables = [block for part in told for block in part.blocks if isinstance(block, Table)]
    for block in [*tables, *([verdict_table(figures)] if figures else [])]:
        yield f"{block.caption}\n\n{table(block.header, block.rows, shown)}\n"
    telling = [part.telling for part in told if part.telling]
    if telling:
        yield "\n".join(telling) + "\n"


def without_curves(facts: Any) -> Any:
    """Plain data without the points of the curves and of the fits, which fill screens."""
    if isinstance(facts, dict):
        return {key: without_curves(value) for key, value in facts.items() if key not in ("curves", "points")}
    return [without_curves(value) for value in facts] if isinstance(facts, list) else facts
