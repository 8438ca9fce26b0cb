"""Recovery experiment, which the paper does not have: error of the recovered matrix against the share of corrupted entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.paper.pool import Outcomes
from condgrad.paper.runs import Run, failed
from condgrad.paper.sections import SectionReport
from condgrad.report import Picture, Table, Text, quartiles
from condgrad.report.plain import format_number
from condgrad.spec import paper_matrix, to_twelve

LOSSES = {"welsch": "smoothed l0 loss", "squared": "squared loss"}
OBSERVE, NOISE = 0.5, 10.0
"""Share of observed entries; corrupted entries get uniform noise in [-NOISE, NOISE]."""
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)
"""Shares of corrupted entries."""
DRAWN_SHARE = 0.2
"""Share for which the matrices are drawn."""


@dataclass(frozen=True)
class Recovery:
    """Recovery of a gaussian matrix with the robust and the squared loss.

    Parameters
    ----------
    size, rank : int
        Number of rows (and of columns) and rank of the matrix.
    seeds : sequence of int
        Seeds of the data.
    stop : dict
        Budget of a run, as in the section [stop] of a spec.
    """

    size: int
    rank: int
    seeds: Sequence[int]
    stop: dict[str, Any]

    def runs(self) -> list[Run]:
        return [self.run(loss, share, seed) for seed in self.seeds for share in SHARES for loss in LOSSES]

    def follow_up_runs(self, finished: Outcomes) -> list[Run]:
        return []

    def recipe(self, share: float, seed: int) -> dict[str, Any]:
        shape = {"shape": [self.size, self.size], "rank": self.rank, "generator": "gaussian", "seed": seed}
        return {**shape, "observe": OBSERVE, "corrupt": share, "noise": NOISE}

    def run(self, loss: str, share: float, seed: int) -> Run:
        recipe = self.recipe(share, seed)
        return {
            "problem": {"objective": "paper", "loss": loss, **recipe},
            "set": {"name": "nuclear-ball", "radius": radius(recipe)},
            "method": {"name": "ncgs"},
            "stop": self.stop,
            "keep": {"what": "recovery", "point": share == DRAWN_SHARE and seed == self.seeds[0]},
        }

    def report(self, finished: Outcomes) -> SectionReport:
        outcomes = {
            (loss, share): [finished[self.run(loss, share, seed)] for seed in self.seeds]
            for loss in LOSSES
            for share in SHARES
        }
        errors = {at: [o["error"] for o in found if not failed(o)] for at, found in outcomes.items()}
        rows = [{"corrupted": share, **{loss: median(errors[loss, share]) for loss in LOSSES}} for share in SHARES]
        points = [
            {"loss": loss, "corrupted": share, "seed": seed, "status": o["status"], "error": o["error"]}
            for (loss, share), found in outcomes.items()
            for seed, o in zip(self.seeds, found, strict=True)
        ]
        facts = {
            "size": self.size,
            "rank": self.rank,
            "seeds": list(self.seeds),
            "R": [radius(self.recipe(0.0, seed)) for seed in self.seeds],
            "rows": rows,
            "points": points,
        }
        text = Text(
            "Recovery: what the robust loss is for", [self.description(), self.comparison(rows), ending_text(points)]
        )
        return SectionReport("recovery", text, [self.table(errors), self.picture(finished)], facts, self.headline(rows))

    def description(self) -> str:
        """Paragraph about the data and the method."""
        return (
            f"Beyond the paper. A gaussian matrix, {self.size} x {self.size} of rank {self.rank}, half of its entries "
            f"observed, a share of those corrupted by uniform noise in [-{NOISE:g}, {NOISE:g}] (entries are of size 1); "
            "NCGS with its default options, over the nuclear-norm ball of the true radius, for both losses. Five times as many "
            "entries are observed as in problem (5), so that recovery is possible. The smoothed l0 loss is 1 - exp(-(x - y)^2). "
            "The share of observed entries and the noise were chosen after first runs: with 40 % observed and noise in "
            "[-5, 5] the two losses differed less."
        )

    def headline(self, rows: list[dict[str, Any]]) -> str:
        """Sentence with the errors of both losses at ``DRAWN_SHARE``; empty if one of them is missing."""
        (row,) = (row for row in rows if row["corrupted"] == DRAWN_SHARE)
        if None in row.values():
            return ""
        return (
            f"With {DRAWN_SHARE:.0%} of the entries corrupted the smoothed l0 loss recovers the matrix to a relative error "
            f"of {format_number(row['welsch'])}, the squared loss to {format_number(row['squared'])}."
        )

    def comparison(self, rows: list[dict[str, Any]]) -> str:
        """Sentence on how often the robust loss recovers more than the squared loss."""
        both = [row for row in rows if row["corrupted"] > 0 and None not in row.values()]
        wins = [row for row in both if row["welsch"] < row["squared"]]
        smallest_ratio = min((row["squared"] / row["welsch"] for row in wins), default=0.0)
        corrupted = len(SHARES) - 1
        nearer = "Where entries are corrupted the smoothed l0 loss is nearer to the truth at"
        if len(wins) == corrupted:
            return f"{nearer} every share, by a factor of {smallest_ratio:.2g} or more."
        return f"{nearer} {len(wins)} of {corrupted} shares."

    def table(self, errors: dict[tuple[str, float], list[float]]) -> Table:
        several = len(self.seeds) > 1
        header = [
            "corrupted",
            *(head for text in LOSSES.values() for head in ((text, "range") if several else (text,))),
        ]
        rows = []
        for share in SHARES:
            cells: list[Any] = [f"{share:.0%}"]
            for loss in LOSSES:
                found = errors[loss, share]
                cells.append(median(found))
                if several:
                    cells.append(f"{format_number(min(found))} to {format_number(max(found))}" if found else None)
            rows.append(cells)
        seeds = f"medians over {len(self.seeds)} seeds" if several else "one seed"
        note = f"|X - Y| / |Y|, Frobenius norms, over all entries, observed or not; {seeds}."
        return Table("Relative recovery error", header, rows, note)

    def picture(self, finished: Outcomes) -> Picture:
        seed = self.seeds[0]
        data = paper_matrix(**self.recipe(DRAWN_SHARE, seed))
        observed = np.full(data.truth.shape, np.nan)
        observed[data.rows, data.cols] = data.values
        found = {text: np.array(finished[self.run(loss, DRAWN_SHARE, seed)]["point"]) for loss, text in LOSSES.items()}
        title = f"True matrix, its observed entries with {DRAWN_SHARE:.0%} corrupted, and the recovered matrices"
        note = "The colours are scaled to the truth; observed values outside its range have the last colour."
        return Picture("recovery", title, {"truth": data.truth, "observed": observed, **found}, note, scaled_by="truth")


def radius(recipe: dict[str, Any]) -> float:
    return to_twelve(paper_matrix(**recipe).nuclear_norm)


def median(errors: list[float]) -> float | None:
    return float(quartiles(errors)[1]) if errors else None


def ending_text(points: list[dict[str, Any]]) -> str:
    """Sentence on how the runs ended: a large error of a run without enough time says nothing about the loss."""
    counts = Counter("failed" if failed(point) else point["status"] for point in points)
    text = f"{counts['converged']} of {len(points)} runs converged"
    text += f", {counts['out_of_budget']} ended at their budget" if counts["out_of_budget"] else ""
    return text + (f", {counts['failed']} failed and are left out." if counts["failed"] else ".")
