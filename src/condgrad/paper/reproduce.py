"""Reproduction of the paper in one report: Figure 1, Tables 1 to 3, and a recovery experiment that the paper does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from condgrad.checks import choice, whole
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
from condgrad.paper.pool import limit_jobs, make_all
from condgrad.paper.problem5 import ADDRESS, FORMULA, PAPER
from condgrad.paper.recovery import Recovery
from condgrad.paper.sections import Section, SectionReport
from condgrad.paper.tables import Tables
from condgrad.paper.verdicts import ONE_SEED, RULE, Claim
from condgrad.report import Block, Opening, Table, Text, environment, write
from condgrad.report.text_table import table
from condgrad.runtime.progress import duration


@dataclass(frozen=True)
class Configuration:
    """Sizes, seeds and budgets of a reproduction."""

    name: str
    seeds: int
    """Number of seeds of the figures."""
    tuning: bool
    """Whether settings are tuned on a separate seed. If not, presets are used and methods that are not drawn are left out."""
    generators: tuple[str, ...]
    """Generators of the data of the figures."""
    fig1a: tuple[int, int]
    """Size and rank of the matrix."""
    fig1b: tuple[int, int]
    """Size and rank of the matrix."""
    budget_1a: dict[str, Any]
    budget_1b: dict[str, Any]
    table_seeds: int
    steps: dict[str, tuple[int, ...]]
    recovery: tuple[int, int]
    recovery_seeds: int
    recovery_stop: dict[str, Any]

    def sections(self, seed: int, seeds: int | None = None) -> dict[str, Section]:
        """Parts of the reproduction by name. ``seed`` is the first seed, ``seeds`` replaces the number of seeds if given."""

        def first(count: int) -> range:
            return range(seed, seed + (seeds or count))

        def figure(name: str, shape: tuple[int, int], every: tuple[Line, ...], claim: Claim, **more: Any) -> Figure:
            included = every if self.tuning else tuple(line for line in every if line.drawn)
            size, rank = shape
            return Figure(name, size, rank, included, claim, **more, **shared)

        tuning_seed = seed + MAX_SEEDS if self.tuning else None
        shared: dict[str, Any] = {"seeds": first(self.seeds), "tuning_seed": tuning_seed, "generators": self.generators}
        return {
            "fig1a": figure("fig1a", self.fig1a, FIGURE_1A, CLAIM_1A, stop=self.budget_1a, gradients="fo"),
            "fig1b": figure("fig1b", self.fig1b, FIGURE_1B, CLAIM_1B, stop=self.budget_1b, gradients="ifo"),
            "tables": Tables(first(self.table_seeds), self.steps),
            "recovery": Recovery(*self.recovery, first(self.recovery_seeds), self.recovery_stop),
        }


MAX_SEEDS = 1000
"""Maximum number of seeds. The tuning seed is the first seed plus this number, so it is never one of the shown seeds."""

FULL = Configuration(
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
QUICK = Configuration(
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
    configuration: Configuration = FULL,
    parts: Sequence[str] = PARTS,
    seed: int = 0,
    seeds: int | None = None,
    jobs: int = 1,
    fresh: bool = False,
    command: str = "",
) -> tuple[Path, list[SectionReport]]:
    """Perform the runs that are not stored yet and write the report.

    Parameters
    ----------
    out : Path
        Folder of the report; the outcomes of runs are stored in its folder ``runs``.
    configuration : Configuration, default FULL
    parts : sequence of str, default PARTS
        Parts to reproduce.
    seed : int, default 0
        First seed.
    seeds : int, optional
        Number of seeds. By default that of the configuration.
    jobs : int, default 1
        Number of worker processes.
    fresh : bool, default False
        Repeat all runs, also those that are stored.
    command : str, default ""
        Command line, shown among the facts of the report.

    Returns
    -------
    page : Path
        The file report.html.
    reports : list of SectionReport
        Content of the report, part by part.
    """
    for part in parts:
        choice(part, PARTS, "part of the reproduction")
    whole(seed, "The seed", least=0)
    if seeds is not None:
        whole(seeds, "The number of seeds")
        if seeds > MAX_SEEDS:
            raise ValueError(f"The number of seeds is {seeds}, but at most {MAX_SEEDS} were expected: give fewer.")
    limit_jobs(jobs)
    started = monotonic()
    sections = [section for name, section in configuration.sections(seed, seeds).items() if name in parts]
    folder = out / "runs"
    runs = [run for section in sections for run in section.runs()]
    finished = make_all(runs, folder, jobs, "reproduce", fresh=fresh)
    more = [run for section in sections for run in section.follow_up_runs(finished)]
    finished = make_all([*runs, *more], folder, jobs, "reproduce, tuned settings on the other seeds", finished, fresh)
    reports = [section.report(finished) for section in sections]
    facts = {
        **{name: value for name, value in environment().items() if name not in ("machine", "date")},
        **finished.circumstances(),
        "threads": "one per run; CPU seconds are per process, but simultaneous runs share caches and memory",
        "command": command,
        "form": configuration.name,
        "seeds": ", ".join(f"{part.name} {part.facts['seeds'][0]} to {part.facts['seeds'][-1]}" for part in reports),
        "runs": len(finished.by_key),
        "report written": environment()["date"],
        "time": f"{duration(monotonic() - started)}, without runs that were stored before",
    }
    raw = {"facts": facts, **{part.name: part.facts for part in reports}}
    return write(out, TITLE, page_blocks(reports), facts, raw), reports


TITLE = "Non-convex conditional gradient sliding, reproduced"


def page_blocks(reports: Sequence[SectionReport]) -> list[Block]:
    """Blocks of the page: the paper, its problem, the main result, one figure and the verdicts, then the parts and the method."""
    figures = [part for part in reports if part.main_figure]
    finding = next((part.headline for part in reports if part.headline), "")
    blocks: list[Block] = [Opening(finding, PAPER, ADDRESS, "Problem (5)", FORMULA)]
    if figures:
        blocks += [*figures[0].main_figure, verdict_table([part.facts for part in figures])]
    for part in reports:
        if figures and part is figures[0]:  # its headline and its main figure are at the top
            blocks += [Text(part.heading.heading, []), *part.blocks]
        else:
            blocks += [part.heading, *part.main_figure, *part.blocks]
    if figures:
        seed = figures[0].facts["tuning seed"]
        blocks.append(Text("How it was done", [*RECIPE, PRESET if seed is None else TUNED_ON.format(seed=seed)]))
    return blocks


def verdict_table(figures: Sequence[dict[str, Any]]) -> Table:
    """Table of the paper's claims, their readings, and the verdicts."""
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


def terminal_text(reports: Sequence[SectionReport]) -> Iterator[str]:
    """Yield the tables, the verdicts and finally the headlines, as text for a terminal."""
    figures = [part.facts for part in reports if part.main_figure]
    tables = [block for part in reports for block in part.blocks if isinstance(block, Table)]
    for block in [*tables, *([verdict_table(figures)] if figures else [])]:
        yield f"{block.caption}\n\n{table(block.header, block.rows)}\n"
    headlines = [part.headline for part in reports if part.headline]
    if headlines:
        yield "\n".join(headlines) + "\n"


def without_curves(facts: Any) -> Any:
    """Copy of plain data without the points of curves and of fits, which would be too long for a terminal."""
    if isinstance(facts, dict):
        return {key: without_curves(value) for key, value in facts.items() if key not in ("curves", "points")}
    return [without_curves(value) for value in facts] if isinstance(facts, list) else facts
